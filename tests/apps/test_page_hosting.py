"""The page on a static host: what it asks for, what it keeps, and how it opens without a network."""

import functools
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from browsing import browser, complaints_of, expect, listening, needs_chromium, open_page

from xsent_apps.web.site import Site

pytestmark = [pytest.mark.slow, needs_chromium]
__all__ = ["browser"]


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Path and status of whatever servers of this process are asked for."""
    asked: list[tuple[str, int]] = []
    record = lambda handler, code="-", size="-": asked.append((handler.path, int(code)))  # noqa: E731
    monkeypatch.setattr(BaseHTTPRequestHandler, "log_request", record)
    return asked


class Elsewhere(BaseHTTPRequestHandler):
    """Stands for the rest of the internet: as a proxy it hears of every request that leaves this machine."""

    heard: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.heard.append(self.requestline)
        self.send_error(404)

    do_HEAD = do_POST = do_CONNECT = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def leaving(browser: Any) -> Iterator[tuple[Any, list[str]]]:  # noqa: ANN401
    """A browser's window, and what it asks of other machines."""
    with listening(ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)) as address:
        context = browser.new_context(proxy={"server": address, "bypass": "127.0.0.1"})
        yield context, Elsewhere.heard
        context.close()


def test_from_a_static_host_once_then_what_is_newer_and_then_without_a_network(
    leaving: tuple[Any, list[str]], requests: list[tuple[str, int]], tmp_path: Path
) -> None:
    made, site = Site.of(None), tmp_path / "some" / "where"
    site.parent.mkdir()
    made.write(site)
    context, heard = leaving
    probe = context.new_page()
    probe.goto("http://elsewhere.example/")
    assert any("elsewhere.example" in line for line in heard)  # so it would be heard
    probe.close()  # its icon may still be asked for
    page = context.new_page()
    complaints = complaints_of(page)
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with listening(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as host:
        address = f"{host}some/where/"
        with page.expect_response("**/files.json?fresh"):  # the last that it asks for
            open_page(page, address)
        expect(page, "#facts").to_contain_text("✓ ready")
        page.wait_for_load_state("networkidle")
        here = [(path, code) for path, code in requests if path.startswith("/")]
        assert [path for path, code in here if code not in (200, 304)] == []
        names = [path.removeprefix("/some/where/").partition("?")[0] for path, code in here if code == 200]
        head = 1000 * len(here)  # more than the requests and what comes before the answers
        assert head + sum((site / (name or "index.html")).stat().st_size for name in names) <= 40_000_000
        # A newer page is fetched beside the old one.
        index, listed = site / "index.html", json.loads(made.list)
        index.write_text(index.read_text(encoding="utf-8").replace("<h1>xsent", "<h1>newer xsent"), encoding="utf-8")
        listed["version"] = listed["files"]["index.html"]["sha256"] = "0" * 16
        (site / "files.json").write_text(json.dumps(listed), encoding="utf-8")
        open_page(page, address)
        expect(page, "h1").to_have_text("xsent")
        expect(page, "#notice").to_contain_text("newer version")
        open_page(page, address)
        expect(page, "h1").to_have_text("newer xsent")
        expect(page, "#facts").to_contain_text("✓ ready")
    context.set_offline(True)  # besides, nobody listens there now
    open_page(page, address)
    expect(page, "#facts").to_contain_text("MB from this device")
    page.click("#example")
    page.fill("#query", "Where can I leave my bicycle?")
    expect(page, "#results li").to_be_visible()
    page.close()
    assert complaints == []
    assert [line for line in heard if "elsewhere.example" not in line] == []
