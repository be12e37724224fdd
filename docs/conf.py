"""Settings of the site; `sphinx-build -c docs . site` builds it from the pages of the repository."""

import re
from typing import Any

from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

import xsent

project = "xsent"
version = release = xsent.__version__
extensions = [
    *("myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"),
    *("sphinx_copybutton", "sphinx_reredirects"),
]
html_theme = "furo"
html_title = project
html_theme_options = {"top_of_page_buttons": []}  # the pages are in the repository, which has no address yet
html_copy_source = False
html_show_copyright = False  # it would name nobody
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "_static/icon.svg"
copybutton_exclude = ".linenos, .gp, .go"  # of a `console`, only the commands
myst_html_meta = {
    "description": "Search, label and compare text by meaning, in nine languages, offline, on an ordinary CPU."
}

root_doc = "docs/index"
include_patterns = ["*.md", "**/*.md"]
exclude_patterns = [".*", "bench/notes/folder", "build", "data", "node_modules", "runs", "site"]

# Addresses that pages had before, relative to the page itself.
redirects = {"index": "docs/index.html"} | {
    f"docs/{old}": f"{new}.html"
    for old, new in {
        "start": "tutorials/five-minutes",
        **{
            name: f"guides/{name}"
            for name in (
                *("all-minilm", "classify", "cluster", "container", "documents", "encode", "integrations", "notes"),
                *("phones", "raspberry-pi", "search", "serve", "tables", "train"),
            )
        },
        "gguf": "guides/llama-cpp",
        "language": "guides/add-a-language",
        "mcp": "guides/assistant",
        "migration": "guides/migrate",
        "mine": "guides/translations-and-duplicates",
        "scaling": "guides/scale",
        "web": "guides/browser",
        "choosing": "explanation/choosing",
        "method": "explanation/method",
        "licences": "reference/licences",
        "reference": "reference/python",
        "testsets": "reference/test-sets",
        "architecture": "contributing/architecture",
        "findings": "contributing/findings",
    }.items()
}

myst_heading_anchors = 3  # links name headings as the forges do
default_role = "code"  # docstrings mark code as the pages do
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
nitpicky = True
# Names of other packages are not looked up, which needs a network. Item is a type variable.
nitpick_ignore_regex = [("py:.*", r"(?!xsent\b).*"), ("py:class", r"xsent\.(tasks\.Item|known_words\.KnownWords)")]


def _as_written(app: Sphinx, what: str, name: str, *found: Any) -> list[str | None]:  # noqa: ANN401  Sphinx's own
    """Signature and return type, with the short names of NumPy's types."""
    parts = [part and part.replace(stringify_annotation(ArrayLike, "smart"), "ArrayLike") for part in found[-2:]]
    array = re.compile(r"~numpy\.ndarray\[tuple\[.*?\], ~numpy\.dtype\[(.*?)\]\]")
    return [part and array.sub(r"NDArray[\1]", part) for part in parts]


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", _as_written)
