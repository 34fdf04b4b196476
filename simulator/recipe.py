# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What the two levels' C code is built of, for setup.py, which builds it into the package, and for native.py, which
builds it where the package came without or was changed since. Imports nothing but the standard library; paths are
those of the package's root."""

from __future__ import annotations

_FLOW = ("engine", "jobs", "state", "shares")
_FLOW_HEADERS = ("engine", "state", "shares", "heap")
_PACKET = (
    "packet",
    "exchange",
    "receiver",
    "tcp",
    "scoreboard",
    "congestion",
    "reduction",
    "slots",
    "lines",
    "events",
)


def files(engine_headers: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Of each level: sources, the first of which names the library, and headers. `engine_headers`: of the workers'
    engine (traffic/engine/recipe.py), for whose types the packet level is compiled."""
    flow = [f"simulator/flow/{name}.c" for name in _FLOW]
    flow += [f"simulator/flow/{name}.h" for name in _FLOW_HEADERS]
    packet = [f"simulator/packet/{name}.{kind}" for kind in ("c", "h") for name in _PACKET]
    headers = [f"traffic/engine/{name}" for name in engine_headers]
    return {"flow": tuple(flow), "packet": (*packet, *headers)}
