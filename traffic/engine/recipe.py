# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What the engine of workers is built of, for setup.py, which builds it into the package, and for native.py, which
builds it where the package came without or was changed since. Imports nothing but the standard library."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from pathlib import Path

CORE = (
    "numbers",
    "dtypes",
    "codec",
    "control",
    "losses",
    "tree",
    "balance",
    "predict",
    "call",
    "kind",
    "repeat",
    "hand",
    "begin",
    "resume",
    "core",
)
_WORKER = (*CORE, "bursts", "sockets", "engine")
_SERVER = ("slots", "root")
NAMES = (*_WORKER, *_SERVER)
SOURCES = tuple(f"{name}.c" for name in NAMES)
HEADERS = (*(f"{name}.h" for name in NAMES), "core_state.h", "heap.h")
FLAGS = (
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-fno-strict-aliasing",
    "-fno-trapping-math",
    "-fno-math-errno",
    "-Wall",
    "-Wextra",
    "-pthread",
)
FOLDER = Path(__file__).parent


def fingerprint() -> str:
    """Tells sources and flags from all others: 16 hexadecimal digits. The built code answers it as `nf_sources()`."""
    text = b"\0".join((FOLDER / name).read_bytes() for name in (*SOURCES, *HEADERS))
    return hashlib.sha256(text + " ".join(FLAGS).encode()).hexdigest()[:16]


def library_name(sources: Sequence[Path], libraries: Sequence[str] = ("-lm",)) -> str:
    """Of what `sources` (headers among them) are built into with FLAGS and `libraries` on this kind of machine."""
    text = b"\0".join(source.read_bytes() for source in sources)
    key = hashlib.sha256(text + " ".join((*FLAGS, *libraries, platform.machine())).encode()).hexdigest()[:16]
    return f"{sources[0].stem}-{key}.so"
