"""`xsent mcp`: what a real client finds in a person's notes, and that nothing else can be read."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any
from urllib.parse import quote

import anyio
import pytest
from commands import OFFLINE, Runner, assert_refused, raises, start, write_files
from httpx2 import post
from lazy import Lazy, needs

from xsent import DataError, SentenceEncoder
from xsent_apps.mcp import MOST_CHARACTERS, Library
from xsent_apps.notes.folder import INDEX

pytestmark = needs("mcp")
mcp = Lazy("mcp")

FILES = {
    "Reise nach Rom.md": "# Zug\n\nDer Zug nach Rom fährt um neun Uhr von Gleis sieben.\n",
    "cat.txt": "The cat needs food twice a day.\n",
    "work/chat.txt": "Le chat doit manger deux fois par jour.\n",
}
SECRET = "the password is swordfish"
RUN = [sys.executable, "-c", f"{OFFLINE}; from xsent.cli.terminal import main; main()", "mcp"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of notes beside secrets, with every kind of link and device that leads to them."""
    around = tmp_path_factory.mktemp("home")
    names = ("secret.txt", "notes-2/secret.txt", "notes/.hidden.txt", "notes/.git/x.txt")
    secrets = dict.fromkeys(names, SECRET)
    write_files(around, {f"notes/{name}": text for name, text in FILES.items()} | secrets)
    notes = around / "notes"
    (notes / "link.txt").symlink_to(around / "secret.txt")
    (notes / "up").symlink_to(around)
    os.mkfifo(notes / "pipe.txt")
    return notes


def hostile(folder: Path) -> list[str]:
    """40 paths that lead out of the folder, or to what is no note."""
    secret = folder.parent / "secret.txt"
    ways = [
        "../secret.txt", "notes/../secret.txt", "notes/../../secret.txt", "notes/work/../../secret.txt", "..", ".", "",
        "/", "//", "notes", "notes/", "notes//", "notes/.", "notes/..", str(secret), f"/{secret}", f"notes/{secret}",
        f"file://{secret}", "notes/link.txt", "notes/up/secret.txt", "notes/pipe.txt", "notes/.hidden.txt",
        "notes/.git/x.txt", "notes-2/secret.txt", "/dev/stdin", "/dev/zero", "/proc/self/environ", "/etc/passwd",
        "notes/..%2fsecret.txt", "notes/%2e%2e/secret.txt", "notes/..%252fsecret.txt", "notes/..\\secret.txt",
        "notes/\uff0e\uff0e/secret.txt", "notes/..\u2215secret.txt", "notes/cat.txt\0", "notes/cat.txt\0.png",
        "notes/CAT.TXT", "NOTES/cat.txt", "~/secret.txt", "notes/" + "a/" * 50_000 + "x.txt",
    ]  # fmt: skip
    assert len(ways) == 40
    return ways


async def call(session: Any, tool: str, **arguments: object) -> Any:  # noqa: ANN401  of the client
    result = await session.call_tool(tool, arguments)
    if result.is_error:
        return result.content[0].text
    return result.structured_content.get("result", result.structured_content)


async def ask(server: Any, folder: Path) -> None:  # noqa: ANN401
    async with mcp.Client(server) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"search", "similar", "status"}
        assert "not indexed yet" in (await call(client, "status"))["folders"]["notes"]["problem"]
        found = await call(client, "search", query="À quelle heure part le train ?", limit=2)
        first = found[0]
        assert (first["path"], first["line"], first["heading"]) == ("notes/Reise nach Rom.md", 3, "Zug")
        assert first["text"].startswith("Der Zug") and first["close"] and first["score"] > found[1]["score"]
        assert not (await call(client, "search", query="fiscal policy of Portugal"))[0]["close"]
        found = await call(client, "similar", path="notes/cat.txt", line=1, limit=1)
        assert [hit["path"] for hit in found] == ["notes/work/chat.txt"]
        [about] = (await call(client, "status"))["folders"].values()
        assert (about["files"], about["problem"], about["folder"]) == (3, "", str(folder))
        content = (await client.read_resource(first["uri"])).contents[0].text
        assert content == "# Reise nach Rom › Zug\n3: Der Zug nach Rom fährt um neun Uhr von Gleis sieben."
        assert {str(entry.uri) for entry in (await client.list_resources()).resources} >= {first["uri"]}
        for path in hostile(folder):
            assert "no passage there" in await call(client, "similar", path=path, line=1)
            for uri in (f"notes:///{path}", f"notes:///{quote(path)}", path):
                with pytest.raises(mcp.MCPError) as caught:
                    await client.read_resource(uri)
                assert SECRET not in str(caught.value)
        for nonsense in ({}, {"query": 1}, {"query": " "}, {"query": "a", "limit": 0}, {"query": "a", "limit": 51}):
            assert isinstance(await call(client, "search", **nonsense), str)
        assert SECRET not in json.dumps(await call(client, "search", query=SECRET, limit=50))


@pytest.mark.slow
def test_a_client_in_a_process_of_its_own_finds_the_german_note(folder: Path) -> None:
    server = mcp.StdioServerParameters(command=RUN[0], args=[*RUN[1:], str(folder)], env=dict(os.environ))
    anyio.run(ask, server, folder)


@pytest.mark.slow
@pytest.mark.network
def test_http_serves_this_machine_alone_and_a_port_in_use_is_said(run: Runner, folder: Path) -> None:
    with start("mcp", folder, "--port", 0, before="pass") as process:
        assert process.stderr is not None
        try:
            address = process.stderr.readline().decode().split()[1].rstrip(";")
            assert address.startswith("http://127.0.0.1:") and address.endswith("/mcp")

            async def found() -> Any:  # noqa: ANN401
                async with mcp.Client(address) as client:
                    return await call(client, "search", query="train")

            assert anyio.run(found)[0]["path"] == "notes/Reise nach Rom.md"
            evil = {"Host": "evil.example", "Accept": "application/json, text/event-stream"}
            refused = post(address, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=evil)
            assert refused.status_code in (403, 421)
            port = address.split(":")[2].split("/")[0]
            assert_refused(run("mcp", folder, "--port", port), "another program is using this port")
        finally:
            process.terminate()
            assert process.stderr.read() == b""


@pytest.mark.slow
def test_nonsense_on_standard_input_ends_nothing(folder: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}}
    half = r'{"jsonrpc": "2.0", "id": 0, "method": "\ud800"}'  # no valid text: the library drops it, as all nonsense
    lines = ["nonsense", half, "[]", '{"jsonrpc": "2.0"}', "\udcff"]
    lines.append(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "no"}))
    lines.append(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": hello}))
    sent = "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")
    done = subprocess.run([*RUN, str(folder)], input=sent, capture_output=True, timeout=120, check=False)
    answers = {answer.get("id"): answer for answer in map(json.loads, done.stdout.splitlines())}
    assert answers[2]["result"]["serverInfo"]["name"] == "xsent" and b"Traceback" not in done.stderr


def test_what_is_no_folder_is_refused_in_one_line(run: Runner, folder: Path) -> None:
    for name in ("none", "cat.txt", "link.txt"):
        assert_refused(run("mcp", folder / name), "not a folder")


@pytest.mark.parametrize("link", [os.symlink, partial(copytree, copy_function=os.symlink)], ids=["itself", "files"])
def test_an_index_that_leads_elsewhere_is_refused(link: Callable[[Path, Path], object], tmp_path: Path) -> None:
    write_files(tmp_path, {"theirs/x.txt": SECRET, "mine/y.txt": "The cat sleeps.\n"})
    encoder = SentenceEncoder(threads=1)
    Library([tmp_path / "theirs"], encoder).search("cat")
    library = Library([tmp_path / "mine"], encoder)
    link(tmp_path / "theirs" / INDEX, tmp_path / "mine" / INDEX)
    begin = partial(Library, [tmp_path / "mine"], encoder)
    for call in (partial(library.search, "cat"), partial(library.read, "mine/x.txt"), library.status, begin):
        raises(DataError, "a link, which xsent does not follow", call)


def test_folders_of_one_name_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_files(tmp_path, {"a/notes/x.txt": "The train leaves at nine.\n", "b/notes/x.txt": "The cat sleeps.\n"})
    folders = [tmp_path / name for name in ("a/notes", "b/notes", "a/notes", "empty")]
    library = Library(folders, SentenceEncoder(threads=1))
    assert [hit.path for hit in library.search("cat", 9)] == ["notes-2/x.txt", "notes/x.txt"]
    assert library.read("notes-2/x.txt") == "# x\n1: The cat sleeps."
    raises(DataError, "expected 1 to", library.search, "x" * (MOST_CHARACTERS + 1))


def test_all_passages_of_a_line_have_similar_ones(tmp_path: Path) -> None:
    rest = "The central bank raised interest rates again because inflation stayed high this year. " * 6
    kittens, bank = "Kittens love the couch and hunt mice.\n", "Inflation made the bank raise its rates.\n"
    long = f"Cats sleep on sofas and hunt mice. {rest}\n"
    write_files(tmp_path, {"n/long.txt": long, "n/a.txt": kittens, "n/b.txt": bank})
    library = Library([tmp_path / "n"], SentenceEncoder(threads=1))
    library.search("cats")
    assert {hit.path for hit in library.similar("n/long.txt", 1, 2)} == {"n/a.txt", "n/b.txt"}
    assert len(library.similar("n/long.txt", 1, 1)) == 1
