"""What is written and read again is the same: one property for each kind of file."""

import csv
import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from xsent import LinearClassifier, SearchIndex, SentenceEncoder, build_index
from xsent.classification.labels import UNKNOWN
from xsent.cli.rows import row_output
from xsent.files.atomic import read_json, to_json
from xsent.files.tables import read_rows
from xsent.files.vectors import VectorMeta, open_vectors, vector_file
from xsent.precision import Precision, stored_as

Table = list[list[str]]
NewFile = Callable[[str], Path]

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
LINE = TEXT.filter(lambda text: not set(text) & set("\n\r"))
ENDS = re.compile("[\t\v\f\x1c-\x1e\x85\u2028\u2029]")  # of lines or fields, for some program
NUMBER = st.floats(-1, 1, width=32)
FINGERPRINT = "0123456789abcdef"

few = settings(max_examples=30)


@pytest.fixture(scope="module")
def new_file(tmp_path_factory: pytest.TempPathFactory) -> NewFile:
    """Paths in folders of their own: a function that makes one for a name."""
    return lambda name: tmp_path_factory.mktemp("a") / name


def as_csv(delimiter: str) -> Callable[[Path, Table], None]:
    def write(path: Path, rows: Table) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=delimiter).writerows([["id", "text"], *rows])

    return write


def as_json(path: Path, rows: Table) -> None:
    objects = ({"id": id, "text": text} for id, text in rows)
    path.write_bytes("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in objects).encode())


def as_parquet(path: Path, rows: Table) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"id": [id for id, _ in rows], "text": [text for _, text in rows]}), path)


TABLES = {
    "a.csv": as_csv(","),
    "b.csv": as_csv(";"),
    "a.tsv": as_csv("\t"),
    "a.jsonl": as_json,
    "a.parquet": as_parquet,
}


@pytest.mark.parametrize("name", TABLES)
@few
@given(rows=st.lists(st.lists(TEXT, min_size=2, max_size=2), min_size=1, max_size=5))
def test_tables(new_file: NewFile, name: str, rows: Table) -> None:
    path = new_file(name)
    TABLES[name](path, rows)
    assert list(read_rows(path, ["text", "id"])) == [[text, id] for id, text in rows]


@pytest.mark.parametrize("name", ["a.npy", "a.f32", "a.jsonl", "a.parquet"])
@few
@given(data=st.data())
def test_vectors_and_their_texts(new_file: NewFile, name: str, data: st.DataObject) -> None:
    if name == "a.parquet":
        pytest.importorskip("pyarrow")
    forms: list[Precision] = ["float32"] if name == "a.f32" else ["float32", "float16", "int8", "binary"]
    precision, dim = data.draw(st.sampled_from(forms)), 8 * data.draw(st.integers(1, 3))
    dtype, width = stored_as(precision, dim)
    finite = {"allow_nan": False, "allow_infinity": False} if dtype.kind == "f" else {}
    rows = data.draw(arrays(dtype, st.tuples(st.integers(0, 5), st.just(width)), elements=finite))
    texts = data.draw(st.lists(LINE, min_size=len(rows), max_size=len(rows)))
    path, note = new_file(name), VectorMeta(FINGERPRINT, dim, precision, normalized=data.draw(st.booleans()))
    with vector_file(path, note) as output:
        for text, row in zip(texts, rows, strict=True):
            output.write(text, row)
    opened = open_vectors(path)
    assert opened.note == note
    assert opened.rows.dtype == dtype and np.array_equal(opened.rows, rows)
    if name in ("a.jsonl", "a.parquet") and texts:
        assert list(read_rows(path, ["sentence"])) == [[text] for text in texts]


@few
@given(rows=st.lists(st.tuples(LINE, st.integers(), NUMBER), max_size=5))
def test_rows_of_results(new_file: NewFile, rows: list[tuple[str, int, float]]) -> None:
    columns = {"text": str, "line": int, "score": float}
    for name in ("a.jsonl", "a.tsv"):
        path = new_file(name)
        with row_output(path, columns) as write:
            for row in rows:
                write(row)
        lines = path.read_bytes().decode().split("\n")[:-1]
        if name == "a.jsonl":
            assert [tuple(json.loads(line).values()) for line in lines] == rows
        else:
            expected = [[ENDS.sub(" ", text), str(line), f"{score:.4f}"] for text, line, score in rows]
            assert [line.split("\t") for line in lines] == expected
            assert len(path.read_text(encoding="utf-8").splitlines()) == len(rows)


@few
@given(
    labels=st.sets(TEXT.filter(lambda label: label != UNKNOWN), min_size=2, max_size=4),
    dim=st.integers(1, 4),
    pairs=st.booleans(),
    data=st.data(),
)
def test_heads(new_file: NewFile, labels: set[str], dim: int, pairs: bool, data: st.DataObject) -> None:
    def numbers(*shape: int) -> NDArray[np.float32]:
        return data.draw(arrays(np.float32, shape, elements=NUMBER))

    count, features = len(labels), dim * (4 if pairs else 1)
    about: dict[str, Any] = {"fingerprint": FINGERPRINT, "dim": dim, "pairs": pairs, "labels": tuple(sorted(labels))}
    about |= {"unknown": data.draw(st.floats(0, 1)), "examples": 7, "choice": None, "least": data.draw(NUMBER)}
    arrays_of = {"weight": (count, features), "bias": (count,), "centres": (0 if pairs else count, dim)}
    head = LinearClassifier(**about, **{name: numbers(*shape) for name, shape in arrays_of.items()})
    path = new_file("a.npz")
    head.save(path)
    assert described(LinearClassifier.load(path, fingerprint=FINGERPRINT)) == described(head)


def described(head: LinearClassifier) -> dict[str, object]:
    return {name: v.tobytes() if isinstance(v, np.ndarray) else v for name, v in asdict(head).items()}


@pytest.mark.filterwarnings("ignore::xsent.encoder.UnknownTextWarning")
@few
@given(texts=st.lists(LINE, max_size=6).map(lambda texts: [*texts, "Anna"]))
def test_an_index_of_lines(new_file: NewFile, encoder: SentenceEncoder, texts: list[str]) -> None:
    path = new_file("index")
    build_index(path, texts, encoder, source="a.txt")
    index = SearchIndex(path)
    index.verify()
    found = [(passage.source, passage.line, passage.text) for passage, _ in index.passages()]
    said = [(number, text) for number, text in enumerate(texts, 1) if any(map(str.isalnum, text))]
    assert found == [("a.txt", number, text) for number, text in said]
    vectors = [vector for _, vector in index.passages()]
    assert np.array_equal(np.array(vectors).reshape(-1, 32), encoder.encode([text for _, text in said]).astype("f2"))
    index.close()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@few
@given(content=st.dictionaries(TEXT, JSON, max_size=4))
def test_manifests_and_notes(new_file: NewFile, content: dict[str, object]) -> None:
    path = new_file("a.json")
    path.write_bytes(to_json(content))
    assert read_json(path, "") == content
