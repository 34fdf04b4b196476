# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Creates the process groups of torch's backend `netfold`."""

from __future__ import annotations

import functools
import logging
import os
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.torch_version import TorchVersion

from netfold.protocol.connection import ConnectError
from netfold.traffic.errors import TrafficError
from netfold.traffic.membership.host import bindable
from netfold.traffic.pytorch.collectives import Collectives, collectives_of, register_backend
from netfold.traffic.pytorch.flight_recorder import FlightRecorder
from netfold.traffic.pytorch.kept_job import Succession
from netfold.traffic.pytorch.options import TorchOptions
from netfold.traffic.pytorch.reconfigurable import ReconfigurableGroup
from netfold.traffic.pytorch.rendezvous import RankLayout, own_address, rendezvous
from netfold.traffic.pytorch.session import open_session

log = logging.getLogger("netfold.torch")

_MIN_GLOO_S = 1.0
"""For Gloo's connections where the job took nearly all of the group's timeout."""


def create(options: Any, program_options: Any) -> Any:
    """Called by `init_process_group` and `new_group` with torch's _DistributedBackendOptions and the program's
    pg_options. Raises DistBackendError."""
    _shut_down_when_destroyed()
    if getattr(options, "enable_reconfigure", False):  # from 2.14 on
        return ReconfigurableGroup(options, program_options, _create_reconfigurable_gloo(options), open_group)
    group = dist.distributed_c10d.GroupMember.WORLD
    if group is None:
        return create_with_job(options, program_options, Succession.of_torchrun())
    world = collectives_of(group)
    if world is None or program_options is not None:
        return create_with_job(options, program_options)
    return create_part(options, world)


def create_part(options: Any, world: Collectives) -> Any:
    """A group of ranks of the world, without options of its own. Raises DistBackendError."""
    session = world.session  # a world without ranks has none
    store = dist.PrefixStore(f"netfold/{world.layout.session}", options.store)
    if options.group_size == world.size():
        gloo = _create_gloo(options, store, world.layout, world.rank())
        return _make(options, world.layout, session, gloo, world.job_options, False)
    ranks = f"all calls of {options.group_size} of {world.size()} ranks"
    reason = world.fallback_reason or "no NETFOLD_GROUP_RATE"
    if world.layout.group_rate is not None and not world.fallback_reason:
        group = create_with_job(options, world.job_options.of_a_group(world.layout.group_rate))
        if group.fallback_reason:
            session.reporter.by_gloo(f"{ranks} ({group.fallback_reason})")
        return group
    gloo = _create_gloo(options, store, world.layout, world.rank())
    session.reporter.by_gloo(f"{ranks} ({reason})")
    log.info("group %s: %s by Gloo: %s", options.group_id, ranks, reason)
    return gloo


def _make(options: Any, *parts: Any) -> Collectives:
    """By the door through which this PyTorch lets a class of Python in. `parts`: of Collectives."""
    if TorchVersion(torch.__version__) >= (2, 14):
        from netfold.traffic.pytorch.backend import NetfoldBackend  # noqa: PLC0415 (it needs 2.14)

        return NetfoldBackend(create_part, options, *parts)
    return NetfoldGroup(options, *parts)


def _shut_down_when_destroyed() -> None:
    """`destroy_process_group` of PyTorch 2.6 shuts down groups of NCCL only, by a function that later versions do not
    have."""
    c10d = dist.distributed_c10d
    shut_down = getattr(c10d, "_shutdown_backend", None)
    if shut_down is None or hasattr(shut_down, "__wrapped__"):
        return

    @functools.wraps(shut_down)
    def shutdown_backend(group: Any) -> None:
        if isinstance(group, NetfoldGroup):
            group.shutdown()
        else:
            shut_down(group)

    c10d._shutdown_backend = shutdown_backend


def create_with_job(options: Any, program_options: Any, succession: Succession | None = None) -> Collectives:
    """The world, or a group that requests a job of its own by options."""
    return _make(options, *open_group(options, program_options, succession))


def open_group(
    options: Any, program_options: Any, succession: Succession | None = None, gloo: Any = None
) -> tuple[Any, ...]:
    """Join a job, and return the parts of Collectives. The group's timeout bounds it as a whole. `succession`: by
    default the job ends with its ranks. `gloo`: by default another one. Raises DistBackendError."""
    seconds = options.timeout.total_seconds()
    deadline = time.monotonic() + seconds
    rank, size = options.group_rank, options.group_size
    store = dist.PrefixStore("netfold", options.store)
    try:
        job_options = TorchOptions.of(program_options)
        succession = succession or Succession()
        layout = rendezvous(store, rank, size, job_options, seconds, succession=succession)
        succession.on_job(layout.kept_job)
        store = dist.PrefixStore(layout.session, store)
        ranks = tuple(options.global_ranks_in_group) or tuple(range(size))
        recorder = FlightRecorder(layout.job, options.group_id, ranks, rank)
        session = open_session(layout, store, rank, recorder, deadline - time.monotonic(), run=succession.run)
    except (TrafficError, ConnectError, ValueError, dist.DistError) as error:  # the last: the store has ended
        raise dist.DistBackendError(f"netfold: {error}") from error
    if session.fallback_reason:
        log.warning("rank %d: all calls by Gloo: %s", rank, session.fallback_reason)
    elif rank == 0:
        where = f"job {layout.job} over {layout.hosts} hosts" if layout.job else "one host, in shared memory"
        log.info("%d ranks: %s", size, where)
    try:
        gloo = gloo or _create_gloo(options, store, layout, rank, deadline - time.monotonic())
    except BaseException as error:
        session.close()
        if isinstance(error, RuntimeError):  # of Gloo
            raise dist.DistBackendError(f"netfold: rank {rank}: Gloo does not connect: {error}") from error
        raise
    return layout, session, gloo, job_options, True


def _create_reconfigurable_gloo(options: Any) -> Any:
    """A Gloo backend without ranks yet, at this host's address in the fabric."""
    gloo_options = dist.ProcessGroupGloo._Options()
    gloo_options._timeout, gloo_options.enable_reconfigure = options.timeout, True
    gloo_options._devices = _gloo_devices(own_address())
    return dist.ProcessGroupGloo(options.store, options.group_rank, options.group_size, gloo_options)


def _create_gloo(
    options: Any, store: Any, layout: RankLayout, rank: int, seconds: float | None = None
) -> Any:
    """A Gloo backend of the group's ranks, at the addresses that netfold uses. `rank`: of the layout. `seconds`: for
    its connections; by default the group's timeout."""
    gloo_options = dist.ProcessGroupGloo._Options()
    gloo_options._timeout = options.timeout
    if seconds is not None:
        gloo_options._timeout = timedelta(seconds=max(_MIN_GLOO_S, seconds))
    own = layout.addresses[layout.places[rank]] if layout.addresses else "127.0.0.1"
    gloo_options._devices = _gloo_devices(own)
    gloo = dist.ProcessGroupGloo(store, options.group_rank, options.group_size, gloo_options)
    gloo._set_default_timeout(options.timeout)
    return gloo


def _gloo_devices(own: str) -> list[Any]:
    """GLOO_SOCKET_IFNAME's interfaces; by default the host's address in the fabric, because its name may resolve to
    another network. `own`: this address; "": unknown."""
    gloo = dist.ProcessGroupGloo
    interfaces = [name for name in os.environ.get("GLOO_SOCKET_IFNAME", "").split(",") if name]
    if interfaces:
        return [gloo.create_device(interface=name) for name in interfaces]
    address = bindable(own) if own else "0.0.0.0"
    return [gloo.create_default_device() if address == "0.0.0.0" else gloo.create_device(hostname=address)]


class NetfoldGroup(Collectives, dist.ProcessGroup):  # type: ignore[misc]
    """The door for PyTorch before 2.14, whose backends cannot be classes of Python: a process group of its own.
    `parts`: of Collectives."""

    def __init__(self, options: Any, *parts: Any) -> None:
        dist.ProcessGroup.__init__(self, options.group_rank, options.group_size)
        Collectives.__init__(self, options, *parts)
        register_backend(self, dist.ProcessGroup.BackendType.GLOO, self._gloo_backend)
