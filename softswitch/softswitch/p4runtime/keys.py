# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Match keys and actions between P4Runtime's messages and the switch's values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from finsy.proto import p4r

from softswitch.p4runtime.schema import Action, Field, Index, Schema, Table
from softswitch.p4runtime.status import Code, StatusError, invalid
from softswitch.state import values
from softswitch.state.entities import (
    ActionCall,
    ActionSet,
    Exact,
    GroupRef,
    Lpm,
    Match,
    MatchKind,
    MemberRef,
    Range,
    TableAction,
    Ternary,
    WeightedAction,
)

_FORMS = {
    "exact": MatchKind.EXACT,
    "lpm": MatchKind.LPM,
    "ternary": MatchKind.TERNARY,
    "range": MatchKind.RANGE,
    "optional": MatchKind.OPTIONAL,
}


def decode_match(fields: Index[Field], messages: Iterable[p4r.FieldMatch]) -> dict[str, Match]:
    """A key as the switch takes it, by field name. Raises StatusError where "Match Format" is stricter than the switch:
    what has another form for "any value" must be left out."""
    match: dict[str, Match] = {}
    for message in messages:
        field = fields[message.field_id]
        if field.name in match:
            raise invalid(f"{fields.kind} {field.name}: given twice")
        match[field.name] = _decode_field(field, message, f"{fields.kind}, {field.name}")
    return match


def _decode_field(field: Field, message: p4r.FieldMatch, what: str) -> Match:
    form = message.WhichOneof("field_match_type")
    if form is None or _FORMS.get(form) is not field.kind:
        raise invalid(f"{what}: the field is matched as {field.kind.value}, not {form}")
    if form == "lpm":
        return _decode_lpm(field, message.lpm, what)
    if form == "ternary":
        return _decode_ternary(field, message.ternary, what)
    if form == "range":
        return _decode_range(field, message.range, what)
    value = message.exact.value if form == "exact" else message.optional.value
    return Exact(_canonical(value, field, what))


def _decode_lpm(field: Field, message: p4r.FieldMatch.LPM, what: str) -> Lpm:
    if message.prefix_len == 0:
        raise invalid(f"{what}: prefix length 0; leave the field out for any value")
    return Lpm(_canonical(message.value, field, what), message.prefix_len)


def _decode_ternary(field: Field, message: p4r.FieldMatch.Ternary, what: str) -> Ternary:
    mask = _canonical(message.mask, field, f"{what}, mask")
    if not any(mask):
        raise invalid(f"{what}: the mask is zero; leave the field out for any value")
    return Ternary(_canonical(message.value, field, f"{what}, value"), mask)


def _decode_range(field: Field, message: p4r.FieldMatch.Range, what: str) -> Range:
    low = _canonical(message.low, field, f"{what}, low")
    high = _canonical(message.high, field, f"{what}, high")
    if not any(low) and int.from_bytes(high, "big") == (1 << field.width) - 1:
        raise invalid(f"{what}: the range holds every value; leave the field out")
    return Range(low, high)


def _canonical(data: bytes, field: Field, what: str) -> bytes:
    return values.encode(values.decode(data, field.width, what))


def encode_match(fields: Index[Field], match: Mapping[str, Match]) -> list[p4r.FieldMatch]:
    """A key as P4Runtime sends it: in the order of P4Info, without the fields that match anything."""
    messages = []
    for field in fields.select(0):
        if (value := match.get(field.name)) is not None and not _matches_all(field, value):
            messages.append(_encode_field(field, value))
    return messages


def _matches_all(field: Field, match: Match) -> bool:
    match match:
        case Lpm(prefix_len=length):
            return length == 0
        case Ternary(mask=mask):
            return not any(mask)
        case Range(low=low, high=high):
            return not any(low) and int.from_bytes(high, "big") == (1 << field.width) - 1
        case Exact():
            return False


def _encode_field(field: Field, match: Match) -> p4r.FieldMatch:
    message = p4r.FieldMatch(field_id=field.id)
    match match:
        case Exact(value=value) if field.kind is MatchKind.OPTIONAL:
            message.optional.value = value
        case Exact(value=value):
            message.exact.value = value
        case Lpm(value=value, prefix_len=length):
            message.lpm.value = value
            message.lpm.prefix_len = length
        case Ternary(value=value, mask=mask):
            message.ternary.value = value
            message.ternary.mask = mask
        case Range(low=low, high=high):
            message.range.low = low
            message.range.high = high
    return message


def decode_action(schema: Schema, message: p4r.Action, allowed: Mapping[int, int], what: str) -> ActionCall:
    """An action with its arguments; `allowed` are the actions that `what` may run."""
    if message.action_id not in allowed:
        names = ", ".join(f"{i} ({schema.actions[i].name})" for i in allowed) or "none"
        raise invalid(f"{what}: action id {message.action_id} is not allowed here; allowed are {names}")
    action = schema.actions[message.action_id]
    arguments: dict[str, bytes] = {}
    for argument in message.params:
        param = action.params[argument.param_id]
        if param.name in arguments:
            raise invalid(f"{what}: action {action.name}: parameter {param.name} is given twice")
        arguments[param.name] = _canonical(
            argument.value, param, f"{what}: action {action.name}, {param.name}"
        )
    return ActionCall(action.name, arguments)


def encode_action(schema: Schema, call: ActionCall) -> p4r.Action:
    """An action as P4Runtime sends it, with its arguments in the order of P4Info."""
    action: Action = schema.actions.named(call.name)
    return p4r.Action(
        action_id=action.id,
        params=[p4r.Action.Param(param_id=p.id, value=call.params[p.name]) for p in action.params.select(0)],
    )


def decode_table_action(schema: Schema, table: Table, message: p4r.TableAction) -> TableAction:
    """Decode the action of an entry of `table`. Raises StatusError if the form is not that of the table."""
    form = message.WhichOneof("type")
    what = f"table {table.name}"
    if form is None:
        raise invalid(f"{what}: the action is empty")
    if table.profile is None:
        if form != "action":
            raise invalid(f"{what}: it has no action profile; give an action, not {form}")
        return decode_action(schema, message.action, table.scopes, what)
    if form == "action_profile_member_id":
        return MemberRef(message.action_profile_member_id)
    if not table.profile.selector or form == "action":
        raise invalid(f"{what}: it is implemented by {table.profile.name}; it takes no {form}")
    if form == "action_profile_group_id":
        return GroupRef(message.action_profile_group_id)
    return _decode_action_set(schema, table, message.action_profile_action_set)


def _decode_action_set(schema: Schema, table: Table, message: p4r.ActionProfileActionSet) -> ActionSet:
    assert table.profile is not None
    what = f"table {table.name}, action set"
    if message.ByteSize() and any(
        field.name in ("group_action", "action_selection_mode", "size_semantics")
        for field, _ in message.ListFields()
    ):
        raise StatusError(
            Code.UNIMPLEMENTED, f"{what}: group actions, selection modes and size semantics are not supported"
        )
    actions = []
    for member in message.action_profile_actions:
        weight = decode_weight(member.weight, table.profile.weights_disallowed, what)
        call = decode_action(schema, member.action, table.scopes, what)
        actions.append(WeightedAction(call, weight, decode_watch(member, what)))
    total = sum(action.weight for action in actions)
    if table.profile.max_group_size and total > table.profile.max_group_size:
        raise invalid(f"{what}: the weights add up to {total}, more than {table.profile.max_group_size}")
    return ActionSet(tuple(actions))


def decode_weight(weight: int, disallowed: bool, what: str) -> int:
    """The weight of a group's member; 1 for a profile without weights."""
    if disallowed:
        if weight:
            raise invalid(f"{what}: weight {weight}: the profile disallows weights, leave it at 0")
        return 1
    return weight


def decode_watch(member: p4r.ActionProfileAction | p4r.ActionProfileGroup.Member, what: str) -> bytes:
    """The watch port, canonical; empty for none. `watch` is the deprecated form of `watch_port`, 0 for none."""
    kind = member.WhichOneof("watch_kind")
    if kind == "watch":
        if member.watch < 0:
            raise invalid(f"{what}, watch: {member.watch}: expected a port number")
        return values.encode(member.watch) if member.watch else b""
    if kind is None or not member.watch_port:
        return b""
    return values.encode(values.decode(member.watch_port, 32, f"{what}, watch port"))


def encode_table_action(schema: Schema, table: Table, action: TableAction) -> p4r.TableAction:
    """Encode the action of an entry as P4Runtime sends it."""
    match action:
        case ActionCall():
            return p4r.TableAction(action=encode_action(schema, action))
        case MemberRef(member_id=member_id):
            return p4r.TableAction(action_profile_member_id=member_id)
        case GroupRef(group_id=group_id):
            return p4r.TableAction(action_profile_group_id=group_id)
        case ActionSet(actions=actions):
            return p4r.TableAction(action_profile_action_set=_encode_action_set(schema, table, actions))


def _encode_action_set(
    schema: Schema, table: Table, actions: Sequence[WeightedAction]
) -> p4r.ActionProfileActionSet:
    weighted = table.profile is None or not table.profile.weights_disallowed
    result = p4r.ActionProfileActionSet()
    for action in actions:
        message = result.action_profile_actions.add()
        message.action.CopyFrom(encode_action(schema, action.action))
        if weighted:
            message.weight = action.weight
        if action.watch_port:
            message.watch_port = action.watch_port
    return result
