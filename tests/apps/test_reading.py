"""Files as passages."""

from pathlib import Path

import pytest
from texts import pdf

from xsent import DataError
from xsent_apps.notes.read import read_passages, split_sentences


def written(folder: Path, name: str, content: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def test_paragraphs_items_and_headings_are_passages(tmp_path: Path) -> None:
    note = (
        "\ufeff# Trip\r\nWe leave on\r\nFriday. The train is at nine.\r\n\r\n\r\n- milk\n  and bread\n* eggs\n12) tea\n"
    )
    assert read_passages(written(tmp_path, "a.md", note)) == [
        (1, "# Trip"),
        (2, "We leave on Friday. The train is at nine."),
        (6, "- milk and bread"),
        (8, "* eggs"),
        (9, "12) tea"),
    ]
    assert read_passages(written(tmp_path, "mac.txt", "a\x1b[1m\r\rb\r")) == [(1, "a [1m"), (3, "b")]
    assert read_passages(written(tmp_path, "empty.txt", " \n\n")) == []


def test_long_paragraphs_are_cut_between_sentences_and_nothing_is_lost(tmp_path: Path) -> None:
    sentences = [f"This is sentence number {number}, and it is not long." for number in range(50)]
    lines = [" ".join(sentences[first : first + 5]) for first in range(0, 50, 5)]
    passages = read_passages(written(tmp_path, "a.txt", "\n".join(lines)))
    assert all(len(text) <= 500 for _, text in passages) and len(passages) == 5
    assert " ".join(text for _, text in passages) == " ".join(sentences)
    for line, text in passages:
        assert text.split(". ")[0] in lines[line - 1]
    assert read_passages(written(tmp_path, "b.txt", "x" * 3000)) == [(1, "x" * 3000)]
    assert [len(text) for _, text in read_passages(written(tmp_path, "c.txt", "x" * 12_000))] == [5000, 5000, 2000]
    assert read_passages(written(tmp_path, "d.txt", "été".encode("utf-16"))) == [(1, "été")]
    assert split_sentences("Ja! Nein? 元気です。はい。") == ["Ja!", "Nein?", "元気です。", "はい。"]


def test_what_a_page_shows_is_read(tmp_path: Path) -> None:
    page = """<!doctype html><html><head><title>My page</title>
<style>p { color: red }</style><script>var hidden = "<p>no</p>";</script></head>
<body><h1>Cats &amp; dogs</h1>
<p>They <b>sleep</b>
all day.</p>

<ul><li>first<li>second</ul>the end"""
    assert read_passages(written(tmp_path, "a.html", page)) == [
        (1, "My page"),
        (3, "Cats & dogs"),
        (4, "They sleep all day."),
        (7, "first"),
        (7, "second"),
        (7, "the end"),
    ]
    unclosed = "<p>one</p>two" + "<a b" * 100_000  # in time that does not grow with the square
    assert read_passages(written(tmp_path, "c.html", unclosed)) == [(1, "one"), (1, "two")]
    assert read_passages(written(tmp_path, "b.HTM", "<p>broken <b <p> &#xZZ; </</p>"))


def test_a_pdf_has_pages(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    file = written(tmp_path, "a.pdf", pdf("The cat sleeps.", "", "The dog barks."))
    assert read_passages(file) == [(1, "The cat sleeps."), (3, "The dog barks.")]


BAD = {
    "binary.txt": (b"MZ\0\x01", "holds binary data, not text"),
    "latin.md": (b"caf\xe9", r"not UTF-8 \(byte 0xe9 at 4\)"),
    "image.html": (b"\x89PNG\r\n", r"not UTF-8 \(byte 0x89 at 1\)"),
    "odd.html": (b"<p>a</p><![foo[ bar", r"not HTML that can be read \(.+\)"),
    "empty.pdf": (b"", r"not a PDF that can be read \(.+\)"),
    "broken.pdf": (pdf("x")[:200], r"not a PDF that can be read \(.+\)"),
    "text.pdf": (b"I am no PDF\n" * 9, r"not a PDF that can be read \(.+\)"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_one_line_with_its_name(tmp_path: Path, name: str) -> None:
    content, message = BAD[name]
    if name.endswith("pdf"):
        pytest.importorskip("pypdf")
    with pytest.raises(DataError, match=f"{name}: {message}") as caught:
        read_passages(written(tmp_path, name, content))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone.txt: cannot be read \(No such file or directory\)"):
        read_passages(tmp_path / "gone.txt")
