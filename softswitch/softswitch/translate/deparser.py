# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The deparser, and the small functions that copy or read lists of fields."""

from __future__ import annotations

from softswitch.translate import store
from softswitch.translate.checksum import emit_update
from softswitch.translate.code import Code
from softswitch.translate.expr import Expr, Node, member_name
from softswitch.translate.model import STD_FIELDS, Header, Model, unsupported
from softswitch.translate.primitive import Primitives, Shared
from softswitch.translate.statements import Prim

PHV = "  struct phv *P = (struct phv *)K->phv;\n  (void)P;"


def emit_update_checksums(shared: Shared) -> str:
    """Checksums, then the deparser's own statements (p4c puts there what a deparser computes)."""
    ex = Expr(shared.model, Code())
    shared.trace.step(ex.code, f"Deparser '{_deparser(shared.model).get('name', 'deparser')}': start")
    emit_update(ex, shared.calculations, shared.trace)
    primitives = Primitives(shared, ex)
    for p in _deparser(shared.model).get("primitives") or []:
        with ex.code.block():
            primitives.emit(Prim(p["op"], tuple(p["parameters"]), p))
    return f"static void update_checksums(struct ss_packet *K) {{\n{PHV}\n{ex.code.text()}\n}}"


def _deparser(model: Model) -> Node:
    deparsers = model.list("deparsers")
    if len(deparsers) > 1:
        raise unsupported("more than one deparser", deparsers[1])
    return deparsers[0] if deparsers else {"order": [], "primitives": []}


def emit_deparse(shared: Shared) -> str:
    ex = Expr(shared.model, Code())
    sizes = ["0u"]
    for name in _deparser(shared.model)["order"]:
        h = shared.model.header(name)
        ref = ex.header_ref(h)
        sizes.append(f"({ref.valid} ? {store.header_bytes(ref)} : 0u)")
        with ex.code.block(f"if ({ref.valid})"):
            shared.trace.step(ex.code, f"Deparsing header '{h.name}'")
            _emit_header(ex, h)
    shared.trace.step(ex.code, f"Deparser '{_deparser(shared.model).get('name', 'deparser')}': end")
    size = " + ".join(sizes)
    return (
        "static uint32_t headers_bytes(const struct ss_packet *K) {\n"
        "  const struct phv *P = (const struct phv *)K->phv;\n"
        f"  (void)P;\n  return {size};\n}}\n"
        f"static void deparse(struct ss_packet *K, uint8_t *out) {{\n{PHV}\n  (void)out;\n{ex.code.text()}\n}}"
    )


def _emit_header(ex: Expr, h: Header) -> None:
    ref, t = ex.header_ref(h), h.type
    if t.varbit is None:
        if t.bytes:
            ex.code.add(f"memcpy(out, {ref.base}, {t.bytes});")
        ex.code.add(f"out += {t.bytes};")
        return
    first = t.varbit.offset
    n = ex.code.temp("uint32_t", ref.var_bits)
    ex.code.add(f"ss_copy_bits(out, 0, {ref.base}, 0, {first});")
    ex.code.add(f"ss_copy_bits(out, {first}, {ref.base} + {t.var_offset}, 0, {n});")
    if t.bits > first:
        ex.code.add(f"ss_copy_bits(out, {first} + {n}, {ref.base}, {first}, {t.bits - first});")
    ex.code.add(f"out += {t.bytes}u + {n} / 8;")


def emit_copy_fields(shared: Shared) -> str:
    """Field lists of clone, resubmit and recirculate."""
    code = Code()
    with code.block("switch (list)"):
        for fields in shared.model.list("field_lists"):
            code.add(f"case {int(fields['id'])}:")
            for e in fields["elements"]:
                if e["type"] == "field":
                    _copy_field(shared.model, code, e["value"][0], e["value"][1])
            code.add("break;")
        code.add("default: break;")
    return (
        "static void copy_fields(void *to, const void *from, uint32_t list) {\n  struct phv *P = to;\n"
        f"  const struct phv *Q = from;\n  (void)P; (void)Q;\n{code.text()}\n}}"
    )


def _copy_field(model: Model, code: Code, header: str, name: str) -> None:
    h, f = model.field(header, name)
    if f.name == "$valid$":
        code.add(f"P->valid[{h.index}] = Q->valid[{h.index}];")
    elif f.varbit and h.metadata:
        m = member_name(h, f)
        code.add(f"memcpy(P->{m}, Q->{m}, sizeof P->{m});")
        code.add(f"P->{m}_bits = Q->{m}_bits;")
    elif f.varbit:
        code.add(
            f"memcpy(P->hdr + {h.place + h.type.var_offset}, Q->hdr + {h.place + h.type.var_offset}, {h.type.var_max});"
        )
        code.add(f"P->var_bits[{h.index}] = Q->var_bits[{h.index}];")
    elif not h.metadata:
        code.add(f"ss_copy_bits(P->hdr + {h.place}, {f.offset}, Q->hdr + {h.place}, {f.offset}, {f.width});")
    else:
        is_std = h.name == "standard_metadata" and f.name in STD_FIELDS
        m = f"std.{f.name}" if is_std else member_name(h, f)
        code.add(f"memcpy(&P->{m}, &Q->{m}, sizeof P->{m});")


def emit_digest(shared: Shared) -> str:
    """The fields of a digest behind one another, each in whole bytes."""
    code = Code()
    with code.block("switch (list)"):
        for digest in shared.model.list("learn_lists"):
            code.add(f"case {int(digest['id'])}:")
            ex = Expr(shared.model, code)
            ex.node = digest
            total = 0
            with code.block():
                for e in digest["elements"]:
                    h, f = shared.model.field(e["value"][0], e["value"][1])
                    if f.varbit:
                        raise unsupported(f"varbit field {h.name}.{f.name} in a digest", digest)
                    v = ex.modulo({"type": "field", "value": e["value"]}, f.width)
                    size = (f.width + 7) // 8
                    for i in range(size):
                        at = 8 * (size - 1 - i)
                        word = f"{v.code}[{at // 64}]" if v.wide else v.as_type("uint64_t")
                        code.add(f"out[{total + i}] = (uint8_t)({word} >> {at % 64});")
                    total += size
            if total > 4096:
                raise unsupported(f"digest of {total} bytes", digest)
            code.add(f"return {total};")
        code.add("default: return 0;")
    return (
        "static uint32_t digest(const struct ss_packet *K, uint32_t list, uint8_t *out) {\n"
        f"  struct phv *P = (struct phv *)K->phv;\n  (void)P; (void)out;\n{code.text()}\n}}"
    )
