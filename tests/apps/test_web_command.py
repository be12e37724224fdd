"""`xsent web`: what it serves and writes, and what it says when it cannot."""

import gzip
import hashlib
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from unittest import mock
from urllib.parse import urlsplit

import pytest
from commands import Runner, assert_refused, file_names, hear_ctrl_c, start, write_files

from xsent.bundle import EARLIER_VERSIONS, FORMAT_VERSION
from xsent_apps.web.server import open_site
from xsent_apps.web.site import STATIC, Site

pytestmark = pytest.mark.network

ROOT = Path(__file__).parents[2]
UNKNOWN = "application/octet-stream"  # no browser unpacks it by itself


@pytest.fixture(scope="module")
def server(mini_bundle: Path) -> Iterator[HTTPConnection]:
    """A connection to a server of the page with a small model."""
    with open_site(Site.of(mini_bundle)) as address:
        connection = HTTPConnection(urlsplit(address).netloc)
        yield connection
        connection.close()


def ask(server: HTTPConnection, path: str, method: str = "GET", **headers: str) -> tuple[HTTPResponse, bytes]:
    server.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    response = server.getresponse()
    return response, response.read()


def test_the_page_reads_the_bundles_that_the_runtime_reads() -> None:
    formats = [*EARLIER_VERSIONS, FORMAT_VERSION]
    assert f"const FORMATS = {formats};" in (STATIC / "xsent/encoder.js").read_text()


def test_every_listed_file_is_served_with_its_type(server: HTTPConnection) -> None:
    listed = json.loads(ask(server, "/files.json")[1])["files"]
    assert not {"xsent/package.json", "xsent/README.md", "xsent/index.d.ts"} & set(listed)  # only of the npm package
    assert {"index.html", "sw.js", "worker.js", "xsent/vendor/onnxruntime.wasm.gz", "model/embeddings.bin"} <= set(
        listed
    )
    for name, file in listed.items():
        response, content = ask(server, f"/{name}")
        assert (response.status, hashlib.sha256(content).hexdigest()) == (200, file["sha256"])
        assert len(content) == file["bytes"]
        kinds = {".js": "text/javascript; charset=utf-8", ".html": "text/html; charset=utf-8", ".gz": UNKNOWN}
        assert response.headers["Content-Type"] == kinds.get(Path(name).suffix, response.headers["Content-Type"])
    page = ask(server, "/")[1]
    assert page == (STATIC / "index.html").read_bytes()
    assert {*re.findall(r'(?:href|src)="([^"#]+)"', page.decode())} <= listed.keys()


def test_the_page_may_talk_to_nobody_else(server: HTTPConnection) -> None:
    headers = ask(server, "/")[0].headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "connect-src 'self';" in headers["Content-Security-Policy"]
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cross-Origin-Embedder-Policy"] == "require-corp"
    # On hosts that send no such header the page brings it itself; only what a page cannot say is missing there.
    policy = headers["Content-Security-Policy"].removesuffix("; frame-ancestors 'none'")
    assert f'content="{policy}"' in (STATIC / "index.html").read_text(encoding="utf-8")


def test_nothing_else_is_served(server: HTTPConnection) -> None:
    for path in ("/../site.py", "/%2e%2e/site.py", "/etc/passwd", "/model", "/model/", "/.git/config"):
        response, content = ask(server, path)
        assert (response.status, content) == (404, b""), path
    response, content = ask(server, "/", "POST")
    allowed = {*response.headers["Allow"].split(", ")}
    assert (response.status, content, allowed) == (405, b"", {"GET", "HEAD"})


def test_what_a_browser_has_is_not_sent_again(server: HTTPConnection) -> None:
    tag = ask(server, "/main.js")[0].headers["ETag"]
    response, content = ask(server, "/main.js", If_None_Match=tag)
    assert (response.status, content) == (304, b"")
    response, content = ask(server, "/main.js", "HEAD")
    assert (response.status, content) == (200, b"")
    assert response.headers["Content-Length"] == str((STATIC / "main.js").stat().st_size)


def test_nobody_is_kept_out_and_nobody_is_waited_for_long(mini_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = b"GET / HTTP/1.1\r\nX: "
    monkeypatch.setattr("xsent_apps.server.running.CONNECTIONS", 4)
    with ExitStack() as stack:
        url = urlsplit(stack.enter_context(open_site(Site.of(mini_bundle))))

        def connect(sent: bytes) -> socket.socket:
            connection = stack.enter_context(socket.create_connection((url.hostname, url.port), timeout=30))
            connection.sendall(sent)
            return connection

        server = HTTPConnection(url.netloc, timeout=30)
        stack.callback(server.close)
        assert ask(server, "/sw.js")[0].status == 200
        ours = server.sock
        for sent in (b"", half) * 4:
            held = connect(sent)
            assert ask(server, "/sw.js")[0].status == 200 and server.sock is ours
        assert held.send(b"a") == 1
        large = connect(half + b"a" * 60_000 + b"\r\nX: " + b"a" * 60_000 + b"\r\nX: " + b"a" * 20_000 + b"\r\n")
        assert large.recv(100).startswith(b"HTTP/1.1 400 ")
    monkeypatch.setattr("xsent_apps.server.running.IDLE_SECONDS", 0.2)
    with open_site(Site.of(mini_bundle)) as address:
        place = urlsplit(address)
        for sent in (b"", half):
            with socket.create_connection((place.hostname, place.port), timeout=30) as silent:
                silent.sendall(sent)
                with suppress(ConnectionError):
                    assert silent.recv(100) == b""


def test_a_folder_for_a_static_host(run: Runner, mini_bundle: Path, tmp_path: Path) -> None:
    out = tmp_path / "site"
    code, said, _ = run("web", "--model", mini_bundle, "--out", out)
    assert code == 0 and str(out) in said and "MB" in said
    listed = json.loads((out / "files.json").read_text())
    written = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert written == {*listed["files"], "files.json"}
    for name, file in listed["files"].items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == file["sha256"]
    assert json.loads((out / "model" / "xsent.json").read_text())["name"] == "mini"

    (out / "stale").touch()
    assert_refused(run("web", "--model", mini_bundle, "--out", out), "exists; --force replaces it")
    assert run("web", "--model", mini_bundle, "--out", out, "--force")[0] == 0
    assert not (out / "stale").exists()
    assert file_names(tmp_path) == {"site"}
    # The list's version says that another model is another page.
    assert json.loads(Site.of(None).list)["version"] != listed["version"]


def test_nothing_is_replaced_or_left_by_accident(run: Runner, mini_bundle: Path, tmp_path: Path) -> None:
    command = ["web", "--model", mini_bundle, "--out"]
    write_files(tmp_path, {"letters/mine.txt": ""})
    assert_refused(run(*command, tmp_path / "letters", "--force"), "was not written by `xsent web`")
    assert file_names(tmp_path / "letters") == {"mine.txt"}
    with mock.patch("shutil.copyfile", side_effect=OSError(28, "No space left on device", "somewhere")):
        assert_refused(run(*command, tmp_path / "site"), "No space left")
    assert file_names(tmp_path) == {"letters"}


def test_what_cannot_be_served_is_said_in_one_line(run: Runner, mini_bundle: Path, tmp_path: Path) -> None:
    assert_refused(run("web", "--model", tmp_path / "none"), "no such folder")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        taken = f"127.0.0.1, port {port}: another program is using this port; choose another --port"
        assert_refused(run("web", "--model", mini_bundle, "--port", port), taken)


@pytest.mark.skipif(sys.platform == "win32", reason="sends Ctrl-C")
def test_ctrl_c_ends_it_without_complaint(mini_bundle: Path) -> None:
    process = start("web", "--model", mini_bundle, "--port", 0, stdout=subprocess.PIPE, preexec_fn=hear_ctrl_c)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"http://127.0.0.1:")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (0, b"", b"")


def test_the_vendored_runtime_is_what_its_script_fetches() -> None:
    script = (ROOT / "tools" / "onnxruntime_web.sh").read_text(encoding="utf-8")
    sums = {name: digest for digest, name in re.findall(r"^(\w{64})  (\S+)$", script, re.MULTILINE)}
    vendor = STATIC / "xsent/vendor"
    own = (vendor / "onnxruntime.js").read_bytes()
    files = {
        "ort.wasm.bundle.min.mjs": own,
        "ort-wasm-simd-threaded.wasm": gzip.decompress((vendor / "onnxruntime.wasm.gz").read_bytes()),
        "LICENSE": (vendor / "LICENSE.txt").read_bytes(),
        "ThirdPartyNotices.txt": (vendor / "ThirdPartyNotices.txt").read_bytes(),
    }
    assert len(file_names(vendor)) == len(files)
    assert {name: hashlib.sha256(content).hexdigest() for name, content in files.items()} == sums
    version = script.partition("version=")[2].split()[0]
    assert f"v{version}".encode() in own[:200]
