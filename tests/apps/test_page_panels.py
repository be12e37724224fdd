"""What the page's panels do: labels and groups, files that it hands out, texts that it keeps, and who can use it."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import AXE, address, browser, expect, needs_chromium, open_page, quiet_page, violations
from texts import NOTES

from xsent import LinearClassifier
from xsent_apps.web.server import open_site
from xsent_apps.web.site import Site

pytestmark = [pytest.mark.slow, needs_chromium]
__all__ = ["address", "browser"]

HEAD = """async ({ labels, vectors }) => {
    const { answer, headOf } = await import("/head.js");
    const rows = (list) => list.map((row) => Float32Array.from(row));
    const head = headOf(labels.map(([description, examples]) =>
        ({ description: Float32Array.from(description), examples: rows(examples) })));
    return rows(vectors).map((vector) => answer(head, vector));
}"""
# Boxes of text above a field that the ring of its focus touches.
COVERED = """() => [...document.querySelectorAll("input, textarea, select")].flatMap((field) => {
    field.focus();
    if (document.activeElement !== field) return [];
    const style = getComputedStyle(field);
    const reach = parseFloat(style.outlineWidth) + parseFloat(style.outlineOffset);
    const ring = field.getBoundingClientRect();
    return [...document.querySelectorAll("label")].filter((label) => {
        const range = document.createRange();
        range.selectNode([...label.childNodes].find(({ nodeType }) => nodeType === Node.TEXT_NODE));
        return [...range.getClientRects()].some((box) =>
            label.innerText.trim() && box.bottom > ring.top - reach && box.top < ring.bottom + reach
            && box.right > ring.left - reach && box.left < ring.right + reach);
    }).map((label) => label.innerText);
})"""


@pytest.fixture(scope="module")
def page(browser: Any, address: str) -> Iterator[Any]:  # noqa: ANN401
    """The page with its example."""
    with quiet_page(browser, viewport={"width": 1280, "height": 900}) as page:
        open_page(page, address)
        expect(page, "#encoding").to_contain_text("54 passages.")
        yield page


def saved(page: Any, button: str) -> list[dict[str, str]]:  # noqa: ANN401
    """The rows of the CSV that a button hands out."""
    with page.expect_download() as download:
        page.click(button)
    return list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8-sig"))))


def test_a_head_of_descriptions_answers_as_python(page: Any) -> None:  # noqa: ANN401
    draw = np.random.default_rng(0)
    for count in (0, 7):
        rows = draw.normal(size=(3, 1 + count, 16)) + 2 * draw.normal(size=(3, 1, 16))
        rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
        asked = np.concatenate([draw.normal(size=(20, 16)), 8 * rows[:, 0] + draw.normal(size=(3, 16))])
        asked = np.concatenate([asked, -rows.sum(axis=(0, 1))[None]])  # near no label
        asked /= np.linalg.norm(asked, axis=-1, keepdims=True)
        head = LinearClassifier.from_descriptions(
            rows[:, 0],
            ["a", "b", "c"],
            fingerprint="",
            examples=rows[:, 1:].reshape(-1, 16),
            example_labels=[name for name in "abc" for _ in range(count)],
        )
        there = head.answers(asked)
        labels = [(label[0].tolist(), label[1:].tolist()) for label in rows]
        here = page.evaluate(HEAD, {"labels": labels, "vectors": asked.tolist()})
        assert [answer["label"] for answer in here] == ["abc".find(label or "-") for label, _ in there]
        known = [(a["share"], share) for a, (_, share) in zip(here, there, strict=True) if share is not None]
        assert known and len(known) < len(asked)
        assert [a for a, _ in known] == pytest.approx([b for _, b in known], abs=1e-3)


def describe_labels(page: Any) -> None:  # noqa: ANN401
    page.click("#tab-sort")
    for card, text in enumerate(["billing: invoices, refunds, payments, money", "pets: dogs, cats and other animals"]):
        page.fill(f"#labels details >> nth={card} >> input", text)
    expect(page, ".group h3").to_have_text(re.compile(r"billing \d+"))


def test_what_is_near_no_label_is_none_of_these(page: Any) -> None:  # noqa: ANN401
    describe_labels(page)
    assert page.locator(".group h3").all_inner_texts()[2].startswith("None of these")
    rows = saved(page, "#save-labels")
    assert len(rows) == 54 and {row["label"] for row in rows} == {"billing", "pets", "unknown"}
    assert all((row["label"] == "unknown") == (row["probability"] == "") for row in rows)
    assert "Der Hund" not in [row["text"] for row in rows if row["label"] == "billing"]
    # One that is taught does not make all others unknown.
    text = page.inner_text(".group >> nth=2 >> p >> nth=0")
    page.select_option(".group >> nth=2 >> select >> nth=0", "pets")
    expect(page, "#labels details >> nth=1 >> textarea").to_have_value(text)
    expect(page, "#sorted").to_contain_text("3 descriptions and examples")
    labels = {row["text"]: row["label"] for row in saved(page, "#save-labels")}
    assert labels[text] == "pets" and sum(label != "unknown" for label in labels.values()) > 10


def test_tables_are_read_and_written_as_others_read_them(page: Any) -> None:  # noqa: ANN401
    read = "async ([text, name]) => (await import('./table.js')).parseTable(text, name)"
    lines = '{"id": 1}\n\n{"id": 2, "text": "=1+1"}\n'
    assert page.evaluate(read, [lines, "a.jsonl"]) == {"columns": ["id", "text"], "rows": [["1", ""], ["2", "=1+1"]]}
    assert page.evaluate(read, ["{name},text\n1,hello\n", "a.csv"])["columns"] == ["{name}", "text"]
    excel = page.evaluate(read, ["sep=|\r\nid|text, long\r\n1|hello\r\n", "a.csv"])
    assert excel == {"columns": ["id", "text, long"], "rows": [["1", "hello"]]}
    write = "async (rows) => (await import('./table.js')).saveCsv('a.csv', ['text', 'x'], rows)"
    with page.expect_download() as download:
        page.evaluate(write, [["=1+1", -0.5], ["@a", 1], ["-3", 2]])
    # A spreadsheet shows a formula as the text that it is; numbers stay numbers.
    assert download.value.path().read_text(encoding="utf-8-sig").split() == ["text,x", "'=1+1,-0.5", "'@a,1", "-3,2"]


def test_the_map_has_names_and_is_saved(page: Any) -> None:  # noqa: ANN401
    describe_labels(page)
    page.click("#tab-search")
    page.fill("#query", "quand passe le train ?")
    expect(page, "#results li").to_be_visible()
    hits = saved(page, "#save-hits")
    assert len(hits) == 50 and hits[0]["query"] == "quand passe le train ?"
    assert hits[0]["source"] in ("English", "日本語")  # both speak of the next train
    assert hits[0]["text"] == page.inner_text("#results li p >> nth=0")
    page.click("#tab-map")
    expect(page, "#canvas[data-points='54']").to_be_visible()
    assert page.locator("#canvas").bounding_box()["width"] > 900
    assert "5 nearest to “quand passe le train ?”" in page.inner_text("#ringed")
    points = saved(page, "#save-map")
    groups = page.locator("#legend li").all_inner_texts()
    for row in points:
        assert any((row["group"] or "none") in group for group in groups)
    assert len({(row["x"], row["y"]) for row in points}) == 54
    page.select_option("#colouring", "label")
    assert any("pets" in item for item in page.locator("#legend li").all_inner_texts())
    page.select_option("#colouring", "text")
    expect(page, "#legend li").to_have_text("English (6)")
    page.focus("#canvas")
    page.keyboard.press("ArrowRight")
    box = page.locator("#canvas").bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    expect(page, "#pointed").to_contain_text("Point at a passage")
    with page.expect_download() as download:
        page.click("#save-picture")
    assert download.value.path().read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
def test_everyone_can_use_it(width: int, scheme: str, page: Any) -> None:  # noqa: ANN401
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=scheme)
    page.evaluate("for (const one of document.querySelectorAll('#adding, footer details')) one.open = true")
    page.set_input_files("#files", {"name": "empty.txt", "mimeType": "text/plain", "buffer": b" "})
    expect(page, "#notice").to_be_visible()
    page.click("#tab-search")
    page.fill("#query", f"Wann fährt der erste Zug zur Küste, {scheme}?")
    expect(page, "#results mark strong").to_be_visible()
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (int(re.findall(r"\d+", background)[0]) > 127) == (scheme == "light")
    for tab in ("search", "sort", "map"):
        page.click(f"#tab-{tab}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        opened = page.locator("#labels details[open]").count()
        assert tab != "sort" or opened == (0 if width == 360 else 2)
        if tab == "sort":
            page.evaluate("for (const one of document.querySelectorAll('#labels details')) one.open = true")
        assert page.evaluate(COVERED) == []
        if AXE.is_file():
            assert violations(page) == []
    page.emulate_media(color_scheme="light")
    if not AXE.is_file():
        pytest.skip("contrast and names need axe-core: npm install --no-save axe-core")


@pytest.fixture(scope="module")
def small(mini_bundle: Path) -> Iterator[str]:
    """The address of the page with a small model, which is loaded in no time."""
    with open_site(Site.of(mini_bundle)) as address:
        yield address


SAID = """addEventListener("DOMContentLoaded", () => {
    const shown = document.getElementById("loaded-text");
    window.said = [];
    new MutationObserver(() => said.push(shown.textContent)).observe(shown, { childList: true });
})"""  # what is said of the download


def test_texts_are_kept_only_if_the_box_is_ticked(browser: Any, small: str) -> None:  # noqa: ANN401
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script(SAID)
    databases = "indexedDB.databases().then((all) => all.map(({ name }) => name))"

    open_page(page, small)
    assert page.evaluate("said.at(-1)") == "starting…" and "MB" in page.evaluate("said[0]")
    assert page.locator("#documents li").count() == 9  # the example, at the first visit
    page.click("#adding summary")
    page.fill("#paste", "\n".join(NOTES["en"]))
    page.click("#add")
    expect(page, "#encoding").to_contain_text("3 passages.")  # the example has given way
    assert page.locator("#documents li").count() == 1 and page.evaluate(databases) == []
    open_page(page, small)
    assert page.locator("#documents li").count() == 0
    page.check("#keep")
    table = {"name": "mails.csv", "mimeType": "text/csv", "buffer": b"n,text\n1,The lift is stuck again.\n"}
    page.set_input_files("#files", table)
    page.wait_for_function("import('./shelf.js').then(({ kept }) => kept()).then((sources) => sources?.length)")
    open_page(page, small)
    expect(page, "#documents li").to_contain_text("mails.csv")
    page.fill("#query", "L'ascenseur est en panne")
    expect(page, "#results li p").to_have_text("The lift is stuck again.")
    page.click("#adding summary")
    assert page.is_checked("#keep")
    page.uncheck("#keep")
    page.wait_for_function(f"{databases}.then((names) => !names.length)")
    open_page(page, small)
    assert page.locator("#documents li").count() == 0 and not page.is_checked("#keep")
    context.close()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 740)])
def test_many_files_leave_the_search_in_sight(browser: Any, small: str, width: int, height: int) -> None:  # noqa: ANN401
    with quiet_page(browser, viewport={"width": width, "height": height}) as page:
        open_page(page, small)
        names = [f"A note with a longer name, number {number}.txt" for number in range(60)]
        notes = [{"name": name, "mimeType": "text/plain", "buffer": f"Note {name}".encode()} for name in names]
        page.set_input_files("#files", notes)
        expect(page, "#encoding").to_contain_text("60 passages.")
        page.fill("#query", "Note 7")
        expect(page, "#results li").to_be_visible()
        assert page.evaluate("scrollY") == 0
        bottom = page.locator("#results li").first.bounding_box()
        assert bottom["y"] + bottom["height"] < height
