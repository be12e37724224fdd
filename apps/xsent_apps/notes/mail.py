"""Mails as lines of Markdown, with the standard library."""

import re
from email import message_from_bytes, policy
from email.message import EmailMessage, MIMEPart

from xsent_apps.notes.page import read_page
from xsent_apps.notes.source import Source, as_western

_MBOX = re.compile(rb"(?:\A|(?<=\n\n))From [^\n]*\n")  # before each mail
_FIELD = re.compile(rb"[A-Za-z-]+:[ \t]")
_HEAD = re.compile(rb"^(from|to|subject|date|received|mime-version):[ \t]", re.IGNORECASE | re.MULTILINE)
_WROTE = re.compile(r".{0,200}?\d.{0,200}:\s*$")  # "On Monday, 3 May, Anna wrote:" above a quotation
_SENT_FROM = re.compile(
    r"(Sent from my|Von meinem|Gesendet von m|Envoyé de mon|Enviado d|Inviato da|Ver(zonden|stuurd) v|Отправлено с )"
    r".{0,40}$"
)
_PREFIX = re.compile(r"\s*\w{1,9}(\[\d+\])?\s?[:：]\s*")  # of an answer's subject
_FORWARD = re.compile(r"\s*(fwd?|wg|tr|rv|i|enc|doorst|пересл|転送)\s?[:：]", re.IGNORECASE)
_HEAD_LINE = re.compile(r"[^\W\d][^:：]{1,20}[:：]\s|-{4,}|_{8,}")  # of a mail below an answer, as Outlook puts it
_UNSURE = ("us-ascii", "utf-8", "iso-8859-1")  # encodings that programs name which do not know theirs


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
            lines += [(number, f"#{line}" if line[:1] == "#" else line) for number, line in read_page(text).lines]
        else:
            written = list(enumerate(re.split("\r\n|\n|\r", text), 1))
            lines += _own(_without_head(written, subject)) or written
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
    charset = body.get_content_charset("utf-8")
    if charset in _UNSURE and (text := as_western(content)):
        return text
    try:
        return content.decode(charset, "replace")
    except LookupError:  # an encoding that nobody knows
        return content.decode("utf-8", "replace")


def _without_head(lines: list[tuple[int, str]], subject: str) -> list[tuple[int, str]]:
    """A mail without the head of another one, known by its subject, and without that one if it is answered."""
    bare = subject
    while prefix := _PREFIX.match(bare):
        bare = bare[prefix.end() :]
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
    """The lines that the sender has written; none in a mail that only quotes."""
    own = list[tuple[int, str]]()
    for number, line in lines:
        if line.rstrip() == "--":
            break
        if _SENT_FROM.match(line):
            continue
        if line.startswith(">"):
            last = next((place for place in range(len(own) - 1, -1, -1) if own[place][1].strip()), None)
            if last is not None and _WROTE.match(own[last][1]):
                del own[last:]
            continue
        own.append((number, line))
    return own if any(line.strip() for _, line in own) else []
