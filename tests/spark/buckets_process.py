"""A database whose query changes its number of buckets all the time, to be killed."""

from __future__ import annotations

import sys
from itertools import cycle
from pathlib import Path

import nilometer as nm


def main(folder: Path) -> None:
    session = nm.local_spark(memory="1g", cores=2)
    with nm.connect(session, path=folder / "plant") as db:
        db.resume()
        for number in cycle((3, 1, 4, 2)):
            db.execute(f"ALTER QUERY q SET (buckets = {number})")
            (folder / "changed").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
