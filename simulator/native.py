# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The levels' C code as shared objects, compiled at the first use and kept in the user's cache folder, as the engine of
workers is where it came without (traffic/engine/native.py)."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from netfold.traffic.engine.native import build, cache_folder, declare


class CompilerMissing(Exception):
    """The simulator's C code cannot be compiled here; the message says why."""


def compiled(sources: Sequence[Path], signatures: Mapping[str, tuple[object, ...]]) -> ctypes.CDLL:
    """The library that `sources` (with the headers among them) make. `signatures`: see `declare`."""
    try:
        code = ctypes.CDLL(str(build(sources, cache_folder())))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise CompilerMissing(f"the simulator's C code cannot be compiled here: {error}") from error
    declare(code, signatures)
    return code
