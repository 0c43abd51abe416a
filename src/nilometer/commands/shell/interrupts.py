"""Work that Ctrl-C abandons at once, however it waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

_Result = TypeVar("_Result")
_LOOK_SECONDS: Final = 0.05


class GivenUpError(Exception):
    """Ctrl-C was pressed while a statement was running."""


def run_until_interrupted(work: Callable[[], _Result], cancel: Callable[[], None]) -> _Result:
    """Run work in another thread and return its result; `cancel` is called at Ctrl-C."""
    done: Future[_Result] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="statement", daemon=True).start()
    try:
        while not done.done():  # a wait without a timeout would block Ctrl-C
            try:
                return done.result(_LOOK_SECONDS)
            except TimeoutError:
                if done.done():
                    break
        return done.result()
    except KeyboardInterrupt:
        cancel()
        raise GivenUpError from None
