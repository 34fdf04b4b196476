# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Assignments: to fields, and of whole headers, unions and stacks."""

from __future__ import annotations

from softswitch.translate import wide
from softswitch.translate.expr import Expr, FieldRef, HeaderRef, Node
from softswitch.translate.model import Stack, unsupported
from softswitch.translate.value import Val, field_range, limbs_for, native_type


def assign(ex: Expr, ref: FieldRef, source: Node) -> None:
    """ref = source, cut to the field's width (BMv2's Field::export_bytes)."""
    f = ref.field
    if f.varbit:
        return assign_varbit(ex, ref, ex.field_ref(source))
    if f.name == "$valid$":
        raise unsupported("assignment to a validity bit", ex.node)
    if f.signed and (ref.ref is None or f.width > 64):
        value = ex.two_comp(source, f.width, *field_range(f.width, True))
    else:
        value = ex.modulo(source, f.width)
    store(ex, ref, value)
    return None


def store(ex: Expr, ref: FieldRef, value: Val) -> None:
    """Stores a value that is already in range (in its low bits, for wire fields)."""
    f = ref.field
    if f.varbit or f.name == "$valid$":
        raise unsupported(f"a number assigned to {f.name}", ex.node)
    if f.width > 64:
        n = limbs_for(*field_range(f.width, f.signed))
        source = wide.limbs(ex.code, value, n)
        if ref.ref is None:
            ex.code.add(f"ss_w_cp({ref.lvalue}, {n}, {source}, {n});")
        else:
            ex.code.add(f"ss_w_put({ref.ref.base}, {f.offset}, {f.width}, {source}, {n});")
    elif ref.ref is None:
        ex.code.add(f"{ref.lvalue} = {low_word(value)};")
    elif f.width == 32 and f.offset % 8 == 0:
        ex.code.add(f"ss_st32({ref.ref.base} + {f.offset // 8}, (uint32_t){low_word(value)});")
    else:
        ex.code.add(f"ss_put({ref.ref.base}, {f.offset}, {f.width}, (uint64_t){low_word(value)});")


def low_word(value: Val) -> str:
    return f"{value.code}[0]" if value.wide else value.code


def set_number(ex: Expr, ref: FieldRef, code: str, hi: int) -> None:
    """ref = a C expression that yields 0..hi, cut to the field."""
    f = ref.field
    t = native_type(0, hi)
    assert t is not None
    if f.width < 64 and hi >> f.width:
        code, hi = f"({code} & 0x{(1 << f.width) - 1:x}ull)", (1 << f.width) - 1
        t = native_type(0, hi)
    if f.signed and ref.ref is None and f.width <= 64:
        cast = {32: f"(int32_t)({code})", 64: f"(int64_t)({code})"}
        code = cast.get(f.width, f"ss_sext((uint64_t)({code}), {f.width})")
        store(ex, ref, Val(code, *field_range(f.width, True)))
        return
    store(ex, ref, Val(f"({t})({code})", 0, hi))


def assign_varbit(ex: Expr, dst: FieldRef, src: FieldRef) -> None:
    if not src.field.varbit or not dst.field.varbit:
        raise unsupported("assignment between a varbit and another field", ex.node)
    to, to_bits, room = ex.varbit(dst)
    source, source_bits, _ = ex.varbit(src)
    with ex.code.block():
        n = ex.code.temp("uint32_t", source_bits)
        ex.code.add(f"if ({n} > {room * 8}u) {n} = {room * 8}u;")
        ex.code.add(f"memmove({to}, {source}, ({n} + 7) / 8);")
        ex.code.add(f"{to_bits} = {n};")


def mark_valid(ex: Expr, h: HeaderRef) -> None:
    for sibling in h.siblings:
        ex.code.add(f"{sibling} = 0;")
    ex.code.add(f"{h.valid} = 1;")


def header_bytes(h: HeaderRef) -> str:
    """C for the header's length on the wire."""
    t = h.header.type
    return f"({t.bytes}u + {h.var_bits} / 8)" if t.varbit else f"{t.bytes}u"


def add_header(ex: Expr, h: HeaderRef) -> None:
    """setValid: a header that was invalid starts as zeros."""
    t = h.header.type
    with ex.code.block(f"if (!{h.valid})"):
        ex.code.add(f"memset({h.base}, 0, {t.bytes});")
        if t.varbit:
            ex.code.add(f"{h.var_bits} = 0;")
        mark_valid(ex, h)
        ex.code.add(f"K->length += {header_bytes(h)};")


def remove_header(ex: Expr, h: HeaderRef) -> None:
    with ex.code.block(f"if ({h.valid})"):
        ex.code.add(f"{h.valid} = 0;")
        ex.code.add(f"K->length -= {header_bytes(h)};")


def copy_header(ex: Expr, dst: HeaderRef, src: HeaderRef) -> None:
    """An invalid source makes the destination invalid and leaves its fields."""
    t = dst.header.type
    if t is not src.header.type:
        raise unsupported("assignment between headers of different types", ex.node)
    with ex.code.block(f"if ({src.valid})"):
        mark_valid(ex, dst)
        ex.code.add(f"memmove({dst.base}, {src.base}, {t.bytes});")
        if t.varbit:
            ex.code.add(f"{dst.var_bits} = {src.var_bits};")
            ex.code.add(
                f"memmove({dst.base} + {t.var_offset}, {src.base} + {t.var_offset}, {src.var_bits} / 8);"
            )
    ex.code.add(f"else {dst.valid} = 0;")


def copy_stack(ex: Expr, dst: Stack, src: Stack) -> None:
    if dst.depth != src.depth:
        raise unsupported("assignment between stacks of different depth", ex.node)
    ex.code.add(f"P->next[{dst.index}] = P->next[{src.index}];")
    for d, s in zip(dst.elements, src.elements, strict=True):
        for a, b in zip(d, s, strict=True):
            copy_header(ex, ex.header_ref(a), ex.header_ref(b))


def shift_stack(ex: Expr, stack: Stack, count: Node, *, push: bool) -> None:
    """push_front / pop_front of P4_16: the whole stack moves, what enters is invalid."""
    depth, members, stride = stack.depth, stack.members, stack.stride
    first = stack.elements[0][0]
    with ex.code.block():
        v = ex.exact(count)
        if v.wide:
            raise unsupported("a stack shifted by a wide number", ex.node)
        n = ex.code.temp("uint32_t", f"{v.code} < 0 ? 0 : {v.code} > {depth} ? {depth} : (uint32_t){v.code}")
        nxt = f"P->next[{stack.index}]"
        keep = f"({depth}u - {n})"
        arrays = [
            (f"P->hdr + {first.place}", stride),
            (f"P->valid + {first.index}", members),
            (f"P->var_bits + {first.index}", members),
        ]
        for base, step in arrays:
            size = f"{keep} * {step}u * sizeof(*({base}))"
            far, near = f"{base} + {n} * {step}u", base
            ex.code.add(f"memmove({far}, {near}, {size});" if push else f"memmove({near}, {far}, {size});")
        invalidated = f"P->valid + {first.index}" + ("" if push else f" + {keep} * {members}u")
        ex.code.add(f"memset({invalidated}, 0, {n} * {members}u);")
        ex.code.add(
            f"{nxt} = {nxt} + {n} > {depth}u ? {depth}u : {nxt} + {n};"
            if push
            else f"{nxt} = {nxt} > {n} ? {nxt} - {n} : 0;"
        )
