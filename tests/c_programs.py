# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""C programs of tests, such as those under sanitizers: kept between runs, beside softswitch's compiled programs."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from softswitch.build.native import default_cache_dir, require_own, toolchain, trusted_folder

from tests.house.imports import REPOSITORY

ROOMS = ("protocol", "simulator", "traffic")
"""Folders whose C the programs may include."""


def program(name: str, sources: Sequence[Path], flags: Sequence[str | Path]) -> Path:
    """Compiles the program unless it was compiled of the same C by the same compiler with the same flags."""
    digest = hashlib.sha256("\0".join([toolchain(), *map(str, flags), *map(str, sources)]).encode())
    included = (path for room in ROOMS for path in sorted((REPOSITORY / room).rglob("*.[ch]")))
    for path in (*sources, *included, *sorted(sources[0].parent.glob("*.h"))):
        digest.update(path.read_bytes())
    target = trusted_folder(default_cache_dir()) / f"{name}-{digest.hexdigest()[:24]}"
    if not target.exists():
        made = target.with_name(f"{target.name}.{os.getpid()}")
        subprocess.run(["gcc", *flags, "-o", made, *sources, "-lm"], check=True, timeout=900)
        made.replace(target)
    require_own(target)
    return target
