# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Spec files: what they may say, and that every error names file, line and what would be right."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric, FabricError, Host, Link, Loopback, Switch, SwitchRole, Unit
from netfold.topologies.ports import Chip
from netfold.topologies.spec import FabricSpec, load_fabric, schema_text, spec_names, spec_text
from netfold.topologies.yaml_locations import SpecError

GOOD = """\
name: two-racks
unit: Gbit/s
defaults:
  link: {rate: 10, queue: 32}
  switch: {role: leaf, capacity: 40}
switches:
  s1: {}
  s2: {capacity: 0, slots: 64}
hosts:
  h1: {at: s1}
  ps: {at: s2, parameter_server: true, capacity: 8, rate: 20, delay_ms: 0.5}
links:
  - {between: [s1, s2], rate: 5}
"""


def _write(tmp_path: Path, text: str, name: str = "fabric.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_spec_gives_what_it_says(tmp_path: Path) -> None:
    fabric = load_fabric(_write(tmp_path, GOOD))
    assert fabric.unit.bits_per_second == 1e9
    assert fabric.switch("s1").capacity == 40
    assert not fabric.switch("s2").aggregates
    assert fabric.switch("s2").slots == 64
    assert fabric.switch("s1").role is SwitchRole.LEAF
    assert fabric.link("h1", "s1").queue == 32
    assert fabric.link("ps", "s2").delay_ms == 0.5
    assert fabric.ingress_capacity("ps") == 8
    assert fabric.link("s1", "s2").rate == 5
    assert fabric.ports["s1"] == {"h1": 1, "s2": 2}


CHIPS = """\
name: pipes
defaults:
  link: {rate: 100, queue: 32}
  switch: {capacity: 40}
switches:
  s1:
    chip: tofino
    ports: {h1: 132, h2: 4, s2: 5}
    loopbacks:
      - {port: 68}
      - {port: 196, rate: 50, queue: 8}
  s2: {ports: {s1: 509}}
hosts:
  h1: {at: s1}
  h2: {at: s1}
links:
  - {between: [s2, s1]}
"""


def test_a_spec_may_number_the_ports_and_name_the_chip(tmp_path: Path) -> None:
    fabric = load_fabric(_write(tmp_path, CHIPS))
    assert fabric.ports["s1"] == {"h1": 132, "h2": 4, "s2": 5}
    assert fabric.ports["s2"] == {"s1": 509}
    s1, s2 = fabric.switches
    assert (s1.chip, s2.chip) == (Chip.TOFINO, None)
    assert [s1.pipe(p) for p in (4, 132, 196, 509)] == [0, 1, 1, 3]
    assert s2.pipe(509) == 0
    assert s1.loopbacks == (Loopback(68, 100, 32), Loopback(196, 50, 8))
    assert addresses(fabric).hosts["h1"].port == 132


def test_a_part_of_a_fabric_keeps_its_port_numbers(tmp_path: Path) -> None:
    fabric = load_fabric(_write(tmp_path, CHIPS))
    part = fabric.part(fabric.switches[:1], fabric.hosts, [x for x in fabric.links if "s2" not in (x.a, x.b)])
    assert part.ports["s1"] == {"h1": 132, "h2": 4}
    assert part.switch("s1").loopbacks == fabric.switch("s1").loopbacks


def test_a_program_has_one_pipe(tmp_path: Path) -> None:
    fabric = load_fabric(_write(tmp_path, CHIPS))
    plain = fabric.in_one_pipe(["s1", "s2"])
    assert plain.ports == fabric.ports
    assert (plain.switch("s1").pipe(132), plain.switch("s1").loopbacks) == (0, ())
    assert fabric.in_one_pipe(["s2"]) is fabric


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("h2: 4, ", "", 8, "the ports of 's1' lack h2; expected all neighbors or none"),
        ("    ports: {h1: 132, h2: 4, s2: 5}\n", "", 7, "follow from its 'ports': expected all neighbors"),
        ("h2: 4", "h2: 4, h3: 6", 8, "a port to 'h3', but no link to it; its neighbors are h1, h2, s2"),
        ("h2: 4", "h2: 132", 8, "port 132 of 's1' is already the port to 'h1'"),
        ("h2: 4", "h2: 68", 10, "port 68 of 's1' is already the port to 'h2'"),
        (
            "h2: 4",
            "h2: 72",
            8,
            "port 72 does not exist on a tofino; pipe p has the ports 128 p ... 128 p + 71",
        ),
        ("h2: 4", "h2: 0", 8, "expected at least 1"),
        ("h2: 4", "h2: 510", 8, "expected at most 509"),
        ("h2: 4", "h2: yes", 8, "not a truth value"),
        ("port: 196", "prt: 196", 11, "unknown key 'prt'; did you mean 'port'?"),
        ("port: 196", "port: 200", 11, "port 200 does not exist on a tofino"),
        ("rate: 100, ", "", 10, "loopback 68 has no rate"),
        ("chip: tofino", "chip: tofino3", 7, "expected 'tofino' or 'tofino2'"),
        ("    chip: tofino\n", "", 8, "'s1' has one pipe: loopbacks require a 'chip'"),
    ],
)
def test_what_is_wrong_with_ports_and_pipes(tmp_path: Path, old: str, new: str, line: int, says: str) -> None:
    assert CHIPS.count(old) == 1, "the case must change one place"
    with pytest.raises(SpecError) as caught:
        load_fabric(_write(tmp_path, CHIPS.replace(old, new)))
    assert says in str(caught.value)
    assert line in [p.line for p in caught.value.problems]


def test_a_fabric_that_is_no_spec_is_checked_too() -> None:
    hosts, links = (Host("h1"), Host("h2")), (Link("h1", "s", 1.0), Link("h2", "s", 1.0))
    for switch, says in (
        (Switch("s", ports=(("h1", 3),)), "lack h2"),
        (Switch("s", ports=(("h1", 3), ("h2", 0))), "expected 1 ... 509"),
        (Switch("s", chip=Chip.TOFINO2), "follow from its 'ports'"),
        (
            Switch("s", ports=(("h1", 3), ("h2", 4)), chip=Chip.TOFINO, loopbacks=(Loopback(5, 0.0),)),
            "expected both above 0",
        ),
    ):
        with pytest.raises(FabricError, match=says):
            Fabric("f", hosts, (switch,), links)


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("rate: 5", "rat: 5", 13, "unknown key 'rat'; did you mean 'rate'?"),
        ("unit: Gbit/s", "unit: Gb", 2, "'Gbit/s'"),
        ("name: two-racks\n", "", 1, "'name' is missing"),
        ("name: two-racks", "name: 1racks", 1, "starts with a letter"),
        ("at: s1", "at: s3", 10, "'s3', which is no host or switch; known are h1, ps, s1, s2"),
        ("{at: s1}", "{}", 10, "'at' is missing in hosts.h1"),
        ("queue: 32", "queue: many", 4, "expected a whole number"),
        ("capacity: 40", "capacity: yes", 5, "not a truth value"),
        ("capacity: 40", "capacity: -1", 5, "expected at least 0"),
        ("rate: 10", "rate: 0", 4, "expected more than 0"),
        ("rate: 10", "rate: .inf", 4, "expected a finite number"),
        ("role: leaf", "role: leave", 5, "'leaf'"),
        ("[s1, s2]", "[s1, h1]", 13, "the second one of 'h1'; expected exactly one link of a host"),
        ("[s1, s2]", "[s1, s1]", 13, "joins 's1' with itself"),
        ("[s1, s2]", "[s1]", 13, "at least 2"),
        (
            "[s1, s2], rate: 5}",
            "[s1, s2]}\n  - {between: [s2, s1]}",
            14,
            "is given twice; add the rates up instead; the first is in line 13",
        ),
        ("rate: 10, ", "", 10, "expected 'rate' here or in defaults.link"),
        (
            "  h1: {at: s1}",
            "  h1: {at: s1}\n  h1: {at: s2}",
            11,
            "'h1' is given twice; the first is in line 10",
        ),
        ("  h1: {at: s1}", "  s1: {at: s1}", 10, "the name 's1' is used twice"),
        ("  - {between: [s1, s2], rate: 5}", "  []", 1, "is not connected"),
        ("unit: Gbit/s", "unit: [Gbit/s", 3, "not YAML"),
        ("unit: Gbit/s", "unit: 2026-13-01", 2, "not YAML: month must be in 1..12"),
        ("unit: Gbit/s", "unit: !!int", 2, "not YAML: '' is no int"),
        ("unit: Gbit/s", "unit: !!bool 1", 2, "not YAML: '1' is no bool"),
        ("unit: Gbit/s", "unit: !!timestamp noon", 2, "not YAML: 'noon' is no timestamp"),
        ("unit: Gbit/s", "unit: !!float x", 2, "not YAML: could not convert string to float: 'x'"),
        ("unit: Gbit/s", "generate: {fat_tree: {k: 4}}", 6, "exclude each other"),
    ],
)
def test_error_names_line_and_remedy(tmp_path: Path, old: str, new: str, line: int, says: str) -> None:
    assert GOOD.count(old) == 1, "the case must change one place"
    path = _write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(SpecError) as caught:
        load_fabric(path)
    assert says in str(caught.value)
    assert line in [p.line for p in caught.value.problems]
    assert all(message.startswith(f"{path}:") for message in str(caught.value).splitlines())


def test_all_faults_of_elements_are_told_at_once(tmp_path: Path) -> None:
    path = _write(tmp_path, CHIPS.replace("h2: {at: s1}", "h2: {at: s4}").replace("s2: 5", "s2: 132"))
    with pytest.raises(SpecError) as caught:
        load_fabric(path)
    assert [p.line for p in caught.value.problems] == [8, 8, 15]


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    path = _write(tmp_path, GOOD.replace("queue: 32", "queue: x").replace("at: s1", "att: s1"))
    with pytest.raises(SpecError) as caught:
        load_fabric(path)
    assert sorted({p.line for p in caught.value.problems}) == [4, 10]


@pytest.mark.parametrize(
    ("generate", "says"),
    [
        ("{}", "exactly one"),
        ("{fat_tree: {k: 4}, single_switch: {hosts: 2}}", "exactly one"),
        ("{fat_tree: {k: 3}}", "must be even"),
        ("{leaf_spine: {leaves: 2, spines: 2}}", "one of the two"),
        ("{leaf_spine: {leaves: 2, spines: 2, hosts: 4, oversubscription: 2, fabric_rate: 4}}", "not both"),
        ("{leaf_spin: {leaves: 2}}", "did you mean 'leaf_spine'?"),
        ("{leaf_spine: {leafs: 2, spines: 2}}", "did you mean 'leaves'?"),
    ],
)
def test_generate_errors(tmp_path: Path, generate: str, says: str) -> None:
    path = _write(tmp_path, f"name: g\ngenerate: {generate}\n")
    with pytest.raises(SpecError, match=r"fabric\.yaml:2:") as caught:
        load_fabric(path)
    assert says in str(caught.value)


@pytest.mark.parametrize("text", ["", "- a\n", "just text\n", "a: &a [*a]\n", "\x00", "? [1, 2]\n: 3\n"])
def test_what_is_no_spec_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(SpecError):
        load_fabric(_write(tmp_path, text))


def test_alias_bomb_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(SpecError, match="more than"):
        load_fabric(_write(tmp_path, "\n".join(lines)))


def test_not_text_and_no_file(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"name: a\nunit: \xff\n")
    with pytest.raises(SpecError, match=r"f\.yaml:2:1: not UTF-8"):
        load_fabric(path)
    with pytest.raises(FabricError, match=r"nor a spec of netfold; did you mean 'grid-fig1'"):
        load_fabric("grid-fig2")


@pytest.mark.parametrize("name", spec_names())
def test_committed_specs_load(name: str) -> None:
    assert load_fabric(name).name == name


def test_grid_example() -> None:
    """GRID Fig. 1: the triangle, 3 on every link, 9 into the parameter server and for each switch."""
    fabric = load_fabric("grid-fig1")
    assert _racks(fabric) == {
        "S1": {"W1", "W2", "W3", "W4"},
        "S2": {"W5", "W6"},
        "S3": {"W7", "W8", "PS"},
    }
    assert {s.capacity for s in fabric.switches} == {9}
    assert fabric.ingress_capacity("PS") == 9
    assert {x.rate for x in fabric.links if "PS" not in (x.a, x.b)} == {3}
    assert {frozenset((x.a, x.b)) for x in fabric.links[-3:]} == {
        frozenset(p) for p in (("S1", "S2"), ("S1", "S3"), ("S2", "S3"))
    }


def test_inart_example() -> None:
    """InArt Fig. 1: C(V) = 6, B(S) = 4, links 6."""
    fabric = load_fabric("inart-fig1")
    assert _racks(fabric) == {"V1": {"W1", "W2", "W3", "W4", "S1"}, "V2": {"W5", "W6", "S2"}}
    assert {s.capacity for s in fabric.switches} == {6}
    assert {x.rate for x in fabric.links} == {6}
    assert [fabric.ingress_capacity(s) for s in ("S1", "S2")] == [4, 4]


def _racks(fabric: Fabric) -> dict[str, set[str]]:
    return {
        s.name: {h.name for h in fabric.hosts if fabric.attachment(h.name) == s.name} for s in fabric.switches
    }


def test_the_schema_names_every_key_of_a_spec_and_allows_no_others() -> None:
    schema = json.loads(schema_text())
    assert schema["properties"].keys() == FabricSpec.model_fields.keys()
    for part in (schema, *(p for p in schema["$defs"].values() if p["type"] == "object")):
        assert part["additionalProperties"] is False, part["title"]
    referenced = set(re.findall(r'"#/\$defs/(\w+)"', schema_text()))
    assert referenced == schema["$defs"].keys()


TUTORIAL = (
    '{"hosts": {"h1": {"ip": "10.0.1.1/24"}}, "switches": {"s1": {}}, "links": [["h1", "s1-p1", "1ms", 4]]}'
)


@pytest.mark.slow
@given(
    text=st.sampled_from([GOOD, CHIPS, TUTORIAL]),
    start=st.integers(0, 400),
    length=st.integers(0, 12),
    new=st.one_of(
        st.text(max_size=8),
        st.sampled_from(
            ["null", "[]", "{}", "1e999", ".nan", "-1", "true", "*x", "&x", "!!int", "<<: ", "[[]]", "/"]
        ),
    ),
)
@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_specs_are_read_or_refused(
    tmp_path: Path, text: str, start: int, length: int, new: str
) -> None:
    """Whatever is in the file, the answer is a fabric or a FabricError."""
    path = tmp_path / "damaged.yaml"
    path.write_bytes((text[:start] + new + text[start + length :]).encode(errors="surrogatepass"))
    complaint = None
    try:
        fabric = load_fabric(path)
    except FabricError as error:
        complaint = str(error)
    if complaint is None:
        assert len(fabric.neighbors) == len(fabric.elements)
    else:
        assert complaint.startswith(str(path)), "the file is named"


@pytest.mark.parametrize(
    "generate",
    ["single_switch: {hosts: 3", "leaf_spine: {leaves: 2, spines: 2, hosts: 4", "fat_tree: {k: 4"],
)
def test_every_generator_takes_the_children_of_a_node(tmp_path: Path, generate: str) -> None:
    for text, children in (("", 32), (", children: 200", 200)):
        fabric = load_fabric(_write(tmp_path, f"name: f\ngenerate: {{{generate}{text}}}}}\n"))
        assert {switch.max_children for switch in fabric.switches} == {children}


@pytest.mark.parametrize("name", spec_names())
def test_a_fabric_s_own_spec_reads_as_the_fabric(name: str, tmp_path: Path) -> None:
    fabric = load_fabric(name)
    again = load_fabric(_write(tmp_path, spec_text(fabric)))
    assert (again.name, again.unit, again.hosts, again.ports) == (
        fabric.name,
        fabric.unit,
        fabric.hosts,
        fabric.ports,
    )
    assert addresses(again) == addresses(fabric)
    assert {frozenset((x.a, x.b)): (x.rate, x.queue, x.delay_ms) for x in again.links} == {
        frozenset((x.a, x.b)): (x.rate, x.queue, x.delay_ms) for x in fabric.links
    }
    assert [replace(s, ports=()) for s in again.switches] == [replace(s, ports=()) for s in fabric.switches]


def test_a_unit_that_no_spec_has_is_refused() -> None:
    fabric = replace(load_fabric("single"), unit=Unit("furlong", 3.0))
    with pytest.raises(FabricError, match=r"furlong.*expected one of bit/s"):
        spec_text(fabric)
