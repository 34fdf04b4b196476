# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The choice of a next hop as the sources have it (p4src/common/hash_seed.p4), without a switch, and as the assembly of
a chip's program has it."""

from __future__ import annotations

import functools
import operator
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    """A CRC of two sums: of the seed and of each digest."""
    sums = (((digest + seed) & 0xFFFFFFFF).to_bytes(4, "big") for digest in digests(flow))
    return zlib.crc32(b"".join(sums)) % ways


def digests(flow: Flow) -> tuple[int, int]:
    """CRCs of the flow, once more with the fields in another order."""
    message = _message(flow)
    return crc32(flow), zlib.crc32(message[9:] + message[8:9] + message[:8])


def crc16(flow: Flow) -> int:
    """The reflected CRC-16 of 0x8005 that a Tofino 2 shares flows by, if it is not built with `--flow-hash crc32`."""
    crc = 0
    for byte in _message(flow):
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


def crc32(flow: Flow) -> int:
    return zlib.crc32(_message(flow))


def _message(flow: Flow) -> bytes:
    return b"".join(value.to_bytes(width, "big") for value, width in zip(flow, WIDTHS, strict=True))


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


_TERM = re.compile(
    r"(\d+)\.\.\d+: slice\(stripe\(crc_rev\(0x82608edb, \w+, \w+, (\d+), \{ ([^}]*) \}.*, (\d+)\.\.(\d+)\)"
)
_FIELD = re.compile(r"(\d+): ([\w.]+?)(?:\.(\d+)-(\d+))?(?:\((\d+)\.\.(\d+)\))?(?=,|$)")


@dataclass(frozen=True)
class Term:
    """Bits `low` to `high` of a CRC, at the bits of the hash matrix from `at` on. Of each field: its place in the bits
    under the CRC, and the bits of it that are there."""

    at: int
    low: int
    high: int
    size: int
    fields: tuple[tuple[int, str, int, int], ...]

    def value(self, values: Mapping[str, int]) -> int:
        """Without the constant that a CRC adds: the assembly has it once for all terms."""
        message = 0
        for place, name, first, last in self.fields:
            message |= _bits(values[name] >> first, last - first + 1) << place
        crc = zlib.crc32(message.to_bytes(self.size, "big")) ^ zlib.crc32(bytes(self.size))
        return _bits(crc >> self.low, self.high - self.low + 1) << self.low


class CompiledHash:
    """A hash as p4c's assembly for a chip has it (p4src/tools/tofino_hashes.py)."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.constant = 0
        self.terms: list[Term] = []
        group: set[Term] = set()
        for line in lines:
            if line.startswith("seed: "):
                seed = int(line.removeprefix("seed: "), 0)
                for at, low, high in {(term.at, term.low, term.high) for term in group}:
                    self.constant |= _bits(seed >> at, high - low + 1) << low
                group.clear()
            else:
                self.terms.append(_term(line))
                group.add(self.terms[-1])

    def value(self, values: Mapping[str, int]) -> int:
        return functools.reduce(operator.xor, (term.value(values) for term in self.terms), self.constant)


def _term(line: str) -> Term:
    found = _TERM.fullmatch(line)
    assert found is not None, f"{line}: expected bits of a reflected CRC-32"
    at, size, fields, low, high = found.groups()
    return Term(int(at), int(low), int(high), int(size) // 8, tuple(_placed(fields)))


def _placed(fields: str) -> Iterator[tuple[int, str, int, int]]:
    """A field, a part of it that has a container of its own (`.16-31`), or bits of either."""
    for place, name, part, end, first, last in _FIELD.findall(fields):
        start = int(part or 0)
        yield (
            int(place),
            name.rsplit(".", 1)[-1],
            start + int(first or 0),
            start + int(last) if last else int(end or 63),
        )


def _bits(value: int, count: int) -> int:
    return value & ((1 << count) - 1)


class CompiledChoice:
    """The choice of a chip's program, from the hashes of its assembly."""

    def __init__(self, hashes: Mapping[str, Sequence[str]]) -> None:
        self._hashes = {name: CompiledHash(lines) for name, lines in hashes.items()}

    def digests(self, flow: Flow) -> tuple[int, int]:
        values = {"l4_src_port": flow.src_port, "l4_dst_port": flow.dst_port, **flow._asdict()}
        return self._hashes["flow_1"].value(values), self._hashes["flow_2"].value(values)

    def __call__(self, flow: Flow, seed: int, ways: int) -> int:
        """The chip scrambles the hash before it selects, all switches in the same way: that is left out."""
        first, second = ((digest + seed) & 0xFFFFFFFF for digest in self.digests(flow))
        return self._hashes["choice"].value({"flow_1": first, "flow_2": second}) % ways
