# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Action profile members and groups."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from softswitch.p4runtime import keys
from softswitch.p4runtime.change import Change
from softswitch.p4runtime.schema import Profile, Schema
from softswitch.p4runtime.status import invalid
from softswitch.state.entities import Group, GroupMember, Member
from softswitch.state.pipeline import Pipeline


class ProfileMessages:
    """Write and Read of ActionProfileMember and ActionProfileGroup."""

    def __init__(self, schema: Schema, pipeline: Pipeline) -> None:
        self._schema = schema
        self._pipeline = pipeline

    def write_member(self, kind: Change, message: p4r.ActionProfileMember) -> None:
        """One update of a member."""
        profile = self._schema.profiles[message.action_profile_id]
        what = f"action profile {profile.name}, member {message.member_id}"
        if message.member_id == 0:
            raise invalid(f"{what}: 0 is the wildcard, not an id")
        if kind is Change.DELETE:
            self._pipeline.member_delete(profile.name, message.member_id)
            return
        if not message.HasField("action"):
            raise invalid(f"{what}: an action must be given")
        call = keys.decode_action(self._schema, message.action, self._actions(profile), what)
        member = Member(message.member_id, call)
        if kind is Change.INSERT:
            self._pipeline.member_insert(profile.name, member)
        else:
            self._pipeline.member_modify(profile.name, member)

    def _actions(self, profile: Profile) -> dict[int, int]:
        tables = [self._schema.tables[table_id] for table_id in profile.tables]
        return {action: scope for table in tables for action, scope in table.scopes.items()}

    def read_members(self, query: p4r.ActionProfileMember) -> Iterator[p4r.Entity]:
        """The members that a query selects."""
        for profile in self._schema.profiles.select(query.action_profile_id):
            for member in self._pipeline.members(profile.name):
                if query.member_id in (0, member.member_id):
                    message = p4r.ActionProfileMember(
                        action_profile_id=profile.id,
                        member_id=member.member_id,
                        action=keys.encode_action(self._schema, member.action),
                    )
                    yield p4r.Entity(action_profile_member=message)

    def write_group(self, kind: Change, message: p4r.ActionProfileGroup) -> None:
        """One update of a group."""
        profile = self._schema.profiles[message.action_profile_id]
        what = f"action profile {profile.name}, group {message.group_id}"
        if not profile.selector:
            raise invalid(f"{what}: the profile has no selector, so it has no groups")
        if message.group_id == 0:
            raise invalid(f"{what}: 0 is the wildcard, not an id")
        if kind is Change.DELETE:
            self._pipeline.group_delete(profile.name, message.group_id)
            return
        group = self._decode_group(profile, message, what)
        if kind is Change.INSERT:
            self._pipeline.group_insert(profile.name, group)
            return
        self._check_max_size(profile, group, what)
        self._pipeline.group_modify(profile.name, group)

    def _decode_group(self, profile: Profile, message: p4r.ActionProfileGroup, what: str) -> Group:
        limit = profile.max_group_size
        if message.max_size < 0 or (limit and not 0 < message.max_size <= limit):
            raise invalid(
                f"{what}: max_size {message.max_size} is not in {1 if limit else 0}..{limit or 'any'}"
            )
        members = tuple(
            GroupMember(
                member.member_id,
                keys.decode_weight(member.weight, profile.weights_disallowed, what),
                keys.decode_watch(member, what),
            )
            for member in message.members
        )
        return Group(message.group_id, members, message.max_size)

    def _check_max_size(self, profile: Profile, group: Group, what: str) -> None:
        for old in self._pipeline.groups(profile.name):
            if old.group_id == group.group_id and old.max_size != group.max_size:
                raise invalid(f"{what}: max_size was {old.max_size} when it was inserted and cannot change")

    def read_groups(self, query: p4r.ActionProfileGroup) -> Iterator[p4r.Entity]:
        """The groups that a query selects. The hidden groups of one-shot entries are not among them."""
        for profile in self._schema.profiles.select(query.action_profile_id):
            if not profile.selector:
                continue
            for group in self._pipeline.groups(profile.name):
                if query.group_id in (0, group.group_id):
                    yield p4r.Entity(action_profile_group=_encode_group(profile, group))


def _encode_group(profile: Profile, group: Group) -> p4r.ActionProfileGroup:
    message = p4r.ActionProfileGroup(
        action_profile_id=profile.id, group_id=group.group_id, max_size=group.max_size
    )
    for member in group.members:
        added = message.members.add(member_id=member.member_id)
        if not profile.weights_disallowed:
            added.weight = member.weight
        if member.watch_port:
            added.watch_port = member.watch_port
    return message
