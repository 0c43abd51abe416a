"""python: a function that is registered under a name receives chunks of results.

It receives a list of dicts, or an Arrow table; a column `_id` identifies every row, since rows may
be delivered again. Once it returns they count as delivered; if it raises, they are retried.
"""

from __future__ import annotations

from typing import ClassVar

from nilometer.deliveries.unit import Chunk, UnitSetting
from nilometer.errors import InputError
from nilometer.model.options import Option, OptionError, one_of


class PythonUnit:
    """Calls a function."""

    options: ClassVar = (
        Option("function", "the name of a registered function", str),
        Option("rows_as", "what it gets", one_of("dicts", "arrow"), "dicts"),
    )

    def __init__(self, setting: UnitSetting) -> None:
        self._function = setting.find_function(setting.options["function"])
        self._as_dicts = setting.options["rows_as"] == "dicts"

    @classmethod
    def check(cls, setting: UnitSetting) -> None:
        """Refuse an unknown function."""
        name = setting.options["function"]
        if name is None:
            hint = "write WITH (function = 'name'), a name given to Database.register_unit"
            raise OptionError("python needs a function", hint=hint, option="function")
        try:
            setting.find_function(name)
        except InputError as error:
            raise OptionError(
                error.message, detail=error.detail, hint=error.hint, option="function"
            ) from None

    def deliver(self, chunk: Chunk) -> None:
        """Call the function."""
        rows = chunk.with_ids()
        self._function(rows.to_pylist() if self._as_dicts else rows)

    def close(self) -> None:
        """Do nothing: nothing is open."""
