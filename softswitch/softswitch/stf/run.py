# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a parsed STF file on a pipeline. Names may be suffixes, as p4c's own runner allows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from softswitch.errors import ControlError
from softswitch.state.entities import (
    ActionCall,
    CloneSession,
    CounterData,
    Exact,
    FieldInfo,
    Lpm,
    Match,
    MatchKind,
    MeterConfig,
    Range,
    Replica,
    TableEntry,
    TableInfo,
    Ternary,
)
from softswitch.state.pipeline import Pipeline
from softswitch.state.switch import Switch
from softswitch.stf.script import Add, Cli, Command, Expect, Packet, SetDefault, StfError

T = TypeVar("T")
STEP_NS = 1_000_000  # between two packets


class Runner:
    """The state of one run: what came out, what was expected, multicast nodes by handle."""

    def __init__(self, pipeline: Pipeline, switch: Switch) -> None:
        self.pipeline, self.switch = pipeline, switch
        self.now_ns = 1_000_000_000
        self.sent: dict[int, list[bytes]] = {}
        self.expected: dict[int, list[Expect]] = {}
        self.nodes: list[list[Replica]] = []
        self.groups: dict[int, list[Replica]] = {}

    def run(self, commands: Iterable[Command]) -> list[str]:
        """Returns what is wrong with the output; empty when all is as expected. Raises StfError."""
        for c in commands:
            self._attempt(c)
        return self.differences()

    def set_up(self, commands: Iterable[Command]) -> None:
        """Only what configures the switch: no packets. Raises StfError."""
        for c in commands:
            if not isinstance(c.statement, Packet | Expect):
                self._attempt(c)

    def _attempt(self, command: Command) -> None:
        try:
            self._execute(command)
        except (ControlError, ValueError, KeyError) as e:
            raise StfError(f"line {command.line}: {e}") from e

    def _execute(self, command: Command) -> None:
        s = command.statement
        if isinstance(s, Packet):
            self.now_ns += STEP_NS
            for port, frame in self.switch.inject(s.port, s.data, self.now_ns):
                self.sent.setdefault(port, []).append(frame)
        elif isinstance(s, Expect):
            self.expected.setdefault(s.port, []).append(s)
        elif isinstance(s, Add):
            self._add(s)
        elif isinstance(s, SetDefault):
            table = self._table(s.table)
            self.pipeline.table_set_default(table.name, self._action(table, s.action, s.args))
        else:
            self._cli(s)

    # ---- tables ----

    def _table(self, name: str) -> TableInfo:
        return _by_suffix(self.pipeline.tables, name, "table")

    def _action(self, table: TableInfo, name: str, args: tuple[tuple[str, str], ...]) -> ActionCall:
        candidates = {a: self.pipeline.actions[a] for a in table.actions}
        info = _by_suffix(candidates, name, f"action of {table.name}")
        widths = {p.name: p.width for p in info.params}
        params = {}
        for key, value in args:
            if key not in widths:
                raise StfError(f"action {info.name} has no argument {key!r}")
            params[key] = _bytes(_number(value), widths[key])
        return ActionCall(info.name, params)

    def _add(self, s: Add) -> None:
        table = self._table(s.table)
        given: dict[str, str] = {}
        for name, value in s.match:
            given[_key(table, name)] = value
        match: dict[str, Match] = {}
        for f in table.keys:
            m = _match(f, given.get(f.name))
            if m is not None:
                match[f.name] = m
        priority = max(1, s.priority or 1) if table.needs_priority else 0
        self.pipeline.table_insert(
            table.name, TableEntry(match, self._action(table, s.action, s.args), priority)
        )

    # ---- commands of the CLI ----

    def _cli(self, s: Cli) -> None:
        handler: Callable[[list[str]], None] | None = getattr(self, "_" + s.words[0], None)
        if handler is None:
            raise StfError(f"unknown command {s.words[0]}")
        handler(list(s.words[1:]))

    def _mirroring_add(self, a: list[str]) -> None:
        self._clone(_number(a[0]), [Replica(_number(a[1]))])

    def _mirroring_add_mc(self, a: list[str]) -> None:
        self._clone(_number(a[0]), self.groups.get(_number(a[1]), []))

    def _clone(self, session: int, replicas: list[Replica]) -> None:
        if session in self.pipeline.clone_sessions():
            self.pipeline.clone_delete(session)
        self.pipeline.clone_insert(CloneSession(session, replicas))

    def _mirroring_delete(self, a: list[str]) -> None:
        self.pipeline.clone_delete(_number(a[0]))

    def _mirroring_get(self, a: list[str]) -> None:
        pass

    _meter_get_rates = _mirroring_get

    def _mc_mgrp_create(self, a: list[str]) -> None:
        self.groups[_number(a[0])] = []
        self.pipeline.multicast_insert(_number(a[0]), [])

    def _mc_node_create(self, a: list[str]) -> None:
        ports = sorted(_number(p) for p in a[1:])
        self.nodes.append([Replica(p, _number(a[0])) for p in ports])

    def _mc_node_update(self, a: list[str]) -> None:
        node = self.nodes[_number(a[0])]
        rid = node[0].instance if node else 0
        node[:] = [Replica(p, rid) for p in sorted(_number(p) for p in a[1:])]

    def _mc_node_associate(self, a: list[str]) -> None:
        group = _number(a[0])
        self.groups[group] = [*self.groups[group], *self.nodes[_number(a[1])]]
        self.pipeline.multicast_modify(group, self.groups[group])

    def _counter_read(self, a: list[str]) -> None:
        self.pipeline.counter_read(_by_suffix(self.pipeline.counters, a[0], "counter").name, _number(a[1]))

    def _counter_write(self, a: list[str]) -> None:
        name = _by_suffix(self.pipeline.counters, a[0], "counter").name
        self.pipeline.counter_write(name, _number(a[1]), CounterData(_number(a[2]), _number(a[3])))

    def _register_read(self, a: list[str]) -> None:
        self.pipeline.register_read(_by_suffix(self.pipeline.registers, a[0], "register").name, _number(a[1]))

    def _register_write(self, a: list[str]) -> None:
        name = _by_suffix(self.pipeline.registers, a[0], "register").name
        self.pipeline.register_write(name, _number(a[1]), _number(a[2]))

    def _register_reset(self, a: list[str]) -> None:
        self.pipeline.register_reset(_by_suffix(self.pipeline.registers, a[0], "register").name)

    def _meter_set_rates(self, a: list[str]) -> None:
        name = _by_suffix(self.pipeline.meters, a[0], "meter").name
        self.pipeline.meter_write(name, _number(a[1]), _rates(a[2:]))

    def _meter_array_set_rates(self, a: list[str]) -> None:
        info = _by_suffix(self.pipeline.meters, a[0], "meter")
        for i in range(info.size):
            self.pipeline.meter_write(info.name, i, _rates(a[1:]))

    # ---- the verdict ----

    def differences(self) -> list[str]:
        out = []
        for port in sorted({*self.sent, *self.expected}):
            got, want = self.sent.get(port, []), self.expected.get(port, [])
            if len(got) != len(want):
                out.append(f"port {port}: {len(got)} packets came out, {len(want)} expected")
            for i, (frame, e) in enumerate(zip(got, want, strict=False)):
                if e.pattern is not None and not _fits(frame, e):
                    out.append(
                        f"port {port}, packet {i}: {frame.hex().upper()} came out, {e.pattern} expected"
                    )
        return out


def _fits(frame: bytes, e: Expect) -> bool:
    have = frame.hex().upper()
    assert e.pattern is not None
    if len(have) < len(e.pattern) or (e.exact and len(have) > len(e.pattern)):
        return False
    return all(want in ("*", digit) for want, digit in zip(e.pattern, have, strict=False))


def _by_suffix(names: Mapping[str, T], name: str, what: str) -> T:
    if name in names:
        return names[name]
    found = [n for n in names if n.endswith(name)]
    if len(found) != 1:
        raise StfError(f"{what} {name!r}: {'no such' if not found else 'ambiguous, ' + ', '.join(found)}")
    return names[found[0]]


def _key(table: TableInfo, name: str) -> str:
    """p4c's runner writes h$1.f for h[1].f, and leaves off prefixes."""
    indexed = re.match(r"(.*)\$([0-9]+)(.*)", name)
    if indexed:
        name = f"{indexed[1]}[{indexed[2]}]{indexed[3]}"
    names = [f.name for f in table.keys]
    for candidate in (name, f"{name}$", f"{name}.$valid$", name.removesuffix("valid") + "$valid$"):
        if candidate in names:
            return candidate
    for n in reversed(names):
        if n.endswith((f".{name}", f".{name}$")) or (name == "valid" and n.endswith("$valid$")):
            return n
    raise StfError(f"table {table.name} has no key {name!r}; it has {', '.join(names)}")


def _match(f: FieldInfo, text: str | None) -> Match | None:
    if f.kind is MatchKind.EXACT:
        return Exact(_bytes(_number(text or "0"), f.width))
    if text is None:
        return None
    if f.kind is MatchKind.LPM:
        return _lpm(f, text)
    if f.kind is MatchKind.RANGE:
        low, _, high = text.partition("..")
        return Range(_bytes(_number(low), f.width), _bytes(_number(high or low), f.width))
    value, mask = _starred(text)
    full = (1 << f.width) - 1
    return (
        Ternary(_bytes(value & mask & full, f.width), _bytes(mask & full, f.width)) if mask & full else None
    )


def _lpm(f: FieldInfo, text: str) -> Lpm:
    if "/" in text:
        number, _, prefix = text.partition("/")
        value, length = _number(number), int(prefix)
    else:
        value, _ = _starred(text)
        digits = len(text) - 2 - text.count("*")
        length = digits * (4 if text[:2] in ("0x", "0X") else 1)
    keep = ((1 << length) - 1) << (f.width - length)
    return Lpm(_bytes(value & keep, f.width), length)


def _starred(text: str) -> tuple[int, int]:
    """A value with * digits, and the mask of the other digits. p4c's runner gives given digits a full mask, no more."""
    base = {"0x": 16, "0b": 2, "0o": 8}.get(text[:2].lower())
    if base is None:
        raise StfError(f"a ternary value is hexadecimal or binary, not {text!r}")
    digits = text[2:]
    top = {16: "F", 2: "1", 8: "7"}[base]
    mask = "".join("0" if d == "*" else top for d in digits)
    return int(digits.replace("*", "0"), base), int(mask, base)


def _number(text: str) -> int:
    return int(text, 0) if text[:1] == "0" and len(text) > 1 and text[1] in "xXbBoO" else int(text)


def _bytes(value: int, width: int) -> bytes:
    return (value & ((1 << width) - 1)).to_bytes((width + 7) // 8, "big")


def _rates(texts: list[str]) -> MeterConfig:
    """Two rate:burst pairs, rates in units per microsecond."""
    (cir, cburst), (pir, pburst) = [t.split(":") for t in texts]
    return MeterConfig(round(float(cir) * 1e6), int(cburst), round(float(pir) * 1e6), int(pburst))
