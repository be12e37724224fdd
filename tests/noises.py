"""What emails, chats, logs, scans and exports add to a text, made by rules."""

import random
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence

Noise = Callable[[str, random.Random], str]

WORD = re.compile(r"\w+")
INVISIBLE = ("\u00ad", "\u200b", "\u200d", "\u2060")
ENTITIES = {"&": "&amp;", '"': "&quot;", "'": "&#39;", " ": "&nbsp;"}
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
    "repeated letters": lambda text, seeded: _one_in_ten(text, seeded, lambda t, place: t[place] * 4),
    "capitals": lambda text, seeded: text.upper(),
    "decomposed accents": lambda text, seeded: unicodedata.normalize("NFD", text),
    "full-width letters": lambda text, seeded: text.translate(WIDE),
    "hyphens at line ends": _hyphenated,
    "Markdown marks": lambda text, seeded: f"- [ ] {_around_a_word(text, seeded, '**', '**')}",
    "a Markdown link": lambda text, seeded: _around_a_word(text, seeded, "[", "](https://example.org/a?b=12)"),
    "an address at the end": lambda text, seeded: f"{text} https://t.co/x7Gh2kQ9",
    "emoji": lambda text, seeded: f"{text} {seeded.choice(EMOJI)}{seeded.choice(EMOJI)}",
    "double spaces, tabs": lambda text, seeded: "\t" + text.replace(" ", "  \t"),
    "control characters": lambda text, seeded: _inside(text, seeded, ("\x00", "\x08", "\x1b", "\x7f")),
    "ANSI colours": lambda text, seeded: RED + _around_a_word(text, seeded, PLAIN, GREEN) + PLAIN,
    "curly quotes, dashes": lambda text, seeded: "“" + _mapped(text, CURLED) + "”",
    "line numbers": lambda text, seeded: f"{seeded.randrange(1, 400)}: {text}",
    "time stamps": lambda text, seeded: f"[2024-05-{_two(seeded, 28)} 09:{_two(seeded, 59)}:07,113] INFO {text}",
    "chat heads": lambda text, seeded: f"{_two(seeded, 28)}.03.24, 17:{_two(seeded, 59)} - Sara: {text}",
}
