"""The sentences of a call in tasks for threads."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic
from typing import Any, TypeAlias, TypeVar, cast

from xsent.errors import not_text

# Sentences per task. The more there are, the more have equally many tokens and run together; a stream
# begins with few, so that its first vectors come soon.
FEWEST, _MOST = 16, 512
_MOST_TEXT = 1 << 16  # characters per task, so that memory does not grow with the length of the texts
_PATIENCE = 0.5  # seconds after which the next sentence of a stream completes a task

Item = TypeVar("Item")
Task: TypeAlias = tuple[int, list[Item], list[str]]  # number of its first sentence, items, their sentences


def each_sentence(sentences: Any) -> Iterable[str]:  # noqa: ANN401  validates caller input
    """The sentences of a collection. Raises TypeError if iterating it would give something else."""
    names = getattr(sentences, "column_names", getattr(sentences, "columns", None))
    if names is not None:  # pandas, Arrow, Polars: iterating gives the names of the columns, or whole columns
        listed = ", ".join(map(str, names))
        raise TypeError(f"got a table ({type(sentences).__name__}); pass the column with the texts, one of {listed}")
    if isinstance(sentences, Mapping):
        raise TypeError("got a dict, whose keys would be encoded; pass list(texts.values())")
    if hasattr(sentences, "to_pylist"):  # Arrow, whose items are not str
        return cast(Iterable[str], sentences.to_pylist())
    if not isinstance(sentences, Iterable) or getattr(sentences, "shape", None) == ():
        raise TypeError(f"got {sentences!r:.80}; expected a sentence or sentences: a str, or a list of them")
    return sentences


def each_text(texts: Any) -> Iterable[str]:  # noqa: ANN401
    """The same for an argument that cannot be one text, whose letters would be taken for texts."""
    if isinstance(texts, str | bytes):
        raise TypeError(f"expected a list, got one {type(texts).__name__}; put it in a list")
    return each_sentence(texts)


def text_list(texts: Iterable[str], name: str = "text") -> list[str]:
    """The texts of a list, or of a column of pandas, Polars or Arrow. Raises TypeError if one of them is not a str."""
    found = list(each_text(texts))
    for number, text in enumerate(found, 1):
        if not isinstance(text, str):
            raise TypeError(f"{name} {number} (counted from 1): {not_text(text)}")
    return found


def tasks(
    items: Iterable[Item],
    text: Callable[[Item], str] | None = None,
    first: int = 0,
    *,
    threads: int,
    total: int = 0,
) -> Iterator[Task[Item]]:
    """The tasks for threads; without a `total`, those of a stream, which grow with what has been read."""
    count = 4 * threads if threads > 1 else 1  # several per thread, because those with longer sentences take longer
    size, begun, length = 0, monotonic(), 0
    chosen: list[Item] = []
    sentences: list[Any] = []
    for read, item in enumerate(items, 1):
        size = size or min(max((total or read) // count, FEWEST), _MOST)
        sentences.append(item if text is None else text(item))
        chosen.append(item)
        length += len(sentences[-1]) if isinstance(sentences[-1], str) else 0  # others are refused later
        waits = not total and monotonic() - begun > _PATIENCE
        if len(chosen) == size or length > _MOST_TEXT or waits:
            yield first, chosen, sentences
            first += len(chosen)
            size, begun, length, chosen, sentences = 0, monotonic(), 0, [], []
    if chosen:
        yield first, chosen, sentences
