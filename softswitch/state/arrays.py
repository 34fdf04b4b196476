# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Counters, meters, registers and value sets of one pipeline."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from netfold.softswitch.build import capi
from netfold.softswitch.errors import InvalidArgument, OutOfRange, ResourceExhausted
from netfold.softswitch.state.encode import KeySlot, encode_key, find
from netfold.softswitch.state.entities import ArrayInfo, CounterData, FieldInfo, Match, MatchKind, MeterConfig
from netfold.softswitch.state.profiles import check
from netfold.softswitch.translate.layout import pack

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
        """Of a meter: what all cells were set to, and those that were set since."""
        self._sets: dict[str, list[tuple[Match, ...]]] = {}

    def _number(self, what: str, name: str) -> int:
        number: int = find(self._index[what], name, what)
        return number

    def _within(self, info: ArrayInfo, what: str, index: int) -> None:
        if not 0 <= index < info.size:
            raise OutOfRange(f"{what} {info.name}: index {index} is not in 0..{info.size - 1}")

    def _parts(self, info: ArrayInfo, what: str, cells: range) -> Iterator[range]:
        """The cells, in pieces that hold the data plane's lock for a short time."""
        if cells:
            self._within(info, what, cells[0])
            self._within(info, what, cells[-1])
        for at in range(0, len(cells), CHUNK):
            yield cells[at : at + CHUNK]

    # ---- counters ----

    def counter_read(self, counter: str, first: int, count: int) -> list[CounterData]:
        number = self._number("counter", counter)
        self._within(self.counters[counter], "counter", first)
        cells = (capi.Counter * count)()
        check(self.core.ss_counter_io(self.handle, number, first, count, cells, 0), counter)
        return [CounterData(c.packets, c.bytes) for c in cells]

    def counter_fill(self, counter: str, cells: range, data: CounterData) -> Iterator[None]:
        """In pieces, between which others may have their turn."""
        number = self._number("counter", counter)
        if not (0 <= data.packets <= MAX64 and 0 <= data.bytes <= MAX64):
            raise InvalidArgument(f"counter {counter}: {data} does not fit 64 bits")
        count = min(len(cells), CHUNK)
        values = (capi.Counter * count).from_buffer_copy(
            bytes(capi.Counter(data.packets, data.bytes)) * count
        )
        for part in self._parts(self.counters[counter], "counter", cells):
            check(self.core.ss_counter_io(self.handle, number, part[0], len(part), values, 1), counter)
            yield

    # ---- meters ----

    def meter_words(self, config: MeterConfig | None, what: str) -> ctypes.Array[ctypes.c_uint64] | None:
        """The core's form. RFC 2698 wants the peak rate and burst not below the committed ones."""
        if config is None:
            return None
        values = [config.cir, config.cburst, config.pir, config.pburst]
        if any(not 0 <= v < 1 << 63 for v in values):
            raise InvalidArgument(f"meter {what}: rates and bursts are in 0..2^63-1, not {config}")
        if config.pir < config.cir:
            raise InvalidArgument(f"meter {what}: pir {config.pir} is below cir {config.cir}")
        return capi.words(values)

    def meter_read(self, meter: str, index: int) -> MeterConfig | None:
        self._number("meter", meter)
        self._within(self.meters[meter], "meter", index)
        every, cells = self._configs.get(meter, (None, {}))
        return cells.get(index, every)

    def meter_fill(self, meter: str, cells: range, config: MeterConfig | None) -> Iterator[None]:
        """In pieces, as counters are."""
        number, info = self._number("meter", meter), self.meters[meter]
        words = self.meter_words(config, meter)
        for part in self._parts(info, "meter", cells):
            check(self.core.ss_meter_set(self.handle, number, part[0], len(part), words), meter)
            yield
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
        """In pieces, as counters are."""
        number = self._number("register", register)
        info, size = self.registers[register], self._bytes[register]
        full = (1 << info.width) - 1
        low = -(1 << (info.width - 1)) if info.signed else 0
        if not low <= value <= full:
            raise InvalidArgument(f"register {register}: {value} does not fit {info.width} bits")
        data = (value & full).to_bytes(size, "little") * min(len(cells), CHUNK)
        for part in self._parts(info, "register", cells):
            check(self.core.ss_register_io(self.handle, number, part[0], len(part), data, 1), register)
            yield

    # ---- value sets ----

    def value_set_write(self, value_set: str, members: Sequence[Sequence[Match]]) -> None:
        number = self._number("value set", value_set)
        widths, size = self._widths[value_set], self.value_sets[value_set].size
        if size and len(members) > size:
            raise ResourceExhausted(f"value set {value_set} holds {size} members, not {len(members)}")
        fields = pack([(str(i), w) for i, w in enumerate(widths)])
        slots = [
            KeySlot(FieldInfo(f.name, f.width, MatchKind.TERNARY), (f.word, f.shift, f.words)) for f in fields
        ]
        words = max(1, *(f.word + f.words for f in fields))
        out: list[int] = []
        for member in members:
            if len(member) != len(widths):
                raise InvalidArgument(f"value set {value_set} has {len(widths)} fields, not {len(member)}")
            match = {str(i): m for i, m in enumerate(member)}
            key = encode_key(value_set, slots, words, match, 1, "ternary")
            out += [*key.key, *key.mask]
        check(self.core.ss_vset_set(self.handle, number, capi.words(out), len(members)), value_set)
        self._sets[value_set] = [tuple(m) for m in members]

    def value_set_read(self, value_set: str) -> Sequence[Sequence[Match]]:
        self._number("value set", value_set)
        return list(self._sets.get(value_set, []))
