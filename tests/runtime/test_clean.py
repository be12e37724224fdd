"""Noise that is taken off before a text is encoded."""

import random
from pathlib import Path

import numpy as np
import pytest
from commands import Runner, assert_refused
from noises import KINDS
from texts import MOJIBAKE

from xsent import SearchIndex, SentenceEncoder, UnknownTextWarning, build_index
from xsent.clean import clean_text
from xsent.mojibake import mend

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
        "WiFi-сеть iPhone",
        "2024-05-01 war kalt",
        "10:00:00:123 came first",
        "npm i @babel/core, an a@b.de, 5 @ 3 €",
        "Call @17:30, or meet @5pm: 3 apples @2.50 each",
        "We used n=20",
        *("=A1+B2", "a =85% share"),
        "n=20 patients over p=95 days, T=85, id=ABC and color=FF0000",
        '"Yes" or "no"',
        "Liebe ist schön, sagt er.",
        "Mein Fernseher ist ein LG TV",
        "My wife sends her best regards to you",
        "Beste Qualität, kleiner Preis",
        "Anna, come here.",
        "Lieve vertraging op het spoor, de trein komt.",
        "_draft_.txt and src/_next_/static",
        "Madame Bovary, roman de Flaubert",
        "Which hotel is the Best Western",
        *("Best regards,\nAnn", "Danke!", "Gesendet von meinem iPhone"),  # nothing else is in it
        *("", " ", "12", "...", "<b>", "https://example.org", "😀", "> >"),  # nothing else is in it
    ]:
        assert clean_text(text) == text


def test_odd_marks_do_no_harm() -> None:
    assert clean_text("It rains <!-- <p>soon --> here. <!-- there") == "It rains  here. <!-- there"
    assert clean_text(f"It rains &#{'1' * 9999}; here.") == "It rains \ufffd here."
    assert clean_text(f"It rains &#{'0' * 50}65; here.") == "It rains A here."
    assert clean_text("> " * 9999 + "It rains.") == "It rains."
    for text, clean in [
        ("caf=E9 is", "café is"),
        ("=93Yes=94 he said", '"Yes" he said'),
        ("At=20\nhome", "At \nhome"),
        ("Ja =96 gut", "Ja - gut"),
    ]:
        assert clean_text(text) == clean
    assert clean_text("cafÃ© â€“ Å“uvre \u00c5\u2019") == "café - œuvre Œ"


@pytest.mark.parametrize(
    ("broken", "right"),
    [
        ("SchlÃ¼ssel und Tür", "Schlüssel und Tür"),  # a piece is mended by itself
        ("La rÃ©union Ã  dix heures, giÃ  voilÃ  tout", "La réunion à dix heures, già voilà tout"),
        ("10Â 000 â‚¬, 20Â°C", "10 000 €, 20°C"),
        ("GRÃ–SSE, Ã–l, FRÃœH, Ã© bom", "GRÖSSE, Öl, FRÜH, é bom"),
        ("CafÃƒÂ© am Platz", "Café am Platz"),  # twice
        ("Schl&Atilde;&frac14;ssel", "Schlüssel"),
        ("Don\x92t \x93go\x94", 'Don\'t "go"'),
        ("æ—¥æœ¬ã\x81®çŒ«", "日本の猫"),
        ("Schl√ºssel ‚Äì caf√©", "Schlüssel - café"),
        ("Schl├╝ssel, caf├⌐", "Schlüssel, café"),
        ("Schl├╝ssel, caf├®", "Schlüssel, café"),
        ("SchlГјssel вЂ“ cafГ©, ГЁ", "Schlüssel - café, è"),
        ("Viele GrÃ¼ÃŸe", "Viele Grüße"),  # nothing else is in it
        ("РџРѕРµР·Рґ РѕРїР°Р·РґС‹РІР°РµС‚.", "Поезд опаздывает."),
        ("Ïîåçä îïàçäûâàåò.", "Поезд опаздывает."),
        ("ðÏÅÚÄ ÏÐÁÚÄÙ×ÁÅÔ.", "Поезд опаздывает."),
        ("Die Schlьssel fьr die Tьr", "Die Schlüssel für die Tür"),
        ("‚±‚ñ‚É‚¿‚Í", "こんにちは"),
        ("¤³¤ó¤Ë¤Á¤Ï", "こんにちは"),
        ("縺薙ｓ縺ｫ縺｡縺ｯ", "こんにちは"),
    ],
)
def test_broken_encodings_are_mended(broken: str, right: str) -> None:
    assert clean_text(broken) == right


def test_right_text_is_not_mended() -> None:
    for text in [
        "« L'été\xa0», c'est à\xa0«Paris» — É…",
        "ÂME, SÃO PAULO, AMANHÃ”, IRMÃ… und „Ä“",
        "äöüß ÄÖÜ éèêë àâ ùûüÿ ç",
        "«СССР» и «МиГ»… Её рёбра, Гёте",
        "Estа universidade",  # one letter is Cyrillic
    ]:
        assert mend(text) == text


STAMPS = [
    *("2024-05-01T10:00:00.123456+00:00", "[2024-05-01 10:00:00 +0200]", "[01/May/2024:10:00:00 +0200]"),
    *("May  1 10:00:00 2024", "Wed May  1 10:00:00 CEST 2024", "Mon, 1 May 2024 10:00:00 +0200", "20240501T100000Z"),
    *("[12/05/24, 10:00:15\u202fPM] Anna:", "\u200e[12.05.24, 10:00:15] Anna:", "12.05.24, 10:00 - +49 170 1234567:"),
    *("1.5.2024 10:00 Uhr", "2024-05-01 10:00 - 11:00", "2024年5月1日 10:00", "[00:00.000 --> 00:04.500]"),
    *(
        "2024-05-01 10:00:00,123 UTC INFO",
        "2024-05-01 10:00:00,123 [worker-3] ERROR",
        "2024-05-01 10:00 WARN [a.b.C]",
        "[10:32 AM] Anna:",
        "@anna",
        "@anna @ben:",
        "RT @anna@example.org:",
    ),
]


@pytest.mark.parametrize("stamp", STAMPS)
def test_a_stamp_or_a_handle_goes_as_a_whole(stamp: str) -> None:
    assert clean_text(f"{stamp} {TEXT}") == TEXT


@pytest.mark.parametrize(
    "text",
    [
        "Hello, {} Kind regards, Ann",
        "Dear Mr. Smith,\n{}\nBest regards,\nJohn Smith\nSales Manager\n+1 555 1234",
        "Bonjour à tous, {} Cordialement",
        "Madame, Monsieur, {} Veuillez agréer, Madame, l'expression de mes salutations distinguées.",
        "Sehr geehrter Herr Dr. Müller,\n\n{}\n\nMit freundlichen Grüßen\nAnna",
        "{} Viele Grüße aus Berlin, Anna",
        "{} Mit freundlichen Grüßen Anna Schmidt",
        "Liebe Anna, {} VG",
        "Estimado señor García: {} Un saludo, María",
        "Gentile signora Rossi, {} Distinti saluti",
        "Prezado senhor, {} Atenciosamente, João",
        "Geachte heer De Vries, {} Met vriendelijke groet, Piet",
        "Здравствуйте, Иван! {} С уважением, Анна",
        "田中様\nいつもお世話になっております。{}何卒よろしくお願いいたします。",
        *("{}\nGesendet von meinem iPhone", "{} Sent from my iPhone", "{} Envoyé de mon iPhone", "{}\niPhoneから送信"),
        *(
            "{} Enviado desde mi iPhone",
            "{} Inviato da iPhone",
            "{} Verzonden vanaf mijn iPhone",
            "{} Отправлено с iPhone",
        ),
        *("{} Отправлено с iPhone", "{} Thanks!", "Hey @bob, {}"),
        *("Gentile dottoressa, {}", "Estimada doctora, {}", "Уважаемые жильцы, {}", "Cher docteur, {}"),
        *("Caro professore, {}", "Caros alunos, {}", "Prezado doutor, {}", "Dear Dr Smith, {}", "Dear colleagues, {}"),
        *(
            "Muy señor mío:\n{} Reciba un cordial saludo",
            "Carissimi, {} Un caro saluto",
            "Exmo. Senhor,\n{}\nAtt.,\nAna",
        ),
        *("Доброго дня!\n{} Всего наилучшего", "Chers voisins, {} Amitiés", "Grüezi Frau Ott\n{} Herzlichst, Petra"),
        *("お世話になります。\n{}以上です。", "ご無沙汰しております。\n{}取り急ぎご連絡まで。", "各位\n{}\n以上"),
        *("Hallo allemaal,\n{}\nVeel liefs,\nJoke", "{} Viele Grüße aus dem sonnigen Freiburg, Petra"),
        *("{}\nCon i miei più cordiali saluti\nAnna", "{}\nAtte.\nAna", "{}\nWarmly,\nAnn"),
        *("*{}*", "_{}_ 🎉", "***{}***"),
    ],
)
def test_greetings_and_sign_offs_are_taken_off(text: str) -> None:
    assert clean_text(text.format(TEXT)) == TEXT


def test_what_is_below_a_signature_stays() -> None:
    assert clean_text("Beste Joke, de lift is kapot.") == "de lift is kapot."
    assert clean_text("Er ist am _Freitag_") == "Er ist am Freitag"
    assert clean_text(f"{TEXT}\nCheers,\nBob\nPS: the key is here.") == f"{TEXT}\nPS: the key is here."
    assert clean_text(f"Thanks\n{TEXT}") == TEXT


HYPHENATED = """
    US-amerikanisch | sud-africain | norte-americano | Disse-lhe | fazê-lo | Кто-нибудь | из-за | по-русски | est-ce
    | peut-être | rendez-vous | dit-il | well-known | E-Mail | Nord-Süd | Zuid-Holland | teórico-práctico | Ela
    sentou-se | Ela deu-me | não chama-se | uma casa, trata-se | dar-lhe-ia | dar-lhe-ei | segunda-feira |
    guarda-chuva | bem-vindo | c'est-à-dire | a-t-il | avez-vous | allez-y | celui-ci | là-bas | au-delà |
    grand-mère | vingt-deux | week-end | quelques-uns | demi-heure | state-of-the-art | mother-in-law | self-help |
    e-mail | T-shirt | twenty-one | user-friendly | long-term | up-to-date | Anglo-Saxon | anglo-americano |
    franco-allemand | ex-presidente | ex-wife | vice-presidente | político-económico | deutsch-französisch |
    deutsch-französische | nicht-öffentlich | niet-roker | auto-ongeluk | zee-egel | кое-что | по-моему | во-первых
    | какой-то | как-то | где-нибудь | когда-либо | всё-таки | скажи-ка | чуть-чуть | онлайн-курс | юго-западный |
    премьер-министр | из-под | прямо-таки | puis-je | donne-moi | ce jour-là | après-midi | arc-en-ciel | vis-à-vis
    | qu'est-ce | sous-titres | nord-ouest | open-source | first-class | Jean-Paul | U-Bahn | x-beliebig |
    rez-de-chaussée | main-d'œuvre |
    côte-à-côte | recém-chegado | terça-feira | uma vez, lembrou-se | ele queixava-se | ela perdeu-se | não
    esqueça-se | ele quer vendê-la
"""
# With a hyphen where they are cut.
CUT = """
    termi-nation | Woh-nung | Bal-kon | Hau-se | heu-te | nach Wei-se | vil-la | del-la | quel-lo | fos-se | par-te
    | no-me | pla-ce | Fran-ce | мес-то | э-то | прос-то | ошиб-ка | девоч-ка | тех-ника | по-тому | по-этому |
    по-чему | по-иски | во-енных | мини-стр | ce-lui | ce-ci | voi-là | mer-ci | self-ish | well-ness | all-ow |
    high-est | part-ner | non-na | ex-ample | euro-pa | huis-je | meis-je | franco-fono | psico-lógico | deta-lhe |
    esco-lhe | uma cla-sse | uma ba-se | uma fra-se | não es-se | uma par-te | não qua-se | muito con-forme | não
    dis-se | foi a no-ite | uma sor-te | uma nor-te | não fos-se | ele tives-se | muito ver-de | uma ja-nela | uma
    mu-lher | traba-lho | сло-во | рабо-та | кни-га | руч-ка | vernich-tung | tech-nische | men-schlich | Rus-sisch
    | be-ëindigen | co-operation | micro-scope | cor-related | un-friendly | under-based | sou-ci | alco-ol | val-le
    | bel-le | bou-tique | mai-son | vir-tu | regi-me | com-panion | сегод-ня | по-лучить | из-вестно | ка-кой |
    ника-кой | ще-нок | dan-ke | Spa-ziergang | ver-stehen | contro-llo | speran-za | muitas ve-zes | uma
    profes-sora | ação ime-diata | révé-la | thresh-old | d'a-bord | pré-sent | pró-ximo | ex-press
"""


@pytest.mark.parametrize("words", [pytest.param(HYPHENATED, id="hyphenated"), pytest.param(CUT, id="cut")])
def test_a_hyphen_that_belongs_to_a_word_stays(words: str) -> None:
    wrong = []
    for word in " ".join(words.split()).split(" | "):
        for place, sign in enumerate(word):
            if sign == "-" and clean_text(f"{word[: place + 1]}\n{word[place + 1 :]} x") != (
                f"{word} x" if words is HYPHENATED else f"{word.replace('-', '')} x"
            ):
                wrong.append((word, place))
    assert not wrong


# Lines end where the bars are, with a hyphen.
LINES = [
    "Ela não quis dizer-|lhe a verdade.",
    "Não consegui encontrá-|lo ontem.",
    "As crianças divertem-|se muito na praia.",
    "O gover|no anunciou novas medi|das.",
    "Это был какой-|то странный человек, он жил где-|то рядом.",
    "Всё-|таки он при|шёл, хотя и по|здно.",
    "Говорите, пожа|луйста, по-|немецки.",
    "Во-|вторых, это нево|зможно.",
    "Qu'a-|t-il dit ? Y a-|t-il du pain ?",
    "Viendrez-|vous demain ? Celles-|ci sont belles.",
    "Nous avons pris rendez-|vous pour mercre|di.",
    "Il travaille là-|bas depuis long|temps.",
    "a long-|term plan for twenty-|five people, self-|made and out|side",
    "She's a well-|known au|thor of e-|books.",
    "Die deutsch-|französische Freund|schaft und die CO2-|neutrale Wirt|schaft",
    "Er fährt mit der S-|Bahn nach Baden-|Württemberg und zurück zur Ar|beit.",
    "Il presidente italo-|americano ha parla|to della non|na.",
    "La situación socio|económica y político-|social del pa|ís.",
    "De ex-|premier woont in Noord-|Brabant met zijn ge|zin.",
    "De Oost-|Vlaamse auto|industrie groeit snel|ler.",
]


@pytest.mark.parametrize("marked", LINES)
def test_lines_of_a_text_that_have_both_kinds_of_hyphens(marked: str) -> None:
    cut = marked.replace("-|", "|").replace("|", "-\n")
    assert clean_text(cut) == marked.replace("|", "")


def test_the_text_itself_tells_which_words_have_hyphens() -> None:
    assert clean_text("The co-op and the co-\nop, a coop-\nerative, cooperative.").endswith(
        "the co-op, a cooperative, cooperative."
    )
    assert clean_text("Das Hau-\nse, est-\nce que. Un estce.") == "Das Hause, estce que. Un estce."


def test_words_cut_at_line_ends() -> None:
    assert clean_text("Aus-\ngangstür, Nord-\nSüd-Fenster, 1990-\r\n2000") == "Ausgangstür, Nord-Süd-Fenster, 1990-2000"
    assert clean_text("De in-\nen uitgang van een huis") == "De in-\nen uitgang van een huis"
    assert clean_text("Die Frau-\nen, there-\nof, superi-\nor, pre-\nor post-war") == (
        "Die Frauen, thereof, superior, pre-\nor post-war"
    )
    assert clean_text("Mieter/Vermie-\nter, /etc/my-\nfile, http://a.b/c-\nd") == "Mieter/Vermieter, /etc/my-file,"
    assert clean_text("Ein-\nund Aus\u00ad\ngang, Bal\u2010\nkon") == "Ein-\nund Ausgang, Balkon"


def test_an_index_remembers_that_its_texts_are_clean(run: Runner, tmp_path: Path) -> None:
    text, index = tmp_path / "mails.txt", tmp_path / "mails.index"
    text.write_text(f"> > <p>{TEXT}</p>\nThe cat sleeps.\n")
    for first, second, remedy in (("--clean", "--force", "add --clean"), ("--force", "--clean", "omit --clean")):
        assert run("index", text, index, first)[0] == 0
        assert_refused(run("index", text, index, "--add", *{second} - {"--force"}), remedy)
        assert run("index", text, index, "--add", *{first} - {"--force"})[0] == 0
        out = run("search", index, f"<b>{TEXT}</b>", "--no-words", "-n", 1)[1]
        assert out.startswith("1.0000\t1\t> > <p>") == (first == "--clean")


def test_words_and_vectors_are_those_of_the_mended_text(tmp_path: Path) -> None:
    broken = [text.encode().decode("latin-1") for text in MOJIBAKE]
    encoder = SentenceEncoder(clean=True)
    build_index(tmp_path / "index", broken, encoder)
    with SearchIndex(tmp_path / "index") as index:
        index.verify()
        for text, (hit,) in zip(broken, index.search(encoder, MOJIBAKE, 1), strict=True):
            assert hit.text == text and hit.score > 1.1


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
