# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A switch names the revision of its slots: it is read back, and it is there before any packet of the epoch is
admitted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from netfold.controller.jobs.revisions import REVISIONS, TERMS, Revision
from netfold.controller.switches import tables
from netfold.controller.switches.entries import Contents
from netfold.controller.switches.install import Phase, phase_of
from netfold.controller.switches.revision_entry import revision_entry, revisions_in
from netfold.protocol.wire import Kind

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
