"""The sentences of a text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

from xsent.errors import require_extra
from xsent.languages import is_function_word, language_of
from xsent.tasks import text_list

TextOrSentences = str | Sequence[str]  # of one document

# Characters split at once. sentencex treats a quotation as one sentence, so a quotation mark that is never closed would
# hide all sentences up to the next one; and its time grows with the square of the length.
_WINDOW = 4000

_NUMBER = re.compile(r"\W*\d{1,3}[.)]\s*")  # of an item, before its sentence
# sentencex knows German dates, such as "am 3. Mai", but not "Montag, 3. Mai" and "im 3. Stock".
_DAY = re.compile(r"\b[0-3]?\d\.\s$")
_MONTH = re.compile("J(?:anuar|änner|uni|uli)|Februar|März|April|Mai|August|(?:Sept|Nov|Dez)ember|Oktober")
_ORDINAL = re.compile(
    r"\b(?:am|im|vom|zu[mr]|beim|ins|de[rmns]|die|das|ab|bis|seit|und|oder"
    r"|(?:[mds]?ein|ihr|unser|eue?r|dies|jed|kein)(?:e[mnrs]?)?)\s\d{1,2}\.\s$",
    re.IGNORECASE,
)
_TITLE = re.compile(r"\.-\w{1,6}\.\s$")  # as in "Dipl.-Ing. Weber"
_LONGEST_BEFORE = 20  # characters of these
_CONTINUED = re.compile(r"[^\w\n]{0,20}([^\W\d_])")  # by a small letter, also after a dash or a bracket

# The rules take words for abbreviations: "ore" is Oregon, "an" is the year in Spanish, "mich" is Michigan.
_UPPER = "[A-ZÀ-ÖØ-ÞЁА-Я]"
_WORD = re.compile(rf"(?<![\w.])(?<!\bet )([^\W\d_]{{2,}}+|[auyè])(?=[.]\s+\W?(?![IVXLC]{{2,}}\b){_UPPER})")
_WORDS = frozenset(
    "ago ala alta an arc art auto ave btw cm com dak extra fil ida ill kans ken kg km mar mini miss mm ok ore pen post "
    "sens sing sto ver vie".split()
)
_TITLES = frozenset("mr mrs ms dr st sr".split())  # function words before a name, which end no sentence
# Some more abbreviations.
_ABBREVIATION = re.compile(
    r"(?<![\w.])(?:т\.\s?[ек]|им|рис|табл|гл|ред|изд|напр|сост|inkl|exkl|zzgl|abzgl|bspw|insb|geb|fr|hr|frl|hrsg|ing|bd|approx|"
    r"mlle|mgr|hrn|(?-i:Fa|Eng)|dott(?:\.ssa)?|avv|sigg|geom|egr|spett|dhr|mevr|mw|drs|bijv|resp|incl|excl|o\.\s?a|m\.b\.t|"
    r"i\.v\.m|m\.a\.w|d\.w\.z|z\.o\.z|exm[oa]|excm[oa]|ilm[oa]|srta|profa|dña|av|pag|(?<!\d )m|v(?= pag))\.(?=\s)"
    r"|(?<!\w)n\.(?=\s?\d|º)"
    r"|(?<!\w)(?:arts?|civ|sez|tit)\.(?=\s(?-i:[IVXLC]+\b|[A-Z]\.?\s?\d))",  # as in "l'art. L. 145-9"
    re.IGNORECASE,
)
# A sentence may begin with a digit: at once in Japanese, and after a word that is too long for an abbreviation.
_DIGIT = re.compile(r"(?<=[。！？])[0-9a-z]|(?<=[^\W\d_]{7}\.\s)(?<!str\.\s)\d|(?<=[!?]\s)\d")
# sentencex panics at such a space between an initial and a period: "plan B\xa0."
_WIDE_SPACE = re.compile(r"[^\S\x00-\x7f](?=\.)")
_SAID = re.compile("[。！？](?=[」』](?:[とをがは、。]|って|など|という))")  # the sentence continues after the quote
_QUOTES = str.maketrans("『』", "「」")


def split_sentences(text: str, *languages: str) -> list[str]:
    """Split a text into sentences; they are stripped, and empty ones are dropped.

    A line break ends a sentence only if a blank line follows. A sentence of more than 4,000 characters is cut.
    Words that only look like an abbreviation of some language end one: "Ich rufe dich an. Danach".

    Args:
        text: The text.
        languages: The code of its language. With several, a sentence ends where the rules of all of them agree, which
            suits texts of an unknown language: "3. Mai" is not split if German is among them. A language that sentencex
            does not know is split by general rules.

    Raises:
        MissingExtraError: sentencex is not installed.

    Example:
        >>> split_sentences("Dr. Meier came at nine. He left early.", "en")
        ['Dr. Meier came at nine.', 'He left early.']
    """
    with require_extra("documents"):
        from sentencex import segment

    def ends(window: str) -> list[int]:
        # sentencex drops no characters, not even spaces
        plain = _plain(window, languages[0] if len(languages) == 1 else language_of(window))
        every = [set(accumulate(map(len, segment(language, plain)))) for language in languages or ("en",)]
        found = sorted(set.intersection(*every))
        return [end for end in found if end == len(window) or not _is_within(window, end, languages)]

    def pieces() -> Iterator[str]:
        start = 0
        while start < len(text):
            window = text[start : start + _WINDOW]
            found = ends(window)
            if start + _WINDOW < len(text) and len(found) > 1:
                found.pop()  # it may continue beyond the window
            yield from (window[first:end] for first, end in pairwise([0, *found]))
            start += found[-1]

    return _stripped(pieces())


def _plain(text: str, language: str) -> str:
    """A text of equal length without what the rules take for something else; a language makes words known."""

    def is_word(word: str) -> bool:
        return word in _WORDS or (is_function_word(word, language) and word not in _TITLES)

    text = _WIDE_SPACE.sub(" ", text)
    text = _ABBREVIATION.sub(lambda found: found[0].replace(".", ","), text)
    text = _WORD.sub(lambda found: "ъ" * len(found[0]) if is_word(found[0].casefold()) else found[0], text)
    return _DIGIT.sub("A", _SAID.sub("、", text)).translate(_QUOTES)


def _is_within(text: str, place: int, languages: Sequence[str]) -> bool:
    """Whether a supposed end is within a sentence.

    It is within or after "Dipl.-Ing.", after a number that begins the sentence, or before a small letter.
    """
    before = text[max(0, place - _LONGEST_BEFORE) : place]
    is_date = _MONTH.match(text, place) and _DAY.search(before)
    is_ordinal = "de" in languages and (is_date or _ORDINAL.search(before))
    is_item = place == len(before) and _NUMBER.fullmatch(before)
    after = _CONTINUED.match(text, place)
    is_small = after and after[1].islower() and before[-1:] not in "\n。！？"
    is_continued = is_small and (len(languages) > 1 or text[place] in "—–")  # the rules of some languages allow it
    return text[place] == "-" or bool(is_ordinal or is_item or is_continued or _TITLE.search(before))


def sentences_of(document: TextOrSentences, language: str) -> list[str]:
    """The sentences of a document, without empty ones; splits a text."""
    if isinstance(document, str):
        return split_sentences(document, language or "en") if document.strip() else []
    return _stripped(text_list(document, "sentence"))


def _stripped(sentences: Iterable[str]) -> list[str]:
    return [sentence.strip() for sentence in sentences if sentence.strip()]
