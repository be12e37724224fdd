"""What several tests share: a tiny checkpoint and the bundle exported from it.

In an installation of the runtime alone, `pytest` runs the tests of the runtime. Those that need the tiny bundle find it
where another run with the same XSENT_MINI_BUNDLE left it, and are skipped otherwise.
"""

from __future__ import annotations

import home  # first: libraries read the environment when they are imported

# isort: split
import fcntl
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import chain, combinations, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import Runner
from hypothesis import settings
from offline import offline
from sentencepiece import SentencePieceProcessor
from texts import OURS, multilingual, train_tokenizer
from toy import toy_pairs
from typer.main import get_command

from xsent.bundle import Bundle, builtin_path
from xsent.encoder import SentenceEncoder

if find_spec("torch") and find_spec("onnx"):
    import torch
    from tiny_bert import write_student, write_tiny_bert

    from xsent_export.export import export
    from xsent_export.options import ExportOptions
    from xsent_train.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
    from xsent_train.data.vocabulary import train_vocabulary
    from xsent_train.model import Encoder, ModelConfig
else:
    more = re.compile(r"torch|xsent_(train|export|bench|apps)|trainings")
    collect_ignore = [str(path) for path in Path(__file__).parent.rglob("test_*.py") if more.search(path.read_text())]

__all__ = ["offline"]

NAMES = ("Anna", "Boris", "Clara", "David", "Elena", "Frank", "Greta", "Henry", "Irina", "Jonas", "Karla", "Lukas")
PHRASES = {"en": "{}, {}, {} and {}.", "fr": "{}, {}, {} et {}.", "de": "{}, {}, {} und {}."}

MakeEncoder = Callable[..., "Encoder"]
MakeCheckpoint = Callable[..., "Checkpoint"]

settings.register_profile("short", deadline=None, derandomize=True)  # the same cases every time
settings.register_profile("long", max_examples=1000, deadline=20_000)  # milliseconds; by --hypothesis-profile=long
settings.load_profile("short")

os.environ.pop("PYTEST_XDIST_WORKER", None)  # pytest-benchmark refuses to run in processes that have it


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(home)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:  # noqa: ANN401
    """Name the exit code, or the signal, of a worker that died: pytest-xdist only says that it is gone."""
    if error:
        reporter = node.config.pluginmanager.get_plugin("terminalreporter")
        reporter.write_line(f"\n{node.gateway.id} ended with {node.gateway._io.popen.wait(60)}")


def sentences(language: str) -> list[str]:
    """33 different sentences; those at the same place say the same in every language, mostly with names."""
    return [PHRASES[language].format(*names) for names in islice(combinations(NAMES, 4), 0, None, 15)]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capfd)


def save_encoder(
    encoder: Encoder, folder: Path, *files: Path, weights: Mapping[str, torch.Tensor] | None = None, **about: object
) -> Path:
    """A checkpoint of an encoder and more weights, with a tokenizer and maybe held-out pairs."""
    about = {"name": "mini", "languages": ["en", "de"], "licence": "CC0-1.0", "step": 7, **about}
    weights = {f"encoder.{name}": weight for name, weight in encoder.state_dict().items()} | dict(weights or {})
    save_checkpoint(folder, {**about, "model": asdict(encoder.config)}, weights, None, files)
    return folder


@pytest.fixture(scope="session", autouse=True)
def short_fits() -> Iterator[None]:
    """Trainings fit matrices into their teachers' spaces in a tenth of the steps: seconds each."""
    with pytest.MonkeyPatch.context() as patch:
        if find_spec("torch"):
            patch.setattr("xsent_train.fitting.SPACE_STEPS", 40)
        yield


@pytest.fixture(scope="session", autouse=True)
def built_once() -> Iterator[None]:
    """What tests build hundreds of times is built once: Typer's commands (30 ms), the last tokenizers read (180 ms)."""
    read = lru_cache(maxsize=4)(lambda path, *_: SentencePieceProcessor(model_file=path))

    def processor(model_file: str) -> SentencePieceProcessor:
        now = os.stat(model_file)
        return read(os.path.realpath(model_file), now.st_ino, now.st_size, now.st_mtime_ns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", cache(get_command))
        patch.setattr("xsent.tokenizer.sentencepiece", SimpleNamespace(SentencePieceProcessor=processor))
        yield


@pytest.fixture(scope="session")
def make_encoder() -> MakeEncoder:
    """A function that makes an encoder with random weights, none of them zero, always the same."""
    for needed in ("torch", "onnx"):
        pytest.importorskip(needed)

    def make(
        vocab_size: int = 50,
        dim: int = 32,
        num_layers: int = 2,
        out_scale: float = 1.0,
        **shape: Any,  # noqa: ANN401  whatever a shape has
    ) -> Encoder:
        config = ModelConfig(vocab_size, dim, num_layers, num_heads=4, ffn_dim=2 * dim, max_length=64, **shape)
        encoder = Encoder(config).eval()
        generator = torch.Generator().manual_seed(3)
        for name, parameter in encoder.named_parameters():
            center = 1.0 if name.endswith("norm.weight") else 0.0
            scale = out_scale if "_out." in name else 1.0
            torch.nn.init.normal_(parameter.data, std=scale * dim**-0.5, generator=generator).add_(center)
        for query in encoder.buffers():
            torch.nn.init.normal_(query, std=dim**-0.5, generator=generator)
        return encoder

    return make


def build_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], Path]) -> Path:
    """What `build` makes in a new folder and returns: the first worker of a run makes it, the others find it."""
    root = factory.getbasetemp().parent if home.WORKER else factory.getbasetemp()
    folder, made = root / name, root / f"{name}.made"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            folder.mkdir(exist_ok=True)
            made.write_text(str(build(folder)))
    return Path(made.read_text())


@pytest.fixture(scope="session")
def mini_checkpoint(tmp_path_factory: pytest.TempPathFactory, make_encoder: MakeEncoder) -> Path:
    """A checkpoint folder: 2 layers, 32 dimensions, about 300 pieces, untrained."""
    return build_once(tmp_path_factory, "mini-checkpoint", lambda folder: write_mini_checkpoint(folder, make_encoder))


def write_mini_checkpoint(folder: Path, make_encoder: MakeEncoder) -> Path:
    texts = {language: sentences(language) for language in PHRASES}
    tokenizer = train_tokenizer(folder, chain.from_iterable(texts.values()), 400, **OURS)
    pieces = SentencePieceProcessor(model_file=str(tokenizer)).get_piece_size()
    validation = folder / "validation.tsv"
    with validation.open("w", encoding="utf-8") as file:
        for language in ("fr", "de"):
            # A quarter: so different that not even an untrained encoder confuses them.
            for english, translation in zip(texts["en"][::4], texts[language][::4], strict=True):
                file.write(f"test\t{language}\t{english}\t{translation}\n")
    encoder = make_encoder(vocab_size=pieces, out_scale=0.05)  # names find each other, as if it were trained
    return save_encoder(encoder, folder / "checkpoint", tokenizer, validation, languages=["en", "fr", "de"])


@pytest.fixture(scope="session")
def mini_bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The int8 bundle of `mini_checkpoint`; tests that change it copy it first."""

    def build(folder: Path) -> Path:
        out = Path(os.environ.get("XSENT_MINI_BUNDLE") or folder / "mini")
        if not out.exists():
            export(load_checkpoint(request.getfixturevalue("mini_checkpoint")), out)
        return out

    return build_once(tmp_path_factory, "mini-bundle", build)


@pytest.fixture(scope="session")
def deep_checkpoint(mini_checkpoint: Path, make_encoder: MakeEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same shape with readouts after 0, 1 and 2 layers, and a matrix into another model's space."""

    def build(folder: Path) -> Path:
        pieces = load_checkpoint(mini_checkpoint).config.vocab_size
        encoder = make_encoder(vocab_size=pieces, out_scale=0.05, depths=(0, 1, 2))
        files = mini_checkpoint / "sentencepiece.model", mini_checkpoint / "validation.tsv"
        weights = {"spaces.their-model": torch.randn(32, 32, generator=torch.Generator().manual_seed(5))}
        return save_encoder(encoder, folder / "checkpoint", *files, languages=["en", "fr", "de"], weights=weights)

    return build_once(tmp_path_factory, "deep-checkpoint", build)


@pytest.fixture(scope="session")
def deep_bundle(deep_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = ExportOptions(tolerance=20)  # of few pairs
    build = lambda folder: export(load_checkpoint(deep_checkpoint), folder / "bundle", options).path  # noqa: E731
    return build_once(tmp_path_factory, "deep-bundle", build)


@pytest.fixture(scope="session")
def openvino_bundle(mini_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same in float32, with OpenVINO's files."""
    pytest.importorskip("openvino")
    options = ExportOptions("openvino", "float32")
    build = lambda folder: export(mini_checkpoint, folder / "mini", options).path  # noqa: E731
    return build_once(tmp_path_factory, "openvino", build)


@pytest.fixture(scope="session")
def encoder(mini_bundle: Path) -> SentenceEncoder:
    """The encoder of `mini_bundle`, on two threads."""
    return SentenceEncoder(mini_bundle, threads=2)


@pytest.fixture(scope="session")
def builtin() -> Bundle:
    """The bundle that ships."""
    return Bundle.open(builtin_path())


@pytest.fixture(scope="session")
def tokenizer_of_scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SentencePiece model of sentences in many scripts; rare characters become bytes."""
    texts = [text for text in multilingual(400) if len(text) < 300]
    build = lambda folder: train_tokenizer(folder, texts, 900, character_coverage=0.98, **OURS)  # noqa: E731
    return build_once(tmp_path_factory, "scripts", build)


@pytest.fixture(scope="session")
def make_checkpoint(
    tokenizer_of_scripts: Path, make_encoder: MakeEncoder, tmp_path_factory: pytest.TempPathFactory
) -> MakeCheckpoint:
    """A function that makes a checkpoint of 2 random layers with this vocabulary."""
    pieces = SentencePieceProcessor(model_file=str(tokenizer_of_scripts)).get_piece_size()

    def make(activation: str = "gelu") -> Checkpoint:
        encoder = make_encoder(vocab_size=pieces, activation=activation, norm_eps=1e-12)
        folder = tmp_path_factory.mktemp(activation) / "checkpoint"
        return load_checkpoint(save_encoder(encoder, folder, tokenizer_of_scripts))

    return make


@pytest.fixture(scope="session")
def toy_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vocabulary of 360 pieces of the toy corpus."""
    path = tmp_path_factory.mktemp("vocabulary") / "sentencepiece.model"
    path.write_bytes(train_vocabulary((text for pair in toy_pairs(600) for text in pair[2:]), size=360, threads=1))
    return path


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT as sentence-transformers saves it."""
    pytest.importorskip("sentence_transformers")
    return build_once(tmp_path_factory, "teacher", lambda folder: write_tiny_bert(folder / "bert"))


@pytest.fixture(scope="session")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recipe of a training on its layers, with pairs and English text beside it."""
    return write_student(tmp_path_factory.mktemp("student"))


@pytest.fixture(scope="session")
def learnt(student: Path, bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The last checkpoint of an uninterrupted training of it; those of the stages before lie beside it."""
    from trainings import train  # only here: it takes a second

    return build_once(tmp_path_factory, "learnt", lambda folder: train(student, folder / "whole", teacher=bert))
