# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Expressions of the JSON to C. Two forms of a number: `exact` (its value) and `modulo` (its low n
bits, which is what a masked or assigned result needs: sums and products then stay in machine words). And
`boolean` translates a condition."""

from __future__ import annotations

from softswitch.translate import wide
from softswitch.translate.arithmetic import Arithmetic
from softswitch.translate.refs import (
    COMPARE,
    FieldRef,
    HeaderRef,
    Node,
    constant_of,
    expression_kind,
    is_access,
    member_name,
)
from softswitch.translate.value import U32, U64, Val, limbs_for, literal, native_type

__all__ = ["Expr", "FieldRef", "HeaderRef", "Node", "member_name"]


class Expr(Arithmetic):
    """Emits expressions into `code`; a wide intermediate becomes a local array declared before the statement."""

    # ---- the low bits of numbers ----

    def modulo(self, node: Node, width: int) -> Val:
        """The number modulo 2^width, as an unsigned value."""
        hi = (1 << width) - 1
        if width > 64:
            return self.modulo_wide(node, width)
        u = U32 if width <= 32 else U64
        v = self.low_bits(node, u)
        if isinstance(v, Val) and v.lo >= 0 and v.hi <= hi:
            return v
        code = f"(({u})({v.code if isinstance(v, Val) else v}))"
        if width not in (32, 64):
            code = f"({code} & {literal(hi, u)})"
        return Val(self.retype(code, u, 0, hi), 0, hi)

    def low_bits(self, node: Node, u: str) -> Val | str:
        """Code of type u that is right in its low bits; or the exact value when that is as simple."""
        e = node["value"]
        if node["type"] == "expression":
            if "op" not in e:
                return self.low_bits(e, u)
            op = e["op"]
            if op in ("+", "-", "*", "|", "^", "&") and e.get("left") is not None:
                if op == "&" and (constant_of(e["left"]) is not None or constant_of(e["right"]) is not None):
                    return self.exact_or_word(node, u)
                return f"({self.word(e['left'], u)} {op} {self.word(e['right'], u)})"
            if op == "~":
                return f"(~{self.word(e['right'], u)})"
            if op == "<<":
                by = self.exact(e["right"])
                if not by.wide and by.lo >= 0:
                    bits = 32 if u == U32 else 64
                    left = self.word(e["left"], u)
                    return (
                        f"({left} << {by.code})"
                        if by.hi < bits
                        else f"ss_shl{bits}({left}, {by.as_type(U64)})"
                    )
            if op == "?":
                c = self.boolean(e["cond"])
                return f"({c} ? {self.word(e['left'], u)} : {self.word(e['right'], u)})"
        return self.exact_or_word(node, u)

    def exact_or_word(self, node: Node, u: str) -> Val | str:
        v = self.exact(node)
        return f"({u}){v.code}[0]" if v.wide else v

    def word(self, node: Node, u: str) -> str:
        v = self.low_bits(node, u)
        return v.as_type(u) if isinstance(v, Val) else f"({u}){v}"

    def modulo_wide(self, node: Node, width: int) -> Val:
        n = (width + 64) // 64  # one bit more than the width, so that it reads as non-negative
        self.check_limbs(n)
        v = self.low_limbs(node, n)
        if isinstance(v, Val) and v.lo >= 0 and v.hi < 1 << width:
            return v
        source = wide.limbs(self.code, v, n) if isinstance(v, Val) else v
        name = self.code.array(n)
        self.code.add(f"ss_w_cp({name}, {n}, {source}, {n});")
        self.code.add(f"ss_w_zext({name}, {n}, {width});")
        return Val(name, 0, (1 << width) - 1, n)

    def low_limbs(self, node: Node, n: int) -> Val | str:
        e = node["value"]
        if node["type"] == "expression":
            if "op" not in e:
                return self.low_limbs(e, n)
            op = e["op"]
            if op in ("+", "-", "*", "|", "^", "&") and e.get("left") is not None:
                return wide.binary(
                    self.code, op, self.limbs_of(e["left"], n), self.limbs_of(e["right"], n), n
                )
            if op == "~":
                name = self.code.array(n)
                self.code.add(f"ss_w_not({name}, {self.limbs_of(e['right'], n)}, {n});")
                return name
            if op == "<<":
                by = self.exact(e["right"])
                if not by.wide and by.lo >= 0:
                    name = self.code.array(n)
                    self.code.add(f"ss_w_shl({name}, {self.limbs_of(e['left'], n)}, {n}, {by.as_type(U64)});")
                    return name
        return self.exact(node)

    def limbs_of(self, node: Node, n: int) -> str:
        v = self.low_limbs(node, n)
        return wide.limbs(self.code, v, n) if isinstance(v, Val) else v

    # ---- truth ----

    def boolean(self, node: Node) -> str:
        """C of type int, 0 or 1. Both sides of and/or are evaluated, as in BMv2: nothing here has an effect."""
        kind, e = node["type"], node["value"]
        if kind == "bool":
            return "1" if e else "0"
        if kind != "expression":
            return f"({self.nonzero(self.exact(node))})"
        if "op" not in e:
            return self.boolean(e)
        op = e["op"]
        if op == "and":
            return f"({self.boolean(e['left'])} & {self.boolean(e['right'])})"
        if op == "or":
            return f"({self.boolean(e['left'])} | {self.boolean(e['right'])})"
        if op == "not":
            return f"(!{self.boolean(e['right'])})"
        if op == "d2b":
            return f"({self.nonzero(self.exact(e['right']))})"
        if op == "valid":
            return f"((int){self.header(e['right']).valid})"
        if op == "valid_union":
            return "(" + " | ".join(h.valid for h in self.union_headers(e["right"])) + ")"
        if op == "?":
            return f"({self.boolean(e['cond'])} ? {self.boolean(e['left'])} : {self.boolean(e['right'])})"
        if op in COMPARE:
            return self.compare(op, e["left"], e["right"])
        if op in ("==b", "!=b", "==h", "!=h", "==u", "!=u"):
            return self.compare(op[:2], e["left"], e["right"])
        return f"({self.nonzero(self.exact_op(e))})"

    def nonzero(self, v: Val) -> str:
        return f"ss_w_nonzero({v.code}, {v.limbs})" if v.wide else f"{v.code} != 0"

    def compare(self, op: str, left: Node, right: Node) -> str:
        kind = expression_kind(left)
        if kind == "bool" or expression_kind(right) == "bool":
            return f"({self.boolean(left)} {op} {self.boolean(right)})"
        if kind == "header":
            same = self.headers_equal(self.header(left), self.header(right))
            return same if op == "==" else f"(!{same})"
        if kind == "union":
            pairs = zip(self.union_headers(left), self.union_headers(right), strict=True)
            same = "(" + " | ".join(self.headers_equal(a, b) for a, b in pairs) + ")"
            return same if op == "==" else f"(!{same})"
        if op in ("==", "!=") and self.is_varbit(left) and self.is_varbit(right):
            (a, a_bits, _), (b, b_bits, _) = (
                self.varbit(self.field_ref(left)),
                self.varbit(self.field_ref(right)),
            )
            return f"(ss_var_equal({a}, {a_bits}, {b}, {b_bits}) {op} 1)"
        return self.compare_values(op, self.exact(left), self.exact(right))

    def is_varbit(self, node: Node) -> bool:
        while node["type"] == "expression" and "op" not in node["value"]:
            node = node["value"]
        if node["type"] == "field":
            return self.model.field(node["value"][0], node["value"][1])[1].varbit
        return (
            node["type"] in ("expression", "stack_field")
            and expression_kind(node) == "data"
            and is_access(node)
            and (self.field_ref(node).field.varbit)
        )

    def compare_values(self, op: str, a: Val, b: Val) -> str:
        t = native_type(min(a.lo, b.lo), max(a.hi, b.hi))
        if t is not None and not a.wide and not b.wide:
            return f"({a.as_type(t)} {op} {b.as_type(t)})"
        n = limbs_for(min(a.lo, b.lo), max(a.hi, b.hi))
        return f"(ss_w_cmp({wide.limbs(self.code, a, n)}, {wide.limbs(self.code, b, n)}, {n}) {op} 0)"

    def headers_equal(self, a: HeaderRef, b: HeaderRef) -> str:
        """Both valid and the same in every field (BMv2: two invalid headers are not equal)."""
        t = a.header.type
        same = f"({a.valid} & {b.valid} & (memcmp({a.base}, {b.base}, {t.bytes}) == 0)"
        if t.varbit:
            same += (
                f" & ({a.var_bits} == {b.var_bits}) & (memcmp({a.base} + {t.var_offset}, {b.base} + {t.var_offset}, "
                f"({a.var_bits} == {b.var_bits} ? {a.var_bits} : 0) / 8) == 0)"
            )
        return same + ")"
