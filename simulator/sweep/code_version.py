# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A point's result depends on its parameters, and on the code, libraries and machine, whose digest is computed here."""

from __future__ import annotations

import functools
import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import netfold

FOLDERS = ("controller", "evaluation", "simulator", "topologies", "traffic")
SUFFIXES = {".py", ".c", ".h", ".yaml"}
LIBRARIES = ("numpy", "scipy", "highspy")


@functools.cache
def code_version() -> str:
    """Returns 64 hexadecimal digits: equal where the sources that points run, their libraries, Python and the kind
    of processor are equal."""
    digest = hashlib.sha256()
    root = Path(netfold.__file__).parent
    for folder in FOLDERS:
        sources = sorted(p for p in (root / folder).rglob("*") if p.suffix in SUFFIXES)
        for source in sources:
            digest.update(f"{source.relative_to(root)}\0".encode())
            digest.update(hashlib.sha256(source.read_bytes()).digest())
    for library in LIBRARIES:
        digest.update(f"{library} {_installed(library)}\n".encode())
    digest.update(f"{platform.python_version()} {platform.machine()}".encode())
    return digest.hexdigest()


def _installed(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"
