# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Counters, meters, registers and value sets of one pipeline."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from softswitch.build import capi
from softswitch.errors import InvalidArgumentError, OutOfRangeError, ResourceExhaustedError
from softswitch.state.encode import KeySlot, encode_key, find, meter_words
from softswitch.state.entities import ArrayInfo, CounterData, FieldInfo, Match, MatchKind, MeterConfig
from softswitch.state.profiles import check
from softswitch.translate.layout import pack

MAX64 = (1 << 64) - 1
CHUNK = 1 << 16  # cells that are written at once


class Arrays:
    """Named arrays. Values that the core does not give back (meter configurations, value sets) are kept here."""

    def __init__(self, core: ctypes.CDLL, handle: int, layout: Mapping[str, Any]) -> None:
        self.core, self.handle = core, handle
        self.counters = {name: ArrayInfo(name, size) for name, size in layout["counters"]}
        self.meters = {name: ArrayInfo(name, size) for name, size in layout["meters"]}
        self.registers = {
            n: ArrayInfo(n, size, width, signed) for n, size, width, _, signed in layout["registers"]
        }
        self.value_sets = {name: ArrayInfo(name, size, sum(widths)) for name, size, widths in layout["vsets"]}
        self._index = {
            "counter": {name: i for i, name in enumerate(self.counters)},
            "meter": {name: i for i, name in enumerate(self.meters)},
            "register": {name: i for i, name in enumerate(self.registers)},
            "value set": {name: i for i, name in enumerate(self.value_sets)},
        }
        self._bytes = {name: size for name, _, _, size, _ in layout["registers"]}
        self._widths = {name: widths for name, _, widths in layout["vsets"]}
        self._configs: dict[str, tuple[MeterConfig | None, dict[int, MeterConfig | None]]] = {}
        """Configurations of each meter: the one that all cells were set to, and those of cells that were set since."""
        self._sets: dict[str, list[tuple[Match, ...]]] = {}

    def _number(self, what: str, name: str) -> int:
        number: int = find(self._index[what], name, what)
        return number

    def _within(self, info: ArrayInfo, what: str, index: int) -> None:
        if not 0 <= index < info.size:
            raise OutOfRangeError(f"{what} {info.name}: index {index} is not in 0..{info.size - 1}")

    def _fill(
        self, info: ArrayInfo, what: str, cells: range, write: Callable[[range], int]
    ) -> Iterator[None]:
        """Write cells in slices that hold the data plane's lock briefly; yields between two."""
        if cells:
            self._within(info, what, cells[0])
            self._within(info, what, cells[-1])
        for at in range(0, len(cells), CHUNK):
            if at:
                yield
            check(write(cells[at : at + CHUNK]), info.name)

    # ---- counters ----

    def counter_read(self, counter: str, first: int, count: int) -> list[CounterData]:
        number = self._number("counter", counter)
        self._within(self.counters[counter], "counter", first)
        cells = (capi.Counter * count)()
        check(self.core.ss_counter_io(self.handle, number, first, count, cells, 0), counter)
        return [CounterData(c.packets, c.bytes) for c in cells]

    def counter_fill(self, counter: str, cells: range, data: CounterData) -> Iterator[None]:
        """Set cells to `data` in slices; yields between two, where other operations may run."""
        number = self._number("counter", counter)
        if not (0 <= data.packets <= MAX64 and 0 <= data.bytes <= MAX64):
            raise InvalidArgumentError(f"counter {counter}: {data} does not fit 64 bits")
        count = min(len(cells), CHUNK)
        values = (capi.Counter * count).from_buffer_copy(
            bytes(capi.Counter(data.packets, data.bytes)) * count
        )
        io = self.core.ss_counter_io
        yield from self._fill(
            self.counters[counter],
            "counter",
            cells,
            lambda part: io(self.handle, number, part[0], len(part), values, 1),
        )

    # ---- meters ----

    def meter_read(self, meter: str, index: int) -> MeterConfig | None:
        self._number("meter", meter)
        self._within(self.meters[meter], "meter", index)
        every, cells = self._configs.get(meter, (None, {}))
        return cells.get(index, every)

    def meter_fill(self, meter: str, cells: range, config: MeterConfig | None) -> Iterator[None]:
        """Set cells to `config` in slices, as `counter_fill` does."""
        number, info = self._number("meter", meter), self.meters[meter]
        words = meter_words(config, meter)
        io = self.core.ss_meter_set
        yield from self._fill(
            info, "meter", cells, lambda part: io(self.handle, number, part[0], len(part), words)
        )
        if len(cells) == info.size:
            self._configs[meter] = (config, {})
        else:
            self._configs.setdefault(meter, (None, {}))[1].update(dict.fromkeys(cells, config))

    # ---- registers ----

    def register_read(self, register: str, first: int, n: int) -> list[int]:
        number = self._number("register", register)
        info, size = self.registers[register], self._bytes[register]
        if n:
            self._within(info, "register", first)
        room = ctypes.create_string_buffer(max(1, n * size))
        check(self.core.ss_register_io(self.handle, number, first, n, room, 0), register)
        raw = room.raw
        cells = [int.from_bytes(raw[i * size : (i + 1) * size], "little") for i in range(n)]
        if not info.signed:
            return cells
        half = 1 << (info.width - 1)
        return [(c ^ half) - half for c in cells]

    def register_fill(self, register: str, cells: range, value: int) -> Iterator[None]:
        """Set cells to `value` in slices, as `counter_fill` does."""
        number = self._number("register", register)
        info, size = self.registers[register], self._bytes[register]
        full = (1 << info.width) - 1
        low = -(1 << (info.width - 1)) if info.signed else 0
        if not low <= value <= full:
            raise InvalidArgumentError(f"register {register}: {value} does not fit {info.width} bits")
        data = (value & full).to_bytes(size, "little") * min(len(cells), CHUNK)
        io = self.core.ss_register_io
        yield from self._fill(
            info, "register", cells, lambda part: io(self.handle, number, part[0], len(part), data, 1)
        )

    # ---- value sets ----

    def value_set_write(self, value_set: str, members: Sequence[Sequence[Match]]) -> None:
        number = self._number("value set", value_set)
        widths, size = self._widths[value_set], self.value_sets[value_set].size
        if size and len(members) > size:
            raise ResourceExhaustedError(f"value set {value_set} holds {size} members, not {len(members)}")
        fields = pack([(str(i), w) for i, w in enumerate(widths)])
        slots = [
            KeySlot(FieldInfo(f.name, f.width, MatchKind.TERNARY), (f.word, f.shift, f.words)) for f in fields
        ]
        words = max(1, *(f.word + f.words for f in fields))
        out: list[int] = []
        for member in members:
            if len(member) != len(widths):
                raise InvalidArgumentError(
                    f"value set {value_set} has {len(widths)} fields, not {len(member)}"
                )
            match = {str(i): m for i, m in enumerate(member)}
            key = encode_key(value_set, slots, words, match, 1, "ternary")
            out += [*key.key, *key.mask]
        check(self.core.ss_vset_set(self.handle, number, capi.words(out), len(members)), value_set)
        self._sets[value_set] = [tuple(m) for m in members]

    def value_set_read(self, value_set: str) -> Sequence[Sequence[Match]]:
        self._number("value set", value_set)
        return list(self._sets.get(value_set, []))
