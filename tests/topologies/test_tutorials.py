# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Import of the topology.json form of p4lang/tutorials."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from netfold.topologies.spec import load_fabric
from netfold.topologies.yaml_locations import SpecError

POD: dict[str, Any] = {
    "hosts": {
        f"h{i}": {"ip": f"10.0.{i}.{i}/24", "mac": f"08:00:00:00:0{i}:00", "commands": []}
        for i in range(1, 5)
    },
    "switches": {f"s{i}": {"runtime_json": f"pod/s{i}-runtime.json"} for i in range(1, 5)},
    "links": [
        ["h1", "s1-p1"],
        ["h2", "s1-p2"],
        ["s1-p3", "s3-p1", "5ms", 0.5],
        ["s1-p4", "s4-p2", "0", 20],
        ["h3", "s2-p1", 2],
        ["h4", "s2-p2", "250us"],
        ["s2-p3", "s4-p1"],
        ["s2-p4", "s3-p2"],
    ],
}


def _load(tmp_path: Path, topology: dict[str, Any], indent: str | int = 2) -> Any:
    path = tmp_path / "topology.json"
    path.write_text(json.dumps(topology, indent=indent))
    return load_fabric(path)


@pytest.mark.parametrize("indent", [2, "\t"])
def test_ports_rates_and_delays_are_those_of_the_file(tmp_path: Path, indent: str | int) -> None:
    fabric = _load(tmp_path, POD, indent)
    assert len(fabric.hosts) == 4
    assert fabric.ports["s1"] == {"h1": 1, "h2": 2, "s3": 3, "s4": 4}
    assert fabric.ports["s4"] == {"s2": 1, "s1": 2}
    assert fabric.ports["s3"] == {"s1": 1, "s2": 2}
    assert fabric.link("s1", "s3").rate == 0.5
    assert [fabric.link(*e).delay_ms for e in (("s1", "s3"), ("h3", "s2"), ("h4", "s2"))] == [5, 2, 0.25]
    assert fabric.unit.bits_per_second == 1e6


@pytest.mark.parametrize(
    ("link", "entry", "says"),
    [
        (0, ["h9", "s1-p1"], "'h9' is no host"),
        (0, ["h1", "s1"], "such as 's1-p1'"),
        (1, ["h2", "s1-p1"], "port 1 of 's1' is already the port to 'h1'"),
        (0, ["h1", "s1-p510"], "is number 510; expected 1 ... 509"),
        (1, ["h1", "s1-p2"], "the second one of 'h1'; expected exactly one link of a host"),
        (7, ["s1-p5", "s3-p3"], "is given twice; add the rates up instead; the first is in line"),
        (0, ["h1"], "has 1 members"),
        (2, ["s1-p3", "s3-p1", "soon"], "latency 'soon'"),
        (2, ["s1-p3", "s3-p1", "1ms", -4], "bandwidth '-4'"),
    ],
)
def test_errors_name_the_place(tmp_path: Path, link: int, entry: list[Any], says: str) -> None:
    links = [*POD["links"]]
    links[link] = entry
    with pytest.raises(SpecError, match=r"topology\.json:\d+:\d+: ") as caught:
        _load(tmp_path, {**POD, "links": links})
    assert says in str(caught.value)
    lines = (tmp_path / "topology.json").read_text().splitlines()
    start = [number for number, line in enumerate(lines, 1) if line == "    ["][link]
    assert any(start <= p.line <= start + len(entry) for p in caught.value.problems)


def test_port_numbers_need_no_order_of_the_links(tmp_path: Path) -> None:
    """Nor do they count 1, 2, ...: a switch may have gaps, as hardware has."""
    links = [["a-p1", "b-p2"], ["a-p2", "c-p1"], ["c-p2", "b-p1"], ["h", "a-p9"]]
    fabric = _load(tmp_path, {"hosts": {"h": {}}, "switches": {"a": {}, "b": {}, "c": {}}, "links": links})
    assert fabric.ports["a"] == {"b": 1, "c": 2, "h": 9}
    assert (fabric.ports["b"], fabric.ports["c"]) == ({"a": 2, "c": 1}, {"a": 1, "b": 2})
