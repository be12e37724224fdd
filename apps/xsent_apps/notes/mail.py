"""Mails as lines of Markdown, with the standard library."""

import re
from email import message_from_bytes, policy
from email.message import EmailMessage, MIMEPart

from xsent_apps.notes.page import read_page
from xsent_apps.notes.source import Source

_MBOX = re.compile(rb"(?:\A|(?<=\n\n))From [^\n]*\n")  # before each mail
_FIELD = re.compile(rb"[A-Za-z-]+:[ \t]")
_HEAD = re.compile(rb"^(from|to|subject|date|received|mime-version):[ \t]", re.IGNORECASE | re.MULTILINE)
_WROTE = re.compile(r".{0,200}?\d.{0,200}:\s*$")  # "On Monday, 3 May, Anna wrote:" above a quotation
_SENT_FROM = re.compile(
    r"(Sent from my|Von meinem|Gesendet von m|Envoyé de mon|Enviado d|Inviato da|Verzonden v).{0,40}$"
)


def is_mail(content: bytes) -> bool:
    """Whether a file begins with the head of a mail."""
    head = content[:10_000].replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    return bool(_FIELD.match(head)) and len({field.lower() for field in _HEAD.findall(head)}) >= 3


def read_mail(content: bytes) -> Source:
    """The text of a mail, without quoted replies and signature, below its subject; the sender names it."""
    mail = message_from_bytes(content, policy=policy.default)
    assert isinstance(mail, EmailMessage)
    sender = " ".join(re.sub(r"<.*?>", "", str(mail.get("from", ""))).replace('"', "").split())
    subject = " ".join(str(mail.get("subject", "")).split())
    lines = [(1, f"# {subject}"), (1, "")]
    if body := mail.get_body(("plain", "html")):
        text = _decoded(body)
        if body.get_content_subtype() == "html":
            lines += read_page(text).lines
        else:
            written = list(enumerate(re.split("\r\n|\n|\r", text), 1))
            lines += _own(written) or written
    return Source(lines, [sender])


def read_mbox(content: bytes) -> Source:
    """Many mails in one file; all lines of a mail have the number of its first one."""
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
    """The text of a part of a mail; bytes of another encoding than it says do no harm."""
    content = body.get_payload(decode=True)
    assert isinstance(content, bytes)
    try:
        return content.decode(body.get_content_charset("utf-8"), "replace")
    except LookupError:  # an encoding that nobody knows
        return content.decode("utf-8", "replace")


def _own(lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines that the sender has written; none in a mail that only quotes."""
    own = list[tuple[int, str]]()
    for number, line in lines:
        if line.rstrip() == "--":
            break
        if _SENT_FROM.match(line):
            continue
        if line.startswith(">"):
            if own and _WROTE.match(own[-1][1]):
                own[-1] = (own[-1][0], "")
            continue
        own.append((number, line))
    return own if any(line.strip() for _, line in own) else []
