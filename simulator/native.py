# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The levels' C code as shared objects, as the package has built them (recipe.py lists their sources). Where there is
none, or the sources differ by now, they are compiled at the first use and kept in the user's cache folder, as the
engine is (traffic/engine/native.py)."""

from __future__ import annotations

import ctypes
import subprocess
from functools import cache
from pathlib import Path

from netfold.simulator import recipe
from netfold.traffic.engine import recipe as engine_recipe
from netfold.traffic.engine.c_headers import Headers
from netfold.traffic.engine.native import build, cache_folder

ROOT = Path(__file__).parents[1]


class CompilerMissingError(Exception):
    """The simulator's C code cannot be compiled here; the message has the reason."""


def compiled(level: str, prefix: str) -> ctypes.CDLL:
    """Returns the library of a level ("flow" or "packet"); its exported functions have the prefix."""
    sources = sources_of(level)
    try:
        options = recipe.OPTIONS[level]
        built = sources[0].parent / engine_recipe.library_name(sources, options)
        code = ctypes.CDLL(str(built if built.exists() else build(sources, cache_folder(), options)))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise CompilerMissingError(f"the simulator's C code cannot be compiled here: {error}") from error
    headers(level).declare(code, prefix)
    return code


@cache
def headers(level: str) -> Headers:
    return Headers(*(path for path in sources_of(level) if path.suffix == ".h"))


def sources_of(level: str) -> tuple[Path, ...]:
    """Returns the sources with the headers, in the order that names the library."""
    files = recipe.files(engine_recipe.CORE, engine_recipe.HEADERS)
    return tuple(ROOT / name for name in files[level])
