# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The history of a store, as etcd keeps it: what each of its revisions wrote and deleted.

The product's client reads only what is there now. This one reads the past, which etcd has until it is compacted."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc

from netfold.controller.jobs import etcd_pb2 as pb
from netfold.controller.jobs.etcd_client import EtcdAddress
from netfold.controller.jobs.etcd_engine import DATA

READ_S = 60.0
PAUSE_S = 0.1
PAGE = 500
"""Keys in an answer."""

Tables = Mapping[str, list[list[Any]]]
"""Rows by table."""


@dataclass(frozen=True)
class Revision:
    """A revision of etcd: the keys below the prefix of a store that it has changed."""

    number: int
    written: Mapping[str, bytes] = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()


class HistoryReader:
    """Reads revisions at one member, in order, each once."""

    def __init__(self, state: str, member: int = 0) -> None:
        address = EtcdAddress.of(state)
        self._prefix = f"{address.prefix}/"
        credentials = address.credentials()
        where = address.members[member]
        options = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1)]
        self._channel = (
            grpc.insecure_channel(where, options)
            if credentials is None
            else grpc.secure_channel(where, credentials, options)
        )
        self._call_once = self._channel.unary_unary(
            "/etcdserverpb.KV/Range",
            request_serializer=pb.RangeRequest.SerializeToString,
            response_deserializer=pb.RangeResponse.FromString,
        )
        self._last = 0
        self._names: frozenset[str] = frozenset()

    def close(self) -> None:
        self._channel.close()

    def read(self) -> Iterator[Revision]:
        """The revisions since the last call. Raises RpcError."""
        now = self._call(pb.RangeRequest(key=b"\0", limit=1))
        for number in range(self._last + 1, now.header.revision + 1):
            self._last = number
            written = self._range(pb.RangeRequest(revision=number, min_mod_revision=number))
            names = frozenset(self._range(pb.RangeRequest(revision=number, keys_only=True)))
            deleted, self._names = self._names - names, names
            if written or deleted:
                yield Revision(number, written, deleted)

    def _call(self, request: pb.RangeRequest) -> pb.RangeResponse:
        """The answer, also where etcd elects a leader meanwhile. Raises RpcError."""
        until = time.monotonic() + READ_S
        while True:
            try:
                answer: pb.RangeResponse = self._call_once(request, timeout=READ_S, wait_for_ready=True)
            except grpc.RpcError:
                if time.monotonic() > until:
                    raise
                time.sleep(PAUSE_S)  # the end of an election has no event here
            else:
                return answer

    def _range(self, request: pb.RangeRequest) -> dict[str, bytes]:
        request.key = self._prefix.encode()
        request.range_end = self._prefix[:-1].encode() + b"0"  # the byte behind a slash
        request.limit = PAGE
        found: dict[str, bytes] = {}
        while True:
            answer = self._call(request)
            found |= {kv.key.decode().removeprefix(self._prefix): kv.value for kv in answer.kvs}
            if not answer.more:
                return found
            request.key = answer.kvs[-1].key + b"\0"


def key_of(name: str) -> str:
    """The key of a part, as `jobs/a/` of `data/jobs/a//000`."""
    return name.removeprefix(DATA).rpartition("/")[0]


def tables_of(key: str, values: Mapping[str, bytes]) -> Tables:
    """The rows that a key has among all values; none if it is gone."""
    parts = b"".join(values[name] for name in sorted(values) if key_of(name) == key)
    found: Tables = json.loads(zlib.decompress(parts)) if parts else {}
    return found
