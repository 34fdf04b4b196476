# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checksums: verified after the parser, updated before the deparser, in the order of the JSON."""

from __future__ import annotations

from softswitch.errors import PipelineError
from softswitch.translate import store
from softswitch.translate.calculation import Calculations, emit_hash
from softswitch.translate.expr import Expr, Node
from softswitch.translate.model import unsupported
from softswitch.translate.trace import Trace


def emit_verify(ex: Expr, calculations: Calculations, trace: Trace) -> None:
    """A checksum whose header is invalid or whose condition is false counts as right."""
    ex.code.add("P->std.checksum_error = 0;")
    for c in ex.model.list("checksums"):
        if not c.get("verify", True):
            continue
        ex.node = c
        h, f = ex.model.field(c["target"][0], c["target"][1])
        valid = "1" if h.metadata else ex.header_ref(h).valid
        with ex.code.block(f"if ({valid})"), ex.code.block(f"if ({_condition(ex, c)})"):
            have = ex.modulo({"type": "field", "value": c["target"]}, f.width)
            if have.wide:
                raise unsupported(f"checksum of {f.width} bits", c)
            value = _compute(ex, calculations, c)
            right = f"{value} == (uint64_t){have.code}"
            trace.choice(ex.code, f"Verified checksum '{c['name']}': ", right, "passed", "failed", level="D")
            ex.code.add(f"if (!({right})) P->std.checksum_error = 1;")


def emit_update(ex: Expr, calculations: Calculations, trace: Trace) -> None:
    """Writes the field even if its header is invalid: it is not emitted then."""
    for c in ex.model.list("checksums"):
        if not c.get("update", True):
            continue
        ex.node = c
        with ex.code.block(f"if ({_condition(ex, c)})"):
            trace.step(ex.code, f"Updating checksum '{c['name']}'")
            value = _compute(ex, calculations, c)
            store.set_number(ex, ex.field_ref({"type": "field", "value": c["target"]}), value, (1 << 64) - 1)


def _condition(ex: Expr, c: Node) -> str:
    return ex.boolean(c["if_cond"]) if c.get("if_cond") is not None else "1"


def _compute(ex: Expr, calculations: Calculations, c: Node) -> str:
    if c["type"] == "generic":
        return calculations.emit(ex, c["calculation"])
    if c["type"] == "ipv4":
        header = c["target"][0]
        fields: list[Node] = [
            {"type": "field", "value": [header, f.name]}
            for f in ex.model.header(header).type.fields
            if f.name != c["target"][1]
        ]
        return emit_hash(ex, "csum16", fields, c)
    raise PipelineError(f"checksum of unknown type {c['type']!r}")
