"""The npm package, installed without a network: what it computes in Node, beside Python, and its types."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import ROOT
from texts import NOTES

from xsent import SearchIndex, SentenceEncoder, build_index
from xsent.bundle import builtin_path
from xsent_apps.web.site import MODEL_FILES, STATIC

PACKAGE = STATIC / "xsent"
CLIENT = Path(__file__).parent / "npm_client.mjs"
TSC = Path(os.environ.get("XSENT_NODE_MODULES", ROOT / "node_modules"), "typescript", "bin", "tsc")
TYPED = """
import { Encoder, SearchIndex, cosine, type Encoded, type Hit } from "xsent";

const encoder: Encoder = await Encoder.open(new URL("https://example.org/model/"));
const [a, b]: Float32Array[] = await encoder.encode(["a", "b"]);
const one: Float32Array = await encoder.encode("a");
const read: Encoded = await encoder.read("a");
const index = new SearchIndex(encoder);
await index.add(new Set(["a"]));
const hits: Hit[] = await index.search("b", { limit: 3 });
const all: [number, boolean, string] = [cosine(a!, b!) + hits[0]!.score, read.unknown, encoder.manifest.name];
// @ts-expect-error a bundle is opened, not constructed
new Encoder();
// @ts-expect-error a list has a vector for each text
const wrong: Float32Array = await encoder.encode(["a"]);
export { all, one, wrong };
"""
LINES = [note for notes in NOTES.values() for note in notes] + ["Die Straße ist gesperrt.", "Pay 1.234,50 € by 3 May."]
QUERIES = ["Where is the station?", "Die Strasse", "1,234.50", "quand est la réunion ?", "猫"]


def test_it_has_all_that_a_page_reads_of_a_model() -> None:
    script = (ROOT / "tools" / "npm.sh").read_text(encoding="utf-8")
    copied = re.search(r"cp runtime/xsent/builtin/\{(.+?)\}", script)
    assert copied is not None and set(copied[1].split(",")) == {"xsent.json", *MODEL_FILES}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package in its node_modules."""
    if shutil.which("npm") is None:
        pytest.skip("needs node and npm")
    folder = tmp_path_factory.mktemp("npm")
    subprocess.run([ROOT / "tools" / "npm.sh", folder], check=True, capture_output=True)
    [packed] = folder.glob("xsent-*.tgz")
    options = ["--offline", "--no-audit", "--no-fund", "--cache", str(folder / "cache")]
    subprocess.run(["npm", "install", *options, str(packed)], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.slow
def test_vectors_and_hits_in_node_are_those_of_python(installed: Path, tmp_path: Path) -> None:
    shutil.copy(CLIENT, installed)
    encoder = SentenceEncoder(threads=1)
    golden = encoder.bundle.golden
    bundle = tmp_path / "a#b%20c"  # letters of a path, not of a URL
    shutil.copytree(builtin_path(), bundle)
    texts = [*golden.sentences, *LINES, "", " ".join(NOTES["en"] * 20)]
    answer = in_node(installed, {"texts": texts, "queries": QUERIES, "bundle": str(bundle)})
    vectors, expected = np.array(answer["vectors"]), encoder.encode(texts, on_long="split")
    assert np.abs(vectors[: len(golden.sentences)] - golden.vectors).max() <= golden.allowed("other")
    assert max(answer["golden"]) <= golden.allowed("other") and len(answer["golden"]) == len(golden.sentences)
    # Numbers are rounded to 8 bits on the way: where a last bit decides how, a vector moves, as from CPU to CPU.
    assert not vectors[-2].any() and np.einsum("nd,nd->n", vectors, expected)[expected.any(axis=1)].min() > 0.99
    assert len(set(answer["rows"])) == len(answer["rows"]) > len(texts)
    assert answer["windows"] == 4 and answer["same"] == pytest.approx(1)
    assert "no such file" in answer["refused"] and "none/xsent.json" in answer["refused"]
    build_index(tmp_path / "index", texts, encoder)
    found = SearchIndex(tmp_path / "index").search(encoder, QUERIES, 5)
    for query, here, there in zip(QUERIES, answer["hits"], found, strict=True):
        assert [hit["text"] for hit in here[:3]] == [hit.text for hit in there[:3]], query  # later ones are too close
        assert [hit["score"] for hit in here] == pytest.approx([hit.score for hit in there], abs=0.01)
        assert [texts[hit["row"]] for hit in here] == [hit["text"] for hit in here]


@pytest.mark.slow
def test_its_page_prints_what_it_shows(installed: Path) -> None:
    [block] = re.findall(
        r"^```js\n(.+?)^```", (PACKAGE / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    (installed / "page.mjs").write_text(block, encoding="utf-8")
    done = subprocess.run(["node", "page.mjs"], cwd=installed, capture_output=True, text=True, check=False)
    shown = re.findall(r"^console\.log\(.+\); // (.+)$", block, re.MULTILINE)
    assert (done.stderr, done.stdout.splitlines()) == ("", shown) and len(shown) == 2


@pytest.mark.slow
@pytest.mark.skipif(not TSC.is_file(), reason="needs npm install --no-save typescript")
def test_its_types_are_those_of_its_code(installed: Path) -> None:
    (installed / "use.mts").write_text(TYPED)
    options = ["--noEmit", "--strict", "--noUncheckedIndexedAccess", "--module", "nodenext", "--target", "es2022"]
    done = subprocess.run(
        ["node", TSC, *options, "use.mts"], cwd=installed, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    types = (PACKAGE / "index.d.ts").read_text(encoding="utf-8")
    exported = re.findall(r"\w+", " ".join(re.findall(r"export \{(.+?)\}", (PACKAGE / "index.js").read_text())))
    assert set(exported) == set(re.findall(r"^export (?:class|function) (\w+)", types, re.MULTILINE))


def in_node(folder: Path, asked: object) -> dict[str, Any]:
    """What the client prints."""
    command = ["node", CLIENT.name]
    done = subprocess.run(command, cwd=folder, input=json.dumps(asked), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
