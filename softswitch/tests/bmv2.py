# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""simple_switch_grpc in a namespace, set up with the same entities as our switch."""

from __future__ import annotations

import queue
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType

import grpc
from finsy.proto import p4i, p4r, p4r_grpc
from google.protobuf import text_format
from softswitch.state.entities import (
    ActionCall,
    CloneSession,
    Exact,
    Group,
    GroupRef,
    Lpm,
    Match,
    Member,
    MemberRef,
    Range,
    Replica,
    TableAction,
    TableEntry,
    Ternary,
)
from softswitch.testing import simple_switch
from testnet import Host, Namespace

DEADLINE_S = 120.0
SETTLE_S = 0.005


def available() -> bool:
    return shutil.which(simple_switch.PROGRAM) is not None


class Bmv2:
    """A running simple_switch_grpc with ports 1..n and a pipeline."""

    def __init__(self, program: Path, folder: Path, ports: int) -> None:
        self.ports = range(1, ports + 1)
        self.namespace = Namespace(ports)
        self.hosts: dict[int, Host] = {}
        self.process: subprocess.Popen[bytes] | None = None
        try:
            self.hosts = {n: self.namespace.host(n) for n in self.ports}
            self._start(folder)
            self._push(program)
        except BaseException:
            self.close()
            raise

    def _start(self, folder: Path) -> None:
        address = f"unix:{folder}/bmv2.sock"
        self.log = folder / "bmv2.log"
        started = simple_switch.command(address, {n: f"sw{n}" for n in self.ports}, "-L", "error")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.namespace.name, *started], stdout=log, stderr=log
            )
        self.channel = grpc.insecure_channel(address)
        simple_switch.wait_until_ready(self.process, self.channel, self.log)
        self.stub = p4r_grpc.P4RuntimeStub(self.channel)
        first = p4r.StreamMessageRequest()
        first.arbitration.device_id = 1
        first.arbitration.election_id.low = 1
        self.requests = _Held(first)
        self.stream = self.stub.StreamChannel(self.requests)
        next(self.stream)

    def _push(self, program: Path) -> None:
        self.info = p4i.P4Info()
        text_format.Parse(program.with_suffix(".p4info.txtpb").read_text(), self.info)
        request = p4r.SetForwardingPipelineConfigRequest(device_id=1)
        request.election_id.low = 1
        request.action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        request.config.p4info.CopyFrom(self.info)
        request.config.p4_device_config = program.read_bytes()
        self.stub.SetForwardingPipelineConfig(request, timeout=DEADLINE_S)

    # ---- entities ----

    def _insert(self, entity: p4r.Entity, kind: int = p4r.Update.INSERT) -> None:
        request = p4r.WriteRequest(device_id=1)
        request.election_id.low = 1
        request.updates.add(type=kind, entity=entity)
        self.stub.Write(request, timeout=DEADLINE_S)

    def _table(self, name: str) -> p4i.Table:
        return next(t for t in self.info.tables if t.preamble.name == name)

    def _action(self, call: ActionCall) -> p4r.Action:
        info = next(a for a in self.info.actions if a.preamble.name == call.name)
        out = p4r.Action(action_id=info.preamble.id)
        for p in info.params:
            out.params.add(param_id=p.id, value=call.params[p.name].lstrip(b"\0") or b"\0")
        return out

    def _table_action(self, action: TableAction) -> p4r.TableAction:
        if isinstance(action, MemberRef):
            return p4r.TableAction(action_profile_member_id=action.member_id)
        if isinstance(action, GroupRef):
            return p4r.TableAction(action_profile_group_id=action.group_id)
        assert isinstance(action, ActionCall)
        return p4r.TableAction(action=self._action(action))

    def table_insert(self, table: str, entry: TableEntry) -> None:
        info = self._table(table)
        out = p4r.TableEntry(table_id=info.preamble.id, priority=entry.priority)
        for f in info.match_fields:
            if f.name in entry.match:
                out.match.append(_match(f, entry.match[f.name]))
        out.action.CopyFrom(self._table_action(entry.action))
        self._insert(p4r.Entity(table_entry=out))

    def _profile(self, name: str) -> int:
        return next(p.preamble.id for p in self.info.action_profiles if p.preamble.name == name)

    def member_insert(self, profile: str, member: Member) -> None:
        out = p4r.ActionProfileMember(action_profile_id=self._profile(profile), member_id=member.member_id)
        out.action.CopyFrom(self._action(member.action))
        self._insert(p4r.Entity(action_profile_member=out))

    def group_insert(self, profile: str, group: Group) -> None:
        out = p4r.ActionProfileGroup(
            action_profile_id=self._profile(profile), group_id=group.group_id, max_size=16
        )
        for m in group.members:
            out.members.add(member_id=m.member_id, weight=m.weight)
        self._insert(p4r.Entity(action_profile_group=out))

    def multicast_insert(self, group_id: int, replicas: list[Replica]) -> None:
        out = p4r.PacketReplicationEngineEntry()
        out.multicast_group_entry.multicast_group_id = group_id
        for r in replicas:
            out.multicast_group_entry.replicas.add(egress_port=r.port, instance=r.instance)
        self._insert(p4r.Entity(packet_replication_engine_entry=out))

    def clone_insert(self, session: CloneSession) -> None:
        out = p4r.PacketReplicationEngineEntry()
        out.clone_session_entry.session_id = session.session_id
        for r in session.replicas:
            out.clone_session_entry.replicas.add(egress_port=r.port, instance=r.instance)
        self._insert(p4r.Entity(packet_replication_engine_entry=out))

    # ---- packets ----

    def inject(self, port: int, frame: bytes, expected: int) -> list[tuple[int, bytes]]:
        """Sends a frame and takes `expected` frames, or what has come when BMv2 has long had nothing to do. So it
        waits, too, when a frame should leave no trace outside: BMv2 does not keep the order of frames that wait on
        different ports.

        Raises SwitchDiedError if frames are missing and the process is gone."""
        self.hosts[port].send(frame)
        if expected == 0:
            self._settle()
        out = self.take(expected, 0.5)
        if len(out) < expected:
            self._settle()
            out += self.take(expected - len(out), 0.1)
        if len(out) < expected and self.process is not None and self.process.poll() is not None:
            raise simple_switch.SwitchDiedError(self.process.returncode, self.log)
        return out

    def _settle(self) -> None:
        """Wait until no thread of BMv2 runs or waits for a processor, which takes long on a busy machine."""
        assert self.process is not None
        deadline = time.monotonic() + DEADLINE_S
        time.sleep(SETTLE_S)
        while self.process.poll() is None and not _sleeps(self.process.pid) and time.monotonic() < deadline:
            time.sleep(SETTLE_S / 5)

    def take(self, count: int, timeout: float) -> list[tuple[int, bytes]]:
        out: list[tuple[int, bytes]] = []
        by_file = {host._socket: n for n, host in self.hosts.items()}
        deadline = time.monotonic() + timeout
        while len(out) < count:
            ready, _, _ = select.select(list(by_file), [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                break
            out += [(by_file[s], s.recv(65536)) for s in ready]
        return out

    def close(self) -> None:
        for host in self.hosts.values():
            host.close()
        if self.process is not None:
            if hasattr(self, "requests"):
                self.requests.release()
            if hasattr(self, "channel"):
                self.channel.close()
            self.process.kill()
            self.process.wait()
        self.namespace.close()

    def __enter__(self) -> Bmv2:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Held:
    """A request stream of one message that stays open."""

    def __init__(self, first: p4r.StreamMessageRequest) -> None:
        self._queue: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self._queue.put(first)

    def __iter__(self) -> _Held:
        return self

    def __next__(self) -> p4r.StreamMessageRequest:
        item = self._queue.get()
        if item is None:
            raise StopIteration
        return item

    def release(self) -> None:
        self._queue.put(None)


def _sleeps(pid: int) -> bool:
    """All threads of the process wait for something to come."""
    states = (
        task.read_text().rpartition(")")[2].split()[0] for task in Path(f"/proc/{pid}/task").glob("*/stat")
    )
    return all(state in "SI" for state in states)


def _short(data: bytes) -> bytes:
    return data.lstrip(b"\0") or b"\0"


def _match(field: p4i.MatchField, match: Match) -> p4r.FieldMatch:
    out = p4r.FieldMatch(field_id=field.id)
    if isinstance(match, Exact) and field.match_type == p4i.MatchField.OPTIONAL:
        out.optional.value = _short(match.value)
    elif isinstance(match, Exact):
        out.exact.value = _short(match.value)
    elif isinstance(match, Lpm):
        out.lpm.value, out.lpm.prefix_len = _short(match.value), match.prefix_len
    elif isinstance(match, Ternary):
        out.ternary.value, out.ternary.mask = _short(match.value), _short(match.mask)
    elif isinstance(match, Range):
        out.range.low, out.range.high = _short(match.low), _short(match.high)
    return out
