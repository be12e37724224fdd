"""Tables for people."""

from xsent.terminal import format_table


def test_columns_line_up() -> None:
    rows = [{"language": "fr", "n": 1000, "p": 95.04}, {"language": "mean", "p": 100.0}]
    assert format_table(rows) == "language      n      p\nfr        1,000   95.0\nmean             100.0"


def test_shares_keep_four_decimals() -> None:
    assert format_table([{"cosine": 0.99871}, {"cosine": 1.0}]) == "cosine\n0.9987\n1.0000"


def test_no_rows() -> None:
    assert format_table([]) == ""
