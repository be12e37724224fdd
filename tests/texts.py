"""Made-up sentences of many scripts, with what goes wrong in tokenizers: case, marks, ligatures, odd spaces, emoji."""

import random
from collections.abc import Iterable
from pathlib import Path

import sentencepiece

SENTENCES = [
    "The cat sleeps on the mat.",
    "Le chat dort près de la fenêtre, n’est-ce pas ?",
    "Größe, Straße und Fußgängerübergang! STRASSE ẞ ß",
    "¿Dónde está la estación? È già l’una: perché no?",
    "Žlutý kůň, zażółć gęślą jaźń, Đorđe i Čaćak",
    "Кошка спит на коврике. Їжак і ґедзь; Ёлка",
    "Η γάτα κοιμάται. ΣΊΣΥΦΟΣ, ς",
    "القطة تنام على السجادة. كَتَبَ الوَلَدُ الدَّرْسَ",
    "می‌خواهم کتاب‌ها را بخوانم",
    "חתול ישן. שָׁלוֹם עֲלֵיכֶם",
    "猫が眠っています。 ﾊﾝｶｸ ｶﾞｷﾞｸﾞ ﾊﾟﾋﾟ か\u3099 は\u309a",
    "我们明天去北京。 我們試試看！",
    "고양이가 잔다 \u1112\u1161\u11ab\u1100\u116e\u11a8",
    "แมวนอนหลับ น้ำ",
    "बिल्ली सो रही है क़ বিড়াল ঘুমাচ্ছে",
    "Con mèo ngủ trên tấm thảm; e\u0302\u0301 o\u031b\u0301",
    "İstanbul’da ılık IŞIK İİ",
    "ქართული ᲥᲐᲠᲗᲣᲚᲘ አማርኛ မြန်မာ ខ្ញុំ",
    "ﬁne ﬂow oﬃce ½ ⅓ ™ ℃ № ①②③ ⅷ Ⓐ ㈱ ㍿",
    "ＦＵＬＬ ｗｉｄｔｈ ～ 〜 ~ €30 $5 ¥9",
    "🙂👍🏽👨‍👩‍👧‍👦🇩🇪 ☃️ 1️⃣",
    "𝐁𝐨𝐥𝐝 𝒾𝓉𝒶𝓁𝒾𝒸 𝔉𝔯𝔞𝔨𝔱𝔲𝔯 𐐀𐐨",
    "a\u0308 o\u0308 A\u030a E\u0301 n\u0303 c\u0327 z\u0336a\u0335",
    "\ufeffBOM zero\u200bwidth\u200djoin\u2060er soft\u00adhyphen",
    "tab\tnew\nline\r\nfeed\x0bv\x0cf nb\u00a0sp \u3000wide\u2003em\u2028ls\x01ctl",
    "<pad> <unk> [MASK] <s> <PAD> <UNK> <0x41> <0X41> ▁ under▁score",
    "https://example.org/a?b=c&d=%20#e user@example.com C++ “quotes” «low» … — ‑",
    "x" * 90,
    "漢字" * 40,
    " leading",
    "trailing ",
    "double  space   three",
    ".",
    "",
    "   ",
    "\t\n",
]

# Texts that have other letters if UTF-8 is decoded as Latin-1.
MOJIBAKE = [
    "Сегодня поезд опаздывает на двадцать минут.",
    "昨日、駅で古い友達に会いました。",
    "Der Schlüssel für die Tür liegt unter der Fußmatte.",
    "La réunion est à dix heures, déjà confirmée.",
    "O avião não chegou à hora, já são três horas.",
    "¿Dónde está el niño? Mañana vendrá.",
    "Perché è già così tardi? La città è lontana.",
    "De coördinator is één week op vakantie in Curaçao.",
    "Naïve façade, jalapeño and crème brûlée.",
    "Œuvre complète : « l’été » à 12 €.",
]

# Three notes and their translations, by language.
NOTES = {
    "en": ["The meeting is on Friday.", "The cat needs food.", "Pay the rent before the first of the month."],
    "fr": [
        "La réunion a lieu vendredi.",
        "Le chat a besoin de nourriture.",
        "Payer le loyer avant le premier du mois.",
    ],
    "de": ["Das Treffen ist am Freitag.", "Die Katze braucht Futter.", "Die Miete vor dem Monatsersten bezahlen."],
    "es": ["La reunión es el viernes.", "El gato necesita comida.", "Pagar el alquiler antes del primero de mes."],
    "it": ["La riunione è venerdì.", "Il gatto ha bisogno di cibo.", "Pagare l'affitto prima del primo del mese."],
    "pt": ["A reunião é na sexta-feira.", "O gato precisa de comida.", "Pagar o aluguel antes do primeiro dia do mês."],
    "nl": ["De vergadering is op vrijdag.", "De kat heeft voer nodig.", "De huur betalen voor de eerste van de maand."],
    "ru": ["Встреча состоится в пятницу.", "Кошке нужен корм.", "Заплатить за квартиру до первого числа месяца."],
    "ja": ["会議は金曜日です。", "猫には餌が必要です。", "月初めまでに家賃を払う。"],
}


def multilingual(count: int) -> list[str]:
    """So many sentences: those above, then their words mixed, in all cases and with all kinds of spaces."""
    chance = random.Random(1)
    words = [word for sentence in SENTENCES if len(sentence) < 80 for word in sentence.split(" ") if word]
    sentences = list(SENTENCES)
    while len(sentences) < count:
        space = chance.choice([" ", " ", "  ", "\u00a0", "\t", "-", ""])
        sentence = space.join(chance.choice(words) for _ in range(chance.randint(1, 9)))
        change = chance.choice([str, str, str, str.upper, str.lower, lambda text: f" {text}\u3000"])
        sentences.append(change(sentence))
    return sentences[:count]


OURS = {"pad_id": 0, "unk_id": 1, "bos_id": 3, "eos_id": 4, "control_symbols": ["[MASK]"]}


def train_tokenizer(folder: Path, sentences: Iterable[str], vocab_size: int, **settings: object) -> Path:
    """A SentencePiece model; with `OURS` its symbols are those of our vocabularies."""
    usual = {"byte_fallback": True, "normalization_rule_name": "nmt_nfkc_cf"}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_prefix=str(folder / "sentencepiece"),
        vocab_size=vocab_size,
        hard_vocab_limit=False,
        minloglevel=2,
        **(usual | settings),
    )
    return folder / "sentencepiece.model"


def pdf(*pages: str) -> bytes:
    """A PDF with a line of text a page."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        page = "/Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >>"
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects.append(f"<< {page} /Contents {5 + 2 * number} 0 R >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    content, table = "%PDF-1.4\n", ""
    for number, body in enumerate(objects, 1):
        table += f"{len(content):010} 00000 n \n"
        content += f"{number} 0 obj\n{body}\nendobj\n"
    size = len(objects) + 1
    content += f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
    return f"{content}startxref\n{content.rindex('xref')}\n%%EOF\n".encode()
