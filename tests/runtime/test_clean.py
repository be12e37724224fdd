"""Noise that is taken off before a text is encoded."""

import random
from pathlib import Path

import numpy as np
import pytest
from commands import Runner, assert_refused
from noises import KINDS

from xsent import SentenceEncoder, UnknownTextWarning
from xsent.clean import clean_text

TEXT = "Wir haben gestern 3,5 Kilometer zurückgelegt, weil's schön war."
# Kinds that change nothing, or are folded by every encoder.
KEPT = ("none", "soft hyphens, zero width", "capitals", "decomposed accents", "full-width letters")
KEPT += ("double spaces, tabs",)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in KEPT])
def test_noise_is_taken_off(kind: str) -> None:
    for seed in range(5):
        noisy = KINDS[kind](TEXT, random.Random(seed))
        assert clean_text(noisy).replace("\xa0", " ") == TEXT


@pytest.mark.parametrize("kind", KEPT)
def test_some_noise_never_counts(kind: str) -> None:
    encoder = SentenceEncoder()
    noisy = KINDS[kind](TEXT, random.Random(0))
    assert np.array_equal(encoder.encode(noisy), encoder.encode(TEXT))


def test_ordinary_text_stays() -> None:
    for text in [
        TEXT,
        "3. März 2020 war kalt.",
        "9:00 Treffen mit Anna",
        "Room 12: the key",
        "C++ is fast, and a < b > c, so x = y.",
        "AT&T, 2 * 3 * 4 and snake_case",
        "Ça va? Ñandú, Œuvre, ÜÄÖ, São João",
        "Она сказала: да.",
        "昨日、駅でマリアに会いました。",
        *("", " ", "12", "...", "<b>", "https://example.org", "😀", "> >"),  # nothing else is in it
    ]:
        assert clean_text(text) == text


def test_odd_marks_do_no_harm() -> None:
    assert clean_text("It rains <!-- <p>soon --> here. <!-- there") == "It rains  here. <!-- there"
    assert clean_text(f"It rains &#{'1' * 9999}; here.") == "It rains \ufffd here."
    assert clean_text(f"It rains &#{'0' * 50}65; here.") == "It rains A here."
    assert clean_text("> " * 9999 + "It rains.") == "It rains."
    assert clean_text("cafÃ© â€“ Å“uvre \u00c5\u2019") == "café - œuvre Œ"


def test_an_index_remembers_that_its_texts_are_clean(run: Runner, tmp_path: Path) -> None:
    text, index = tmp_path / "mails.txt", tmp_path / "mails.index"
    text.write_text(f"> > <p>{TEXT}</p>\nThe cat sleeps.\n")
    for first, second, remedy in (("--clean", "--force", "add --clean"), ("--force", "--clean", "omit --clean")):
        assert run("index", text, index, first)[0] == 0
        assert_refused(run("index", text, index, "--add", *{second} - {"--force"}), remedy)
        assert run("index", text, index, "--add", *{first} - {"--force"})[0] == 0
        out = run("search", index, f"<b>{TEXT}</b>", "--no-words", "-k", 1)[1]
        assert out.startswith("1.0000\t1\t> > <p>") == (first == "--clean")


def test_a_clean_encoder_and_the_option(run: Runner, tmp_path: Path) -> None:
    plain, clean = SentenceEncoder(), SentenceEncoder(clean=True)
    noisy = f"> > <p>{TEXT}</p>"
    assert np.array_equal(clean.encode([noisy, TEXT]), plain.encode([TEXT, TEXT]))
    assert clean.count_tokens(noisy) == plain.count_tokens(TEXT) and clean.fingerprint == plain.fingerprint
    text = tmp_path / "mails.txt"
    text.write_text(f"{noisy}\nThe cat sleeps.\n[2024-05-01 10:00:00] INFO The cat sleeps.\n")
    assert run("encode", text, "--clean", "--output", tmp_path / "a.npy")[0] == 0
    vectors = np.load(tmp_path / "a.npy")
    assert np.array_equal(vectors[1], vectors[2])
    assert run("duplicates", text, "--clean")[0] == 2  # cleaned vectors are given to it instead
    out = run("duplicates", text, "--vectors", tmp_path / "a.npy")[1]
    assert out.splitlines()[1].split("\t")[2] == "[2024-05-01 10:00:00] INFO The cat sleeps."  # shown as it is
    noisy = "<p class=x>Dziękuję bardzo za piękną wiadomość, którą wczoraj otrzymałem.</p> https://a.example/b/c"
    with pytest.warns(UnknownTextWarning, match="in a language"):
        SentenceEncoder(clean=True).encode(noisy)
