"""Files of notes as passages."""

from pathlib import Path

from xsent_apps.notes.read import read_passages


def written(folder: Path, name: str, content: str | bytes) -> Path:
    """A file with this content."""
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def read(folder: Path, content: str | bytes, name: str = "a.md") -> list[tuple[int, str, str]]:
    """Lines, texts and contexts of the passages, contexts without the file's name."""
    found = read_passages(written(folder, name, content))
    stem = name.partition(".")[0]
    assert all(context.startswith(stem) for _, _, context in found)
    return [(line, text, context[len(stem) :].removeprefix(", ").removeprefix(" › ")) for line, text, context in found]


def texts(folder: Path, content: str | bytes, name: str = "a.md") -> list[str]:
    """The texts of the passages."""
    return [text for _, text, _ in read(folder, content, name)]
