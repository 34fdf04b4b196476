# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A switch under test, whatever runs the compiled program: entries as the controller writes them, frames in and
out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from softswitch.build.native import default_cache_dir
from softswitch.state.entities import (
    ActionCall,
    ActionSet,
    Exact,
    Lpm,
    Match,
    MatchKind,
    Replica,
    TableAction,
    Ternary,
    WeightedAction,
)
from softswitch.state.entities import TableEntry as SoftEntry
from softswitch.state.pipeline import Pipeline
from softswitch.state.switch import Switch

from netfold.controller.switches.entries import Action, Entity, Field, MulticastGroup, TableEntry
from netfold.p4src.tools.p4build import CHILDREN, COMPILED, REPOSITORY, Profile

VERDICTS = 32  # cells of the counter `verdicts` for each tree
Frames = list[tuple[int, bytes]]
"""Frames that left a switch: (port, frame)."""


def compiled(profile: Profile) -> tuple[Path, Path]:
    """The program and its P4Info."""
    folder = REPOSITORY / COMPILED
    return folder / profile.program, folder / profile.p4info


class Device(Protocol):
    """Ports are 1 ... `PORTS` and the CPU port.

    least_bytes     shorter frames are padded on their way
    trees           that it has room for, tree 0 (none) included
    parses_options  it looks behind IPv4 options and at what ICMP errors quote, and verifies the checksum of a header
                    with options
    together        frames of one port that the isolation suite may send before it looks at what left
    children        bits of a slot's bitmap
    wraps           lanes that leave int32 wrap around; else they are saturated
    """

    least_bytes: int
    trees: int
    parses_options: bool
    together: int = 1
    children: int = CHILDREN
    wraps: bool = False

    def insert(self, entities: Iterable[Entity]) -> None: ...

    def delete(self, entities: Iterable[Entity]) -> None: ...

    def inject(self, port: int, frame: bytes) -> Frames:
        """Return all frames that leave because of one, sorted: copies of a multicast have no order."""
        ...

    def inject_all(self, port: int, frames: Iterable[bytes]) -> Frames:
        """Return all frames that leave because of several that come one after the other."""
        return [left for frame in frames for left in self.inject(port, frame)]

    def verdicts(self, tree_index: int) -> dict[int, int]:
        """Packets by verdict, those that are not 0."""
        ...

    def clear(self) -> None:
        """Make the device as it was at its start: without entries, sums and counts."""
        ...


class SoftDevice(Device):
    """The program on softswitch, in this process."""

    least_bytes = 0
    trees = 1024
    parses_options = True

    def __init__(
        self,
        program: Path,
        cache: Path | None = None,
        *,
        children: int = CHILDREN,
        threads: int = 1,
        wraps: bool = False,
    ) -> None:
        """Each frame is received by another thread, if there are several."""
        self.children = children
        self.wraps = wraps
        self._threads = threads
        self._program = program.read_bytes()
        self._cache = cache or default_cache_dir()
        self._switch = Switch(threads=threads)
        self._pipeline: Pipeline | None = None
        self.clear()

    def clear(self) -> None:
        fresh = Pipeline.load(self._program, self._cache, threads=self._threads)
        old = self._switch.swap(fresh)
        self._pipeline = fresh
        self._now = 0
        self._tables = {_bare(name): info for name, info in fresh.tables.items()}
        if old is not None:
            old.close()

    def __enter__(self) -> SoftDevice:
        return self

    def __exit__(self, *_: object) -> None:
        self._switch.close()
        self.pipeline.close()

    @property
    def pipeline(self) -> Pipeline:
        assert self._pipeline is not None
        return self._pipeline

    @property
    def switch(self) -> Switch:
        return self._switch

    def insert(self, entities: Iterable[Entity]) -> None:
        for entity in entities:
            if isinstance(entity, MulticastGroup):
                self.pipeline.multicast_insert(entity.group, [Replica(port) for port in entity.ports])
            else:
                self.pipeline.table_insert(self._tables[entity.table].name, self._entry(entity))

    def delete(self, entities: Iterable[Entity]) -> None:
        for entity in entities:
            if isinstance(entity, MulticastGroup):
                self.pipeline.multicast_delete(entity.group)
            else:
                name = self._tables[entity.table].name
                self.pipeline.table_delete(name, self._match(entity), entity.priority)

    def inject(self, port: int, frame: bytes) -> Frames:
        self._now += 1000
        thread = self._now // 1000 % self._threads
        return sorted(self._switch.inject(port, frame, self._now, thread))

    def verdicts(self, tree_index: int) -> dict[int, int]:
        cells = {
            verdict: self.pipeline.counter_read(
                "SwitchIngress.verdicts", tree_index * VERDICTS + verdict
            ).packets
            for verdict in range(VERDICTS)
        }
        return {verdict: packets for verdict, packets in cells.items() if packets}

    def _entry(self, entity: TableEntry) -> SoftEntry:
        info = self._tables[entity.table]
        names = {_bare(name): name for name in info.actions}
        calls = [_call(names[action.name], action) for action in entity.actions]
        chosen: TableAction = (
            ActionSet([WeightedAction(call) for call in calls]) if info.profile else calls[0]
        )
        return SoftEntry(self._match(entity), chosen, entity.priority)

    def _match(self, entity: TableEntry) -> dict[str, Match]:
        kinds = {key.name: key.kind for key in self._tables[entity.table].keys}
        return {name: _field(kinds[name], value) for name, value in entity.match}


def _field(kind: MatchKind, value: Field) -> Match:
    if isinstance(value, int):
        return Exact(_bytes(value))
    first, second = value
    return Lpm(_bytes(first), second) if kind is MatchKind.LPM else Ternary(_bytes(first), _bytes(second))


def _call(name: str, action: Action) -> ActionCall:
    return ActionCall(name, {parameter: _bytes(value) for parameter, value in action.args})


def _bytes(value: int) -> bytes:
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def _bare(name: str) -> str:
    return name.rsplit(".", 1)[-1]
