"""`xsent serve`: what clients send and get, what is refused, and how it ends."""

import base64
import gzip
import json
import re
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
import numpy as np
import pytest
from commands import Runner, assert_refused, is_one_line, raises, start
from conftest import sentences
from httpx2 import Client, Response, get, post
from served import EMBED, serving
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from xsent import DataError, FingerprintError, LinearClassifier, SearchIndex, SentenceEncoder, build_index, extend_index
from xsent_apps.server import requests
from xsent_apps.server.application import create_app
from xsent_apps.server.requests import Limits
from xsent_apps.server.running import listen

pytestmark = pytest.mark.network

ENGLISH = sentences("en")
LONG = " ".join(ENGLISH[:9])  # more than the toy reads


@pytest.fixture(scope="module")
def made(encoder: SentenceEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A head of texts, one of pairs, and an index."""
    folder = tmp_path_factory.mktemp("served")
    vectors, labels = encoder.encode(ENGLISH), ["odd" if row % 2 else "even" for row in range(len(ENGLISH))]
    for name, rows in (("topics", vectors), ("pairs", np.stack([vectors, vectors[::-1]], axis=1))):
        LinearClassifier.fit(rows, labels, fingerprint=encoder.fingerprint).save(folder / f"{name}.npz")
    build_index(folder / "notes.index", ENGLISH, encoder)
    return folder


@pytest.fixture(scope="module")
def address(made: Path, mini_bundle: Path) -> Iterator[str]:
    """A server in a process of its own."""
    files = ["--head", made / "topics.npz", "--head", f"two={made / 'pairs.npz'}", "--index", made / "notes.index"]
    with serving(mini_bundle, *files, "--alias", "text-embedding-3-small") as (found, _):
        yield found


@pytest.fixture(scope="module")
def client(encoder: SentenceEncoder, made: Path) -> TestClient:
    """The application itself, with small limits; what it does not expect is raised here."""
    load = lambda name: LinearClassifier.load(made / name, fingerprint=encoder.fingerprint)  # noqa: E731
    heads = {"topics": load("topics.npz"), "two": load("pairs.npz")}
    limits = Limits(bytes=20_000, items=40, length=500)
    return TestClient(
        create_app(encoder, heads=heads, indexes={"notes": SearchIndex(made / "notes.index")}, limits=limits)
    )


@pytest.mark.slow
def test_openai_s_client_reads_the_very_vectors(address: str, encoder: SentenceEncoder) -> None:
    import openai  # only here: it takes two seconds

    with openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as ours:
        vectors = encoder.encode(ENGLISH)
        tokens = sum(map(encoder.count_tokens, ENGLISH))
        # The client asks for base64 unless it is told otherwise.
        for options in ({}, {"encoding_format": "float"}, {"dimensions": encoder.dim}):
            made = ours.embeddings.create(model="text-embedding-3-small", input=ENGLISH, **options)
            found = np.array([one.embedding for one in made.data], np.float32)
            assert np.array_equal(found, vectors) and [one.index for one in made.data] == [*range(len(vectors))]
            assert (made.usage.prompt_tokens, made.usage.total_tokens, made.model) == (tokens, tokens, "mini")
        [alone] = ours.embeddings.create(model="default", input=ENGLISH[0], encoding_format="base64").data
        assert np.array_equal(np.frombuffer(base64.b64decode(str(alone.embedding)), "<f4"), vectors[0])
        raw = ours.embeddings.with_raw_response.create(model="mini", input=["Anna", LONG])
        split = raw.parse()
        assert np.array_equal(np.array(split.data[1].embedding, np.float32), encoder.encode(LONG, on_long="split"))
        tokens = encoder.count_tokens("Anna") + encoder.count_tokens(LONG)
        assert (raw.headers["X-Xsent-Split"], split.usage.prompt_tokens) == ("1", tokens)
        models = {model.id: model.to_dict()["fingerprint"] for model in ours.models.list()}
        assert models == dict.fromkeys(("mini", "text-embedding-3-small"), encoder.fingerprint)
        with pytest.raises(openai.NotFoundError, match="no model 'a/b'; this server has"):
            ours.embeddings.create(model="a/b", input="Anna")


def test_trained_prefixes_are_the_dimensions(encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = encoder.bundle.trained._replace(prefixes=(16, 32))
    monkeypatch.setitem(vars(encoder.bundle), "trained", trained)
    client = TestClient(create_app(encoder))
    answer = client.post(EMBED, json={"input": ENGLISH, "dimensions": 16}).json()
    found = np.array([one["embedding"] for one in answer["data"]], np.float32)
    assert np.array_equal(found, encoder.encode(ENGLISH, truncate_dim=16))
    refused(client.post(EMBED, json={"input": "Anna", "dimensions": 8}), 400, "was trained for: 16, 32")


def test_labels_and_lines_are_those_of_the_library(client: TestClient, encoder: SentenceEncoder, made: Path) -> None:
    head = LinearClassifier.load(made / "topics.npz", fingerprint=encoder.fingerprint)
    texts = [*ENGLISH[:5], LONG]
    vectors = encoder.encode(texts, on_long="split")
    answer = client.post("/classify", json={"input": texts, "head": "topics"})
    assert [one["label"] for one in answer.json()["data"]] == head.predict(vectors)
    assert [one["probability"] for one in answer.json()["data"]] == [share for _, share in head.answers(vectors)]
    assert answer.headers["X-Xsent-Fingerprint"] == encoder.fingerprint
    unsure = client.post("/classify", json={"input": "Anna", "head": "topics", "unknown": 1}).json()
    assert (unsure["data"][0]["label"], unsure["usage"]["prompt_tokens"]) == (None, encoder.count_tokens("Anna"))
    pairs = client.post("/classify", json={"input": [ENGLISH[:2], ENGLISH[2:4]], "head": "two"}).json()
    head = LinearClassifier.load(made / "pairs.npz", fingerprint=encoder.fingerprint)
    assert [one["label"] for one in pairs["data"]] == head.predict(encoder.encode(ENGLISH[:4]).reshape(2, 2, -1))
    none = {"label": None, "probability": None}
    for texts in (["Anna", ""], ["Anna", " \u200b"], ["Anna", "N/A"], ["Anna", "..."]):
        empty = client.post("/classify", json={"input": texts, "head": "topics", "unknown": 0}).json()["data"]
        assert empty[0]["label"] and empty[1] == {"index": 1, **none}
    assert client.post("/classify", json={"input": "", "head": "topics"}).json()["data"] == [{"index": 0, **none}]
    assert client.post("/classify", json={"input": ["Anna", ""], "head": "two"}).status_code == 400
    half = client.post("/classify", json={"input": [["Anna", ""]], "head": "two"}).json()["data"]
    assert half == [{"index": 0, **none}]
    queries = ENGLISH[5:25]
    found = client.post("/search", json={"query": queries, "k": 2}).json()
    hits = SearchIndex(made / "notes.index").search(encoder, queries, 2)
    assert [one["hits"] for one in found["data"]] == [[vars(hit) for hit in few] for few in hits]
    assert (found["data"][0]["hits"][0]["text"], found["index"]) == (queries[0], "notes")
    assert {one["note"] for one in found["data"]} == {""}
    plain = client.post("/search", json={"query": queries[0], "words": False, "least": 0.99}).json()["data"][0]["hits"]
    assert plain and all(0.99 <= hit["score"] <= 1 for hit in plain)


def refused(answer: Response, status: int, message: str) -> None:
    """See that an answer says this, in OpenAI's form."""
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert message in error["message"] and is_one_line(error["message"] + "\n")
    assert error["type"] == ("server_error" if status >= 500 else "invalid_request_error")


BAD = {
    "no JSON": (EMBED, b"{", "Invalid JSON"),
    "Latin-1": (EMBED, '{"input": "é"}'.encode("latin-1"), "the body is not UTF-8 (at byte 11); encode it as UTF-8"),
    "half a character": (EMBED, rb'{"input": ["Anna", "\ud800"]}', r"input[1]: a lone surrogate ('\ud800' at 0)"),
    "half a character in a name": ("/search", rb'{"query": "Anna", "\ud800": 1}', "a valid string, unable to parse"),
    "too deep": (EMBED, b"[" * 9000, "Invalid JSON"),
    "a list": (EMBED, [], "expected an object with model, input, "),
    "nothing": (EMBED, {}, "input: Field required"),
    "none": (EMBED, {"input": []}, "input: expected a text, or a list of at least one"),
    "tokens": (EMBED, {"input": [1, 2]}, "input: tokens of another model's vocabulary are meaningless to this one"),
    "null in it": (EMBED, {"input": ["Anna", None]}, "input[1]: expected a text"),
    "null to classify": ("/classify", {"input": ["Anna", None]}, "input: item 1 is null; expected a text"),
    "half a pair": ("/classify", {"input": [["Anna", None]], "head": "two"}, "input[0][1]: expected a text"),
    "empty": (EMBED, {"input": ["Anna", " "]}, "input[1] is empty; omit it"),
    "invisible": (EMBED, {"input": "\u200b"}, "input[0] is empty; omit it"),
    "empty query": ("/search", {"query": ""}, "query[0] is empty; omit it"),
    "too long": (EMBED, {"input": ["Anna"] * 20 + [LONG], "on_long": "error"}, "input[20] has"),
    "too long to split": (EMBED, {"input": LONG * 5}, "at most 500 fit; shorten it"),
    "too many": (EMBED, {"input": ["Anna"] * 41}, "41 texts; at most 40 in one request"),
    "a misspelt field": ("/search", {"query": "Anna", "K": 8}, "K: unknown field; known fields: model,"),
    "no such format": (EMBED, {"input": "Anna", "encoding_format": "int8"}, "'float' or 'base64'"),
    "untrained": (EMBED, {"input": "Anna", "dimensions": 33}, "33 is not among those that this model was trained for"),
    "which head": ("/classify", {"input": "Anna"}, "head: name one of topics, two"),
    "texts for pairs": ("/classify", {"input": "Anna", "head": "two"}, "the head 'two' takes a list of pairs"),
    "pairs for texts": ("/classify", {"input": [["a", "b"]], "head": "topics"}, "takes a text or a list of texts"),
    "too many hits": (
        "/search",
        {"query": ["Anna", "Boris"], "k": 21},
        "42 hits in total over all queries; at most 40",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_requests_are_told_what_is_wrong(client: TestClient, name: str) -> None:
    path, body, message = BAD[name]
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    refused(client.post(path, content=content), 400, message)


def test_fields_of_other_servers_and_null_do_no_harm(client: TestClient) -> None:
    nothing = dict.fromkeys(("model", "encoding_format", "dimensions", "user", "on_long"))
    answers = [client.post(EMBED, json={"input": "Anna", "input_type": "query", **more}) for more in ({}, nothing)]
    assert answers[0].json() == answers[1].json() and answers[0].status_code == 200
    assert client.post("/search", json={"query": "Anna", "k": None, "least": None}).status_code == 200


def test_what_is_not_there_is_named(client: TestClient, encoder: SentenceEncoder, made: Path) -> None:
    for path in ("/v1/chat", "/embeddings", "//v1/embeddings"):
        message = f"POST {path}: no such path; this server has /v1/embeddings, /v1/models, /classify, "
        refused(client.post(f"http://testserver{path}", json={"input": "Anna"}), 404, message)
    refused(client.get(EMBED), 405, f"GET {EMBED}: this path takes POST")
    packed = {"Content-Encoding": "gzip"}
    refused(
        client.post(EMBED, content=gzip.compress(b"{}"), headers=packed),
        415,
        "the body is encoded as gzip; send it without",
    )
    refused(
        client.post(EMBED, json={"input": "Anna", "model": "gpt"}), 404, "no model 'gpt'; this server has default, mini"
    )
    refused(
        client.post("/classify", json={"input": "Anna", "head": "x"}), 404, "no head 'x'; this server has topics, two"
    )
    without = TestClient(create_app(encoder))
    refused(without.post("/search", json={"query": "Anna"}), 404, "start it with --index NAME=PATH")
    index = SearchIndex(made / "notes.index")
    index.state = type(index.state)(fingerprint="of another", dim=32)
    raises(FingerprintError, r"notes\.index has vectors of of another", create_app, encoder, indexes={"notes": index})


def test_a_million_strings_and_a_header_that_lies(client: TestClient, address: str) -> None:
    with Client(base_url=address) as real:
        for sent in (real, client):
            refused(sent.post(EMBED, content=b'{"input": [' + b'"a",' * 10**6), 413, "bytes; send fewer texts at once")
            pieces = (b'"Anna",' * 1000 for _ in range(1000))  # their length is not known before
            refused(sent.post(EMBED, content=pieces), 413, "the request has more than")
        with socket.create_connection(("127.0.0.1", real.base_url.port or 0)) as raw:
            raw.sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n{")  # hangs up
        assert real.post(EMBED, json={"input": "Anna"}).status_code == 200


def test_the_key_and_the_name_of_this_machine(encoder: SentenceEncoder, address: str) -> None:
    guarded = TestClient(create_app(encoder, api_key="sésame"))
    keys = {"right": "Bearer sésame", "wrong": "Bearer sesame", "bare": "sésame"}
    for name, key in keys.items():
        answer = guarded.post(EMBED, json={"input": "Anna"}, headers={"Authorization": key.encode()})
        assert answer.status_code == (200 if name == "right" else 401)
    refused(guarded.get("/v1/models"), 401, "expected this server's key")
    assert guarded.get("/health").json() == {"status": "ok", "model": "mini", "fingerprint": encoder.fingerprint}
    assert guarded.get("/openapi.json").status_code == 200
    named = TestClient(create_app(encoder, hosts=["Pi.local"]))
    for host, status in {"pi.LOCAL:8000": 200, "localhost": 200, "pi.local.evil": 403, "": 403}.items():
        assert named.get("/v1/models", headers={"Host": host}).status_code == status
    with Client(base_url=address) as real:
        for host, status in {"localhost": 200, "[::1]:80": 200, "evil.example": 403, "localhost.evil:80": 403}.items():
            assert real.get("/v1/models", headers={"Host": host}).status_code == status


def test_web_pages_of_allowed_origins_read_answers(encoder: SentenceEncoder) -> None:
    ours = "https://example.org"
    asking = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,x-stainless-os"}
    client = TestClient(create_app(encoder, api_key="key", origins=[ours]))
    before = client.options(EMBED, headers={"Origin": ours, **asking})
    assert before.status_code == 200 and "authorization" in before.headers["Access-Control-Allow-Headers"]
    for headers, status in (({}, 401), ({"Authorization": "Bearer key"}, 200)):  # a page can read refusals too
        answer = client.post(EMBED, json={"input": "Anna"}, headers={"Origin": ours, **headers})
        assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (status, ours)
    assert "X-Xsent-Split" in answer.headers["Access-Control-Expose-Headers"]
    evil = {"Origin": "https://evil.example"}
    assert client.options(EMBED, headers={**evil, **asking}).status_code == 400
    for other in (client, TestClient(create_app(encoder))):
        assert "Access-Control-Allow-Origin" not in other.get("/health", headers=evil).headers


def test_the_schema_describes_what_is_there(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    for path, methods in schema["paths"].items():
        [(method, operation)] = methods.items()
        assert client.request(method, path, json={}).status_code in (200, 400, 404)
        assert operation["summary"]
    form = schema["paths"]["/search"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(form["properties"]) == {"model", "query", "k", "index", "words", "least"}
    assert {"type": "string"} in form["properties"]["query"]["anyOf"] and form["required"] == ["query"]


class Held(SentenceEncoder):
    """Encodes when it is let."""

    def __init__(self, bundle: Path) -> None:
        super().__init__(bundle, threads=1)
        self.begun, self.go = threading.Semaphore(0), threading.Event()

    def encode(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401, D102
        self.begun.release()
        assert self.go.wait(60)
        return super().encode(*arguments, **options)


def test_a_full_queue_says_so_and_clears(mini_bundle: Path, caplog: pytest.LogCaptureFixture) -> None:
    held = Held(mini_bundle)
    client = TestClient(create_app(held, limits=Limits(queue=0)))
    ask: Callable[[], Response] = lambda: client.post(EMBED, json={"input": "Anna"})  # noqa: E731
    with ThreadPoolExecutor() as pool:
        first = pool.submit(ask)
        held.begun.acquire()
        second = ask()
        refused(second, 503, "this server is at its limit of 1 requests; try again soon")
        assert second.headers["Retry-After"] == "1" and client.get("/health").status_code == 200
        assert ask().status_code == 503
        held.go.set()
        assert first.result().status_code == ask().status_code == 200
    full = "all 1 places are taken; further requests get 503 (raise --queue to let more wait)"
    assert [record.getMessage() for record in caplog.records] == [full]  # not once for each


def test_the_log_has_a_line_for_each_request_without_its_texts(mini_bundle: Path, made: Path) -> None:
    with start("serve", "--port", 0, "--model", mini_bundle) as process:
        assert process.stderr is not None
        address = process.stderr.readline().decode().split(" on ")[1].split(";")[0]
        post(f"{address}{EMBED}?key=secret", json={"input": ["secret", "Anna"]}, headers={"Authorization": "secret"})
        get(f"{address}/health")
        get(f"{address}/no%0Asuch")
        process.terminate()
        lines = process.stderr.read().decode().splitlines()
    assert [re.sub(r"^\d{4}-[-\d]+ [\d:]+ |[\d.]+ ms", "", line) for line in lines] == [
        "POST /v1/embeddings 200, , texts: 2",
        "GET /no such 404, , texts: 0",
    ]


def test_nobody_waits_for_ever(mini_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(mini_bundle)
    client = TestClient(create_app(held, limits=Limits(seconds=0.01)))
    threading.Timer(0.2, held.go.set).start()
    refused(client.post(EMBED, json={"input": "Anna"}), 503, "not done within 0.01 seconds")

    async def stopped(*given: Any) -> None:  # noqa: ANN401
        with anyio.move_on_after(0.05):
            await create_app(held)(*given)

    sent = asked(stopped)
    assert (sent[0]["status"], b"this server was stopped before the request was done" in sent[1]["body"]) == (503, True)
    monkeypatch.setattr(requests, "BODY_SECONDS", 0)
    sent = asked(create_app(held))  # nothing comes
    assert (sent[0]["status"], b"did not arrive within 0 seconds" in sent[1]["body"]) == (408, True)


def asked(app: ASGIApp, *messages: dict[str, Any]) -> list[Any]:
    """What an application sends to a client that sends these messages, and then nothing more."""
    sent, coming = list[Any](), iter(messages)

    async def receive() -> Any:  # noqa: ANN401
        if message := next(coming, None):
            return message
        await anyio.sleep_forever()

    async def send(message: Any) -> None:  # noqa: ANN401
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": EMBED, "headers": [], "query_string": b""}
    anyio.run(app, scope, receive, send)
    return sent


def test_who_hangs_up_costs_no_work(mini_bundle: Path) -> None:
    held = Held(mini_bundle)
    app, body = create_app(held), {"type": "http.request", "body": b'{"input": "Anna"}'}
    assert asked(app, body, {"type": "http.disconnect"})[0]["status"] == 499
    assert not held.begun.acquire(blocking=False)


def test_failures_are_for_the_log(
    mini_bundle: Path, made: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    encoder, index = SentenceEncoder(mini_bundle), SearchIndex(made / "notes.index")
    client = TestClient(create_app(encoder, indexes={"notes": index}), raise_server_exceptions=False)
    for error in (DataError("/secret: damaged"), OSError(5, "gone", "/secret"), RuntimeError("a bug in /secret")):
        monkeypatch.setattr(index, "search", lambda *_, **__: (_ for _ in ()).throw(error))  # noqa: B023
        answer = client.post("/search", json={"query": "Anna"})
        refused(answer, 500, "the server's log has the details")
        assert "secret" not in answer.text
    assert [record.getMessage()[:7] for record in caplog.records] == ["/secret", "[Errno "]


def test_an_index_is_read_again_once_it_has_changed(
    encoder: SentenceEncoder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "notes.index"
    build_index(place, ENGLISH[:5], encoder)
    with TestClient(create_app(encoder, indexes={"notes": SearchIndex(place)})) as client, ThreadPoolExecutor() as pool:

        def found(_: int = 0) -> bool:
            answer = client.post("/search", json={"query": ENGLISH[20], "k": 1}).json()
            return bool(answer["data"][0]["hits"][0]["text"] == ENGLISH[20])

        assert not found()
        extend_index(place, ENGLISH[20:], encoder)
        with mock.patch.object(SearchIndex, "_open", autospec=True, side_effect=SearchIndex._open) as opened:
            assert all(pool.map(found, range(20))) and opened.call_count == 1
        build_index(place, ENGLISH[:5], encoder, force=True)
        assert not any(pool.map(found, range(20)))
        shutil.rmtree(place)
        assert not any(pool.map(found, range(3)))  # from the files that are open
        problem = f"{place}: no such folder; create one with xsent index"
        assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
            f"could not reload the changed index; still searching the previous one: {problem}"
        ]
        build_index(place, ENGLISH, encoder)
        assert found()


def test_sigterm_lets_what_runs_finish(mini_bundle: Path, encoder: SentenceEncoder, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    slow = "import time, pathlib; from xsent import SentenceEncoder as S; e = S.encode; "
    slow += f"S.encode = lambda *a, **o: (pathlib.Path({str(begun)!r}).touch(), time.sleep(1), e(*a, **o))[2]"
    with serving(mini_bundle, before=slow) as (address, process), ThreadPoolExecutor() as pool:
        answer = pool.submit(post, f"{address}{EMBED}", json={"input": "Anna"}, timeout=60)
        while not begun.exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        found = np.array(answer.result().json()["data"][0]["embedding"], np.float32)
        assert np.array_equal(found, encoder.encode("Anna"))
        assert process.wait(60) == 0


def test_what_cannot_be_served_is_one_line(
    run: Runner, mini_bundle: Path, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert_refused(
            run("serve", "--port", port), f"127.0.0.1, port {port}: another program is using this port; choose"
        )
    raises(DataError, "--host '..': expected an address or a host name", listen, "..", 0)
    with listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # else asyncio lets every answer wait 40 ms
    free = ["serve", "--port", 0, "--model", mini_bundle]
    assert_refused(run(*free, "--allow-origin", "*"), "lets every web page read the answers; set XSENT_API_KEY")
    for origin in ("https://a.b/", "https://A.b"):  # browsers send small letters
        assert_refused(run(*free, "--allow-origin", origin), "expected SCHEME://NAME[:PORT] in lower case, such as h")
    for host in ("http://pi", "::1"):
        assert_refused(run(*free, "--allow-host", host), "expected a name, such as pi.local")
    assert_refused(run("serve", "--host", "no.such.host.invalid"), "no.such.host.invalid, port 8000: ")
    head = made / "topics.npz"
    assert_refused(run(*free, "--head", head, "--head", head), "NAME=PATH, with another name for each")
    assert_refused(run(*free, "--head", tmp_path / "no.npz"), "no.npz: no such file; create one with xsent")
    assert_refused(run(*free, "--index", f"notes={tmp_path}"), "not an index; create one with xsent index")
    key = tmp_path / "key"
    assert_refused(run(*free, "--api-key-file", key), "key: No such file or directory")
    key.write_text("two words\n")
    assert_refused(run(*free, "--api-key-file", key), "key: expected one line, the key, of printable ASCII")
    monkeypatch.setenv("XSENT_API_KEY", "")
    assert_refused(run(*free), "XSENT_API_KEY: expected one line, the key")
