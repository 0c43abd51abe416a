"""Something that is wrong with a database, in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nilometer.errors import NilometerError

RESTORE: Final = "restore the database from a backup: nilometer restore"


@dataclass(frozen=True)
class Problem:
    """What is damaged, and what can be done."""

    where: str
    what: str
    advice: str = RESTORE

    def __str__(self) -> str:
        return f"{self.where}: {self.what}\n  what to do: {self.advice}"


class Problems(list[Problem]):
    """The problems of a database, in the order in which they were found."""

    def add(self, where: Path | str, what: str, advice: str = RESTORE) -> None:
        self.append(Problem(str(where), what, advice))

    @contextmanager
    def noting(self, where: Path | str, advice: str = RESTORE) -> Iterator[None]:
        """Record whatever fails as a problem of this place."""
        try:
            yield
        except FileNotFoundError as error:
            self.add(where, f"{error.filename or 'a file'} is missing", advice)
        except NilometerError as error:
            text = error.message if error.detail is None else f"{error.message} ({error.detail})"
            self.add(where, text, advice)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            self.add(where, f"it cannot be read: {error}", advice)
