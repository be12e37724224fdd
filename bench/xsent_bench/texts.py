"""Synthetic sentences in four languages, as long as real ones; the time does not depend on their meaning."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count, islice

TEXTS = 16  # different ones per length
# Words per sentence: the twenty-quantiles of the translations in the training pairs, shuffled; 20 tokens on average.
WORDS = (14, 5, 30, 9, 18, 2, 12, 24, 6, 45, 10, 16, 3, 21, 7, 12, 35, 4, 15, 8)
HALVES = {  # beginnings and ends of sentences
    "en": (
        ("The old bridge over the river", "My neighbour's youngest daughter", "Nobody at the office"),
        ("was repaired in {n} days before the winter, so that buses could use it.", "wrote {n} letters to the mayor."),
    ),
    "fr": (
        ("Le vieux pont sur la rivière", "La plus jeune fille de ma voisine", "Personne au bureau"),
        (
            "a été réparé en {n} jours avant l'hiver pour que les bus y passent.",
            "a écrit {n} lettres au maire de la ville.",
        ),
    ),
    "de": (
        ("Die alte Brücke über den Fluss", "Die jüngste Tochter meiner Nachbarin", "Niemand im Büro"),
        (
            "wurde vor dem Winter in {n} Tagen repariert, damit Busse fahren.",
            "schrieb {n} Briefe an den Bürgermeister.",
        ),
    ),
    "es": (
        ("El viejo puente sobre el río", "La hija menor de mi vecina", "Nadie en la oficina"),
        ("se reparó en {n} días antes del invierno para los autobuses.", "escribió {n} cartas al alcalde del pueblo."),
    ),
}


def sentences(number: int, languages: str = "en fr de es", words: Sequence[int] = WORDS) -> list[str]:
    """Different sentences in alternating languages; each begins with its number, and has `words` in turn."""
    sources = [chain.from_iterable(map(str.split, _endless([language]))) for language in languages.split()]
    return [" ".join([str(n), *islice(sources[n % len(sources)], words[n % len(words)])]) for n in range(number)]


def mixed(number: int) -> Iterator[str]:
    """Sentences of 5 to about 100 tokens; neighbours differ in length."""
    source = _endless(list(HALVES))
    for i in range(number):
        whole = " ".join(next(source) for _ in range(1 + i % 5))
        yield whole[: 12 + (i * 37) % len(whole)]


def texts_of(tokens: int, count_tokens: Callable[[str], int], source: Iterator[str], number: int = TEXTS) -> list[str]:
    """Texts of exactly `tokens` tokens: beginnings of sentences, joined where they are too short."""
    return [_text_of(tokens, count_tokens, source) for _ in range(number)]


def _text_of(tokens: int, count_tokens: Callable[[str], int], source: Iterator[str]) -> str:
    for text in islice(source, 100):
        while count_tokens(text) < tokens:
            text = f"{text} {next(source)}"
        end = bisect_left(range(len(text)), tokens, key=lambda end: count_tokens(text[:end]))
        if count_tokens(text[:end]) == tokens:
            return text[:end]
    raise ValueError(f"no text of {tokens} tokens was found")


def _endless(languages: Sequence[str]) -> Iterator[str]:
    for n in count():
        turn, place = divmod(n, len(languages))
        starts, ends = HALVES[languages[place]]
        yield f"{starts[turn % len(starts)]} {ends[turn // len(starts) % len(ends)].format(n=turn)}"
