"""Regular expressions with phrases of several languages, which are in a JSON file beside the module that uses them."""

import json
import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

ANY = "any"  # phrases that belong to all languages
_KIND = re.compile(r"(?<!\?P)<([a-z_]+)>")  # but not the name of a group


class Phrases:
    """Phrases by kind and language, each a fragment of a regular expression.

    To add a language, add its phrases to each kind of the file. In a template, `<kind>` stands for the phrases of that
    kind.
    """

    def __init__(self, file: Path) -> None:
        self._kinds: dict[str, dict[str, list[str]]] = json.loads(file.read_text(encoding="utf-8"))
        self._languages = [*dict.fromkeys(chain.from_iterable(self._kinds.values()))]

    def of_all(self, template: str) -> str:
        """The pattern of a template in which each kind has the phrases of all languages."""
        return self._filled(template, self._languages)

    def of_each(self, template: str) -> str:
        """The patterns of a template, as alternatives, one for each language that has phrases of all its kinds."""
        kinds = [self._kinds[kind] for kind in _KIND.findall(template)]
        spoken = [one for one in self._languages if all(one in kind or ANY in kind for kind in kinds)]
        return _one_of(self._filled(template, (ANY, one)) for one in spoken)

    def _filled(self, template: str, languages: Iterable[str]) -> str:
        def phrases(kind: re.Match[str]) -> str:
            return _one_of(chain.from_iterable(self._kinds[kind[1]].get(language, ()) for language in languages))

        return _KIND.sub(phrases, template)


def _one_of(patterns: Iterable[str]) -> str:
    return f"(?:{'|'.join(dict.fromkeys(patterns))})"
