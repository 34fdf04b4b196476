# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A fabric can be described without any of what a running network needs."""

from __future__ import annotations

import networkx as nx

from tests.house.imports import import_graph

ROOMS = ("netfold.topologies", "netfold.testbed")
NETWORK = "netfold.topologies.network"


def test_descriptions_know_nothing_of_running_networks_and_topologies_know_nobody() -> None:
    for importer, imported in import_graph().edges:
        if importer.startswith("netfold.topologies"):
            assert imported.startswith("netfold.topologies"), f"{importer} imports {imported}"
            assert importer.startswith(NETWORK) or not imported.startswith(NETWORK), f"{importer}: {imported}"


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = import_graph()
    for room in ROOMS:
        inside = graph.subgraph([m for m in graph if m.startswith(room)])
        assert not list(nx.simple_cycles(inside))
