"""The folder of a run: its checkpoints by stage, and what killed runs left in it."""

import re
from pathlib import Path

from xsent.errors import DataError
from xsent.files import remove_folder, sweep
from xsent.train.checkpoint import read_about
from xsent.train.config import StageConfig
from xsent.train.data.store import Store


def stage_folders(run: Path, stage: StageConfig) -> list[Path]:
    """The checkpoints of a stage, the oldest first."""
    name = re.compile(re.escape(stage.name) + r"-(\d{7,})")
    found = [(match, path) for path in run.glob("checkpoints/*") if (match := name.fullmatch(path.name))]
    return [path for _, path in sorted((int(match[1]), path) for match, path in found)]


def refuse_other_data(run: Path, key: str) -> None:
    """Stop before anything of a run is overwritten whose checkpoints were trained on other data.

    Also sweeps away what killed runs left half-written.
    """
    sweep(run)
    sweep(run / "checkpoints")
    for folder in sorted(run.glob("checkpoints/*")):
        if read_about(folder).get("preparation_key") != key:
            raise DataError(f"{folder} was trained on another corpus or vocabulary; name another --out")


def refuse_other_store(prepared: Path, run: Path, key: str) -> None:
    """Stop before a store that other runs may share is made anew for other data.

    Raises:
        DataError: There is one for other data, outside the run's own folder.
    """
    if prepared != run and (prepared / "store" / "store.json").exists() and Store(prepared / "store").key != key:
        raise DataError(f"{prepared} was prepared for another corpus, vocabulary or languages; name another folder")


def keep_only(path: Path, run: Path, stage: StageConfig) -> None:
    """Delete a stage's other checkpoints."""
    for other in stage_folders(run, stage):
        if other != path:
            remove_folder(other)
