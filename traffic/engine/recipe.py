# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Sources and flags of the engine: setup.py builds it into the package, native.py where the package has no current
build. Imports nothing but the standard library."""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
LAYERS = (
    "wire",
    "numerics",
    "congestion",
    "transport",
    "call",
    "parts",
    "resume",
    "session",
    "io",
    "server",
)
"""These are the folders, from below: a layer includes and calls layers before it only
(tests/house/test_c_layers.py)."""

CORE_LAYERS = LAYERS[: LAYERS.index("io")]
"""These layers are the engine without I/O."""


def sources_of(layers: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{layer}/{path.name}" for layer in layers for path in sorted((FOLDER / layer).glob("*.c")))


CORE = sources_of(CORE_LAYERS)
SOURCES = tuple(sorted(sources_of(LAYERS), key="io/engine.c".__ne__))  # the first one names the library
HEADERS = tuple(f"{layer}/{path.name}" for layer in LAYERS for path in sorted((FOLDER / layer).glob("*.h")))
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
OPTIONS = ("-fvisibility=hidden", "-lm")  # wire/export.h marks what is visible


def fingerprint() -> str:
    """Identifies sources and flags: 16 hexadecimal digits, which the built code returns from `nf_sources()`."""
    text = b"\0".join((FOLDER / name).read_bytes() for name in (*SOURCES, *HEADERS))
    return hashlib.sha256(text + " ".join(FLAGS).encode()).hexdigest()[:16]


def library_name(sources: Sequence[Path], options: Sequence[str] = ("-lm",)) -> str:
    """Returns the file name of the library that `sources` (headers among them) are built into with FLAGS and
    `options` on this kind of machine."""
    text = b"\0".join(source.read_bytes() for source in sources)
    key = hashlib.sha256(text + " ".join((*FLAGS, *options, sysconfig.get_platform())).encode()).hexdigest()[
        :16
    ]
    return f"{sources[0].stem}-{key}.so"
