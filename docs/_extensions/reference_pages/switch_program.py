# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The page of the switch program as P4Runtime shows it, from the compiled P4Info."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from finsy.proto import p4i  # the one copy of P4Runtime's messages in a process
from google.protobuf import text_format

from .markdown import table

PROGRAMS = ("v1model-64", "tofino2")


def page(repository: Path) -> str:
    """One section for each program."""
    return "\n".join(line for name in PROGRAMS for line in _program(repository, name)) + "\n"


def _program(repository: Path, name: str) -> Iterator[str]:
    info = p4i.P4Info()
    text_format.Parse((repository / f"p4src/compiled/netfold-{name}.p4info.txtpb").read_text(), info)
    actions = {action.preamble.id: action for action in info.actions}
    yield from (f"## {name}", "")
    yield from table(
        ("table", "match fields", "actions", "entries"),
        (
            (
                f"`{t.preamble.alias}`",
                ", ".join(f"`{m.name}` {_match(m)}" for m in t.match_fields),
                ", ".join(f"`{actions[ref.id].preamble.alias}`" for ref in t.action_refs),
                str(t.size),
            )
            for t in info.tables
            if not t.is_const_table
        ),
    )
    yield from table(
        ("action", "parameters"),
        (
            (f"`{a.preamble.alias}`", ", ".join(f"`{p.name}` {p.bitwidth}" for p in a.params))
            for a in info.actions
            if a.params
        ),
    )
    yield from table(
        ("counter", "unit", "size"),
        (
            (f"`{c.preamble.alias}`", p4i.CounterSpec.Unit.Name(c.spec.unit).lower(), str(c.size))
            for c in info.counters
        ),
    )


def _match(field: p4i.MatchField) -> str:
    kind = p4i.MatchField.MatchType.Name(field.match_type).lower()
    return f"{field.bitwidth} {kind}"
