"""A real browser for tests: Debian's `chromium`, or another Chrome in CHROMIUM, driven by playwright."""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from xsent_apps.web.server import open_site
from xsent_apps.web.site import Site

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
AXE = Path(os.environ.get("XSENT_NODE_MODULES", "node_modules"), "axe-core", "axe.min.js")
MINUTE = 60_000  # for a slow machine to load 35 MB and compile them
# The results of a search, all of them: texts and scores.
ASK = """async (query) => {
    const input = document.getElementById("query");
    const asked = new Promise((done, fail) => {
        input.addEventListener("asked", done, { once: true });
        setTimeout(() => fail("the page has not answered for a minute"), 60_000);  // else the test never ends
    });
    input.value = query;
    input.dispatchEvent(new Event("input"));
    await asked;
    document.querySelector("#results .more")?.click();
    return Array.from(document.querySelectorAll("#results li"), (item) =>
        [item.querySelector("p").textContent, Number(item.querySelector(".number").textContent)]);
}"""

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")


@contextmanager
def listening(server: ThreadingHTTPServer) -> Iterator[str]:
    """The address of a server while it runs."""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of the page as `xsent web` serves it, with its model."""
    with open_site(Site.of(None)) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    playwright.expect.set_options(timeout=MINUTE)
    with playwright.sync_playwright() as started:
        # Chrome itself asks its maker about the fields of any page, and for more; what is tested is what the page asks.
        own_requests = "AutofillServerCommunication,AimEnabled,PreconnectToSearch"
        arguments = ["--no-sandbox", f"--disable-features={own_requests}"]
        browser = started.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@contextmanager
def quiet_page(browser: Any, **options: object) -> Iterator[Any]:  # noqa: ANN401
    """A page that has no errors and warnings until it is closed."""
    page = browser.new_page(**options)
    complaints = complaints_of(page)
    yield page
    page.close()
    assert complaints == []


def complaints_of(page: Any) -> list[str]:  # noqa: ANN401
    """Where a page's errors and warnings go."""
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if line.type in ("error", "warning") else None)
    return complaints


def violations(page: Any) -> list[tuple[str, list[str]]]:  # noqa: ANN401
    """What axe-core finds on a page: the rule, and where it is broken."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return [(one["id"], [node["html"] for node in one["nodes"]]) for one in page.evaluate("axe.run()")["violations"]]


def open_page(page: Any, address: str) -> None:  # noqa: ANN401
    page.goto(address)
    page.wait_for_selector("html[data-ready]", timeout=MINUTE)


def expect(page: Any, selector: str) -> Any:  # noqa: ANN401
    return playwright.expect(page.locator(selector).first)
