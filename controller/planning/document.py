# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Converts a plan to a JSON document and back, for `netfold plan --json`, the service and the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from netfold.controller.planning.hierarchy import Hierarchy, Ranks
from netfold.controller.planning.pipes import loopback_rate
from netfold.controller.planning.plan import Edge, Loads, Plan, Tree
from netfold.topologies.fabric import Fabric


def plan_document(fabric: Fabric | None, plan: Plan) -> dict[str, Any]:
    """The plan as a document. Rates and loads are in the unit of the fabric; with `fabric` every load has its capacity;
    links are `from->to`, loopback ports `switch:port`. `assumed_cross_traffic` is by link; `pacing_rate`: see Plan."""
    loads = plan.loads
    links: dict[str, float] = {}
    switches: dict[str, float] = {}
    servers: dict[str, float] = {}
    loopbacks: dict[str, float] = {}
    if fabric is not None:
        links = {f"{a}->{b}": fabric.link(a, b).rate for a, b in loads.links}
        switches = {v: fabric.switch(v).capacity for v in loads.switches}
        servers = {s: fabric.ingress_capacity(s) for s in loads.servers}
        loopbacks = {f"{s}:{port}": loopback_rate(fabric, s, port) for s, port in loads.loopbacks}
    return {
        "job": plan.job,
        "fabric": plan.fabric,
        "algorithm": plan.algorithm,
        "rate": plan.rate,
        "unit": plan.unit,
        "bound": plan.bound,
        "gap": plan.gap,
        "rounded_rate": plan.rounded_rate,
        "published": plan.published,
        "solve_s": plan.solve_s,
        "seed": plan.seed,
        "stopped": plan.stopped,
        "pacing_rate": plan.pacing_rate,
        "assumed_cross_traffic": _by_name(plan.assumed_cross_traffic.links),
        "hierarchy": None if plan.hierarchy is None else _hierarchy(plan.hierarchy, plan.rate),
        "trees": [_tree(t) for t in plan.trees],
        "loads": {
            "links": _rows(_by_name(loads.links), links),
            "switches": _rows(loads.switches, switches),
            "servers": _rows(loads.servers, servers),
            "loopbacks": _rows({f"{s}:{p}": load for (s, p), load in loads.loopbacks.items()}, loopbacks),
        },
    }


def _hierarchy(hierarchy: Hierarchy, rate: float) -> dict[str, Any]:
    """The reduction of the ranks of a host and its reason; `of` holds the values from which it follows."""
    return {
        "reduction": hierarchy.chosen(rate).reduction,
        "why": hierarchy.why(rate),
        "ways": [{"reduction": w.reduction, "way": w.text, "ms": w.ms} for w in hierarchy.ways(rate)],
        "of": asdict(hierarchy),
    }


def _read_hierarchy(document: Mapping[str, Any] | None) -> Hierarchy | None:
    if document is None:
        return None
    of = document["of"]
    return Hierarchy(**{**of, "ranks": Ranks(**of["ranks"])})


def _by_name(links: Mapping[tuple[str, str], float]) -> dict[str, float]:
    return {f"{a}->{b}": load for (a, b), load in links.items()}


def _read_links(document: Mapping[str, float]) -> dict[tuple[str, str], float]:
    return {(a, b): load for name, load in document.items() for a, b in [name.split("->")]}


def _rows(loads: Mapping[str, float], capacities: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Loads by name, each with its capacity if that is known."""
    return {
        name: {"load": load, "capacity": capacities[name]} if name in capacities else {"load": load}
        for name, load in loads.items()
    }


def _tree(tree: Tree) -> dict[str, Any]:
    return {
        "root": tree.root,
        "share": tree.share,
        "nodes": {n: list(tree.children(n)) for n in tree.nodes},
        "edges": [{"child": e.child, "parent": e.parent, "path": list(e.path)} for e in tree.edges],
        "result_links": [list(pair) for pair in tree.result_links],
    }


def plan_from_document(document: Mapping[str, Any]) -> Plan:
    """The plan that `plan_document` wrote. Raises KeyError, TypeError or ValueError for anything else."""
    loads = document["loads"]
    fields = (
        "job",
        "fabric",
        "algorithm",
        "unit",
        "rate",
        "bound",
        "rounded_rate",
        "published",
        "solve_s",
        "seed",
    )
    return Plan(
        **{name: document[name] for name in fields},
        stopped=document.get("stopped"),
        pacing_rate=document["pacing_rate"],
        assumed_cross_traffic=Loads(links=_read_links(document["assumed_cross_traffic"])),
        hierarchy=_read_hierarchy(document.get("hierarchy")),
        trees=tuple(_read_tree(t) for t in document["trees"]),
        loads=Loads(
            links=_read_links({name: row["load"] for name, row in loads["links"].items()}),
            switches={name: row["load"] for name, row in loads["switches"].items()},
            servers={name: row["load"] for name, row in loads["servers"].items()},
            loopbacks={
                (name.rpartition(":")[0], int(name.rpartition(":")[2])): row["load"]
                for name, row in loads.get("loopbacks", {}).items()
            },
        ),
    )


def _read_tree(document: Mapping[str, Any]) -> Tree:
    return Tree(
        root=document["root"],
        share=document["share"],
        edges=tuple(Edge(e["child"], e["parent"], tuple(e["path"])) for e in document["edges"]),
        result_links=tuple((a, b) for a, b in document["result_links"]),
    )
