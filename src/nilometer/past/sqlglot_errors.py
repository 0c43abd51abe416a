"""What sqlglot cannot read or write, as errors of ours; on some texts it fails midway."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlglot.errors import SqlglotError

from nilometer.errors import SqlError

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


@contextmanager
def sqlglot_errors(
    message: str, kind: type[SqlError] = SqlError, hint: str | None = None
) -> Iterator[None]:
    """Turn any error of sqlglot's into one of ours."""
    try:
        yield
    except SqlglotError as error:
        detail = _COLOURS.sub("", str(error)).split("\n")[0]
        raise kind(message, detail=detail, hint=hint) from None
    except RecursionError:
        raise kind(message, detail="it is nested too deeply", hint=hint) from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise kind(message, detail=type(error).__name__, hint=hint) from None
