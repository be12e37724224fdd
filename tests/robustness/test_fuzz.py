"""Damaged files, wrong arguments, any text and any command: each does what it says, or one line says what is wrong.

With `--hypothesis-profile=long` ten times as many cases; no damaged file may take 20 seconds.
"""

import gzip
import io
import json
import lzma
import re
import shutil
import socket
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args, get_origin, get_type_hints
from unittest import mock

import numpy as np
import pytest
from commands import edit_json, write_files
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from mutation import survive
from texts import pdf
from toy import RECIPE
from toy_documents import ToyEncoder, toy_documents
from typer.main import get_command

import xsent
import xsent.cli.main
import xsent_bench.cli
import xsent_export.cli
import xsent_train.cli
from xsent import DataError, LinearClassifier, SearchIndex, SentenceEncoder
from xsent.bundle import builtin_path, compute_fingerprint
from xsent.evaluation.topics import read_examples
from xsent.files.tables import TextSource
from xsent.files.text import read_fields, read_lines
from xsent.files.vectors import VectorMeta, open_vectors, vector_file
from xsent.tokenizer import Tokenizer
from xsent.verification import verify
from xsent_apps.notes.read import read_passages
from xsent_export.options import DEFAULTS
from xsent_export.parity import held_out_pairs
from xsent_train.checkpoint import CheckpointEncoder, load_checkpoint, load_optimizer, save_checkpoint
from xsent_train.data.corpus import Corpus
from xsent_train.derive import identify
from xsent_train.recipe import load_recipe

pytestmark = pytest.mark.filterwarnings("ignore")  # about numbers that damage has made, and about long texts

META = VectorMeta("abc", 8, "float32", normalized=True)
ROWS = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)
PAIRS = "talk\tde\tThe cat sleeps.\tDie Katze schläft.\n".encode() * 5
HTML = (
    b"<!doctype html><title>x</title><p>one<script>a<b</script><!-- c --><ul><li>two &amp; <![CDATA[x]]><a href='x'>y"
)
FILES_READ: dict[str, tuple[bytes, Callable[[Path], object]]] = {
    "lines.tsv.xz": (lzma.compress(PAIRS), lambda file: list(read_lines(file))),
    "fields.tsv.gz": (gzip.compress(PAIRS, mtime=0), lambda file: list(read_fields(file, 4, "a layout"))),
    "examples.tsv": (PAIRS, lambda file: read_examples(file).texts),
    "corpus.tsv.gz": (gzip.compress(PAIRS, mtime=0), lambda file: list(Corpus([file]))),
    "a.html": (HTML, read_passages),
    "a.md": (b"# Trip\n\n- milk\n- bread\n\nWe leave on Friday. The train is at nine.\n", read_passages),
    "a.pdf": (pdf("The cat sleeps.", "The dog barks."), read_passages),
    "a.txt": ("été".encode("utf-16"), read_passages),
    "toy.toml": (RECIPE.replace("MINUTES", "60").encode(), load_recipe),
}
Reader = Callable[[Path], object]


def with_bundle(folder: Path, request: pytest.FixtureRequest) -> Reader:
    """The fingerprint is that of the damaged manifest, as if somebody had damaged it on purpose."""
    shutil.copytree(request.getfixturevalue("mini_bundle"), folder, dirs_exist_ok=True)

    def read(folder: Path) -> None:
        with suppress(Exception):
            manifest = json.loads((folder / "xsent.json").read_bytes())
            edit_json(folder / "xsent.json", fingerprint=compute_fingerprint(manifest))
        verify(folder, "numpy")

    return read


def with_head(folder: Path, _: pytest.FixtureRequest) -> Reader:
    """The checksum is that of the damaged numbers."""
    LinearClassifier.fit(ROWS, ["a", "b"] * 10, fingerprint="abc").save(folder / "a.npz")

    def read(folder: Path) -> None:
        with suppress(Exception):
            edit_json(folder / "a.json", sha256=sha256((folder / "a.npz").read_bytes()).hexdigest())
        LinearClassifier.load(folder / "a.npz", fingerprint="abc").predict(ROWS)

    return read


def with_document_space(folder: Path, _: pytest.FixtureRequest) -> Reader:
    xsent.DocumentEncoder(ToyEncoder(), weighted=True).fit(
        {code: toy_documents(code, 30) for code in ("en", "fr")}
    ).save(folder / "space")
    return lambda folder: xsent.DocumentEncoder.load(folder / "space", ToyEncoder()).encode([["en1"]], "en")


def with_vectors(folder: Path, _: pytest.FixtureRequest) -> Reader:
    for name in ("a.npy", "a.f32"):
        with vector_file(folder / name, META) as out:
            for row in ROWS:
                out.write("x", row)
    return lambda folder: [open_vectors(folder / name).rows.sum() for name in ("a.npy", "a.f32")]


def with_unfinished_vectors(folder: Path, _: pytest.FixtureRequest) -> Reader:
    with pytest.MonkeyPatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr("xsent.files.vectors.STEP", 8)
        with vector_file(folder / "a.npy", META, job={"on_long": "warn"}) as out:
            for number, row in enumerate(ROWS[:11]):
                out.write(str(number), row)
            raise KeyboardInterrupt

    def read(folder: Path) -> None:
        with vector_file(folder / "a.npy", META, job={"on_long": "warn"}, resume=True) as out:
            list(out.remaining(map(str, range(20))))

    return read


def with_index(folder: Path, request: pytest.FixtureRequest) -> Reader:
    encoder = request.getfixturevalue("encoder")
    documents = [
        xsent.Document(f"{number}.md", "1", [(1, f"Anna sees {number}."), (2, "Boris")]) for number in range(4)
    ]
    xsent.update_index(folder / "index", documents, encoder)
    xsent.update_index(folder / "index", [], encoder, remove=["1.md"])

    def read(folder: Path) -> None:
        found = SearchIndex(folder / "index")
        found.documents()
        found.search(encoder, ["Anna sees Boris"], k=3, words=True)
        found.verify()

    return read


def with_checkpoint(folder: Path, request: pytest.FixtureRequest) -> Reader:
    """Without checksums, which would find all damage; with an optimizer."""
    full = load_checkpoint(request.getfixturevalue("mini_checkpoint"))
    about = {**full.about, "recipe": {"stages": [{"prefixes": [16, 32], "layer_prefixes": [1, 2]}]}}
    save_checkpoint(folder / "a", about, full.weights, dict(full.weights), [full.tokenizer, full.validation])
    edit_json(folder / "a" / "checkpoint.json", sha256={})

    def read(folder: Path) -> None:
        identify(folder / "a")
        checkpoint = load_checkpoint(folder / "a")
        DEFAULTS.spec(checkpoint)
        pairs = held_out_pairs(checkpoint, None)
        CheckpointEncoder(checkpoint).encode(["Anna", *next(iter(pairs.values()))[0]])
        load_optimizer(folder / "a")

    return read


def with_parquet(folder: Path, _: pytest.FixtureRequest) -> Reader:
    arrow = pytest.importorskip("pyarrow.parquet")
    arrow.write_table(pytest.importorskip("pyarrow").table({"text": ["one", None, "two"]}), folder / "a.parquet")
    return lambda folder: list(TextSource(str(folder / "a.parquet"), "text"))


MAKERS = [value for name, value in globals().items() if name.startswith("with_")]


@pytest.fixture(
    scope="module",
    params=[*MAKERS, *FILES_READ],
    ids=lambda kind: getattr(kind, "__name__", kind).removeprefix("with_"),
)
def damaged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reader]:
    """A folder of files to damage, and what reads it."""
    folder, kind = tmp_path_factory.mktemp("fuzz"), request.param
    if kind in MAKERS:
        return folder, kind(folder, request)
    content, read = FILES_READ[kind]
    (folder / kind).write_bytes(content)
    return folder, lambda folder: read(folder / kind)


@given(data=st.data())
@settings(max_examples=settings.default.max_examples // 4)
def test_what_is_damaged_is_one_line(data: st.DataObject, damaged: tuple[Path, Reader]) -> None:
    survive(data, *damaged)


def test_a_recipe_that_is_nested_too_deeply_is_one_line(tmp_path: Path) -> None:
    deep = tmp_path / "deep.toml"
    deep.write_text(f"name = {'[' * 100_000}")
    with pytest.raises(DataError, match=r"deep\.toml: cannot be read as a TOML recipe"):
        load_recipe(deep)


# Controls, marks of direction, joiners, runs of marks, private use, no characters, what a tokenizer writes itself.
ODD = ["\0", "\x1b[31m", "\u202e", "\u2066", "\ufeff", "\u2028", "\u200d", "\u00ad", "e" + "\u0301" * 40, "\u0301"]
ODD += ["👨\u200d👩\u200d👧", "🇩🇪", "1\ufe0f\u20e3", "\ue000", "\u0378", "\ufffe", "\U0010ffff", "\u1112\u1161\u11ab"]
ODD += ["<unk>", "<s>", "<0x41>", "▁", "\ufdfa", "ﬁ", "ẞ", "İ", "שלום", "مرحبا", "か\u3099"]
PART = st.one_of(st.text(min_size=1), st.sampled_from(ODD), st.sampled_from(["Anna ", "sees\t", "Boris, ", " "]))
TEXT = st.builds(lambda parts, times: "".join(parts) * times, st.lists(PART, max_size=6), st.sampled_from([1, 1, 1, 9]))
# Shares of what the profile asks for: `--hypothesis-profile=long` tries many times as many.
SHARES = (5, 12, 25, 100)
SOME, FEWER, FEW, FEWEST = (
    settings(max_examples=settings.default.max_examples // share, deadline=None) for share in SHARES
)


@pytest.mark.parametrize("backend", ["onnx", "numpy", "openvino"])
@pytest.mark.parametrize("model", ["mini", "builtin"])
def test_a_text_has_one_vector_whoever_else_is_encoded(
    request: pytest.FixtureRequest, model: str, backend: str
) -> None:
    if (model, backend) == ("builtin", "openvino"):
        pytest.skip("it has no files for OpenVINO")
    name = "openvino_bundle" if backend == "openvino" else "mini_bundle"
    path = None if model == "builtin" else request.getfixturevalue(name)
    layers = 1 if (model, backend) == ("builtin", "numpy") else None  # of many that are alike, and slow
    one, two = (SentenceEncoder(path, backend=backend, layers=layers, threads=threads) for threads in (1, 2))

    @given(texts=st.lists(TEXT, min_size=1, max_size=4))
    @example(texts=ODD[::3])
    @example(texts=["", " ", "\n", "\0" * 300])
    @(FEWEST if model == "builtin" else FEW if backend == "openvino" else FEWER)
    def check(texts: list[str]) -> None:
        alone = np.stack([one.encode(text) for text in texts])
        for text, length in zip(texts, np.linalg.norm(alone, axis=1), strict=True):
            assert length == pytest.approx(1 if one.count_tokens(text) else 0, abs=1e-5)
        rows = [*range(len(texts)), *reversed(range(len(texts)))] * (8 // len(texts) + 1)  # more than a thread takes
        crowd = [texts[row] for row in rows]
        for vectors in (one.encode(crowd), two.encode(crowd), np.stack([*two.encode_iter(crowd)])):
            assert np.array_equal(vectors, alone[rows])

    check()


@given(text=TEXT)
@example(text="Anna sees Boris. " * 60)
@SOME
def test_only_long_text_is_cut_and_never_in_silence(encoder: SentenceEncoder, text: str) -> None:
    tokens, vectors, remarks = encoder.count_tokens(text), {}, {}
    for on_long in ("warn", "split", "error"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", xsent.LongSentenceWarning)
            if on_long == "error" and tokens > encoder.max_length:
                with pytest.raises(ValueError, match=f"{tokens:,} tokens, at most {encoder.max_length} fit"):
                    encoder.encode(text, on_long=on_long)
                continue
            vectors[on_long] = encoder.encode(text, on_long=on_long)
        remarks[on_long] = [str(one.message)[:6] for one in caught if one.category is xsent.LongSentenceWarning]
    long = tokens > encoder.max_length
    assert remarks.pop("warn") == ["1 of 1"] * long and not any(remarks.values())
    assert long or all(np.array_equal(vector, vectors["warn"]) for vector in vectors.values())
    assert np.linalg.norm(vectors["split"]) == pytest.approx(1 if tokens else 0, abs=1e-5)


@pytest.mark.parametrize("part", ["a", "😀", "\0", "\u0301", "\u202e", "\ufdfa", " "])
def test_a_megabyte_without_a_space(encoder: SentenceEncoder, part: str) -> None:
    length = 0 if part in " \u202e" else 1  # format characters are removed
    text = part * (2**20 // len(part.encode()))
    assert np.linalg.norm(encoder.encode(text)) == pytest.approx(length, abs=1e-5)
    assert np.linalg.norm(encoder.encode(text[: 2**13], on_long="split")) == pytest.approx(length, abs=1e-5)


def test_the_forms_of_a_character_are_one() -> None:
    tokenizer, forms = Tokenizer(builtin_path() / "sentencepiece.model"), ("NFC", "NFD", "NFKC", "NFKD")
    characters = (chr(code) for code in range(sys.maxunicode) if not 0xD800 <= code < 0xE000)
    several = [text for text in characters if unicodedata.normalize("NFKD", text) != text]
    assert len(several) > 16_000
    cut = {text: {(*tokenizer.encode(f"a{unicodedata.normalize(form, text)}b"),) for form in forms} for text in several}
    # Wide, it is a wave dash in Japanese, which SentencePiece keeps apart from the tilde on purpose.
    assert [text for text in several if len(cut[text]) > 1] == ["～"]


@given(before=TEXT, after=st.text(st.characters(), max_size=3), surrogate=st.characters(categories=["Cs"]))
@SOME
def test_half_a_character_is_refused_with_its_place(
    encoder: SentenceEncoder, before: str, after: str, surrogate: str
) -> None:
    with pytest.raises(ValueError, match=rf"^sentence 2 .*lone surrogate \('\\u{ord(surrogate):x}' at {len(before)}\)"):
        encoder.encode(["Anna", before + surrogate + after])


NUMBERS = st.one_of(st.integers(), st.floats(), st.integers(-2, 5), st.sampled_from([10**30, np.float32(2)]))
WORDS = st.one_of(st.text(max_size=20), st.binary(max_size=5), st.sampled_from(["ratio", "max", "int8", "split", "4"]))
THINGS = st.one_of(st.none(), st.booleans(), NUMBERS, WORDS, st.just(object()), st.just(int))
PILES = st.one_of(st.lists(THINGS, max_size=3), st.dictionaries(st.text(max_size=2), THINGS, max_size=2))
ARRAYS = arrays.arrays(st.one_of(arrays.scalar_dtypes(), st.just(object)), arrays.array_shapes(min_dims=0, min_side=0))
ANYTHING = st.one_of(THINGS, PILES, ARRAYS)
TWO, FIVE = np.eye(5, dtype=np.float32)[:2], np.eye(5, dtype=np.float32)
CALLS = {
    "top_k": lambda _, top_k: xsent.semantic_search(TWO, FIVE, top_k),
    "k": lambda _, k: (
        xsent.nearest(TWO, FIVE, k),
        xsent.mine_bitext(FIVE, FIVE, k=k),
        xsent.margin_scores(FIVE, FIVE, k=k),
    ),
    "margin": lambda _, margin: (
        xsent.margin_scores(FIVE, FIVE, margin=margin),
        xsent.align_documents(FIVE, FIVE, margin=margin),
    ),
    "retrieval": lambda _, retrieval: xsent.mine_bitext(FIVE, FIVE, retrieval=retrieval),
    "threshold": lambda _, threshold: xsent.mine_bitext(FIVE, FIVE, threshold=threshold),
    "rows": lambda _, rows: xsent.mine_bitext(FIVE, FIVE, src_rows=rows, k=1),
    "truncate_dim": lambda encoder, dim: encoder.encode("Anna", truncate_dim=dim),
    "precision": lambda encoder, precision: encoder.encode("Anna", precision=precision),
    "on_long": lambda encoder, on_long: encoder.encode("Anna", on_long=on_long),
    "start": lambda encoder, start: list(encoder.encode_items(["Anna"], start=start)),
    "threads": lambda encoder, threads: SentenceEncoder(encoder.bundle.path, backend="numpy", threads=threads),
}
REFUSED = (TypeError, ValueError)


@pytest.mark.parametrize("name", CALLS)
@given(value=ANYTHING)
@SOME
def test_a_wrong_argument_is_named(encoder: SentenceEncoder, name: str, value: object) -> None:
    try:
        CALLS[name](encoder, value)
    except REFUSED as error:
        assert re.match(rf"{name} = |one side has no sentences", str(error))


@given(one=ANYTHING, other=ANYTHING)
@SOME
def test_what_is_neither_text_nor_vectors_is_refused(encoder: SentenceEncoder, one: object, other: object) -> None:
    for call in (encoder.encode, lambda texts: list(encoder.encode_iter(texts))):
        with suppress(*REFUSED):
            call(one)
    names = "cosine_similarity nearest margin_scores mine_bitext align_documents semantic_search".split()
    for call in (encoder.similarity, *(getattr(xsent, name) for name in names)):
        for pair in ((one, other), (FIVE, other), (one, FIVE)):
            with suppress(*REFUSED):
                call(*pair)


PROGRAMS = {"xsent": xsent.cli.main, "xsent-train": xsent_train.cli, "xsent-export": xsent_export.cli}
PROGRAMS["xsent-bench"] = xsent_bench.cli
# What serves, watches, or measures for minutes: everything before it is tried, with any arguments.
LONG = {
    "xsent.verification.verify_together": 7950,
    "xsent_apps.server.command.listen": lambda *_: socket.socket(),
    "xsent_apps.server.command.run_server": None,
    "mcp.server.mcpserver.MCPServer.run": None,
    "xsent_apps.web.command.listen": lambda *_: socket.socket(),
    "xsent_apps.web.command.run_server": None,
    "xsent_apps.web.command.webbrowser.open": None,
    "watchfiles.watch": (),
    "xsent.cli.doctor.examine": (),
    "xsent_bench.run.measure_steps": Path("notes.txt"),
}


def commands(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:  # noqa: ANN401  typer has its own click
    """Every command of a program by the words that call it."""
    if not hasattr(command, "commands") or (path and command.invoke_without_command):
        yield path, command
    for name in command.list_commands(None) if hasattr(command, "commands") else ():
        yield from commands(command.get_command(None, name), *path, name)


COMMANDS = dict(found for name, program in PROGRAMS.items() for found in commands(get_command(program.app), name))

MATERIAL = {
    "notes.txt": "Anna sees Boris.\nDavid\n\nClara\nElena.\n",
    "autres.txt": "Anna voit Boris.\nDavid\nClara\nElena, Frank\n",
    "pairs.tsv": "Anna\tBoris\nClara\tDavid\nElena\tFrank\nGreta\tHenry\nIrina\tJonas\n",
    "four.tsv": "ours\tfr\tAnna sees Boris.\tAnna voit Boris.\nours\tfr\tClara\tClara\n",
    "labels.tsv": "animals\tAnna\nfood\tBoris\nfood\tClara\nanimals\tDavid\n",
    "recipe.toml": "name = 'toy'\n[model]\ndim = 7\n",
    "folder/en.txt": "Anna\n",
    "folder/en-de.tsv": "Anna.\tAnna!\nBoris.\tBoris!\n",
    "folder/note.md": "# Anna\n\nBoris.\n",
    "empty": "",
}
PLACES = [*MATERIAL, "folder", "bundle", "index", "vectors.npy", "binary", "missing", "new", "new.npy", "new/new"]
PLACES += ["a=bundle", "-", "", ".", "\udcff", "\u202eodd 🙂\t\n.txt", "n" * 300, "en,fr", "--", "16MB", "new.jsonl"]
NUMBERS = ["-1", "0", "1", "2", "3", "7", "32", "10" * 6, "9" * 40, "0.5", "-0.5", "nan", "inf", "1e400", "x", ""]

# What belongs there, by the names of options and arguments.
RIGHT = {
    "notes.txt": "file src text source a sample",
    "autres.txt": "trg b queries",
    "pairs.tsv": "pairs gate_data",
    "labels.tsv": "train test data",
    "en=notes.txt": "sources",
    "bundle": "model checkpoint",
    "folder": "folder data_folder",
    "recipe.toml": "config",
    "new": "out rejected work",
    "new.npy": "output",
    "head.npz": "head",
    "index": "index",
    "vectors.npy": "src_vectors trg_vectors vectors",
    "de": "language",
    "Anna": "query name",
}
RIGHT_FOR = {name: word for word, names in RIGHT.items() for name in names.split()}


def values(name: str, hint: object) -> st.SearchStrategy[str]:
    """Words for an option or an argument of a type, mostly such as it takes."""
    kinds = [hint, *get_args(hint), *(kind for part in get_args(hint) for kind in get_args(part))]
    choices = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    if choices:
        return st.sampled_from([*choices, *choices, "none such"])
    if int in kinds or float in kinds:
        return st.sampled_from([*NUMBERS, *"12345678"])
    text = st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), max_size=20)
    right = st.just(RIGHT_FOR[name]) if name in RIGHT_FOR else text
    return st.one_of(*[right] * 9, st.sampled_from(PLACES), st.sampled_from(PLACES), text)


@st.composite
def arguments(draw: st.DrawFn, command: Any) -> list[str]:  # noqa: ANN401
    """Most of a command's arguments and some of its options."""
    words, hints = list[str](), get_type_hints(command.callback)
    for parameter in command.params:
        if parameter.name in ("install_completion", "show_completion"):  # of the shell that started the tests
            continue
        hint = hints.get(parameter.name)
        option = parameter.param_type_name == "option"
        if draw(st.integers(0, 9)) > (8 if parameter.required else 5 if parameter.name in RIGHT_FOR else 1):
            continue
        if option:
            words.append(draw(st.sampled_from([*parameter.opts, *parameter.secondary_opts])))
        if not getattr(parameter, "is_flag", False):
            words.append(draw(values(parameter.name, hint)))
    return words


@pytest.fixture(scope="module")
def material(mini_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("material")
    write_files(folder, MATERIAL)
    (folder / "binary").write_bytes(bytes(range(256)) * 10)
    np.save(folder / "vectors.npy", np.eye(4, 32, dtype=np.float32))
    shutil.copytree(mini_bundle, folder / "bundle")
    encoder, labels = SentenceEncoder(mini_bundle), ["food", "animals"]
    LinearClassifier.fit(np.eye(4, 32), labels * 2, fingerprint=encoder.fingerprint).save(folder / "head.npz")
    xsent.build_index(folder / "index", MATERIAL["notes.txt"].splitlines(), encoder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def run(program: str, words: list[str]) -> tuple[int, str, str]:
    """Exit code, standard output and standard error; whatever else is raised is a traceback."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors) for errors in ("strict", "backslashreplace"))
    stdin = io.TextIOWrapper(io.BytesIO(MATERIAL["notes.txt"].encode()))
    with mock.patch.multiple(sys, argv=[program, *words], stdin=stdin), redirect_stdout(out), redirect_stderr(err):
        with warnings.catch_warnings(), pytest.raises(SystemExit) as ended:
            warnings.simplefilter("default")  # pytest makes them errors
            PROGRAMS[program].main()
    for stream in (out, err):
        stream.flush()
    said, told = (stream.buffer.getvalue().decode() for stream in (out, err))
    return int(ended.value.code or 0), said, told


@pytest.fixture(scope="module", autouse=True)
def short() -> Iterator[None]:
    """Nothing serves, watches or measures."""
    with ExitStack() as patches:
        for name, does in LONG.items():
            returns = does if callable(does) else lambda *_, does=does, **__: does
            patches.enter_context(mock.patch(name, returns))
        yield


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
@given(data=st.data())
@FEW
def test_a_command_does_it_or_says_why_not(path: tuple[str, ...], material: Path, data: st.DataObject) -> None:
    words = data.draw(arguments(COMMANDS[path]))
    with TemporaryDirectory() as folder, chdir(shutil.copytree(material, Path(folder) / "here")):
        before = contents(Path())
        code, out, err = run(path[0], [*path[1:], *words])
        event(f"exit code {code}")
        assert code in (0, 1, 2), err
        assert [path.name for path in Path(folder).iterdir()] == ["here"]
        if code == 1:
            assert err.splitlines()[-1].startswith("Error: ") and err.count("Error: ") == 1, err
        if code:
            assert contents(Path()) == before
        elif "--json" in words:
            for line in out.splitlines():
                json.loads(line)
