# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The order of writes: nothing admits a packet that the switch could not deliver, at no time. Before that, the switch
names the revision of its slots."""

from __future__ import annotations

from ipaddress import IPv4Network

from hypothesis import given
from hypothesis import strategies as st

from netfold.controller.jobs.revisions import REVISIONS, TERMS, Revision
from netfold.controller.switches import tables
from netfold.controller.switches.base_entries import revision_entry, revisions_in
from netfold.controller.switches.entries import Contents, Entity
from netfold.controller.switches.install import (
    MAX_BATCH,
    Op,
    Phase,
    apply,
    count_differences,
    phase_of,
    write_batches,
)
from netfold.controller.switches.tables import Sender
from netfold.protocol.wire import Kind

TREES = st.integers(1, 6)


def _tree(number: int) -> list[Entity]:
    """Returns the entities of one tree in a switch that is an inner node of it."""
    sender = Sender(port=1, udp_port=61440, tree=number, child=0, epoch=1, slots=64)
    return [
        *tables.accumulate(sender, root=False, bit=0, full=1, base=64 * number),
        tables.multicast_results(2, 61440, number, 1),
        tables.uplink(number, 2, 7),
        tables.downlink(number, number),
        tables.result_group(number, [1, number + 1]),
    ]


def _contents(trees: set[int], marks: int) -> Contents:
    entities: list[Entity] = [tables.ecn_threshold(p, marks) for p in (1, 2)]
    entities += [tables.to_switch(1, "02:00:00:00:00:01", "02:00:00:00:00:02")]
    entities += tables.slot_access(510, 2000, Kind.READ, Kind.RESET)
    entities += [e for t in trees for e in _tree(t)]
    return {e.key: e for e in entities}


@given(st.sets(TREES), st.sets(TREES), st.integers(1, 3), st.integers(1, 3))
def test_whatever_admits_has_its_way_out_after_every_step(before, after, marks_before, marks_after):
    held, wanted = _contents(before, marks_before), _contents(after, marks_after)
    kept = before & after
    for step in write_batches(held, wanted):
        assert len(step.entities) <= MAX_BATCH
        assert len({phase_of(e) for e in step.entities}) == 1, "a server may reorder within a request"
        apply(held, step)
        for entity in list(held.values()):
            if phase_of(entity) is Phase.ADMISSION:
                tree = dict(entity.match)["tree"]
                assert all(e.key in held for e in _tree(tree) if phase_of(e) is not Phase.ADMISSION)
        assert all(e.key in held for t in kept for e in _tree(t)), "what stays is never gone for a moment"
    assert held == wanted
    assert not count_differences(held, wanted)


def test_nothing_is_written_when_nothing_differs():
    held = _contents({1, 2}, 3)
    assert not list(write_batches(held, dict(held)))


def test_the_mark_of_the_store_is_written_with_the_first_phase():
    [first, *_] = write_batches({}, _contents({1}, 3))
    assert first.op is Op.INSERT
    assert any("access_slot" in str(e) for e in first.entities)


def test_a_changed_prefix_is_modified_in_place():
    old = tables.route(IPv4Network("10.1.0.0/16"), [1, 2])
    new = tables.route(IPv4Network("10.1.0.0/16"), [2])
    [step] = write_batches({old.key: old}, {new.key: new})
    assert (step.op, step.entities) == (Op.MODIFY, (new,))


TREE = 40_000


@given(st.integers(0, TERMS - 1), st.integers(1, REVISIONS - 1))
def test_a_switch_gives_back_the_revision_among_its_other_entries(term, number):
    entities = [
        *tables.slot_access(tables.CPU_PORT, TREE, Kind.READ, Kind.RESET),
        revision_entry(tables.CPU_PORT, TREE, Revision(term, number)),
        revision_entry(tables.CPU_PORT, TREE + 1, Revision(term, number)),
    ]
    contents: Contents = {e.key: e for e in entities}
    assert revisions_in(contents, TREE) == [Revision(term, number)]


def test_it_precedes_what_admits_packets_of_an_epoch():
    entity = revision_entry(tables.CPU_PORT, TREE, Revision(1, 1))
    assert phase_of(entity) < Phase.ADMISSION
    assert tables.is_refusal(entity)
