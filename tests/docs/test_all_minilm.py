"""The code on docs/guides/all-minilm.md asks an index of each tool: xsent's own vectors in that space."""

import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from commands import OFFLINE, write_lines
from numpy.typing import NDArray
from pages import blocks

from xsent import SentenceEncoder

pytestmark = pytest.mark.slow
TEXTS = ["The cat needs food.", "The meeting is on Friday.", "Pay the rent before the first."]
PAGE = "docs/guides/all-minilm.md"
CODE = {re.findall(r"^(?:import|from) (\w+)", block.text)[0]: block.text for block in blocks(PAGE, "python")}

Vectors = NDArray[np.float32]


def make_file(vectors: Vectors) -> None:
    np.save("notes.npy", vectors)
    write_lines(Path("notes.txt"), TEXTS)


def make_chroma(vectors: Vectors) -> None:
    notes = pytest.importorskip("chromadb").PersistentClient("notes.chroma").create_collection("notes")
    notes.add(ids=["0", "1", "2"], documents=TEXTS, embeddings=vectors)


def make_langchain(vectors: Vectors) -> None:
    stores = pytest.importorskip("langchain_core.vectorstores")
    embeddings = pytest.importorskip("langchain_core.embeddings").FakeEmbeddings(size=384)
    store = stores.InMemoryVectorStore.from_texts(TEXTS, embeddings)
    for entry, vector in zip(store.store.values(), vectors, strict=True):
        entry["vector"] = vector.tolist()
    store.dump("notes.json")


def make_llamaindex(vectors: Vectors) -> None:
    core = pytest.importorskip("llama_index.core")
    rows = zip(TEXTS, vectors.tolist(), strict=True)
    nodes = [core.schema.TextNode(text=text, embedding=vector) for text, vector in rows]
    index = core.VectorStoreIndex(nodes, embed_model=core.MockEmbedding(embed_dim=384))
    index.storage_context.persist("notes.llamaindex")


def make_sqlite(vectors: Vectors) -> None:
    extension = pytest.importorskip("sqlite_vec")
    with closing(sqlite3.connect("notes.db")) as database:
        if not hasattr(database, "enable_load_extension"):
            pytest.skip("this Python's sqlite3 loads no extensions")
        database.enable_load_extension(True)
        extension.load(database)
        database.execute("CREATE VIRTUAL TABLE notes USING vec0(embedding float[384], +text text)")
        database.executemany("INSERT INTO notes (text, embedding) VALUES (?, ?)", zip(TEXTS, vectors, strict=True))
        database.commit()


def make_duckdb(vectors: Vectors) -> None:
    with pytest.importorskip("duckdb").connect("notes.duckdb") as database:
        database.execute("CREATE TABLE notes (text TEXT, embedding FLOAT[384])")
        database.executemany("INSERT INTO notes VALUES (?, ?)", [*zip(TEXTS, vectors.tolist(), strict=True)])


MAKE: dict[str, Callable[[Vectors], None]] = {
    "numpy": make_file,
    "chromadb": make_chroma,
    "langchain_core": make_langchain,
    "llama_index": make_llamaindex,
    "sqlite3": make_sqlite,
    "duckdb": make_duckdb,
}


def test_the_page_has_code_for_every_tool() -> None:
    assert CODE.keys() == {*MAKE, "psycopg"}
    assert max(len(code.splitlines()) for code in CODE.values()) <= 10


@pytest.mark.parametrize("tool", MAKE)
def test_an_index_is_asked_in_another_language(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    MAKE[tool](SentenceEncoder().encode(TEXTS, space="all-MiniLM-L6-v2"))
    ask(tool)


def test_a_server_of_pgvector_is_asked_in_another_language(monkeypatch: pytest.MonkeyPatch) -> None:
    psycopg = pytest.importorskip("psycopg")
    servers = pytest.importorskip("pgserver")
    vectors = SentenceEncoder().encode(TEXTS, space="all-MiniLM-L6-v2").tolist()
    with TemporaryDirectory() as folder, servers.get_server(folder):
        monkeypatch.setenv("PGHOST", folder)
        monkeypatch.setenv("PGUSER", "postgres")
        with psycopg.connect("dbname=postgres", autocommit=True) as database:
            database.execute("CREATE DATABASE notes")
        with psycopg.connect("dbname=notes") as database:
            database.execute("CREATE EXTENSION vector")
            database.execute("CREATE TABLE notes (text text, embedding vector(384))")
            rows = [(text, str(vector)) for text, vector in zip(TEXTS, vectors, strict=True)]
            database.cursor().executemany("INSERT INTO notes VALUES (%s, %s)", rows)
        ask("psycopg")


def ask(tool: str) -> None:
    command = [sys.executable, "-c", f"{OFFLINE}\n{CODE[tool]}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{TEXTS[1]}\n"), done.stderr
    assert CODE[tool].rstrip().endswith(f"# {TEXTS[1]}")
