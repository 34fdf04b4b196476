# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The packet header vector as a C struct: its initialization per packet, and its copy.

Most of its bytes are big headers that few packets have. Code that may write one marks it in `touched`; the others stay
zero, and are neither cleared nor copied."""

from __future__ import annotations

from softswitch.translate.code import Code
from softswitch.translate.expr import member_name
from softswitch.translate.locals import Key
from softswitch.translate.model import STD_FIELDS, Model, names_in
from softswitch.translate.value import field_range, limbs_for


def emit_phv(model: Model, local: set[Key]) -> str:
    """`local`: fields that are variables of actions instead."""
    lines = ["struct phv {", "  struct ss_std std;"]
    for h in model.headers.values():
        if not h.metadata:
            continue
        for f in h.type.fields:
            if (h.name == "standard_metadata" and f.name in STD_FIELDS) or (h.name, f.name) in local:
                continue
            if f.varbit:
                lines.append(
                    f"  uint8_t {member_name(h, f)}[{h.type.var_max + 8}]; uint32_t {member_name(h, f)}_bits;"
                )
            elif f.width > 64:
                lines.append(f"  ss_limb {member_name(h, f)}[{limbs_for(*field_range(f.width, f.signed))}];")
            else:
                size = next(b for b in (8, 16, 32, 64) if f.width <= b)
                lines.append(f"  {'' if f.signed else 'u'}int{size}_t {member_name(h, f)};")
    stacks = len(model.stacks) + len(model.union_stacks)
    lines.append(f"  uint8_t valid[{model.validity_bytes + 1}];")
    lines.append(f"  uint32_t next[{stacks + 1}];")
    lines.append(f"  uint32_t var_bits[{model.validity_bytes + 1}];")
    lines.append(f"  uint8_t touched[{len(model.big) + 1}];")
    lines.append(f"  _Alignas(64) uint8_t hdr[{model.phv_bytes + 16}];")
    return "#include <stddef.h>\n\n" + "\n".join([*lines, "};"])


def note_touched(model: Model, code: Code, node: object) -> None:
    """Before a part of the program runs that may write to big headers: those that its JSON names."""
    if model.big:
        names = names_in(node)
        for i, h in enumerate(model.big):
            if h.name in names:
                code.add(f"P->touched[{i}] = 1;")


def emit_begin(model: Model) -> str:
    """clear_phv, copy_phv, reset_metadata: contract in runtime/program.h."""
    always = f"offsetof(struct phv, hdr) + {model.always_bytes}"
    clear, copy = Code(), Code()
    for i, h in enumerate(model.big):
        clear.add(f"if (P->touched[{i}]) memset(P->hdr + {h.place}, 0, {h.type.room});")
        copy.add(f"if (Q->touched[{i}]) memcpy(P->hdr + {h.place}, Q->hdr + {h.place}, {h.type.room});")
        copy.add(f"else if (P->touched[{i}]) memset(P->hdr + {h.place}, 0, {h.type.room});")
    return "\n".join(
        (
            "static void clear_phv(void *phv) {\n  struct phv *P = phv;",
            clear.text(),
            f"  memset(P, 0, {always});\n}}",
            "static void copy_phv(void *to, const void *from) {\n  struct phv *P = to;\n  const struct phv *Q = from;",
            copy.text(),
            f"  memcpy(P, Q, {always});\n}}",
            "static void reset_metadata(void *phv) { memset(phv, 0, offsetof(struct phv, valid)); }",
        )
    )
