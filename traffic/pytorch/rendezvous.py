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
import functools
import json
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from netfold.protocol.connection import ConnectError, Connection, connection
from netfold.traffic.errors import DifferentFallbacksError, JobRefusedError, TrafficError, UnknownHostError
from netfold.traffic.membership.host import MemberHost, fabric_hosts, pick_host
from netfold.traffic.membership.jobs import KeptJob, cancel_job, submit_job
from netfold.traffic.membership.process_jobs import EnteredJob, cancel_abandoned_jobs
from netfold.traffic.pytorch.kept_job import KEPT, Succession, end_jobs, join_again
from netfold.traffic.pytorch.options import Fallback, TorchOptions
from netfold.traffic.pytorch.published import (
    VERSION,
    HostInfo,
    PublishedLayout,
    read_answer,
    read_host,
    read_layout,
    read_nonce,
)

log = logging.getLogger("netfold.torch")

_SESSION = "session"
_CANCEL_S = 10.0
_LOOK_UP_S = 10.0
_RETRY_S = 0.05
_MIN_WAIT_S = 0.01
_WAIT = timedelta(seconds=0.5)


@dataclass(frozen=True)
class RankLayout(PublishedLayout):
    """`entered`: at the rank that submitted the job, which is in it since."""

    entered: EnteredJob | None = field(default=None, repr=False, compare=False)

    @property
    def kept_job(self) -> KeptJob | None:
        """The job, for the ranks that follow."""
        return KeptJob(self.job, self.generation, self.token) if self.job and self.is_kept else None

    def connection(self) -> Connection:
        """The connection of a member of the job. Raises ConnectError."""
        return connection().as_member(self.token)


def rendezvous(
    store: Any,
    rank: int,
    size: int,
    options: TorchOptions,
    timeout: float,
    info: HostInfo | None = None,
    succession: Succession | None = None,
) -> RankLayout:
    """The layout, the same at all ranks, within `timeout` seconds; with several hosts, of a job that was admitted.
    `info`: of this process by default. `succession`: by default these ranks follow none, and none follow them. Raises
    TrafficError and ConnectError at all ranks."""
    succession = succession or Succession()
    info = replace(info or HostInfo.of_this_process(), fallback=options.fallback_rule, version=VERSION)
    deadline = time.monotonic() + timeout
    with contextlib.suppress(ConnectError):  # ranks of one host need no controller
        info = replace(info, job_before=succession.job_before(connection()))
        _cancel_abandoned(succession.run, timeout)
    if rank == 0:
        return _publish_layout(store, size, options, timeout, deadline, info, succession)
    return _await_layout(store, rank, size, timeout, deadline, info)


def read_key(store: Any, key: str, deadline: float) -> bytes:
    """The key's value, as soon as another rank has set it. The store's own timeout may be that of another group.
    Raises TrafficError at `deadline` (of time.monotonic())."""
    try:
        store.wait([key], timedelta(seconds=_seconds_to(deadline)))
    except (dist.DistStoreError, RuntimeError) as error:
        raise TrafficError(f"timeout: no rank set '{key}' within the group's timeout: {error}") from error
    found: bytes = store.get(key)
    return found


def _seconds_to(deadline: float) -> float:
    return max(_MIN_WAIT_S, deadline - time.monotonic())


def _cancel_abandoned(run: str, timeout: float) -> None:
    """Cancel jobs of ended processes of this machine. Rank 0 submits when all ranks have published their hosts. Raises
    ConnectError."""
    canceled = cancel_abandoned_jobs(connection(), min(timeout, _CANCEL_S), run)
    if canceled:
        log.warning("canceled jobs of processes that had ended: %s", ", ".join(canceled))


def _publish_layout(
    store: Any,
    size: int,
    options: TorchOptions,
    timeout: float,
    deadline: float,
    info: HostInfo,
    succession: Succession,
) -> RankLayout:
    session = secrets.token_hex(8)
    store.set(f"{session}/host0", json.dumps(asdict(info)))
    store.set(_SESSION, session)
    infos, malformed = [info], []
    for rank in range(1, size):
        text = read_key(store, f"{session}/host{rank}", deadline)
        try:
            infos.append(read_host(text, rank))
        except TrafficError as error:
            infos.append(replace(info, nonce=read_nonce(text)))
            malformed.append(error)
    nonces = [one.nonce for one in infos]
    try:
        if malformed:
            raise malformed[0]
        layout = _make_layout(session, infos, options.within(timeout), _seconds_to(deadline), succession)
    except (TrafficError, ConnectError, ValueError) as error:
        refused = isinstance(error, JobRefusedError)
        store.set(
            f"{session}/layout", json.dumps({"nonces": nonces, "error": f"{error}", "refused": refused})
        )
        raise
    try:
        store.set(
            f"{session}/layout", json.dumps({"nonces": nonces, **asdict(replace(layout, entered=None))})
        )
    except BaseException as error:
        _give_up(layout, f"rank 0 cannot publish it: {error!r}")
        raise
    return layout


def _give_up(layout: RankLayout, why: str) -> None:
    """End the job, which no other rank knows."""
    if layout.job:
        cancel_job(layout.connection(), layout.job, why, _CANCEL_S)
    if layout.entered is not None:
        layout.entered.leave()


def _await_layout(
    store: Any, rank: int, size: int, timeout: float, deadline: float, info: HostInfo
) -> RankLayout:
    published = ""
    while time.monotonic() < deadline:
        session = read_key(store, _SESSION, deadline).decode(errors="replace")  # may be of an earlier attempt
        if session != published:
            store.set(f"{session}/host{rank}", json.dumps(asdict(info)))
            published = session
        try:
            store.wait([f"{session}/layout"], _WAIT)
        except (dist.DistStoreError, RuntimeError):
            continue
        text = store.get(f"{session}/layout")
        answer = read_answer(text)
        if rank >= len(answer.nonces) or answer.nonces[rank] != info.nonce:  # earlier, maybe of fewer ranks
            time.sleep(_RETRY_S)  # a torch store has no wait for a changed key
            continue
        if answer.error is not None:
            raise (JobRefusedError if answer.refused else TrafficError)(f"rank 0: {answer.error}")
        layout = read_layout(text, session, size)
        return RankLayout(**{**vars(layout), "start_s": min(layout.start_s, timeout)})
    raise TrafficError("timeout: rank 0 published no layout within the group's timeout")


def _make_layout(
    session: str, infos: Sequence[HostInfo], options: TorchOptions, timeout: float, succession: Succession
) -> RankLayout:
    """Raises TrafficError and ConnectError: the ranks fail. The layout of ranks that go by Gloo has the reason."""
    _check_fallbacks(infos)
    start_s = options.start_within(timeout)
    deadline = time.monotonic() + start_s
    hosts = list(dict.fromkeys((info.machine, info.host) for info in infos))
    places = tuple(hosts.index((info.machine, info.host)) for info in infos)
    layout = RankLayout(session, "", places, report=options.report)
    before = [info.job_before for info in infos if info.job_before is not None]
    is_one_version = len({info.version for info in infos}) == 1
    if before and (len(hosts) == 1 or not is_one_version):
        end_jobs(connection(), before)
        before = []
    if len(hosts) == 1:
        return layout
    succession = replace(succession, is_kept=succession.is_kept and is_one_version)
    of_hosts = [infos[places.index(place)] for place in range(len(hosts))]
    falls_back = options.fallback == Fallback.GLOO
    entered = None
    addresses = tuple(info.addresses[0] if len(info.addresses) == 1 else "" for info in of_hosts)
    try:
        where = connection()
        # ranks that fail have to hear of it before their own timeout
        look_up_s = start_s if falls_back else min(_LOOK_UP_S, timeout / 2)
        known = _find_hosts(where, of_hosts, look_up_s, start_s)
        addresses = tuple(host.address for host in known)
        names = tuple(host.name for host in known)
        keys = options.job_file(options.job or f"torch-{secrets.token_hex(4)}", names)
        enter = functools.partial(_enter, where, names[0], succession)
        again = join_again(where, before, keys, names, _seconds_to(deadline), enter) if before else None
        if again is None:
            job, entered = _submit(where, keys, options.queue, deadline, succession.is_kept, enter)
        else:
            job, entered = again.job, again.entered
            ranked = [again.hosts.index(name) for name in names]
            names = again.hosts
            addresses = tuple(known[ranked.index(place)].address for place in range(len(names)))
            places = tuple(ranked[place] for place in places)
    except (TrafficError, ConnectError) as error:
        if not falls_back:
            raise
        return replace(layout, addresses=addresses, fallback_reason=f"{error}")
    return replace(
        layout,
        job=job.name,
        places=places,
        names=names,
        addresses=addresses,
        group_rate=options.group_rate,
        start_s=_seconds_to(deadline) if falls_back else 0.0,
        generation=job.generation,
        is_kept=succession.is_kept,
        is_one_version=is_one_version,
        token=job.token,
        entered=entered,
    )


def _submit(
    where: Connection,
    keys: Mapping[str, object],
    queue: bool,
    deadline: float,
    is_kept: bool,
    enter: Callable[[KeptJob], EnteredJob],
) -> tuple[KeptJob, EnteredJob]:
    """The job outlives its ranks if others may follow them, and the controller allows it. This process enters it before
    it is there: a job whose submitter dies first would have no member that ends it. Raises JobRefusedError, and
    ControllerUnreachableError: then it stays in the job, which may be there."""
    job = KeptJob(f"{keys['name']}", 0)
    entered = enter(job)
    try:
        token = _submitted(where, keys, queue, deadline, is_kept)
    except JobRefusedError:
        entered.leave()
        raise
    entered.submitted(token)
    return replace(job, token=token), entered


def _enter(where: Connection, host: str, succession: Succession, job: KeptJob) -> EnteredJob:
    """Rank 0 enters a job that it is about to submit, or to reconfigure."""
    return EnteredJob(
        *(where.as_member(job.token), job.name, host, f"rank 0 at host {host}"),
        generation=job.generation if succession.is_kept else None,
        run=succession.run,
        is_submitted=False,
    )


def _submitted(
    where: Connection, keys: Mapping[str, object], queue: bool, deadline: float, is_kept: bool
) -> str:
    """The token of the job's members. Raises JobRefusedError, ControllerUnreachableError."""
    if is_kept:
        try:
            return submit_job(where, {**keys, **KEPT}, queue, _seconds_to(deadline))
        except JobRefusedError as error:
            log.info("job %s ends with its ranks: %s", keys["name"], error)
    return submit_job(where, keys, queue, _seconds_to(deadline))


def _check_fallbacks(infos: Sequence[HostInfo]) -> None:
    """Raises DifferentFallbacksError."""
    first = infos[0].fallback
    for rank, info in enumerate(infos):
        if info.fallback != first:
            raise DifferentFallbacksError(
                f"fallback is '{info.fallback}' at rank {rank} and '{first}' at rank 0; expected the same at all ranks"
            )


def own_address() -> str:
    """This host's address in the fabric; "": no controller answers, or it has no such host."""
    try:
        return _find_hosts(connection(), [HostInfo.of_this_process()], _LOOK_UP_S, _LOOK_UP_S)[0].address
    except (TrafficError, ConnectError) as error:
        log.info("Gloo binds to the address of this machine's name: %s", error)
        return ""


def _find_hosts(
    where: Connection, infos: Iterable[HostInfo], timeout: float, limit_s: float
) -> list[MemberHost]:
    known = fabric_hosts(where, timeout, limit_s)
    found = [pick_host(known, info.addresses, info.host) for info in infos]
    names = [host.name for host in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UnknownHostError(f"ranks of different machines or network namespaces are all at host '{twice}'")
    return found
