"""Reads email as lines of Markdown, with the standard library."""

import binascii
import re
from collections.abc import Callable, Iterable
from email import message_from_bytes
from email.message import EmailMessage, Message
from email.policy import EmailPolicy, default
from functools import lru_cache
from itertools import compress, groupby, pairwise

from xsent import DataError
from xsent.errors import in_one_line
from xsent.files.encodings import declared_encoding, decoded
from xsent_apps.notes.page import read_page
from xsent_apps.notes.replies import RULER, Lines, sent_lines
from xsent_apps.notes.source import Source

# The line before each email of a mailbox: its sender and its date, then a field. A sentence may begin with "From", too.
_MBOX = re.compile(
    rb"^From [^ \n]{1,200}(?: at [^ \n]{1,200})? {1,9}"
    rb"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b|\d[^\n]{0,40}?\d:\d\d:\d\d)[^\n]{0,100}\n(?=>?From |[!-9;-~]+[ \t]*:)",
    re.MULTILINE,
)
_FIELD = re.compile(rb"[A-Za-z-]+:")
_HEAD = re.compile(rb"^([a-z-]+):", re.IGNORECASE | re.MULTILINE)
_ABOUT = frozenset((b"from", b"to", b"subject", b"date", b"received", b"mime-version"))
_WRITTEN_BY_PROGRAMS = frozenset(
    b"received return-path mime-version message-id content-type content-transfer-encoding delivered-to".split()
)
_ENCODED = r"=\?([^?*\s]+)(?:\*[^?\s]*)?\?([bBqQ])\?([^?]*)\?="  # charset, encoding and text of a word
_ENCODED_WORD = re.compile(_ENCODED)
_ENCODED_WORDS = re.compile(rf"(?:{_ENCODED}\s*(?==\?))*{_ENCODED}")
_LONGEST_FIELD = 2000  # characters; the standard library takes quadratic time to parse one
# In a plain text that a program made from a page: the address of a link, after its label, and a picture.
_ADDRESS = re.compile(
    r"(?<=[\w.!?)\]\"'”»])<(?:https?|mailto|tel):[^<>\s]+>|\[cid:[^\[\]\s]+\]|\[image: [^\[\]\n]*\.\w{3,4}\]"
)
_DEEPEST = 20  # most levels of nested parts
_MAIL = ("message/rfc822", "message/global")
_NO_TEXT = frozenset("calendar vcard x-vcard directory css rtf rfc822-headers x-amp-html x-watch-html".split())
_OF_DIGEST = re.compile(r".* Digest, Vol \d|Today's Topics|Digest Footer")  # what Mailman adds to the emails of a list
_ENCRYPTED = ("encrypted", "pkcs7-mime", "x-pkcs7-mime")
_SHINGLE = 3  # characters in a row by which two texts are compared
_LONGEST_STUB = 300  # characters of "To read this mail, open it in a browser" and the like
_COMPARED = 4_000  # most characters to compare


class _Part(EmailMessage):
    """An email, or a part of one. The deepest are read as text: each line is compared with the ends of all parts."""

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
        return _field_parsed(name, value)


_POLICY = _Policy()
_field_parsed: Callable[[str, str], str] = lru_cache(maxsize=32)(default.header_fetch_parse)


def is_mail(content: bytes) -> bool:
    """Whether a file begins with the header of an email, or of the first email of a mailbox."""
    start = _without_mark(content[:10_000]).replace(b"\r\n", b"\n").lstrip(b"\n")
    head = start.partition(b"\n\n")[0]
    if _MBOX.match(start):
        return True
    names = {name.lower() for name in _HEAD.findall(head)} if _FIELD.match(head) else set()
    is_sent = {b"from", b"subject"} <= names and bool(re.search(rb"^from:[^\n]*@", head, re.IGNORECASE | re.MULTILINE))
    by_program = bool(names & _WRITTEN_BY_PROGRAMS) and bool(names & {b"from", b"to", b"subject"})
    return is_sent or by_program or len(names & _ABOUT) >= 3


def read_mail(content: bytes) -> Source:
    """The text of an email, without quoted replies and signature, below its subject; the sender is its context.

    Several mails, as in the archive of a mailing list, are read as a mailbox. Raises DataError if no text can be read.
    """
    content = _without_mark(content).lstrip(b"\r\n")
    if content.startswith(b"From ") and len(_MBOX.findall(box := content.replace(b"\r\n", b"\n"))) > 1:
        return read_mbox(box)
    return _read(_parsed(content))


def read_mbox(content: bytes) -> Source:
    """Many emails in one file; all lines of an email have the number of its first line.

    A mail that cannot be read is lost. Raises DataError if none can be read.
    """
    lines: Lines = []
    lost: list[str] = []
    first = 1
    for part in _mails(content.replace(b"\r\n", b"\n")):
        at = first + part.startswith(b"From ")
        if part.strip():
            try:
                mail = _read(_parsed(re.sub(rb"^>(>*From )", rb"\1", part, flags=re.MULTILINE)))
            except MemoryError:
                raise
            except Exception as error:  # a parser of a damaged mail raises anything
                lost.append(f"the email at line {at}: {in_one_line(error)}")
            else:
                lost += [f"the email at line {at}: {each}" for each in mail.lost]
                lines += [(at, f"# {_title(mail)}"), *((at, line) for _, line in [*mail.lines][1:])]
        first += part.count(b"\n")
    if lost and not lines:
        raise DataError(lost[0])
    return Source(lines, [], lost)


def _mails(content: bytes) -> Iterable[bytes]:
    """The emails of a mailbox, each with the line before it."""
    starts = [0, *(found.start() for found in _MBOX.finditer(content) if found.start()), len(content)]
    return (content[start:end] for start, end in pairwise(starts))


def _without_mark(content: bytes) -> bytes:
    """An email without a byte-order mark, and in UTF-8 if an editor has saved it as UTF-16."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    return decoded(content).text.encode() if content.startswith((b"\xff\xfe", b"\xfe\xff")) else content


def _parsed(content: bytes) -> Message:
    return message_from_bytes(content, policy=_POLICY)


def _read(mail: Message) -> Source:
    sender = " ".join(re.sub(r"<[^<>]*>", "", _field(mail, "from")).replace('"', "").split())
    subject = " ".join(_field(mail, "subject").split())
    lost: list[str] = []
    body = _body(mail, subject, lost)
    if lost and not body:
        raise DataError(lost[0])
    return Source([(1, f"# {subject}"), (1, ""), *body], [sender], lost)


def _title(mail: Source) -> str:
    """The subject and the sender of an email among others."""
    (_, subject), *_ = mail.lines
    sender = ", ".join(mail.about)
    return f"{subject[2:]} ({sender})" if sender else subject[2:]


def _field(mail: Message, name: str) -> str:
    """The text of a field, also of one whose letters are not encoded, or each half of one in a word of its own."""
    raw = next((str(value) for field, value in mail.raw_items() if field.lower() == name), "")
    content = raw.encode("ascii", "surrogateescape").replace(b"\r", b"").replace(b"\n", b"")
    return _ENCODED_WORDS.sub(_decoded_words, _tolerant(content, mail.get_content_charset("")))


def _decoded_words(found: re.Match[str]) -> str:
    words = groupby(_ENCODED_WORD.findall(found[0]), key=lambda word: word[0].lower())
    return "".join(_tolerant(b"".join(map(_word, same)), charset) for charset, same in words)


def _word(word: tuple[str, str, str]) -> bytes:
    _, encoding, text = word
    content = text.encode(errors="replace")
    try:
        return binascii.a2b_qp(content, header=True) if encoding in "qQ" else binascii.a2b_base64(content + b"==")
    except binascii.Error:
        return content


def _tolerant(content: bytes, charset: str) -> str:
    """The text of a field; of an unknown encoding, whatever is UTF-8."""
    try:
        return decoded(content, charset).text
    except DataError:
        return content.decode(errors="replace")


def _body(part: Message, subject: str, lost: list[str]) -> Lines:
    """The text of an email or of a part of one; what cannot be read is added to `lost`."""
    try:
        if _is_mail_part(part):
            return _attached(part)
        if part.get_content_type() == "multipart/alternative" and part.is_multipart():
            return _best(_parts(part), subject, lost)
        if part.get_content_subtype() in _ENCRYPTED:
            raise DataError("its text is encrypted; save it decrypted")
        if part.is_multipart():
            return _all(_parts(part), subject, lost)
        if part.get_content_maintype() in ("text", "multipart") and part.get_content_subtype() not in _NO_TEXT:
            is_page = part.get_content_subtype() == "html"
            return _page(part, subject) if is_page else _written(part, _decoded(part), subject)
    except MemoryError:
        raise
    except Exception as error:  # a parser of a damaged part raises anything
        lost.append(in_one_line(error))
    return []


def _parts(part: Message) -> list[Message]:
    """The parts that make up a part, of which the first in multipart/related holds the others, such as pictures."""
    payload = part.get_payload()
    parts = [each for each in payload if isinstance(each, Message)] if isinstance(payload, list) else []
    parts = [each for each in parts if not _OF_DIGEST.match(str(each.get("content-description", "")))]
    if part.get_content_maintype() == "message":  # a report on a delivery
        return []
    if part.get_content_type() == "multipart/related":
        return [each for each in parts if each.get_content_maintype() in ("text", "multipart")][:1]
    return parts


def _all(parts: list[Message], subject: str, lost: list[str]) -> Lines:
    """The text of all parts in order, with attached emails; other attached files count if nothing else has text."""
    lines: Lines = []
    is_file = [part.get_content_disposition() == "attachment" and not _is_mail_part(part) for part in parts]
    for chosen in (False, True):
        for part in compress(parts, (each == chosen for each in is_file)) if not lines else ():
            last = lines[-1][0] if lines else 0  # the numbers continue
            more = _body(part, subject, lost)
            if lines and more and RULER.match(more[0][1]):  # the footer of a mailing list
                continue
            lines += [(last, "")] * bool(lines and more) + [(last + number, line) for number, line in more]
    return lines


def _best(parts: list[Message], subject: str, lost: list[str]) -> Lines:
    """The plain one of several forms of a text, unless it is empty or only says that there is another."""
    plain, rich = None, list[tuple[int, str]]()
    missed: list[str] = []
    for part in parts:
        if part.get_content_type() != "text/plain":
            rich = _body(part, subject, missed) or rich
        elif plain is None:
            plain = part
    try:
        text = _decoded(plain) if plain is not None else ""
    except DataError as error:
        missed.append(in_one_line(error))
        text = ""
    if rich and _is_stub(text, " ".join(line for _, line in rich)):
        return rich
    if text.strip() and plain is not None:
        return _written(plain, text, subject)
    lost += missed
    return rich


def _is_stub(plain: str, rich: str) -> bool:
    """Whether the plain form of a text lacks most of the other, and is not much more itself."""
    said, shown = (re.sub(r"[\W_]+", "", text[:_COMPARED].casefold()) for text in (plain, rich))
    if len(said) > max(_LONGEST_STUB, 2 * len(shown)):
        return False
    shingles = {said[at : at + _SHINGLE] for at in range(len(said))}
    missing = sum(shown[at : at + _SHINGLE] not in shingles for at in range(len(shown) - _SHINGLE + 1))
    return not said or missing > max(_SHINGLE, len(shown) / 2)


def _is_mail_part(part: Message) -> bool:
    name = part.get_filename("") if part.get_content_maintype() in ("application", "message") else ""
    return part.get_content_type() in _MAIL or name.lower().endswith(".eml")


def _attached(part: Message) -> Lines:
    """The text of an attached email below its subject."""
    payload = part.get_payload()
    inner = payload[0] if isinstance(payload, list) else None
    encoding = str(part.get("content-transfer-encoding", "")).strip().lower()
    if not isinstance(inner, Message):
        content = part.get_payload(decode=True)
        mail = read_mail(content if isinstance(content, bytes) else b"")
    elif encoding in ("base64", "quoted-printable"):
        # The standard does not allow it, but programs do so, and the parser takes the code for the text of the email.
        code = str(inner.get_payload()).encode(errors="replace")
        mail = read_mail(binascii.a2b_base64(code + b"==") if encoding == "base64" else binascii.a2b_qp(code))
    else:
        mail = _read(inner)
    lines = [*mail.lines][1:]
    return [(1, f"## {_title(mail)}"), *((number, f"#{line}" if line[:1] == "#" else line) for number, line in lines)]


def _page(part: Message, subject: str) -> Lines:
    """What the sender wrote of a page, whose headings are below the subject."""
    lines = sent_lines([*read_page(_decoded(part), is_mail=True).lines], subject)
    return [(number, f"#{line}" if line[:1] == "#" else line) for number, line in lines]


def _written(part: Message, text: str, subject: str) -> Lines:
    """What the sender wrote of a plain text."""
    text = _ADDRESS.sub("", text)
    lines = list(enumerate(re.split("\r\n|\n|\r", text), 1))
    if str(part.get_param("format", "")).lower() == "flowed":
        lines = _unflowed(lines, str(part.get_param("delsp", "")).lower() == "yes")
    return sent_lines(lines, subject) if text.strip() else []


def _unflowed(lines: Lines, deletes: bool) -> Lines:
    """Lines of which those that end in a space are joined to the next, with or without that space (RFC 3676)."""
    joined: Lines = []
    flows = False
    for number, stuffed in lines:
        line = stuffed.removeprefix(" ")
        is_own = not line.startswith(">") and line != "-- "
        text = line.removesuffix(" ") if deletes and line != "-- " else line
        if flows and is_own and line:
            joined[-1] = (joined[-1][0], joined[-1][1] + text)
        else:
            joined.append((number, text))
        flows = line.endswith(" ") and is_own
    return joined


def _decoded(part: Message) -> str:
    """The text of a part. Raises DataError if its encoding cannot be told."""
    content = part.get_payload(decode=True)
    assert isinstance(content, bytes)
    charset = part.get_content_charset("")
    if part.get_content_subtype() == "html" and charset in ("", "us-ascii"):
        charset = declared_encoding(content) or charset
    try:
        return decoded(content, charset or "utf-8").text
    except DataError:
        if b"\0" not in content:
            raise
        return decoded(content.replace(b"\0", b""), charset).text  # a damaged mailbox
