"""Rejoins words that are cut at the end of a line."""

import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import cache, cached_property

_COMPOUND = re.compile(r"\b(\w{1,40})-(?=(\w{1,40}))")
_SURE = "\u00ad\u00ac"  # soft hyphen, and the sign that some scanners write: never part of a word
HYPHENS = ("-", "\u2010", *_SURE)
_BEGINNING = re.compile(r"[\w'’-]{0,60}\w$")
_REST = re.compile(r"\s*([^\W_][\w'’-]{0,59})")
_LETTERS = re.compile(r"\w+")
_ADDRESS = re.compile(r"(?:://|\bwww\.|(?<!\S)[~.]{0,2}/)\S*$")  # of a page or a file, whose hyphens are its own
_JAPANESE = "\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff々〆ヶ〇"
_WRAPPED = re.compile(rf"[{_JAPANESE}]$")
_WRAPPED_LENGTH = 20  # characters; a shorter line of Japanese, such as a name, is not cut at a margin
_CONTINUED = re.compile(
    rf"\s*+([「『（]?[{_JAPANESE}]++[」』）、。！？]*+)(?!\s*+[：:])\s*+"
)  # no field, such as 場所：
_LONGEST = 80  # characters around a cut that matter
# The rest of a word with its punctuation, and what follows up to the next word: a line that began with a number or a
# sign could be read as an item of a list.
_PULLED = re.compile(r"\s*+(\S++(?:\s++[^\s\w]\S*+|\s++\d\S*+)*+)\s*+")
# "Ein- und Ausgang" has no word to join.
_AND = re.compile(
    r"\n(?:und|oder|bzw|sowie|and|et|ou|o|e|u|и|или)$|(?<![apruv]i)\nor$|(?<!ez)(?<!vas)\ny$", re.IGNORECASE
)

_NUMBERS = (
    r"(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)\n(?:one|two|three|four|five|six|seven|eight|nine)"
    r"|(?:vingt|trente|quarante|cinquante|soixante|dix|quatre)\n(?:deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|vingts?)"
)
_PEOPLES = "anglo|franco|italo|ítalo|hispano|luso|germano|sino|nippo|nipo|ibero|afro|austro|russo|ruso|americano"
_OFFICES = (
    "presid|minist|mari|alumn|alun|namora|espos|mujer|mulher|moglie|femme|wife|husband|girlf|boyf|premi|president"
)
_LINKING = "à|a|in|of|the|to|and|t|by|du|la|le|en|op|на|в|и"  # state-of-the-art, c'est-à-dire, точь-в-точь
_VERB = "dis|puis|ai|suis|dois|sais|vois|fais|veux|peux|vais|vas|as|es|crois|penses|devrais|pourrais|aurais|serais"
_WHO = "кто|кого|кому|кем|ком|что|чего|чему|чем|где|куда|когда|откуда|почему|зачем|отчего|сколько|как|чей|чья|чьё|так"
_DO = "ну|давай|дай|скажи|посмотри|смотри|иди|пойди|погоди|подожди|слушай|послушай|покажи|расскажи|садись"
# Words that have a hyphen, with a line break in the place of the one that is cut. The hyphen of all others is only that
# of the line.
_HYPHENATED = rf"""
    (?<![\w'’])[eb-df-hj-np-tv-z]\n  # e-mail, T-shirt: no syllables
    | \b(?=\w{{4}})(\w+)\n\1\b  # чуть-чуть
    | -(?:{_LINKING})\n | \n(?:{_LINKING}|de)-
    | \b(?:{_PEOPLES})\n(?!ph?[oó]n|ph?il|f[oóôi])\w{{4}} | \bex\n(?:{_OFFICES}) | \bvice\n\w{{4}} | \b(?:{_NUMBERS})\b
    # English
    | \bwell\n(?!ness\b|ington\b) | \bself\n(?!ish|less|hood|ie\b|s\b)
    | \b(?!(?:inter|under|over)\n)\w{{4,}}\n(?:based|friendly|oriented|driven|minded|shaped|sized|looking|free)\b
    | \byears?\nold\b
    | \b(?:long|short|full|part|high|low|real|first|last|open|large|small)\n
      (?:terms?|time|range|scale|standing|lasting|speed|quality|level|end|risk|rise|class|minute|source|ended)\b
    # French
    | \b(?:est|était|sera|serait)\nce\b | [td]\n(?:ils?|elles?|on)\b | ez\n(?:les?|la|leur|en)\b | \ny\b
    | \n(?:nous|vous|moi|toi|mêmes?)\b | (?<!\bce)(?<!\bco)\nlui\b | \b(?:{_VERB})\n(?:je|tu)\b
    | (?<!voi)(?<!de)(?<!di)\nlà\b
    | \b(?:celui|celle|ceux|celles|fois|jours?|mois|temps|heures?|moment|par)\nci\b | \bpeut\nêtre\b
    | \bci\n(?:des|joint)
    | \b(?:là|au|par)\n(?:bas|haut|dedans|dess|delà|devant) | \bquelques\nun | \b(?:rendez|demi)\n
    | \b(?:sud|nord)\n(?:est|ouest|a[mf][eé]?ri|europ) | \bporte\nparole | -de\nchauss | \nd['’](?:œ|oe)uvre
    | \b(?:grand|petit|beau|belle)s?\n(?:m[èe]re|p[èe]re|parent|frère|sœur|fils|fille|enfant) | \bweek\nend
    | \b(?:avant|après)\n(?:hier|midi|demain|garde|propos|dern|prem) | \bsous\n(?:marin|sol|titre|entend|vêt)
    # Portuguese, Spanish, Italian
    | (?<!\bdeta)(?<!\besco)(?<!\bco)(?<!\bo)(?<!\bfo)(?<!traba)(?<!bata)\nlhes?\b | [áêíô]\nlos?\b | [áíô]\nlas?\b
    | \n(?:lhe|se|me|te|lo|la|nos)-\w | -(?:lhe|se|me|te|lo|la|nos)\n(?:á|ão|ia|iam|ei|emos|iamos)\b
    | \b(?:segunda|terça|quarta|quinta|sexta)\nfeira | \bguarda\n(?:chuva|roupa|sol|costa) | \b(?:recém|pós|além)\n
    | \bbem\n(?:vind|estar) | \bporta\nvoz | \bprimeir[oa]\n(?:minist|dama) | \b(?:norte|latino|sul)\namer
    | \b(?!psico)\w{{3,}}ico\n\w{{3,}}(?:ic[oa]|al|ari[oa])(?:e?s)?\b
    # German, Dutch
    | \b(?:\w{{3,}}isch|deutsch)\n\w{{3,}}isch(?:e[nmrs]?)?\b | \bnicht\n(?!ig)\w{{5}} | \bniet\n(?!s\b|ig)\w{{4}}
    | \b(?!alco|álco)\w{{2,}}([ao])\n\2 | \b(?:mede|zee|twee|drie)\n[aeiou]
    | \boud\n(?:minist|leerl|presid|speler|colleg)
    # Russian
    | \n(?:нибудь|либо|таки)\b | \b(?:{_WHO}|как(?:ой|ая|ое|ие|ого|ому|им|их|ую|ом))\nто\b | \b(?:{_DO})(?:те)?\nка\b
    | \bкое\n | \bиз\n(?:за|под)\b
    | \bпо\n(?:\w{{3,}}[сц]ки\b|(?:мо|тво|сво|наш|ваш|нов|друг|прежне|стар|хороше|разн|ин|видим|настоящ)\w*му\b)
    | \bво?\n(?:перв|втор|трет|четв[её]рт|пят)ых\b | \bв\nтретьих\b | \b(?:онлайн|интернет|веб|премьер)\n\w{{3}}
    | \b(?:северо|юго|научно|социально|экономически|общественно)\n\w{{4}} | \bвице\n\w{{4}}
    | \bпресс\n(?:секрет|конф|служб|рел)
    | \bвоенно\n(?!служ|плен|обяз)\w{{4}}
    """
_DUTCH = re.compile(r"\b(?:een|het|van|niet|voor|zijn|ook|deze|naar)\b")  # "in- en uitgang", but German "Frau-en"
# In Portuguese a pronoun follows its verb; in other languages, and after other words, it is the end of one.
_PORTUGUESE = re.compile(
    r"\b(?:não|uma|você|isso|então|também|muito|foi|são|já|ao|ele|ela|dele|dela|meu|minha|seu|sua)\b"
)
_PRONOUN = re.compile(
    r"\w(?:[^\Wr][aei]r|ou|eu|iu|am|em|ava|ia|sse|ece|ndo)\n(?:se|me|te|nos|vos)\b|\b(?:dar|ver|ter|ser|pôr)\n(?:se|me)\b"
    r"|[áéêíóô]\nl[oa]s?\b|\b(?!(?:ba|fa|fra|qua|cri|te|cla|análi|hipóte|sínte|ênfa|do|es|ne|de)\n)\w{2,}[aei]\nse\b"
)


@cache
def _hyphenated() -> re.Pattern[str]:
    return re.compile(_HYPHENATED, re.VERBOSE)  # here, because it takes 20 ms


class Hyphens:
    """Rejoins the cut words of a text; words such as Anglo-Saxon, est-ce and кто-нибудь keep their hyphen.

    What the text has elsewhere decides, if it has the word; otherwise what is known of the languages.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _compounds(self) -> list[tuple[str, str]]:
        """The halves of all words that have a hyphen within a line, in order."""
        return sorted(_COMPOUND.findall(self._text.casefold()))

    @cached_property
    def _words(self) -> set[str]:
        return set(_LETTERS.findall(self._text.casefold()))

    @cached_property
    def _is_portuguese(self) -> bool:
        return bool(_PORTUGUESE.search(self._text.casefold()))

    @cached_property
    def _is_dutch(self) -> bool:
        return bool(_DUTCH.search(self._text.casefold()))

    def rejoined(self, lines: Iterable[tuple[int, str]], shortest: int = _WRAPPED_LENGTH) -> list[tuple[int, str]]:
        """The numbered lines of a paragraph; the rest of a cut word moves up to its beginning.

        Japanese is cut without a hyphen: what comes before the next sign moves up to a line of at least `shortest`
        characters.
        """
        found = list[tuple[int, list[str]]]()  # pieces, because a line may get the rests of many
        for number, line in lines:
            pieces = found[-1][1] if found else [""]
            last = pieces[-1].rstrip()
            if (hyphen := self.between(last, line)) is not None:
                pulled, last = _PULLED.match(line), last[:-1] + hyphen
            else:
                pulled = _CONTINUED.match(line) if len(last) >= shortest and _WRAPPED.search(last) else None
            if pulled is None:
                found.append((number, [line]))
                continue
            pieces[-1] = last
            pieces.append(pulled[1])
            if pulled.end() < len(line):
                found.append((number, [line[pulled.end() :]]))
        return [(number, "".join(pieces)) for number, pieces in found]

    def between(self, line: str, following: str) -> str | None:
        """What joins the word that two lines share: nothing or its hyphen; None if they share no word."""
        beginning = _BEGINNING.search(line[-_LONGEST:-1]) if line.endswith(HYPHENS) else None
        rest = _REST.match(following[: 2 * _LONGEST]) if beginning else None
        if beginning is None or rest is None or _AND.search(f"{beginning[0]}\n{rest[1]}"):
            return None
        if rest[1] in ("en", "of") and self._is_dutch:
            return None
        if line[-1] in _SURE:
            return ""
        last = _LETTERS.findall(beginning[0])[-1]
        if not (last[-1].isalpha() and rest[1][0].islower()) or (len(last) > 1 and last.isupper()):  # US-amerikanisch
            return "-"
        if _ADDRESS.search(line[-_LONGEST:]):
            return "-"
        return "-" if self._is_hyphenated(beginning[0].casefold(), rest[1].casefold()) else ""

    def _is_hyphenated(self, beginning: str, rest: str) -> bool:
        """Whether a word, given in lower case, has a hyphen where it is cut."""
        first, last = _LETTERS.findall(beginning)[-1], _LETTERS.findall(rest)[0]
        place = bisect_left(self._compounds, (first, last))
        if place < len(self._compounds) and "-".join(self._compounds[place]).startswith(f"{first}-{last}"):
            return True
        if first + last in self._words:
            return False
        cut = f"{beginning}\n{rest}"
        return bool(_hyphenated().search(cut) or (self._is_portuguese and _PRONOUN.search(cut)))
