"""The files of a folder and their index."""

import os
import stat
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from xsent import DataError, Document, FingerprintError, Hit, SearchIndex, SentenceEncoder, XsentError, update_index
from xsent.errors import find_extra
from xsent.files.atomic import as_write_error, recover, refuse_links
from xsent_apps.notes.read import READERS, kind_of, read_passages
from xsent_apps.notes.source import Remarks

INDEX = ".xsent-notes"  # default name of the index, in the folder itself
READING = "23"  # version of the rules that turn files into passages; a change makes all files be read again


class Notes:
    """The files of a folder and their index; hidden files and folders, links and other kinds of files are ignored."""

    def __init__(self, folder: Path, index: Path | None = None, *, max_bytes: int = 20_000_000) -> None:
        if not folder.is_dir():
            raise DataError(f"{folder}: not a folder; expected one with notes, then a query")
        self.folder = folder
        self.index = index or folder / INDEX
        refuse_links(self.index)
        self._max_bytes = max_bytes
        self._opened: SearchIndex | None = None  # unless the last update changed the index
        self._begin()

    def _begin(self) -> None:
        self.skipped: dict[str, str] = {}  # files that the last update could not read, and why
        self.newly_skipped: list[str] = []  # those not known from an earlier update
        self.remarks = Remarks()  # on the files that the last update read
        self.ignored = Counter[str]()  # files of other kinds, by suffix

    def update(self, encoder: SentenceEncoder, *, force: bool = False, show_progress_bar: bool | None = False) -> int:
        """Index new and changed files and drop removed ones; return their number.

        After a kill, the next update does the rest. Raises DataError if the index, or something in it, is a link, and
        MissingExtraError without sentencex, which cuts long passages.
        """
        find_extra("apps", "sentencex")  # here, not at the first long passage of each file
        self._begin()
        refuse_links(self.index)
        recover(self.index)
        self._close()
        is_new = force or not self.index.is_dir() or not any(self.index.iterdir())
        known: dict[str, str] = {}
        if not is_new:
            with _advise_force(DataError):
                self._opened = SearchIndex(self.index)
                known = self._opened.documents()
            if self._opened.state.lines:
                raise DataError(f"{self.index}: an index of lines, from xsent index; choose another --index")
        stamps = dict(self._files())
        changed = []
        for name, stamp in stamps.items():
            # A file that could not be read has an empty stamp; if it still cannot be read, the index is not changed.
            if known.get(name) != stamp and (known.get(name) != "" or self._read(name, stamp).stamp):
                changed.append(name)
        removed = known.keys() - stamps.keys()
        if not (changed or removed or is_new):
            return 0
        self._close()
        self.remarks = Remarks()  # all of these are read again
        skipped_before = len(self.skipped)
        documents = _Reading(changed, lambda name: self._read(name, stamps[name]))
        resume = "choose another place with --index, or make room, and run it again to continue"
        with as_write_error(self.index, resume), _advise_force(FingerprintError):
            update_index(
                self.index, documents, encoder, remove=removed, force=force, show_progress_bar=show_progress_bar
            )
        self.newly_skipped = [name for name in self.skipped if is_new or name in changed]
        return len(changed) + len(removed) - (len(self.skipped) - skipped_before)

    def search(
        self, encoder: SentenceEncoder, query: str, k: int = 5, *, words: bool = True, least: float | None = None
    ) -> list[Hit]:
        """Find the best passages for a query in the index as of the last update."""
        refuse_links(self.index)
        if not self.index.is_dir():
            raise DataError(f"{self.index}: no index yet; run again without --no-update")
        with _advise_force(DataError, FingerprintError):
            self._opened = self._opened or SearchIndex(self.index)
            return self._opened.search(encoder, [query], k, words=words, least=least)[0]

    def size(self) -> tuple[int, int]:
        """Number of files in the index, and of their passages."""
        self._opened = self._opened or SearchIndex(self.index)
        return sum(map(bool, self._opened.documents().values())), len(self._opened)

    def _close(self) -> None:
        if self._opened:
            self._opened.close()
            self._opened = None

    def _files(self) -> Iterator[tuple[str, str]]:
        """Yield the names of files within the folder, and a stamp that changes when the file does."""

        def unread(error: OSError) -> None:
            reason = f"{error.filename}: cannot be read ({error.strerror})"
            if error.filename == str(self.folder):  # otherwise the index would lose all of its files
                raise DataError(reason) from error
            self.skipped.setdefault(f"{error.filename}/", reason)

        for parent, folders, names in os.walk(self.folder, onerror=unread):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for path in (Path(parent, name) for name in sorted(names) if not name.startswith(".")):
                try:
                    found = self._state(path)
                except PermissionError as error:  # a folder that can be listed, but not entered
                    unread(PermissionError(error.errno, error.strerror, parent))
                    break
                if found is None or not stat.S_ISREG(found.st_mode):
                    continue
                if kind_of(path) not in READERS:
                    self.ignored[path.suffix.lower()] += 1
                    continue
                name = path.relative_to(self.folder).as_posix()
                if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
                    reason = "its name has control characters or is not Unicode; rename it"
                    self.skipped[name] = f"{str(path)!a}: {reason}"
                    continue
                yield name, f"{found.st_size} {found.st_mtime_ns} {READING}"

    def _state(self, path: Path) -> os.stat_result | None:
        """The state of a file; None if it has just been removed, or its disk does not answer."""
        try:
            return path.lstat()
        except PermissionError:
            raise
        except FileNotFoundError:
            return None
        except OSError as error:
            self.skipped[path.relative_to(self.folder).as_posix()] = f"{path}: cannot be read ({error.strerror})"
            return None

    def _read(self, name: str, stamp: str) -> Document:
        """Read a file as a document; an unreadable one is empty and has no stamp, so that it is tried again."""
        path = self.folder / name
        size = int(stamp.split()[0])
        try:
            if size > self._max_bytes:
                raise DataError(f"{path}: {size:,} bytes, more than --max-bytes {self._max_bytes:,}")
            found = read_passages(path, self.remarks)
        except XsentError as error:
            self.skipped[name] = str(error)
            return Document(name, "", [])
        if not found and kind_of(path) == ".pdf":
            self.skipped[name] = f"{path}: its pages have no text; if it is a scan, run text recognition (OCR) on it"
        return Document(name, stamp, found)


@dataclass(frozen=True)
class _Reading:
    """Files that are read one at a time, while they are indexed."""

    names: list[str]
    read: Callable[[str], Document]

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Document]:
        return map(self.read, self.names)


@contextmanager
def _advise_force(*errors: type[XsentError]) -> Iterator[None]:
    """Suggest a rebuild in these errors of an index."""
    try:
        yield
    except errors as error:
        advice = "" if "--force" in str(error) else "; --force rebuilds it"
        raise type(error)(f"{error}{advice}") from None
