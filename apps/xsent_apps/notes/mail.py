"""Reads e-mail as lines of Markdown, with the standard library."""

import codecs
import re
from collections.abc import Callable
from email import message_from_bytes
from email.message import EmailMessage, Message, MIMEPart
from email.policy import EmailPolicy, default
from functools import lru_cache

from xsent.files.encodings import as_western
from xsent_apps.notes.page import read_page
from xsent_apps.notes.source import Source

_MBOX = re.compile(rb"(?:\A|(?<=\n\n))From [^\n]*\n")  # before each mail
_FIELD = re.compile(rb"[A-Za-z-]+:[ \t]")
_HEAD = re.compile(rb"^(from|to|subject|date|received|mime-version):[ \t]", re.IGNORECASE | re.MULTILINE)
_SENT_FROM = re.compile(
    r"(Sent from my|Von meinem|Gesendet von m|Envoyé de mon|Enviado d|Inviato da|Ver(zonden|stuurd) v|Отправлено с )"
    r".{0,40}$"
)
_PREFIX = re.compile(r"\s*\w{1,9}(\[\d+\])?\s?[:：]\s*")  # of a reply's subject
_FORWARD = re.compile(r"\s*(fwd?|wg|tr|rv|i|enc|doorst|пересл|転送)\s?[:：]", re.IGNORECASE)
# Header line of the mail below a reply, as in Outlook.
_HEAD_LINE = re.compile(r"[^\W\d][^:：]{1,20}[:：]\s|-{4,}|_{8,}")
_NO_ENCODINGS = ("punycode", "idna")  # these encode host names, not text; decoding may take quadratic time
_LONGEST_FIELD = 2000  # characters; the standard library takes quadratic time to parse one
_LONGEST_WROTE = 400  # characters
_DEEPEST = 20  # most levels of nested parts
_UNSURE = ("us-ascii", "utf-8", "iso-8859-1")  # encodings claimed by programs that do not know theirs


class _Part(EmailMessage):
    """A mail, or a part of one. The deepest are read as text: each line is compared with the ends of all parts."""

    depth = 0

    def attach(self, payload: Message | str) -> None:
        """Add a part."""
        assert isinstance(payload, _Part)  # the parser creates nothing else
        payload.depth = self.depth + 1
        super().attach(payload)

    def get_content_type(self) -> str:
        """The kind of the part."""
        return super().get_content_type() if self.depth < _DEEPEST else "text/plain"


class _Policy(EmailPolicy):
    """The standard library's policy with a limit on the length of a field."""

    message_factory = _Part

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        """The name of a field and its text, truncated between words."""
        name, text = super().header_source_parse(sourcelines)
        if len(text) > _LONGEST_FIELD:
            text = text[:_LONGEST_FIELD].rpartition(" ")[0] or text[:_LONGEST_FIELD]
        return name, text

    def header_fetch_parse(self, name: str, value: str) -> str:
        """A field as an object; cached, because the type of a part is read seven times."""
        return _parsed(name, value)


_POLICY = _Policy()
_parsed: Callable[[str, str], str] = lru_cache(maxsize=32)(default.header_fetch_parse)


def is_mail(content: bytes) -> bool:
    """Whether a file begins with the header of a mail."""
    head = content[:10_000].replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    return bool(_FIELD.match(head)) and len({field.lower() for field in _HEAD.findall(head)}) >= 3


def read_mail(content: bytes) -> Source:
    """The text of a mail, without quoted replies and signature, below its subject; the sender is its context."""
    mail = message_from_bytes(content, policy=_POLICY)
    assert isinstance(mail, EmailMessage)
    sender = " ".join(re.sub(r"<[^<>]*>", "", str(mail.get("from", ""))).replace('"', "").split())
    subject = " ".join(str(mail.get("subject", "")).split())
    lines = [(1, f"# {subject}"), (1, "")]
    body = mail.get_body(("plain", "html"))
    if body is not None:  # a part without fields is falsy
        text = _decoded(body)
        if body.get_content_subtype() == "html":
            lines += [(number, f"#{line}" if line[:1] == "#" else line) for number, line in read_page(text).lines]
        else:
            written = list(enumerate(re.split("\r\n|\n|\r", text), 1))
            lines += _own(_without_head(written, subject)) or written
    return Source(lines, [sender])


def read_mbox(content: bytes) -> Source:
    """Many mails in one file; all lines of a mail have the number of its first line."""
    lines = list[tuple[int, str]]()
    first = 1
    for part in _MBOX.split(content.replace(b"\r\n", b"\n")):
        if part.strip():
            mail = read_mail(re.sub(rb"^>(>*From )", rb"\1", part, flags=re.MULTILINE))
            (_, subject), *text = mail.lines
            sender = ", ".join(mail.about)
            lines += [(first, f"{subject} ({sender})" if sender else subject), *((first, line) for _, line in text)]
        first += part.count(b"\n") + 1
    return Source(lines, [])


def _decoded(body: MIMEPart) -> str:
    """The text of a part of a mail; bytes in another encoding than declared are harmless."""
    content = body.get_payload(decode=True)
    assert isinstance(content, bytes)
    charset = body.get_content_charset("utf-8")
    if charset in _UNSURE and (text := as_western(content)):
        return text
    try:
        is_text = codecs.lookup(charset).name not in _NO_ENCODINGS
        return content.decode(charset if is_text else "utf-8", "replace")
    except LookupError:  # an unknown encoding
        return content.decode("utf-8", "replace")


def _without_head(lines: list[tuple[int, str]], subject: str) -> list[tuple[int, str]]:
    """A mail without the header of another mail in it, found by its subject; in a reply, also without that mail."""
    start = 0
    while prefix := _PREFIX.match(subject, start):
        start = prefix.end()
    bare = subject[start:]
    for place, (_, line) in enumerate(lines):
        field = _PREFIX.match(line)
        if not (bare and field and line[field.end() :].strip().endswith(bare)):
            continue
        first = last = place
        while first and _HEAD_LINE.match(lines[first - 1][1]):
            first -= 1
        while last + 1 < len(lines) and _HEAD_LINE.match(lines[last + 1][1]):
            last += 1
        if last - first >= 2:
            return lines[:first] + (lines[last + 1 :] if _FORWARD.match(subject) else [])
    return lines


def _own(lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines that the sender wrote; none in a mail that only quotes."""
    own = list[tuple[int, str]]()
    written = list[tuple[int, bool]]()  # positions of non-empty lines, and whether they announce a quotation
    for number, line in lines:
        if line.rstrip() == "--":
            break
        if _SENT_FROM.match(line):
            continue
        if line.startswith(">"):
            if written and written[-1][1]:
                del own[written.pop()[0] :]
            continue
        if line.strip():
            written.append((len(own), _announces(line)))
        own.append((number, line))
    return own if written else []


def _announces(line: str) -> bool:
    """Whether a line may be "On Monday, 3 May, Anna wrote:" above a quotation."""
    text = line.rstrip()
    return text.endswith(":") and len(text) <= _LONGEST_WROTE and bool(re.search(r"\d", text))
