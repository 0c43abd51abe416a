"""Learned intervals of sensors, kept across restarts in a file beside that of the status."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

RATES_FILE: Final = "rates.json"
EVERY: Final = 60.0
"""It is written once in this many seconds, and at the end."""


class KeptRates:
    """What was learned about the sensors of each stream; nothing requires it to exist."""

    def __init__(self, status_file: Path | None) -> None:
        self._file = None if status_file is None else status_file.with_name(RATES_FILE)
        self._before = self._read()

    def of(self, stream: str) -> Mapping[str, Any] | None:
        """What was known of a stream's sensors before the restart."""
        rates = self._before.get(stream)
        return rates if isinstance(rates, dict) else None

    def forget(self, stream: str) -> None:
        """Forget a stream that was dropped: another one may get its name."""
        self._before.pop(stream, None)

    def write(self, present: Mapping[str, Mapping[str, Any]]) -> None:
        """Save what is known now; for streams that are not open, what was known before."""
        if self._file is None:
            return
        aside = self._file.with_name(f".{RATES_FILE}.new")
        with aside.open("w") as file:
            json.dump({**self._before, **present}, file, separators=(",", ":"))
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self._file)

    def _read(self) -> dict[str, Any]:
        try:
            content = {} if self._file is None else json.loads(self._file.read_bytes())
        except (OSError, ValueError):  # it will be learned again
            return {}
        return content if isinstance(content, dict) else {}
