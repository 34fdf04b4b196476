# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The levels' C code as shared objects. The package brings them built (recipe.py says of what); where it came without,
or was changed since, they are compiled at the first use and kept in the user's cache folder, as the engine of workers
is (traffic/engine/native.py)."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Mapping
from pathlib import Path

from netfold.simulator import recipe
from netfold.traffic.engine import recipe as engine_recipe
from netfold.traffic.engine.native import build, cache_folder, declare

ROOT = Path(__file__).parents[1]


class CompilerMissing(Exception):
    """The simulator's C code cannot be compiled here; the message says why."""


def compiled(level: str, signatures: Mapping[str, tuple[object, ...]]) -> ctypes.CDLL:
    """The library of a level ("flow" or "packet"). `signatures`: see `declare`."""
    sources = sources_of(level)
    try:
        came = sources[0].parent / engine_recipe.library_name(sources)
        code = ctypes.CDLL(str(came if came.exists() else build(sources, cache_folder())))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise CompilerMissing(f"the simulator's C code cannot be compiled here: {error}") from error
    declare(code, signatures)
    return code


def sources_of(level: str) -> tuple[Path, ...]:
    """With the headers, in the order that names the library."""
    return tuple(ROOT / name for name in recipe.files(engine_recipe.HEADERS)[level])
