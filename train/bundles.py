"""A bundle back into a checkpoint: what `xsent-export` wrote, read as weights that training can go on from."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from xsent.bundle import Bundle
from xsent.errors import BundleError, MissingExtraError
from xsent.train.checkpoint import save_checkpoint
from xsent.train.model import Encoder, ModelConfig

CARD, SOURCES = "README.md", "Trained on text from:"


def checkpoint_from_bundle(bundle: Path, out: Path) -> Path:
    """Turn a bundle into a checkpoint.

    int8 weights become the numbers that they stand for; exported again, the table is the same to the byte. A bundle
    has no held-out pairs, so neither has this checkpoint.

    Args:
        bundle: Folder of the bundle, int8 or float32, with any number of layers.
        out: Folder of the checkpoint; an older one there is replaced.

    Returns:
        `out`.

    Raises:
        BundleError: The bundle is missing or damaged, or its graph is not one of `xsent-export`.
        DataError: The checkpoint cannot be written.
        MissingExtraError: onnx is not installed.
    """
    opened = Bundle.open(bundle)
    opened.verify()
    if opened.precision not in ("int8", "float32"):
        raise BundleError(
            f"{bundle}: is {opened.precision}, too coarse to start from; take its checkpoint or an int8 bundle"
        )
    with _readable(opened):
        weights = BundleWeights(opened)
        state = {f"encoder.{name}": weight for name, weight in weights.state()}
        about = {
            "name": opened.name,
            "languages": list(opened.languages),
            "licence": opened.licence,
            "attribution": _attribution(opened),
            "model": asdict(weights.config),
            "bundle": opened.fingerprint,
            "step": 0,
        }
    save_checkpoint(out, about, state, None, [opened.tokenizer_path])
    return out


@contextmanager
def _readable(bundle: Bundle) -> Iterator[None]:
    """Turn whatever an unexpected graph raises into one line."""
    try:
        yield
    except (LookupError, ValueError, RuntimeError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BundleError(f"{bundle.graph_path}: cannot be read back ({reason})") from error


class BundleWeights:
    """The weights of a bundle.

    Attributes:
        config: Shape of its encoder.
    """

    def __init__(self, bundle: Bundle) -> None:
        self._arrays = read_graph(bundle)
        width = self._arrays["table"].shape[1]
        if width > bundle.dim:
            raise ValueError(f"its vectors were cut from {width} to {bundle.dim} numbers; take its checkpoint")
        layers = bundle.num_layers
        self.config = ModelConfig(
            vocab_size=bundle.vocab_size,
            dim=bundle.dim,
            num_layers=layers,
            num_heads=int(self._arrays["split_heads"][2]) if layers else 1,
            ffn_dim=self._arrays["layer0.ffn_in.weight"].shape[1] if layers else 2 * bundle.dim,
            max_length=bundle.max_length,
            norm="post" if "table_norm.weight" in self._arrays else "pre",
        )

    def state(self) -> Iterator[tuple[str, Tensor]]:
        """The weights by their names in the encoder.

        Raises:
            LookupError: One is missing.
            ValueError: One has another shape than the encoder's, or is not a number.
        """
        with torch.device("meta"):  # names and shapes alone
            expected = Encoder(self.config).state_dict()
        for name, weight in expected.items():
            values = self._read(name)
            if values.shape != weight.shape or not np.isfinite(values).all():
                raise ValueError(f"{name} should be finite numbers of shape {list(weight.shape)}")
            yield name, torch.tensor(values)

    def _read(self, name: str) -> NDArray[np.float32]:
        """A weight by its name in the encoder."""
        place = "table" if name == "table.weight" else name.replace("layers.", "layer")
        values = self._arrays[place]
        if values.dtype == np.int8:
            # Exported again, this gives the same bytes: s = a / 127 survives 127 s / 127, though not every float does.
            values = values * self._arrays[f"{place.removesuffix('.weight')}.scales"]
        if ".qkv." in name:  # the scale of the attention scores is folded into the queries
            dim = self.config.dim
            gain = np.ones(3 * dim, np.float32)
            gain[:dim] = (dim // self.config.num_heads) ** -0.5
            values = values / gain
        return values.T if name.startswith("layers.") else values


def read_graph(bundle: Bundle) -> dict[str, NDArray[Any]]:
    """The constants of a bundle's graph by name, as they are stored.

    Raises:
        MissingExtraError: onnx is not installed.
    """
    try:  # not everybody who trains has it
        import onnx
        from onnx import numpy_helper
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{error.name} is not installed; pip install 'xsent[export]'") from error
    # Where the files really are: of weights that are a link, as in an editable install, onnx reads none.
    model = onnx.load(bundle.graph_path.resolve())
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def _attribution(bundle: Bundle) -> list[str]:
    """The sources that the card of a bundle names: whatever is trained from it owes them the same."""
    card = bundle.path / CARD
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    listed = text.partition(SOURCES)[2].strip().partition("\n\n")[0]
    return [line.removeprefix("- ") for line in listed.splitlines()]
