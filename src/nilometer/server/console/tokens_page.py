"""Who may use the server: tokens are created, shown once, and revoked; for administrators."""

from __future__ import annotations

import shlex
from typing import Final

from nicegui import ui

from nilometer.errors import InputError, NilometerError, NotFoundError, in_one_line
from nilometer.log.clock import now_micros
from nilometer.sensors.catalog.stored_tokens import StoredToken
from nilometer.server.console.access import Console
from nilometer.server.console.confirm import confirmed
from nilometer.server.console.drawing import Drawing, Shape, shape
from nilometer.server.console.form_dialog import tell_done
from nilometer.server.console.frame import console_page, page_frame
from nilometer.server.console.glossary import term
from nilometer.server.console.query_actions import tell_problem
from nilometer.server.console.styles import add_styles
from nilometer.server.console.wording import instant_words, state_words
from nilometer.server.scopes import Scope, require_scope

_EVERY: Final = 5.0
_DAY: Final = 86_400_000_000
_EXPIRES: Final = {"30d": 30, "90d": 90, "365d": 365, "": 0}
_WORDS: Final = {"30d": "in 30 days", "90d": "in 90 days", "365d": "in a year", "": "never"}
_SCOPES: Final = {
    "read": "read: can see everything",
    "write": "write: also runs queries and changes tables",
    "admin": "admin: also streams, sensors, deliveries and tokens",
}


def add_tokens_page(console: Console) -> None:
    """`/console/tokens`."""

    @console_page("/console/tokens")
    async def tokens_page() -> None:
        add_styles()
        with page_frame("Tokens", console):
            if not console.visitor().may(Scope.ADMIN):
                with ui.element("div").classes("nm-card nm-empty"):
                    ui.label("Tokens are for administrators.").classes("nm-title")
                    ui.label("Your token lacks the scope admin.")
                return
            shown = TokenList(console)
        await shown.refresh()
        ui.timer(_EVERY, shown.refresh, immediate=False)


def command_line(name: str, scope: str, expires: str) -> str:
    """The command that creates the same token.

    >>> command_line("wall panel", "read", "90d")
    "nilometer tokens create 'wall panel' --scope read --expires 90d --db …"
    """
    ends = f" --expires {expires}" if expires else ""
    return f"nilometer tokens create {shlex.quote(name)} --scope {scope}{ends} --db …"


class TokenList:
    """All tokens, in the current place; only their hashes are known."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._visitor = console.visitor()
        self._listed: list[StoredToken] = []
        with ui.element("div").classes("nm-row"):
            Drawing(shape("p", term("token", "Tokens"), class_="nm-soft nm-summary"))
            ui.element("div").classes("nm-grow")
            new = ui.button("New token", icon="add", color=None, on_click=self._ask)
            new.classes("nm-first").props("unelevated no-caps")
        self._list = ui.element("ul").classes("nm-queries")
        self._apart = ui.element("div")  # what is shown here does not close with the form

    async def refresh(self) -> None:
        """Show the current tokens."""
        try:
            require_scope(self._visitor.scopes, Scope.ADMIN)
            tokens = await self._console.service.look(self._console.tokens.all)
        except NilometerError:  # the session is over, or the server is stopping
            return
        if tokens == self._listed:
            return
        self._listed = tokens
        self._list.clear()
        with self._list:
            for one in tokens:
                self._draw(one)

    def _draw(self, token: StoredToken) -> None:
        with ui.element("li").classes("nm-card nm-query"):
            with ui.element("div").classes("nm-query-head"):
                Drawing(token_head(token, now_micros()))
                button = ui.button(
                    "Revoke", icon="block", color=None, on_click=lambda: self._revoke(token.name)
                )
                button.props("no-caps flat dense").classes("nm-second nm-action")
                button._props["aria-label"] = f"Revoke {token.name}"
            ends = "never" if token.expires is None else f"{instant_words(token.expires)} UTC"
            text = f"made {instant_words(token.created)} UTC · expires {ends}"
            ui.label(text).classes("nm-small nm-soft")

    async def _revoke(self, name: str) -> None:
        own = " It is your own: you will be logged out." if name == self._visitor.asker.name else ""
        meaning = f"Whoever uses it is refused within seconds. This cannot be undone.{own}"
        if not await confirmed(f"Revoke {name}?", meaning, "Revoke it"):
            return
        try:
            require_scope(self._visitor.scopes, Scope.ADMIN)
            if not await self._console.service.look(lambda: self._console.tokens.revoke(name)):
                raise NotFoundError(f"there is no token {name}")
        except NilometerError as error:
            tell_problem(error)
        else:
            tell_done(f"token {name} is revoked")
        await self.refresh()

    def _ask(self) -> None:
        with ui.dialog() as dialog, ui.card().classes("nm-dialog nm-form-card"):
            ui.label("New token").classes("nm-title").props("role=heading aria-level=2")
            with ui.element("div").classes("nm-fields"):
                name = ui.input("Name", placeholder="dashboard").props("maxlength=100")
                scope = ui.select(_SCOPES, value="read", label="Scope")
                expires = ui.select(_WORDS, value="90d", label="Expires")
            ui.label("The same on the command line:").classes("nm-small nm-soft")
            command = ui.label().classes("nm-mono nm-command")
            problem = ui.label().classes("nm-bad nm-small").props("role=alert")

            def show() -> None:
                entered = (name.value or "").strip() or "…"
                command.text = command_line(entered, str(scope.value), str(expires.value))

            for one in (name, scope, expires):
                one.props("dense outlined stack-label")
                one.on_value_change(show)
            show()

            async def make() -> None:
                try:
                    secret = await self._create(
                        name.value or "", Scope(str(scope.value)), str(expires.value)
                    )
                except NilometerError as error:
                    problem.text = in_one_line(error)
                    return
                with self._apart:
                    _show_once((name.value or "").strip(), secret)
                dialog.close()
                await self.refresh()

            with ui.element("div").classes("nm-row nm-end"):
                ui.button("Cancel", color=None, on_click=dialog.close).props("flat no-caps")
                ui.button("Create it", color=None, on_click=make).classes("nm-first").props(
                    "unelevated no-caps"
                )
        dialog.on("hide", dialog.delete)
        dialog.open()

    async def _create(self, name: str, scope: Scope, expires: str) -> str:
        require_scope(self._visitor.scopes, Scope.ADMIN)
        if expires not in _EXPIRES:
            raise InputError(f"a token cannot expire {expires}")
        until = now_micros() + _EXPIRES[expires] * _DAY if expires else None
        tokens = self._console.tokens
        return await self._console.service.look(lambda: tokens.create(name, scope, expires=until))


def _show_once(name: str, secret: str) -> None:
    """Show a token; only its hash is kept, so this is the only time."""
    with ui.dialog().props("persistent") as dialog, ui.card().classes("nm-dialog"):
        ui.label(f"Token {name}").classes("nm-title").props("role=heading aria-level=2")
        ui.label("Copy it now: it is not shown again.").classes("nm-warn")
        ui.label(secret).classes("nm-mono nm-command nm-secret")
        with ui.element("div").classes("nm-row nm-end"):
            ui.button("Copy", icon="content_copy", color=None).props("flat no-caps").on(
                "click", js_handler=_COPY
            )
            ui.button("I have it", color=None, on_click=dialog.close).classes("nm-first").props(
                "unelevated no-caps"
            )
    dialog.on("hide", dialog.delete)
    dialog.open()


_COPY: Final = (
    "() => navigator.clipboard?.writeText(document.querySelector('.nm-secret').textContent)"
)


def token_head(token: StoredToken, now: int) -> Shape:
    """Its name, what it allows, and whether it has expired."""
    chips = [shape("span", one, class_="nm-chip") for one in sorted(token.scopes)]
    is_valid = token.is_valid(now)
    state = state_words("good" if is_valid else "idle", "valid" if is_valid else "expired")
    return shape("div", shape("h2", token.name, class_="nm-title"), state, *chips, class_="nm-row")
