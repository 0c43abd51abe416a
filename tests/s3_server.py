"""A store that speaks as much of S3 as Arrow's file system needs; it forgets everything at its end.

Run by itself, the module is such a server: it prints its port, and ends with its standard input.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import parse_qs, unquote, urlsplit
from urllib.request import urlopen
from xml.sax.saxutils import escape

S3_ENVIRONMENT: Final = {
    "AWS_ACCESS_KEY_ID": "somebody",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_EC2_METADATA_DISABLED": "true",
}
_ROOT: Final = Path(__file__).parents[1]
_PAGE: Final = 1000
"""As many objects as S3 lists at a time."""
_WHEN: Final = "2026-01-31T12:00:00.000Z"
_HTTP_WHEN: Final = "Sat, 31 Jan 2026 12:00:00 GMT"


@contextmanager
def s3_server() -> Iterator[str]:
    """A running server, in a process of its own: the options that belong after a URI's `?`."""
    command = [sys.executable, "-m", "tests.s3_server"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=_ROOT, text=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        try:
            yield f"endpoint_override=127.0.0.1:{port}&scheme=http&region=x"
        finally:
            server.communicate(input="")


@contextmanager
def outage(options: str) -> Iterator[None]:
    """Within this context the server accepts requests and hangs up."""
    address = parse_qs(options)["endpoint_override"][0]
    urlopen(f"http://{address}/outage/begins").close()
    yield
    urlopen(f"http://{address}/outage/ends").close()


class _Store(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    objects: Final[dict[str, bytes]] = {}
    uploads: Final[dict[str, dict[int, bytes]]] = {}
    upload_numbers: Final = count()
    is_out: bool = False

    def parse_request(self) -> bool:
        """Whether to answer a request; one for `/outage/…` begins an outage or ends it."""
        if not super().parse_request():
            return False
        if self.path.startswith("/outage/"):
            _Store.is_out = self.path == "/outage/begins"
            self._answer(200, b"")
            return False
        if self.is_out:
            self.close_connection = True
        return not self.is_out

    def do_HEAD(self) -> None:
        self._give(with_body=False)

    def do_GET(self) -> None:
        if "list-type" in self._options:
            self._list()
        else:
            self._give(with_body=True)

    def do_PUT(self) -> None:
        body = self._body()
        if "uploadId" in self._options:
            parts = self.uploads[self._options["uploadId"]]
            parts[int(self._options["partNumber"])] = body
        else:
            self.objects[self._key] = body
        self._answer(200, b"", ETag=f'"{md5(body).hexdigest()}"')

    def do_POST(self) -> None:
        body = self._body()
        if "uploads" in self._options:
            name = f"upload{next(self.upload_numbers)}"
            self.uploads[name] = {}
            self._xml("InitiateMultipartUploadResult", f"<UploadId>{name}</UploadId>")
        elif "uploadId" in self._options:
            parts = self.uploads.pop(self._options["uploadId"])
            self.objects[self._key] = b"".join(parts[number] for number in sorted(parts))
            self._xml("CompleteMultipartUploadResult", '<ETag>"x"</ETag>')
        elif "delete" in self._options:
            for key in re.findall(r"<Key>(.*?)</Key>", body.decode()):
                self.objects.pop(f"{self._key}/{key}", None)
            self._xml("DeleteResult", "")

    def do_DELETE(self) -> None:
        self.objects.pop(self._key, None)
        self._answer(204, b"")

    @property
    def _key(self) -> str:
        bucket, _, key = unquote(urlsplit(self.path).path).strip("/").partition("/")
        is_folder = self.path.partition("?")[0].endswith("/")
        return f"{bucket}/{key}{'/' if is_folder else ''}" if key else bucket

    @property
    def _options(self) -> dict[str, str]:
        given = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        return {name: values[0] for name, values in given.items()}

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = _chunks(self.rfile)
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_cut = "aws-chunked" in self.headers.get("Content-Encoding", "")
        return _chunks(BytesIO(body)) if is_cut else body

    def _give(self, with_body: bool) -> None:
        content = self.objects.get(self._key)
        if content is None:
            is_bucket = "/" not in self._key
            self._answer(200 if is_bucket else 404, b"")
            return
        status, size = 200, len(content)
        if (span := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))) is not None:
            first, last = int(span[1]), min(int(span[2]), size - 1)
            status, content = 206, content[first : last + 1]
        self._answer(status, content, with_body=with_body, Last_Modified=_HTTP_WHEN, ETag='"x"')

    def _list(self) -> None:
        """A page of keys, and of the folders that a delimiter makes of them."""
        prefix = self._options.get("prefix", "")
        bucket = f"{self._key}/"
        objects = dict(self.objects)  # others go on writing and deleting
        is_folder: dict[str, bool] = {}
        for key in (one.removeprefix(bucket) for one in objects if one.startswith(bucket + prefix)):
            folder, mark, _ = key[len(prefix) :].partition("/")
            cut = bool(mark) and "delimiter" in self._options
            is_folder[f"{prefix}{folder}/" if cut else key] = cut
        after = self._options.get("continuation-token", "")
        names = sorted(name for name in is_folder if name > after)
        page = names[: min(_PAGE, int(self._options.get("max-keys", _PAGE)))]
        body = "".join(
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            if is_folder[name]
            else f"<Contents><Key>{escape(name)}</Key><Size>{len(objects[bucket + name])}</Size>"
            f"<LastModified>{_WHEN}</LastModified></Contents>"
            for name in page
        )
        more = len(page) < len(names)
        if more and page:
            token = escape(page[-1])
            body += f"<NextContinuationToken>{token}</NextContinuationToken>"
        counts = f"<KeyCount>{len(page)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>"
        self._xml("ListBucketResult", f"{counts}{body}")

    def _xml(self, name: str, inner: str) -> None:
        self._answer(200, f"<{name}>{inner}</{name}>".encode(), Content_Type="application/xml")

    def _answer(self, status: int, body: bytes, with_body: bool = True, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if with_body and self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, *of: Any) -> None:
        """Say nothing of clients that were killed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*of)


def _chunks(file: IO[bytes]) -> bytes:
    """Read a chunked body, each chunk after its length; any trailers are ignored."""
    body = b""
    while (size := int(file.readline().partition(b";")[0], 16)) > 0:
        body += file.read(size)
        file.readline()
    return body


if __name__ == "__main__":
    server = _Server(("127.0.0.1", 0), _Store)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    sys.stdin.read()
