"""What the server says about itself: a schema for programs, and a page for people."""

import json
from collections.abc import Iterable, Mapping
from html import escape
from importlib.metadata import version
from inspect import getdoc
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from xsent_apps.server.requests import FORMS, json_response

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>xsent</title>
<style>body {{ font: 1rem/1.5 sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem }}
pre {{ overflow: auto }} td {{ padding-right: 1rem; vertical-align: top }}</style>
<h1>xsent</h1>
<p>This server turns texts into vectors, with the model {model}. It has the interface of OpenAI's
<code>/v1/embeddings</code>.</p>
<pre>{curl}</pre>
<table>{rows}</table>
<p><a href="health">/health</a> · <a href="v1/models">/v1/models</a> · <a href="openapi.json">/openapi.json</a></p>
</html>
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # it loads nothing
_ANSWERS = {"200": {"description": "OK"}, "default": {"description": "Refused: `error.message` says why"}}


def about_routes(routes: Iterable[Route], model: str, *, needs_key: bool) -> list[Route]:
    """Two more routes, which describe these ones."""
    schema = _make_schema(routes, needs_key=needs_key)

    async def show_page(request: Request) -> Response:
        page = _make_page(schema, model, request.headers.get("host", ""))
        return HTMLResponse(page, headers={"Content-Security-Policy": _POLICY})

    async def show_schema(_: Request) -> Response:
        return json_response(schema)

    return [Route("/", show_page), Route("/openapi.json", show_schema)]


def _make_schema(routes: Iterable[Route], *, needs_key: bool) -> dict[str, Any]:
    """The routes in OpenAPI's form, with the fields of their requests."""
    paths = {}
    for route in routes:
        summary = (getdoc(route.endpoint) or "").partition("\n")[0]
        operation: dict[str, Any] = {"summary": summary, "responses": _ANSWERS}
        if form := FORMS.get(route.path):
            content = {"application/json": {"schema": form.model_json_schema()}}
            operation["requestBody"] = {"required": True, "content": content}
        if names := [*route.param_convertors]:
            place = {"in": "path", "required": True, "schema": {"type": "string"}}
            operation["parameters"] = [{"name": name, **place} for name in names]
        paths[route.path_format] = {"post" if form else "get": operation}
    about = {"title": "xsent", "version": version("xsent")}
    schema: dict[str, Any] = {"openapi": "3.1.0", "info": about, "paths": paths}
    if needs_key:
        schema["components"] = {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}}
        schema["security"] = [{"key": []}]
    return schema


def _make_page(schema: Mapping[str, Any], model: str, host: str) -> str:
    """The page; `host` is the name by which the reader called the server."""
    rows = "".join(
        f"<tr><td><code>{method.upper()}&nbsp;{escape(path)}</code><td>{escape(operation['summary'])}\n"
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    )
    key = " -H 'Authorization: Bearer KEY'" if "security" in schema else ""
    body = json.dumps({"input": ["Where is the station?"]})
    curl = f"curl http://{host}/v1/embeddings{key} -d '{body}'"
    return _PAGE.format(model=escape(model), curl=escape(curl), rows=rows)
