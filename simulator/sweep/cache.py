# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Caches results on disk by what they depend on, so that an interrupted sweep can be continued. Entries are JSON:
reading one runs no code, and the folder may be deleted at any time."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from netfold.simulator.sweep.task import Json, SweepError, SweepTask, canonical

VERSION_DIGITS = 16


def default_folder() -> Path:
    """Returns `$XDG_CACHE_HOME/netfold/sweeps`, else `~/.cache/netfold/sweeps`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "netfold" / "sweeps"


@dataclass(frozen=True)
class Cache:
    """The cache has a file for each point, in a folder for each version of the code. Raises SweepError if the
    folder cannot be written."""

    folder: Path
    version: str

    def __post_init__(self) -> None:
        try:
            self._here.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._here):
                pass
        except OSError as error:
            raise SweepError(
                f"results cannot be kept in {self._here}: {error.strerror}; name another folder with "
                "$XDG_CACHE_HOME, or keep none with --no-cache"
            ) from error

    @property
    def _here(self) -> Path:
        return self.folder / self.version[:VERSION_DIGITS]

    def path(self, task: SweepTask) -> Path:
        return self._here / f"{hashlib.sha256(task.key.encode()).hexdigest()}.json"

    def get(self, task: SweepTask) -> tuple[Json] | None:
        """Returns the result in a tuple of one (it may be null), or None if there is no entry, or a damaged one."""
        try:
            entry = json.loads(self.path(task).read_text())
            value: Json = entry["value"]
            whole = entry["digest"] == self._digest(task, value)
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return (value,) if whole else None

    def put(self, task: SweepTask, value: Json) -> None:
        """Writes the entry whole or not at all, even if several write at once. A full disk costs only the entry."""
        entry = {"task": json.loads(task.key), "value": value, "digest": self._digest(task, value)}
        part: Path | None = None
        with contextlib.suppress(OSError):
            with tempfile.NamedTemporaryFile("w", dir=self._here, suffix=".part", delete=False) as file:
                part = Path(file.name)
                file.write(json.dumps(entry))
            part.replace(self.path(task))
        if part is not None:
            part.unlink(missing_ok=True)

    def _digest(self, task: SweepTask, value: Json) -> str:
        return hashlib.sha256(f"{self.version}\n{task.key}\n{canonical(value)}".encode()).hexdigest()
