# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the place in a frame of the field from which the index of registers is computed. The kernel reads it there,
and gives the frame to the thread that owns its registers (sharding.py). A wrong guess only costs a handover."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from softswitch.translate.model import Model
from softswitch.translate.statements import Node, Statement, all_prims, fields_in

Key = tuple[str, str]
Known = dict[str, int]
"""Offset in the frame of each header that the parser has passed, in bits."""


@dataclass(frozen=True)
class Check:
    """`size` bytes at `offset`, a number in network byte order, have `value` under `mask`."""

    offset: int
    size: int
    mask: int
    value: int


@dataclass(frozen=True)
class Steering:
    """Frames that pass all checks hold the lowest byte of the field at `offset`."""

    offset: int
    checks: tuple[Check, ...]


def steering(model: Model, index: Key, bodies: Mapping[int, Sequence[Statement]]) -> Steering | None:
    """Steer by the first header field of which `index` is set; None if it has no fixed place in a frame."""
    for header, name in [index, *_sources(index, bodies)]:
        found = None if model.field(header, name)[0].metadata else _place(model, header)
        if found is None:
            continue
        known, checks = found
        end = known[header] + model.field(header, name)[1].offset + model.field(header, name)[1].width
        if end % 8 == 0:
            return Steering(end // 8 - 1, tuple(dict.fromkeys(checks)))
    return None


def _sources(index: Key, bodies: Mapping[int, Sequence[Statement]]) -> Iterator[Key]:
    for body in bodies.values():
        for p in all_prims(body):
            if p.op in ("assign", "modify_field") and tuple(p.params[0].get("value", ())) == index:
                yield from fields_in(p.params[1])


def _place(model: Model, header: str) -> tuple[Known, tuple[Check, ...]] | None:
    """The first way through the parser that extracts the header, at a fixed offset."""
    parsers = model.list("parsers")
    if not parsers or not parsers[0].get("init_state"):
        return None
    states = {s["name"]: s for s in parsers[0]["parse_states"]}
    return _walk(model, states, parsers[0]["init_state"], header, {}, 0, (), frozenset())


def _walk(
    model: Model,
    states: Mapping[str, Node],
    name: str,
    header: str,
    known: Known,
    at: int,
    checks: tuple[Check, ...],
    seen: frozenset[str],
) -> tuple[Known, tuple[Check, ...]] | None:
    if name in seen:
        return None
    state = states[name]
    known = dict(known)
    for op in state["parser_ops"]:
        if op["op"] == "extract" and op["parameters"][0]["type"] == "regular":
            extracted = model.header(op["parameters"][0]["value"])
            known[extracted.name] = at
            at += extracted.type.bits
            if extracted.name == header:
                return known, checks
        elif op["op"] not in ("set", "verify", "primitive"):
            return None
    for t in sorted(state["transitions"], key=lambda t: _rank(model, state, t, known)):
        if t["next_state"] is None or t.get("type", "hexstr") not in ("hexstr", "default"):
            continue
        more = tuple(_checks(model, state, t, known)) if t.get("type", "hexstr") == "hexstr" else ()
        found = _walk(model, states, t["next_state"], header, known, at, checks + more, seen | {name})
        if found is not None:
            return found
    return None


def _rank(model: Model, state: Node, transition: Node, known: Known) -> int:
    """Transitions that can be checked first, then the default one: not the way of few frames, as from one port."""
    if transition.get("type", "hexstr") != "hexstr":
        return 1
    keys = state.get("transition_key") or []
    return 0 if all(k["type"] == "field" and model.field(*k["value"])[0].name in known for k in keys) else 2


def _checks(model: Model, state: Node, transition: Node, known: Known) -> Iterator[Check]:
    """Yield the checks of the keys that are fields of known place. A key fills whole bytes of the transition's
    value."""
    value = int(transition["value"], 16)
    mask = int(transition["mask"], 16) if transition.get("mask") is not None else -1
    for key in reversed(state.get("transition_key") or []):
        if key["type"] != "field":
            return
        header, field = model.field(*key["value"])
        full = (1 << field.width) - 1
        if header.name in known and field.width <= 32:
            yield from _check(known[header.name] + field.offset, field.width, mask & full, value & full)
        room = (field.width + 7) // 8 * 8
        value, mask = value >> room, mask >> room


def _check(at: int, width: int, mask: int, value: int) -> Iterator[Check]:
    first, count = at // 8, (at + width - 1) // 8 - at // 8 + 1
    size = next((s for s in (1, 2, 4) if count <= s), None)
    if size is None or not mask:
        return
    shift = size * 8 - at % 8 - width
    yield Check(first, size, mask << shift, (value & mask) << shift)
