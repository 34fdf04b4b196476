# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Actions to C functions: statements one by one, and re-rolled runs as loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from softswitch.translate import store
from softswitch.translate.code import Code
from softswitch.translate.expr import Expr, FieldRef, HeaderRef, Node
from softswitch.translate.layout import params_of
from softswitch.translate.model import Field, Header, Model
from softswitch.translate.model import names_in as strings_in
from softswitch.translate.phv import emit_own
from softswitch.translate.prefetch import emit_prefetches
from softswitch.translate.primitive import Banks, Primitives, Shared
from softswitch.translate.reroll import Finder, Key, Run
from softswitch.translate.statements import (
    WRITES_FIRST,
    If,
    Jumps,
    Prim,
    Statement,
    all_prims,
    conditions,
    fields_in,
    names_in,
    read_before_write,
    reads,
    written,
)
from softswitch.translate.value import Val, field_range, native_type

MAX_JUMPS = 1_000_000  # jumps that one call of an action may make


def assign_banks(model: Model, runs: Sequence[Run]) -> Banks:
    """Registers that advance together share a bank, longest runs first; the others have one each."""
    banks = Banks()
    walks = {names for run in runs for names in run.registers.values()}
    for names in sorted(walks, key=lambda n: (-len(n), n)):
        registers = [model.registers[n] for n in names]
        if not any(n in banks.place for n in names) and len({(r.size, r.width) for r in registers}) == 1:
            banks.add(registers)
    for r in model.registers.values():
        if r.name not in banks.place:
            banks.add([r])
    return banks


def in_one_row(banks: Banks, names: Sequence[str]) -> bool:
    """Whether the registers lie side by side in one bank."""
    places = [banks.place[n] for n in names]
    return all(p == (places[0][0], places[0][1] + i) for i, p in enumerate(places))


@dataclass(frozen=True)
class Lane:
    """A field that advances with a loop. `new` None: the loop does not write it."""

    old: FieldRef
    new: FieldRef | None
    block: str = ""  # arguments of ss_big_replace


class ActionEmitter:
    """Emits one action."""

    def __init__(
        self, shared: Shared, action: Node, body: Sequence[Statement], local: set[Key], loops: list[str]
    ) -> None:
        self.shared = shared
        self.model = shared.model
        self.body = body
        self.code = Code()
        self.finder = Finder(shared.model, local)
        mine = sorted({k for k in names_in(body) if k in local})
        self.ex = Expr(shared.model, self.code, params_of(action), {k: f"v_{i}" for i, k in enumerate(mine)})
        self.primitives = Primitives(shared, self.ex)
        self.local = local
        self.loops = loops  # a line for each loop made, for the report

    def emit(self) -> str:
        for (header, name), variable in self.ex.local.items():
            _, f = self.model.field(header, name)
            self.code.add(f"{native_type(*field_range(f.width, f.signed))} {variable} = 0; (void){variable};")
        self.statements(self.body)
        emit_prefetches(self.shared.rows, self.shared.banks, self.body, self.ex)
        return self.code.text()

    def statements(self, body: Sequence[Statement]) -> None:
        at = 0
        for run in [] if self.shared.trace.on else self.finder.runs(body):
            self._each(body[at : run.start])
            rest = body[run.start + run.length :]
            outlive = read_before_write(rest, set())[0] & run.private_names
            if not outlive and all(in_one_row(self.shared.banks, names) for names in run.registers.values()):
                self.loop(run, rest)
            else:
                self._each(body[run.start : run.start + run.length])
            at = run.start + run.length
        self._each(body[at:])

    def _each(self, body: Sequence[Statement]) -> None:
        for s in body:
            if isinstance(s, Prim):
                with self.code.block():
                    self._own(s)
                    self.primitives.emit(s)
                continue
            if isinstance(s, Jumps):
                self.jumps(s)
                continue
            with self.code.block():
                condition = self.ex.boolean(s.condition)
                with self.code.block(f"if ({condition})"):
                    self.statements(s.then)
                if s.other:
                    with self.code.block("else"):
                        self.statements(s.other)

    def jumps(self, body: Jumps) -> None:
        """Labels and gotos. A P4 loop need not end: MAX_JUMPS bounds it, and the frame is then dropped."""
        self.code.add("uint32_t jumps = 0;")
        for i, p in enumerate(body.prims):
            self.code.lines.append(f" j{i}: __attribute__((unused));")
            self.ex.node = p.node
            if p.op in ("_jump", "_jump_if_zero"):
                target = int(p.params[-1]["value"], 16)
                with self.code.block():
                    self.code.add(f"if (++jumps > {MAX_JUMPS}u) {{ K->failed = 1; return; }}")
                    condition = "1" if p.op == "_jump" else f"!{self.ex.boolean(p.params[0])}"
                    self.code.add(f"if ({condition}) goto j{target};")
            else:
                with self.code.block():
                    self._own(p)
                    self.primitives.emit(p)
        self.code.lines.append(f" j{len(body.prims)}: __attribute__((unused));")

    def _own(self, p: Prim) -> None:
        target = p.params[WRITES_FIRST.get(p.op, 0)] if p.params and p.op != "register_write" else ()
        emit_own(self.model, self.code, strings_in(target))

    # ---- loops ----

    def loop(self, run: Run, rest: Sequence[Statement]) -> None:
        self.loops.append(
            f"{run.repetitions} repetitions of {run.period} statements, "
            f"{len(run.registers)} registers, {len(run.fields)} fields"
        )
        prims = list(all_prims(run.body))
        access = next((p for p in prims if p.op in ("register_read", "register_write")), None)
        with self.code.block():
            if access is None:
                self._repetitions(run, run.body, rest, {})
                return
            size = self.model.registers[next(iter(run.registers))].size
            i = self.code.temp(
                "uint32_t", self.ex.index(access.params[2 if access.op == "register_read" else 1])
            )
            with self.code.block(f"if (SS_LIKELY({i} < {size}u))"):
                rows = {first: self._row(first, i) for first in run.registers}
                self._repetitions(run, run.body, rest, rows)
            without = tuple(without_registers(run.body))
            if without:
                with self.code.block("else"):
                    self._repetitions(run, without, rest, None)

    def _row(self, first: str, index: str) -> str:
        bank, lane = self.shared.banks.place[first]
        _, lanes, size = self.shared.banks.cells[bank]
        self.code.count += 1
        name = f"r{self.code.count}"
        ctype = f"uint{size * 8}_t"
        self.code.add(
            f"{ctype} *restrict {name} = ({ctype} *)K->pl->banks[{bank}] + (uint64_t){index} * {lanes} + {lane};"
        )
        return name

    def _repetitions(
        self, run: Run, body: Sequence[Statement], rest: Sequence[Statement], rows: Mapping[str, str] | None
    ) -> None:
        """The loop. `rows` None: the index is out of range, registers are left alone and what they would set
        keeps its value."""
        ex = self.ex
        saved_local, saved_lanes = dict(ex.local), dict(ex.lanes)
        flags = self._flags(run, body)
        shared = self._fixed(run, body, flags)
        changed = {w for p in all_prims(body) if (w := written(p)) is not None}
        emit_own(
            self.model, self.code, {header for header, name in changed if (header, name) not in run.fields}
        )
        lanes = {key: self._lane(run, key, key in changed) for key in run.fields}
        private = self._private(run, body, rest, rows)
        for key, flag in flags.items():
            self.code.add(f"uint32_t {flag} = 0;")
            ex.local.pop(key, None)
        ex.lane_registers = {first: f"{row}[i]" for first, row in (rows or {}).items()}
        self.code.add("#pragma GCC ivdep")
        with self.code.block(f"for (uint32_t i = 0; i < {run.repetitions}u; i++)"):
            for key, variable in private.items():
                self.code.add(f"{self._ctype(key)} {variable} = 0;")
            for key, lane in lanes.items():
                value = ex.load(lane.old)
                ex.lanes[key] = FieldRef(lane.old.field, lvalue=self.code.temp(value.ctype, value.code))
            self._loop_body(body, flags)
            for key, lane in lanes.items():
                if lane.new is not None:
                    store.store(ex, lane.new, ex.load(ex.lanes[key]))
        ex.lane_registers = {}
        ex.local, ex.lanes = saved_local, saved_lanes
        for lane in lanes.values():
            if lane.block:
                self.code.add(f"ss_big_replace(K, {lane.block});")
        for key, variable in shared.items():
            self._store_back(key, variable)
        for key, flag in flags.items():
            with self.code.block(f"if ({flag})"):
                self._each([flagged(body, key)])

    def _lane(self, run: Run, key: Key, is_changed: bool) -> Lane:
        """Before the loop: where its repetitions read a field that advances, and where they write it. A big header
        that the loop writes whole gets a new block, which needs no copy of the old bytes first."""
        h, f = run.fields[key]
        is_whole = f.width * run.repetitions == h.type.bits
        if is_changed and not is_whole:
            emit_own(self.model, self.code, {h.name})
        old = self._moving(h, f, f"{self.ex.header_ref(h).base} + {f.offset // 8}")
        if not is_changed or not is_whole or h.big < 0:
            return Lane(old, old if is_changed else None)
        self.code.count += 1
        block = f"b{self.code.count}"
        self.code.add(f"struct ss_block *{block} = ss_block_take(K);")
        return Lane(old, self._moving(h, f, f"{block}->bytes"), f"&P->big[{h.big}], {block}")

    def _moving(self, h: Header, f: Field, base: str) -> FieldRef:
        self.code.count += 1
        name = f"p{self.code.count}"
        self.code.add(f"uint8_t *restrict {name} = {base};")
        moved = Field(f.name, f.width, f.signed, 0)
        return FieldRef(moved, HeaderRef(h, "1", f"({name} + {f.width // 8} * i)", ""))

    def _ctype(self, key: Key) -> str:
        _, f = self.model.field(*key)
        t = native_type(*field_range(f.width, f.signed))
        assert t is not None
        return t

    def _loop_body(self, body: Sequence[Statement], flags: Mapping[Key, str]) -> None:
        for s in body:
            if isinstance(s, Prim):
                self.primitives.emit(s)
                continue
            assert isinstance(s, If)
            condition = self.ex.boolean(s.condition)
            flag = flag_of(s, flags)
            if flag is not None:
                self.code.add(f"{flag} |= (uint32_t){condition};")
                continue
            with self.code.block(f"if ({condition})"):
                self._loop_body(s.then, flags)
            if s.other:
                with self.code.block("else"):
                    self._loop_body(s.other, flags)

    def _flags(self, run: Run, body: Sequence[Statement]) -> dict[Key, str]:
        """Fixed fields that repetitions only set to a constant under a condition: one OR over the loop, one store
        after it."""
        out: dict[Key, str] = {}
        used = (
            set().union(*(reads(p) for p in all_prims(body)), *(fields_in(c) for c in conditions(body)))
            if body
            else set()
        )
        for s in body:
            key = constant_set(s)
            if key is None or key in used or key in run.fields or key in run.private:
                continue
            setters = [t for t in body if any(written(p) == key for p in all_prims([t]))]
            if all(constant_set(t) == key and set_to(t) == set_to(s) for t in setters):
                self.code.count += 1
                out[key] = f"f{self.code.count}"
        return out

    def _fixed(self, run: Run, body: Sequence[Statement], flags: Mapping[Key, str]) -> dict[Key, str]:
        """Loads values that do not advance into C variables before the loop; returns those to store after it."""
        back: dict[Key, str] = {}
        changed = {w for p in all_prims(body) if (w := written(p)) is not None}
        for key in sorted(names_in(body)):
            if key in run.fields or key in run.private or key in flags or key in self.ex.local:
                continue
            ref = self.ex.named(*key)
            if ref.field.name == "$valid$":
                continue
            value = self.ex.load(ref)
            name = self.code.temp(value.ctype, value.code)
            self.ex.lanes[key] = FieldRef(ref.field, lvalue=name)
            if key in changed:
                back[key] = name
        return back

    def _store_back(self, key: Key, variable: str) -> None:
        ref = self.ex.named(*key)
        store.store(self.ex, ref, Val(variable, *field_range(ref.field.width, ref.field.signed)))

    def _private(
        self, run: Run, body: Sequence[Statement], rest: Sequence[Statement], rows: Mapping[str, str] | None
    ) -> dict[Key, str]:
        """Scalars local to one repetition: those of one group, and action-locals that each repetition sets first and
        later code does not read."""
        early, _ = read_before_write(body, set())
        later, _ = read_before_write(rest, set())
        out: dict[Key, str] = {}
        for key in sorted(names_in(body)):
            fresh = rows is not None and key in self.ex.local and key not in early and key not in later
            if key in run.private or fresh:
                self.code.count += 1
                out[key] = self.ex.local[key] = f"x{self.code.count}"
        return out


def constant_set(s: Statement) -> Key | None:
    """The field, if `s` is `if (c) field = constant`."""
    if not isinstance(s, If) or s.other or len(s.then) != 1 or not isinstance(s.then[0], Prim):
        return None
    p = s.then[0]
    if p.op not in ("assign", "modify_field") or p.params[1]["type"] not in ("hexstr", "bool"):
        return None
    return written(p)


def set_to(s: Statement) -> Node | None:
    """Return the constant that `if (c) field = constant` sets."""
    return s.then[0].params[1] if isinstance(s, If) and isinstance(s.then[0], Prim) else None


def flag_of(s: If, flags: Mapping[Key, str]) -> str | None:
    key = constant_set(s)
    return flags.get(key) if key is not None else None


def flagged(body: Sequence[Statement], key: Key) -> Statement:
    """The assignment behind a flag."""
    for s in body:
        if constant_set(s) == key:
            assert isinstance(s, If)
            return s.then[0]
    raise AssertionError(key)


def without_registers(body: Sequence[Statement]) -> list[Statement]:
    out: list[Statement] = []
    for s in body:
        if isinstance(s, If):
            out.append(If(s.condition, tuple(without_registers(s.then)), tuple(without_registers(s.other))))
        elif isinstance(s, Prim) and s.op not in ("register_read", "register_write"):
            out.append(s)
    return out
