# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Re-rolling: finds runs of statements that do the same to consecutive fields and registers.

p4c unrolls what a program does to each of its lanes into groups of the same shape. Here a run of at least
MIN_REPETITIONS groups, each of `period` statements, is recognised when corresponding leaves (fields, registers)
are either the same in all groups, or neighboring 8-, 16-, 32- or 64-bit fields of one header, or registers
of one size, or scalars that only one group uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from softswitch.translate.model import Field, Header, Model
from softswitch.translate.statements import (
    If,
    Jumps,
    Prim,
    Statement,
    all_prims,
    fields_in,
    names_in,
    read_before_write,
    written,
)

MIN_REPETITIONS = 8
MAX_PERIOD = 32
LOOPABLE = {"assign", "modify_field", "register_read", "register_write"}
Key = tuple[str, str]


@dataclass(frozen=True)
class Leaf:
    """A field ("field", (header, name)) or a register array ("register", name)."""

    kind: str
    name: Any


@dataclass
class Run:
    """`repetitions` groups of `period` statements from `start`. Names are those of the first
    group; the members that advance are listed."""

    start: int
    period: int
    repetitions: int
    body: tuple[Statement, ...]
    fields: dict[Key, tuple[Header, Field]] = field(
        default_factory=dict
    )  # wire fields that advance: the first of each
    registers: dict[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # first register -> all, group by group
    private: set[Key] = field(default_factory=set)  # scalars of one group
    private_names: set[Key] = field(default_factory=set)  # what they are called in all repetitions

    @property
    def length(self) -> int:
        return self.period * self.repetitions


class _Search:
    """Shapes and leaves of a list of statements, prepared so that a repetition is found in one step."""

    def __init__(self, shapes: list[Any], leaves: list[tuple[Leaf, ...]]) -> None:
        numbers: dict[Any, int] = {}
        self.ids = [
            -1 - i if s is None else numbers.setdefault(s, len(numbers)) for i, s in enumerate(shapes)
        ]
        self.leaves = leaves
        self.same: dict[int, list[int]] = {}

    def repetitions(self, at: int, period: int) -> int:
        """Count how often the `period` statements at `at` stand behind one another, by shape."""
        if self.ids[at] < 0:
            return 0
        if period not in self.same:
            self.same[period] = self._same(period)
        return 1 + self.same[period][at] // period

    def _same(self, period: int) -> list[int]:
        """For each place, how many statements from there on equal those `period` further."""
        out = [0] * len(self.ids)
        for i in range(len(self.ids) - period - 1, -1, -1):
            if self.ids[i] == self.ids[i + period]:
                out[i] = out[i + 1] + 1
        return out

    def groups(self, at: int, period: int, repetitions: int) -> list[list[Leaf]]:
        """The leaves of each group."""
        return [
            [leaf for s in self.leaves[at + t * period : at + (t + 1) * period] for leaf in s]
            for t in range(repetitions)
        ]


class Finder:
    """Finds the runs of one list of statements."""

    def __init__(self, model: Model, local: set[Key]) -> None:
        self.model = model
        self.local = local

    def runs(self, body: Sequence[Statement]) -> list[Run]:
        """Disjoint runs in order."""
        search = _Search([self.shape(s) for s in body], [tuple(self.leaves([s])) for s in body])
        found: list[Run] = []
        at = 0
        while at < len(body):
            run = self._longest(body, search, at)
            if run is None:
                at += 1
                continue
            found.append(run)
            at += run.length
        return found

    def _longest(self, body: Sequence[Statement], search: _Search, at: int) -> Run | None:
        best: Run | None = None
        for period in range(1, MAX_PERIOD + 1):
            repetitions = search.repetitions(at, period)
            if repetitions < MIN_REPETITIONS or (best is not None and repetitions * period <= best.length):
                continue
            run = self._check(body, search, at, period, repetitions)
            if run is not None and (best is None or run.length > best.length):
                best = run
        return best

    # ---- shapes ----

    def shape(self, s: Statement) -> Any:
        """A hashable form without the names of leaves, or None for what a loop cannot hold."""
        if isinstance(s, If):
            parts = [self._node(s.condition), *(self.shape(x) for x in (*s.then, *s.other))]
            return None if None in parts else ("if", len(s.then), tuple(parts))
        if isinstance(s, Jumps) or s.op not in LOOPABLE:
            return None
        params = tuple(self._node(p) for p in s.params)
        return None if None in params else (s.op, params)

    def _node(self, node: Any) -> Any:
        if isinstance(node, Mapping):
            kind = node.get("type")
            if kind == "field":
                header, name = node["value"]
                h, f = self.model.field(header, name)
                if f.width > 64 or f.varbit:
                    return None
                return ("field", f.width, f.signed, h.metadata)
            if kind == "register_array":
                r = self.model.registers.get(node["value"])
                return None if r is None or r.width > 64 else ("register", r.size, r.width)
            if kind not in (None, "expression", "hexstr", "bool", "local", "runtime_data"):
                return None  # a comparison of headers reads lanes that earlier turns wrote
            parts = tuple((k, self._node(v)) for k, v in sorted(node.items()) if k != "source_info")
            return None if any(p is None for _, p in parts) else parts
        return ("value", node)

    # ---- leaves ----

    def _check(
        self, body: Sequence[Statement], search: _Search, at: int, period: int, repetitions: int
    ) -> Run | None:
        """The run, shortened to the repetitions whose leaves fit, or None. Checks the first repetitions first."""
        for limit in (MIN_REPETITIONS, repetitions):
            fit = min(limit, repetitions)
            groups = search.groups(at, period, fit)
            while fit >= MIN_REPETITIONS:
                run = Run(at, period, fit, tuple(body[at : at + period]))  # names are filled in by _walks
                ok = self._walks(run, groups[:fit])
                if ok == fit:
                    break
                fit = ok
            if fit < MIN_REPETITIONS:
                return None
        return run if self._sound(run) else None

    def leaves(self, body: Sequence[Statement]) -> Iterator[Leaf]:
        for s in body:
            if isinstance(s, If):
                yield from leaves_of(s.condition)
                yield from self.leaves(s.then)
                yield from self.leaves(s.other)
            elif isinstance(s, Prim):
                for p in s.params:
                    yield from leaves_of(p)

    def _walks(self, run: Run, groups: list[list[Leaf]]) -> int:
        """Count the repetitions that fit; fills the run if all of them do."""
        columns: dict[Leaf, list[Any]] = {}
        good = run.repetitions
        for place, leaf in enumerate(groups[0]):
            names = [g[place].name for g in groups]
            if leaf in columns:
                good = min(good, _agreement(columns[leaf], names))
            else:
                columns[leaf] = names
        for leaf, names in columns.items():
            if all(n == leaf.name for n in names[:good]):
                continue
            if leaf.kind == "register":
                good = min(good, _distinct(names))
                run.registers[leaf.name] = tuple(names[:good])
            else:
                good = min(good, self._field_walk(run, leaf.name, names[:good]))
        return good

    def _field_walk(self, run: Run, first: Key, names: list[Key]) -> int:
        h, f = self.model.field(*first)
        if h.metadata:
            if all(n in self.local for n in names):
                run.private.add(first)
                run.private_names |= set(names)
                return _distinct(names)
            return 1
        if f.width not in (8, 16, 32, 64) or f.offset % 8:
            return 1
        run.fields[first] = (h, f)
        for turn, name in enumerate(names):
            h2, f2 = self.model.field(*name)
            if h2 is not h or f2.offset != f.offset + turn * f.width:
                return turn
        return len(names)

    # ---- is one loop the same as the unrolled statements? ----

    def _sound(self, run: Run) -> bool:
        if not run.fields and not run.registers:
            return False
        if any(len(names) != run.repetitions for names in run.registers.values()):
            return False
        prims = list(all_prims(run.body))
        return self._registers_sound(run, prims) and self._fields_sound(run)

    def _registers_sound(self, run: Run, prims: list[Prim]) -> bool:
        """All registers walk and share one index, which no turn changes; each walks on its own."""
        indexes = []
        changed = {w for w in map(written, prims) if w is not None}
        for p in prims:
            if p.op in ("register_read", "register_write"):
                name = (p.params[1] if p.op == "register_read" else p.params[0])["value"]
                if name not in run.registers:
                    return False
                indexes.append(p.params[2] if p.op == "register_read" else p.params[1])
        for index in indexes:
            if index != indexes[0] or any(
                k in changed or k in run.fields or k in run.private for k in fields_in(index)
            ):
                return False
        walks = [n for names in run.registers.values() for n in names]
        sizes = {(self.model.registers[n].size, self.model.registers[n].width) for n in walks}
        return len(walks) == len(set(walks)) and len({s for s, _ in sizes}) <= 1

    def _fields_sound(self, run: Run) -> bool:
        """Walking fields overlap neither one another nor a fixed field; scalars of one group are set first in it."""
        spans: list[tuple[str, int, int, bool]] = []
        for h, f in run.fields.values():
            spans.append((h.name, f.offset, f.offset + f.width * run.repetitions, True))
        for key in names_in(run.body):
            h, f = self.model.field(*key)
            if key not in run.fields and not h.metadata and f.offset >= 0:
                spans.append((h.name, f.offset, f.offset + f.width, False))
        for i, a in enumerate(spans):
            for b in spans[i + 1 :]:
                if (a[3] or b[3]) and a[0] == b[0] and a[1] < b[2] and b[1] < a[2]:
                    return False
        early, _ = read_before_write(run.body, set())
        return not (early & run.private)


def leaves_of(node: Any) -> Iterator[Leaf]:
    if isinstance(node, Mapping):
        if node.get("type") == "field":
            yield Leaf("field", (node["value"][0], node["value"][1]))
        elif node.get("type") == "register_array":
            yield Leaf("register", node["value"])
        else:
            for k in sorted(node):
                if k != "source_info":
                    yield from leaves_of(node[k])
    elif isinstance(node, list | tuple):
        for v in node:
            yield from leaves_of(v)


def _agreement(a: list[Any], b: list[Any]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), len(a))


def _distinct(names: list[Any]) -> int:
    seen: set[Any] = set()
    for i, n in enumerate(names):
        if n in seen:
            return i
        seen.add(n)
    return len(names)
