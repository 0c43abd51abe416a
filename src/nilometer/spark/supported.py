"""Which versions of Spark are supported: the version at hand may be a cluster's."""

from __future__ import annotations

import re
from typing import Final

from nilometer.errors import SessionError

OLDEST: Final = (4, 0)
NEWEST: Final = (4, 3)


def read_version(text: str) -> tuple[int, int]:
    """The first two numbers of a version: 4.1.0-SNAPSHOT is (4, 1)."""
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def require_supported(version: str) -> None:
    """Refuse a Spark that Nilometer has not been tested with."""
    numbers = read_version(version)
    if OLDEST <= numbers <= NEWEST:
        return
    first, last = (".".join(map(str, one)) for one in (OLDEST, NEWEST))
    after = f"{NEWEST[0]}.{NEWEST[1] + 1}"
    wrong = "is too old" if numbers < OLDEST else "is newer than this Nilometer supports"
    raise SessionError(
        f"Spark {version} {wrong}",
        detail=f"Spark {first} to {last} are supported",
        hint=f"pip install 'pyspark>={first},<{after}', or connect to a server of such a version",
    )
