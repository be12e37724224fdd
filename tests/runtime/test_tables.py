"""Tables of texts, and their way through the commands."""

import csv
import gzip
import io
import json
import re
import sys
import unicodedata
from collections.abc import Callable
from operator import length_hint
from pathlib import Path

import pytest
from commands import Runner, raises, write_lines

from xsent.errors import DataError
from xsent.files.tables import Text, TextSource, column_names, read_pairs, read_rows


def test_a_file_named_like_standard_input_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-").write_text("another\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\nc\n")))
    source = TextSource("-")
    texts = iter(source)
    assert next(texts) == "a" and length_hint(source, -1) == -1 and list(texts) == ["b", "c"]


def test_half_a_character_is_named_with_its_row(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "a.jsonl", ['{"id": 1, "text": "x\\ud83d"}'])
    for columns in (["text"], ["id", "text"]):
        raises(DataError, r"a\.jsonl:1: 'text' has a lone surrogate", list, read_rows(str(file), columns))


ROWS = [["7", 'She said "no", twice.'], ["8", "Two\nlines; and a tab\t."], ["9", ""], ["10", "Ende, gut"]]


def as_csv(delimiter: str, newline: str = "\n", quoting: int = csv.QUOTE_MINIMAL) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=newline, quoting=quoting)  # type: ignore[arg-type]
    writer.writerows([["id", "text"], *ROWS])
    return text.getvalue().encode()


def as_json(rows: list[list[str]]) -> bytes:
    return "".join(json.dumps({"id": int(id), "text": text or None}) + "\n" for id, text in rows).encode()


TABLES: dict[str, Callable[[], bytes]] = {
    "a.csv": lambda: as_csv(","),
    "bom.csv": lambda: b"\xef\xbb\xbf" + as_csv(","),
    "excel.csv": lambda: b"\xef\xbb\xbf" + as_csv(";", "\r\n"),
    "a.tsv": lambda: as_csv("\t"),
    "all.tsv": lambda: as_csv("\t", quoting=csv.QUOTE_ALL),
    "named_otherwise.txt": lambda: as_csv(","),
    "a.csv.gz": lambda: gzip.compress(as_csv(",")),
    "packed": lambda: gzip.compress(as_csv("\t")),
    "a.jsonl": lambda: as_json(ROWS),
    "objects.json": lambda: as_json(ROWS),
    "separator.csv": lambda: b"sep=;\r\n" + as_csv(";", "\r\n"),
    "marked.csv": lambda: b'\xef\xbb\xbf"SEP=|"\n' + as_csv("|"),
    "unicode.txt": lambda: as_csv("\t", "\r\n").decode().encode("utf-16"),
    "unicode.csv.gz": lambda: gzip.compress(("sep=,\r\n" + as_csv(",", "\r\n").decode()).encode("utf-16")),
    "unmarked.csv": lambda: as_csv(";").decode().encode("utf-16-le"),
    "big-endian.csv": lambda: b"\xfe\xff" + as_csv(";").decode().encode("utf-16-be"),
    "utf-32.csv": lambda: as_csv(",").decode().encode("utf-32"),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_kind_of_table_gives_the_same_rows(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(TABLES[name]())
    assert column_names(file) == ["id", "text"]
    assert list(read_rows(file, ["id", "text"])) == ROWS
    texts = list(TextSource(str(file), "text", "id"))
    assert [(text.id, text) for text in texts if isinstance(text, Text)] == [tuple(row) for row in ROWS]
    assert list(read_pairs(str(file), "text,id", None, "two")) == [[text, id] for id, text in ROWS]


def test_a_table_in_an_old_encoding_is_read_with_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "ansi.csv"
    rows = [[str(number), f"Grüße – {number} €"] for number in range(300)]
    text = "id;text\r\n" + "plain;row\r\n" * 2 + "".join(";".join(row) + "\r\n" for row in rows)
    file.write_bytes(text.encode("cp1252"))
    with pytest.warns(UserWarning, match=r"ansi\.csv: read as cp1252, because it is not UTF-8"):
        assert list(read_rows(file, ["id", "text"]))[2:] == rows
    for encoding, text in (("cp1251", "Кошка спит на диване."), ("cp932", "猫がソファで寝ています。")):
        file.write_bytes(f"id;text\r\n1;{text}\r\n2;plain\r\n".encode(encoding))
        with pytest.warns(UserWarning, match=rf"ansi\.csv: read as {encoding}, because it is not UTF-8"):
            assert list(read_rows(file, ["id", "text"])) == [["1", text], ["2", "plain"]]
    file.write_bytes("id;text\n1;猫が寝ています。\n2;plain\n".encode("iso2022_jp"))
    with pytest.warns(UserWarning, match=r"ansi\.csv: read as ISO-2022-JP"):
        assert list(read_rows(file, ["id", "text"])) == [["1", "猫が寝ています。"], ["2", "plain"]]
    file.write_bytes(b"id;text\n1;\x1b$B-!\x1b(B\n" + "2;größe\n".encode())
    with pytest.warns(UserWarning, match=r"ansi\.csv: read as ISO-2022-JP"):
        assert list(read_rows(file, ["id", "text"])) == [["1", "①"], ["2", "größe"]]
    file.write_bytes("id;text\n1;Zażółć gęślą jaźń\n".encode("cp1250"))  # another old encoding
    raises(DataError, r"ansi\.csv:2: not UTF-8", list, read_rows(file, ["id", "text"]))


def test_tabs_without_quoting_and_other_delimiters(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text('inches\tsays\n5"\t"He" said\n"\t6\n')
    assert list(read_rows(file, ["inches", "says"])) == [['5"', '"He" said'], ['"', "6"]]
    file = tmp_path / "a.csv"
    file.write_text("name;text, long\nA;one, two, three\nB;four, five\n")
    assert list(read_rows(file, ["text, long"])) == [["one, two, three"], ["four, five"]]


def test_a_column_is_found_as_it_looks(tmp_path: Path) -> None:
    composed, decomposed = "Rückmeldung", unicodedata.normalize("NFD", "Rückmeldung")
    for given, asked in ((composed, decomposed), (decomposed, composed)):
        (tmp_path / "a.csv").write_text(f"Nr;{given}\n1;gut\n")
        (tmp_path / "a.jsonl").write_text(f'{{"Nr": 1, "{given}": "gut"}}\n')
        for name in ("a.csv", "a.jsonl"):
            assert list(read_rows(tmp_path / name, [asked])) == [["gut"]]
    (tmp_path / "a.csv").write_text(f"{composed};{decomposed}\n1;gut\n")
    raises(DataError, "a.csv: 2 columns", list, read_rows(tmp_path / "a.csv", [composed]))
    (tmp_path / "a.csv").write_text('Nr,"What did you like?\n(several\u00a0answers) "\n1,all\n')  # as forms write it
    assert list(read_rows(tmp_path / "a.csv", ["What did you like? (several answers)"])) == [["all"]]


def test_lines_may_end_in_carriage_returns_as_excel_writes_for_macintosh(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'id;text\r1;"Hello,\rI am cold."\r2;Bye.\r')
    assert list(read_rows(tmp_path / "a.csv", ["id", "text"])) == [["1", "Hello,\rI am cold."], ["2", "Bye."]]


def test_what_is_no_table_is_named(tmp_path: Path) -> None:
    for name, content, message in [
        ("a.csv", "id,text\n1,a,b\n", r"a\.csv:2: 3 fields, expected 2 as in line 1"),
        ("a.csv", 'id,text\n1,"a\n2,b\n', r"a\.csv:2: not CSV \(unexpected end of data\)"),
        ("a.csv", 'id,text\n1,a\n2,"b"c\n', r"a\.csv:3: not CSV"),
        ("a.csv", "id,text,text\n", r"a\.csv: 2 columns 'text'; its columns: id, text, text"),
        ("a.csv", "id,words\n", r"a\.csv: no column 'text'; its columns: id, words$"),
        ("a.csv", "", r"a\.csv: empty; expected a table"),
        ("a.csv", b"id,text\n1,caf\xc3\xa9\n2,caf\xe9\n", r"a\.csv:3: not UTF-8"),
        ("a.csv", "sep=;\nid;text\n1;a;b\n", r"a\.csv:3: 3 fields, expected 2 as in line 2"),
        ("a.csv", "sep=;\n", r"a\.csv: empty; expected a table"),
        ("a.csv", "id;text\n".encode("utf-16")[:-1], r"a\.csv: damaged UTF-16 or UTF-32"),
        ("a.csv", b"%PDF-1.7\n%\xe2\xe3\n", r"a\.csv: an office file, an archive, a PDF"),
        ("a.csv", b"\xff\xd8\xff\xe0\x00\x10JFIF", r"a\.csv: an office file, an archive, a PDF"),
        ("a.csv", b"PK\x03\x04\x14\x00", r"a\.csv: an office file, an archive, a PDF"),
        ("a.json", '[{"text": "a"}]', r"a\.json: a JSON list, which is not read; turn it into JSON Lines"),
        ("a.csv", '\n[\n  {"text": "a"}\n]', r"a\.csv: a JSON list"),
        ("a.jsonl", '{"text": "a"}\n[]\n', r"a\.jsonl:2: list, expected an object"),
        ("a.jsonl", '{"text": "a"}\n{"text"\n', r"a\.jsonl:2: not JSON Lines"),
        ("a.jsonl", '{"text": ["a"]}\n', r"a\.jsonl:1: 'text' is a list, expected text"),
        ("a.jsonl", '{"text": {"en": "a"}}\n', r"a\.jsonl:1: 'text' is an object, expected text"),
        ("a.parquet", "PAR1", r"a\.parquet: damaged"),
    ]:
        if name.endswith(".parquet"):
            pytest.importorskip("pyarrow")
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        raises(DataError, message, list, TextSource(str(file), "text"))
    (tmp_path / "a.csv").write_text("id,words\n")
    message = "no column 'id,words'; its columns: id, words; only one column is read"
    raises(DataError, message, list, TextSource(str(tmp_path / "a.csv"), "id,words"))


def test_a_table_is_not_read_as_plain_lines(tmp_path: Path) -> None:
    for name, line, message in [
        ("a.csv", "id,text", "this looks like CSV; name the column: --column NAME (columns: id, text)"),
        ("a.csv.gz", "text", "this looks like CSV; name the column: --column NAME (columns: text)"),
        ("a.jsonl", '{"id": 1, "text": "x"}', "this looks like JSON Lines; name the column"),
        ("a.tsv", "id\ttext", "this looks like a table with tabs; name the column"),
        ("a.json", '{"id": 1, "text": "x"}', "this looks like JSON Lines; name the column"),
        ("a.json", '[{"id": 1}]', "a JSON list, which is not read; turn it into JSON Lines"),
        ("a.tsv", "no tab here", None),
        ("a.txt", "id,text", None),
    ]:
        file = tmp_path / name
        content = f"{line}\n".encode()
        file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        if message is None:
            assert list(TextSource(str(file))) == [line]
        else:
            raises(DataError, re.escape(message), list, TextSource(str(file)))


@pytest.fixture
def tickets(tmp_path: Path) -> Path:
    file = tmp_path / "tickets.csv"
    rows = [("T1", "Anna sees Boris."), ("T2", "Clara,\nDavid"), ("T3", ""), ("T4", "Anna sees Boris."), ("T5", "Emma")]
    with file.open("w", encoding="utf-8-sig", newline="") as opened:
        csv.writer(opened).writerows([("id", "text"), *rows])
    return file


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_ids_go_through_every_command(run: Runner, tickets: Path, mini_bundle: Path, suffix: str) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    table, model = ("--column", "text", "--id", "id"), ("--model", mini_bundle)
    vectors = tickets.with_name(f"v{suffix}")
    code, _, err = run("encode", tickets, *table, "-o", vectors, *model)
    warning = "Warning: 1 of 5 rows are empty; their vectors are zero\n"
    assert (code, err) == (0, f"{warning}{vectors}: 5 vectors of 32 numbers\n")
    assert list(read_rows(vectors, ["id", "sentence"])) == list(read_rows(tickets, ["id", "text"]))
    code, out, _ = run("duplicates", tickets, *table, "--vectors", vectors)
    assert (code, out) == (0, "1\tT1\tAnna sees Boris.\n1\tT4\tAnna sees Boris.\n")
    groups = run("duplicates", tickets, *table, "--vectors", vectors, "--json")[1]
    assert [json.loads(row)["id"] for row in groups.splitlines()] == ["T1", "T4"]
    output = tickets.with_name("found.jsonl")
    assert run("duplicates", tickets, *table, "--vectors", vectors, "-o", output)[0] == 0
    assert list(read_rows(output, ["group", "id"])) == [["1", "T1"], ["1", "T4"]]
    index = tickets.with_name("index")
    assert run("index", tickets, index, *table, *model)[0] == 0
    code, out, err = run("search", index, "Clara David", "-n", 1, *model)
    assert (code, out.split("\t")[1:], err) == (0, ["T2", "Clara, David\n"], "")
    hit = json.loads(run("search", index, "Clara David", "-n", 1, "--json", *model)[1])
    assert (hit["id"], hit["line"], hit["text"]) == ("T2", 2, "Clara,\nDavid")
    asked = run("search", index, "--queries", tickets, *table, "-n", 1, "-o", output, "--force", *model)
    assert asked[0] == 0 and ["T5", "T5"] in list(read_rows(output, ["query", "id"]))


def test_pairs_keep_their_ids_and_a_table_may_be_piped(run: Runner, tickets: Path, mini_bundle: Path) -> None:
    model = ("--model", mini_bundle)
    pairs = write_lines(tickets.with_name("pairs.csv"), ["n,en,fr", "1,Anna,Anna", "2,Boris,Clara"])
    options = ("--column", "en,fr", "--id", "n", *model)
    out = run("score", pairs, *options, "--margin", "absolute")[1]
    assert [line.split("\t")[1:] for line in out.splitlines()] == [["Anna", "Anna", "1"], ["Boris", "Clara", "2"]]
    assert "Anna\tAnna\t1\t1\n" in run("mine", pairs, pairs, *options, "-k", 1, "--no-strict")[1]
    code, out, _ = run("encode", "-", "--column", "b", "--model", mini_bundle, stdin='a,b\n1,"Anna\nsees"\n')
    assert code == 0 and json.loads(out)["sentence"] == "Anna\nsees"
    assert sys.getsizeof(Text("x" * 1000)) < 1200
