"""What repeats in many texts is left out of them."""

from xsent import strip_boilerplate

ENGLISH = [
    "Hello, where is my parcel? My customer number is 17. Kind regards, Ann",
    "Hello,\nthe lamp is broken.\nKind regards,\nBob",
    "Hi, I forgot my password. My customer number is 23.",
    "HELLO, I was charged twice... My customer number is 5. Kind regards, Cy",
]
GERMAN = [
    "Guten Tag, wo ist mein Paket?",
    "Guten Tag, die Lampe ist kaputt.",
    "Guten Tag, ich habe mein Passwort nicht.",
]


def test_greetings_and_sign_offs_are_left_out_in_each_language() -> None:
    assert strip_boilerplate(ENGLISH + GERMAN) == [
        "where is my parcel? Ann",
        "the lamp is broken.\nBob",
        "Hi, I forgot my password.",
        "I was charged twice... Cy",
        "wo ist mein Paket?",
        "die Lampe ist kaputt.",
        "ich habe mein Passwort nicht.",
    ]


def test_what_fewer_have_stays() -> None:
    """Two of 31 texts have the greeting; three of 31 have less than a tenth, three of 30 a tenth."""
    others = [f"The {'x' * number} is broken since it was bought." for number in range(1, 29)]
    for greeted, all_others in ((2, others), (3, others)):
        texts = ["Hello there, where is my parcel?"] * greeted + all_others
        assert strip_boilerplate(texts) == texts
    assert strip_boilerplate(["Hello there, where is my parcel?"] * 3 + others[:27])[0] == "where is my parcel?"


def test_something_is_left_of_every_text() -> None:
    """The most frequent goes first, and three words stay; a label before a colon says what the text is about."""
    assert strip_boilerplate(["Where is my parcel? Thanks!"] * 4) == ["Where is my parcel?"] * 4
    assert strip_boilerplate(["My parcel is late."] * 4) == ["My parcel is late."] * 4
    mixed = ["Hello, where is my parcel? Ann."] * 3 + ["Hello, the lamp is broken."]
    assert strip_boilerplate(mixed) == ["where is my parcel?"] * 3 + ["the lamp is broken."]
    assert strip_boilerplate(["お世話になっております。荷物が届きません。"] * 3)[0].endswith("。")
    labelled = ["Refund: where is it?", "Refund: how much is it?", "Refund: when will it come?"]
    assert strip_boilerplate(labelled) == labelled
    assert strip_boilerplate([]) == [] and strip_boilerplate(["", "?", " "] * 3) == ["", "?", " "] * 3
