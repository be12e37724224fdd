"""Words in every index: spellings, weights, and what is said if nothing is close."""

import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from indexes import Replay, path

from xsent import SearchIndex, SentenceEncoder, build_index, extend_index, no_match_message
from xsent.search.index import CLOSE
from xsent.search.shared_words import shared_words
from xsent.search.store import IndexDatabase
from xsent.words import beginning, has_words, joined_keys, word_keys

__all__ = ["path"]

TEXTS = {
    "OK": "one of the lines that are near everything",
    "We visited the cathedral in Köln and the bridges over the river.": "Köln",
    "Die Straße ist gesperrt.": "strasse",
    "Der Schlüssel für die Tür hängt im Flur.": "Schluessel",
    "Perché è così tardi?": "perche",
    "ﬁne Ｗｏｒｄｓ": "fine words",
    "Sau\u00adna ge\u200böffnet": "sauna geoeffnet",
    "Œuvre d'un élève": "oeuvre eleve",
    "Ещё один ёжик": "еще ежик",
    "東京タワーに行きました。": "東京タワー",
    "part XK-42": "xk-42",
}


@pytest.fixture(scope="module")
def builtin() -> SentenceEncoder:
    return SentenceEncoder(threads=1)


def test_spellings_of_a_word_are_equal_and_other_words_are_not() -> None:
    keys = lambda text: {key for keys in word_keys(text) for key in keys}  # noqa: E731
    for text, query in [*TEXTS.items()][1:]:
        for written in (query, query.upper(), unicodedata.normalize("NFD", query)):
            assert all(not keys(text).isdisjoint(word) for word in word_keys(written)), (text, written)
    for one, other in (
        ("リンゴは", "りんご"),
        ("らーめん", "ラーメン"),
        ("ｷｭｳﾘ", "きゅうり"),
    ):
        assert {*word_keys(one)} >= {*word_keys(other)} and joined_keys(other)
    for one, other in (("neue", "neu"), ("boek", "bok"), ("мой", "мои"), ("ガキ", "カキ"), ("poet", "pot")):
        assert keys(one).isdisjoint(keys(other))
    assert joined_keys("Müller, Straße 7 -- 🙂 _") == "muller mueller strasse 7"


def test_what_is_no_text() -> None:
    none = """
        . ... … - — ? !!! _ ___ 👍👍👍 👍🏽 ❤️ :-) -/-
        N/A n/a N/A. n.a. N.A. #N/A #NV #REF! #DIV/0! NaN nan NULL null (null) None NA \\N <NA> <p>N/A</p>
        n/d k.A. undefined [deleted] (blank) (null)
        <p>&nbsp;</p> &nbsp; &#160; <br> <br/> <div><p></p></div> <!--none--> <b>.</b>
    """.split()
    assert [
        text
        for text in [*none, "", " ", "\u200b", "\ufeff", "N / A", "n. a.", '<img src="cat.png">']
        if has_words(text)
    ] == []
    words = [
        "A",
        "7",
        "No",
        "none",
        "None.",
        "nil",
        "Na",
        "Nan",
        "null results",
        "deleted",
        "(no)",
        "#ok",
        "#1",
        "C#",
        "日本",
        "5 < 6",
        "<3",
    ]
    assert [text for text in [*words, "NA is sodium", "<not closed", "a<b", "x &amp; y"] if not has_words(text)] == []


def test_a_letter_has_at_most_thirty_marks() -> None:
    voiced = [joined_keys("か" + "\u3099" * count) for count in (29, 30, 31, 999)]
    assert voiced[0] != voiced[1] == voiced[2] == voiced[3]
    assert joined_keys("a" + "\u0315\u0300" * 99 + "b") == "ab"
    assert joined_keys("é" + "-" * 99 + "ⓐ" + "ⓑ" * 99) == "e a" + "b" * 99  # a run of what is no mark is not cut


def test_words_count_in_an_index_of_lines_and_lines_without_any_are_not_in_it(path: Path) -> None:
    lines = [*TEXTS, ".", "---", "x", "1", "🙂"]
    encoder: Any = Replay(np.random.default_rng(0).normal(size=(99, 8)))
    whither = "whither XK-42?"  # no line has "whither": it counts, so that the line has two of three words
    queries = {*TEXTS.values(), whither}
    encoder.encode = lambda texts, **_: np.stack([encoder._vectors[98 if t in queries else len(t)] for t in texts])
    build_index(path, lines[:5], encoder)
    extend_index(path, lines[5:], encoder)
    index = SearchIndex(path)
    assert (index.state.lines, len(index)) == (16, 13)
    found = lambda query, words: index.search(encoder, [query], k=99, words=words)[0]  # noqa: E731
    for text, query in [*[*TEXTS.items()][2:], ("part XK-42", whither)]:
        joined, plain = ({hit.text: hit.score for hit in found(query, words)} for words in (True, False))
        assert not joined.keys() & {".", "---", "🙂"} and len(joined) == 13
        added = 0.5 * (2 / 3 if query == whither else 1)
        assert joined == pytest.approx(plain | {text: plain[text] + added})
        assert [*joined.values()] == sorted(joined.values(), reverse=True)
    for query in ('"', "NEAR(", "* - ^", "\x00", "'); DROP TABLE words"):
        assert len(found(query, True)) == 13


def test_of_equal_lines_the_earlier_is_first(path: Path, builtin: SentenceEncoder) -> None:
    for count in (30, 101, 150):
        build_index(path, ["The same line again."] * count, builtin, force=True)
        for words in (True, False):
            for k in (3, count):
                (hits,) = SearchIndex(path).search(builtin, ["another line"], k=k, words=words)
                assert [hit.line for hit in hits] == [*range(1, k + 1)]
    build_index(path, [f"Line {number // 30} of a list" for number in range(300)], builtin, force=True)
    extend_index(path, ["Line 3 of a list"] * 7, builtin)
    (hits,) = SearchIndex(path).search(builtin, ["Line 3 of a list"], k=37)
    assert [hit.line for hit in hits] == [*range(91, 121), *range(301, 308)]


NAMES = {
    "Sato cannot come to the meeting next week.": "Was wissen wir eigentlich über Sato?",
    "Kobayashi will take the minutes of the meeting.": "Qu'est-ce qu'on sait de Kobayashi ?",
    "Okonkwo has the key of the cellar.": "¿Dónde encuentro algo sobre Okonkwo?",
    "Lindqvist wants to paint the stairs green.": "Che cosa vuole Lindqvist?",
    "Bartosz Wrona repairs the heating on Thursday.": "Wann kommt eigentlich Herr Wrona zu uns?",
    "Frau Zschiesche hat den Hund der Nachbarn gebissen.": "What do we know about Mrs Zschiesche?",
    "Delacroix-Moreau a prêté la perceuse à son voisin.": "Wat is er met Delacroix-Moreau gebeurd?",
    "Marchetti porta i fiori alla festa di sabato.": "O que sabemos sobre o Marchetti?",
    "Vermeulen komt met de bus van kwart over negen.": "Что мы знаем о Vermeulen?",
    "Yıldız bought the tickets for the concert.": "Yildiz について何か知っていますか",
}
OTHERS = ["Everybody brings something to eat.", "The meeting is in the big room.", "Die Heizung ist kaputt.", "OK", "x"]


def test_names_and_rare_words_count(path: Path, builtin: SentenceEncoder) -> None:
    build_index(path, [*NAMES, *OTHERS], builtin)
    index = SearchIndex(path)
    assert [hits[0].text for hits in index.search(builtin, [*NAMES.values()], k=1)] == [*NAMES]
    assert index.search(builtin, ["Hoe zit het ook alweer met Sato?"], k=1)[0][0].line == 1  # "met" is in one passage
    (hits,) = index.search(builtin, ["La calefacción no funciona, ¿die?"], k=1)  # a word of another language
    assert hits[0].text == "Die Heizung ist kaputt."
    rarity = lambda word: builtin.words.rarity(next(word_keys(word)))  # noqa: E731
    assert [rarity(word) for word in ("the", "für", "où", "не", "Sato", "4711", "7")] == [0, 0, 0, 0, 1, 1, 1]
    assert 0 < rarity("train") < rarity("harbour") <= 1


INSURED = [
    "Bike repair: the chain and both brakes were replaced in May.",
    "Fahrrad und Hausrat sind gegen Diebstahl versichert.",
    "The soup kitchen opens at noon.",
    "Die Suppenküche öffnet mittags.",
    "Okonkwo has the key of the cellar.",
]


def test_one_common_word_says_little_and_words_that_no_passage_has_count(path: Path, builtin: SentenceEncoder) -> None:
    build_index(path, INSURED, builtin)
    ways = [SearchIndex(path).search(builtin, ["Is my bike insured?"], k=5, words=words)[0] for words in (True, False)]
    assert ways[0][0].text.startswith("Fahrrad") and ways[1][0].text.startswith("Fahrrad")
    scores = [{hit.text[:4]: hit.score for hit in hits} for hits in ways]
    near_words = 0.25 * builtin.words.nearness("Is my bike insured?", INSURED)[0]
    assert 0 < scores[0]["Bike"] - scores[1]["Bike"] - near_words < 0.2
    database = IndexDatabase(path)
    shares = lambda query: shared_words(database, query, [], most=9, rows=5, among=5, rarity=lambda _: 1)  # noqa: E731
    assert shares("Okonkwo") == {4: pytest.approx(1)} and shares("Okonkwo whither") == {4: pytest.approx(1 / 2)}


def test_a_word_that_begins_as_one_of_the_query_counts_half(path: Path, builtin: SentenceEncoder) -> None:
    assert [*map(beginning, ("suppe", "insured", "sato", "cat", "xk42", "東京"))] == [
        "supp",
        "insu",
        "sato",
        "",
        "",
        "",
    ]
    build_index(path, INSURED, builtin)
    database = IndexDatabase(path)
    shares = lambda query: shared_words(database, query, [], most=9, rows=5, among=5, rarity=lambda _: 1)  # noqa: E731
    assert shares("Suppe") == {3: pytest.approx(1 / 2)} and shares("cat") == {}
    assert shares("repairs") == {0: pytest.approx(1 / 2)} and shares("repair") == {0: pytest.approx(1)}


def test_a_common_word_is_looked_for_only_among_what_is_found(
    path: Path, builtin: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_index(path, [str(number % 3) for number in range(90)], Replay(np.eye(99)))  # type: ignore[arg-type]
    database = IndexDatabase(path)
    shared = lambda **options: shared_words(database, "1", [4, 5], among=90, rarity=lambda _: 1, **options)  # noqa: E731
    assert shared(most=99, rows=90) == dict.fromkeys(range(1, 90, 3), pytest.approx(shared(most=0, rows=90)[4]))
    assert {*shared(most=2, rows=90)} == {1, 4} and {*shared(most=99, rows=6)} == {1, 4}
    exact = shared(most=0, rows=90)
    monkeypatch.setattr("xsent.search.shared_words._COMMON", 10)
    assert shared(most=99, rows=90) == {4: pytest.approx(exact[4], rel=0.1)}
    longer = path.with_name("longer")  # the word itself is rare, but many begin with it: they do not count
    build_index(longer, ["station", *("stations " * 20).split()], builtin)
    assert shared_words(IndexDatabase(longer), "station", [], most=9, rows=21, among=21, rarity=lambda _: 1) == {0: 1}


def test_what_is_said_if_nothing_is_close(path: Path, builtin: SentenceEncoder) -> None:
    build_index(path, ["The soup needs salt.", "Our cat sleeps all day."], builtin)
    index = SearchIndex(path)
    near, far = index.search(builtin, ["Le chat dort toute la journée.", "quarterly tax return"], k=2)
    assert near[0].close and not no_match_message(near) and no_match_message([]) == ""
    assert not any(hit.close for hit in far)
    expected = f"No close match: best score {far[0].score:.2f}; unrelated texts score up to {CLOSE:.2f}."
    assert no_match_message(far) == expected
    assert "best score 0.34;" in no_match_message([replace(far[0], score=0.3498)])  # not 0.35, which is close


def test_words_are_near_to_their_translations(builtin: SentenceEncoder) -> None:
    texts = ["Bike repair", "Das Fahrrad ist versichert.", "Un vélo rouge.", "The soup needs salt.", "", "..."]
    bike, fahrrad, velo, *others = builtin.words.nearness("the Bike", texts)  # "the" has no weight
    assert bike == pytest.approx(1) and 0.6 < fahrrad < 1 and 0.6 < velo < 1 and not any(others)
    assert builtin.words.nearness("猫", ["cat", "犬"]).argmax() == 0
    twice = builtin.words.nearness("key of the cellar", ["Kellerschlüssel", "no", "Kellerschlüssel"])
    assert twice[0] == twice[2] > twice[1]
    for query in ("", "the", "...", " ".join(texts[1].split() * 99 + [*map(str, range(99, 999))])):
        assert not builtin.words.nearness(query, texts).any()
    assert builtin.words.nearness("Bike", []).shape == (0,)


def test_a_passage_with_translated_words_comes_before_one_that_is_as_near(path: Path, builtin: SentenceEncoder) -> None:
    build_index(path, ["Der Fahrradkeller ist abgeschlossen.", "Der Weinkeller ist abgeschlossen."], builtin)
    ways = [SearchIndex(path).search(builtin, ["bike cellar"], k=2, words=words)[0] for words in (True, False)]
    leads = [hits[0].score - hits[1].score for hits in ways]
    assert all(hits[0].text.startswith("Der Fahrrad") for hits in ways) and leads[0] > leads[1] + 0.02


FOLDED = {
    "Die Bahn nach München hat Verspätung.": "Munchen",
    "La déclaration est prête.": "declaration",
    "El niño vuelve mañana.": "manana",
    "Non so perché.": "perche",
    "São férias em março.": "marco",
    "De coördinatie lukt niet.": "coordinatie",
    "Le cœur bat vite.": "coeur",
    "Ёлка стоит в углу.": "елка",
    "Das Straßenfest fällt aus.": "STRASSENFEST",
    "Alan Turing built it.": "turing",
}


def test_a_word_without_its_accents_is_found(path: Path, builtin: SentenceEncoder) -> None:
    build_index(path, [*FOLDED], builtin)
    index = SearchIndex(path)
    for text, query in FOLDED.items():
        joined, plain = (index.search(builtin, [query], k=99, words=words)[0] for words in (True, False))
        assert joined[0].text == text
        cosines = {hit.text: hit.score for hit in plain}
        nearness = dict(zip(FOLDED, builtin.words.nearness(query, [*FOLDED]).tolist(), strict=True))
        assert {hit.text: hit.score - cosines[hit.text] for hit in joined} == pytest.approx(
            {other: 0.5 * (other == text) + 0.25 * nearness[other] for other in FOLDED}, abs=1e-6
        )


def test_a_query_is_not_rewritten_into_another(path: Path, builtin: SentenceEncoder) -> None:
    """It was "haga", "tela" and "plague", "during", "déclaration", "perché", "invoice"."""
    lines = ["Where is the key?", "The road is closed."]
    queries = [
        "Who is Lady Gaga married to?",
        "When did Tesla go to Prague?",
        "Turing",
        "declaration",
        "perche",
        "invocie",
    ]
    build_index(path, lines, builtin)
    for query, hits in zip(queries, SearchIndex(path).search(builtin, queries, k=2, words=False), strict=True):
        expected = dict(zip([1, 2], (builtin.encode(lines) @ builtin.encode(query)).tolist(), strict=True))
        assert {hit.line: hit.score for hit in hits} == pytest.approx(expected, abs=1e-3)


def test_equal_lines_have_equal_scores(path: Path, builtin: SentenceEncoder) -> None:
    build_index(path, ["The ferry is late."] * 40 + ["Le ferry est en retard."], builtin)
    [hits] = SearchIndex(path).search(builtin, ["the late ferry"], k=41)
    *same, _ = sorted(hit.score for hit in hits)[::-1]
    assert len({*same}) == 1 and len({hit.text for hit in hits}) == 2
