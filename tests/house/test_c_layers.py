# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The C files of each library form a tree: none reaches itself by includes and calls. The engine's folders are layers.
Libraries export symbols with their prefix only."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import networkx as nx
import pytest

from netfold.simulator.flow import native as flow
from netfold.simulator.packet import native as packet
from netfold.traffic.engine import native as engine
from tests.house.c_graph import both, call_graph, include_graph, read
from tests.house.imports import REPOSITORY

ENGINE = REPOSITORY / "traffic/engine"
LIBRARIES = [
    "traffic/engine",
    "traffic/agent",
    "traffic/mpi",
    "traffic/roce",
    "softswitch/softswitch/core",
    "softswitch/softswitch/engine",
    "softswitch/softswitch/runtime",
    "simulator/flow",
    "simulator/packet",
]
LAYERS = ["wire", "numerics", "congestion", "transport", "call", "parts", "resume", "session", "io", "server"]
"""Layers of the engine from below: a layer includes and calls those before it only."""

APART = {
    ("resume", "call"),
    ("resume", "parts"),
    ("resume", "transport"),
    ("server", "session"),
    ("numerics", "congestion"),
}
"""And these not even that."""


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_file_reaches_itself(library: str):
    graph = both(REPOSITORY / library)
    assert [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1] == []


def test_no_source_file_of_the_engine_reaches_itself_through_its_header():
    modules: nx.DiGraph[str] = nx.DiGraph()
    for user, used in both(ENGINE).edges:
        modules.add_edge(user[:-2], used[:-2])
    modules.remove_edges_from(list(nx.selfloop_edges(modules)))
    assert [sorted(c) for c in nx.strongly_connected_components(modules) if len(c) > 1] == []


def test_the_engines_folders_are_its_layers():
    assert {Path(name).parts[0] for name in read(ENGINE)} == set(LAYERS)


@pytest.mark.parametrize("graph", [include_graph, call_graph])
def test_a_layer_of_the_engine_uses_layers_below_only(graph):
    place = {layer: number for number, layer in enumerate(LAYERS)}
    pairs = {(Path(a).parts[0], Path(b).parts[0]) for a, b in graph(ENGINE).edges}
    assert {(a, b) for a, b in pairs if place[a] < place[b]} == set()
    assert {(a, b) for a, b in pairs if (a, b) in APART} == set()


def test_the_graph_has_the_calls_that_readers_see():
    edges = call_graph(ENGINE).edges
    for caller, callee in (
        ("session/core.c", "transport/tree.c"),
        ("transport/tree.c", "transport/acks.c"),
        ("session/scheduler.c", "parts/data.c"),
        ("io/engine.c", "session/core.c"),
        ("parts/opening.c", "call/call.h"),
    ):
        assert (caller, callee) in edges


def test_only_the_session_changes_the_state_of_a_call():
    """The session alone sets what a call is waiting for, and whether it is finished; parts and the transport return a
    status."""
    changes = re.compile(r"(->|\.)(progress\b.*|state|is_retained|is_released|outcome\.status)\s*=[^=]")
    found = [
        f"{path.relative_to(ENGINE)}:{number}"
        for path in sorted(ENGINE.rglob("*.[ch]"))
        if path.parent.name != "session"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if changes.search(line)
    ]
    assert found == []


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm (binutils)")
@pytest.mark.parametrize(
    ("library", "prefix"), [(engine.library, "nf_"), (flow._library, "sf_"), (packet.library, "np_")]
)
def test_a_library_exports_its_prefix_only(library, prefix: str):
    listing = subprocess.check_output(["nm", "-D", "--defined-only", library()._name], text=True)
    names = {line.split()[-1] for line in listing.splitlines()}
    assert names
    assert {name for name in names if not name.startswith(prefix)} == set()


def test_mpi_functions_that_are_not_static_have_its_prefix_or_are_mpis():
    names = set().union(*(source.defined for name, source in read(REPOSITORY / "traffic/mpi").items()))
    assert {name for name in names if not name.startswith(("nm_", "MPI_"))} <= {"FUNCTION"}


def test_agent_functions_that_are_not_static_have_its_prefix():
    names = set().union(*(source.defined for name, source in read(REPOSITORY / "traffic/agent").items()))
    assert {name for name in names if not name.startswith("na_")} == set()


def test_roce_functions_that_are_not_static_have_its_prefix():
    names = set().union(*(source.defined for name, source in read(REPOSITORY / "traffic/roce").items()))
    assert {name for name in names if not name.startswith("nr_")} <= {"main"}
