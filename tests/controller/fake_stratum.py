# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N802
"""A fake switch with the manners of Stratum on Tofino: no ECMP sets with a route, but members and groups, which have
to be there before what refers to them and may go only after it, and which are read profile by profile; no device 0."""

from __future__ import annotations

import grpc
from finsy.proto import p4r, rpc_code

from tests.controller.fake_switch import FakeSwitch


class FakeStratum(FakeSwitch):
    def __init__(self, device_id: int = 1) -> None:
        super().__init__(device_id)
        self.members: dict[int, p4r.ActionProfileMember] = {}
        self.sets: dict[int, p4r.ActionProfileGroup] = {}

    async def restart(self) -> None:
        self.members, self.sets = {}, {}
        await super().restart()

    async def SetForwardingPipelineConfig(self, request, context):
        await self._check_device(request, context)
        answer = await super().SetForwardingPipelineConfig(request, context)
        self.members, self.sets = {}, {}
        return answer

    async def Write(self, request, context):
        await self._check_device(request, context)
        return await super().Write(request, context)

    async def Read(self, request, context):
        await self._check_device(request, context)
        for entity in request.entities:
            kind = entity.WhichOneof("entity")
            if kind not in ("action_profile_member", "action_profile_group"):
                async for answer in super().Read(p4r.ReadRequest(entities=[entity]), context):
                    yield answer
            elif getattr(entity, kind).action_profile_id == 0:
                await context.abort(grpc.StatusCode.UNIMPLEMENTED, "reading all action profiles")
            elif kind == "action_profile_member":
                found = [p4r.Entity(action_profile_member=m) for m in self.members.values()]
                yield p4r.ReadResponse(entities=found)
            else:
                yield p4r.ReadResponse(
                    entities=[p4r.Entity(action_profile_group=g) for g in self.sets.values()]
                )

    async def _check_device(self, request, context) -> None:
        if request.device_id in (0, None) or request.device_id != self.device_id:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"device {request.device_id}")

    def _update(self, update: p4r.Update) -> p4r.Error:
        wrong = self._fault(update)
        if wrong is not None:
            return p4r.Error(canonical_code=wrong[0], message=wrong[1], space="fake")
        kind = update.entity.WhichOneof("entity")
        if kind == "action_profile_member":
            member = update.entity.action_profile_member
            return self._store(update.type, self.members, member.member_id, member)
        if kind == "action_profile_group":
            group = update.entity.action_profile_group
            return self._store(update.type, self.sets, group.group_id, group)
        return super()._update(update)

    def _fault(self, update: p4r.Update) -> tuple[int, str] | None:
        deletes = update.type == p4r.Update.DELETE
        kind = update.entity.WhichOneof("entity")
        if kind == "action_profile_member" and deletes:
            number = update.entity.action_profile_member.member_id
            used = {m.member_id for g in self.sets.values() for m in g.members} | self._referred("member")
            return (rpc_code.FAILED_PRECONDITION, f"member {number} is in use") if number in used else None
        if kind == "action_profile_group":
            group = update.entity.action_profile_group
            if deletes:
                busy = group.group_id in self._referred("group")
                return (rpc_code.FAILED_PRECONDITION, "the group is in use") if busy else None
            if any(m.weight != 1 or m.member_id not in self.members for m in group.members):
                return rpc_code.INVALID_ARGUMENT, "no such member, or a weight that is not 1"
            if not 0 < len(group.members) <= group.max_size:
                return rpc_code.INVALID_ARGUMENT, "the group's size"
        if kind == "table_entry" and not deletes:
            action = update.entity.table_entry.action
            which = action.WhichOneof("type")
            if which == "action_profile_action_set":
                return rpc_code.UNIMPLEMENTED, "Unsupported action type"
            if which == "action_profile_member_id" and action.action_profile_member_id not in self.members:
                return rpc_code.NOT_FOUND, "no such member"
            if which == "action_profile_group_id" and action.action_profile_group_id not in self.sets:
                return rpc_code.NOT_FOUND, "no such group"
        return None

    def _referred(self, what: str) -> set[int]:
        """The members or groups that table entries name."""
        field = f"action_profile_{what}_id"
        actions = [e.action for e in self.state.tables.values()]
        return {getattr(a, field) for a in actions if a.WhichOneof("type") == field}
