# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Imports follow the layers of docs/explanation/architecture.md."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

import networkx as nx
import pytest

from tests.house.imports import PACKAGE, REPOSITORY, Graph, import_graph, includes, modules, rooms

ALLOWED = {
    "protocol": set(),
    "p4src": {"protocol"},
    "topologies": {"p4src"},
    "traffic": {"protocol"},
    "controller": {"protocol", "p4src", "topologies"},
    "simulator": {"protocol", "controller", "topologies", "traffic"},
    "testbed": {"protocol", "p4src", "topologies", "traffic", "controller"},
    "evaluation": {"protocol", "p4src", "topologies", "traffic", "controller", "simulator", "testbed"},
    "cli": set(),  # names modules, and imports the one that is called
}
"""The folders that a folder may import. `netfold` itself, the public face, imports traffic and protocol."""

CONTROLLER = [
    "planning",
    "drawing",
    "recording",
    "jobs",
    "switches",
    "features",
    "lifecycle",
    "scheduling",
    "health",
    "observation",
    "subsystems",
    "core",
    "service",
    "web",
    "operator",
    "slurm",
]
"""From below: a room imports of those before it only."""


@pytest.fixture(scope="module")
def graph() -> Graph:
    return import_graph()


def test_a_folder_imports_only_from_below(graph: Graph):
    above = [(a, b) for a, b in rooms(graph, 1).edges if b not in ALLOWED[a]]
    assert above == []


def test_no_module_imports_itself_by_way_of_others(graph: Graph):
    assert _circles(graph) == []


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_no_folder_imports_itself_by_way_of_others(graph: Graph, depth: int):
    assert _circles(rooms(graph, depth)) == []


def test_the_controllers_rooms_are_in_order(graph: Graph):
    place = {f"controller.{room}": number for number, room in enumerate(CONTROLLER)}
    inside = [(a, b) for a, b in rooms(graph, 2).edges if a.startswith("controller.") and b in place]
    assert {a for a, _ in inside} <= place.keys()
    assert [(a, b) for a, b in inside if place[a] <= place[b]] == []


def test_planning_knows_nothing_of_the_controller(graph: Graph):
    beyond = {b for a, b in rooms(graph, 2).edges if a == "controller.planning"}
    assert all(b.startswith("topologies") for b in beyond)


def test_the_simulator_imports_plans_and_not_the_controller(graph: Graph):
    """Its command alone reads job files and admits jobs as the controller does."""
    beyond = {
        b
        for a, b in rooms(graph, 2).edges
        if a.startswith("simulator") and a != "simulator.command" and b.startswith("controller")
    }
    assert beyond <= {"controller.planning"}


def test_the_simulate_command_imports_jobs_and_admission_only(graph: Graph):
    """No service, no store, no switch: of the controller only what turns a job file into a plan, the
    lines of a recording, and the style of pictures."""
    beyond = {b for a, b in graph.edges if ".simulator.command." in a and ".controller." in b}
    allowed = (
        "controller.planning",
        "controller.drawing",
        "controller.recording",
        "controller.jobs",
        "controller.lifecycle.capacity",
        "controller.scheduling.job_planner",
    )
    assert [b for b in beyond if not b.removeprefix("netfold.").startswith(allowed)] == []


@pytest.mark.slow
def test_everything_is_imported_by_its_one_name():
    own = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    wrong = [
        f"{path.relative_to(REPOSITORY)}:{node.lineno}"
        for path in itertools.chain(modules().values(), (REPOSITORY / "tests").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] in own
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "folder",
    [*(f"softswitch/softswitch/{name}" for name in ("core", "engine", "runtime")), "simulator/flow"],
)
def test_c_files_form_a_tree(folder: str):
    assert _circles(includes(REPOSITORY / folder)) == []


def _circles(graph: Graph) -> list[list[str]]:
    return [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]


EFFECTS = {"asyncio", "ctypes", "mininet", "multiprocessing", "signal", "socket", "subprocess", "threading"}


def _imported() -> Iterator[tuple[str, str]]:
    for path in sorted((REPOSITORY / "topologies").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            yield from ((path.name, name.partition(".")[0]) for name in names)


def test_topologies_have_no_effects() -> None:
    found = list(_imported())
    assert ("fabric.py", "netfold") in found
    assert [pair for pair in found if pair[1] in EFFECTS] == []
