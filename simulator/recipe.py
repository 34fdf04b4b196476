# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Sources and options of the C code of the two levels: setup.py builds it into the package, native.py where the package
has no current build. Imports nothing but the standard library; paths start at the package's root."""

from __future__ import annotations

from collections.abc import Sequence

_FLOW = ("flow", "jobs", "streams", "queues", "state", "max_min")
_FLOW_HEADERS = (*_FLOW, "heap")
_PACKET = (
    "packet",
    "exchange",
    "receiver",
    "tcp",
    "scoreboard",
    "congestion",
    "reduction",
    "node_slots",
    "links",
    "events",
)
OPTIONS = {"flow": ("-lm",), "packet": ("-fvisibility=hidden", "-DNF_API=", "-DNF_PLAIN", "-lm")}
"""Flags and libraries by level. The packet level contains the engine and does not export it. NF_PLAIN: with so few
lanes vectors are of no use, and their dispatchers would be visible."""


def files(engine_core: Sequence[str], engine_headers: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Returns by level the sources, the first of which names the library, and headers. `engine_core` and
    `engine_headers`: of traffic/engine/recipe.py."""
    flow = [f"simulator/flow/{name}.c" for name in _FLOW]
    flow += [f"simulator/flow/{name}.h" for name in _FLOW_HEADERS]
    packet = [f"simulator/packet/{name}.{kind}" for kind in ("c", "h") for name in _PACKET]
    engine = [f"traffic/engine/{name}" for name in (*engine_core, "server/slot_pool.c", *engine_headers)]
    return {"flow": tuple(flow), "packet": (*packet, *engine)}
