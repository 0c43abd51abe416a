"""How tasks read and write files of a checkpoint that the driver may serve (see `webhdfs`)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

_SCHEME: Final = "webhdfs"
_SECONDS: Final = 60.0
_PIECE: Final = 1 << 20


@contextmanager
def opened_file(file: str) -> Iterator[Path]:
    """A file of a checkpoint as one that can be mapped; it may be gone afterwards."""
    if not _is_served(file):
        yield Path(file)
        return
    with tempfile.TemporaryDirectory(prefix="nilometer-") as folder:
        copy = Path(folder, "copy")
        with _asked("GET", file, "OPEN") as answer, open(copy, "wb") as opened:
            shutil.copyfileobj(answer, opened, _PIECE)
        yield copy


@contextmanager
def written_file(file: str) -> Iterator[Path]:
    """A file to be written, which is a file of a checkpoint afterwards.

    It is not forced to the disk: that is left to the driver.
    """
    if not _is_served(file):
        yield Path(file)
        return
    with tempfile.TemporaryDirectory(prefix="nilometer-") as folder:
        copy = Path(folder, "copy")
        yield copy
        with open(copy, "rb") as content:
            length = {"Content-Length": str(copy.stat().st_size)}
            with _asked("PUT", file, "CREATE&data=true", content, length):
                pass


def _is_served(file: str) -> bool:
    return file.startswith(f"{_SCHEME}://")


@contextmanager
def _asked(
    method: str, file: str, operation: str, body: Any = None, headers: dict[str, str] | None = None
) -> Iterator[HTTPResponse]:
    """The answer to a request; OSError if it is none that has what was asked for."""
    url = urlsplit(file)
    assert url.hostname is not None
    connection = HTTPConnection(url.hostname, url.port, timeout=_SECONDS)
    try:
        path = f"/webhdfs/v1{quote(url.path)}?op={operation}"
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        if answer.status not in (HTTPStatus.OK, HTTPStatus.CREATED):
            name = url.path.rpartition("/")[2]
            raise OSError(f"the driver does not serve {name}: {answer.read().decode()}")
        yield answer
    except HTTPException as error:
        raise ConnectionError(f"the driver ended the connection: {error}") from error
    finally:
        connection.close()
