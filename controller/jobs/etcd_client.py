# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Calls the members of an etcd cluster. Every call has a deadline, and goes to another member when one does not
answer."""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import grpc
from google.protobuf.message import Message

from netfold.controller.jobs import etcd_pb2 as pb
from netfold.controller.jobs.engine import StoreError, StoreMember, StoreUnavailableError
from netfold.controller.jobs.etcd_runtime import RUNTIME, EtcdRuntime

PORT = 2379
EXPECTED = "expected etcd://HOST[:PORT],HOST,.../PREFIX?ca=FILE&cert=FILE&key=FILE"

ATTEMPT_S = 0.5
"""Limit of a call at one member."""
CALL_S = 2.0
"""Limit of a call at all members. An election takes longer at times: the change is refused, and tried again."""
SHORT_CALL_S = 0.3
"""The same after a call without an answer, until one has an answer: the controller's loop stands still meanwhile."""
AWAY_S = 0.7
"""Time after a call without an answer in which no further one is made: many changes may wait to be tried again."""
LOAD_S = 10.0
"""Limit of reading all of a store when it is opened: nothing waits meanwhile."""
LOAD_ATTEMPT_S = 3.0
PAUSE_S = 0.02
PAGE = 100
"""Keys in an answer: 40 MB at most."""
NAMES = 10_000
"""Keys without their values in an answer."""

_HAS_LEADER = (("hasleader", "true"),)
"""A member without a leader refuses then, and does not wait for one."""
_OTHER_MEMBER = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNKNOWN,
}
_CAUSES = {
    "certificate has expired": "its certificate has expired",
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not of the authority in ?ca=",
    "Hostname Verification": "its certificate is not for that name",
    "peer certificate": "its certificate is not for that name",
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
    "Unwrap failed": "it refuses the certificate in ?cert=",
    "Socket closed": "it closes the connection, as one that speaks TLS does without ?ca=",
    "onnection refused": "no process listens there",
    "Deadline Exceeded": "no answer in time",
}
_ADDRESS = re.compile(r"etcd://([^/?#]*)/([A-Za-z0-9_.-]{1,64})(?:\?([^#\x00-\x1f]*))?")
"""The prefix is one part: no store is within another one's keys."""
_HOST = re.compile(r"(\[[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*\]|[A-Za-z0-9_.-]+)(?::([0-9]{1,5}))?")
_FILES = ("ca", "cert", "key")

_RANGE, _TXN = "KV/Range", "KV/Txn"
_STATUS = "Maintenance/Status"
_GRANT, _REVOKE, _KEEP_ALIVE = "Lease/LeaseGrant", "Lease/LeaseRevoke", "Lease/LeaseKeepAlive"

Answer = TypeVar("Answer", bound=Message)


@dataclass(frozen=True)
class EtcdAddress:
    """The members of a cluster, the prefix of a store's keys, and files: the certificate of the members' authority, and
    the controller's own with its key."""

    members: tuple[str, ...]
    prefix: str
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    @classmethod
    def of(cls, text: str) -> EtcdAddress:
        """Raises StoreError."""
        found = _ADDRESS.fullmatch(text)
        if found is None:
            raise StoreError(f"{text}: {EXPECTED}")
        options = parse_qsl(found[3] or "", keep_blank_values=True)
        files = dict(options)
        if set(files) - set(_FILES) or len(options) > len(files) or not all(map(_is_path, files.values())):
            raise StoreError(f"{text}: {EXPECTED}, each of them once")
        if ("cert" in files) != ("key" in files):
            raise StoreError(f"{text}: {EXPECTED}, with cert and key together or not at all")
        members = tuple(_member(text, member) for member in found[1].split(","))
        if "ca" not in files and ("cert" in files or not all(map(_is_here, members))):
            raise StoreError(f"{text}: expected ?ca=FILE, because the store holds the key of all tokens")
        return cls(members, found[2], **{name: Path(file) for name, file in files.items()})

    def __str__(self) -> str:
        return f"etcd://{','.join(self.members)}/{self.prefix}"

    def credentials(self) -> grpc.ChannelCredentials | None:
        """Raises OSError, StoreError. gRPC would fail with each call, or take the system's authorities in place of a
        file without any."""
        if self.ca is None:
            return None
        ca = self.ca.read_bytes()
        key, cert = (None if file is None else file.read_bytes() for file in (self.key, self.cert))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        fault = f"{self.ca} has no certificate of an authority"
        try:
            context.load_verify_locations(self.ca)
            fault = f"{self.cert} and {self.key} are no certificate with its key"
            if self.cert is not None:
                context.load_cert_chain(self.cert, self.key, password="")
        except (ssl.SSLError, ValueError) as error:
            raise StoreError(f"{self}: {fault}; expected PEM, not encrypted") from error
        return grpc.ssl_channel_credentials(ca, key, cert)


def _member(text: str, member: str) -> str:
    match = _HOST.fullmatch(member)
    port = int(match[2] or PORT) if match else 0
    if match is None or not 0 < port < 65536:
        raise StoreError(f"{text}: '{member}' is no member; {EXPECTED}")
    return f"{match[1]}:{port}"


def _is_path(text: str) -> bool:
    return text != "" and "\0" not in text


def _is_here(member: str) -> bool:
    host = member.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class Leased:
    """A key that is deleted when its lease ends; 0: it has none."""

    key: str
    value: bytes
    lease: int


@dataclass(frozen=True)
class Keys:
    """Values by name, and the revision of etcd at which they were so."""

    values: Mapping[str, bytes]
    revision: int


class EtcdClient:
    """The keys below the prefix of an address. Raises StoreUnavailableError where no member answers in time, or one
    refuses."""

    def __init__(self, address: EtcdAddress, runtime: EtcdRuntime = RUNTIME) -> None:
        self.name = str(address)
        self._prefix = f"{address.prefix}/".encode()
        try:
            credentials = address.credentials()
        except OSError as error:
            raise StoreError(f"{self.name}: {error.filename} cannot be read: {error.strerror}") from error
        self._runtime = runtime
        self._members = address.members
        self._channels = [runtime.channel(member, credentials) for member in self._members]
        self._at = 0
        self._is_away = False
        self._away_until = 0.0
        self._why_away = ""
        self.attempts = 0
        """Calls at a member that have begun. Each one ends in time, so a process that makes them does not hang."""

    def close(self) -> None:
        for channel in self._channels:
            channel.close()

    def load(self) -> dict[str, bytes]:
        """All keys, as they were at one moment."""
        return dict(self.load_since(0).values)

    def load_since(self, revision: int) -> Keys:
        """The keys that were written at the revision or later."""
        return self._load("", LOAD_S, LOAD_ATTEMPT_S, pb.RangeRequest(limit=PAGE, min_mod_revision=revision))

    def names(self, revision: int) -> frozenset[str]:
        """The names of all keys, as they were at a revision. It is refused once etcd has compacted its history."""
        request = pb.RangeRequest(limit=NAMES, keys_only=True, revision=revision)
        return frozenset(self._load("", LOAD_S, LOAD_ATTEMPT_S, request).values)

    def load_few(self, prefix: str) -> dict[str, bytes]:
        """The keys with a prefix, within the time of a write."""
        return dict(self._load(prefix, self._limit_s, ATTEMPT_S, pb.RangeRequest(limit=PAGE)).values)

    def _load(self, prefix: str, limit_s: float, attempt_s: float, request: pb.RangeRequest) -> Keys:
        first = self._prefix + prefix.encode()
        request.key, request.range_end = first, _end(first)
        found: dict[str, bytes] = {}
        until = self._runtime.monotonic() + limit_s
        while True:
            answer = self._call(
                _RANGE, request, pb.RangeResponse, until - self._runtime.monotonic(), attempt_s
            )
            found |= {self._name(kv.key): kv.value for kv in answer.kvs}
            request.revision = request.revision or answer.header.revision
            if not answer.more or not answer.kvs:
                return Keys(found, request.revision)
            request.key = answer.kvs[-1].key + b"\0"

    def replace(
        self,
        key: str,
        before: bytes | None,
        after: bytes,
        changes: Mapping[str, bytes | None],
        leased: Leased | None = None,
    ) -> bytes | None:
        """Make the changes (None: the key goes) and write `after` to `key`, if that has the value `before` (None: it
        does not exist), and if the key of `leased`, which is then made, does not exist. Return the value of `key`:
        `after`, or else the one that it had, and nothing was changed. The call is repeated where no answer comes, so no
        `after` may be used twice."""
        own = self._prefix + key.encode()
        compare = pb.Compare(key=own, target=pb.Compare.VALUE, value=before)
        if before is None:
            compare = _missing(own)
        request = pb.TxnRequest(
            compare=[compare],
            success=[_put(own, after), *(self._change(k, v) for k, v in changes.items())],
            failure=[pb.RequestOp(request_range=pb.RangeRequest(key=own))],
        )
        if leased is not None:
            new = self._prefix + leased.key.encode()
            request.compare.append(_missing(new))
            request.success.append(_put(new, leased.value, leased.lease))
        answer = self._call(_TXN, request, pb.TxnResponse, self._limit_s, ATTEMPT_S)
        if answer.succeeded:
            return after
        found = answer.responses[0].response_range.kvs if answer.responses else ()
        return found[0].value if found else None

    # ---- leases ----------------------------------------------------------------------------------

    def grant(self, ttl_s: int) -> tuple[int, int]:
        """Make a lease. Return its number, and the seconds for which it lasts from the call on."""
        request = pb.LeaseGrantRequest(TTL=ttl_s)
        answer = self._call(_GRANT, request, pb.LeaseGrantResponse, self._limit_s, ATTEMPT_S)
        return answer.ID, answer.TTL

    def put(self, leased: Leased) -> None:
        """Write a key that is deleted when its lease ends."""
        put = _put(self._prefix + leased.key.encode(), leased.value, leased.lease)
        self._call(_TXN, pb.TxnRequest(success=[put]), pb.TxnResponse, self._limit_s, ATTEMPT_S)

    def leased(self, key: str) -> Leased | None:
        """A key with its lease; None if it does not exist."""
        request = pb.RangeRequest(key=self._prefix + key.encode())
        answer = self._call(_RANGE, request, pb.RangeResponse, self._limit_s, ATTEMPT_S)
        return next((Leased(key, kv.value, kv.lease) for kv in answer.kvs), None)

    def revoke(self, lease: int) -> None:
        """End a lease, and delete its keys."""
        request = pb.LeaseRevokeRequest(ID=lease)
        self._call(_REVOKE, request, pb.LeaseRevokeResponse, self._limit_s, ATTEMPT_S)

    def renew(self, lease: int) -> int | None:
        """Renew a lease at one member; the next call goes to another one if it does not answer. Return the seconds for
        which it lasts from the call on; 0: it is over; None: no answer."""
        self.attempts += 1
        call: Callable[..., Any] = self._channel.stream_stream(
            f"/etcdserverpb.{_KEEP_ALIVE}",
            request_serializer=pb.LeaseKeepAliveRequest.SerializeToString,
            response_deserializer=pb.LeaseKeepAliveResponse.FromString,
        )
        requests = iter([pb.LeaseKeepAliveRequest(ID=lease)])
        answers = call(requests, timeout=ATTEMPT_S, metadata=_HAS_LEADER)
        try:
            answer: pb.LeaseKeepAliveResponse = next(answers)
        except (grpc.RpcError, StopIteration):
            self._at += 1
            return None
        finally:
            answers.cancel()
        return max(0, answer.TTL)

    # ---- members ---------------------------------------------------------------------------------

    def members(self) -> tuple[StoreMember, ...]:
        """The members of the address, one after the other."""
        return tuple(map(self._member, self._members, self._channels))

    def _member(self, address: str, channel: grpc.Channel) -> StoreMember:
        call: Callable[..., pb.StatusResponse] = channel.unary_unary(
            f"/etcdserverpb.{_STATUS}",
            request_serializer=pb.StatusRequest.SerializeToString,
            response_deserializer=pb.StatusResponse.FromString,
        )
        try:
            status = call(pb.StatusRequest(), timeout=ATTEMPT_S)
        except grpc.RpcError as error:
            return StoreMember(address, "", leads=False, fault=_cause(error))
        leads = status.leader == status.header.member_id
        return StoreMember(address, status.version, leads, ", ".join(status.errors))

    # ---- calls -----------------------------------------------------------------------------------

    @property
    def _limit_s(self) -> float:
        return SHORT_CALL_S if self._is_away else CALL_S

    def _change(self, name: str, value: bytes | None) -> pb.RequestOp:
        key = self._prefix + name.encode()
        if value is not None:
            return _put(key, value)
        return pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=key))

    def _name(self, key: bytes) -> str:
        try:
            return key.removeprefix(self._prefix).decode()
        except UnicodeDecodeError as error:
            raise StoreError(f"{self.name}: {key!r} is no key of a store of netfold") from error

    @property
    def _channel(self) -> grpc.Channel:
        return self._channels[self._at % len(self._channels)]

    def _call(
        self, method: str, request: Message, kind: type[Answer], limit_s: float, attempt_s: float
    ) -> Answer:
        if self._runtime.monotonic() < self._away_until:
            raise StoreUnavailableError(self._why_away)
        until = self._runtime.monotonic() + limit_s
        while True:
            self.attempts += 1
            member = self._members[self._at % len(self._members)]
            call: Callable[..., Answer] = self._channel.unary_unary(
                f"/etcdserverpb.{method}",
                request_serializer=type(request).SerializeToString,
                response_deserializer=kind.FromString,
            )
            left_s = max(PAUSE_S, until - self._runtime.monotonic())
            try:
                answer = call(request, timeout=min(left_s, attempt_s), metadata=_HAS_LEADER)
            except grpc.RpcError as error:
                why = f"{member}: {_cause(error)}"
                if error.code() not in _OTHER_MEMBER:
                    raise StoreUnavailableError(f"{self.name}: etcd refuses the call: {why}") from error
                self._at += 1
                if self._runtime.monotonic() >= until:
                    self._is_away = True
                    self._away_until = self._runtime.monotonic() + AWAY_S
                    self._why_away = f"{self.name}: no member of etcd answers: {why}"
                    raise StoreUnavailableError(self._why_away) from error
            else:
                self._is_away = False
                return answer
            self._runtime.sleep(PAUSE_S)  # a member that refuses does so at once


def _cause(error: grpc.RpcError) -> str:
    """The reason of etcd, or else of gRPC in words: to its caller the controller is there."""
    details = error.details() or ""
    if details.startswith(("etcdserver", "rpc error", "auth")):
        return details
    return next((cause for sign, cause in _CAUSES.items() if sign in details), "it cannot be reached")


def _put(key: bytes, value: bytes, lease: int = 0) -> pb.RequestOp:
    return pb.RequestOp(request_put=pb.PutRequest(key=key, value=value, lease=lease))


def _missing(key: bytes) -> pb.Compare:
    return pb.Compare(key=key, target=pb.Compare.CREATE, create_revision=0)


def _end(prefix: bytes) -> bytes:
    """The first key behind all that have the prefix."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
