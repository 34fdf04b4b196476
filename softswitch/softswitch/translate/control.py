# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Ingress and egress: a function for each table (key, lookup, action), and a function for each pipeline
whose labels are the nodes of the control graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from softswitch.errors import PipelineError
from softswitch.translate import store
from softswitch.translate.calculation import emit_hash
from softswitch.translate.code import Code
from softswitch.translate.expr import Expr, Node
from softswitch.translate.layout import KeyField, pack, params_of, words_of
from softswitch.translate.model import MAX_WIDTH, unsupported
from softswitch.translate.parser import emit_key, sum_words
from softswitch.translate.phv import emit_own
from softswitch.translate.primitive import Shared
from softswitch.translate.refs import identifier
from softswitch.translate.trace import fragment, where
from softswitch.translate.value import Val

HEAD = "  struct phv *P = (struct phv *)K->phv;\n  (void)P;"
MEMO_WORDS = 3
"""SS_MEMO_WORDS of runtime/program.h."""
MATCH_KINDS = ("exact", "lpm", "ternary", "range", "optional", "valid")


@dataclass
class Table:
    """A table as generated code and control plane agree on it."""

    node: Node
    index: int
    keys: list[KeyField]  # all but the ranges
    ranges: list[str]
    actions: list[int]  # indexes of actions
    profile: str | None
    counter: bool
    meter: str | None
    aging: bool
    constant: bool  # no key, and the default can never change: a plain call

    @property
    def name(self) -> str:
        return str(self.node["name"])


class ControlEmitter:
    """Emits all tables and both pipelines. `actions` maps the JSON's action ids to indexes."""

    def __init__(self, shared: Shared, actions: list[Node], exits: set[int]) -> None:
        self.shared = shared
        self.model = shared.model
        self.actions = actions
        self.by_id = {a["id"]: i for i, a in enumerate(actions)}
        self.exits = exits
        self.profiles: dict[str, tuple[int, Node]] = {}
        self.tables: dict[str, Table] = {}
        for pipeline in self.model.list("pipelines"):
            for p in pipeline.get("action_profiles") or []:
                self.profiles[p["name"]] = (len(self.profiles), p)
            for t in pipeline["tables"]:
                self.tables[t["name"]] = self._table(t)

    def _table(self, t: Node) -> Table:
        keys, ranges = [], []
        for i, k in enumerate(t["key"]):
            if k["match_type"] not in MATCH_KINDS:
                raise unsupported(f"match kind {k['match_type']}", t)
            width = self._key_width(k)
            if k["match_type"] == "range":
                if width > 64:
                    raise unsupported(f"range match on {width} bits", t)
                ranges.append(str(i))
            else:
                keys.append((str(i), width))
        if t["type"] not in ("simple", "indirect", "indirect_ws"):
            raise unsupported(f"table type {t['type']}", t)
        default = t.get("default_entry") or {}
        constant = (
            not t["key"]
            and t["type"] == "simple"
            and bool(default.get("action_entry_const"))
            and bool(default.get("action_const"))
            and not t.get("with_counters")
            and not t.get("direct_meters")
        )
        return Table(
            t,
            len(self.tables),
            pack(keys),
            ranges,
            [self.by_id[i] for i in t["action_ids"]],
            t.get("action_profile") if t["type"] != "simple" else None,
            bool(t.get("with_counters")),
            t.get("direct_meters"),
            bool(t.get("support_timeout")),
            constant,
        )

    def _key_width(self, k: Node) -> int:
        if k["match_type"] == "valid":
            return 1
        _, f = self.model.field(k["target"][0], k["target"][1])
        if f.varbit or f.width > MAX_WIDTH:
            raise unsupported(f"match on {k['target']}", k)
        return f.width

    # ---- tables ----

    def emit_table(self, t: Table) -> str:
        """A function that applies the table and returns what ran: the action's index, SS_NONE, with SS_HIT
        in bit 31."""
        code = Code()
        code.add(f"const struct ss_table *T = &K->pl->tables[{t.index}];")
        ex = Expr(self.model, code)
        ex.node = t.node
        self._lookup(ex, t)
        code.add("const struct ss_entry *U = E ? E : &T->default_entry;")
        if t.counter:
            code.add("ss_count_entry(U, K);")
        if t.meter:
            self._meter(ex, t.meter)
        if t.aging:
            code.add("if (E) ss_hit(E, K);")
        self._resolve(ex, t)
        with code.block("switch (A.action)"):
            for a in t.actions:
                code.add(f"case {a}:")
                self.shared.trace.action_entry(code, self.actions[a], "A.data")
                code.add(f"a_{a}(K, A.data); break;")
            code.add("default: break;")
        code.add("return A.action << 1 | (E != 0);")
        name = identifier(t.name)
        return f"static uint32_t t_{t.index}(struct ss_packet *K) {{ /* {name} */\n{HEAD}\n{code.text()}\n}}"

    def _lookup(self, ex: Expr, t: Table) -> None:
        values: list[Val] = []
        bounds: list[Val] = []
        for k in t.node["key"]:
            value = ex.modulo(self._key_node(k), self._key_width(k))
            mask = k.get("mask")
            if mask is not None:
                masked: Node = {
                    "op": "&",
                    "left": self._key_node(k),
                    "right": {"type": "hexstr", "value": mask},
                }
                value = ex.modulo({"type": "expression", "value": masked}, self._key_width(k))
            (bounds if k["match_type"] == "range" else values).append(value)
        key = emit_key(ex.code, t.keys, values)
        words = sum_words(t.keys)
        ranges = "0"
        if bounds:
            ranges = f"bounds{ex.code.count}"
            ex.code.add(
                f"uint64_t {ranges}[{len(bounds)}] = {{{', '.join(b.as_type('uint64_t') for b in bounds)}}};"
            )
        found = f"ss_lookup(T, {key}, {words}, {ranges}, {len(bounds)})"
        if 0 < words <= MEMO_WORDS and not bounds:
            found = f"ss_lookup_remembered(T, K->shard->memos[{t.index}], {key}, {words})"
        ex.code.add(f"struct ss_entry *E = T->count ? {found} : 0;")
        widths = [self._key_width(k) for k in t.node["key"]]
        self.shared.trace.lookup(ex.code, t.node, widths, t.keys, key, ranges)

    def _key_node(self, k: Node) -> Node:
        if k["match_type"] == "valid":
            name = k["target"] if isinstance(k["target"], str) else k["target"][0]
            return {"type": "field", "value": [name, "$valid$"]}
        return {"type": "field", "value": k["target"]}

    def _meter(self, ex: Expr, name: str) -> None:
        m = next(m for m in self.model.list("meter_arrays") if m["name"] == name)
        amount = "K->ingress_length" if m["type"] == "bytes" else "1"
        with ex.code.block("if (E)"):
            emit_own(self.model, ex.code, {m["result_target"][0]})
            color = ex.code.temp("uint32_t", f"E->meter ? ss_meter_run(E->meter, K->now_us, {amount}) : 0")
            store.set_number(ex, ex.field_ref({"type": "field", "value": m["result_target"]}), color, 2)

    def _resolve(self, ex: Expr, t: Table) -> None:
        if t.profile is None:
            ex.code.add("struct ss_act A = {U->action, 1, U->data};")
            return
        ex.code.add("uint64_t H = 0;")
        selector = self.profiles[t.profile][1].get("selector")
        if selector:
            with ex.code.block("if (U->kind == SS_GROUP)"):
                value = emit_hash(ex, selector["algo"], selector["input"], t.node)
                ex.code.add(f"H = {value};")
        ex.code.add("struct ss_act A = ss_resolve(T->profile, U, H);")

    # ---- the graph ----

    def emit_pipeline(self, name: str, function: str) -> str:
        pipeline = next((p for p in self.model.list("pipelines") if p["name"] == name), None)
        code = Code()
        self.shared.trace.step(code, f"Pipeline '{name}': start")
        if pipeline is not None and pipeline.get("init_table") is not None:
            self._graph(pipeline, code)
        if self.shared.trace.on:
            end = Code()
            self.shared.trace.step(end, f"Pipeline '{name}': end")
            body = f"static void run_{function}(struct ss_packet *K) {{\n{HEAD}\n{code.text()}\n}}\n"
            return (
                body
                + f"static void {function}(struct ss_packet *K) {{\n  run_{function}(K);\n{end.text()}\n}}"
            )
        return f"static void {function}(struct ss_packet *K) {{\n{HEAD}\n{code.text()}\n}}"

    def _graph(self, pipeline: Node, code: Code) -> None:
        nodes: dict[str, tuple[str, Node]] = {}
        for kind, key in (("table", "tables"), ("condition", "conditionals"), ("call", "action_calls")):
            for n in pipeline.get(key) or []:
                nodes[n["name"]] = (kind, n)
        labels = {name: f"n{i}_{identifier(name)}" for i, name in enumerate(nodes)}
        todo, seen = [pipeline["init_table"]], set()
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            if name not in nodes:
                raise PipelineError(f"the JSON names control node {name!r}, which it does not declare")
            seen.add(name)
            kind, node = nodes[name]
            code.lines.append(f" {labels[name]}: __attribute__((unused));")
            with code.block():
                follow = self._node(code, kind, node, labels)
            fall = [f for f in follow if f not in seen]
            todo += reversed(fall)

    def _go(self, target: str | None, labels: Mapping[str, str]) -> str:
        return "return;" if target is None else f"goto {labels[target]};"

    def _node(self, code: Code, kind: str, node: Node, labels: Mapping[str, str]) -> list[str]:
        """Emits one node; returns the nodes that may follow."""
        if kind == "condition":
            ex = Expr(self.model, code)
            ex.node = node
            yes, no = node.get("true_next"), node.get("false_next")
            condition = ex.boolean(node["expression"])
            text = f'{where(node)}Condition "{fragment(node)}" ({node["name"]}) is '
            self.shared.trace.choice(code, text, condition, "true", "false")
            code.add(f"if ({condition}) {self._go(yes, labels)}")
            code.add(self._go(no, labels))
            return [n for n in (no, yes) if n is not None]
        if kind == "call":
            self._call(code, self.by_id[node["action_id"]], [])
            code.add(self._go(node.get("next_node"), labels))
            return [node["next_node"]] if node.get("next_node") is not None else []
        return self._apply(code, self.tables[node["name"]], labels)

    def _call(self, code: Code, action: int, data: list[int]) -> None:
        if data:
            code.add(f"static const uint64_t AD[] = {{{', '.join(f'0x{w:x}ull' for w in data)}}};")
        code.add(f"a_{action}(K, {'AD' if data else '0'});")
        if action in self.exits:
            code.add("if (K->exited) return;")

    def _apply(self, code: Code, t: Table, labels: Mapping[str, str]) -> list[str]:
        after: Mapping[str, str | None] = t.node["next_tables"]
        if t.constant:
            default = t.node["default_entry"]
            action = self.by_id[default["action_id"]]
            self._call(code, action, self.words(action, default["action_data"]))
            target = after["__MISS__"] if "__MISS__" in after else after[self.actions[action]["name"]]
            code.add(self._go(target, labels))
            return [target] if target is not None else []
        code.add(f"uint32_t R = t_{t.index}(K);")
        code.add("(void)R;")
        if any(a in self.exits for a in t.actions):
            code.add("if (K->exited) return;")
        if "__HIT__" in after:
            hit, miss = after["__HIT__"], after["__MISS__"]
            if hit != miss:
                code.add(f"if (R & 1) {self._go(hit, labels)}")
            code.add(self._go(miss, labels))
            return [n for n in (miss, hit) if n is not None]
        return self._switch(code, t, after, labels)

    def _switch(
        self, code: Code, t: Table, after: Mapping[str, str | None], labels: Mapping[str, str]
    ) -> list[str]:
        base = t.node.get("base_default_next")
        targets = {a: after[self.actions[a]["name"]] for a in t.actions}
        if any(n != base for n in targets.values()):
            with code.block("switch (R >> 1)"):
                for a, n in targets.items():
                    if n != base:
                        code.add(f"case {a}: {self._go(n, labels)}")
                code.add("default: break;")
        code.add(self._go(base, labels))
        return [n for n in dict.fromkeys([base, *targets.values()]) if n is not None]

    def words(self, action: int, data: list[str]) -> list[int]:
        """Action data given as hex strings, as words."""

        out: list[int] = []
        for p, text in zip(params_of(self.actions[action]), data, strict=True):
            value = int(text, 16) & ((1 << p.width) - 1)
            out += [(value >> (64 * i)) & ((1 << 64) - 1) for i in range(words_of(p.width))]
        return out
