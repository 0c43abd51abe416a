"""/backups: backups of the database, in the configured destinations."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from nilometer.server.access import Admin
from nilometer.server.error_shape import responses
from nilometer.server.service import Service
from nilometer.server.shapes import Request
from nilometer.upkeep.manifest import Manifest


class BackupRequest(Request):
    """A backup to be made."""

    destination: str | None = Field(
        default=None,
        description="one that the configuration names; null: the first of them",
        examples=[None],
    )


class BackupShape(BaseModel):
    """A backup that is there."""

    name: str
    created: str
    release: str
    files: int
    size: int = Field(description="bytes of the database")


class NewBackupShape(BackupShape):
    """A backup that was just made."""

    written: int = Field(description="bytes that were not there yet")
    removed: int = Field(default=0, description="older backups that were deleted, see keep_backups")
    freed: int = Field(default=0, description="bytes freed with them")


def backups_router(service: Service) -> APIRouter:
    """Backups: list, create."""
    router = APIRouter(prefix="/backups", tags=["backups"])

    @router.get("", operation_id="listBackups", responses=responses(400))
    async def list_backups(
        caller: Admin, destination: Annotated[str | None, Query()] = None
    ) -> list[BackupShape]:
        """The backups in a destination, the oldest first, without those that are damaged."""
        backups = await service.backups(destination, caller)
        return [BackupShape(**_fields(one)) for one in backups]

    @router.post("", operation_id="createBackup", status_code=201, responses=responses(400))
    async def create_backup(request: BackupRequest, caller: Admin) -> NewBackupShape:
        """Back up the database while it is used; this may take as long as copying it takes."""
        made, removed = await service.back_up(request.destination, caller)
        shape = NewBackupShape(**_fields(made.manifest), written=made.written)
        if removed is not None:
            shape.removed, shape.freed = len(removed.names), removed.freed
        return shape

    return router


def _fields(one: Manifest) -> dict[str, Any]:
    return {
        "name": one.name,
        "created": one.created,
        "release": one.release,
        "files": len(one.files),
        "size": one.size,
    }
