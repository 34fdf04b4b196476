# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Files with what the ranks of a Slurm job need, in a folder that the nodes share: job, token, controller. Only the
job's user can read one. TaskProlog prints it, and Slurm puts its variables into the environment of the ranks."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from netfold.controller.slurm.request import PREFIX, SlurmError, SlurmJob
from netfold.protocol.runtime import FolderError, check_own


def write(folder: Path, job: SlurmJob, variables: Mapping[str, str]) -> None:
    """Raises SlurmError. A file of the same job is replaced."""
    lines = [f"export {name}={value}\n" for name, value in variables.items()]
    if any(not line[:-1].isprintable() for line in lines):
        raise SlurmError("the controller's address or certificate has characters that Slurm cannot pass on")
    path = _path(folder, job.number)
    part = path.with_suffix(".part")
    try:
        check_own(folder)
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.writelines(lines)
            os.fchown(file.fileno(), job.uid, -1)
        part.rename(path)
    except FolderError as error:
        raise SlurmError(
            f"{folder}: others may write to it, or it is a link: no token is put there"
        ) from error
    except PermissionError as error:
        part.unlink(missing_ok=True)
        raise SlurmError(f"{path} cannot be given to user {job.user}: run the prolog as root") from error
    except OSError as error:
        raise SlurmError(f"{path} cannot be written: {error.strerror}") from error


def remove(folder: Path, number: int) -> bool:
    """Whether there was one. Raises SlurmError."""
    try:
        _path(folder, number).unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise SlurmError(f"{_path(folder, number)} cannot be removed: {error.strerror}") from error
    return True


def numbers(folder: Path) -> frozenset[int]:
    """The jobs that have a file. Raises SlurmError."""
    try:
        found = [re.fullmatch(rf"{PREFIX}([0-9]{{1,10}})", path.name) for path in folder.iterdir()]
    except OSError as error:
        raise SlurmError(f"{folder} cannot be read: {error.strerror}") from error
    return frozenset(int(name[1]) for name in found if name is not None)


def _path(folder: Path, number: int) -> Path:
    return folder / f"{PREFIX}{number}"
