# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Descriptions that ranks publish in torch's store for their rendezvous. Any process that reaches the store can write
there, and the ranks may be of several versions, so nothing is used unchecked."""

from __future__ import annotations

import ipaddress
import json
import math
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import TypeAdapter, ValidationError

from netfold.protocol.environment import Variable
from netfold.traffic.errors import TrafficError
from netfold.traffic.membership.host import own_addresses
from netfold.traffic.membership.jobs import KeptJob
from netfold.traffic.pytorch.options import Fallback

VERSION = 1
_NO_LAYOUT = "rank 0 published no layout"
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class HostInfo:
    """The host of a rank, as the rank sees it. Ranks of equal `machine` and `host` share a host. `host`:
    NETFOLD_HOST, or empty. `nonce`: of this process and attempt. `fallback`: the rule of its options; a rank of an
    earlier version fails. `job_before`: which the ranks before have left, as far as this rank knows. `version`: of
    what ranks publish, and of the jobs that they can follow; 0 of earlier versions."""

    machine: str
    addresses: tuple[str, ...]
    host: str
    nonce: str
    fallback: str = Fallback.FAIL
    job_before: KeptJob | None = None
    version: int = 0

    @classmethod
    def of_this_process(cls) -> Self:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        network = os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116 (a link that leads to no file)
        host = os.environ.get(Variable.HOST, "")
        return cls(f"{boot} {network}", own_addresses(), host, secrets.token_hex(8))


@dataclass(frozen=True)
class PublishedLayout:
    """`places`: the host number of each rank; hosts are numbered in the order of their first ranks. `names`,
    `addresses`: of the hosts; an address may be "" where there is no job. `job`: "" if all ranks share one host, which
    needs no network, or go by Gloo. `session`: prefix of all keys of this world in torch's store. `report`,
    `group_rate`: of TorchOptions. `token`: of the job's members. `start_s`: ranks that have not joined the job after
    this time go by Gloo, all of them; 0: they fail. `fallback_reason`: why all go by Gloo; "": they join the job.
    `generation`: of the job's workers. `is_kept`: the job outlives these ranks, for those that follow.
    `is_one_version`: all ranks publish the same in the store."""

    session: str
    job: str
    places: tuple[int, ...]
    names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    report: str = ""
    group_rate: float | None = None
    start_s: float = 0.0
    fallback_reason: str = ""
    generation: int = 0
    is_kept: bool = False
    is_one_version: bool = False
    token: str = field(default="", repr=False)

    @property
    def hosts(self) -> int:
        return max(self.places) + 1

    def ranks_on_host(self, rank: int) -> list[int]:
        """The ranks of this rank's host, itself included, in ascending order."""
        return [other for other, place in enumerate(self.places) if place == self.places[rank]]


@dataclass(frozen=True)
class LayoutAnswer:
    """Rank 0 publishes it with a layout, or with an error in place of one. `nonces`: of the ranks that it is for.
    `refused`: the error is a JobRefusedError."""

    nonces: tuple[str, ...]
    error: str | None = None
    refused: bool = False


@dataclass(frozen=True)
class Decision:
    """Rank 0 publishes it once it has the outcome of each rank. `reason`: why all go by Gloo; "": all have joined.
    `error`: why all fail."""

    error: str
    reason: str


_HOST, _ANSWER, _LAYOUT = TypeAdapter(HostInfo), TypeAdapter(LayoutAnswer), TypeAdapter(PublishedLayout)
_OUTCOME, _DECISION = TypeAdapter(str), TypeAdapter(Decision)


def _read(adapter: TypeAdapter[_Read], text: bytes, what: str) -> _Read:
    """Raises TrafficError, without the text, which has tokens."""
    try:
        return adapter.validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
    where = ".".join(map(str, first["loc"])) or "all"
    raise TrafficError(f"{what}: {where}: {first['msg']}")


def read_host(text: bytes, rank: int) -> HostInfo:
    """Raises TrafficError."""
    what = f"rank {rank} published no description of its host"
    host = _read(_HOST, text, what)
    if not all(map(_is_ipv4, host.addresses)):
        raise TrafficError(f"{what}: addresses: {_cut(host.addresses)}, expected IPv4 addresses")
    return host


def read_nonce(text: bytes) -> str:
    """Return the nonce of a description that is no HostInfo, for the answer that its rank awaits; "" without one."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    nonce = found.get("nonce") if isinstance(found, dict) else None
    return nonce if isinstance(nonce, str) and nonce.isascii() else ""


def read_answer(text: bytes) -> LayoutAnswer:
    """Raises TrafficError."""
    return _read(_ANSWER, text, _NO_LAYOUT)


def read_outcome(text: bytes, rank: int) -> str:
    """Return why a rank has not joined; "": it has. Raises TrafficError."""
    return _read(_OUTCOME, text, f"rank {rank} published no outcome")


def read_decision(text: bytes) -> Decision:
    """Raises TrafficError."""
    return _read(_DECISION, text, "rank 0 published no decision")


def read_layout(text: bytes, session: str, size: int) -> PublishedLayout:
    """Raises TrafficError."""
    layout = _read(_LAYOUT, text, _NO_LAYOUT)
    for fault in _faults(layout, session, size):
        raise TrafficError(f"{_NO_LAYOUT}: {fault}")
    return layout


def _faults(layout: PublishedLayout, session: str, size: int) -> Iterator[str]:
    hosts = len(set(layout.places))
    if layout.session != session:
        yield f"session: '{_cut(layout.session)}', expected '{session}'"
    if len(layout.places) != size or set(layout.places) != set(range(hosts)):
        yield f"places: {_cut(layout.places)}, expected of {size} ranks hosts 0, 1 and so on"
    if hosts > 1 and not layout.job and not layout.fallback_reason:
        yield f"job: none for {hosts} hosts"
    for what, found in (("names", layout.names), ("addresses", layout.addresses)):
        if len(found) != hosts and (layout.job or found):
            yield f"{what}: {_cut(found)}, expected one of each of {hosts} hosts"
    if not all(map(_is_ipv4, filter(None, layout.addresses))):
        yield f"addresses: {_cut(layout.addresses)}, expected IPv4 addresses"
    if layout.group_rate is not None and not 0 < layout.group_rate < math.inf:
        yield f"group_rate: {layout.group_rate}, expected a rate"
    if not layout.start_s >= 0:
        yield f"start_s: {layout.start_s}, expected a time"
    if not 0 <= layout.generation < 1 << 32:
        yield f"generation: {layout.generation}, expected 32 bits"
    if not layout.token.isascii() or not layout.token.isprintable():
        yield "token: no text of printable ASCII"


def _cut(value: object) -> str:
    return f"{value!s:.200}"


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def first_rank_is_older(layout: PublishedLayout, store: Any, first: int) -> bool:
    """Whether the first rank of a host is of a version that publishes no targets. `store`: of the session. Raises
    TrafficError."""
    if layout.is_one_version:
        return False
    key = f"host{first}"  # of rank 0 such a version publishes none
    return not store.check([key]) or read_host(store.get(key), first).version < VERSION
