# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Action profiles and selectors: members, groups, one-shot sets, and every refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cases import by
from running import program, running
from softswitch.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
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


@pytest.fixture
def profiles(cache_dir: Path) -> Iterator[tuple[Pipeline, Switch]]:
    with running(program("profiles"), cache_dir) as both:
        yield both


def choose(v: int) -> ActionCall:
    return ActionCall(IN + "choose", {"v": by(v, 8)})


def chosen(switch: Switch, group: int, src: int = 1) -> int:
    ((_, out),) = switch.inject(1, bytes([group]) + by(src, 32) + bytes(8), 0)
    return out[11]


def test_members_and_groups_in_use_cannot_go(profiles: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = profiles
    for i in (1, 2):
        pipeline.member_insert(IN + "selector", Member(i, choose(i)))
    pipeline.group_insert(IN + "selector", Group(1, [GroupMember(1), GroupMember(2)]))
    entry = TableEntry({"hdr.key.group": Exact(b"\1")}, GroupRef(1))
    pipeline.table_insert(IN + "by_hash", entry)
    assert {chosen(switch, 1, src) for src in range(64)} == {1, 2}
    with pytest.raises(InvalidArgumentError, match="in use"):
        pipeline.group_delete(IN + "selector", 1)
    with pytest.raises(InvalidArgumentError, match="in use"):
        pipeline.member_delete(IN + "selector", 1)
    pipeline.group_modify(IN + "selector", Group(1, [GroupMember(2)]))
    pipeline.member_delete(IN + "selector", 1)
    assert {chosen(switch, 1, src) for src in range(64)} == {2}
    pipeline.member_modify(IN + "selector", Member(2, choose(9)))
    assert chosen(switch, 1) == 9
    pipeline.table_delete(IN + "by_hash", entry.match)
    pipeline.group_delete(IN + "selector", 1)
    pipeline.member_delete(IN + "selector", 2)
    assert list(pipeline.members(IN + "selector")) == []


def test_weights_and_one_shot_sets(profiles: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = profiles
    actions = ActionSet([WeightedAction(choose(1), 3), WeightedAction(choose(2), 1)])
    entry = TableEntry({"hdr.key.group": Exact(b"\1")}, actions)
    pipeline.table_insert(IN + "by_hash", entry)
    picks = [chosen(switch, 1, src) for src in range(400)]
    assert 200 < picks.count(1) < 380
    assert picks.count(1) + picks.count(2) == 400
    pipeline.table_modify(IN + "by_hash", replace(entry, action=ActionSet([WeightedAction(choose(7))])))
    assert chosen(switch, 1) == 7
    pipeline.table_delete(IN + "by_hash", entry.match)
    assert chosen(switch, 1) == 0
    for i in range(200):  # the slots of old sets are used again: a profile of 64 would run out otherwise
        pipeline.table_insert(IN + "by_hash", replace(entry, action=ActionSet([WeightedAction(choose(i))])))
        pipeline.table_delete(IN + "by_hash", entry.match)


def test_an_empty_group_runs_nothing(profiles: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = profiles
    pipeline.group_insert(IN + "selector", Group(1, []))
    pipeline.table_insert(IN + "by_hash", TableEntry({"hdr.key.group": Exact(b"\1")}, GroupRef(1)))
    assert chosen(switch, 1) == 0


BAD_PROFILES: list[tuple[Callable[[Pipeline], object], type[Exception]]] = [
    (lambda p: p.member_insert(IN + "selector", Member(1, choose(1))), AlreadyExistsError),
    (lambda p: p.member_insert(IN + "profile", Member(9, choose(1))), InvalidArgumentError),
    (lambda p: p.member_modify(IN + "selector", Member(5, choose(1))), NotFoundError),
    (lambda p: p.group_insert(IN + "selector", Group(1, [GroupMember(5)])), NotFoundError),
    (lambda p: p.group_insert(IN + "selector", Group(1, [GroupMember(1, 0)])), InvalidArgumentError),
    (
        lambda p: p.group_insert(IN + "selector", Group(1, [GroupMember(1), GroupMember(1)])),
        InvalidArgumentError,
    ),
    (
        lambda p: p.group_insert(IN + "selector", Group(1, [GroupMember(1, 5)], max_size=4)),
        ResourceExhaustedError,
    ),
    (lambda p: p.group_insert(IN + "profile", Group(1, [])), InvalidArgumentError),
    (
        lambda p: p.table_insert(IN + "by_hash", TableEntry({"hdr.key.group": Exact(b"\1")}, GroupRef(8))),
        NotFoundError,
    ),
    (
        lambda p: p.table_insert(IN + "by_hash", TableEntry({"hdr.key.group": Exact(b"\1")}, choose(1))),
        InvalidArgumentError,
    ),
    (
        lambda p: p.table_insert(IN + "by_member", TableEntry({"hdr.key.group": Exact(b"\1")}, GroupRef(1))),
        InvalidArgumentError,
    ),
]


@pytest.mark.parametrize("number", range(len(BAD_PROFILES)))
def test_bad_profile_operations(profiles: tuple[Pipeline, Switch], number: int) -> None:
    operation, error = BAD_PROFILES[number]
    profiles[0].member_insert(IN + "selector", Member(1, choose(1)))
    with pytest.raises(error):
        operation(profiles[0])


def test_a_full_profile(profiles: tuple[Pipeline, Switch]) -> None:
    pipeline, _ = profiles
    for i in range(64):
        pipeline.member_insert(IN + "profile", Member(i, ActionCall(IN + "plain", {"v": b"\1"})))
    with pytest.raises(ResourceExhaustedError, match="64 members"):
        pipeline.member_insert(IN + "profile", Member(64, ActionCall(IN + "plain", {"v": b"\1"})))
