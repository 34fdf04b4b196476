# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The choice of a next hop as the sources have it (p4src/common/hash_seed.p4), without a switch."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterator, Mapping
from ipaddress import IPv4Address
from typing import NamedTuple

from netfold.controller.switches.entries import Contents, TableEntry
from netfold.topologies.fabric import Fabric


class Flow(NamedTuple):
    """Fields by which a flow is hashed, in the order of the sources."""

    src: int
    dst: int
    protocol: int
    src_port: int
    dst_port: int


WIDTHS = Flow(4, 4, 1, 2, 2)  # bytes of each field
Choice = Callable[[Flow, int, int], int]
"""From a flow, the seed of a switch and the number of next hops to one of these."""


def choose(flow: Flow, seed: int, ways: int) -> int:
    """A CRC of two sums: of the seed and of a CRC of the flow, once more with the fields in another order."""
    src, dst, protocol, *ports = (
        value.to_bytes(width, "big") for value, width in zip(flow, WIDTHS, strict=True)
    )
    digests = (zlib.crc32(b"".join(f)) for f in ((src, dst, protocol, *ports), (*ports, protocol, src, dst)))
    sums = (((digest + seed) & 0xFFFFFFFF).to_bytes(4, "big") for digest in digests)
    return zlib.crc32(b"".join(sums)) % ways


def flows(src: IPv4Address, dst: IPv4Address, number: int) -> Iterator[Flow]:
    """Datagrams to one port from consecutive ports, as programs open them."""
    yield from (Flow(int(src), int(dst), 17, 20_000 + i, 5001) for i in range(number))


class Paths:
    """The ways of flows through switches with these contents."""

    def __init__(self, fabric: Fabric, contents: Mapping[str, Contents], choice: Choice = choose) -> None:
        self._fabric, self._contents, self._choice = fabric, contents, choice
        self._next_hops = functools.cache(self._read_next_hops)

    def take(self, start: str, flow: Flow) -> list[str]:
        """The switches that a flow passes, from one on."""
        here, passed = start, []
        while not self._fabric.is_host(here):
            passed.append(here)
            seed, hops = self._next_hops(here, flow.dst)
            here = hops[self._choice(flow, seed, len(hops))]
        return passed

    def _read_next_hops(self, switch: str, dst: int) -> tuple[int, list[str]]:
        """The switch's seed, and the neighbors by its longest prefix, in the order of the entry."""
        tables = [e for e in self._contents[switch].values() if isinstance(e, TableEntry)]
        (seed,) = (seed for e in tables if e.table == "hash_seeds" for _, seed in e.actions[0].args)
        routes = {dict(e.match)["destination"]: e.actions for e in tables if e.table == "ipv4_routes"}
        _, actions = max(
            (length, actions)
            for (prefix, length), actions in routes.items()
            if dst >> (32 - length) == prefix >> (32 - length)
        )
        neighbors = {port: name for name, port in self._fabric.ports[switch].items()}
        return seed, [neighbors[port] for action in actions for _, port in action.args]
