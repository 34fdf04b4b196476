# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The keys and leases of a simulated etcd: what a cluster does that has a majority. Leases end by virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc

from netfold.controller.jobs import etcd_pb2 as pb

MEMBERS = ("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3")
PREFIX = "sim"
HEAD, LEADER = f"{PREFIX}/head".encode(), f"{PREFIX}/leader".encode()

HISTORY = 30
"""Revisions at which the keys may be read."""


class EtcdError(grpc.RpcError):
    """A call of etcd has failed."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self._code = code
        self._details = details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details


@dataclass(frozen=True)
class _Kept:
    value: bytes
    created: int
    modified: int
    lease: int


class SimulatedEtcd:
    """`on_head` gets the value of each write that was made of `head`. `has_majority`: without it nothing is done, and
    no lease ends."""

    def __init__(self) -> None:
        self.has_majority = True
        self.on_head: Callable[[str], None] = lambda head: None
        self._keys: dict[bytes, _Kept] = {}
        self._past: dict[int, dict[bytes, _Kept]] = {}
        """The keys at each of the last revisions."""
        self._revision = 1
        self._leases: dict[int, tuple[float, int]] = {}
        """The end of each lease, and its length."""
        self._lease_number = 0
        self._methods = {
            "KV/Range": self._range,
            "KV/Txn": self._txn,
            "Lease/LeaseGrant": self._grant,
            "Lease/LeaseRevoke": self._revoke,
            "Lease/LeaseKeepAlive": self._keep_alive,
            "Maintenance/Status": lambda _: pb.StatusResponse(version="3.5.0"),
        }

    def call(self, method: str, request: Any) -> Any:
        """Raises EtcdError."""
        if not self.has_majority:
            raise EtcdError(grpc.StatusCode.UNAVAILABLE, "etcdserver: no leader")
        self._end_leases()
        return self._methods[method](request)

    @property
    def leader(self) -> str:
        """MACHINE:PROCESS of the controller that has the lease; "": none has it."""
        if self.has_majority:
            self._end_leases()
        return self._keys[LEADER].value.decode() if LEADER in self._keys else ""

    def find_majority(self) -> None:
        """A new leader of etcd counts all leases from the beginning."""
        if not self.has_majority:
            self.has_majority = True
            self._leases = {n: (_now() + ttl, ttl) for n, (_, ttl) in self._leases.items()}

    @property
    def has_keys(self) -> bool:
        return bool(self._keys)

    def copy(self) -> SimulatedEtcd:
        """Without what has a lease."""
        copy = SimulatedEtcd()
        copy.restore(self)
        return copy

    def restore(self, backup: SimulatedEtcd) -> None:
        """Have what the backup has."""
        self._revision = max(self._revision, backup._revision)
        self._begin()
        self._keys = {k: v for k, v in backup._keys.items() if not v.lease}
        self._leases.clear()

    def _begin(self) -> None:
        """A new revision."""
        self._past[self._revision] = self._keys
        self._past.pop(self._revision - HISTORY, None)
        self._keys = dict(self._keys)
        self._revision += 1

    # ---- keys -----------------------------------------------------------------------------------------

    def _range(self, request: pb.RangeRequest) -> pb.RangeResponse:
        answer = pb.RangeResponse(header=pb.ResponseHeader(revision=self._revision))
        keys = self._keys
        if request.revision not in (0, self._revision):
            if request.revision not in self._past:
                raise EtcdError(
                    grpc.StatusCode.OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted"
                )
            keys = self._past[request.revision]
        for key in _within(keys, request.key, request.range_end):
            kept = keys[key]
            if kept.modified < request.min_mod_revision:
                continue
            if request.limit and len(answer.kvs) == request.limit:
                answer.more = True
                break
            answer.kvs.add(key=key, value=b"" if request.keys_only else kept.value, lease=kept.lease)
        return answer

    def _txn(self, request: pb.TxnRequest) -> pb.TxnResponse:
        answer = pb.TxnResponse()
        answer.succeeded = all(map(self._holds, request.compare))
        changes = [o for o in request.success if not o.HasField("request_range")]
        if answer.succeeded and changes:
            leases = {o.request_put.lease for o in changes if o.HasField("request_put")} - {0}
            if not leases <= self._leases.keys():
                raise EtcdError(grpc.StatusCode.NOT_FOUND, "etcdserver: requested lease not found")
            self._begin()
            for operation in changes:
                self._change(operation)
        for operation in request.success if answer.succeeded else request.failure:
            response = answer.responses.add()
            if operation.HasField("request_range"):
                response.response_range.CopyFrom(self._range(operation.request_range))
        return answer

    def _holds(self, compare: pb.Compare) -> bool:
        kept = self._keys.get(compare.key)
        if compare.target == pb.Compare.CREATE:
            return (kept.created if kept else 0) == compare.create_revision
        return kept is not None and kept.value == compare.value

    def _change(self, operation: pb.RequestOp) -> None:
        if operation.HasField("request_delete_range"):
            self._keys.pop(operation.request_delete_range.key, None)
            return
        put = operation.request_put
        kept = self._keys.get(put.key)
        created = kept.created if kept else self._revision
        self._keys[put.key] = _Kept(put.value, created, self._revision, put.lease)
        if put.key == HEAD:
            self.on_head(put.value.decode())

    # ---- leases ---------------------------------------------------------------------------------------

    def _grant(self, request: pb.LeaseGrantRequest) -> pb.LeaseGrantResponse:
        self._lease_number += 1
        self._leases[self._lease_number] = (_now() + request.TTL, request.TTL)
        return pb.LeaseGrantResponse(ID=self._lease_number, TTL=request.TTL)

    def _revoke(self, request: pb.LeaseRevokeRequest) -> pb.LeaseRevokeResponse:
        if request.ID not in self._leases:
            raise EtcdError(grpc.StatusCode.NOT_FOUND, "etcdserver: requested lease not found")
        self._end(request.ID)
        return pb.LeaseRevokeResponse()

    def _keep_alive(self, request: pb.LeaseKeepAliveRequest) -> pb.LeaseKeepAliveResponse:
        if request.ID not in self._leases:
            return pb.LeaseKeepAliveResponse(TTL=0)
        _, ttl = self._leases[request.ID]
        self._leases[request.ID] = (_now() + ttl, ttl)
        return pb.LeaseKeepAliveResponse(TTL=ttl)

    def _end_leases(self) -> None:
        for number in [n for n, (until, _) in self._leases.items() if until <= _now()]:
            self._end(number)

    def _end(self, number: int) -> None:
        del self._leases[number]
        gone = [k for k, kept in self._keys.items() if kept.lease == number]
        if gone:
            self._begin()
        for key in gone:
            del self._keys[key]


def _within(keys: Mapping[bytes, _Kept], first: bytes, end: bytes) -> Iterable[bytes]:
    """The keys of a range that exist, in order."""
    if not end:
        return [first] if first in keys else []
    return sorted(k for k in keys if first <= k < end)


def _now() -> float:
    return asyncio.get_running_loop().time()
