"""A live answer in a notebook: the display is replaced, at most twice a second."""

from __future__ import annotations

import threading
from typing import Any, Final, Protocol

SECONDS: Final = 0.5
"""The time between two updates of the display."""
_END_WITHIN: Final = 5.0


class LiveValue(Protocol):
    """A value that changes while it is shown."""

    @property
    def version(self) -> int: ...
    @property
    def is_closed(self) -> bool: ...
    def await_change(self, version: int, seconds: float | None = None) -> bool: ...
    def await_closing(self, seconds: float) -> bool: ...
    def _repr_html_(self) -> str: ...


class LiveDisplay:
    """All places in a notebook where one live answer is shown."""

    def __init__(self, shown: LiveValue) -> None:
        self._shown = shown
        self._handles: list[Any] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def show(self) -> None:
        """Show it here as well; raises NotImplementedError where no display can be replaced."""
        from IPython import get_ipython  # noqa: PLC0415  only notebooks have it
        from IPython.display import display  # noqa: PLC0415

        if type(get_ipython()).__name__ == "TerminalInteractiveShell":
            raise NotImplementedError  # IPython then prints it like other values
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
        """Show the final state."""
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
