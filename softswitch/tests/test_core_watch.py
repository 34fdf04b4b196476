# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Watch ports: a selector's members whose port is down are not selected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cases import by
from running import program, running
from softswitch.build.capi import E_MEMORY
from softswitch.build.native import core_library
from softswitch.errors import InvalidArgumentError, ResourceExhaustedError, SwitchError
from softswitch.state.entities import (
    ActionCall,
    ActionSet,
    Exact,
    Group,
    GroupMember,
    GroupRef,
    Member,
    TableEntry,
    WeightedAction,
)
from softswitch.state.pipeline import Pipeline
from softswitch.state.switch import Switch

IN = "MyIngress."
SELECTOR, TABLE = IN + "selector", IN + "by_hash"
ENTRY = TableEntry({"hdr.key.group": Exact(b"\1")}, GroupRef(1))
NOTHING = {0}


@pytest.fixture
def both(cache_dir: Path) -> Iterator[tuple[Pipeline, Switch]]:
    """Members 1, 2 and 3, without a group."""
    with running(program("profiles"), cache_dir) as (pipeline, switch):
        for number in (1, 2, 3):
            pipeline.member_insert(SELECTOR, Member(number, choose(number)))
        yield pipeline, switch


def choose(value: int) -> ActionCall:
    return ActionCall(IN + "choose", {"v": by(value, 8)})


def watching(**ports: int | None) -> Group:
    """Group 1 of members m1, m2, ... with their watch ports."""
    return Group(
        1, [GroupMember(int(name[1:]), 1, b"" if p is None else by(p, 16)) for name, p in ports.items()]
    )


def picks(switch: Switch, frames: int = 64) -> list[int]:
    """Returns the group's choices for frames of as many sources; 0 is nothing."""
    sent = [switch.inject(1, b"\1" + by(source, 32) + bytes(8), 0) for source in range(frames)]
    return [frame[11] for ((_, frame),) in sent]


def test_a_member_is_selected_while_its_watch_port_is_up(both: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = both
    pipeline.group_insert(SELECTOR, watching(m1=5, m2=6, m3=None))
    pipeline.table_insert(TABLE, ENTRY)
    assert set(picks(switch)) == {3}, "a port that is not named is down"
    switch.port_set_up(5, True)
    assert set(picks(switch)) == {1, 3}
    switch.port_set_up(6, True)
    everyone = picks(switch)
    assert set(everyone) == {1, 2, 3}
    switch.port_set_up(5, False)
    assert set(picks(switch)) == {2, 3}
    switch.port_set_up(5, True)
    assert picks(switch) == everyone, "what a port's failure changed is undone by its return"


def test_a_group_without_a_live_member_runs_nothing(both: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = both
    pipeline.group_insert(SELECTOR, watching(m1=5, m2=0))
    pipeline.table_insert(TABLE, ENTRY)
    assert set(picks(switch)) == NOTHING
    switch.port_set_up(0, True)
    assert set(picks(switch)) == {2}
    switch.port_set_up(0, False)
    assert set(picks(switch)) == NOTHING


def test_a_group_that_is_changed_keeps_to_the_ports(both: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = both
    switch.port_set_up(5, True)
    pipeline.group_insert(SELECTOR, watching(m1=5, m2=6))
    pipeline.table_insert(TABLE, ENTRY)
    assert set(picks(switch)) == {1}
    pipeline.group_modify(SELECTOR, watching(m1=6, m2=5, m3=5))
    assert set(picks(switch)) == {2, 3}
    pipeline.group_modify(SELECTOR, watching(m1=None, m2=6))
    assert set(picks(switch)) == {1}
    switch.port_set_up(5, False)
    assert set(picks(switch)) == {1}
    assert list(pipeline.groups(SELECTOR)) == [watching(m1=None, m2=6)]


def test_weights_and_one_shot_sets_watch_too(both: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = both
    switch.port_set_up(5, True)
    actions = [
        WeightedAction(choose(7), 3, b"\5"),
        WeightedAction(choose(8), 1, b"\6"),
        WeightedAction(choose(9)),
    ]
    pipeline.table_insert(TABLE, replace(ENTRY, action=ActionSet(actions)))
    got = picks(switch, 400)
    assert set(got) == {7, 9}
    assert 200 < got.count(7) < 380
    switch.port_set_up(6, True)
    switch.port_set_up(5, False)
    assert set(picks(switch)) == {8, 9}


def test_a_program_that_comes_into_the_switch_finds_the_ports_as_they_are(
    both: tuple[Pipeline, Switch], cache_dir: Path
) -> None:
    pipeline, switch = both
    pipeline.group_insert(SELECTOR, watching(m1=5, m2=6))
    pipeline.table_insert(TABLE, ENTRY)
    switch.port_set_up(5, True)
    other = Pipeline.load(program("profiles"), cache_dir)
    assert switch.swap(other) is pipeline
    switch.port_set_up(5, False)
    switch.port_set_up(6, True)
    pipeline.group_insert(SELECTOR, replace(watching(m3=6), group_id=2))
    assert switch.swap(pipeline) is other
    other.close()
    assert set(picks(switch)) == {2}
    pipeline.table_modify(TABLE, replace(ENTRY, action=GroupRef(2)))
    assert set(picks(switch)) == {3}


FAILING_SETS = [
    [WeightedAction(choose(1)), WeightedAction(choose(2), 0)],
    [WeightedAction(choose(1)), WeightedAction(ActionCall(IN + "plain"))],
    [WeightedAction(choose(1)), WeightedAction(choose(2), 1, b"\1\0\0")],
    [WeightedAction(choose(1), 65536), WeightedAction(choose(2))],
]


def test_a_one_shot_set_that_fails_leaves_no_members_behind(
    both: tuple[Pipeline, Switch], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, switch = both
    entry = replace(ENTRY, action=ActionSet([WeightedAction(choose(1))]))
    pipeline.table_insert(TABLE, entry)
    good = ActionSet([WeightedAction(choose(2)), WeightedAction(choose(3))])
    for _ in range(64):  # as many as the profile has members
        for actions in FAILING_SETS:
            with pytest.raises(SwitchError):
                pipeline.table_modify(TABLE, replace(entry, action=ActionSet(actions)))
        with monkeypatch.context() as patch:
            for function in ("ss_entry_add", "ss_entry_set", "ss_default_set"):
                patch.setattr(core_library(sanitize=False), function, lambda *_: E_MEMORY)
            with pytest.raises(ResourceExhaustedError, match="memory"):
                pipeline.table_insert(
                    TABLE, replace(entry, match={"hdr.key.group": Exact(b"\2")}, action=good)
                )
            with pytest.raises(ResourceExhaustedError, match="memory"):
                pipeline.table_modify(TABLE, replace(entry, action=good))
            with pytest.raises(ResourceExhaustedError, match="memory"):
                pipeline.table_set_default(TABLE, good)
    assert set(picks(switch)) == {1}
    pipeline.table_modify(
        TABLE, replace(entry, action=ActionSet([WeightedAction(choose(n)) for n in range(4, 60)]))
    )
    assert len(set(picks(switch, 400))) > 30


def test_ports_and_weights_beyond_the_bounds_are_refused_and_change_nothing(
    both: tuple[Pipeline, Switch],
) -> None:
    pipeline, switch = both
    pipeline.group_insert(SELECTOR, watching(m1=None))
    pipeline.table_insert(TABLE, ENTRY)
    far = Group(1, [GroupMember(2, 1, b"\1\0\0")])
    with pytest.raises(InvalidArgumentError, match="65536"):
        pipeline.group_modify(SELECTOR, far)
    with pytest.raises(InvalidArgumentError, match="port 65536"):
        switch.port_set_up(65536, True)
    heavy = 2**31 - 1
    with pytest.raises(ResourceExhaustedError, match="at most 65536"):
        pipeline.group_modify(SELECTOR, Group(1, [GroupMember(2, heavy)]))
    with pytest.raises(ResourceExhaustedError, match="at most 65536"):
        pipeline.group_insert(SELECTOR, Group(2, [GroupMember(2, 65536), GroupMember(3)]))
    with pytest.raises(ResourceExhaustedError, match="at most 65536"):
        pipeline.table_modify(TABLE, replace(ENTRY, action=ActionSet([WeightedAction(choose(2), heavy)])))
    assert set(picks(switch)) == {1}
    pipeline.group_insert(SELECTOR, Group(2, [GroupMember(2, 65536)]))
    pipeline.table_modify(TABLE, replace(ENTRY, action=GroupRef(2)))
    assert set(picks(switch)) == {2}
