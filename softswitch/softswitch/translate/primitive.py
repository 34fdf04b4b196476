# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The primitives that an action, a parser state or a deparser may call: those of BMv2's core and of simple_switch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from softswitch.errors import PipelineError
from softswitch.translate import store, wide
from softswitch.translate.calculation import Calculations
from softswitch.translate.expr import Expr, Node
from softswitch.translate.model import Model, Register, array_size, unsupported
from softswitch.translate.statements import Prim
from softswitch.translate.trace import Trace, fragment, quoted, where
from softswitch.translate.value import U32, U64, Val, field_range, limbs_for, native_type


@dataclass
class Banks:
    """Places of registers. Registers that a re-rolled loop walks through share a bank: cell-major, one lane each."""

    cells: list[tuple[int, int, int]] = field(
        default_factory=list
    )  # (cells, lanes, element bytes) of each bank
    place: dict[str, tuple[int, int]] = field(default_factory=dict)  # register -> bank, lane

    def add(self, registers: Sequence[Register]) -> None:
        for lane, r in enumerate(registers):
            self.place[r.name] = (len(self.cells), lane)
        self.cells.append((registers[0].size, len(registers), element_bytes(registers[0].width)))


def element_bytes(width: int) -> int:
    if width <= 64:
        return next(b for b in (1, 2, 4, 8) if width <= b * 8)
    return limbs_for(0, (1 << width) - 1) * 8


@dataclass
class Shared:
    """State that all functions of one translation share."""

    model: Model
    calculations: Calculations
    banks: Banks
    counters: dict[str, int]
    meters: dict[str, int]
    meter_bytes: dict[str, bool]
    egress_spec_width: int = 9
    trace: Trace = field(default_factory=Trace)
    rows: Mapping[tuple[str, str], frozenset[int]] = field(default_factory=dict)
    """prefetch.Rows"""


class Primitives:
    """Emits single primitive calls with the expression context `ex`."""

    def __init__(self, shared: Shared, ex: Expr) -> None:
        self.shared = shared
        self.ex = ex
        self.code = ex.code

    def emit(self, p: Prim) -> None:
        self.ex.node = p.node
        handler: Callable[[tuple[Node, ...]], None] | None = getattr(self, "op_" + p.op.strip("_"), None)
        if handler is None:
            raise unsupported(f"primitive {p.op}", p.node)
        trace = self.shared.trace
        trace.step(self.code, f"{where(p.node)}Primitive {fragment(p.node)}", level="T")
        handler(p.params)
        if p.op in ("assign", "modify_field", "register_read"):
            trace.assigned(self.ex, p.params[0])

    # ---- fields and headers ----

    def op_assign(self, a: tuple[Node, ...]) -> None:
        store.assign(self.ex, self.ex.field_ref(a[0]), a[1])

    op_modify_field = op_assign

    def op_assign_VL(self, a: tuple[Node, ...]) -> None:  # noqa: N802 - BMv2's name
        store.assign_varbit(self.ex, self.ex.field_ref(a[0]), self.ex.field_ref(a[1]))

    def _binary(self, op: str, a: tuple[Node, ...]) -> None:
        source: Node = {"type": "expression", "value": {"op": op, "left": a[1], "right": a[2]}}
        store.assign(self.ex, self.ex.field_ref(a[0]), source)

    def op_add(self, a: tuple[Node, ...]) -> None:
        self._binary("+", a)

    def op_subtract(self, a: tuple[Node, ...]) -> None:
        self._binary("-", a)

    def op_add_to_field(self, a: tuple[Node, ...]) -> None:
        self._binary("+", (a[0], a[0], a[1]))

    def op_subtract_from_field(self, a: tuple[Node, ...]) -> None:
        self._binary("-", (a[0], a[0], a[1]))

    def op_bit_and(self, a: tuple[Node, ...]) -> None:
        self._binary("&", a)

    def op_bit_or(self, a: tuple[Node, ...]) -> None:
        self._binary("|", a)

    def op_bit_xor(self, a: tuple[Node, ...]) -> None:
        self._binary("^", a)

    def op_shift_left(self, a: tuple[Node, ...]) -> None:
        self._binary("<<", a)

    def op_shift_right(self, a: tuple[Node, ...]) -> None:
        self._binary(">>", a)

    def op_add_header(self, a: tuple[Node, ...]) -> None:
        store.add_header(self.ex, self.ex.header(a[0]))

    def op_add_header_fast(self, a: tuple[Node, ...]) -> None:
        store.mark_valid(self.ex, self.ex.header(a[0]))

    def op_remove_header(self, a: tuple[Node, ...]) -> None:
        store.remove_header(self.ex, self.ex.header(a[0]))

    def op_assign_header(self, a: tuple[Node, ...]) -> None:
        store.copy_header(self.ex, self.ex.header(a[0]), self.ex.header(a[1]))

    op_copy_header = op_assign_header

    def op_assign_union(self, a: tuple[Node, ...]) -> None:
        for d, s in zip(self.ex.union_headers(a[0]), self.ex.union_headers(a[1]), strict=True):
            store.copy_header(self.ex, d, s)

    def op_assign_header_stack(self, a: tuple[Node, ...]) -> None:
        store.copy_stack(self.ex, self.ex.stack(a[0]), self.ex.stack(a[1]))

    op_assign_union_stack = op_assign_header_stack

    def op_push(self, a: tuple[Node, ...]) -> None:
        store.shift_stack(self.ex, self.ex.stack(a[0]), a[1], push=True)

    def op_pop(self, a: tuple[Node, ...]) -> None:
        store.shift_stack(self.ex, self.ex.stack(a[0]), a[1], push=False)

    # ---- state ----

    def register(self, node: Node) -> Register:
        r = self.shared.model.registers.get(node["value"])
        if r is None:
            raise PipelineError(f"the JSON names register {node['value']!r}, which it does not declare")
        return r

    def cell(self, r: Register, index: str) -> str:
        """C for the address of a cell, typed."""
        bank, lane = self.shared.banks.place[r.name]
        _, lanes, size = self.shared.banks.cells[bank]
        if r.width > 64:
            return f"((ss_limb *)K->pl->banks[{bank}] + (uint64_t){index} * {lanes * size // 8} + {lane * size // 8})"
        at = f"(uint64_t){index} * {lanes} + {lane}" if lanes > 1 else index
        return f"((uint{size * 8}_t *)K->pl->banks[{bank}])[{at}]"

    def register_val(self, r: Register, cell: str) -> Val:
        hi = (1 << r.width) - 1
        t = native_type(0, hi)
        return Val(f"({t}){cell}", 0, hi) if t is not None else Val(cell, 0, hi, limbs_for(0, hi))

    def op_register_read(self, a: tuple[Node, ...]) -> None:
        r = self.register(a[1])
        if r.name in self.ex.lane_registers:
            return self._read_cell(a[0], r, self.ex.lane_registers[r.name])
        with self.code.block():
            i = self.code.temp(U32, self.ex.index(a[2]))
            with self.code.block(f"if (SS_LIKELY({i} < {r.size}u))"):
                self._read_cell(a[0], r, self.cell(r, i))
        return None

    def _read_cell(self, dst: Node, r: Register, cell: str) -> None:
        ref = self.ex.field_ref(dst)
        value = self.register_val(r, cell)
        if value.wide:
            lo, hi = field_range(ref.field.width, False)
            n = limbs_for(lo, hi)
            name = self.code.array(max(n, value.limbs))
            self.code.add(f"ss_w_cp({name}, {max(n, value.limbs)}, {value.code}, {value.limbs});")
            self.code.add(
                f"ss_w_{'s' if ref.field.signed else 'z'}ext({name}, {max(n, value.limbs)}, {ref.field.width});"
            )
            store.store(self.ex, ref, Val(name, lo, hi, max(n, value.limbs)))
        elif ref.field.width > 64:
            store.store(self.ex, ref, value)
        else:
            store.set_number(self.ex, ref, value.code, value.hi)

    def op_register_write(self, a: tuple[Node, ...]) -> None:
        r = self.register(a[0])
        if r.name in self.ex.lane_registers:
            value = self.ex.modulo(a[2], r.width)
            self.code.add(f"{self.ex.lane_registers[r.name]} = {value.code};")
            return
        with self.code.block():
            i = self.code.temp(U32, self.ex.index(a[1]))
            value = self.ex.modulo(a[2], r.width)
            if r.width <= 64:
                self.code.add(f"if (SS_LIKELY({i} < {r.size}u)) {self.cell(r, i)} = {store.low_word(value)};")
            else:
                n = limbs_for(0, (1 << r.width) - 1)
                source = wide.limbs(self.code, value, n)
                self.code.add(
                    f"if (SS_LIKELY({i} < {r.size}u)) ss_w_cp({self.cell(r, i)}, {n}, {source}, {n});"
                )

    def op_count(self, a: tuple[Node, ...]) -> None:
        at = self.shared.counters[a[0]["value"]]
        arrays = self.shared.model.list("counter_arrays")
        size = array_size(next(c for c in arrays if c["name"] == a[0]["value"]))
        with self.code.block():
            i = self.code.temp(U32, self.ex.index(a[1]))
            self.code.add(f"if (SS_LIKELY({i} < {size}u)) ss_count(&K->shard->counters[{at}][{i}], K);")

    def op_execute_meter(self, a: tuple[Node, ...]) -> None:
        name = a[0]["value"]
        at = self.shared.meters[name]
        size = array_size(next(m for m in self.shared.model.list("meter_arrays") if m["name"] == name))
        amount = "K->ingress_length" if self.shared.meter_bytes[name] else "1"
        with self.code.block():
            i = self.code.temp(U32, self.ex.index(a[1]))
            with self.code.block(f"if (SS_LIKELY({i} < {size}u))"):
                color = self.code.temp(U32, f"ss_meter_run(&K->pl->meters[{at}][{i}], K->now_us, {amount})")
                store.set_number(self.ex, self.ex.field_ref(a[2]), color, 2)

    # ---- computed values ----

    def u64(self, node: Node) -> str:
        return self.ex.modulo(node, 64).as_type(U64)

    def op_modify_field_rng_uniform(self, a: tuple[Node, ...]) -> None:
        with self.code.block():
            lo, hi = self.code.temp(U64, self.u64(a[1])), self.code.temp(U64, self.u64(a[2]))
            with self.code.block(f"if ({lo} <= {hi})"):
                v = self.code.temp(U64, f"ss_random(K->pl, {lo}, {hi})")
                store.set_number(self.ex, self.ex.field_ref(a[0]), v, (1 << 64) - 1)

    def op_modify_field_with_hash_based_offset(self, a: tuple[Node, ...]) -> None:
        with self.code.block():
            base, size = self.code.temp(U64, self.u64(a[1])), self.code.temp(U64, self.u64(a[3]))
            value = self.shared.calculations.emit(self.ex, a[2]["value"])
            v = self.code.temp(U64, f"{value} % ({size} ? {size} : 1) + {base}")
            store.set_number(self.ex, self.ex.field_ref(a[0]), v, (1 << 64) - 1)

    # ---- the packet ----

    def op_drop(self, _a: tuple[Node, ...]) -> None:
        mask = (1 << self.shared.egress_spec_width) - 1
        self.code.add(f"P->std.egress_spec = ss_drop_port(K) & 0x{mask:x};")
        self.code.add("P->std.mcast_grp = 0;")

    op_mark_to_drop = op_drop

    def _mark(self, member: str, value: str) -> None:
        self.code.add(f"K->{member} = (uint16_t)({value});")

    def op_clone_ingress_pkt_to_egress(self, a: tuple[Node, ...]) -> None:
        self._mark("clone", f"{self.ex.modulo(a[0], 16).code} | SS_CLONE_SET")
        self._mark("clone_list", self.ex.modulo(a[1], 16).code)

    op_clone_egress_pkt_to_egress = op_clone_ingress_pkt_to_egress

    def op_resubmit(self, a: tuple[Node, ...]) -> None:
        self._mark("resubmit", self.ex.modulo(a[0], 16).code)

    def op_recirculate(self, a: tuple[Node, ...]) -> None:
        self._mark("recirculate", self.ex.modulo(a[0], 16).code)

    def op_generate_digest(self, a: tuple[Node, ...]) -> None:
        self._mark("digest", self.ex.modulo(a[1], 16).code)

    def op_truncate(self, a: tuple[Node, ...]) -> None:
        with self.code.block():
            n = self.code.temp(U32, self.ex.index(a[0]))
            self.code.add(f"if ({n} < K->truncate) K->truncate = {n};")

    def op_exit(self, _a: tuple[Node, ...]) -> None:
        self.code.add("K->exited = 1;")

    def op_no_op(self, _a: tuple[Node, ...]) -> None:
        pass

    def op_assert(self, a: tuple[Node, ...]) -> None:
        self.code.add(f"if (!{self.ex.boolean(a[0])}) K->failed = 1;")

    op_assume = op_assert

    def op_log_msg(self, a: tuple[Node, ...]) -> None:
        """Each {...} is a value in decimal; \\{ and \\} are braces (BMv2: core/primitives.cpp)."""
        values = [self.ex.exact(v) for v in (a[1]["value"] if len(a) > 1 else [])]
        with self.code.block():
            self.code.add('struct ss_text X = {0, ""};')
            parts = PLACEHOLDER.split(a[0]["value"])
            for i, part in enumerate(parts):
                if part:
                    text = part.replace("\\{", "{").replace("\\}", "}")
                    self.code.add(f'ss_text_add(&X, "%s", {quoted(text)});')
                if i < min(len(parts) - 1, len(values)):
                    self._add_number(values[i])
            self.code.add("ss_log(K, X.text);")

    def _add_number(self, v: Val) -> None:
        if v.wide:
            self.code.add(f"ss_text_number(&X, {v.code}, {v.limbs});")
        elif v.lo < 0:
            self.code.add(f'ss_text_add(&X, "%lld", (long long){v.code});')
        else:
            self.code.add(f'ss_text_add(&X, "%llu", (unsigned long long){v.code});')


PLACEHOLDER = re.compile(r"(?<!\\)\{.*?(?<!\\)\}")
