"""Maps of texts: as a page in a browser, as a picture, and in a notebook."""

import json
import re
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from browsing import browser, needs_chromium, quiet_page
from commands import raises

from xsent import DataError, SentenceEncoder
from xsent_apps.commands import map_app
from xsent_apps.map import TextMap, map_texts

__all__ = ["browser"]

TEXTS = [f"Text {number} </script> \u2028" for number in range(12)] + [" "]
LANGUAGES = ["en"] * 7 + ["fr"] * 5 + [""]


@pytest.fixture(autouse=True)
def without_open_tsne(monkeypatch: pytest.MonkeyPatch) -> None:
    """Principal components: the layout of openTSNE takes seconds."""
    monkeypatch.setitem(sys.modules, "openTSNE", None)


def made() -> TextMap:
    vectors = np.repeat(np.eye(2, 8), [7, 6], axis=0) + 0.1 * np.random.default_rng(0).normal(size=(13, 8))
    vectors[12] = 0
    with pytest.warns(UserWarning, match=r"principal components.*pip install .xsent\[map\]."):
        return map_texts(TEXTS, vectors, by={"language": LANGUAGES}, title="My <texts>")


def test_near_texts_are_near_and_empty_ones_have_no_point() -> None:
    drawn = made()
    assert drawn.count == "12 of 13 texts"
    sides = np.sign(drawn.places[:, 0])
    assert (sides[:7] == sides[0]).all() and (sides[7:] == -sides[0]).all()
    assert all(len(near) == 4 and row not in near for row, near in enumerate(drawn.neighbours))
    assert {near < 7 for near in drawn.neighbours[0]} == {True}


@pytest.mark.slow
def test_a_map_follows_the_subject_not_the_language() -> None:
    """Points of one subject are near, in whatever language; clusters have names, and no two the same."""
    pytest.importorskip("sklearn", reason="needs scikit-learn")
    random = np.random.default_rng(0)
    of = [(subject, language) for subject in range(2) for language in range(2) for _ in range(20)]
    subjects, languages = np.eye(4, 32)[:2], 2 * np.eye(4, 32)[2:]
    vectors = [subjects[one] + languages[other] + 0.05 * random.normal(size=32) for one, other in of]
    texts = [("The lamp is on.", "Die Lampe ist an und nicht aus.")[language] for _, language in of]
    with pytest.warns(UserWarning, match="principal components"):
        drawn = map_texts(texts, vectors)
    sides = np.sign(drawn.places[:, 0])
    assert (sides[:40] == sides[0]).all() and (sides[40:] == -sides[0]).all()
    assert drawn.colours["cluster"] == ["lamp 1"] * 40 + ["lamp 2"] * 40


def test_greetings_have_no_place_on_a_map(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()

    class Reader:
        def encode(self, texts: list[str], **_: object) -> np.ndarray:
            read.extend(texts)
            return np.eye(len(texts))

    monkeypatch.setattr("xsent_apps.map.SentenceEncoder", Reader)
    texts = ["Hello, where is my parcel?", "Hello, the lamp is broken.", "Hello, I forgot my password."]
    assert map_texts(texts, by={"language": ["en"] * 3}).texts == texts
    assert read == ["where is my parcel?", "the lamp is broken.", "I forgot my password."]


def test_wrong_counts() -> None:
    raises(DataError, "language: 1 for 2 texts", map_texts, ["a", "b"], np.eye(2), by={"language": ["en"]})
    raises(DataError, "all texts are empty", map_texts, [""], np.zeros((1, 2)), by={"language": ["en"]})


def test_a_notebook() -> None:
    drawn = made()
    assert "&lt;/h1&gt;" in drawn._repr_html_()
    assert len(repr(drawn)) < 100  # a notebook keeps it beside the page


def test_the_command_colours_by_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, out = tmp_path / "texts.csv", tmp_path / "texts.html"
    table.write_text("language,text\nen,A cat sleeps.\nfr,Un chat dort.\nen,It rains.\n", encoding="utf-8")
    map_app([str(table), str(out), "--column", "text", "--by", "language"], standalone_mode=False)
    missing = [str(table), str(tmp_path / "none" / "x.html"), "--column", "text", "--by", "language"]
    with mock.patch.object(SentenceEncoder, "encode", None):  # said before the texts are encoded
        raises(FileNotFoundError, "no such folder; create it first", map_app, missing, standalone_mode=False)
    assert "3 texts, coloured by language" in capsys.readouterr().err
    found = re.search(r'type="application/json">(.*?)</script>', out.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert data["texts"][1] == "Un chat dort." and data["colourings"]["language"] == [["en", "fr"], [0, 1, 0]]


@pytest.mark.slow
@needs_chromium
def test_the_page_in_a_browser_without_a_network(browser: Any, tmp_path: Path) -> None:  # noqa: ANN401
    made().save(tmp_path / "map.html")
    for width, scheme in ((390, "light"), (1280, "dark")):
        size = {"width": width, "height": 800}
        with quiet_page(browser, viewport=size, color_scheme=scheme, offline=True) as page:
            page.goto((tmp_path / "map.html").as_uri())
            assert page.title() == "My <texts>"
            assert page.locator("#legend").inner_text().split("\n") == ["en (7)", "fr (5)"]
            page.focus("#canvas")
            page.keyboard.press("ArrowRight")
            assert page.locator("#pointed strong").inner_text().startswith("Text ")
            assert page.locator("#pointed li").count() == 4
            assert page.evaluate("document.documentElement.scrollWidth") <= width
