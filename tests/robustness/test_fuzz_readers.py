"""What damaged models, heads, vectors and indexes do to whoever reads them.

With `--hypothesis-profile=long` a thousand files a reader instead of a hundred, and none may take 20 seconds.
"""

import json
import shutil
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutation import survive
from toy_documents import ToyEncoder, toy_documents

from xsent.bundle import compute_fingerprint
from xsent.classification.classifier import LinearClassifier
from xsent.documents.encoder import DocumentEncoder
from xsent.encoder import SentenceEncoder
from xsent.files.vectors import VectorMeta, open_vectors, vector_file
from xsent.search.index import SearchIndex
from xsent.search.write import Document, update_index
from xsent.verification import verify

pytestmark = pytest.mark.filterwarnings("ignore")  # of numbers that damage has made

NOTE = VectorMeta("abc", 8, "float32", normalized=True)
ROWS = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For each test in turn."""
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def bundle(mini_bundle: Path, folder: Path) -> Path:
    return Path(shutil.copytree(mini_bundle, folder / "bundle"))


def read_bundle(folder: Path) -> None:
    """With the fingerprint of whatever the manifest says, as whoever damages on purpose writes it."""
    with suppress(Exception):
        manifest = json.loads((folder / "xsent.json").read_bytes())
        manifest["fingerprint"] = compute_fingerprint(manifest)
        (folder / "xsent.json").write_text(json.dumps(manifest))
    verify(folder, "numpy")


@given(data=st.data())
def test_bundles(data: st.DataObject, bundle: Path) -> None:
    survive(data, bundle, read_bundle)


@pytest.fixture(scope="module")
def head(folder: Path) -> Path:
    (folder / "head").mkdir()
    LinearClassifier.fit(ROWS, ["a", "b"] * 10, fingerprint="abc").save(folder / "head/a.npz")
    return folder / "head"


def read_head(folder: Path) -> None:
    """With the checksum of whatever numbers there are."""
    with suppress(Exception):
        note = json.loads((folder / "a.json").read_bytes())
        note["sha256"] = sha256((folder / "a.npz").read_bytes()).hexdigest()
        (folder / "a.json").write_text(json.dumps(note))
    LinearClassifier.load(folder / "a.npz", fingerprint="abc").predict(ROWS)


@given(data=st.data())
def test_heads(data: st.DataObject, head: Path) -> None:
    survive(data, head, read_head)


@pytest.fixture(scope="module")
def space(folder: Path) -> Path:
    encoder = DocumentEncoder(ToyEncoder()).fit({code: toy_documents(code, 30) for code in ("en", "fr")})
    encoder.save(folder / "space")
    return folder / "space"


@given(data=st.data())
def test_document_spaces(data: st.DataObject, space: Path) -> None:
    survive(data, space, lambda folder: DocumentEncoder.load(folder, ToyEncoder()).encode([["en1"]], "en"))


@pytest.fixture(scope="module", params=["a.npy", "a.f32"])
def vectors(folder: Path, request: pytest.FixtureRequest) -> Path:
    place = folder / request.param.replace(".", "")
    place.mkdir()
    with vector_file(place / request.param, NOTE) as out:
        for row in ROWS:
            out.write("x", row)
    return place / request.param


@given(data=st.data())
def test_vectors(data: st.DataObject, vectors: Path) -> None:
    survive(data, vectors.parent, lambda _: open_vectors(vectors).rows.sum())


@pytest.fixture(scope="module")
def unfinished(folder: Path) -> Path:
    (folder / "unfinished").mkdir()
    with pytest.MonkeyPatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr("xsent.files.vectors.STEP", 8)  # one line of JSON
        with vector_file(folder / "unfinished/a.npy", NOTE, job={"on_long": "warn"}) as out:
            for number, row in enumerate(ROWS[:11]):
                out.write(str(number), row)
            raise KeyboardInterrupt
    return folder / "unfinished"


def go_on(folder: Path) -> None:
    with vector_file(folder / "a.npy", NOTE, job={"on_long": "warn"}, resume=True) as out:
        list(out.remaining(map(str, range(20))))


@given(data=st.data())
def test_unfinished_vectors(data: st.DataObject, unfinished: Path) -> None:
    survive(data, unfinished, go_on)


@pytest.fixture(scope="module")
def index(folder: Path, encoder: SentenceEncoder) -> Path:
    documents = [Document(f"{number}.md", "1", [(1, f"Anna sees {number}."), (2, "Boris")]) for number in range(4)]
    update_index(folder / "index", documents, encoder)
    update_index(folder / "index", [], encoder, remove=["1.md"])
    return folder / "index"


@given(data=st.data())
def test_indexes(data: st.DataObject, index: Path, encoder: SentenceEncoder) -> None:
    def read(folder: Path) -> None:
        found = SearchIndex(folder)
        found.documents()
        found.search(encoder, ["Anna sees Boris"], k=3, words=True)
        found.verify()

    survive(data, index, read)
