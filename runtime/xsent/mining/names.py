"""Names of clusters: the words that set them apart."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log, sqrt

import numpy as np

from xsent.bundle import TOKENIZER, builtin_path
from xsent.languages import is_function_word, language_of
from xsent.mining.boilerplate import strip_boilerplate
from xsent.mining.clusters import Clusters
from xsent.tasks import text_list
from xsent.tokenizer import Tokenizer
from xsent.words import beginning, word_keys

_WORDS = 4  # per name
_SEVERAL = 2  # texts of the cluster that a word of its name must be in, if any word is
_SHORTEST = 3  # fewest letters of a word
_ENGLISH = 0.5  # English texts per text in the most frequent language, from which the name is in English
# Words; in Chinese and Japanese, which have no spaces, runs of two or more characters without hiragana.
_WORD = re.compile(
    "[\u30a1-\u30fa\u30fc]{2,}|[\u3400-\u4dbf\u4e00-\u9fff々]{2,}|[^\\W\\d_\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff々]+"
)
_ASIAN = re.compile("[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff々]")


@dataclass(frozen=True)
class ClusterName:
    """What sets a cluster apart from the others."""

    words: tuple[str, ...]  #: words that are more frequent in it than elsewhere, best first
    central: int  #: row of the text nearest to its centre
    size: int  #: number of texts

    def __str__(self) -> str:
        return ", ".join(self.words)


def name_clusters(clusters: Clusters, texts: Iterable[str]) -> list[ClusterName]:
    """Name every cluster by the words that set it apart, and by its central text.

    The words are of one language: English, or the most frequent in the cluster if that has more than twice as many
    texts. The weight of a word is the share p of the cluster's texts that have it, times log(p / q), times log(1 / q),
    where q is its share of all texts in the language: as in tf-idf, words that are everywhere weigh nothing. It is also
    multiplied by the square root of the word's rarity in the built-in model's languages. A text is weighted by its
    cosine to the centre. Skips function words, boilerplate (see `strip_boilerplate`) and second forms of a word.

    Example:
        >>> found = cluster(encoder.encode(MAILS), texts=MAILS, smallest=2)
        >>> [(str(name), name.size) for name in name_clusters(found, MAILS)]
        [('wrong, invoice', 2), ('parcel, late', 2)]
    """
    texts = text_list(texts)
    if len(texts) != len(clusters.labels):
        raise ValueError(f"{len(texts):,} texts for {len(clusters.labels):,} rows of clusters; expected one per row")
    languages = [language_of(text) for text in texts]
    words = [_telling_words(text) for text in strip_boilerplate(texts)]
    total = Counter(languages)
    everywhere = {language: Counter[str]() for language in total}
    for language, found in zip(languages, words, strict=True):
        everywhere[language].update(found.keys())
    spelling = {key: word for found in words for key, word in found.items()}
    rarity = Tokenizer(builtin_path() / TOKENIZER).rarity
    names = []
    for number in range(clusters.count):
        members = np.flatnonzero(clusters.labels == number).tolist()
        language = _language(languages[row] for row in members)
        rows = [row for row in members if languages[row] == language]
        here = [words[row] for row in rows]
        weights = {
            key: sqrt(_ASIAN.match(key) is not None or rarity(_keys(spelling[key])))
            * _weight(share, everywhere[language][key] / total[language])
            for key, share in _shares(here, clusters.cosines[rows].tolist()).items()
        }
        spelled = tuple(_spelled(key, here) for key in _best(weights))
        names.append(ClusterName(spelled, members[clusters.cosines[members].argmax()], len(members)))
    return names


def _telling_words(text: str) -> dict[str, str]:
    """The words of a text that may name a cluster, as spelled in the text, by their first keys."""
    found: dict[str, str] = {}
    for word in _WORD.findall(text):
        if keys := _keys(word):
            found.setdefault(keys[0], word)
    return found


@lru_cache(maxsize=1 << 14)
def _keys(word: str) -> tuple[str, ...]:
    """The keys of a word (`word_keys`); none if it cannot name a cluster. Chinese and Japanese words stay whole."""
    if _ASIAN.match(word):
        return (word,)
    keys = next(word_keys(word), ("",))
    return () if len(keys[0]) < _SHORTEST or is_function_word(word) else keys


def _language(languages: Iterable[str]) -> str:
    """The language of a cluster's name: the most frequent one of its texts, or English."""
    counts = Counter(languages)
    [(first, most)] = counts.most_common(1)
    return "en" if counts["en"] >= _ENGLISH * most else first


def _shares(texts: Sequence[Mapping[str, str]], cosines: Sequence[float]) -> dict[str, float]:
    """The share of texts with each word, weighted by cosine; words of one text count only if there are no others."""
    counts = Counter(key for words in texts for key in words)
    kept = {key for key, count in counts.items() if count >= _SEVERAL} or counts.keys()
    shares = dict.fromkeys(sorted(kept), 0.0)
    total = sum(cosines)
    for words, cosine in zip(texts, cosines, strict=True):
        for key in words.keys() & kept:
            shares[key] += cosine / total
    return shares


def _weight(share: float, everywhere: float) -> float:
    return share * log(share / everywhere) * log(1 / everywhere)


def _best(weights: Mapping[str, float]) -> list[str]:
    """The words of highest weight, with only the best of several forms of a word."""
    chosen = list[str]()
    for key in sorted(weights, key=lambda key: (-weights[key], key)):
        if len(chosen) < _WORDS and not any(_same(key, other) for other in chosen):
            chosen.append(key)
    return chosen


def _same(one: str, other: str) -> bool:
    """Whether two keys may be forms of one word: one has the other's beginning."""
    starts = beginning(one), beginning(other)
    return all(starts) and (one.startswith(starts[1]) or other.startswith(starts[0]))


def _spelled(key: str, texts: Sequence[Mapping[str, str]]) -> str:
    """A word as most texts spell it."""
    return Counter(words[key] for words in texts if key in words).most_common(1)[0][0]
