"""An object store that can be away, and of which every change is a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyarrow import fs

from tests.unit.log_samples import ObjectStore, _Upload


class FallibleStore(ObjectStore):
    """Calls something before and after each change, and can be away."""

    def __init__(self) -> None:
        super().__init__()
        self.step: Callable[[], None] = lambda: None
        self.is_away = False

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        self.require()
        return super().get_file_info_selector(selector)

    def require(self) -> None:
        if self.is_away:
            raise OSError("the store is away")

    def delete_file(self, path: str) -> None:
        self.step()
        super().delete_file(path)
        self.step()

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        self.require()
        return pa.PythonFile(_Stepped(self, path.strip("/")), mode="w")


class _Stepped(_Upload):
    def close(self) -> None:
        if not self.closed:
            assert isinstance(self._store, FallibleStore)
            self._store.step()
            super().close()
            self._store.step()
