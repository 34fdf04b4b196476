# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Resolves the names in expressions (headers, stacks, fields, action parameters, constants) and reads fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from softswitch.translate import wide
from softswitch.translate.code import Code
from softswitch.translate.layout import Param
from softswitch.translate.model import MAX_WIDTH, STD_FIELDS, Field, Header, Model, Stack, unsupported
from softswitch.translate.value import U32, Val, field_range, limbs_for, literal, native_type

Node = Mapping[str, Any]
COMPARE = {"==", "!=", "<", ">", "<=", ">="}


@dataclass(frozen=True)
class HeaderRef:
    """A header, fixed or chosen at run time: C for its validity byte, its bytes and its varbit length."""

    header: Header  # one of the type (any element of a stack)
    valid: str
    base: str
    var_bits: str
    siblings: tuple[str, ...] = ()  # validity bytes of the other members of its union


@dataclass(frozen=True)
class FieldRef:
    """Place of a field: in a header (`ref`), or in the variable `lvalue` (`room` bytes if it is a varbit)."""

    field: Field
    ref: HeaderRef | None = None
    lvalue: str = ""
    room: int = 0


class References:
    """Headers, stacks, fields, parameters and constants. `exact` comes with a derived class."""

    def __init__(
        self,
        model: Model,
        code: Code,
        params: Sequence[Param] = (),
        local: Mapping[tuple[str, str], str] | None = None,
    ) -> None:
        self.model = model
        self.code = code
        self.params = params
        self.local = dict(local or {})  # scalars that live in a C variable here
        self.lanes: dict[tuple[str, str], FieldRef] = {}  # fields that walk with the loop variable
        self.lane_registers: dict[str, str] = {}  # register -> C for the cell in this turn of the loop
        self.node: Node | None = None  # for the line of a refusal

    # ---- references ----

    def header_ref(self, h: Header) -> HeaderRef:
        if h.metadata:
            raise unsupported(f"metadata {h.name} used as a header", self.node)
        others = [o for o in h.union.headers if o is not h] if h.union else []
        siblings = tuple(f"P->valid[{o.index}]" for o in others)
        base = f"(P->hdr + {h.place})" if h.big < 0 else f"P->big[{h.big}].at"
        return HeaderRef(h, f"P->valid[{h.index}]", base, f"P->var_bits[{h.index}]", siblings)

    def element_ref(self, stack: Stack, index: str, member: int = 0) -> HeaderRef:
        """Element `index` (C); out of range, the spare element behind the stack."""
        i = self.code.temp(U32, f"{index}")
        self.code.add(f"if (SS_UNLIKELY({i} > {stack.depth}u)) {i} = {stack.depth}u;")
        first = stack.elements[0][member]
        at = f"{i} * {stack.members}u"
        place = f"(P->hdr + {first.place} + {i} * {stack.stride}u)"
        others = [h for h in stack.elements[0] if h is not first]
        siblings = tuple(f"P->valid[{o.index}u + {at}]" for o in others)
        return HeaderRef(
            first, f"P->valid[{first.index}u + {at}]", place, f"P->var_bits[{first.index}u + {at}]", siblings
        )

    def last_ref(self, stack: Stack, member: int = 0) -> HeaderRef:
        n = f"P->next[{stack.index}]"
        return self.element_ref(stack, f"{n} ? {n} - 1 : {stack.depth}u", member)

    def header(self, node: Node) -> HeaderRef:
        """An expression that yields a header."""
        kind, value = node["type"], node["value"]
        if kind == "header":
            return self.header_ref(self.model.header(value))
        if kind == "expression":
            op = value.get("op") if isinstance(value, Mapping) else None
            if op is None:
                return self.header(value)
            if op in ("dereference_header_stack", "dereference_stack"):
                return self.element_ref(self.stack(value["left"]), self.index(value["right"]))
            if op == "access_union_header":
                return self.union_member(value["left"], int(value["right"]))
        raise unsupported(f"header expression {value}", self.node)

    def union_member(self, node: Node, member: int) -> HeaderRef:
        if node["type"] == "header_union":
            return self.header_ref(self.model.unions[node["value"]].headers[member])
        value = node["value"]
        if node["type"] == "expression" and "op" not in value:
            return self.union_member(value, member)
        if value.get("op") == "dereference_union_stack":
            stack = self.stack(value["left"])
            return self.element_ref(stack, self.index(value["right"]), member)
        raise unsupported(f"union expression {value}", self.node)

    def union_headers(self, node: Node) -> list[HeaderRef]:
        if node["type"] == "header_union":
            return [self.header_ref(h) for h in self.model.unions[node["value"]].headers]
        value = node["value"]
        if node["type"] == "expression" and "op" not in value:
            return self.union_headers(value)
        stack = self.stack(value["left"])
        index = self.code.temp(U32, self.index(value["right"]))
        return [self.element_ref(stack, index, m) for m in range(stack.members)]

    def stack(self, node: Node) -> Stack:
        kind, value = node["type"], node["value"]
        if kind == "header_stack":
            return self.model.stacks[value]
        if kind == "header_union_stack":
            return self.model.union_stacks[value]
        if kind == "expression":
            return self.stack(value)
        raise unsupported(f"stack expression {value}", self.node)

    def index(self, node: Node) -> str:
        """An index as uint32_t that is out of range whenever the number is."""
        v = self.exact(node)
        if v.wide:
            v = self.native(wide.clamp_u32(self.code, v), 0, (1 << 32) - 1)
        if v.lo >= 0 and v.hi < 1 << 32:
            return v.as_type(U32)
        t = self.code.temp(v.ctype, v.code)
        low = f"{t} < 0 || " if v.lo < 0 else ""
        return f"({low}{t} > ({v.ctype})0x7fffffff ? 0xffffffffu : (uint32_t){t})"

    def field_ref(self, node: Node) -> FieldRef:
        """A field that can be read and assigned."""
        kind, value = node["type"], node["value"]
        if kind == "field":
            return self.named(value[0], value[1])
        if kind == "stack_field":
            stack = self.model.stacks[value[0]]
            ref = self.last_ref(stack)
            return FieldRef(ref.header.type.by_name[value[1]], ref)
        if kind == "expression":
            op = value.get("op") if isinstance(value, Mapping) else None
            if op is None:
                return self.field_ref(value)
            if op == "access_field":
                ref = self.header(value["left"])
                fields = ref.header.type.fields
                at = int(value["right"])
                if at < 0:
                    raise unsupported(f"field {at} of a header", self.node)
                return FieldRef(fields[at] if at < len(fields) else Field("$valid$", 1, False, -1), ref)
        raise unsupported(f"destination {value}", self.node)

    def named(self, header: str, name: str) -> FieldRef:
        key = (header, name)
        if key in self.lanes:
            return self.lanes[key]
        h, f = self.model.field(header, name)
        if not h.metadata:
            return FieldRef(f, self.header_ref(h))
        if key in self.local:
            return FieldRef(f, lvalue=self.local[key])
        if h.name == "standard_metadata" and f.name in STD_FIELDS:
            return FieldRef(f, lvalue=f"P->std.{f.name}")
        return FieldRef(f, lvalue=f"P->{member_name(h, f)}", room=h.type.var_max)

    def varbit(self, ref: FieldRef) -> tuple[str, str, int]:
        """Bytes, length in bits (both C) and room in bytes of a varbit field."""
        if ref.ref is None:
            return ref.lvalue, f"{ref.lvalue}_bits", ref.room
        t = ref.ref.header.type
        return f"({ref.ref.base} + {t.var_offset})", ref.ref.var_bits, t.var_max

    # ---- reading ----

    def load(self, ref: FieldRef) -> Val:
        f = ref.field
        if f.name == "$valid$":
            assert ref.ref is not None
            return Val(f"(int32_t)SS_ALONE({ref.ref.valid})", 0, 1)
        if f.varbit:
            raise unsupported(f"varbit field {f.name} in an expression", self.node)
        lo, hi = field_range(f.width, f.signed)
        if f.width > 64:
            return self._load_wide(ref, lo, hi)
        t = native_type(lo, hi)
        assert t is not None
        if ref.ref is None:
            alone = f"SS_ALONE({ref.lvalue})" if ref.lvalue.startswith("P->") else ref.lvalue
            return Val(f"({t}){alone}", lo, hi)
        get = f"ss_get({ref.ref.base}, {f.offset}, {f.width})"
        if f.width == 32 and f.offset % 8 == 0:
            get = f"ss_ld32({ref.ref.base} + {f.offset // 8})"
        elif f.signed:
            get = f"ss_sext({get}, {f.width})"
        return Val(f"({t}){get}", lo, hi)

    def _load_wide(self, ref: FieldRef, lo: int, hi: int) -> Val:
        n = limbs_for(lo, hi)
        name = self.code.array(n)
        f = ref.field
        if ref.ref is None:
            self.code.add(f"ss_w_cp({name}, {n}, {ref.lvalue}, {n});")
        else:
            self.code.add(f"ss_w_get({name}, {n}, {ref.ref.base}, {f.offset}, {f.width});")
            if f.signed:
                self.code.add(f"ss_w_sext({name}, {n}, {f.width});")
        return Val(name, lo, hi, n)

    def param(self, index: int) -> Val:
        if not 0 <= index < len(self.params):
            raise unsupported(f"parameter {index} of an action with {len(self.params)}", self.node)
        p = self.params[index]
        hi = (1 << p.width) - 1
        t = native_type(0, hi)
        if t is not None:
            return Val(f"({t})AD[{p.word}]", 0, hi)
        n = limbs_for(0, hi)
        name = self.code.array(n)
        self.code.add(f"ss_w_cp({name}, {n}, AD + {p.word}, {n});")
        return Val(name, 0, hi, n)

    def constant(self, value: int) -> Val:
        t = native_type(value, value)
        if t is not None:
            return Val(literal(value, t), value, value)
        n = limbs_for(value, value)
        if n * 64 > MAX_WIDTH:
            raise unsupported(f"constant of {value.bit_length()} bits", self.node)
        return Val(wide.constant(self.code, value, n), value, value, n)

    def native(self, code: str, lo: int, hi: int) -> Val:
        return Val(code, lo, hi)

    def exact(self, node: Node) -> Val:
        """The value of an expression."""
        raise NotImplementedError


def member_name(h: Header, f: Field) -> str:
    """The member of struct phv that holds a metadata field."""
    return f"m{h.number}_{h.type.fields.index(f)}_{identifier(f'{h.name}_{f.name}')}"


def identifier(name: str) -> str:
    """The part of a name that is valid in C, for readability; a number makes it unique."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name[:64])


def is_access(node: Node) -> bool:
    """Whether a node names a field rather than computes a number."""
    return bool(node["type"] == "stack_field" or node["value"].get("op") == "access_field")


def constant_of(node: Node) -> int | None:
    while node["type"] == "expression" and "op" not in node["value"]:
        node = node["value"]
    return int(node["value"], 16) if node["type"] == "hexstr" else None


def expression_kind(node: Node) -> str:
    """bool, header, union or data."""
    kind, e = node["type"], node["value"]
    if kind in ("bool", "header"):
        return str(kind)
    if kind == "header_union":
        return "union"
    if kind != "expression":
        return "data"
    if "op" not in e:
        return expression_kind(e)
    op = e["op"]
    if op in ("and", "or", "not", "d2b", "valid", "valid_union") or op in COMPARE or op[:2] in ("==", "!="):
        return "bool"
    if op in ("dereference_header_stack", "dereference_stack", "access_union_header"):
        return "header"
    if op == "dereference_union_stack":
        return "union"
    if op == "?":
        return expression_kind(e["left"])
    return "data"
