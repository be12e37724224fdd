"""After a kill, a full disk, a read-only or a broken one, at any write of a command, all is as before or as after."""

import json
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import faults
import pytest
from commands import write_lines
from faults import BROKEN, FULL, KILL, LIMIT, READ_ONLY, Fault, Outcome
from toy import write_toy_recipe

from xsent import DataError, LinearClassifier, SearchIndex
from xsent_train.checkpoint import load_checkpoint

EVERY = bool(os.environ.get("XSENT_EVERY_FAULT"))  # else some of each job

TEXT = [f"Anna sees Boris {number} times." if number % 7 else "" for number in range(1, 15)]
OLD = [f"Clara sees David {number} times." for number in range(9)]
SMALL = {"xsent.files.vectors.STEP": 4, "xsent.search.writer.SAVE_EVERY": 4, "xsent.search.lines._BLOCK_LINES": 4}
SMALL |= {"xsent.search.documents._WORTH_COMPACTING": 2}


@dataclass(frozen=True)
class Job:
    """A command, and what it finds; CHECKPOINT stands for that folder."""

    command: str
    before: str = ""  # a command that has made something older
    again: str = ""  # options of the next try
    parts: bool = False  # whether one thing can be there without the others, or the old be gone before the new is there


KEPT = re.compile(r"\.a\.\w+\.part$|\.a\.\w+\.part\.json|notes/\.xsent-notes")  # to go on from
JOBS = [
    Job("xsent encode a.txt --output a.npy", again="--resume"),
    Job("xsent encode a.txt --output a.npy --force", "xsent encode old.txt --output a.npy"),
    Job(
        "xsent encode a.txt --output a.jsonl --force",
        "xsent encode old.txt --output a.jsonl --truncate-dim 8",
        parts=True,
    ),
    Job("xsent encode a.txt --output a.parquet", again="--resume"),
    Job("xsent classify fit a.tsv a.npz --force", "xsent classify fit old.tsv a.npz", parts=True),
    Job("xsent documents fit en=a.txt de=old.txt --output space"),
    Job(
        "xsent documents embed a.txt --language en --fitted space --output a.npy",
        "xsent documents fit en=a.txt --output space",
    ),
    Job("xsent documents align a.txt old.txt --languages en,de"),
    Job("xsent index a.txt x", again="--resume", parts=True),
    Job("xsent index a.txt x --force", "xsent index old.txt x", parts=True),
    Job("xsent index a.txt x --add", "xsent index old.txt x", again="--resume", parts=True),
    Job("xsent notes notes", parts=True),
    Job("xsent notes notes", "xsent notes notes", parts=True),
    Job("xsent notes notes --force", "xsent notes notes", parts=True),
    Job("xsent mine a.txt old.txt"),
    Job("xsent-export CHECKPOINT out --force --name new", "xsent-export CHECKPOINT out", parts=True),
    Job("xsent-train toy/toy.toml --data toy --out run --threads 1", parts=True),
]


class Ground:
    """A folder before and after a job, and the same folder where it suffers a fault."""

    def __init__(self, job: Job, root: Path, model: Path, checkpoint: Path) -> None:
        self._job, self._root, self._model, self._checkpoint = job, root, str(model), str(checkpoint)
        self._write_input(root / "before")
        if job.before:
            assert self._run(root / "before", job.before).code == 0
            self._change(root / "before")
        shutil.copytree(root / "before", root / "after")
        undisturbed = self._run(root / "after", job.command)
        assert undisturbed.code == 0, undisturbed.said
        self.writes = undisturbed.writes
        self._before, self._after = (contents(root / name) for name in ("before", "after"))
        self._hidden = hidden(root / "after")

    def faults(self) -> Iterator[Fault]:
        """All; or kills where something gets its name, and some others."""
        for at, write in enumerate(self.writes, 1):
            event = write.partition(" ")[0]
            some = (at + len(self.writes)) % (384 if event == "sqlite" else 96) == 0
            kinds = [KILL] if event == "sqlite" else [KILL, READ_ONLY, BROKEN]  # it hears errors from the disk alone
            kinds += [FULL] if event in faults.TAKES_ROOM else []
            for kind in kinds:
                if EVERY or (kind == KILL and event == "os.rename") or some:
                    yield Fault(kind, at)
        for size in range(0, 100_000, 1500) if EVERY else (8000,):
            yield Fault(LIMIT, size)

    def suffer(self, fault: Fault) -> None:
        """Run the command with a fault, look around, and run it again."""
        job, folder = self._job, self._root / "faulty"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._root / "before", folder)
        ended = self._run(folder, job.command, fault)
        assert ended.code == -9 if fault.kind == KILL else ended.code in (0, 1), ended
        last = ended.said.rpartition("\n")[0].rpartition("\n")[2]
        assert "Traceback" not in ended.said and (ended.code != 1 or last.startswith("Error: ")), ended
        assert fault.kind not in (FULL, LIMIT) or ended.code == 0 or re.search("make room|another place", last), ended
        self._compare(contents(folder), complete=ended.code == 0)
        suffered = [*ended.writes[fault.at - 1 : fault.at], *ended.writes[-1:]]  # the command may have ended, or not
        removing = any(write.startswith(("os.r", "fsync")) for write in suffered)
        if fault.kind in (FULL, LIMIT) or (fault.kind == BROKEN and not removing):
            assert {name for name in hidden(folder) if not KEPT.match(name)} <= self._hidden, ended
        again = self._run(folder, f"{job.command} {job.again}")
        if "complete, but without these lines" in again.said:
            again = self._run(folder, job.command)
        assert again.code == 0 or (again.code == 1 and ("exists" in again.said or "complete" in again.said)), again
        self._compare(contents(folder), complete=True)
        lost_in_temporary_folder = {name for name in hidden(folder) if name.startswith("xsent-")}
        assert hidden(folder) - lost_in_temporary_folder == self._hidden, ended

    def _compare(self, found: dict[str, object], *, complete: bool) -> None:
        before, after = self._before, self._after
        if complete:
            assert found == after
        elif self._job.parts:
            for name in found.keys() & (before | after).keys():
                assert found[name] in (before.get(name), after.get(name)), name
        else:
            assert found in (before, after)

    def _run(self, folder: Path, command: str, fault: Fault | None = None) -> Outcome:
        words = [self._checkpoint if word == "CHECKPOINT" else word for word in command.split()]
        model = ["--model", self._model] if words[0] == "xsent" else []
        return faults.run(folder, [*words, *model], fault, SMALL)

    @staticmethod
    def _write_input(folder: Path) -> None:
        for name, texts in (("a", TEXT), ("old", OLD)):
            write_lines(make(folder) / f"{name}.txt", texts)
            rows = enumerate(text or "Anna" for text in texts * 2)
            write_lines(folder / f"{name}.tsv", (f"{'ab'[number % 2]}\t{text}" for number, text in rows))
        for number in range(6):
            write_lines(make(folder / "notes") / f"{number}.txt", [f"{OLD[number]}\n\nHenry {number}"])
        write_toy_recipe(make(folder / "toy"), ("steps = 150", "steps = 1"), ("steps = 12", "steps = 1"), minutes=0)

    @staticmethod
    def _change(folder: Path) -> None:
        for number in range(1, 6):
            write_lines(folder / "notes" / f"{number}.txt", [f"{TEXT[number]}\n\nIrina {number}"])
        (folder / "notes" / "0.txt").unlink()


def make(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def hidden(folder: Path) -> set[str]:
    """What nobody asked for: names that begin with a dot and what is inside; temporary folders."""
    names = {re.sub(r"passages-\w+", "passages", path.relative_to(folder).as_posix()) for path in folder.rglob("*")}
    return {name for name in names if "/." in f"/{name}" or name.startswith("xsent-")}


def contents(folder: Path) -> dict[str, object]:
    """What our own readers find in a folder, by name; what belongs to one thing together, of an index each document."""
    found: dict[str, object] = {}
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    files = {name: path for name, path in files.items() if not name.startswith("xsent-")}  # temporary
    for name, path in files.items():
        if path.match("passages-*.db") and not path.parent.name.endswith((".part", ".partial", ".old")):
            found |= documents(path.parent)
        elif path.name == "checkpoint.json" and name not in hidden(folder):
            load_checkpoint(path.parent)
            found[path.parent.name] = {file.name: file.read_bytes() for file in path.parent.iterdir()}
        elif path.suffix in (".npy", ".jsonl", ".parquet") and f"{name}.json" in files:
            found[name] = (path.read_bytes(), files[f"{name}.json"].read_bytes())
        elif name == "a.npz":
            with suppress(DataError):  # the numbers are not those of the note
                LinearClassifier.load(path, fingerprint=json.loads(files["a.json"].read_bytes())["fingerprint"])
                found[name] = (path.read_bytes(), files["a.json"].read_bytes())
        elif name.startswith(("out/", "space/")):
            found[name] = path.read_bytes()
    return found


def documents(folder: Path) -> dict[str, object]:
    index = SearchIndex(folder)
    index.verify()
    # An index of lines grows by saved steps.
    stamps, found = index.documents(), defaultdict(list)
    for passage, vector in index.passages():
        if stamps.get(passage.source) != "":  # complete
            name = passage.source if index.state.lines == 0 else f"line {passage.line}"
            found[f"{folder.name}: {name}"].append((passage[:3], vector.tobytes()))
    return dict(found)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.command)
def test_all_is_as_before_or_as_after(job: Job, tmp_path: Path, mini_bundle: Path, mini_checkpoint: Path) -> None:
    ground = Ground(job, tmp_path, mini_bundle, mini_checkpoint)
    for fault in ground.faults():
        ground.suffer(fault)
