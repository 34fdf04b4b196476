# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Prefetch of register rows. Where an action sets the field that later indexes a wide row of registers, the row is
loaded into the cache meanwhile. It changes no result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from softswitch.translate.expr import Expr, Node
from softswitch.translate.primitive import Banks
from softswitch.translate.reroll import Key
from softswitch.translate.statements import Prim, Statement, all_prims

LINE_BYTES = 64
MAX_ROW_BYTES = 4096

Rows = Mapping[Key, frozenset[int]]
"""Banks whose rows each index field selects."""


def indexed_rows(banks: Banks, bodies: Iterable[Sequence[Statement]]) -> Rows:
    """Find the rows of at least a cache line, by index. The first byte of shorter ones is as quickly loaded when it is
    used."""
    found: dict[Key, set[int]] = {}
    for body in bodies:
        for bank, index in _accesses(banks, body):
            if index["type"] == "field" and LINE_BYTES <= _row_bytes(banks, bank) <= MAX_ROW_BYTES:
                found.setdefault(_key(index), set()).add(bank)
    return {key: frozenset(banks) for key, banks in found.items()}


def emit_prefetches(rows: Rows, banks: Banks, body: Sequence[Statement], ex: Expr) -> None:
    """At the end of an action: of the rows that its assignments select, unless the action itself uses them."""
    used = {bank for bank, _ in _accesses(banks, body)}
    selected = {
        (_key(p.params[0]), bank)
        for p in all_prims(body)
        if p.op == "assign" and p.params[0]["type"] == "field"
        for bank in rows.get(_key(p.params[0]), ())
        if bank not in used
    }
    for key, bank in sorted(selected):
        row_bytes = _row_bytes(banks, bank)
        with ex.code.block():
            index = ex.code.temp("uint32_t", ex.index({"type": "field", "value": list(key)}))
            with ex.code.block(f"if (SS_LIKELY({index} < {banks.cells[bank][0]}u))"):
                row = f"(const uint8_t *)K->pl->banks[{bank}] + (uint64_t){index} * {row_bytes}"
                ex.code.add(f"ss_prefetch({row}, {row_bytes});")


def _accesses(banks: Banks, body: Sequence[Statement]) -> Iterator[tuple[int, Node]]:
    """Banks with the index of each access; registers that are not declared are refused elsewhere."""
    for p in all_prims(body):
        register, index = _operands(p)
        if register is not None and register["value"] in banks.place:
            yield banks.place[register["value"]][0], index


def _operands(p: Prim) -> tuple[Node | None, Node]:
    if p.op == "register_read":
        return p.params[1], p.params[2]
    if p.op == "register_write":
        return p.params[0], p.params[1]
    return None, {}


def _key(node: Node) -> Key:
    header, name = node["value"]
    return header, name


def _row_bytes(banks: Banks, bank: int) -> int:
    _, lanes, size = banks.cells[bank]
    return lanes * size
