# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The annotations of the P4Info: ids, formats and references on which clients of P4Runtime rely. The controller's own
entries keep to the references."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import finsy as fy
import pytest
from finsy.proto import p4i

from netfold.controller.switches.desired_state import desired_contents
from netfold.controller.switches.entries import Codec, Contents, MulticastGroup, TableEntry
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import FailedElements
from netfold.controller.switches.tables import hash_seed
from netfold.p4src.tools import p4build
from netfold.topologies.addressing import addresses
from tests.controller.test_desired_state import FABRICS, placed

COMPILED = p4build.REPOSITORY / p4build.COMPILED
PROGRAMS = [COMPILED / profile.p4info for profile in p4build.PROFILES]
NUMBERED = 0x100  # an id above is the hash of a name
ADDRESSES = {"destination", "target", "src", "dst", "address", "root"}
REFERENCE = re.compile(r"@refers_to\((.*), (\w+)\)")
GROUPS = "builtin::multicast_group_table"


def info(path: object) -> p4i.P4Info:
    return fy.P4Schema(path).p4info


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_the_sources_number_what_a_client_names(path):
    found = info(path)
    kinds = (found.tables, found.counters, found.action_profiles)
    assert {
        each.preamble.name for kind in kinds for each in kind if each.preamble.id & 0xFFFFFF >= NUMBERED
    } == set()


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_addresses_have_their_format(path):
    found = info(path)
    values = [m for t in found.tables for m in t.match_fields] + [p for a in found.actions for p in a.params]
    for value in values:
        if value.bitwidth == 48:
            wanted = ["@format(MAC_ADDRESS)"]
        else:
            is_address = value.bitwidth == 32 and value.name in ADDRESSES
            wanted = ["@format(IPV4_ADDRESS)"] if is_address else []
        assert [a for a in value.annotations if a.startswith("@format")] == wanted, value.name


def test_a_program_without_a_table_is_to_be_compiled_again():
    old = info(PROGRAMS[0])
    kept = [table for table in old.tables if table.preamble.alias != "hash_seeds"]
    del old.tables[:]
    old.tables.extend(kept)
    with pytest.raises(ValueError, match=r"no table 'hash_seeds': compile it"):
        Codec(fy.P4Schema(old)).encode(hash_seed(1))


def references(annotations: Sequence[str]) -> Iterator[tuple[str, str]]:
    for annotation in annotations:
        for table, field in REFERENCE.findall(annotation):
            yield table.replace(" ", ""), field


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_references_name_a_field_of_a_table(path):
    found = info(path)
    fields = {(t.preamble.alias, m.name) for t in found.tables for m in t.match_fields}
    named = [r for a in found.actions for p in a.params for r in references(p.annotations)]
    assert set(named) - fields == {(GROUPS, "multicast_group_id")}
    ports = {(a.preamble.alias, p.name) for a in found.actions for p in a.params if p.name in ("port", "via")}
    assert {where for where in ports if where[0] != "set_peer"} <= {
        (a.preamble.alias, p.name) for a in found.actions for p in a.params if list(references(p.annotations))
    }


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS)
def test_the_entries_of_the_controller_refer_to_what_is_there(fabric):
    found = info(COMPILED / "netfold-v1model-64.p4info.txtpb")
    referring = {
        (action.preamble.alias.rsplit(".", 1)[-1], parameter.name): reference
        for action in found.actions
        for parameter in action.params
        for reference in references(parameter.annotations)
    }
    config = FabricConfig(fabric, addresses(fabric), management_tree=2000)
    switches = desired_contents(config, [placed(fabric, "name: j\nscheme: lbmm\n")], FailedElements())
    assert sum(_count(referring, contents) for contents in switches.values()) > 0


def _count(referring: dict[tuple[str, str], tuple[str, str]], contents: Contents) -> int:
    """The references of a switch's entries, each of which leads to an entry of the switch."""
    groups = {e.group for e in contents.values() if isinstance(e, MulticastGroup)}
    tables = [e for e in contents.values() if isinstance(e, TableEntry)]
    keys = {(e.table, name, value) for e in tables for name, value in e.match}
    count = 0
    for entry in tables:
        for action in entry.actions:
            for parameter, value in action.args:
                if (action.name, parameter) in referring:
                    table, field = referring[action.name, parameter]
                    assert value in groups if table == GROUPS else (table, field, value) in keys, entry
                    count += 1
    return count
