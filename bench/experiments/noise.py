"""What noise costs that mails, chats, logs, scans and exports add: docs/lab/noise.md."""

import random
import re
import unicodedata
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from xsent.cli.options import split_names
from xsent.cli.terminal import one_line_errors
from xsent.encoder import SentenceEncoder, UnknownTextWarning
from xsent.files.text import read_fields
from xsent.precision import Vectors
from xsent_bench.report import Table

Noise = Callable[[str, random.Random], str]

WORD = re.compile(r"\w+")
INVISIBLE = ("\u00ad", "\u200b", "\u200d", "\u2060")
ENTITIES = {"&": "&amp;", '"': "&quot;", "'": "&#39;", " ": "&nbsp;"}
LIGATURES = {"ffi": "ﬃ", "fi": "ﬁ", "fl": "ﬂ"}
WIDE = {code: code + 0xFEE0 for code in range(ord("!"), ord("~") + 1)}
CURLED = {"'": "’", '"': "”", "-": "–"}
RED, GREEN, PLAIN = "\x1b[1;31m", "\x1b[32m", "\x1b[0m"
EMOJI = ("😀", "👍", "🙏", "❤️", "😂", "🎉")


def _inside(text: str, seeded: random.Random, marks: Sequence[str]) -> str:
    """A mark inside of each word of four letters or more."""

    def broken(match: re.Match[str]) -> str:
        word = match.group()
        cut = seeded.randrange(1, len(word)) if len(word) > 3 else 0
        return word[:cut] + (seeded.choice(marks) if cut else "") + word[cut:]

    return WORD.sub(broken, text)


def _around_a_word(text: str, seeded: random.Random, before: str, after: str) -> str:
    words = text.split(" ")
    place = seeded.randrange(len(words))
    words[place] = before + words[place] + after
    return " ".join(words)


def _one_in_ten(text: str, seeded: random.Random, change: Callable[[str, int], str]) -> str:
    """Change a letter of ten, at least one."""
    letters = [place for place, sign in enumerate(text) if sign.isalpha()]
    for place in sorted(seeded.sample(letters, min(len(letters), 1 + len(letters) // 10)), reverse=True):
        text = text[:place] + change(text, place) + text[place + 1 :]
    return text


def _encoded(text: str) -> str:
    """Quoted-printable that nobody decoded, in lines of at most 40 characters."""
    signs = [f"={byte:02X}" if byte > 126 or byte == 61 else chr(byte) for byte in text.encode()]
    lines = [""]
    for sign in signs:
        if len(lines[-1] + sign) > 40:
            lines.append("")
        lines[-1] += sign
    return "=\n".join(lines)


def _mapped(text: str, table: Mapping[str, str]) -> str:
    for plain, noisy in table.items():
        text = text.replace(plain, noisy)
    return text


def _hyphenated(text: str, seeded: random.Random) -> str:
    """A word in three is cut at the end of a line."""
    return WORD.sub(lambda m: m[0][:3] + "-\n" + m[0][3:] if len(m[0]) > 6 and seeded.random() < 0.34 else m[0], text)


def _two(seeded: random.Random, most: int) -> str:
    return f"{seeded.randint(1, most):02}"


KINDS: dict[str, Noise] = {
    "none": lambda text, seeded: text,
    "soft hyphens, zero width": lambda text, seeded: _inside(text, seeded, INVISIBLE),
    "HTML entities": lambda text, seeded: "".join(f"&#{ord(c)};" if ord(c) > 127 else ENTITIES.get(c, c) for c in text),
    "HTML tags": lambda text, seeded: f'<p class="msg">{_around_a_word(text, seeded, "<b>", "</b>")}<br/></p>',
    "quoted-printable": lambda text, seeded: _encoded(text),
    "UTF-8 read as Latin-1": lambda text, seeded: text.encode().decode("latin-1"),
    "quote marks of mails": lambda text, seeded: f"> > {text}",
    "repeated punctuation": lambda text, seeded: text + seeded.randint(2, 5) * text[-1] * (not text[-1].isalnum()),
    "repeated letters": lambda text, seeded: _one_in_ten(text, seeded, lambda t, place: t[place] * 4),
    "capitals": lambda text, seeded: text.upper(),
    "decomposed accents": lambda text, seeded: unicodedata.normalize("NFD", text),
    "full-width letters": lambda text, seeded: text.translate(WIDE),
    "hyphens at line ends": _hyphenated,
    "Markdown marks": lambda text, seeded: f"- [ ] {_around_a_word(text, seeded, '**', '**')}",
    "a Markdown link": lambda text, seeded: _around_a_word(text, seeded, "[", "](https://example.org/a?b=12)"),
    "an address at the end": lambda text, seeded: f"{text} https://t.co/x7Gh2kQ9",
    "emoji": lambda text, seeded: f"{text} {seeded.choice(EMOJI)}{seeded.choice(EMOJI)}",
    "typing errors": lambda text, seeded: _one_in_ten(text, seeded, lambda t, place: seeded.choice(("", "x"))),
    "double spaces, tabs": lambda text, seeded: "\t" + text.replace(" ", "  \t"),
    "control characters": lambda text, seeded: _inside(text, seeded, ("\x00", "\x08", "\x1b", "\x7f")),
    "ANSI colours": lambda text, seeded: RED + _around_a_word(text, seeded, PLAIN, GREEN) + PLAIN,
    "ligatures of scans": lambda text, seeded: _mapped(text, LIGATURES),
    "curly quotes, dashes": lambda text, seeded: "“" + _mapped(text, CURLED) + "”",
    "line numbers": lambda text, seeded: f"{seeded.randrange(1, 400)}: {text}",
    "time stamps": lambda text, seeded: f"[2024-05-{_two(seeded, 28)} 09:{_two(seeded, 59)}:07,113] INFO {text}",
    "chat heads": lambda text, seeded: f"{_two(seeded, 28)}.03.24, 17:{_two(seeded, 59)} - Sara: {text}",
}


@one_line_errors()
def noise(
    folder: Annotated[Path, typer.Argument(help="A folder with en-XX.tsv, such as Tatoeba's: English, translation.")],
    bundle: Annotated[Path | None, typer.Option(help="A bundle; default: the built-in one.")] = None,
    languages: Annotated[str, typer.Option(help="Languages of the noisy texts, commas between.")] = "fr,de,pt,ru",
    lines: Annotated[int, typer.Option(min=2, help="Pairs of each language.")] = 200,
) -> None:
    """Measure what noise of mails, chats, logs, scans and exports costs, as it is and with --clean.

    P@1 of noisy sentences, whose translations are looked for among clean ones in English; a table in Markdown.
    """
    warnings.simplefilter("ignore", UnknownTextWarning)  # some kinds are not far from another language
    codes = split_names(languages)
    plain, clean = (SentenceEncoder(bundle, clean=clean) for clean in (False, True))
    ways = {
        "": partial(plain.encode, on_long="split"),
        ", --clean": partial(clean.encode, on_long="split"),
    }
    texts = {}
    english = {}
    for language in codes:
        pairs = list(islice(read_fields(folder / f"en-{language}.tsv", 2, "English, translation"), lines))
        texts[language] = [translation for _, translation in pairs]
        english[language] = plain.encode([source for source, _ in pairs], on_long="split")
    rows = []
    first: list[float] = []
    for kind, change in KINDS.items():
        shares = [
            100 * float(np.mean([_found(encode, texts[code], english[code], change) for code in codes]))
            for encode in ways.values()
        ]
        first = first or shares
        figures = [(f"{share:.1f}", f"{start - share:+.1f}") for start, share in zip(first, shares, strict=True)]
        rows.append([kind, *chain.from_iterable(figures)])
    headings = [f"{figure}{way}" for way in ways for figure in ("P@1", "loss")]
    typer.echo(Table(["noise", *headings], rows).markdown())


def _found(encode: Callable[..., Vectors], texts: Sequence[str], english: Vectors, noise: Noise) -> float:
    """Share of noisy texts whose nearest English sentence is their own, or one of the same words."""
    seeded = random.Random(1)
    vectors = encode([noise(text, seeded) for text in texts])
    nearest = english[(vectors @ english.T).argmax(axis=1)]
    return float((nearest == english).all(axis=1).mean())


if __name__ == "__main__":
    typer.run(noise)
