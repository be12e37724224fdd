"""Which language a text is in."""

from collections.abc import Iterable
from copy import copy

from xsent.errors import MissingExtraError

LOOKED_AT = 100  # characters of a side that its language is told from; more cost time and decide nothing

# The languages that a text may turn out to be in, beside the one it claims. Were they all that the identifier knows,
# short sentences would go to small relatives of their language: Spanish to Galician, Chinese to Wu.
RIVALS = frozenset(
    "ar bg bn ca cs da de el en es fa fi fr he hi hr hu id it ja ko nl no pl pt ro ru sk sv th tr uk ur vi zh".split()
)


class Identifier:
    """Tells languages apart by py3langid, whose model is a part of its package.

    Raises:
        MissingExtraError: py3langid is not installed.
    """

    def __init__(self) -> None:
        try:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier
        except ModuleNotFoundError as error:
            raise MissingExtraError(f"{error.name} is not installed; pip install 'xsent[train]'") from error
        self._all = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        self._rivals = copy(self._all)  # shares the model; a few languages take less time than all
        self._rivals.set_languages(RIVALS)
        self.languages = frozenset[str](self._all.labels)

    def odds(self, text: str, language: str) -> float:
        """How many times as probable as `language` the most probable language is, 1 if it is `language` or unknown."""
        if language not in self.languages:
            return 1.0
        identifier = self._rivals if language in RIVALS else self._all
        if identifier.classify(text[:LOOKED_AT])[0] == language:  # most are: no need to rank
            return 1.0
        probabilities: dict[str, float] = dict(identifier.rank(text[:LOOKED_AT]))
        return max(probabilities[rival] for rival in RIVALS) / max(probabilities[language], 1e-30)


def base_code(language: str) -> str:
    """A language code without script and region: pt of pt-BR."""
    return language.replace("_", "-").split("-")[0].lower()


def unchecked(languages: Iterable[str]) -> list[str]:
    """Those of some languages that the identifier does not know."""
    others = {language for language in languages if base_code(language) not in RIVALS}
    known = Identifier().languages if others else frozenset[str]()
    return sorted(language for language in others if base_code(language) not in known)
