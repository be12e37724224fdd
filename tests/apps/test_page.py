"""The page in a real browser: what it computes, what it finds, and who can use it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import ASK, address, browser, expect, needs_chromium, open_page, playwright, quiet_page
from texts import NOTES

from xsent import SearchIndex, SentenceEncoder, build_index
from xsent_apps.notes.passages import passages
from xsent_apps.web.site import STATIC

pytestmark = [pytest.mark.slow, needs_chromium]
__all__ = ["address", "browser"]

# A second model beside the page's own, since the page hands out none.
ENCODE = """async (texts) => {
    const { Model } = await import("/model.js");
    const model = new Model();
    const ready = new Promise((done, fail) => {
        model.addEventListener("ready", done);
        model.addEventListener("failed", ({ detail }) => fail(detail.message));
        setTimeout(() => fail("no model for two minutes"), 120_000);
    });
    model.open(await (await fetch("/files.json")).json());
    await ready;
    return (await model.encode(texts)).map(({ vector, windows }) => ({ vector: [...vector], windows }));
}"""

PASSAGES_OF = """async (text) => {
    const { toPassages } = await import("/texts.js");
    return toPassages({ name: "a", text }).passages.map(({ text }) => text);
}"""

ADDING = "document.getElementById('adding').open = true"  # the field for texts is seen

LINES = [
    *(note for notes in NOTES.values() for note in notes),
    *("OK", ".", "x", "- - -", "1", "Sato", "The bus was late."),
    "We visited the cathedral in Köln last summer.",
    "Die Straße ist gesperrt, und die Sau\u00adna ist ge\u200böffnet.",
    "Der Schlüssel für die Tür liegt bei Frau Müller. Sie wohnt im dritten Stock und ist abends zu Hause.",
    "Perché è così caro?",
    "Sato cannot come to the meeting next week, Kobayashi can.",
    "Les œufs, la crème brûlée et le maïs sont sur la liste.",
    "Ёлка стоит у окна. Её привезли вчера.",
    "佐藤さんは来週の会議に来られません。",
    *["The ferry is late."] * 30,
]


@pytest.fixture(scope="module")
def page(browser: Any, address: str) -> Iterator[Any]:  # noqa: ANN401
    """The page with the English notes pasted into it; shared by the tests."""
    with quiet_page(browser) as page:
        open_page(page, address)
        paste(page, "\n".join(NOTES["en"]))
        expect(page, "#encoding").to_contain_text("3 passages.")
        yield page


def paste(page: Any, text: str) -> None:  # noqa: ANN401
    page.evaluate(ADDING)
    page.fill("#paste", text)
    page.click("#add")


def search(page: Any, query: str) -> None:  # noqa: ANN401
    page.click("#tab-search")
    page.fill("#query", query)


def test_vectors_are_those_of_python(page: Any) -> None:  # noqa: ANN401
    encoder = SentenceEncoder(threads=1)
    golden = encoder.bundle.golden
    texts = [*golden.sentences, *(note for notes in NOTES.values() for note in notes), " ".join(NOTES["en"] * 20), ""]
    answers = page.evaluate(ENCODE, texts)
    vectors = np.array([answer["vector"] for answer in answers])
    assert [answer["windows"] for answer in answers[-3:]] == [1, 4, 0]
    expected = encoder.encode(texts, on_long="split")
    assert not vectors[-1].any() and not expected[-1].any()
    # Numbers are rounded to 8 bits on the way: where a last bit decides how, a vector moves, as from CPU to CPU.
    to_golden = np.abs(vectors[: len(golden.sentences)] - golden.vectors).max(axis=1)
    assert (to_golden < 1e-3).sum() >= 4
    assert to_golden.max() <= golden.allowed("other")
    assert np.einsum("nd,nd->n", vectors[:-1], expected[:-1]).min() > 0.99
    assert np.quantile(np.abs(vectors[:-1] - expected[:-1]).max(axis=1), 0.2) < 1e-6  # it is the same computation


def test_the_golden_check_is_shown(page: Any) -> None:  # noqa: ANN401
    expect(page, "#summary").to_contain_text("Japanese")
    page.click("footer summary")
    facts = page.inner_text("#facts")
    assert re.search(r"✓ \d of 7 golden vectors within 0.001", facts)
    for said in ("English", "Japanese", SentenceEncoder().fingerprint, "MB from", "ms per text"):
        assert said in facts


QUERIES = {  # and how what they find begins
    "Köln": "We visited the cathedral",
    "Die Strasse": "Die Straße",
    "Ist die Sauna auf?": "Die Straße",
    "Schluessel fuer die Tuer von Mueller": "Der Schlüssel",
    "Perche e cosi?": "Perché",
    "Was wissen wir eigentlich über Kobayashi?": "Sato cannot",
    "creme brulee et mais": "Les œufs",
    "елка у окна": "Ёлка",
    "佐藤": "佐藤さん",
    "The ferry is late.": "The ferry is late.",
    "quand est la réunion ?": "La réunion",
    "zebra quarks": "",
    "?": "",
    "A text of more than thirty-two words: " + " ".join(LINES[:12]): "",
}


def test_it_finds_what_python_finds(page: Any, tmp_path: Path) -> None:  # noqa: ANN401
    encoder = SentenceEncoder(threads=1)
    build_index(tmp_path / "index", [*NOTES["en"], *LINES], encoder)
    index = SearchIndex(tmp_path / "index")
    paste(page, "\n".join(LINES))
    expect(page, "#encoding").to_contain_text(f"{3 + len(LINES) - 2} passages.")  # two have no letter or digit
    for query, first in QUERIES.items():
        [hits] = index.search(encoder, [query], 50)
        results = page.evaluate(ASK, query)
        assert results[0][0].startswith(first)
        assert [score for _, score in results] == pytest.approx([hit.score for hit in hits], abs=0.02)
        scores = {hit.text: hit.score for hit in hits}
        # Whether the words of the 20th or the 21st are read again may depend on how a vector is rounded.
        assert all(scores.get(text, score) == pytest.approx(score, abs=0.02) for text, score in results[:10])
        clear = hits[0].score - hits[1].score > 0.02  # by more than the rounding of vectors
        assert clear <= (results[0][0] == hits[0].text)
        assert ("No close match" in page.inner_text("#found")) != hits[0].close
    page.click("#documents li >> nth=-1 >> button")


def test_the_nearest_words_are_marked_in_any_language(page: Any) -> None:  # noqa: ANN401
    story = "On the way to the lake we saw a deer between the trees. Then it rained."
    page.evaluate(ADDING)
    page.fill("#paste", story)
    page.keyboard.press("Control+Enter")
    search(page, "Wir haben ein Reh gesehen.")
    expect(page, "#results li mark").to_contain_text("On the way to the lake")
    expect(page, "#results li mark strong").to_contain_text("deer")
    page.click("text=×  >> nth=-1")
    expect(page, "#documents").not_to_contain_text("Text 2")


def test_a_head_learnt_in_english_sorts_other_languages(page: Any) -> None:  # noqa: ANN401
    page.click("#tab-sort")
    for name, examples, card in [
        ("Money", "The bank wants its money.\nI paid the bill.", 0),
        ("Animals", "Dogs like to run.\nThe horse eats hay.", 1),
    ]:
        page.fill(f"#labels details >> nth={card} >> input", name)
        page.fill(f"#labels details >> nth={card} >> textarea", examples)
    paste(page, "\n".join([NOTES["fr"][1], NOTES["ja"][1], NOTES["de"][2], NOTES["ru"][2]]))
    money, animals = page.locator(".group").nth(0), page.locator(".group").nth(1)
    playwright.expect(money).to_contain_text(NOTES["ru"][2])
    assert NOTES["de"][2] in money.inner_text()
    assert NOTES["fr"][1] in animals.inner_text() and NOTES["ja"][1] in animals.inner_text()
    assert re.search(r"\d+ %", animals.inner_text())
    page.click("#documents li >> nth=-1 >> button")


def test_the_map_is_used_by_keyboard_and_leads_back_to_the_search(page: Any) -> None:  # noqa: ANN401
    page.click("#tab-map")
    expect(page, "#canvas[data-points='3']").to_be_visible()
    page.focus("#canvas")
    page.keyboard.press("ArrowRight")
    chosen = page.inner_text("#pointed strong")
    assert chosen in NOTES["en"]
    seen = {chosen}
    for key in ("ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown", "+", "-", "0"):
        page.keyboard.press(key)
        seen.add(page.inner_text("#pointed strong"))
    assert seen >= {chosen} and len(seen) > 1
    last = page.inner_text("#pointed strong")
    page.keyboard.press("Enter")
    expect(page, "#query").to_have_value(last)
    expect(page, "#results li p").to_have_text(last)


def test_everything_is_reached_by_keyboard(page: Any) -> None:  # noqa: ANN401
    page.click("#tab-search")
    page.focus(".skip")
    reached = []
    while len(reached) < 12 and "query" not in reached:
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert reached == ["×", "Add texts", "tab-search", "query"]
    page.focus(".skip")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#search') !== null")
    page.focus("#tab-search")
    page.keyboard.press("ArrowRight")
    expect(page, "#sort").to_be_visible()
    page.keyboard.press("End")
    expect(page, "#map").to_be_visible()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


UNREADABLE = {
    "photo.txt": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "photo.txt is not text in UTF-8. Save it as plain text or CSV"),
    "latin.txt": ("très".encode("latin-1"), "latin.txt is not text"),
    "huge.txt": (b"word " * 1_200_000, "huge.txt has 6.0 MB; the limit is 5 MB"),
    "many.txt": (b"A line.\n" * 20_001, "many.txt has 20,001 passages; the page holds at most 20,000"),
    "empty.txt": (b" \n", "empty.txt contains no words"),
    "paper.PDF": (b"%PDF-1.4", "paper.PDF is a PDF, which this page cannot read; use xsent notes"),
    "open.csv": (b'a,b\n1,"without its end\n2,c\n3\n', "open.csv, row 4: 1 fields, expected 2 as in row 1."),
    "mails.tsv": (b"a\tb\n1\tSome words\n2\n", "mails.tsv, row 3: 1 fields, expected 2 as in row 1."),
}


def test_a_file_that_cannot_be_read_is_said(page: Any) -> None:  # noqa: ANN401
    for name, (content, message) in UNREADABLE.items():
        choose(page, name, content)
        expect(page, "#notice").to_contain_text(message)
        expect(page, "#documents").not_to_contain_text(name)


def choose(page: Any, name: str, text: str | bytes) -> None:  # noqa: ANN401
    content = text.encode() if isinstance(text, str) else text
    page.set_input_files("#files", {"name": name, "mimeType": "text/plain", "buffer": content})


def test_a_long_line_is_read_in_parts_and_dropped_when_removed(page: Any) -> None:  # noqa: ANN401
    choose(page, "long.txt", " ".join(f"word {n}" for n in range(40_000)))  # a minute of work
    expect(page, "#encoding").to_have_text(re.compile(r"^Reading: [\d,]+ of 2\d\d passages$"))
    search(page, "word 7")
    expect(page, "#results").to_contain_text("word 1 word 2")
    expect(page, "#found").to_contain_text(re.compile(r"of the \d+ passages read so far"))
    assert max(map(len, page.locator("#results li p").all_inner_texts())) <= 2000
    page.click("[aria-label='Remove long.txt']")
    choose(page, "short.txt", "Otters sleep on their backs.")
    expect(page, "#documents li >> nth=-1").to_contain_text("1 passage")
    expect(page, "#encoding").to_contain_text("4 passages.")
    search(page, "Wie schlafen Otter?")
    expect(page, "#results li p").to_have_text("Otters sleep on their backs.")
    expect(page, "#found").to_contain_text("Nearest of 4 passages")
    choose(page, "short.txt", "Otters sleep on their backs.")  # a file is held once
    expect(page, "#notice").to_have_text("short.txt is already here.")
    playwright.expect(page.locator("#documents li", has_text="short.txt")).to_have_count(1)
    page.click("[aria-label='Remove short.txt']")
    expect(page, "#encoding").to_contain_text("3 passages.")


def test_parts_of_a_line_hold_all_of_it(page: Any) -> None:  # noqa: ANN401
    texts = ["猫" * 4999, "a" + "🙂b" * 2000, "x" * 1500 + " " + "y" * 1500, "This is a sentence. " * 300]
    for text in [*texts, "one two\n" * 2]:
        found = page.evaluate(PASSAGES_OF, text)
        assert "".join("".join(found).split()) == "".join(text.split())
        assert all(0 < len(passage.encode("utf-16-le")) / 2 <= 2000 for passage in found)
        assert found[0].endswith(("猫", "b", "🙂", "x", ".", "two"))
    # A list of long lines is no wrapped text.
    lines = [f"An item of the list, with {'more and ' * n}more words than a line of a letter has" for n in range(5)]
    assert page.evaluate(PASSAGES_OF, "\n".join(lines)) == lines


def test_files_of_several_kinds_are_read(page: Any) -> None:  # noqa: ANN401
    html = """<title>No</title><script>no()</script><h1>Opening   hours</h1><p>From <b>nine</b> to
five.</p>
        <table><tr><th>Day<th>Course<tr><td>Monday<td><p>Yoga</p><p>and tea</p></table>
        <dl><dt>Fee<dd>Nine euros<dt>Dogs?<dd>Yes.</dl><ul><li>One item<li>Another item</ul>"""
    wrapped = "This line was wrapped at a margin of some sixty characters and\ngoes on here.\n\nAnother passage."
    sixteen = "Größe zählt.".encode("utf-16")
    contents = {"page.html": html.encode(), "wrapped.txt": wrapped.encode(), "sixteen.txt": sixteen}
    page.set_input_files(
        "#files", [{"name": name, "mimeType": "text/plain", "buffer": content} for name, content in contents.items()]
    )
    for passage, above in (
        ("From nine to five.", "Opening hours"),
        ("Day: Monday · Course: Yoga and tea", "Opening hours"),
        ("- Fee: Nine euros - Dogs? Yes. - One item - Another item", "Opening hours"),
        ("This line was wrapped at a margin of some sixty characters and goes on here.", ""),
        ("Größe zählt.", ""),
    ):
        search(page, passage)
        expect(page, "#results li p").to_have_text(passage)
        expect(page, "#results li div").to_have_text(above)
        expect(page, "#results .number").to_have_text(re.compile(r"(0\.9|1\.\d)\d"))
    for _ in contents:
        page.click("#documents li >> nth=-1 >> button")


def test_a_heading_and_the_name_of_a_file_count(page: Any) -> None:  # noqa: ANN401
    choose(page, "kitchen drawer.md", "# Home\n\n## Wi-Fi password\n\nblue-otter-4711\n\n## Bins\n\nOn Monday.\n")
    expect(page, "#encoding").to_contain_text("5 passages.")
    search(page, "wifi password")
    expect(page, "#results li p").to_have_text("blue-otter-4711")
    expect(page, "#results li div").to_have_text("Home › Wi-Fi password")
    search(page, "Was liegt in der Küchenschublade?")
    expect(page, "#results .name").to_have_text("kitchen drawer.md")
    page.click("[aria-label='Remove kitchen drawer.md']")


def test_passages_of_markdown_are_those_of_notes(page: Any) -> None:  # noqa: ANN401
    texts = [file.read_text(encoding="utf-8") for file in sorted((STATIC.parents[3] / "docs").rglob("*.md"))]
    texts.append("# One\n\n- a [link](http://x.example)\n\n|Room|Key|\n|---|:--|\n| Attic | 14 \\| 15 |\n| Cellar | |")
    found = page.evaluate(
        """async (texts) => { const { fromMarkdown } = await import("/passages.js");
        return texts.map((text) => fromMarkdown(text, ["a", "b"]).map(({ text, context }) => [text, context])); }""",
        texts,
    )
    assert len(found) > 10
    for text, here in zip(texts, found, strict=True):
        there = passages(enumerate(text.split("\n"), 1), ["a", "b"])
        # The page has no rules of languages: it may cut a long paragraph elsewhere.
        assert by_context(here) == by_context((passage.text, passage.context) for passage in there)


def by_context(passages: Iterable[Sequence[str]]) -> list[tuple[str, str]]:
    """The contexts in their order, each with the text of its passages, without spaces."""
    groups = groupby(passages, key=itemgetter(1))
    return [(context, "".join("".join(text.split()) for text, _ in group)) for context, group in groups]


def test_the_texts_of_a_table_are_one_of_its_columns(page: Any) -> None:  # noqa: ANN401
    rows = [
        "\ufeffid;date;text;note",
        'm-1;12 May 2026;"The lift, or so it seems, is ""stuck"";\nagain since Monday.";Marmots whistle loudly uphill',
        "m-2;13 May 2026;Please send me a new invoice for April.;",
    ]
    choose(page, "mails.csv", "\r\n".join([*rows, ""]))
    expect(page, "#encoding").to_contain_text("5 passages.")
    search(page, "L'ascenseur est en panne")
    expect(page, "#results li p").to_have_text('The lift, or so it seems, is "stuck"; again since Monday.')
    expect(page, "#results li div").to_have_text("m-1")
    page.select_option("[aria-label='Column with the texts of mails.csv']", "note")
    expect(page, "#encoding").to_contain_text("4 passages.")
    search(page, "Murmeltiere pfeifen")
    expect(page, "#results li p").to_have_text("Marmots whistle loudly uphill")
    page.select_option("[aria-label='Column with the ids of mails.csv']", "no ids")
    expect(page, "#results li div").to_have_text("")
    page.click("[aria-label='Remove mails.csv']")
    choose(page, "mails.jsonl", '{"n": 1, "text": "The lift is stuck again."}\n{"n": 2, "text": null}\n')
    expect(page, "#encoding").to_contain_text("4 passages.")
    page.click("[aria-label='Remove mails.jsonl']")


def test_queries_are_suggested_for_the_example_only(browser: Any, address: str) -> None:  # noqa: ANN401
    with quiet_page(browser) as page:
        open_page(page, address)
        expect(page, "#suggestions").to_be_visible()
        paste(page, NOTES["en"][0])
        expect(page, "#encoding").to_contain_text("1 passage.")
        expect(page, "#suggestions").to_be_hidden()


def test_an_old_browser_is_told_what_it_lacks(browser: Any, address: str) -> None:  # noqa: ANN401
    for change, lacks in {
        "WebAssembly.validate = () => false": "WebAssembly with SIMD",
        "delete globalThis.WebAssembly": "WebAssembly with SIMD",
        "delete Intl.Segmenter": "Intl.Segmenter",
        "delete globalThis.DecompressionStream": "DecompressionStream",
        "delete Array.prototype.at": "Array.at",
    }.items():
        with quiet_page(browser) as old:
            old.add_init_script(change)
            old.goto(address)
            expect(old, "#notice").to_contain_text(f"lacks {lacks}")
