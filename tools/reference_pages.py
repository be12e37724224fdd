"""Writes pages of docs/reference: the commands, the server's routes and answers, and a page for each class.

python tools/reference_pages.py
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from json import dumps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from starlette.testclient import TestClient
from typer.main import get_command

from xsent import LinearClassifier, SearchIndex, SentenceEncoder, build_index
from xsent.cli.program import help_records
from xsent_apps.server.application import create_app

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
NOTE = "<!-- `python tools/reference_pages.py` writes this page. -->"

PROGRAMS = {
    "xsent": ("xsent.cli.main", "The model, and everything that uses it."),
    "xsent-train": ("xsent_train.cli", 'Trains models: `pip install "xsent[train]"`.'),
    "xsent-export": ("xsent_export.cli", 'Turns a checkpoint into a bundle: `pip install "xsent[export]"`.'),
    "xsent-bench": ("xsent_bench.cli", 'Measures: `pip install "xsent[bench]"`.'),
}
CLASSES: dict[str, list[str]] = {  # the directives of a page; a small class is on the page of the one that has it
    "SentenceEncoder": ["SentenceEncoder", ":members:"],
    "Bundle": ["Bundle()", ":members: open, verify"],
    "Document": ["Document", ":members:"],
    "SearchIndex": [
        *("SearchIndex", ":members:", ":exclude-members: passages, stored_documents"),
        *("xsent.search.store.IndexState()", ":members: fingerprint, dim, lines, rows"),
    ],
    "Hit": ["Hit()", ":members:"],
    "LinearClassifier": [
        *("LinearClassifier()", ":members:", ":exclude-members: weight, bias"),
        *("xsent.classification.logistic.Choice()", ":members:"),
    ],
    "Clusters": ["Clusters()", ":members:"],
    "ClusterName": ["ClusterName()", ":members:"],
    "TextMap": ["xsent_apps.map.TextMap()", ":members: count, save, page"],
    "Bitext": ["xsent.mining.bitext.Bitext()", ":members:", "xsent.mining.bitext.DocumentPair()", ":members:"],
    "DocumentEncoder": ["DocumentEncoder", ":members:"],
    "DocumentSpace": [
        *("xsent.documents.centering.DocumentSpace()", ":members: choice, fingerprint"),
        *("xsent.documents.centering.RankChoice()", ":members:"),
    ],
    "Integration": ["xsent_apps.integration.Integration"],
    "SentenceVectorizer": ["xsent_apps.sklearn.SentenceVectorizer", ":members: fit, transform"],
    "XsentEmbeddings": ["xsent_apps.langchain.XsentEmbeddings", ":members: embed_documents, embed_query"],
    "XsentEmbedding": [
        "xsent_apps.llamaindex.XsentEmbedding",
        ":members: path, layers, truncate_dim, on_long, threads, space, fingerprint",
    ],
    "XsentEmbeddingFunction": [
        "xsent_apps.chroma.XsentEmbeddingFunction",
        ":members: __call__, get_config, build_from_config",
    ],
    "XsentEncoder": ["xsent_apps.mteb.XsentEncoder", ":members: encode"],
    "Limits": ["xsent_apps.server.requests.Limits", ":members:"],
}
COMPLETION = ("--install-completion", "--show-completion")

TRAIN = {
    "weather": ["It rains all day.", "Tomorrow is sunny."],
    "money": ["Taxes rise again.", "The bank lends money."],
}
NOTES = ["The meeting is on Friday.", "The cat needs food."]
ASKED: dict[str, dict[str, Any]] = {  # the body of an example, by route
    "/v1/embeddings": {"input": ["Where is the station?", "Où est la gare ?"], "dimensions": 128},
    "/classify": {"input": ["Il neige en montagne.", "..."]},
    "/search": {"query": "Wann ist das Treffen?", "k": 1},
}
SHOWN = ("/v1/models", "/health")  # routes without a body whose answers are shown
WRONG: list[tuple[str, str, Any]] = [  # requests that are refused
    ("POST", "/v1/embeddings", "not JSON"),
    ("POST", "/v1/embeddings", {"input": []}),
    ("POST", "/v1/embeddings", {"input": [""]}),
    ("POST", "/v1/embeddings", {"input": [[101, 2054]]}),
    ("POST", "/v1/embeddings", {"input": "Hello", "dimensions": 100}),
    ("POST", "/v1/embeddings", {"input": "Hello", "model": "text-embedding-3-small"}),
    ("POST", "/v1/embeddings", {"input": "cats and " * 300, "on_long": "error"}),
    ("POST", "/v1/embeddings", {"input": ["Hello"] * 2049}),
    ("POST", "/v1/embeddings", {"input": "x" * 2**20}),
    ("POST", "/classify", {"input": "Hello", "lable": "x"}),
    ("POST", "/search", {"query": "Hello", "index": "mails"}),
    ("GET", "/search", None),
    ("POST", "/embeddings", {"input": "Hello"}),
]


def cli_page() -> str:
    """All commands with their arguments and options."""
    lines = [NOTE, "# Commands", "", *COMMANDS.strip().splitlines(), ""]
    for name, (module, purpose) in PROGRAMS.items():
        lines += [f"## {name}", "", purpose, ""]
        for path, command, context in _commands(get_command(import_module(module).app), name):
            lines += _describe(path, command, context)
    return "\n".join(lines).rstrip() + "\n"


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any, Any]]:  # noqa: ANN401  typer has its own click
    """A command and those below it, each with its full name and a context; groups without options are left out."""
    context = command.make_context(path, [], resilient_parsing=True)
    names = command.list_commands(context) if hasattr(command, "list_commands") else []
    if not names or path == "xsent-bench":  # which does something without a command, too
        yield path, command, context
    for name in names:
        yield from _commands(command.get_command(context, name), f"{path} {name}")


def _describe(path: str, command: Any, context: Any) -> list[str]:  # noqa: ANN401
    """Name, usage, purpose, options and example of a command."""
    named = list(help_records(command.params, context))
    arguments = [one for one, *_ in named if one.param_type_name == "argument"]
    usage = " ".join([path, *map(_argument, arguments), "[OPTIONS]"])
    lines = [f"### {path}" if path not in PROGRAMS else "### Usage", "", f"`{usage}`", ""]
    parts = [" ".join(part.split()) for part in (command.help or "").split("\n\n")]
    lines += [f"{_escape(part)}\n" for part in parts if part]
    for one, name, text in named:
        if not {*one.opts} & {*COMPLETION}:
            lines.append(f"- `{name}`: {_escape(text)}".removesuffix(": "))
    example = (command.epilog or "").removeprefix("Example: ")
    return [*lines, "", *([f"Example: `{example}`", ""] if example else [])]


def _argument(argument: Any) -> str:  # noqa: ANN401
    """An argument as in a usage line: brackets if it may be missing, dots if there may be several."""
    name = argument.metavar + "..." * (argument.nargs == -1)
    return name if argument.required else f"[{name}]"


def _escape(text: str) -> str:
    """A text in which Markdown finds nothing but code, and options are code."""
    parts = " ".join(text.split()).split("`")
    for row in range(0, len(parts), 2):  # outside of code
        parts[row] = re.sub(r"(\*|<(?=\w))", r"\\\1", parts[row])
        parts[row] = re.sub(r"(?<![\w-])(--[a-z][a-z-]*)", r"`\1`", parts[row])
    return "`".join(parts)


def class_page(name: str) -> str:
    """The page of a class, which Sphinx fills from the docstrings."""
    lines = [NOTE, f"# {name}", "", "[Python](../python.md) has all names, and what the examples share.", ""]
    lines += ["```{eval-rst}", ".. currentmodule:: xsent"]
    lines += [f"   {part}" if part.startswith(":") else f".. autoclass:: {part}" for part in CLASSES[name]]
    return "\n".join([*lines, "```"]) + "\n"


def http_page() -> str:
    """All routes with their fields, an example of each, and what is refused."""
    with TemporaryDirectory() as folder:
        client = _serve(Path(folder))
        schema = client.get("/openapi.json").json()
        lines = [NOTE, "# HTTP", "", *INTRODUCTION.strip().splitlines(), ""]
        for path, methods in schema["paths"].items():
            [(method, operation)] = methods.items()
            lines += [f"## {method.upper()} {path}", "", operation["summary"], "", *_fields(operation)]
            if path in ASKED:
                lines += ["```text", f"{dumps(ASKED[path], ensure_ascii=False)}", "```", ""]
                lines += _answer(client.post(path, json=ASKED[path]).json())
            elif path in SHOWN:
                lines += _answer(client.get(path).json())
        lines += ["## Refused requests", "", *REFUSED.strip().splitlines(), ""]
        lines += ["| request | status | `code` | `message` |", "|---|---|---|---|"]
        for method, path, body in WRONG:
            lines.append(_refusal(client, method, path, body))
    return "\n".join([*lines, "", *LIMITS.strip().splitlines()]) + "\n"


def _serve(folder: Path) -> TestClient:
    """A client of a server with a head and an index."""
    encoder = SentenceEncoder(threads=1)
    labels = [label for label, texts in TRAIN.items() for _ in texts]
    texts = [text for texts in TRAIN.values() for text in texts]
    head = LinearClassifier.fit(encoder.encode(texts), labels, fingerprint=encoder.fingerprint)
    build_index(folder / "notes", NOTES, encoder)
    application = create_app(encoder, heads={"topics": head}, indexes={"notes": SearchIndex(folder / "notes")})
    return TestClient(application, raise_server_exceptions=False)


def _fields(operation: Mapping[str, Any]) -> list[str]:
    """A table of the fields of a request."""
    if "requestBody" not in operation:
        return []
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    lines = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for name, field in schema["properties"].items():
        default = "required" if name in schema.get("required", ()) else f"`{dumps(field.get('default'))}`"
        lines.append(f"| `{name}` | {_type(field)} | {default} | {field['description']} |")
    return [*lines, ""]


def _type(field: Mapping[str, Any]) -> str:
    """A type of JSON Schema in words."""
    if "anyOf" in field:
        return ", or ".join(_type(one) for one in field["anyOf"] if one.get("type") != "null")
    if "enum" in field:
        return " or ".join(f"`{dumps(value)}`" for value in field["enum"])
    if field["type"] == "array":
        return "list of pairs" if "prefixItems" in field["items"] else f"list of {_type(field['items'])}s"
    bounds = "".join(f" {word} {field[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in field)
    return {"string": "text", "integer": "whole number"}.get(field["type"], str(field["type"])) + bounds


def _answer(answer: object) -> list[str]:
    """An answer, with short vectors and numbers."""

    def shorten(value: object) -> object:
        if isinstance(value, dict):
            return {name: shorten(one) for name, one in value.items()}
        if isinstance(value, list):
            return ["…"] if len(value) > 20 else [shorten(one) for one in value]
        return round(value, 2) if isinstance(value, float) else value

    text = dumps(shorten(answer), ensure_ascii=False, indent=1)
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda found: f"[{' '.join(found[1].split())}]", text)  # short lists
    return ["```json", *text.splitlines(), "```", ""]


def _refusal(client: TestClient, method: str, path: str, body: object) -> str:
    """A row of the table: a request and how it is refused."""
    content = body if isinstance(body, str) else dumps(body)
    answer = client.request(method, path, content=content if body is not None else None)
    error = answer.json()["error"]
    shown = content if len(content) <= 60 else f"{content[:32]}…"
    asked = f"`{method} {path}`" + f" `{shown}`" * (body is not None)
    code = f"`{error['code']}`" if error["code"] else ""
    return f"| {asked} | {answer.status_code} | {code} | {_escape(error['message'])} |"


COMMANDS = """
Every command has `-h`, which prints what this page says about it.

Results go to standard output, messages to standard error. The exit code is 0 if the command did what you
asked, 1 if it could not, 2 if you called it wrongly, and 130 after Ctrl-C.
"""
INTRODUCTION = """
`xsent serve` answers these requests. [The guide](../guides/serve.md) says how to start it. The server describes itself
at `/openapi.json`.

- Send JSON in UTF-8. `null` counts as a missing field. `/v1/embeddings` ignores unknown fields, because programs send
  those of other servers; `/classify` and `/search` refuse them.
- A text without words, such as `...` or `N/A`, has the label `null`. So has an empty text, which the other routes
  refuse.
- If the server has a key, send the header `Authorization: Bearer KEY`. `/health` and `/openapi.json` need none.
- Every answer with vectors, labels or hits has two headers. `X-Xsent-Fingerprint` names the vector space: vectors of
  different fingerprints cannot be compared. `X-Xsent-Split` counts the texts that were split because they are too long.
- `usage` counts the tokens of the model.
"""
REFUSED = """
An error has OpenAI's form: `{"error": {"message": …, "type": …, "param": …, "code": …}}`. `type` is
`invalid_request_error`, or `server_error` from status 500 on. `param` is the wrong field, or null.
"""
LIMITS = """
Other statuses:

- **401**: the key is missing or wrong.
- **403**: the request was sent to a host name that the server [does not accept](../guides/serve.md#options).
- **408**: the body took more than 30 seconds.
- **415**: the body is compressed. Send it without `Content-Encoding`.
- **500**: a failure of the server; its log has the details.
- **503**: the server is full, stops, or needed too long. The header `Retry-After` says when to try again.
"""


PAGES: dict[Path, Callable[[], str]] = {
    FOLDER / "cli.md": cli_page,
    FOLDER / "http.md": http_page,
    **{FOLDER / "python" / f"{name}.md": partial(class_page, name) for name in CLASSES},
}

if __name__ == "__main__":
    for page, make in PAGES.items():
        page.write_text(make(), encoding="utf-8")
