# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which rank runs on which host: every rank publishes its host in torch's store; rank 0 looks the hosts up at the
controller, submits the job, and publishes the layout.

A store outlives processes (`torchrun --max-restarts`) and process groups, so it may hold keys of an earlier attempt.
Rank 0 draws a session identifier that all later keys contain; every rank adds a nonce to what it publishes, and
accepts a layout only if it echoes this nonce.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import torch.distributed as dist

from netfold.protocol.connection import ConnectError, Connection, connection
from netfold.protocol.environment import Variable
from netfold.traffic.errors import JobRefusedError, TrafficError, UnknownHostError
from netfold.traffic.membership.host import MemberHost, fabric_hosts, own_addresses, pick_host
from netfold.traffic.membership.jobs import submit_job
from netfold.traffic.membership.process_jobs import cancel_abandoned_jobs
from netfold.traffic.pytorch.options import TorchOptions

log = logging.getLogger("netfold.torch")

_SESSION = "session"
_CANCEL_S = 10.0
_RETRY_S = 0.05
_MIN_WAIT_S = 0.01
_WAIT = timedelta(seconds=0.5)


@dataclass(frozen=True)
class HostInfo:
    """The host of a rank, as the rank sees it. Ranks of equal `machine` and `host` share a host. `host`:
    NETFOLD_HOST, or empty. `nonce`: of this process and attempt."""

    machine: str
    addresses: tuple[str, ...]
    host: str
    nonce: str

    @classmethod
    def of_this_process(cls) -> Self:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        network = os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116 (a link that leads to no file)
        host = os.environ.get(Variable.HOST, "")
        return cls(f"{boot} {network}", own_addresses(), host, secrets.token_hex(8))

    @classmethod
    def read(cls, text: bytes) -> Self:
        found = json.loads(text)
        return cls(found["machine"], tuple(found["addresses"]), found["host"], found["nonce"])


@dataclass(frozen=True)
class RankLayout:
    """`places`: the host number of each rank; hosts are numbered in the order of their first ranks. `names`,
    `addresses`: of the hosts. `job`: "" if all ranks share one host, which needs no network. `session`: prefix of all
    keys of this world in torch's store. `report`, `group_rate`: of TorchOptions. `token`: of the job's members."""

    session: str
    job: str
    places: tuple[int, ...]
    names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    report: str = ""
    group_rate: float | None = None
    token: str = field(default="", repr=False)

    @property
    def hosts(self) -> int:
        return max(self.places) + 1

    def connection(self) -> Connection:
        """The connection of a member of the job. Raises ConnectError."""
        return connection().as_member(self.token)

    def ranks_on_host(self, rank: int) -> list[int]:
        """The ranks of this rank's host, itself included, in ascending order."""
        return [other for other, place in enumerate(self.places) if place == self.places[rank]]


def rendezvous(
    store: Any,
    rank: int,
    size: int,
    options: TorchOptions,
    timeout: float,
    info: HostInfo | None = None,
) -> RankLayout:
    """The layout, the same at all ranks, within `timeout` seconds; with several hosts, of a job that was admitted.
    `info`: of this process by default. Raises TrafficError and ConnectError at all ranks."""
    info = info or HostInfo.of_this_process()
    deadline = time.monotonic() + timeout
    _cancel_abandoned(timeout)
    if rank == 0:
        return _publish_layout(store, size, options, timeout, deadline, info)
    return _await_layout(store, rank, deadline, info)


def read_key(store: Any, key: str, deadline: float) -> bytes:
    """The key's value, as soon as another rank has set it. The store's own timeout may be that of another group.
    Raises TrafficError at `deadline` (of time.monotonic())."""
    remaining = max(_MIN_WAIT_S, deadline - time.monotonic())
    try:
        store.wait([key], timedelta(seconds=remaining))
    except (dist.DistStoreError, RuntimeError) as error:
        raise TrafficError(f"timeout: no rank set '{key}' within the group's timeout: {error}") from error
    found: bytes = store.get(key)
    return found


def _cancel_abandoned(timeout: float) -> None:
    """Cancel jobs of ended processes of this machine. Rank 0 submits when all ranks have published their hosts."""
    with contextlib.suppress(ConnectError):  # ranks of one host need no controller
        canceled = cancel_abandoned_jobs(connection(), min(timeout, _CANCEL_S))
        if canceled:
            log.warning("canceled jobs of processes that had ended: %s", ", ".join(canceled))


def _publish_layout(
    store: Any, size: int, options: TorchOptions, timeout: float, deadline: float, info: HostInfo
) -> RankLayout:
    session = secrets.token_hex(8)
    store.set(_SESSION, session)
    published = (read_key(store, f"{session}/host{rank}", deadline) for rank in range(1, size))
    infos = [info, *map(HostInfo.read, published)]
    nonces = [one.nonce for one in infos]
    try:
        remaining = max(_MIN_WAIT_S, deadline - time.monotonic())
        layout = _make_layout(session, infos, options.within(timeout), remaining)
    except (TrafficError, ConnectError, ValueError) as error:
        refused = isinstance(error, JobRefusedError)
        store.set(
            f"{session}/layout", json.dumps({"nonces": nonces, "error": f"{error}", "refused": refused})
        )
        raise
    store.set(f"{session}/layout", json.dumps({"nonces": nonces, **asdict(layout)}))
    return layout


def _await_layout(store: Any, rank: int, deadline: float, info: HostInfo) -> RankLayout:
    published = ""
    while time.monotonic() < deadline:
        session = read_key(store, _SESSION, deadline).decode()  # may be that of an earlier attempt
        if session != published:
            store.set(f"{session}/host{rank}", json.dumps(asdict(info)))
            published = session
        try:
            store.wait([f"{session}/layout"], _WAIT)
        except (dist.DistStoreError, RuntimeError):
            continue
        found = json.loads(store.get(f"{session}/layout"))
        nonces = found["nonces"]
        if rank >= len(nonces) or nonces[rank] != info.nonce:  # of an earlier attempt, maybe of fewer ranks
            time.sleep(_RETRY_S)  # a torch store has no wait for a changed key
            continue
        if "error" in found:
            if found["refused"]:
                raise JobRefusedError(f"rank 0: {found['error']}")
            raise TrafficError(f"rank 0: {found['error']}")
        places, names, addresses = (tuple(found[key]) for key in ("places", "names", "addresses"))
        report, group_rate = found["report"], found["group_rate"]
        job, token = found["job"], found["token"]
        return RankLayout(session, job, places, names, addresses, report, group_rate, token)
    raise TrafficError("timeout: rank 0 published no layout within the group's timeout")


def _make_layout(
    session: str, infos: Sequence[HostInfo], options: TorchOptions, timeout: float
) -> RankLayout:
    hosts = list(dict.fromkeys((info.machine, info.host) for info in infos))
    places = tuple(hosts.index((info.machine, info.host)) for info in infos)
    if len(hosts) == 1:
        return RankLayout(session, "", places, report=options.report)
    where = connection()
    known = _find_hosts(where, [infos[places.index(place)] for place in range(len(hosts))])
    name = options.job or f"torch-{secrets.token_hex(4)}"
    names = tuple(host.name for host in known)
    token = submit_job(where, options.job_file(name, names), options.queue, timeout)
    addresses = tuple(host.address for host in known)
    return RankLayout(session, name, places, names, addresses, options.report, options.group_rate, token)


def _find_hosts(where: Connection, infos: Iterable[HostInfo]) -> list[MemberHost]:
    known = fabric_hosts(where)
    found = [pick_host(known, info.addresses, info.host) for info in infos]
    names = [host.name for host in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UnknownHostError(f"ranks of different machines or network namespaces are all at host '{twice}'")
    return found
