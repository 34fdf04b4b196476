# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Files with what the ranks of a Slurm job need, in a folder that the nodes share: job, token, controller. Only the
job's user can read one. TaskProlog prints it, and Slurm puts its variables into the environment of the ranks."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from netfold.controller.slurm.request import PREFIX, SlurmError, SlurmJob
from netfold.protocol.runtime import FolderError, check_own

PART = ".part"


def write(folder: Path, job: SlurmJob, variables: Mapping[str, str]) -> None:
    """Raises SlurmError. A file of the same job is replaced."""
    lines = [f"export {name}={value}\n" for name, value in variables.items()]
    if any(not line[:-1].isprintable() for line in lines):
        raise SlurmError("the controller's address or certificate has characters that Slurm cannot pass on")
    path, part = _paths(folder, job.number)
    try:
        check_own(folder)
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.writelines(lines)
            os.fchown(file.fileno(), job.uid, -1)
        part.rename(path)
    except FolderError as error:
        raise SlurmError(
            f"{folder}: others may write to it or to the folder above, or one is a link: no token is put there"
        ) from error
    except PermissionError as error:
        raise SlurmError(f"{path} cannot be given to user {job.user}: run the prolog as root") from error
    except OSError as error:
        raise SlurmError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def remove(folder: Path, number: int) -> bool:
    """Whether there was one, or what a killed prolog had begun to write. Raises SlurmError."""
    found = False
    for path in _paths(folder, number):
        try:
            path.unlink()
            found = True
        except FileNotFoundError:
            continue
        except OSError as error:
            raise SlurmError(f"{path} cannot be removed: {error.strerror}") from error
    return found


def numbers(folder: Path) -> frozenset[int]:
    """The jobs that have a file, or a begun one. Raises SlurmError."""
    try:
        found = [
            re.fullmatch(rf"{PREFIX}([0-9]{{1,10}})({re.escape(PART)})?", path.name)
            for path in folder.iterdir()
        ]
    except OSError as error:
        raise SlurmError(f"{folder} cannot be read: {error.strerror}") from error
    return frozenset(int(name[1]) for name in found if name is not None)


def _paths(folder: Path, number: int) -> tuple[Path, Path]:
    """The file, and what it is until it is whole."""
    name = f"{PREFIX}{number}"
    return folder / name, folder / f"{name}{PART}"
