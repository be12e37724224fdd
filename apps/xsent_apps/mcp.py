"""`xsent mcp`: assistants search folders of notes through the Model Context Protocol.

A client can read only the indexed text of a file that a search has found, by the URI from that search. A path from a
client is never opened.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial, wraps
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from xsent import DataError, Hit, SearchIndex, SentenceEncoder, XsentError
from xsent.files.atomic import refuse_links
from xsent_apps.notes.folder import Notes
from xsent_apps.notes.passages import headings_of

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

MOST_HITS = 50
MOST_CHARACTERS = 10_000  # of a query
_MOST_ALIKE = 16  # passages of a line or a page for which similar ones are searched; a whole file may be one line
_EXPECTED = (XsentError, OSError, ValueError)


@dataclass(frozen=True)
class Found:
    """A passage among the results."""

    path: str  # the name of the folder, and of the file in it
    line: int  # of its first line; in a PDF the page
    heading: str
    text: str
    score: float
    close: bool
    uri: str  # for reading the file


class Library:
    """Folders of notes that share an encoder; its methods are what a client can call."""

    def __init__(self, folders: Sequence[Path], encoder: SentenceEncoder, *, max_bytes: int = 20_000_000) -> None:
        self._notes: dict[str, Notes] = {}
        for folder in dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders):
            notes = Notes(folder, max_bytes=max_bytes)
            next(folder.iterdir(), None)  # raises OSError if it cannot be read
            name = folder.name or "root"
            while name in self._notes:
                name += "-2"
            self._notes[name] = notes
        self._encoder = encoder
        self._lock = Lock()  # an index is searched by one thread at a time
        self._problems: dict[str, str] = {}  # reasons why an index could not be brought up to date

    def search(self, query: str, limit: int = 5) -> list[Found]:
        """Find passages of the notes that answer a question or mean the same as the query, in any language, best first.

        If `close` is false, the notes probably contain nothing about it.
        """
        _check_limit(limit)
        if not query.strip() or len(query) > MOST_CHARACTERS:
            raise DataError(f"a query of {len(query):,} characters; expected 1 to {MOST_CHARACTERS:,}, not only spaces")
        with self._lock:
            return self._search([query], limit)[:limit]

    def similar(self, path: str, line: int, limit: int = 5) -> list[Found]:
        """Find passages similar to those at a path and line from `search`, in any language."""
        _check_limit(limit)
        with self._lock:
            before = [hit for hit in self._passages(path) if hit.line <= line]
            if not before:
                raise DataError(f"{path!r}, line {line}: no passage there; use a path and line from search")
            there = [hit.text for hit in before if hit.line == before[-1].line]  # a long line, or a page, has several
            found = self._search(there[:_MOST_ALIKE], limit + len(there), words=False)
        best = dict[tuple[str, int, str], Found]()
        for hit in found:
            best.setdefault((hit.path, hit.line, hit.text), hit)
        return [hit for hit in best.values() if (hit.path, hit.line) != (path, before[-1].line)][:limit]

    def status(self) -> dict[str, Any]:
        """Report which folders are searched, how many files and passages they have, and what could not be read."""
        with self._lock:
            folders = {name: self._about(name, notes) for name, notes in self._notes.items()}
        languages = list(self._encoder.languages)
        return {"folders": folders, "model": self._encoder.bundle.name, "languages": languages}

    def read(self, path: str) -> str:
        """The text of a file as it was indexed: its passages with their line numbers, below their headings.

        Raises DataError if the index has no such file.
        """
        with self._lock:
            passages = self._passages(path)
        lines = []
        context = ""
        for hit in passages:
            if hit.context != context:
                lines.append(f"# {hit.context}")
                context = hit.context
            lines.append(f"{hit.line}: {hit.text}")
        if not lines:
            raise DataError(f"{path!r}: no such note; use a path from search")
        return "\n".join(lines)

    def _search(self, queries: Sequence[str], limit: int, *, words: bool = True) -> list[Found]:
        """The best passages for each of some queries, best first."""
        found = []
        for name, notes in self._notes.items():
            self._update(name, notes)
            for query in queries:
                found += [_found(name, hit) for hit in notes.search(self._encoder, query, limit, words=words)]
        return sorted(found, key=lambda hit: -hit.score)

    def _update(self, name: str, notes: Notes) -> None:
        """Bring an index up to date; if that fails, an older one still answers."""
        self._problems.pop(name, None)
        try:
            notes.update(self._encoder)
        except DataError as error:
            if not notes.index.is_dir():
                raise
            self._problems[name] = str(error)

    def _passages(self, path: str) -> list[Hit]:
        """The passages of a file in an index; none if there is no such file."""
        folder, _, name = path.partition("/")
        notes = self._notes.get(folder)
        index = _open_index(notes) if notes else None
        return index.document(name) if index else []

    def _about(self, name: str, notes: Notes) -> dict[str, Any]:
        index = _open_index(notes)
        return {
            "folder": str(notes.folder),
            "files": len(index.documents()) if index else 0,
            "passages": len(index) if index else 0,
            "unreadable": len(notes.skipped),
            "problem": self._problems.get(name) or ("" if index else "not indexed yet; the first search indexes it"),
        }


def _open_index(notes: Notes) -> SearchIndex | None:
    """The index of a folder, if there is one."""
    refuse_links(notes.index)
    return SearchIndex(notes.index) if notes.index.is_dir() else None


def are_clean(folders: Sequence[Path]) -> bool:
    """Whether the indexes of folders have cleaned texts, see `xsent notes --clean`.

    Raises DataError if only some of them do.
    """
    clean = set[bool]()
    for index in filter(None, (_open_index(Notes(folder)) for folder in folders)):
        with closing(index):
            clean.add(bool(index.state.clean))
    if len(clean) > 1:
        raise DataError("only some of these folders were indexed with --clean; run xsent notes --force for the others")
    return clean == {True}


def _check_limit(limit: int) -> None:
    if not 0 < limit <= MOST_HITS:
        raise DataError(f"limit {limit}: expected 1 to {MOST_HITS}")


def _found(folder: str, hit: Hit) -> Found:
    path = f"{folder}/{hit.source}"
    return Found(
        path, hit.line, headings_of(hit.context), hit.text, round(hit.score, 4), hit.close, f"notes:///{quote(path)}"
    )


def create_server(library: Library) -> "MCPServer[Any]":
    """A server with the tools `search`, `similar` and `status`, and with found files as resources."""
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
    from mcp.server.mcpserver.resources import FunctionResource
    from mcp_types import ToolAnnotations

    def read(path: str) -> str:
        try:
            return library.read(path)
        except _EXPECTED as error:
            raise ResourceNotFoundError(str(error)) from None

    def tool(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*arguments: object, **options: object) -> Any:  # noqa: ANN401  what the method returns
            try:
                answer = method(*arguments, **options)
            except _EXPECTED as error:
                raise ToolError(str(error)) from None
            for hit in answer if isinstance(answer, list) else ():
                server.add_resource(FunctionResource(uri=hit.uri, name=hit.path, fn=partial(read, hit.path)))
            return answer

        return call

    server = MCPServer[Any](
        "xsent", version=version("xsent"), log_level="ERROR", warn_on_duplicate_resources=False, subscriptions=False
    )
    for method in (library.search, library.similar, library.status):
        server.add_tool(tool(method), annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    return server
