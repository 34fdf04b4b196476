# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The packet header vector as a C struct: its initialization per packet, and its copy.

Big headers lie elsewhere (struct ss_big of runtime/program.h). One that the parser extracts stays in the frame until
something writes it, and copies of a packet share it."""

from __future__ import annotations

from collections.abc import Collection

from softswitch.translate.code import Code
from softswitch.translate.expr import member_name
from softswitch.translate.locals import Key
from softswitch.translate.model import STD_FIELDS, Model
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
    lines.append(f"  struct ss_big big[{len(model.big) + 1}];")
    lines.append(f"  _Alignas(64) uint8_t hdr[{model.phv_bytes + 16}];")
    return "#include <stddef.h>\n\n" + "\n".join([*lines, "};"])


def emit_own(model: Model, code: Code, names: Collection[str]) -> None:
    """Before something writes headers of these names: big ones among them get bytes of their own."""
    for h in model.big:
        if h.name in names:
            code.add(f"ss_big_own(K, &P->big[{h.big}], {h.type.bytes});")


def emit_begin(model: Model) -> str:
    """reset_metadata and zeros: contract in runtime/program.h."""
    room = max((h.type.room for h in model.big), default=1)
    return (
        f"static const uint8_t zeros[{room}];\n"
        "static void reset_metadata(void *phv) { memset(phv, 0, offsetof(struct phv, valid)); }"
    )
