"""Numbers in every notation: one normal form in search."""

import pytest

from xsent.words import joined_keys, word_keys

SAME = [  # each in several notations, and one that is another
    (["0170 1234567", "01701234567", "0170/123 45 67", "+49 170 1234567", "0049 (0)170 1234567"], "0170 1234576"),
    (["06 12 34 56 78", "+33 6 12 34 56 78", "06.12.34.56.78", "0612345678"], "06 12 34 56 87"),
    (["(555) 123-4567", "555.123.4567", "+1 555 123 4567", "1-555-123-4567"], "555-123-4576"),
    (["8 (495) 123-45-67", "+7 495 123-45-67", "84951234567"], "8 (495) 123-54-67"),
    (["DE89 3704 0044 0532 0130 00", "de89370400440532013000"], "DE89 3704 0044 0532 0131 00"),
    (["GB29 NWBK 6016 1331 9268 19", "GB29NWBK60161331926819"], "GB29 NWBK 6016 1331 9268 91"),
    (["978-3-16-148410-0", "9783161484100"], "978-3-16-148410-1"),
    (["48,210", "48.210", "48 210", "48\u202f210", "48'210", "48210", "48,210.00"], "48,120"),
    (["1.234,56", "1,234.56", "1 234,56", "1’234.56", "1234.56", "1234,560"], "1.234,65"),
    (["12,34,567", "1,234,567", "1.234.567"], "12,34,576"),
    (["2024-03-12", "12.3.2024", "12. 03. 2024", "12/03/24", "3/12/2024", "12 March 2024"], "2024-03-21"),
    (["12 March 2024", "March 12th, 2024", "12 mars 2024", "12. März 2024", "12 de março de 2024"], "12 May 2024"),
    (["2024年3月12日", "12 марта 2024", "12 mrt. 2024", "12-Mar-2024"], "12 марта 2023"),
    (["2 maggio", "May 2nd", "5月2日"], "5 maggio"),
    (["14:30", "2:30 pm", "2.30 p.m.", "14h30", "14.30 Uhr", "14 Uhr 30", "午後2時30分", "14:30:00"], "2:30 am"),
    (["18 Uhr", "6 p.m.", "18:00", "18h", "6 Uhr abends", "6 de la tarde"], "6 Uhr"),
    (["0:05", "12:05 am"], "12:05 pm"),
]


@pytest.mark.parametrize(("same", "other"), SAME, ids=lambda each: each if isinstance(each, str) else each[0])
def test_a_number_is_found_in_every_notation(same: list[str], other: str) -> None:
    for written in same:
        keys = joined_keys(f"Note: {written}.").split()
        for query in same:
            assert all(set(word).intersection(keys) for word in word_keys(query)), (written, query)
        assert not all(set(word).intersection(keys) for word in word_keys(other)), (written, other)


def test_parts_of_numbers_are_words_and_other_digits_stay_words() -> None:
    assert joined_keys("Tel. 0170 1234567") == "tel 0170 1234567 1701234567"
    assert [*word_keys("0170 1234567")] == [("1701234567",)]
    for text, keys in {
        "5 out of 10": "5 out of 10",
        "room 2.10 in 3.1.4": "room 2 10 in 3 1 4",
        "in 2023 450 came": "in 2023 450 came",
        "XK-42, B12, 007, 24/7": "xk 42 b12 007 24 7",
        "45.02.2024 25:10": "45 02 2024 25 10",
        "1" * 40: "1" * 40,
    }.items():
        assert joined_keys(text) == keys
