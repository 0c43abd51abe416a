"""The number of buckets that belongs to a database: its folder remembers it.

Otherwise it would be that of the machine or cluster on which a query happens to be created.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nilometer.errors import InputError
from nilometer.kernels.routing import MOST_BUCKETS
from nilometer.log.sealed import seal, unseal
from nilometer.upkeep.whole_file import write_whole

BUCKETS_FILE: Final = "buckets"


def settle_buckets(folder: Path, buckets: int | None) -> int | None:
    """The number of buckets of a database, from now on the given one; None: nobody has said it."""
    if buckets is None:
        return read_buckets(folder)
    if not 1 <= buckets <= MOST_BUCKETS:
        raise InputError(
            f"a database cannot have {buckets} buckets",
            hint=f"a number from 1 to {MOST_BUCKETS}: at most one core works on a bucket",
        )
    content = seal(str(buckets).encode())
    file = folder / BUCKETS_FILE
    if not file.exists() or file.read_bytes() != content:
        write_whole(file, content)
    return buckets


def read_buckets(folder: Path) -> int | None:
    """The number of buckets that a folder remembers, if any."""
    file = folder / BUCKETS_FILE
    try:
        return int(unseal(file.read_bytes()))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise InputError(
            f"{file} is damaged",
            detail=str(error),
            hint="it says how many buckets new queries get: say it again ([queries] buckets in "
            "the configuration), or delete this file",
        ) from None
