"""`xsent-train filter`: a corpus without the pairs that are not what they claim to be."""

import errno
import gzip
import lzma
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from xsent.commands.options import JsonOption, split_names
from xsent.errors import DataError
from xsent.files import atomic_file, existing
from xsent.terminal import Progress, format_table, one_line_errors, print_json
from xsent.threads import available_cpus
from xsent.train.data.filtering import LEFT_OUT, Reason, Rules, Verdict, judge
from xsent.train.data.languages import unchecked


class _Tally(Counter[Verdict]):
    """What became of the lines of a corpus: how many got each verdict."""

    @property
    def bad(self) -> Counter[str]:
        """Lines that hold no pair, by what is bad about them."""
        return Counter({reason: count for (language, reason), count in self.items() if not language})

    @property
    def left_out(self) -> int:
        return sum(count for (_, reason), count in self.items() if reason == LEFT_OUT)

    @property
    def languages(self) -> dict[str, Counter[str]]:
        """Verdicts on the other pairs by language, the largest first; "" are those kept."""
        found = defaultdict[str, Counter[str]](Counter)
        for (language, reason), count in self.items():
            if language and reason != LEFT_OUT:
                found[language][reason] = count
        return dict(sorted(found.items(), key=lambda item: (-item[1].total(), item[0])))

    @property
    def judged(self) -> Counter[str]:
        return sum(self.languages.values(), Counter())

    def rows(self) -> list[dict[str, object]]:
        return [
            {
                "language": language,
                "pairs": verdicts.total(),
                "kept": verdicts[""],
                "kept %": 100 * verdicts[""] / max(verdicts.total(), 1),
                **{reason.value: verdicts[reason] for reason in Reason},
            }
            for language, verdicts in [*self.languages.items(), ("total", self.judged)]
        ]

    def notes(self) -> list[str]:
        notes = [f"bad lines, {reason}: {count:,}" for reason, count in self.bad.most_common()]
        if self.left_out:
            notes.append(f"pairs in other languages, left out: {self.left_out:,}")
        if names := unchecked(self.languages):
            notes.append(
                f"unknown to the language identifier, so that their translations went unchecked: {', '.join(names)}"
            )
        return notes


@one_line_errors()
def filter_pairs(
    pairs: Annotated[
        str,
        typer.Argument(
            help="Source, language, English, translation, tab-separated; .gz and .xz too; - is standard input."
        ),
    ],
    out: Annotated[Path, typer.Argument(help="A new file for the pairs kept; packed if it ends in .gz or .xz.")],
    languages: Annotated[
        str | None, typer.Option(help="Keep only these: codes with commas between; default: all in the file.")
    ] = None,
    min_words: Annotated[int, typer.Option(help="Words of a side, at least.")] = Rules.min_words,
    max_words: Annotated[int, typer.Option(help="Words of a side, at most.")] = Rules.max_words,
    max_ratio: Annotated[
        float, typer.Option(help="How many times as long as the other a side may be.")
    ] = Rules.max_ratio,
    min_script: Annotated[
        float, typer.Option(help="Share of a side's letters in a script of its language, at least.")
    ] = Rules.min_script,
    max_odds: Annotated[
        float, typer.Option(help="How many times as probable as the claimed language another may be.")
    ] = Rules.max_odds,
    rejected: Annotated[Path | None, typer.Option(help="A new file for the lines removed, after their reason.")] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Processes, 150 MB each; default: every CPU allowed.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove pairs that are no sentence and its translation in the two languages they claim, in constant memory.

    A pair goes for the first of these that holds: both sides are the same; a side is too short or too long; one is much
    longer than the other; a side is in another script; a side is clearly in another language. Duplicates stay.

    Example: xsent-train filter crawled.tsv.xz pairs.tsv.xz --languages fr,de --rejected removed.tsv
    """
    rules = Rules(min_words, max_words, max_ratio, min_script, max_odds)
    wanted = frozenset(split_names(languages)) if languages else frozenset[str]()
    if rejected is not None and rejected.resolve() == out.resolve():
        raise ValueError(f"--rejected {rejected}: is the file for the pairs kept; name another")
    tally = _Tally()
    with ExitStack() as stack:
        keep = stack.enter_context(_new_file(out, force))
        reject = stack.enter_context(_new_file(rejected, force)) if rejected else None
        progress = stack.enter_context(Progress("lines"))
        for line, verdict in judge(pairs, rules, wanted, processes=processes or available_cpus()):
            tally[verdict] += 1
            if not verdict.reason:
                keep(line)
            elif reject and verdict.reason != LEFT_OUT:
                reject(verdict.reason.encode() + b"\t" + line)
            progress.advance()
        kept = tally.judged[""]
        if not kept:
            raise DataError(_nothing_kept(pairs, wanted, tally))
    if as_json:
        report = {"kept": kept, "rows": tally.rows()[:-1], "bad": tally.bad, "left_out": tally.left_out}
        print_json(report)
        return
    typer.echo("\n".join([format_table(tally.rows()), *tally.notes()]), err=True)


def _nothing_kept(pairs: str, wanted: frozenset[str], tally: _Tally) -> str:
    reasons = tally.judged + tally.bad + Counter({f"not in {', '.join(sorted(wanted))}": tally.left_out})
    if not reasons:
        return f"{pairs}: empty; expected source, language, English, translation"
    listed = ", ".join(f"{reason}: {count:,}" for reason, count in reasons.most_common(5))
    return f"{pairs}: no pair kept ({listed}); nothing written"


@contextmanager
def _new_file(path: Path, force: bool) -> Iterator[Callable[[bytes], object]]:
    """Write to a file that appears once it is complete, packed as its name says."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder; expected a file", str(path))
    if path.exists() and not force:
        raise existing(path)
    with atomic_file(path) as file:
        if path.suffix == ".gz":  # no name and time inside: the same pairs make the same file
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                yield packed.write
        elif path.suffix == ".xz":
            with lzma.LZMAFile(file, "wb", preset=2) as packed:
                yield packed.write
        else:
            yield file.write
