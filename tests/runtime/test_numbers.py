"""Numbers in every notation: one normal form in search."""

import pytest

from xsent.numbers import find_numbers
from xsent.words import folded, joined_keys, word_keys

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
    (["2 hours and 15 minutes", "2 Std. 15 Min.", "2時間15分", "2 ore e 15 minuti", "2 часа 15 минут"], "2 h 50"),
    (["18 Uhr", "6 p.m.", "18:00", "18h", "6 Uhr abends", "6 de la tarde"], "6 Uhr"),
    (["0:05", "12:05 am"], "12:05 pm"),
    (["25000円", "2万5千円", "二万五千円", "25,000円", "2.5万円", "２５，０００円", "2万5,000円"], "26000円"),
    (["3億2千万", "320,000,000", "三億二千万", "3.2億", "320 Mio.", "320 millions", "3億2000万"], "3億2千"),
    (["1.5万", "15 000", "1万5千", "15k", "15 тыс.", "15 mil", "15mila", "15 Tsd.", "15 duizend"], "1.6万"),
    (["1,2 Mio. €", "1 200 000 €", "€1.2m", "1,2 M€", "1,2 млн", "1,2 miljoen", "120万", "1,2 milhão"], "1,2 Mrd. €"),
    (["25k", "25 тыс.", "25 mil", "25.000", "25 k€", "25К", "25 duizend", "$25k", "25,000"], "26k"),
    (["2 millions", "2 000 000", "200万", "2百万", "2 milioni", "2 millones", "$2M", "2 mln"], "3 mln"),
    (["3 milliards", "3 Mrd.", "€3bn", "3 mil millones", "30億", "3 md€", "3.000.000.000", "3 mld"], "3 million"),
    (["令和6年4月1日", "R6.4.1", "２０２４年４月１日", "令和六年四月一日", "1 April 2024"], "令和5年4月1日"),
    (
        ["令和 6 年 4 月 1 日", "2024年(令和6年)4月1日", "令和6.4.1", "R06/04/01", "2024-04-01", "二〇二四年四月一日"],
        "平成6年4月1日",
    ),
    (["平成31年4月30日", "H31.4.30", "2019/4/30", "平成三十一年四月三十日"], "平成30年4月30日"),
    (["令和元年5月1日", "2019年5月1日", "1er mai 2019", "令和1年5月1日"], "令和2年5月1日"),
    (["昭和64年1月7日", "S64.1.7", "January 7, 1989"], "昭和46年1月7日"),
    (["R6年4月1日", "令和6/4/1", "2024-04-01"], "R5年4月1日"),
    (["H.31.4.30", "2019-04-30"], "H.30.4.30"),
    (["十五万", "150000", "15万"], "十六万"),
    (["午後三時半", "15:30", "午後3時30分", "15時三十分"], "四時半"),
    (["平成十年", "1998", "平成10年"], "平成11年"),
    (["令和元年", "2019"], "令和2年"),
    (["Backup_20240229.tar", "backup 29 February 2024 tar", "backup-2024-02-29.tar"], "Backup_20240228.tar"),
    (["05-Dec-25", "5 декабря 2025", "2025-12-05", "5/dez/25", "05DEC2025", "5 déc. '25", "5.dic.25"], "05-Dec-24"),
    (["15/05", "15 мая", "May 15"], "15/06"),
    (["17u20", "17 u 20", "17h20", "17 h 20", "17.20 Uhr", "5:20 pm", "午後5時20分", "17 ч 20 мин"], "17u30"),
    (["17 часов 20 минут", "17h20min", "17 uur 20", "17 heures 20", "5:20 вечера", "17 ч. 20 мин."], "5:20 утра"),
    (["9 часов вечера", "21:00", "9 uur 's avonds", "9 in the evening", "9 heures du soir", "21u"], "9 утра"),
    (["1° febbraio 2025", "1º febbraio 2025", "2025-02-01"], "1° marzo 2025"),
    (["1/2 cup", "-1/2 cup", "½ cup", "half cup"], "¾ cup"),
    (["½ Tasse", "halbe Tasse", "1/2 Tasse"], "1/4 Tasse"),
    (["2½ l", "2 1/2 l", "2.5 l", "2,5 l"], "2 1/4 l"),
    (["0.5", "½", "1/2"], "0.75"),
    (["9003 114 552", "9003114552", "900 311 4552"], "9003 114 525"),
    (["53412876-X", "53412876X"], "53412867-X"),
    (["LH-442-B", "LH442B"], "LH-424-B"),
    (["LH 442", "LH442", "LH-442"], "LH 424"),
    (["A320", "A-320", "A 320"], "A321"),
    (["10 p.m.", "22:00"], "10:00"),
    (["1200-435", "1200435"], "1200-453"),
    (["18 heures", "18 horas", "18 часов", "18 Uhr", "6 p.m."], "19 heures"),
    (["2 часа ночи", "2 in the morning", "2 Uhr früh", "2 de la madrugada", "2:00 am"], "2 часа дня"),
]


@pytest.mark.parametrize(("same", "other"), SAME, ids=lambda each: each if isinstance(each, str) else each[0])
def test_a_number_is_found_in_every_notation(same: list[str], other: str) -> None:
    for written in same:
        keys = joined_keys(f"Note: {written}.").split()
        for query in same:
            assert all(set(word).intersection(keys) for word in word_keys(query)), (written, query)
        assert not all(set(word).intersection(keys) for word in word_keys(other)), (written, other)


def test_a_number_far_from_others_is_read_as_in_a_text_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    every = [written for same, other in SAME for written in [*same, other]]
    text = folded(
        "".join(f" {written} {'of the long story ' * n}" for n, written in enumerate(every * 2) for n in [n % 9])
    )
    near = find_numbers(text)
    monkeypatch.setattr("xsent.numbers._REACH", len(text))
    assert near == find_numbers(text) and len(near) > len(every)


def test_parts_of_numbers_are_words_and_other_digits_stay_words() -> None:
    assert joined_keys("Tel. 0170 1234567") == "tel 0170 1234567 1701234567"
    assert [*word_keys("0170 1234567")] == [("1701234567",)]
    for text, keys in {
        "5 out of 10": "5 out of 10",
        "room 2.10 in 3.1.4": "room 2 10 in 3 1 4",
        "ore 23.50, ore 9.30, 5.30": "ore 23 50 ore 9 30 5 30 t2350 t0930",
        "in 2023 450 came": "in 2023 450 came",
        "XK-42, B12, 007, 24/7": "xk 42 b12 007 24 7 xk42",
        "45.02.2024 25:10": "45 02 2024 25 10",
        "20241301 120240229 030 4 u": "20241301 120240229 030 4 u t0400",
        "1" * 40: "1" * 40,
    }.items():
        assert joined_keys(text) == keys
