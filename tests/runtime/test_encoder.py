"""Sentences to vectors."""

import pickle
import re
import shutil
import sys
from itertools import count, islice
from pathlib import Path

import numpy as np
import pytest
from commands import edit_json, raises
from texts import NOTES

from xsent import BundleError, FingerprintError, LongSentenceWarning, SentenceEncoder
from xsent.bundle import builtin_path
from xsent.encoder import UnknownTextWarning

LONG = "Anna sees Boris. " * 60
SENTENCES = ["Anna sees Boris.", "", "David voit Elena", "Clara", "Anna 漢字 and Boris", "Anna  SEES   boris."] * 15


def test_shapes_and_forms_of_vectors(encoder: SentenceEncoder) -> None:
    assert encoder.encode("Anna").shape == (encoder.dim,)
    assert encoder.encode(["Anna"]).shape == (1, encoder.dim)
    assert encoder.encode(text for text in SENTENCES[:3]).shape == (3, encoder.dim)
    assert encoder.encode([]).shape == (0, encoder.dim)
    assert encoder.encode([], truncate_dim=3).shape == (0, 3)
    raw = encoder.encode("Anna sees Boris.", normalize_embeddings=False)
    unit = encoder.encode("Anna sees Boris.")
    assert np.linalg.norm(unit) == pytest.approx(1, abs=1e-6) and abs(np.linalg.norm(raw) - 1) > 1e-3
    assert np.allclose(unit, raw / np.linalg.norm(raw), atol=1e-6)
    short = encoder.encode("Anna sees Boris.", truncate_dim=8)  # normalised again
    assert np.allclose(short, raw[:8] / np.linalg.norm(raw[:8]), atol=1e-6)
    assert np.array_equal(encoder.encode("Anna sees Boris.", truncate_dim=8, normalize_embeddings=False), raw[:8])
    half = encoder.encode(SENTENCES, precision="float16")
    assert half.dtype == np.float16 and np.array_equal(half, encoder.encode(SENTENCES).astype(np.float16))


GEORGIAN = "კატას სძინავს ხალიჩაზე ფანჯარასთან."


def test_texts_that_are_mostly_unknown_are_counted_in_one_warning() -> None:
    encoder = SentenceEncoder()
    some = "We saw the city of Tokyo (東) last year.", "Ça coûte 3 €, n’est-ce pas ?"
    texts = ["The cat sleeps.", GEORGIAN, "", "Մեկ կատու քնում է գորգին։", *some]
    for encode in (encoder.encode, lambda texts: list(encoder.encode_iter(texts))):
        with pytest.warns(UnknownTextWarning) as caught:
            encode(texts)  # type: ignore[operator]
        (warning,) = caught
        assert re.match("2 of 5 .*; it was trained for en, fr, de, es, it, pt, nl, ru, ja$", str(warning.message))
        assert warning.filename == __file__
    with pytest.warns(UnknownTextWarning, match="1 of 1"):
        alone = encoder.encode(GEORGIAN)
    assert alone.any()
    with pytest.warns(UnknownTextWarning, match="40 of 80"):
        assert np.array_equal(encoder.encode([GEORGIAN, "The cat sleeps."] * 40)[-2], alone)


def test_sentences_in_other_languages_are_counted_in_one_warning(mini_bundle: Path) -> None:
    encoder = SentenceEncoder()
    foreign = [
        "Wczoraj wieczorem poszliśmy z przyjaciółmi do najlepszej restauracji w naszym mieście.",
        "Учора ввечері ми разом із друзями пішли до найкращої їдальні нашого міста.",
        "Χθες το βράδυ πήγαμε στο καλύτερο εστιατόριο της πόλης μας.",
        "昨天晚上，我们和朋友去了镇上最好的餐馆吃饭。",
        "Dün akşam şehrimizdeki en iyi restorana yemek yemeye gittik.",
    ]
    for text in foreign:
        message = r"1 of 1 sentences seem to be in a language .* trained for en, fr"
        with pytest.warns(UnknownTextWarning, match=message):
            encoder.encode(text)
    own = [notes[2] for notes in NOTES.values()]
    own += [
        "Рецепт борща: свёкла, капуста, морковь, лук, томатная паста, чеснок, укроп",
        "Einkauf: Brot, Milch, Eier, Joghurt, Zucchini, Auberginen, Spülmittel, Katzenstreu, Klopapier",
        "石炭をば早や積み果てつ。中等室の卓のほとりはいと静にて、熾熱燈の光の晴れがましきも徒なり。",
        "隴西の李徴は博学才穎、天宝の末年、若くして名を虎榜に連ね、ついで江南尉に補せられたが、性、狷介、自ら恃むところ頗る厚い。",
    ]
    own += ["OK", "Kobayashi", "7 Up", "a8f3-9c0d-77e1", "2024-11-25 17:48:03", "https://t.co/x7Gh2kQ9"]
    for text in (own, *own):
        encoder.encode(text)
    SentenceEncoder(mini_bundle).encode(foreign[0], on_long="split")  # its few pieces cut every word
    encoder.encode(own[:10] + foreign[:1])  # too few to tell
    with pytest.warns(UnknownTextWarning, match="2 of 15 sentences seem"):
        encoder.encode(own[:13] + foreign[:2])


def test_stream_is_read_as_it_is_used(mini_bundle: Path) -> None:
    parallel, taken = SentenceEncoder(mini_bundle, threads=3), count()
    vectors = parallel.encode_iter("Anna" for _ in taken)
    assert len(list(islice(vectors, 100))) == 100
    assert next(taken) <= 100 + 2 * 16 * (parallel.threads + 1)
    vectors.close()  # type: ignore[attr-defined]


def test_wrong_texts_options(encoder: SentenceEncoder) -> None:
    for given, arguments, message in [
        (["Anna"], {"truncate_dim": 0}, "truncate_dim = 0 must"),
        (["Anna"], {"precision": "int4"}, "precision = 'int4' must"),
        (["Anna"], {"precision": "int8", "normalize_embeddings": False}, "precision = 'int8' does not keep lengths"),
        (["Anna"], {"on_long": "cut"}, "on_long = 'cut' must"),
        (["Anna", b"Boris"], {}, r"sentence 2 .*expected str, got bytes"),
        ([{"text": "Anna"}], {}, r"sentence 1 .*got dict; pass only its text, such as row\['text'\]"),
        ({"a": "Anna"}, {}, "got a dict, whose keys would be encoded"),
        (5, {}, "got 5; expected a sentence or sentences"),
        (None, {}, "got None; expected a sentence"),
        (["Anna", None], {}, r"sentence 2 .*got NoneType, a missing value"),
        (["Anna", float("nan")], {}, r"sentence 2 .*got float, a missing value"),
        (["Anna", np.datetime64("NaT")], {}, r"sentence 2 .*got datetime64"),
        (np.array("Anna"), {}, r"got array\(.*; expected a sentence"),
        (["Anna", 2.5], {}, r"sentence 2 .*got float$"),
    ]:
        error = ValueError if arguments else TypeError
        for call in (encoder.encode, encoder.encode_iter):  # options at once, before anything is read
            raises(error, message, call if arguments else lambda text, call=call: list(call(text)), given, **arguments)
    for call in (encoder.encode_iter, encoder.encode_items):
        raises(TypeError, "got one str; put it in a list", call, "Anna")
        raises(TypeError, "got a dict", call, {"a": "Anna"})


def test_columns_of_tables(encoder: SentenceEncoder) -> None:
    pandas = pytest.importorskip("pandas")
    arrow = pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"id": [1, 2], "text": SENTENCES[:2]})
    expected = encoder.encode(SENTENCES[:2])
    for column in (frame["text"], arrow.array(SENTENCES[:2]), arrow.table({"text": SENTENCES[:2]})["text"]):
        assert np.array_equal(encoder.encode(column), expected)
    for table in (frame, arrow.table({"id": [1], "text": ["Anna"]})):
        raises(TypeError, "pass the column with the texts, one of id, text", encoder.encode, table)
    raises(TypeError, r"sentence 2 .*a missing value", encoder.encode, pandas.Series(["Anna", pandas.NA], dtype=object))


def test_names_and_arguments_of_sentence_transformers(encoder: SentenceEncoder) -> None:
    vectors = encoder.encode(SENTENCES)
    assert np.array_equal(encoder.encode_query(SENTENCES), vectors)
    assert np.array_equal(encoder.encode_document(SENTENCES), vectors)
    pairs = encoder.similarity_pairwise(vectors, vectors[::-1])
    assert pairs == pytest.approx(encoder.similarity(vectors, vectors[::-1]).diagonal(), abs=1e-6)
    raises(ValueError, "cannot be paired", encoder.similarity_pairwise, vectors, vectors[:1])
    assert (encoder.max_seq_length, encoder.get_sentence_embedding_dimension()) == (encoder.max_length, encoder.dim)
    same = encoder.encode(["Anna"], batch_size=8, device="cpu", convert_to_numpy=True, prompt=None)
    assert np.array_equal(same, encoder.encode(["Anna"]))
    for refused in ({"convert_to_tensor": True}, {"convert_to_numpy": False}):
        raises(ValueError, r"torch.from_numpy", encoder.encode, ["Anna"], **refused)
    raises(ValueError, "prompt = 'query: ': the model was trained without", encoder.encode, ["Anna"], prompt="query: ")


def test_long_sentences_are_counted_in_one_warning_or_an_error(
    encoder: SentenceEncoder, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.warns(LongSentenceWarning) as caught:
        cut = encoder.encode([LONG, "Anna", LONG + "Boris"])
    assert len(caught) == 1
    assert "2 of 3 sentences had more than 64 tokens" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert np.array_equal(cut[0], cut[2])  # the difference lay beyond the cut
    with pytest.warns(LongSentenceWarning, match="1 of 2") as caught:
        list(encoder.encode_iter([LONG, "Anna"]))
    assert len(caught) == 1 and caught[0].filename == __file__
    for threads in (1, 2):  # the first one is named
        encode, texts = SentenceEncoder(encoder.bundle.path, threads=threads).encode, ["Anna"] * 40 + [LONG] * 20
        raises(ValueError, r"sentence 41 \(counted from 1\): .* tokens, at most 64", encode, texts, on_long="error")
    encoder.encode(SENTENCES)
    assert capfd.readouterr() == ("", "")
    encoder.encode(["Anna", "Clara"], show_progress_bar=True)
    out, err = capfd.readouterr()
    assert "2 of 2 sentences" in err and not out


@pytest.mark.parametrize(("most", "count"), [(128, 13), (32, 25)])
def test_split_weighs_windows(most: int, count: int, encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xsent.encoder.WINDOW", most)
    ids = encoder._tokenizer.encode(LONG)
    windows = np.array_split(np.array(ids), count)
    assert {len(window) for window in windows} == {len(ids) // count, -(-len(ids) // count)}
    assert len(windows[0]) <= min(most, encoder.max_length) < len(ids) / (count - 1)
    total = sum(len(window) * encoder._backend.embed(window[None])[0].astype(np.float64) for window in windows)
    vector = encoder.encode(LONG, on_long="split", normalize_embeddings=False)
    assert np.allclose(vector, total / len(ids), atol=1e-6)


def test_construction(mini_bundle: Path, tmp_path: Path, deep_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raises(ValueError, "threads = 0", SentenceEncoder, mini_bundle, threads=0)
    bundle = Path(shutil.copytree(mini_bundle, tmp_path / "bundle"))
    edit_json(bundle / "xsent.json", vocab_size=7)
    raises(BundleError, "pieces, the table", SentenceEncoder, bundle)
    monkeypatch.setattr("xsent.encoder.available_cpus", lambda: 4)
    assert [SentenceEncoder(deep_bundle, layers=layers).threads for layers in (2, 0)] == [4, 1]
    assert SentenceEncoder(deep_bundle, layers=0, threads=2).threads == 2


def test_an_encoder_travels_to_another_process_as_its_path(
    deep_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(deep_bundle, tmp_path / "moved"))
    encoder = SentenceEncoder(folder, layers=1, backend="numpy", threads=2)
    packed = pickle.dumps(encoder)
    assert len(packed) < 1000
    again = pickle.loads(packed)
    assert (again.threads, again.layers, again.fingerprint) == (2, 1, encoder.fingerprint)
    assert np.array_equal(again.encode(SENTENCES), encoder.encode(SENTENCES))
    packed_by_default = pickle.dumps(SentenceEncoder(folder, layers=1))
    with monkeypatch.context() as patch:
        patch.setattr("xsent.encoder.default_backend", lambda: "numpy")  # where it is opened, onnxruntime is missing
        patch.setitem(sys.modules, "onnxruntime", None)
        assert pickle.loads(packed_by_default).encode("Anna").shape == (encoder.dim,)
    shutil.rmtree(folder)
    folder.symlink_to(builtin_path())
    raises(FingerprintError, f"the pickled encoder had {encoder.fingerprint}; put the same", pickle.loads, packed)
