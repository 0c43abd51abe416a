"""A live answer on the page of a notebook: what is shown is replaced, twice a second at most."""

from __future__ import annotations

import threading
from typing import Any, Final, Protocol

SECONDS: Final = 0.5
"""Between two updates of what is shown."""
_END_WITHIN: Final = 5.0


class Shown(Protocol):
    """What changes."""

    @property
    def version(self) -> int: ...
    @property
    def is_closed(self) -> bool: ...
    def await_change(self, version: int, seconds: float | None = None) -> bool: ...
    def await_closing(self, seconds: float) -> bool: ...
    def _repr_html_(self) -> str: ...


class LiveDisplay:
    """All places of a notebook in which one live answer is shown."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._handles: list[Any] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def show(self) -> None:
        """Show it here as well; raises NotImplementedError where nothing can be replaced."""
        from IPython import get_ipython  # noqa: PLC0415  only notebooks have it
        from IPython.display import display  # noqa: PLC0415

        if type(get_ipython()).__name__ == "TerminalInteractiveShell":
            raise NotImplementedError  # IPython prints it then as it prints other values
        version = self._shown.version
        handle = display(  # type: ignore[no-untyped-call, unused-ignore]
            self._bundle(), raw=True, display_id=True
        )
        with self._lock:
            self._handles.append(handle)
            if self._thread is None and not self._shown.is_closed:
                self._thread = threading.Thread(
                    target=self._run, args=(version,), name="live display", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """Show for the last time how it was."""
        with self._lock:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_END_WITHIN)

    def _run(self, version: int) -> None:
        while not self._shown.await_closing(SECONDS):
            self._shown.await_change(version)
            version = self._shown.version
            self._update()
        self._update()

    def _update(self) -> None:
        with self._lock:
            handles = list(self._handles)
        bundle = self._bundle()
        for handle in handles:
            handle.update(bundle, raw=True)

    def _bundle(self) -> dict[str, str]:
        return {"text/html": self._shown._repr_html_(), "text/plain": repr(self._shown)}
