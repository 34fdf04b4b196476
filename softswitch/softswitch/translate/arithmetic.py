# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers: the exact value of an expression, with a range that is followed through every operator."""

from __future__ import annotations

from softswitch.errors import PipelineError
from softswitch.translate import wide
from softswitch.translate.model import MAX_WIDTH, unsupported
from softswitch.translate.refs import Node, References, constant_of
from softswitch.translate.value import (
    I32,
    I64,
    U32,
    U64,
    Val,
    field_range,
    limbs_for,
    literal,
    native_type,
)


class Arithmetic(References):
    """`modulo` and `boolean` come with a derived class."""

    def modulo(self, node: Node, width: int) -> Val:
        """The low bits of an expression."""
        raise NotImplementedError

    def boolean(self, node: Node) -> str:
        """The truth of an expression."""
        raise NotImplementedError

    def exact(self, node: Node) -> Val:
        kind, value = node["type"], node["value"]
        if kind == "expression":
            return self.exact_op(value) if "op" in value else self.exact(value)
        if kind == "hexstr":
            return self.constant(int(value, 16))
        if kind in ("field", "stack_field"):
            return self.load(self.field_ref(node))
        if kind in ("local", "runtime_data"):
            return self.param(int(value))
        if kind == "bool":
            return self.constant(int(bool(value)))
        if kind == "register":
            return self.register_value(value[0], value[1])
        if kind == "header":
            raise unsupported(f"header {value} used as a number", self.node)
        raise unsupported(f"expression of type {kind}", self.node)

    def register_value(self, name: str, index: Node) -> Val:
        r = self.model.registers.get(name)
        if r is None:
            raise PipelineError(f"the JSON names register {name!r}, which it does not declare")
        raise unsupported(f"register {name} inside an expression (P4_14)", self.node)

    def exact_op(self, e: Node) -> Val:
        op = e["op"]
        if op in ("+", "-") and e.get("left") is None:
            zero: Node = {"type": "hexstr", "value": "0x0"}
            return self.exact_op({"op": op, "left": zero, "right": e["right"]})
        if op == "&":
            masked = self._masked(e)
            if masked is not None:
                return masked
        if op in ("+", "-", "*", "&", "|", "^"):
            return self.arith(op, self.exact(e["left"]), self.exact(e["right"]))
        if op == "~":
            return self.invert(self.exact(e["right"]))
        if op in ("<<", ">>"):
            return self.shift(op, e)
        if op in ("/", "%"):
            return self.divide(op, self.exact(e["left"]), self.exact(e["right"]))
        if op in ("two_comp_mod", "usat_cast", "sat_cast"):
            width = self.exact(e["right"]).const
            if width is None or not 0 < width <= MAX_WIDTH:
                raise unsupported(f"{op} to a width that is not a constant", self.node)
            return self.cast(op, e["left"], width)
        if op == "b2d":
            return Val(self.boolean(e["right"]), 0, 1)
        if op == "?":
            return self.choose(e)
        if op == "access_field":
            return self.load(self.field_ref({"type": "expression", "value": e}))
        if op in ("last_stack_index", "size_stack"):
            stack = self.stack(e["right"] if e.get("right") is not None else e["left"])
            n = f"(int32_t)P->next[{stack.index}]"
            return Val(f"({n} - 1)", -1, stack.depth) if op == "last_stack_index" else Val(n, 0, stack.depth)
        return Val(self.boolean({"type": "expression", "value": e}), 0, 1)

    def _masked(self, e: Node) -> Val | None:
        """x & (2^n - 1): only the low n bits of x are needed."""
        for x, m in ((e["left"], e["right"]), (e["right"], e["left"])):
            mask = constant_of(m)
            if mask is not None and mask > 0 and mask & (mask + 1) == 0:
                return self.modulo(x, mask.bit_length())
        return None

    def arith(self, op: str, a: Val, b: Val) -> Val:
        lo, hi = result_range(op, a, b)
        t = native_type(min(lo, a.lo, b.lo), max(hi, a.hi, b.hi))
        if t is None or a.wide or b.wide:
            n = limbs_for(min(lo, a.lo, b.lo), max(hi, a.hi, b.hi))
            return self.wide_op(op, a, b, n, lo, hi)
        code = f"({a.as_type(t)} {op} {b.as_type(t)})"
        return Val(self.retype(code, t, lo, hi), lo, hi)

    def retype(self, code: str, have: str, lo: int, hi: int) -> str:
        want = native_type(lo, hi)
        return code if want == have else f"({want}){code}"

    def wide_op(self, op: str, a: Val, b: Val, n: int, lo: int, hi: int) -> Val:
        self.check_limbs(n)
        name = wide.binary(self.code, op, wide.limbs(self.code, a, n), wide.limbs(self.code, b, n), n)
        return self.narrow(name, lo, hi, n)

    def narrow(self, name: str, lo: int, hi: int, n: int) -> Val:
        t = native_type(lo, hi)
        return Val(name, lo, hi, n) if t is None else Val(f"({t}){name}[0]", lo, hi)

    def check_limbs(self, n: int) -> None:
        if n * 64 > MAX_WIDTH + 64:
            raise unsupported(f"a result of {n * 64} bits", self.node)

    def invert(self, a: Val) -> Val:
        lo, hi = ~a.hi, ~a.lo
        if a.wide or native_type(min(lo, a.lo), max(hi, a.hi)) is None:
            n = limbs_for(min(lo, a.lo), max(hi, a.hi))
            name = self.code.array(n)
            self.code.add(f"ss_w_not({name}, {wide.limbs(self.code, a, n)}, {n});")
            return self.narrow(name, lo, hi, n)
        t = native_type(min(lo, a.lo), max(hi, a.hi))
        assert t is not None
        return Val(self.retype(f"(~{a.as_type(t)})", t, lo, hi), lo, hi)

    def shift(self, op: str, e: Node) -> Val:
        a, by = self.exact(e["left"]), self.exact(e["right"])
        if by.wide or by.lo < 0:
            raise unsupported("shift by an amount of more than 64 bits or signed", self.node)
        if op == ">>":
            return self.shift_right(a, by)
        if by.hi > MAX_WIDTH:
            raise unsupported("shift to the left by an amount without bound, not cut to a width", self.node)
        lo, hi = min(a.lo << by.hi, a.lo), max(a.hi << by.hi, a.hi)
        n = limbs_for(lo, hi)
        if native_type(lo, hi) is not None and not a.wide:
            t = native_type(lo, hi)
            unsigned = U64 if t in (I64, U64) else U32
            return Val(f"({t})(({unsigned}){a.as_type(t or U64)} << {by.code})", lo, hi)
        self.check_limbs(n)
        name = self.code.array(n)
        self.code.add(f"ss_w_shl({name}, {wide.limbs(self.code, a, n)}, {n}, {by.as_type(U64)});")
        return self.narrow(name, lo, hi, n)

    def shift_right(self, a: Val, by: Val) -> Val:
        lo, hi = (min(a.lo, a.lo >> by.lo, -1 if a.lo < 0 else 0), max(a.hi >> by.lo, 0 if a.hi >= 0 else -1))
        if a.wide:
            name = self.code.array(a.limbs)
            self.code.add(f"ss_w_shr({name}, {a.code}, {a.limbs}, {by.as_type(U64)});")
            return self.narrow(name, lo, hi, a.limbs)
        t = native_type(min(lo, a.lo), max(hi, a.hi))
        assert t is not None
        if by.hi < (32 if t in (I32, U32) else 64):
            return Val(self.retype(f"({a.as_type(t)} >> {by.code})", t, lo, hi), lo, hi)
        helper = "ss_sar64" if a.lo < 0 else "ss_shr64"
        wider = I64 if a.lo < 0 else U64
        want = native_type(lo, hi)
        return Val(f"({want}){helper}({a.as_type(wider)}, {by.as_type(U64)})", lo, hi)

    def divide(self, op: str, a: Val, b: Val) -> Val:
        """For non-negative numbers, as BMv2; by zero gives 0."""
        hi = max(a.hi, 0) if op == "/" else max(min(a.hi, b.hi), 0)
        if not a.wide and not b.wide and native_type(min(a.lo, b.lo), max(a.hi, b.hi)) is not None:
            name = "ss_div" if op == "/" else "ss_mod"
            want = native_type(0, hi)
            return Val(f"({want}){name}({a.as_type(U64)}, {b.as_type(U64)})", 0, hi)
        n = limbs_for(min(a.lo, b.lo), max(a.hi, b.hi))
        q, r = self.code.array(n), self.code.array(n)
        self.code.add(
            f"ss_w_divmod({q}, {r}, {wide.limbs(self.code, a, n)}, {wide.limbs(self.code, b, n)}, {n});"
        )
        return self.narrow(q if op == "/" else r, 0, hi, n)

    def cast(self, op: str, node: Node, width: int) -> Val:
        signed = op != "usat_cast"
        lo, hi = field_range(width, signed)
        if op == "two_comp_mod":
            return self.two_comp(node, width, lo, hi)
        v = self._saturating(node, width, signed, lo, hi)
        if v.lo >= lo and v.hi <= hi:
            return v
        lo2, hi2 = max(lo, min(v.lo, hi)), min(hi, max(v.hi, lo))
        if v.wide:
            name = wide.clamp(self.code, v, lo, hi)
            return self.narrow(name, lo2, hi2, v.limbs)
        t = native_type(min(v.lo, lo2), max(v.hi, hi2))
        assert t is not None
        name = self.code.temp(t, v.as_type(t))
        code = f"({name} < {literal(lo, t)} ? {literal(lo, t)} : " if v.lo < lo else "("
        code += f"{name} > {literal(hi, t)} ? {literal(hi, t)} : {name})" if v.hi > hi else f"{name})"
        return Val(self.retype(code, t, lo2, hi2), lo2, hi2)

    def _saturating(self, node: Node, width: int, signed: bool, lo: int, hi: int) -> Val:
        """|+| and |-| on 32 and 64 bits without a wider type; else the number before it is clamped. Each operand is
        emitted once: programs nest them."""
        e = node["value"]
        while node["type"] == "expression" and "op" not in e:
            node, e = e, e["value"]
        if (
            node["type"] != "expression"
            or e["op"] not in ("+", "-")
            or e.get("left") is None
            or width not in (32, 64)
        ):
            return self.exact(node)
        a, b = self.exact(e["left"]), self.exact(e["right"])
        if a.wide or b.wide or min(a.lo, b.lo) < lo or max(a.hi, b.hi) > hi:
            return self.arith(e["op"], a, b)
        t = native_type(lo, hi)
        assert t is not None
        name = f"ss_{'s' if signed else 'u'}{'add' if e['op'] == '+' else 'sub'}{width}"
        return Val(f"{name}({a.as_type(t)}, {b.as_type(t)})", lo, hi)

    def two_comp(self, node: Node, width: int, lo: int, hi: int) -> Val:
        v = self.modulo(node, width)
        if v.hi <= hi:
            return v
        t = native_type(lo, hi)
        if t is None:
            n = limbs_for(lo, hi)
            name = self.code.array(n)
            self.code.add(f"ss_w_cp({name}, {n}, {wide.limbs(self.code, v, max(n, v.limbs))}, {n});")
            self.code.add(f"ss_w_sext({name}, {n}, {width});")
            return Val(name, lo, hi, n)
        if width in (32, 64):
            return Val(f"({t})({v.code})", lo, hi)
        return Val(f"({t})ss_sext({v.as_type(U64)}, {width})", lo, hi)

    def choose(self, e: Node) -> Val:
        c = self.boolean(e["cond"])
        a, b = self.exact(e["left"]), self.exact(e["right"])
        lo, hi = min(a.lo, b.lo), max(a.hi, b.hi)
        t = native_type(lo, hi)
        if t is not None:
            return Val(f"({c} ? {a.as_type(t)} : {b.as_type(t)})", lo, hi)
        n = limbs_for(lo, hi)
        x, y, name = wide.limbs(self.code, a, n), wide.limbs(self.code, b, n), self.code.array(n)
        self.code.add(f"ss_w_cp({name}, {n}, {c} ? {x} : {y}, {n});")
        return Val(name, lo, hi, n)


def result_range(op: str, a: Val, b: Val) -> tuple[int, int]:
    if op == "+":
        return a.lo + b.lo, a.hi + b.hi
    if op == "-":
        return a.lo - b.hi, a.hi - b.lo
    if op == "*":
        corners = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
        return min(corners), max(corners)
    if op == "&" and (a.lo >= 0 or b.lo >= 0):
        return 0, min(v.hi for v in (a, b) if v.lo >= 0)
    bits = max(v.bit_length() for v in (a.lo, a.hi, b.lo, b.hi, ~a.lo, ~b.lo))
    return (0 if a.lo >= 0 and b.lo >= 0 else -(1 << bits)), (1 << bits) - 1
