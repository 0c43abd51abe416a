"""Work that Ctrl-C gives up at once, however it waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

_Result = TypeVar("_Result")
_LOOK_SECONDS: Final = 0.05


class GivenUpError(Exception):
    """Ctrl-C, while a statement was run."""


def run_until_interrupted(work: Callable[[], _Result], cancel: Callable[[], None]) -> _Result:
    """The result of work that is done in another thread; `cancel` is called at Ctrl-C."""
    done: Future[_Result] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="statement", daemon=True).start()
    try:
        while not done.done():  # a wait without end would not let Ctrl-C through
            try:
                return done.result(_LOOK_SECONDS)
            except TimeoutError:
                if done.done():
                    break
        return done.result()
    except KeyboardInterrupt:
        cancel()
        raise GivenUpError from None
