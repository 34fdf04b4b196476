# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Pushes the program and entries of an exercise of p4lang/tutorials over P4Runtime, then disconnects: a controller of
the exercise may become primary."""

from __future__ import annotations

import queue
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import finsy as fy
import grpc
from finsy.proto import p4r, p4r_grpc

from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.processes import open_channel
from netfold.topologies.tutorials import Runtime

_TIMEOUT_S = 60.0
"""Compiling a program takes seconds."""

_ELECTION_ID = 1


class SwitchProgramError(NetworkError):
    def __init__(self, switch: str, runtime: Runtime, what: str) -> None:
        super().__init__(f"switch '{switch}': {runtime.file}: {what}")


def program_switch(name: str, address: str, device_id: int, runtime: Runtime) -> None:
    """Pushes the program and writes all entries. Raises SwitchProgramError."""
    schema = fy.P4Schema(runtime.p4info)
    try:
        updates = list(_updates(runtime, schema))
    except (ValueError, TypeError, KeyError, LookupError) as error:
        raise SwitchProgramError(name, runtime, f"an entry does not match the program: {error}") from error
    config = p4r.ForwardingPipelineConfig(p4info=schema.p4info, p4_device_config=runtime.program.read_bytes())
    try:
        write_program(address, device_id, config, updates, _TIMEOUT_S)
    except grpc.RpcError as error:
        raise SwitchProgramError(name, runtime, f"the switch rejected it: {error.details()}") from error


def write_program(
    address: str,
    device_id: int,
    config: p4r.ForwardingPipelineConfig,
    updates: Iterable[p4r.Update],
    timeout_s: float,
) -> None:
    """Writes a program and its entries as the primary controller. Raises grpc.RpcError."""
    requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
    identity: dict[str, Any] = {"device_id": device_id, "election_id": p4r.Uint128(low=_ELECTION_ID)}
    with open_channel(address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        arbitration = p4r.MasterArbitrationUpdate(**identity)
        requests.put(p4r.StreamMessageRequest(arbitration=arbitration))
        try:
            answers = stub.StreamChannel(
                iter(requests.get, None), timeout=timeout_s
            )  # it leads while this lives
            next(iter(answers))
            action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
            stub.SetForwardingPipelineConfig(
                p4r.SetForwardingPipelineConfigRequest(action=action, config=config, **identity),
                timeout=timeout_s,
            )
            for update in updates:  # one by one: an error then names its entry
                stub.Write(p4r.WriteRequest(updates=[update], **identity), timeout=timeout_s)
        finally:
            requests.put(None)


def _updates(runtime: Runtime, schema: fy.P4Schema) -> Iterator[p4r.Update]:
    for entry in runtime.table_entries:
        default = bool(entry.get("default_action"))
        update = p4r.Update.MODIFY if default else p4r.Update.INSERT
        yield p4r.Update(type=update, entity=_table_entry(entry, default).encode(schema))
    for entry in runtime.multicast_group_entries:
        group = fy.P4MulticastGroupEntry(int(entry["multicast_group_id"]), replicas=_replicas(entry))
        yield p4r.Update(type=p4r.Update.INSERT, entity=group.encode(schema))
    for entry in runtime.clone_session_entries:
        session = fy.P4CloneSessionEntry(
            int(entry["clone_session_id"]),
            replicas=_replicas(entry),
            packet_length_bytes=int(entry.get("packet_length_bytes", 0)),
        )
        yield p4r.Update(type=p4r.Update.INSERT, entity=session.encode(schema))


def _table_entry(entry: Mapping[str, Any], default: bool) -> fy.P4TableEntry:
    """A match is a value, or two of them: value and prefix length, value and mask, or a range."""
    match = {
        k: tuple(v) if isinstance(v, list) and len(v) > 1 else _one(v)
        for k, v in entry.get("match", {}).items()
    }
    action = fy.P4TableAction(
        entry["action_name"], **{k: _one(v) for k, v in entry.get("action_params", {}).items()}
    )
    return fy.P4TableEntry(
        entry["table"],
        match=fy.P4TableMatch(match) if match else None,
        action=action,
        is_default_action=default,
        priority=int(entry.get("priority") or 0),
    )


def _one(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _replicas(entry: Mapping[str, Any]) -> list[tuple[int, int]]:
    return [(int(r["egress_port"]), int(r.get("instance", 0))) for r in entry["replicas"]]
