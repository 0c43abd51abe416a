"""/docs: the API as a page that loads nothing from other hosts."""

from __future__ import annotations

from html import escape
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; text-transform: capitalize; }
section { border-top: 1px solid #8884; padding: .8rem 0; }
code { font: .95em ui-monospace, monospace; }
b { display: inline-block; min-width: 4.5rem; }
p { margin: .3rem 0 0 4.5rem; }
"""


def api_page_router() -> APIRouter:
    """A page for people; programs read /openapi.json."""
    router = APIRouter(include_in_schema=False)

    @router.get("/docs", response_class=HTMLResponse)
    async def get_docs(request: Request) -> HTMLResponse:
        return HTMLResponse(write_page(request.app.openapi()))

    return router


def write_page(api: dict[str, Any]) -> str:
    """All operations of an OpenAPI document, by subject."""
    subjects: dict[str, list[str]] = {}
    for path, operations in api["paths"].items():
        for method, one in operations.items():
            subject = one.get("tags", ["other"])[0]
            subjects.setdefault(subject, []).append(_operation(method, path, one))
    parts = [f"<h2>{escape(name)}</h2>{''.join(sections)}" for name, sections in subjects.items()]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Nilometer API</title><style>{_STYLE}</style>"
        f"<h1>Nilometer API {escape(api['info']['version'])}</h1>"
        "<p style='margin:0'>Send <code>Authorization: Bearer nm_…</code> with every request. "
        'Everything in detail: <a href="/openapi.json">/openapi.json</a>.</p>'
        f"{''.join(parts)}</html>"
    )


def _operation(method: str, path: str, one: dict[str, Any]) -> str:
    description = escape(one.get("description", "")).replace("\n\n", "</p><p>")
    return (
        f"<section><b>{method.upper()}</b><code>{escape(path)}</code><p>{description}</p></section>"
    )
