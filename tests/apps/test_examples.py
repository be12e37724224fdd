"""The scripts under apps/xsent_apps/examples, run as a reader runs them."""

import re
import subprocess
import sys

import pytest


def said(script: str) -> list[str]:
    command = [sys.executable, "-m", f"xsent_apps.examples.{script}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def table_of(script: str) -> dict[str, list[float]]:
    """The numbers of a script's table, by the first cell of their row."""
    cells = [line.split() for line in said(script)]
    heading = next(number for number, row in enumerate(cells) if row[:1] in (["language"], ["languages"]))
    return {row[0]: list(map(float, row[1:])) for row in cells[heading + 1 :]}


@pytest.mark.slow
def test_topics_of_news_are_told_from_english_in_every_language() -> None:
    accuracies = table_of("news_topics")
    assert list(accuracies) == ["en", "fr", "de", "es", "ja"]
    assert min(by_description for by_description, _ in accuracies.values()) > 75  # of eight topics: by chance 12.5
    assert min(by_examples for _, by_examples in accuracies.values()) > 65


def test_translations_are_found_among_other_sentences() -> None:
    rows = table_of("translations")
    assert list(rows) == ["en-de", "en-fr", "de-fr"]
    for hidden, found, precision, recall in rows.values():
        assert (hidden, found <= 30) == (24, True)
        assert precision > 85 and recall > 90


def test_mails_that_say_the_same_are_grouped() -> None:
    groups, found, hidden, wrong = map(int, re.findall(r"\d+", said("duplicates")[-1]))
    assert (groups, hidden) == (10, 34) and found >= 28 and wrong <= 1
