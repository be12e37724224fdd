"""Leaves out of an email what its sender did not write: answered emails, their headers, signatures and footers."""

import re
from itertools import chain, groupby, pairwise

Lines = list[tuple[int, str]]

_PREFIX = re.compile(r"\s*\w{1,9}(\[\d+\])?\s?[:：]\s*")  # of a reply's subject
_FORWARD = re.compile(r"\s*(fwd?|wg|tr|rv|i|enc|doorst|пересл|転送)\s?[:：]", re.IGNORECASE)
_LONGEST_WROTE = 400  # characters
_MOST_WROTE = 3  # lines
_LONGEST_HEAD = 30  # lines

# The header of the email below a reply, in the nine languages: its fields may be bold, or rows of a table.
_SENDER = (
    r"from|von|absender|van|afzender|de|expéditeur|remitente|remetente|da|mittente|от(?: кого)?|отправитель|"
    r"差出人|送信者"
)
_SENT = (
    r"sent|date|gesendet(?: am)?|datum|verzonden(?: op)?|envoyé(?: le)?|enviad[oa](?: el| em)?|fecha|inviato(?: il)?|"
    r"data|отправлено|дата(?: отправки)?|送信日時|送信日|日時|日付"
)
_ABOUT = r"subject|betreff|onderwerp|objet|asunto|assunto|oggetto|тема|件名|題名"
_TO = r"to|cc|bcc|reply-to|an|kopie|aan|à|para|a|кому|копия|宛先"
_LABEL = re.compile(
    rf"[\s*|]*(?:(?P<sender>{_SENDER})|(?P<sent>{_SENT})|(?P<about>{_ABOUT})|{_TO})[\s*|]{{0,5}}[:：]", re.IGNORECASE
)
_OTHER_FIELD = re.compile(r"[^\W\d][^:：]{1,20}[:：]\s")
_LINE = re.compile(r"[\s*]*(?:-{4,}|_{8,})[\s*]*$")
_ORIGINAL = re.compile(
    r"[\s*]*-{2,}\s{0,3}(?:original (?:message|appointment)|origina(?:l-?|a)nachricht|ursprüngliche(?:r|s)? \w+|"
    r"original-?nachricht|message (?:d['’]origine|original)|mensaje original|messaggio originale|mensagem original|"
    r"oorspronkelijk bericht|исходное сообщение|(?:元|オリジナル)の?メッセージ)\s{0,3}-{2,}[\s*]*$",
    re.IGNORECASE,
)
_PASSED_ON = re.compile(
    r"[\s*-]*(?:begin forwarded message|forwarded (?:message|by)|weitergeleitete nachricht|anfang der weitergeleiteten|"
    r"message transféré|début du message|mensaje reenviado|inicio del mensaje|messaggio inoltrato|"
    r"inizio messaggio|mensagem (?:encaminhada|reencaminhada)|início da mensagem|doorgestuurd bericht|"
    r"begin doorgestuurd|пересылаемое сообщение|пересланное сообщение|転送(?:された)?メッセージ)\b[^\n]{0,80}$",
    re.IGNORECASE,
)
_ON = re.compile(
    r"(?:on|am|le|el|il|em|no dia|op)\s[^\n]*\d|il giorno\b", re.IGNORECASE
)  # the first line of "On Monday, 3 May, Anna wrote:"
_DATED = re.compile(r"\d\d?[:.h]\d\d|\d{4}")
_ENDED = re.compile(r"[.!?…。]\s*$|^\s*$")  # a line after which another text begins
_WROTE = re.compile(
    r"\b(?:wrote|writes|schrieb|schreibt|a écrit|escribió|ha scritto|escreveu|schreef|"
    r"написала?|пишет)\b|書きました|さんのメール",
    re.IGNORECASE,
)
_SIGNED = re.compile(r"-----BEGIN PGP SIGNED MESSAGE-----\s*$|Hash: (?:SHA|MD|RIPEMD)[\w, -]*$")
# A signature between two lines of signs, or below one, as in Japan; it has an address or a number.
RULER = re.compile(r"\s*(?:[^\w\s]|_){10,}\s*$")
_CONTACT = re.compile(r"@|https?://|www\.|〒|\d[\d ()/.–-]{6,}\d")
_LONGEST_SIGNATURE = 10  # lines
# What services write below an email: why somebody gets it, and how to get no more.
_FOOTER = re.compile(
    r"\W*(?:reply to this e?-?mail directly|view (?:this e?-?mail|it) (?:in your browser|on git\w+)|message id: <|"
    r"view (?:this e?-?mail |it )?(?:in (?:your |a )?browser|online)\W*$|"
    r"im browser (?:ansehen|anzeigen|öffnen|lesen)\W*$|"
    r"(?:voir|lire|ver|vedi|visualizza|apri|bekijk|lees|открыть|посмотреть)\b[^\n.]{0,30}\b"
    r"(?:dans (?:le|un|votre)|en (?:el|su|tu)|no|nel|in (?:je|uw|de)|в) (?:browser|navigateur|navegador|браузере)\W*$|"
    r"you(?:['’]re| are)? receiv(?:ing|ed?) this (?:e?-?mail|message|newsletter|because)|"
    r"(?:to )?(?:subscribe or )?unsubscribe(?:,| via| from (?:this|our))|"
    r"(?:sie erhalten|du erhältst) dies\w+ (?:e-?mail|mail|nachricht|newsletter)|"
    r"(?:vous recevez|tu reçois) (?:cet? e-?mail|ce courriel|ce message|cette newsletter)|"
    r"(?:recibes?|has recibido|ha recibido) este (?:correo|mensaje|e-?mail)|"
    r"(?:ricevi|riceve|hai ricevuto) quest[ao] (?:e-?mail|messaggio|newsletter)|"
    r"(?:recebeu|recebes?|está a receber) est[ea] (?:e-?mail|mensagem)|"
    r"(?:u|je) ontvangt deze? (?:e-?mail|mail|nieuwsbrief|bericht)|вы получили это (?:письмо|сообщение)|"
    r"(?:unsubscribe|(?:hier |newsletter )?(?:abmelden|abbestellen)|se désabonner|se désinscrire|darse de baja|"
    r"cancelar (?:la |tu |su )?suscripción|disiscriviti|annulla l['’]iscrizione|"
    r"(?:cancelar|anular) a? ?(?:subscrição|inscrição|assinatura)|afmelden|uitschrijven|отписаться|配信停止|購読解除)"
    r"(?:\W*$|\s*[|·<(])|"
    r"(?:caution|warning|external|achtung|vorsicht|attention|atención|attenzione|atenção|let op|внимание)\b\W"
    r"[^\n]{0,30}(?:mail|message|nachricht|correo|mensaje|messaggio|mensagem|bericht|письмо)\b[^\n]{0,40}"
    r"\b(?:outside|extern|außerhalb|extérieur|fuera|estern|fora|buiten|внешн))",
    re.IGNORECASE,
)
# Open this email in a browser, if it looks odd; a program wrote it, so do not answer; think before you print it.
_THIS = r"(?:this|dies\w{0,2}|cet?|cette|est[ea]|quest[oa]|deze|dit|это)"
_MAIL = r"(?:e-?)?(?:mail|message|nachricht|courriel|correo|mensaje|messaggio|mensagem|bericht|письмо|сообщение)"
_PROGRAM = re.compile(
    r"\W*(?:"
    r"(?:having|trouble|can(?:no|['’])t|if you|wenn|wird|werden|falls|si (?:vous|no)|vous n|no (?:puede|ve)|se non|"
    r"non (?:riesci|visualizzi)|(?:se )?não|als (?:u|je)|ziet|wordt|kunt u|если|не (?:видите|отображается))\b"
    rf"[^\n]{{0,60}}\b(?:{_THIS} {_MAIL}|письмо)\b[^\n]{{0,80}}\b(?:navigateur|navegador|браузере?|"
    r"browser(?: (?:öffnen|anzeigen|ansehen|openen))?|klicken sie (?:bitte )?hier|cliquez ici|"
    r"clique aqui|clicca qui|haga clic aquí|klik(?: dan)? hier|нажмите здесь)\W*$|"
    r"(?:please |bitte |merci de |veuillez |por favor,? |si prega di |gelieve |пожалуйста,? )?"
    r"(?:do not (?:reply|respond) to|antworten sie (?:bitte )?nicht auf|ne pas répondre à|no respond(?:a|as|er) a|"
    r"non rispondere a|não respond(?:a|er) a|niet (?:te )?(?:antwoorden|reageren) op|не отвечайте на) "
    rf"(?:{_THIS}|данное) (?:\S{{1,20}} ){{0,2}}{_MAIL}\b|"
    r"(?:this is an|dies ist eine|ceci est un|este es un|quest[oa] è un|esta é uma|dit is een)\b"
    rf"(?=[^\n.]{{0,40}}autom[aá]t)[^\n.]{{0,40}}\b{_MAIL}\b|это {_MAIL} [^\n]{{0,20}}автоматическ|"
    r"(?:本|この)メール(?:は|に)[^\n。]{0,20}(?:自動(?:送信|配信)|送信専用|"
    r"返信[^\n。]{0,20}(?:ません|ないで|遠慮))|"
    r"(?=[^\n]{0,200}(?:environment|umwelt|environnement|ambiente|milieu|окружающ|環境))[^\n]{0,200}"
    r"(?:before (?:you )?print|bevor (?:\S{1,20} ){0,4}(?:aus|ge)?druck|vor dem (?:aus)?druck|avant d['’]imprim|"
    r"n['’]imprimez|antes de imprimir|prima di stampare|voordat (?:\S{1,20} ){0,4}(?:print|afdruk)|"
    r"(?:прежде чем|перед тем,? как) \w{0,5}печат|印刷\w{0,3}前))",
    re.IGNORECASE,
)
_LONGEST_FOOTER = 250  # characters
_QUOTED = re.compile("(?:[A-ZА-ЯЁ]{2})?>")  # The Bat! puts the initials of the author before the sign
_POSTSCRIPT = re.compile(r"\W*(?:[PS]\.? ?S\b|З\.? ?Ы\b|追伸)")
# This mail is confidential and for nobody but the recipient: what companies write below every mail.
_CONFIDENTIAL = re.compile(
    r"(?:mail|message|nachricht|courriel|correo|mensaje|messaggio|mensagem|bericht|сообщени|письм|メール)[^.。]{0,150}"
    r"(?:confiden[tcz]i|exclusi[vf]|esclusiv|ausschließlich|uitsluitend|исключительно|vertraulich|vertrouwelijk|riservat|конфиденциальн|機密|秘密).{0,400}?"
    r"(?:intended|addressee|recipient|bestimmt|empfänger|adressat|destinat|geadresseerde|bestemd|адресат|предназнач|受信(?:者|され))|"
    r"(?:de conformidad con|en cumplimiento de|conformément au|ai sensi de|in ottemperanza al|em cumprimento do|"
    r"nos termos do)l?\b[^\n]{0,120}(?:2016/679|196/2003|\b(?:rgpd|lgpd|gdpr)\b)",
    re.IGNORECASE | re.DOTALL,
)
# How to join a meeting: between the lines of signs below an invitation.
_JOIN = re.compile(
    r"\bmicrosoft\s+teams\b|/meetup-join/|\baka\.ms/|\bteams\.(?:microsoft|live)\.com|\bdialin\.teams", re.I
)
_LONGEST_JOIN = 25  # lines


def sent_lines(lines: Lines, subject: str) -> Lines:
    """The lines that the sender of an email wrote or forwarded, or all lines if that is nothing."""
    if is_forwarded(subject):
        lines = [(number, re.sub("^> ?", "", line)) for number, line in lines]
    return _own(_without_answered(lines, subject)) or lines


def is_forwarded(subject: str) -> bool:
    """Whether the subject says that the email forwards another."""
    return bool(_FORWARD.match(subject))


def announces(line: str) -> bool:
    """Whether a line may be "On Monday, 3 May, Anna wrote:" above a quotation."""
    text = line.rstrip("* \t\r\xa0")
    return (
        text.endswith((":", "："))
        and len(text) <= _LONGEST_WROTE
        and bool(re.search(r"\d|@", text) or _WROTE.search(text))
    )


def _without_answered(lines: Lines, subject: str) -> Lines:
    """An email without the headers of other emails in it; a reply also without the email that it answers."""
    keeps = is_forwarded(subject)
    kept: Lines = []
    has_text = False
    place = 0
    while place < len(lines):
        line = lines[place][1]
        keeps = keeps or bool(_PASSED_ON.match(line))
        end = _end_of_head(lines, place, _bare(subject))
        if end == place and has_text:
            end = _end_of_announcement(lines, place)
        if end == place:
            kept.append(lines[place])
            has_text = has_text or bool(line.strip())
            place += 1
            continue
        following = next((line for _, line in lines[end : end + _LONGEST_HEAD] if line.strip()), "")
        if has_text and not keeps and not _QUOTED.match(following):
            break
        place = end
    return kept


def _end_of_announcement(lines: Lines, first: int) -> int:
    """Where "On Monday, 3 May 2024, Anna <anna@example.org> wrote:" ends; `first` if that does not begin at a line."""
    text = ""
    for place, (_, line) in enumerate(lines[first : first + _MOST_WROTE], first):
        text = f"{text} {line.strip()}".lstrip()
        if not line.strip() or not _ON.match(text):
            break
        if announces(text):
            return place + 1 if "@" in text and _DATED.search(text) and _WROTE.search(text) else first
    return first


def _bare(subject: str) -> str:
    """A subject without the prefixes of replies."""
    start = 0
    while prefix := _PREFIX.match(subject, start):
        start = prefix.end()
    return subject[start:].strip()


def _end_of_head(lines: Lines, first: int, subject: str) -> int:
    """Where the header that begins at a line ends, with the line above it; `first` if none begins there."""
    line = lines[first][1]
    start = (
        first + 1
        if (is_original := bool(_ORIGINAL.match(line))) or _LINE.match(line) or _PASSED_ON.match(line)
        else first
    )
    end = last = start
    kinds = set[str]()
    fields = 0
    while end < min(len(lines), start + _LONGEST_HEAD):
        text = lines[end][1]
        label = _LABEL.match(text)
        if label:
            kinds |= {label.lastgroup or "to"}
            kinds |= {"address"} if label.lastgroup == "sender" and "@" in text else set()
        field = label or (_OTHER_FIELD.match(text) if fields and end == last else None)
        if field:
            fields += 1
            if subject and text[field.end() :].strip(" *|").endswith(subject):
                kinds.add("subject")
        elif text.strip() and not (fields and end == last and "@" in text):
            break
        elif not text.strip() and end > last:  # two empty lines
            break
        end += 1
        if text.strip():
            last = end
    is_known = {"sender", "sent"} <= kinds and bool(kinds & {"about", "address"})
    if is_known or ("subject" in kinds and fields >= 3):
        return last
    return first + 1 if is_original else first


def _own(lines: Lines) -> Lines:
    """The lines that the sender wrote; none in an email that only quotes or has a footer only."""
    from xsent.greetings import is_sent_from  # here: only emails need its patterns, which take 50 ms to compile

    own: Lines = []
    quoted = False
    for number, line in _without_disclaimers(lines):
        if line.rstrip() in ("--", "-----BEGIN PGP SIGNATURE-----"):
            break
        if is_sent_from(line) or _SIGNED.match(line) or _is_footer(line):
            continue
        if _QUOTED.match(line):
            if not quoted:
                _remove_attribution(own)
            quoted = True
            continue
        quoted = quoted and not line.strip()
        own.append((number, line))
    own = _without_signature(_without_sections(own))
    return own if any(line.strip() for _, line in own) else []


def _without_sections(lines: Lines) -> Lines:
    """An email without the sections below lines of signs that say how to join a meeting, or are its signature."""
    rulers = [place for place, (_, line) in enumerate(lines) if RULER.match(line)]
    kept, *sections = (lines[first:end] for first, end in pairwise([0, *rulers, len(lines)]))
    sections = [section for section in sections if not _has(_JOIN, section, _LONGEST_JOIN)]
    while sections and not any(line.strip() for _, line in sections[-1][1:]):
        del sections[-1]
    if sections and _has(_CONTACT, sections[-1], _LONGEST_SIGNATURE):
        del sections[-1]
    return [*kept, *chain.from_iterable(sections)]


def _without_signature(lines: Lines) -> Lines:
    """An email without what is below its sign-off, if that is a name and then an address or a number."""
    from xsent.greetings import ends_in_sign_off, is_signature  # see `_own`

    for place in range(len(lines) - 1, -1, -1):
        if ends_in_sign_off(lines[place][1]):
            name, *rest = [line for line in lines[place + 1 :] if line[1].strip()] or [(0, "")]
            is_signed = not _CONTACT.search(name[1]) and _has(_CONTACT, rest, _LONGEST_SIGNATURE)
            return lines[: place + 1] if is_signed else lines
        if _POSTSCRIPT.match(lines[place][1]) or not is_signature(lines[place][1], _most_small(lines[place][1])):
            break
    return lines


def _most_small(line: str) -> int:
    """How many words in small letters a line of a signature may have, such as "Gérant de la société"."""
    return 0 if _CONTACT.search(line) else 2


def _is_footer(line: str) -> bool:
    """Whether a service or a company writes a line below its emails."""
    return len(line) <= _LONGEST_FOOTER and bool(_FOOTER.match(line) or _PROGRAM.match(line))


def _has(pattern: re.Pattern[str], section: Lines, most: int) -> bool:
    """Whether one of the lines of a short section has a pattern."""
    written = [line for _, line in section if line.strip()]
    return len(written) <= most and any(map(pattern.search, written))


def _without_disclaimers(lines: Lines) -> Lines:
    """An email without what says that it is confidential, with the rest of that paragraph."""
    kept: Lines = []
    for _, group in groupby(lines, key=lambda line: bool(line[1].strip())):
        paragraph = [*group]
        found = _CONFIDENTIAL.search(text := "\n".join(line for _, line in paragraph))
        kept += paragraph[: text.count("\n", 0, found.start())] if found else paragraph
    return kept


def _remove_attribution(lines: Lines) -> None:
    """Remove the last lines of a text if they announce a quotation; a long announcement is wrapped."""
    end = len(lines)
    while end and not lines[end - 1][1].strip():
        end -= 1
    if not end or not announces(lines[end - 1][1]):
        return
    first = end - 1
    for place in range(end - 1, max(-1, end - 1 - _MOST_WROTE), -1):
        if place < end - 1 and _ENDED.search(lines[place][1]):
            break
        is_first = bool(_ON.match(lines[place][1]))
        if is_first or _DATED.search(lines[place][1]):
            first = place
        if is_first:
            break
    del lines[first:]
