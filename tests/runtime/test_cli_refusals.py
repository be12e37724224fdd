"""What the commands refuse: one line of error, exit code 1, and nothing written."""

import shlex
import sys
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from commands import Runner, assert_refused, write_files

from xsent.classification.classifier import LinearClassifier
from xsent.encoder import SentenceEncoder

TSV, LINES = "Anna\tBert\nClara\tDavid\n", "Anna sees Boris.\nClara, David and Elena.\n"
FILES: dict[str, str | bytes] = {
    "empty": "",
    "blank": "\n \n",
    "a.txt": LINES,
    "b.txt": LINES,
    "broken.txt": b"caf\xc3\xa9\ncaf\xe9\n",
    "a.csv": "id,text,label\nT1,Anna,x\n",
    "pairs.csv": "n,en,fr\n1,Anna,Anna\n",
    "pairs.tsv": TSV,
    "broken.tsv": "Anna\tBert\nClara\n",
    "taken.tsv": TSV,
    "folder/en.train.1000": "x\tAnna\ny\tBoris\n",
    "folder/en.test": "x\tAnna\ny\tBoris\n",
    "folder/fr.test": "x\tAnna\n",
    "strange": "sports\tThey won.\n",
    "en-fr.tsv": TSV,
    "none/.keep": "",
}
REFUSED = {
    "encode": {
        "a.txt -o v.csv": "v.csv: expected a name that ends in .npy, .jsonl, .parquet or .f32",
        "a.txt -o v.f32 --precision int8": "v.f32: .f32 holds float32, not int8; use a name that ends in .npy",
        "a.txt --truncate-dim 33": "--truncate-dim 33 must be between 1 and 32",
        "a.txt -o nowhere/v.npy": "nowhere: no such folder; create it first",
        "id=5/x.jsonl --column text --id id": "id=5/x.jsonl: cannot be read",
        "a.txt --resume": "--resume needs --output",
        "a.txt -o v.npy --resume --force": "use either --resume or --force",
        "empty -o v.npy": "empty: empty; expected one text per line",
        "broken.txt -o v.npy": "broken.txt:2: not UTF-8",
        "missing -o v.npy": "missing: cannot be read",
        "a.csv": "a.csv: this looks like CSV; name the column: --column NAME (columns: id, text, label)",
        "a.csv --column text --id id -o v.npy": "v.npy: cannot hold ids (--id id), only vectors; use a name that ",
        "- --id id": "--id id names a column of a table",
    },
    "mine": {
        "- -": "standard input can be read once: only one of SRC and TRG may be -",
        "a.txt b.txt -k 1 --threshold 99": "no pairs of a.txt and b.txt; the best scores ",
        "a.txt empty": "empty: empty; expected one text per line",
        "a.txt blank": "no sentences",
        "none none -o taken.tsv": "taken.tsv: exists; --force replaces it",
        "none none -o taken.tsv --force --json": "taken.tsv: --json writes JSON Lines; use a name that ends in .jsonl",
    },
    "score": {
        "empty": "empty: empty; expected one pair per line",
        "broken.tsv": "broken.tsv:2: 1 fields, expected 2 separated by tabs: source, target",
        "pairs.tsv": "-k 4 neighbours, but one side has only 2",
        "empty -k 1": "empty: empty; expected one pair per line",
        "pairs.tsv --id n": "--id n names a column of a table; name those of the texts too: --column NAME,NAME",
        "pairs.csv": "name the column: --column NAME,NAME (columns: n, en, fr)",
        "pairs.csv --column en": "--column en: expected two comma-separated columns: source, target",
        "none -o taken.tsv": "taken.tsv: exists",
    },
    "duplicates": {
        "a.csv": "a.csv: this looks like CSV",
        "a.csv --column text -o v.parquet": "v.parquet: expected a name that ends in .tsv or .jsonl; DuckDB and pandas",
        "a.csv --column text -o v.tsv --json": "v.tsv: --json writes JSON Lines; use a name that ends in .jsonl",
        "none -o taken.tsv": "taken.tsv: exists",
    },
    "cluster": {"none -o taken.tsv": "taken.tsv: exists"},
    "index": {
        "a.csv x.index": "a.csv: this looks like CSV",
        "none x.index": "none: a folder; expected a text file, or search the folder with xsent notes",
    },
    "search": {
        "bundle Anna --column text": "--column and --id are for a table of --queries",
        "none Anna": "none: not an index; create one with xsent index, or search a folder of notes with xsent notes",
        "a.txt Anna": "a.txt: not an index, but a file; create one with xsent index",
        "none ''": "the query is empty; ask for something",
        "none '  '": "the query is empty; ask for something",
    },
    "classify": {
        "fit a.csv x.npz": "a.csv: this looks like CSV; name the column: --columns LABEL,TEXT",
        "fit empty x.npz": "empty: no examples",
        "fit folder/en.test head.npz": "head.npz: exists; --force replaces it",
        "predict head.npz empty": "empty: empty; expected one text per line",
        "predict head.npz a.txt -o taken.tsv": "taken.tsv: exists",
        "zero-shot a.txt --labels x,y": "--labels 'x,y' is only one label; repeat --labels for each label",
        "evaluate folder folder/fr.test": "name nothing after a folder; --train chooses the languages to train in",
        "evaluate folder/fr.test": "expected a folder, or a training file and test files",
        "evaluate folder/en.test folder/fr.test --train fr": "--train names languages of a folder; these are files",
        "evaluate folder --train en,xx": "'xx' is not a language of this folder, which has en",
        "evaluate folder/en.test strange": "strange: label 'sports' is not in both this file and folder/en.test; ",
    },
    "documents": {
        "fit -o space en=missing": "missing: cannot be read",
        "fit -o space en=empty": "empty: no documents; expected a file with one document per line",
        "fit -o space a.txt": "a.txt: expected LANGUAGE=DOCUMENTS, each language once",
        "fit -o folder en=a.txt": "folder: exists; choose another name or remove it",
        "fit -o space en=a.txt en=b.txt": "each language once",
        "embed folder --language en -o v.npy --fitted space": "folder: no documents",
        "embed a.txt --language en -o v.npy --fitted space": "documents.json: missing; fit the documents again",
        "embed a.txt --language en -o v.csv --fitted space": "v.csv: expected a name that ends in .npy",
        "align a.txt b.txt --languages en,en": "expected two different comma-separated codes",
        "align none none --languages en,fr -o taken.tsv": "taken.tsv: exists",
    },
    "evaluate": {
        "tatoeba . --languages ,": "--languages ',' names none; expected comma-separated codes",
        "tatoeba . --precision binary --truncate-dim 12": "must be a multiple of 8",
    },
}
CASES = [(f"{command} {rest}", message) for command, cases in REFUSED.items() for rest, message in cases.items()]


@pytest.fixture
def here(tmp_path: Path, encoder: SentenceEncoder) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    head = LinearClassifier.fit(np.eye(4, 32), ["x", "y"] * 2, fingerprint=encoder.fingerprint)
    head.save(tmp_path / "head.npz")
    return tmp_path


@pytest.mark.parametrize(("command", "message"), CASES, ids=[command for command, _ in CASES])
def test_it_is_refused_and_nothing_is_written(
    run: Runner, here: Path, mini_bundle: Path, command: str, message: str
) -> None:
    for name, needed in (("cluster", "scipy"), ("documents", "sentencex")):
        if command.startswith(name):
            pytest.importorskip(needed)
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    with chdir(here):
        code, out, err = run(*shlex.split(command), "--model", mini_bundle)
    assert_refused((code, out, err), message)
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


def test_a_missing_folder_of_the_output_is_said_before_the_work(
    run: Runner, here: Path, mini_bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("scipy")  # for cluster
    monkeypatch.setattr(SentenceEncoder, "encode", None)
    monkeypatch.setattr(SentenceEncoder, "encode_items", None)
    for command in (
        "index a.txt no/x",
        "encode a.txt -o no/v.npy",
        "mine a.txt b.txt -o no/x.tsv",
        "cluster a.txt -o no/x.tsv",
        "classify fit folder/en.test no/h.npz",
        "classify zero-shot a.txt --labels a --labels b --head no/h.npz",
        "documents fit en=a.txt fr=b.txt -o no/space",
    ):
        with chdir(here):
            assert_refused(run(*command.split(), "--model", mini_bundle), "no: no such folder; create it first")


EARLY = {
    "encode a.txt -o v.parquet": ("pyarrow", "parquet"),
    "encode t.parquet --column text": ("pyarrow", "parquet"),
    "index t.parquet i --column text": ("pyarrow", "parquet"),
    "classify fit t.parquet h.npz --columns label,text": ("pyarrow", "parquet"),
    "classify predict h.npz t.parquet --column text": ("pyarrow", "parquet"),
    "classify zero-shot t.parquet --column text --labels a --labels b": ("pyarrow", "parquet"),
    "cluster a.txt": ("sklearn", "cluster"),
    "documents fit en=a.txt fr=b.txt -o space": ("sentencex", "documents"),
    "notes folder": ("sentencex", "apps"),
    "map a.txt m.html": ("scipy", "cluster"),
}


@pytest.mark.parametrize("command", EARLY)
def test_a_missing_extra_is_named_before_the_model_is_loaded(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    package, extra = EARLY[command]
    if package == "sklearn":
        pytest.importorskip("scipy")  # which is imported before
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("xsent.encoder.SentenceEncoder.__init__", None)  # a call would be a TypeError
    write_files(tmp_path, {"a.txt": LINES, "b.txt": LINES, "folder/a.md": LINES, "t.parquet": "PAR1"})
    message = f'Error: {package} is not installed; run pip install "xsent[{extra}]"\n'
    assert run(*command.split()) == (1, "", message)


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        (["notes", "folder", "where", "is", "the", "key?"], 'xsent notes folder "where is the key?"'),
        (["notes", "my notes", "-n", 3, "what", "costs", "$5"], "xsent notes 'my notes' 'what costs $5'"),
        (["search", "x.index", "wo", "ist", "(der) Schlüssel"], 'xsent search x.index "wo ist (der) Schlüssel"'),
        (["similarity", "a cat", "a", "dog"], "xsent similarity 'a cat' \"a dog\""),
    ],
)
def test_a_text_without_quotes_is_answered_with_them(run: Runner, command: list[object], advice: str) -> None:
    code, out, err = run(*command)
    assert (code, out) == (2, "") and err.endswith(f"Error: a text of several words needs quotes: {advice}\n")
