"""A package as an installer leaves it, for what packages add through entry points."""

from __future__ import annotations

from pathlib import Path


def install(folder: Path, name: str, group: str, entries: str, code: str = "") -> None:
    """Write a package with entry points and one module to a folder."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{group}]\n{entries}\n")
    (folder / f"{name}.py").write_text(code)
