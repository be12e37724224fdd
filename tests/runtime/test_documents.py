"""Document vectors (LAWDR): sentences, language subspaces, densities, and what is kept of them."""

import json
import sys
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from commands import raises
from texts import SENTENCES
from toy_documents import DIM, ToyEncoder, toy_documents

from xsent.documents import centering as module
from xsent.documents.centering import SAMPLE, Density, Moments, choose_bandwidth, choose_rank, survey
from xsent.documents.encoder import DocumentEncoder
from xsent.documents.sentences import sentences_of, split_sentences
from xsent.errors import DataError, FingerprintError, MissingExtraError
from xsent.mining.bitext import align_documents

CORPORA = {language: toy_documents(language) for language in ("en", "fr")}

TEXTS = {
    "en": ["Dr. Smith left at 3 p.m. on Monday.", "Then what?"],
    "fr": ["M. Dupont, voir art. 3 de la loi.", "Et après ?"],
    "de": ["Das ist z. B. ein Satz.", "Der 3. Mai war schön."],
    "es": ["¿Dónde está la Sra. García?", "¡Aquí está!"],
    "it": ["Il dott. Rossi abita al n. 5, v. pag. 14.", "Perché no?"],
    "pt": ["O Sr. Silva mora na Av. da Liberdade, n.º 20.", "Que bom!"],
    "nl": ["Dat kost bijv. 3,50 euro, d.w.z. wit brood.", "Is dat duur?"],
    "ru": ["Он живёт на ул. Ленина.", "Это далеко?"],
    "ja": ["これは文です。", "次の文です！"],
    **{unknown: ["One thing.", "Another thing!"] for unknown in ("", "xx")},  # by general rules
}


@pytest.fixture(scope="module")
def fitted() -> DocumentEncoder:
    return DocumentEncoder(ToyEncoder(), weighted=True).fit(CORPORA)


@pytest.mark.parametrize("language", TEXTS)
def test_sentences_of_every_language(language: str) -> None:
    pytest.importorskip("sentencex")
    space = "" if language == "ja" else " "
    assert split_sentences(space.join(TEXTS[language]), language) == TEXTS[language]


@pytest.mark.parametrize("space", "\xa0\u202f\u3000\u2028\x85")
def test_sentences_after_a_wide_space_before_a_period(space: str) -> None:
    pytest.importorskip("sentencex")
    assert split_sentences(f"We chose plan B{space}. It works.", "en") == [f"We chose plan B{space}.", "It works."]


def test_sentences_of_long_texts_headings_and_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sentences_of([" One. Two. ", "", " \t", "Three"], "en") == ["One. Two.", "Three"]
    assert sentences_of([], "en") == sentences_of(" ", "en") == []
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "sentencex", None)
        raises(MissingExtraError, r"pip install .xsent\[documents\].", split_sentences, "A. B.", "en")
    pytest.importorskip("sentencex")
    text = "  A heading\n\nA text that goes\nover two lines. The end.  \n\n"
    assert split_sentences(text, "en") == ["A heading", "A text that goes\nover two lines.", "The end."]
    for text in ["x" * 9001, " ".join(SENTENCES * 9), "\n\n".join(SENTENCES), "。" * 9000, " \n\n "]:
        for language in ("en", "ja", "xx"):  # no character is lost
            assert "".join("".join(split_sentences(text, language)).split()) == "".join(text.split())
    sentences = [f"Number {number} is a number, and {number} is its name." for number in range(1000)]
    assert split_sentences(" ".join(sentences), "en") == sentences
    sentences[500] = 'He said: "Number 500 is not.'  # an open quotation hides little
    sentences[999] += '"'
    assert len(split_sentences(" ".join(sentences), "en")) > 900


def test_texts_of_an_unknown_language_end_where_all_rules_agree() -> None:
    pytest.importorskip("sentencex")
    text = "Am 3. Mai kam Dr. Weiß. On May 3. Ivan came. Он родился в 1900 г. Потом уехал."
    assert split_sentences(text, "en")[0] == "Am 3."
    rules = ("en", "de", "ru")
    assert split_sentences(text, *rules)[0] == "Am 3. Mai kam Dr. Weiß."
    assert split_sentences(text) == split_sentences(text, "en") != split_sentences(text, *rules)
    for language in rules:
        assert set(_ends(text, *rules)) <= set(_ends(text, language))
    long = "".join(f"Am {number}. Mai kam Dr. Weiß. " for number in range(1, 400))  # of several windows
    assert split_sentences(long, *rules) == [f"Am {number}. Mai kam Dr. Weiß." for number in range(1, 400)]


# With a bar at each end of a sentence.
ENDS = [
    "Ich rufe dich an. |Danach gehe ich.",
    "Komm mit rein. |Dann hab ich dir. |Das bleibt.",
    "Aperto fino alle 18 ore. |Poi chiudiamo.",
    "Guarda il mare e la mar. |Poi vieni.",
    "Vamos a ver el mar. |Luego comemos.",
    "No. |Gracias por todo.",
    "No me digas que no. |Vamos a entrar.",
    "C'est la vie. |On continue demain.",
    "Il y a cent ans et un an. |Puis rien.",
    "Они ушли, т. е. Иван остался дома. |Потом пришли гости.",
    "Купи хлеб, молоко и т. д. и не забудь сыр. |Потом иди домой.",
    "Мы опоздали, т. к. был дождь. |Потом поехали.",
    "Библиотека им. Ленина закрыта, см. рис. 5. |Приходите завтра.",
    "Он сказал: «Иди!» — и ушёл. |Она осталась.",
    "「もう帰る。」と言った。|次の日、来た。",
    "彼は「はい。そうです。」と答えた。|それから帰った。",
    "『雪国。』という本を読んだ。|2020年に買った。|とても良い。",
    "会議は明日です。|3時に来てください。",
    "M. Dupont et Mme Martin sont venus. |Mlle. Claire aussi.",
    "Wir zahlen 5 Euro inkl. MwSt. im Monat. |Danach mehr.",
    "Der Weg ist 5 km. |Danach kommt das Dorf.",
    "She left two days ago. |Then he called.",
    "We bought post and art. |Both are fine.",
    "Dhr. Jansen en mevr. De Vries komen. |Daarna eten we.",
    "Dat is de kans. |Daarna gaan we op. |Einde.",
    "O Sr. Silva e a Exma. Senhora chegaram. |Depois saíram.",
    "Vimos o mar. |Depois fomos ver. |Fim.",
    "Il sig. Rossi e il dott. Bianchi sono qui. |Poi vanno via.",
    "Am 3. Mai kam Dr. Weiß, z. B. mit Prof. Ott. |Danach war Ruhe.",
    "Am Montag, 3. Juni, kommt die Fa. Ott & Co. zu Hrn. Weiß. |Danach ist Ruhe.",
    "Mr. Smith and Mrs. Jones live in the U.S. and work. |They left.",
    "OK. |Dann bis morgen.",
    "Das sind Veränderungen. |1956 ging er fort.",
    "Really? |5 people came. |Wow! |10 more.",
    "Vgl. Abb. 3 und Nr. 5 bzw. Kap. 2. |Ende.",
    "Mach bitte das Fenster zu. |Es zieht. |Wir sind um 8 Uhr da. |Bis dann.",
    "Das kostet ca. 5 Euro, d. h. fast nichts. |Ich nehme es mit.",
    "Was hast du vor? |„Ich gehe heim.“ |Sie nickte.",
    "Der 1. FC Köln gewann am 12. Dezember. |Danach feierten alle.",
    "I saw Mr. and Mrs. Brown at 5 p.m. in St. Louis. |It was fun.",
    "I asked him to come in. |He said no. |Then he left with me. |The end.",
    "See Fig. 3 and Sec. 4, i.e. the results. |They are good.",
    "Je ne sais pas qui c'est. |Va. |Il y en a. |Merci.",
    "Rendez-vous av. de la République, n° 5. |Apportez vos papiers.",
    "Selon l'art. L. 145-9 et l'art. R.123-4, le bail est nul. |Le juge tranche.",
    "Cf. Cass. civ. III, n° 45, et Cass. civ., sez. IV, n. 12. |Le pourvoi est rejeté.",
    "He loves art. |J. Smith came late.",
    "Elle a dit : « Je viens. » |Puis elle est partie.",
    "Non so se c'è. |Ci vediamo tra due ore. |Porta la tua.",
    "L'ing. Verdi e la dott.ssa Neri arrivano alle 9. |Non fare tardi.",
    "Está en la Av. Libertador, núm. 25. |Llámame.",
    "El Dr. García y la Sra. López no están. |Vuelva mañana.",
    "O que é isso para. |Eu não sei. |Ele vem com a gente. |Fica aí.",
    "A Dra. Ana mora na R. das Flores, n.º 10. |Ligue antes.",
    "Ik ga mee. |Hij is er al. |Dat is van u. |Neem de bus.",
    "Het kost bijv. 10 euro p.p. excl. btw. |Dat is veel.",
    "Он родился в 1990 г. в г. Москве. |Потом переехал в Киев.",
    "На ул. Пушкина, д. 5, кв. 7 живёт А. С. Иванов. |Он врач.",
    "Там было много людей и др. животных. |Мы ушли в 5 ч. утра.",
    "Зачем ты это сделал?! |Не знаю...  |Так вышло.",
    "明日は雨です。|でも、行きます！|本当？",
    "『坊っちゃん』を読みました。|面白かったです（笑）。|3回目です。",
    "Sie kommt gleich mit. |Warte auf dich. |Ruf sie an. |Es ist bald.",
    "We met Lt. Col. Jones and Gov. Smith. |They said no. |It was late.",
    "It weighs 5 kg. |We need it for Art. |See p. 5.",
    "Give it to me. |I may. |You can. |Let us in.",
    "Il est parti avec nous. |On va bien. |Tu en as un. |Tant mieux.",
    "Mme. Dubois et Me Leroy, 12 bd. Voltaire, sont là. |Entrez.",
    "Vado con te. |Lui non sta. |Dimmi di no. |È mio.",
    "Vedi pag. 5 e cap. 3, ecc. per i dettagli. |Grazie.",
    "Es para mí. |No sé de qué. |Voy con él. |No bien.",
    "Los EE. UU. y la UE firmaron. |Es un gran paso.",
    "Eu vou com ela. |Ele não nos. |Isso é para. |Não.",
    "Hij wil dat niet. |Kan het mee. |Zij gaat op. |De man lacht.",
    "Mevr. Jansen woont in Den Haag, Lange Voorhout 5. |Zij is arts.",
    "Я пойду с ним. |Она дома. |Это для нас. |Дай мне их.",
    "В 5 ч. 30 мин. утра, т. е. очень рано, он встал. |Было темно.",
    "Акад. Павлов и проф. Петров (см. гл. 3) спорили. |Все молчали.",
    "東京駅に着いた。|電車は8時に出る。|急いで！",
    "「もう遅い」と母が言った。|私は寝た。",
    "Er wohnt in der Hauptstr. 5 in Köln. |Sie auch.",
    "We read Smith et al. Published in 2020.",
]


@pytest.mark.parametrize("marked", ENDS)
def test_words_that_look_like_abbreviations_and_abbreviations(marked: str) -> None:
    pytest.importorskip("sentencex")
    expected = [sentence.strip() for sentence in marked.split("|")]
    assert split_sentences(marked.replace("|", ""), "en", "de", "es", "fr", "ru") == expected


def _ends(text: str, *languages: str) -> list[str]:
    """The text up to each end of a sentence, without spaces."""
    return list(accumulate("".join(sentence.split()) for sentence in split_sentences(text, *languages)))


def test_directions_by_hand_and_surveys() -> None:
    found = Moments.of(np.array([[-3, -3, 0], [-3, -3, 0], [0, 0, 1]])).directions(2)
    assert np.allclose(found, [[0.5**0.5, 0.5**0.5, 0], [0, 0, 1]], atol=1e-6)
    uncentred = Moments.of(np.array([[10, 1], [10, -1]])).directions(1)  # centred, the second axis would be dominant
    assert np.allclose(uncentred, [[1, 0]], atol=1e-6)
    clean = module.remove_directions(np.array([[3, 4, 5]], np.float32), np.array([[0, 1, 0]], np.float32))
    assert (clean.tolist(), clean.dtype) == ([[3, 0, 5]], np.float32)
    vectors = np.random.default_rng(0).normal(size=(2500, 3)).astype(np.float32)
    held_out = np.arange(2500) % 5 == 4
    found = survey(iter(vectors), held_out, 3)
    assert np.array_equal(found.sample, np.concatenate([vectors[~held_out], vectors[held_out]]))
    assert np.array_equal(found.held_out_sample, vectors[held_out])
    assert np.allclose((found.train + found.held_out).directions(1), Moments.of(vectors).directions(1), atol=1e-5)
    count = SAMPLE + 500
    found = survey((np.full(1, number, np.float32) for number in range(count)), np.arange(count) % 5 == 4, 1)
    assert found.train.count + found.held_out.count == count
    assert len(found.sample) == len(np.unique(found.sample)) == SAMPLE


def chosen(shift: float, rows: int = 600, held_out: int = 600) -> tuple[int, tuple[float, ...]]:
    """The rank for two languages that lie `shift` along an axis of their own; only some rows are of the second."""
    random = np.random.default_rng(0)
    meaning = random.normal(size=(800, 8)) * (np.arange(8) > 1)
    axes = np.eye(8)
    first, second = (meaning + random.normal(size=(800, 8)) / 10 + shift * axes[number] for number in (0, 1))
    moments = [Moments.of(first[:600].astype(np.float32)), Moments.of(second[:rows].astype(np.float32))]
    choice = choose_rank(moments, [first[600:].astype(np.float32), second[held_out:].astype(np.float32)])
    return choice.rank, choice.accuracies


def test_the_rule_takes_the_first_rank_that_hides_the_languages() -> None:
    rank, accuracies = chosen(3.0)
    assert (rank, accuracies[0]) == (1, 1)  # each language is one direction away
    assert accuracies[1] < 0.55
    rank, accuracies = chosen(0.0)
    assert (rank, len(accuracies)) == (0, 1)  # nothing shows, so nothing is removed
    assert chosen(0.0, rows=60, held_out=790)[1][0] < 0.7  # the share of the larger language would be 0.95
    one = np.ones((4, 2), np.float32)
    assert choose_rank([Moments.of(one)], [one]).rank == 0
    # Every sentence of a language has its sign in one of its smallest numbers, not in one of the first half.
    vectors = np.random.default_rng(0).normal(size=(400, 6)).astype(np.float32) * 10
    vectors[:, 5] = np.where(np.arange(400) < 200, 1, -1)
    with pytest.raises(ValueError, match=r"after removing 3 directions: .* expected below 55.0 %"):
        choose_rank([Moments.of(vectors[:150]), Moments.of(vectors[200:350])], [vectors[150:200], vectors[350:]])


def dense(count: int = 60, dim: int = 20) -> np.ndarray:
    """Two thirds of the vectors close together, the rest far from everything."""
    vectors = np.random.default_rng(0).normal(size=(count, dim)).astype(np.float32)
    vectors[: 2 * count // 3] = vectors[0] + vectors[: 2 * count // 3] / 100
    return vectors


def test_densities_and_weights_by_hand() -> None:
    center, axes, points = np.zeros(1), np.ones((1, 1)), np.array([[0], [0], [1], [9]])
    density = Density(*(array.astype(np.float32) for array in (center, axes, points)), bandwidth=1.0, scale=0.25)
    queries = np.array([[0], [2], [9], [50]], np.float32)
    assert density.of(queries).tolist() == [0.75, 0.25, 0.25, 0]
    assert density.weights(queries).tolist() == [0.25, 0.5, 0.5, 1]
    vectors = dense(count=1200)  # more than are compared at once
    density = Density.fit(vectors)
    places = (vectors - density.center) @ density.axes.T
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    assert np.allclose(density.of(vectors), (distances <= density.bandwidth).mean(axis=1), atol=2e-3)
    assert density.scale == pytest.approx(density.of(vectors).mean() / 2)
    weights = density.weights(vectors)
    assert weights[:800].mean() < weights[800:].mean() / 1.5
    same = np.tile(np.random.default_rng(0).normal(size=30).astype(np.float32), (40, 1))
    assert np.allclose(Density.fit(same).weights(same), 1 / 3)  # b / (b + 2 b), whatever rounding does
    assert Density.fit(dense(dim=4)).axes.shape == (4, 4)


def brute_bandwidths(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Candidates and their cross-validated log likelihoods, as a textbook computes them."""
    folds = np.arange(len(points)) % 5
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    others = folds[:, None] != folds[None]
    least = np.where(others, distances, np.inf).min(axis=1).max()
    candidates = np.geomspace(least, distances[others].max(), 20)
    rows = [row[kept] for row, kept in zip(distances, others, strict=True)]
    near = [[(row <= h * (1 + 1e-6)).mean() for row in rows] for h in candidates]
    return candidates, np.log(near / candidates[:, None] ** points.shape[1]).sum(axis=1)


@pytest.mark.parametrize("dim", [1, 3])
def test_the_bandwidth_is_the_most_likely_one(dim: int) -> None:
    points = np.random.default_rng(dim).normal(size=(53, dim)).astype(np.float32)
    candidates, likelihoods = brute_bandwidths(points.astype(np.float64))
    found = choose_bandwidth(points)
    place = np.abs(candidates - found).argmin()
    assert found == pytest.approx(candidates[place], rel=1e-6)
    assert likelihoods[place] == pytest.approx(likelihoods.max())


def test_a_document_is_the_weighted_sum_of_debiased_sentences(fitted: DocumentEncoder) -> None:
    document = CORPORA["fr"][3]
    vectors = np.stack([ToyEncoder().vector(sentence) for sentence in document]).astype(np.float64)
    known = fitted.space.languages["fr"]
    assert known.density is not None
    expected = np.zeros(DIM)
    for vector in vectors:
        clean = vector - sum((vector @ axis) * axis for axis in known.directions.astype(np.float64))
        share = known.density.of(vector[None].astype(np.float32))[0]
        expected += known.density.scale / (known.density.scale + share) * clean
    found = fitted.encode([document], "fr", normalize_embeddings=False)[0]
    assert np.allclose(found, expected, atol=1e-5)
    unit = fitted.encode([document], "fr")[0]
    assert np.allclose(unit, expected / np.linalg.norm(expected), atol=1e-5)
    plain = DocumentEncoder(ToyEncoder()).fit(CORPORA, rank=0)
    expected = vectors.sum(axis=0)
    assert np.allclose(plain.encode([document], "fr", normalize_embeddings=False)[0], expected, atol=1e-5)


def test_debiasing_brings_the_languages_together(fitted: DocumentEncoder) -> None:
    choice = fitted.space.choice
    assert choice.rank >= 1 and choice.accuracies[0] > 0.9
    assert choice.accuracies[-1] < 0.55 <= min(choice.accuracies[:-1])
    biased = DocumentEncoder(ToyEncoder(), weighted=True).fit(CORPORA, rank=0)
    truth = {(row, row) for row in range(len(CORPORA["en"]))}

    def found(encoder: DocumentEncoder) -> int:
        left, right = (encoder.encode(CORPORA[code], code) for code in CORPORA)
        return len({(pair.a, pair.b) for pair in align_documents(left, right, margin="absolute")} & truth)

    assert found(fitted) == len(truth) >= found(biased)


def test_one_language_few_documents_and_texts() -> None:
    encoder = DocumentEncoder(ToyEncoder(), weighted=True).fit({"en": CORPORA["en"]})
    assert encoder.space.choice.rank == 0
    assert encoder.encode(CORPORA["en"], "en").shape == (60, DIM)
    assert DocumentEncoder(ToyEncoder(), weighted=True).fit({"en": CORPORA["en"]}, rank=2).space.choice.rank == 2
    small = {code: documents[:2] for code, documents in CORPORA.items()}  # too few for weights
    assert DocumentEncoder(ToyEncoder()).fit(small, rank=1).encode(small["en"], "en").any(axis=1).all()
    pytest.importorskip("sentencex")
    texts = [" ".join(f"{sentence}." for sentence in document) for document in CORPORA["en"]]
    lists = [[f"{sentence}." for sentence in document] for document in CORPORA["en"]]
    encoder = DocumentEncoder(ToyEncoder(), weighted=True).fit({"en": lists})
    assert np.array_equal(encoder.encode(texts, "en"), encoder.encode(lists, "en"))
    assert DocumentEncoder(ToyEncoder(), weighted=True).fit({"en": texts}).fingerprint == encoder.fingerprint


def test_the_same_sentences_give_the_same_space(fitted: DocumentEncoder) -> None:
    padded = {code: [*[["", *document, " "] for document in documents], []] for code, documents in CORPORA.items()}
    encoder = ToyEncoder()
    again = DocumentEncoder(encoder, weighted=True).fit(padded)
    assert again.fingerprint == fitted.fingerprint
    raises(ValueError, "language 'fr': no sentence in 2 documents", again.fit, {"en": CORPORA["en"], "fr": [[], [" "]]})
    assert again.fingerprint == fitted.fingerprint  # a failed fit leaves the older one
    again.encode(CORPORA["en"][:1], "en")
    assert encoder.policies == {"split"} and encoder.ended == 4  # read to its end, where it warns of unknown text
    assert again.fit({"en": CORPORA["en"]}).languages == ("en",)
    assert again.fingerprint != fitted.fingerprint
    vectors = fitted.encode([[], ["", "  "], "", " \n ", CORPORA["en"][0]], "en")
    assert vectors.shape == (5, DIM) and not vectors[:4].any()
    assert np.array_equal(vectors[4], fitted.encode(CORPORA["en"], "en")[0])  # a vector does not depend on the others
    assert fitted.encode([], "en").shape == (0, DIM)


def test_what_cannot_be_fitted_or_encoded(fitted: DocumentEncoder) -> None:
    for documents, arguments, message in [
        ({}, {}, "no language to fit"),
        (CORPORA["en"], {}, "no language to fit"),
        ({"en": []}, {}, "language 'en': no sentence in 0 documents"),
        (CORPORA, {"rank": DIM}, f"rank = {DIM} must be between 0 and {DIM - 1}"),
        ({"en": CORPORA["en"], "fr": CORPORA["fr"][:4]}, {}, "language 'fr': too few .* at least 5, or set the rank"),
        ({"en": CORPORA["en"], "fr": CORPORA["fr"][:2]}, {"rank": 1}, "language 'fr': .* sentences are too few"),
        ({"en": CORPORA["en"][:2]}, {}, "language 'en': .* sentences are too few .* without weights"),
    ]:
        raises(ValueError, message, DocumentEncoder(ToyEncoder(), weighted=True).fit, documents, **arguments)
    known = "language = 'de' was not fitted; fitted languages: 'en', 'fr'"
    raises(ValueError, known, fitted.encode, CORPORA["en"], "de")
    raises(TypeError, "got one str; put it in a list", fitted.encode, "A text.", "en")
    raises(TypeError, r"sentence 1 \(counted from 1\): expected str, got int", fitted.encode, [[1]], "en")
    raises(ValueError, "nothing was fitted", DocumentEncoder(ToyEncoder(), weighted=True).encode, CORPORA["en"], "en")


def test_a_fit_without_weights_is_saved_and_loaded(tmp_path: Path) -> None:
    plain = DocumentEncoder(ToyEncoder()).fit(CORPORA)
    plain.save(tmp_path / "plain")
    raises(FileExistsError, "exists", plain.save, tmp_path / "plain")
    message = r"vectors of toy, this model is other"
    raises(FingerprintError, message, DocumentEncoder.load, tmp_path / "plain", ToyEncoder(fingerprint="other"))
    loaded = DocumentEncoder.load(tmp_path / "plain", ToyEncoder())
    assert (loaded.fingerprint, loaded.languages) == (plain.fingerprint, plain.languages)
    assert loaded.space.choice == plain.space.choice and loaded.space.languages["fr"].density is None
    assert np.array_equal(loaded.encode(CORPORA["fr"], "fr"), plain.encode(CORPORA["fr"], "fr"))


def test_damaged_folders(fitted: DocumentEncoder, tmp_path: Path) -> None:
    fitted.save(tmp_path / "whole")
    whole = {name: (tmp_path / "whole" / name).read_bytes() for name in ("documents.json", "documents.npz")}
    about, arrays = json.loads(whole["documents.json"]), whole["documents.npz"]
    turned = arrays[:-500] + bytes([arrays[-500] ^ 1]) + arrays[-499:]
    for name, content, message in (
        ("documents.json", None, "documents.json: missing"),
        ("documents.json", b"{", "damaged"),
        ("documents.json", json.dumps({**about, "format_version": 9}).encode(), "format version 9"),
        ("documents.json", json.dumps({**about, "languages": {"de": True}}).encode(), "damaged"),
        ("documents.json", json.dumps({**about, "fingerprint": "0"}).encode(), "fingerprint does not match"),
        ("documents.npz", None, "documents.npz: missing"),
        ("documents.npz", arrays[:-100], "damaged"),
        ("documents.npz", turned, "damaged"),
    ):
        file = tmp_path / "whole" / name
        file.unlink() if content is None else file.write_bytes(content)
        raises(DataError, message, DocumentEncoder.load, file.parent, ToyEncoder())
        file.write_bytes(whole[name])
    nan = np.full((1, DIM), np.nan, np.float32)
    known = {code: replace(space, directions=nan) for code, space in fitted.space.languages.items()}
    replace(fitted.space, languages=known).save(tmp_path / "space")  # whoever writes both files
    message = r"damaged .*directions contains something other than finite numbers"
    raises(DataError, message, DocumentEncoder.load, tmp_path / "space", ToyEncoder())
