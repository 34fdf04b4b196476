# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Whether several threads may run a program at once. They may if one metadata field indexes all registers that a packet
touches, so that its value names the thread that owns them.

Before an action that touches registers, generated code compares that field with the thread's share of the cells. A
frame that belongs to another thread is handed over, and runs there from its start. So, in ingress:

1. every access of a register has the same field as its index,
2. the field does not change once a register may have been touched,
3. nothing that the program changes outside of the packet precedes an action that touches registers.

Registers of egress and of parsers, and programs whose packets enter a second time, are refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from softswitch.translate.control import ControlEmitter
from softswitch.translate.model import Model
from softswitch.translate.statements import Node, Prim, Statement, all_prims, written

Key = tuple[str, str]

REENTERING = ("resubmit", "recirculate")
EFFECTS = {
    "count": "counts",
    "execute_meter": "runs a meter",
    "modify_field_rng_uniform": "draws a random number",
    "log_msg": "writes a log message",
}


@dataclass(frozen=True)
class Sharding:
    """`index`: the field that indexes all registers; None: the program touches none, so any thread may run any packet.
    `refusal`: one thread has to run all packets, because of this."""

    index: Key | None = None
    refusal: str | None = None


class _RefusedError(Exception):
    pass


def sharding(model: Model, control: ControlEmitter, bodies: Mapping[int, Sequence[Statement]]) -> Sharding:
    """`bodies` of the actions, by number."""
    try:
        return Sharding(index=_Analysis(model, control, bodies).index())
    except _RefusedError as reason:
        return Sharding(refusal=str(reason))


class _Analysis:
    def __init__(
        self, model: Model, control: ControlEmitter, bodies: Mapping[int, Sequence[Statement]]
    ) -> None:
        self.model, self.control = model, control
        self.prims = {i: tuple(all_prims(body)) for i, body in bodies.items()}
        self.graph = {p["name"]: _Graph(p, control) for p in model.list("pipelines")}

    def index(self) -> Key | None:
        """Raises _RefusedError."""
        if not any(_register(p) for p in [*_parser_prims(self.model), *self._all("ingress", "egress")]):
            return None
        self._refuse_outside_of_ingress()
        found = self._common_index()
        ingress = self.graph["ingress"]
        touching = {n for n in ingress.nodes if any(self._touches(a) for a in ingress.actions[n])}
        later = ingress.reachable_from(touching)
        earlier = ingress.reaching(touching)
        for node in ingress.nodes:
            for action in ingress.actions[node]:
                self._check_index(found, action, changes_later=node in later and node in earlier)
                if node in earlier and not self._touches(action):
                    self._refuse_effects(action)
            if node in earlier or node in touching:
                self._refuse_direct(ingress.nodes[node])
        return found

    def _all(self, *pipelines: str) -> Iterator[Prim]:
        for name in pipelines:
            if name in self.graph:
                for actions in self.graph[name].actions.values():
                    for action in actions:
                        yield from self.prims[action]

    def _touches(self, action: int) -> bool:
        return touches_registers(self.prims[action])

    def _name(self, action: int) -> str:
        return str(self.control.actions[action]["name"])

    def _refuse_outside_of_ingress(self) -> None:
        for p in _parser_prims(self.model):
            if register := _register(p):
                raise _RefusedError(f"register {register} is touched by a parser")
        for actions in self.graph["egress"].actions.values() if "egress" in self.graph else ():
            for action in actions:
                for p in self.prims[action]:
                    if register := _register(p):
                        raise _RefusedError(
                            f"register {register}: action {self._name(action)} is run by egress"
                        )
        for name in ("ingress", "egress"):
            for actions in self.graph[name].actions.values() if name in self.graph else ():
                for action in actions:
                    for p in self.prims[action]:
                        if p.op.strip("_") in REENTERING:
                            raise _RefusedError(
                                f"action {self._name(action)}: {p.op.strip('_')}, so a packet may touch registers twice"
                            )

    def _common_index(self) -> Key:
        found: Key | None = None
        first = ""
        for actions in self.graph["ingress"].actions.values():
            for action in actions:
                for p in self.prims[action]:
                    if not (register := _register(p)):
                        continue
                    key, name, text = self._field(_index(p)), self._name(action), _text(_index(p))
                    if key is None:
                        raise _RefusedError(
                            f"register {register}: action {name} has the index {text}; expected a field of metadata "
                            "or of a header"
                        )
                    if found is not None and key != found:
                        raise _RefusedError(
                            f"register {register}: action {name} has the index {text}, but {first}"
                        )
                    if found is None:
                        found, first = key, f"register {register}: action {name} has the index {text}"
        assert found is not None
        return found

    def _field(self, node: Node) -> Key | None:
        while node["type"] == "expression" and "op" not in node["value"]:
            node = node["value"]
        if node["type"] != "field":
            return None
        header, field = self.model.field(*node["value"])
        is_fixed = header.name not in self.model.stack_of and header.union is None
        is_number = 0 < field.width <= 32 and not field.signed and not field.varbit
        is_plain = is_fixed and is_number and header.name != "standard_metadata" and field.name != "$valid$"
        return (header.name, field.name) if is_plain else None

    def _check_index(self, index: Key, action: int, *, changes_later: bool) -> None:
        if not changes_later and not self._touches(action):
            return
        for p in self.prims[action]:
            if self._may_write(p, index):
                raise _RefusedError(
                    f"action {self._name(action)} sets the index of registers, {'.'.join(index)}, "
                    "when a register may have been touched"
                )

    def _may_write(self, p: Prim, index: Key) -> bool:
        target = written(p)
        if target is not None:
            header, field = self.model.field(*target)
            return (header.name, field.name) == index
        return bool(p.params) and p.params[0]["type"] == "header" and p.params[0]["value"] == index[0]

    def _refuse_effects(self, action: int) -> None:
        for p in self.prims[action]:
            if (effect := EFFECTS.get(p.op.strip("_"))) is not None:
                raise _RefusedError(f"action {self._name(action)} {effect} before registers are touched")

    def _refuse_direct(self, node: Node) -> None:
        if node.get("with_counters") or node.get("direct_meters"):
            what = "counter" if node.get("with_counters") else "meter"
            raise _RefusedError(
                f"table {node['name']} has a direct {what}, and registers are touched after it"
            )


class _Graph:
    """The nodes of a pipeline, with the actions that each may run and the nodes that may follow."""

    def __init__(self, pipeline: Node, control: ControlEmitter) -> None:
        self.nodes: dict[str, Node] = {}
        self.actions: dict[str, tuple[int, ...]] = {}
        self.next: dict[str, set[str]] = {}
        for table in pipeline.get("tables") or []:
            ids = [*table["action_ids"]]
            default = table.get("default_entry") or {}
            if default.get("action_id") is not None:
                ids.append(default["action_id"])
            follow = [*table["next_tables"].values(), table.get("base_default_next")]
            self._add(table, tuple(dict.fromkeys(control.by_id[i] for i in ids)), follow)
        for node in pipeline.get("conditionals") or []:
            self._add(node, (), [node.get("true_next"), node.get("false_next")])
        for node in pipeline.get("action_calls") or []:
            self._add(node, (control.by_id[node["action_id"]],), [node.get("next_node")])

    def _add(self, node: Node, actions: tuple[int, ...], follow: Sequence[str | None]) -> None:
        name = node["name"]
        self.nodes[name], self.actions[name] = node, actions
        self.next[name] = {n for n in follow if n is not None}

    def reachable_from(self, start: set[str]) -> set[str]:
        """Nodes after one of `start`."""
        return _closure(start, self.next)

    def reaching(self, end: set[str]) -> set[str]:
        """Nodes before one of `end`."""
        before: dict[str, set[str]] = {name: set() for name in self.nodes}
        for name, follow in self.next.items():
            for n in follow:
                before.setdefault(n, set()).add(name)
        return _closure(end, before)


def _closure(start: set[str], step: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    todo = list(start)
    while todo:
        for name in step.get(todo.pop(), ()):
            if name not in found:
                found.add(name)
                todo.append(name)
    return found


def touches_registers(prims: Iterable[Prim]) -> bool:
    return any(_register(p) for p in prims)


def _register(p: Prim) -> str | None:
    if p.op == "register_read":
        return str(p.params[1]["value"])
    return str(p.params[0]["value"]) if p.op == "register_write" else None


def _index(p: Prim) -> Node:
    return p.params[2] if p.op == "register_read" else p.params[1]


def _text(node: Node) -> str:
    while node["type"] == "expression" and "op" not in node["value"]:
        node = node["value"]
    if node["type"] == "field":
        return ".".join(node["value"])
    return str(node["value"]) if node["type"] == "hexstr" else "an expression"


def _parser_prims(model: Model) -> Iterator[Prim]:
    for parser in model.list("parsers"):
        for state in parser["parse_states"]:
            for op in state["parser_ops"]:
                if op["op"] == "primitive":
                    node: Any = op["parameters"][0]
                    yield Prim(node["op"], tuple(node["parameters"]), node)
