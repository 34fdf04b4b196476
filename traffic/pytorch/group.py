# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The process group `netfold`: sums, averages and what follows from them go through the network, all else through an
inner Gloo group, to which torch's own ProcessGroup hands whatever this one does not override."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from netfold.api.connection import ConnectError
from netfold.traffic.errors import TrafficError
from netfold.traffic.membership.host import bindable
from netfold.traffic.numerics import ReduceOp
from netfold.traffic.pytorch.call import KINDS, Call
from netfold.traffic.pytorch.options import TorchOptions
from netfold.traffic.pytorch.places import Plan, agree
from netfold.traffic.pytorch.session import Session, open_session
from netfold.traffic.pytorch.staging import Staging
from netfold.traffic.pytorch.work import NetfoldWork

log = logging.getLogger("netfold.torch")

_OPS = {dist.ReduceOp.SUM: ReduceOp.SUM, dist.ReduceOp.AVG: ReduceOp.AVERAGE}
GATHERED_MAX = 1 << 16
"""Bytes of the whole up to which all-gather and reduce-scatter are sums: one round trip. Above, a ring moves less."""

_Sums = Callable[[], None]


def create(common: Any, chosen: Any) -> dist.ProcessGroup:
    """What `init_process_group` and `new_group` call; `common`: torch's _DistributedBackendOptions. Raises
    DistBackendError."""
    world = dist.distributed_c10d.GroupMember.WORLD
    if not isinstance(world, NetfoldGroup):
        # torchrun's store outlives groups, and names of groups begin anew with each world: what an earlier one has left
        # there must not be found.
        number = next(NetfoldGroup.worlds)
        common.store = dist.PrefixStore(f"netfold{number}", common.store)
        return _first(common, chosen, number)
    common.store = dist.PrefixStore(f"netfold{world.number}", common.store)
    if common.group_size == world.size():
        return NetfoldGroup(common, world.plan, world.session, False, world.number)
    log.info("group %s: %d of %d ranks, by Gloo", common.group_id, common.group_size, world.size())
    return GlooGroup(common, world.plan, world.rank())


def _first(common: Any, chosen: Any, number: int) -> NetfoldGroup:
    seconds = common.timeout.total_seconds()
    rank, size = common.group_rank, common.group_size
    try:
        options = TorchOptions.of(chosen)
        plan = agree(common.store, rank, size, options, seconds)
        session = open_session(plan, common.store, rank, seconds)
    except (TrafficError, ConnectError, ValueError) as error:
        raise dist.DistBackendError(f"netfold: {error}") from error
    if rank == 0:
        where = f"job {plan.job} over {plan.hosts} hosts" if plan.job else "one host, in shared memory"
        log.info("%d ranks: %s; what is no sum, average, broadcast or barrier goes by Gloo", size, where)
    return NetfoldGroup(common, plan, session, True, number)


class GlooGroup(dist.ProcessGroup):  # type: ignore[misc]
    """Some of the ranks, by Gloo alone, between the addresses that netfold uses."""

    def __init__(self, common: Any, plan: Plan, rank: int) -> None:
        """`rank`: of the world."""
        super().__init__(common.group_rank, common.group_size)
        self._seconds: float = common.timeout.total_seconds()
        kind = dist.ProcessGroup.BackendType.GLOO
        gloo = dist.ProcessGroupGloo
        options = gloo._Options()
        options._timeout = common.timeout
        options._devices = _gloo_devices(plan, rank)
        self._gloo = gloo(common.store, common.group_rank, common.group_size, options)
        for device in ("cpu", "cuda"):
            self._register_backend(torch.device(device), kind, self._gloo)
        self._set_default_backend(kind)


def _gloo_devices(plan: Plan, rank: int) -> list[Any]:
    """At GLOO_SOCKET_IFNAME's interfaces, or else at the host's address in the fabric: its name may lead elsewhere."""
    gloo = dist.ProcessGroupGloo
    interfaces = [name for name in os.environ.get("GLOO_SOCKET_IFNAME", "").split(",") if name]
    if interfaces:
        return [gloo.create_device(interface=name) for name in interfaces]
    address = bindable(plan.addresses[plan.places[rank]]) if plan.job else "127.0.0.1"
    return [gloo.create_default_device() if address == "0.0.0.0" else gloo.create_device(hostname=address)]


class NetfoldGroup(GlooGroup):
    """All ranks. `owner`: the one that closes the session, which further groups of all ranks share. `number`: of the
    world; every rank of it has made as many before."""

    worlds = itertools.count()

    def __init__(self, common: Any, plan: Plan, session: Session, owner: bool, number: int) -> None:
        super().__init__(common, plan, common.group_rank)
        self.plan = plan
        self.session = session
        self._owner = owner
        self.number = number
        self._staging = Staging()
        self._said: set[str] = set()
        if owner:
            atexit.register(self._exit)

    def getBackendName(self) -> str:  # noqa: N802 (torch's name)
        return "netfold"

    # ---- what is a sum -------------------------------------------------------------------------------------------

    def allreduce(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Any:
        op = _OPS.get(_kind(opts)) if opts is not None else ReduceOp.SUM
        if op is None or not self._adds_up(tensors, op):
            return self._by_gloo("allreduce", tensors, opts)
        (tensor,) = tensors
        whole = tensor.detach()
        flat = whole.contiguous().reshape(-1)
        back: _Sums | None = None if whole.is_contiguous() else lambda: whole.copy_(flat.view_as(whole))
        return self._sum("all-reduce", flat, op, tensors, opts, back)

    def broadcast(self, tensors: Sequence[torch.Tensor], opts: Any) -> Any:
        """The sum of the root's bytes and of zeros, which is exact."""
        if not self._is_plain(tensors):
            return self._by_gloo("broadcast", tensors, opts)
        (tensor,) = tensors
        whole = _lanes(_nbytes(tensor), tensor.device)
        if self.rank() == opts.rootRank:
            _bytes_of(whole)[: _nbytes(tensor)].copy_(_bytes_of(tensor))

        def back() -> None:
            _into(tensor, _bytes_of(whole)[: _nbytes(tensor)])

        return self._sum("broadcast", whole, ReduceOp.SUM, tensors, opts, back)

    def barrier(self, opts: Any = None) -> Any:
        return self._sum("barrier", torch.zeros(1, dtype=torch.int32), ReduceOp.SUM, [], opts, None)

    def all_gather_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        if not (self._is_plain([output]) and self._is_plain([tensor]) and _nbytes(output) <= GATHERED_MAX):
            return self._by_gloo("_allgather_base", output, tensor, opts)
        return self._gather(tensor, [output], opts)

    _allgather_base = all_gather_single  # torch's name before 2.13

    def allgather(
        self, outputs: Sequence[Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Any:
        small = len(inputs) == 1 and self._is_plain(inputs) and all(self._is_plain([o]) for o in outputs[0])
        even = small and all(_nbytes(o) == _nbytes(inputs[0]) for o in outputs[0])
        if not even or _nbytes(inputs[0]) * self.size() > GATHERED_MAX:
            return self._by_gloo("allgather", outputs, inputs, opts)
        return self._gather(inputs[0], outputs[0], opts)

    def reduce_scatter_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        op = _OPS.get(_kind(opts)) if opts is not None else ReduceOp.SUM
        if op is None or not self._adds_up([tensor], op) or _nbytes(tensor) > GATHERED_MAX:
            return self._by_gloo("_reduce_scatter_base", output, tensor, opts)
        return self._scatter(output, tensor.detach().reshape(-1).clone(), op, opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[Sequence[torch.Tensor]], opts: Any = None
    ) -> Any:
        op = _OPS.get(_kind(opts)) if opts is not None else ReduceOp.SUM
        parts = inputs[0]
        even = len(inputs) == 1 and all(p.numel() == outputs[0].numel() for p in parts)
        if op is None or not even or not all(self._adds_up([p], op) for p in parts):
            return self._by_gloo("reduce_scatter", outputs, inputs, opts)
        if _nbytes(parts[0]) * len(parts) > GATHERED_MAX:
            return self._by_gloo("reduce_scatter", outputs, inputs, opts)
        return self._scatter(outputs[0], torch.cat([p.detach().reshape(-1) for p in parts]), op, opts)

    # ---- how -----------------------------------------------------------------------------------------------------

    def _gather(self, mine: torch.Tensor, outputs: Sequence[torch.Tensor], opts: Any) -> Any:
        """The sum of arrays that are zero but for each rank's own place."""
        step = _nbytes(mine)
        total = step * self.size()
        whole = _lanes(total, mine.device)
        _bytes_of(whole)[self.rank() * step : (self.rank() + 1) * step].copy_(_bytes_of(mine))

        def back() -> None:
            at = 0
            for output in outputs:
                _into(output, _bytes_of(whole)[at : at + _nbytes(output)])
                at += _nbytes(output)

        return self._sum("all-gather", whole, ReduceOp.SUM, outputs, opts, back)

    def _scatter(self, output: torch.Tensor, whole: torch.Tensor, op: ReduceOp, opts: Any) -> Any:
        mine = output.numel()

        def back() -> None:
            output.detach().copy_(whole[self.rank() * mine : (self.rank() + 1) * mine].view_as(output))

        return self._sum("reduce-scatter", whole, op, [output], opts, back)

    def _sum(
        self,
        name: str,
        flat: torch.Tensor,
        op: ReduceOp,
        results: Sequence[torch.Tensor],
        opts: Any,
        back: _Sums | None,
    ) -> NetfoldWork:
        work = NetfoldWork(results, f"rank {self.rank()}: {name}")
        deadline = time.monotonic() + self._timeout_of(opts)
        if flat.numel() == 0:
            work.finish(None)
        elif flat.is_cuda:
            self.session.submit(self._staging.call(flat, op, deadline, work, back))
        else:

            def done(error: Exception | None) -> None:
                if error is None and back is not None:
                    back()
                work.finish(error)

            self.session.submit(Call(flat, op, deadline, done))
        return work

    def _timeout_of(self, opts: Any) -> float:
        """Seconds; a call without one of its own has the group's."""
        own = getattr(opts, "timeout", None)
        seconds: float = 0.0 if own is None else own.total_seconds()
        return seconds if seconds > 0 else self._seconds

    def _adds_up(self, tensors: Sequence[torch.Tensor], op: ReduceOp) -> bool:
        """Whether the engine adds these up. Averages are of floats."""
        if not self._is_plain(tensors) or tensors[0].dtype not in KINDS:
            return False
        return op is ReduceOp.SUM or tensors[0].dtype.is_floating_point

    def _is_plain(self, tensors: Sequence[torch.Tensor]) -> bool:
        return (
            len(tensors) == 1
            and tensors[0].layout is torch.strided
            and tensors[0].device.type in ("cpu", "cuda")
        )

    def _by_gloo(self, name: str, *arguments: Any) -> Any:
        """By the backend itself: torch's own method of a name that this class has would come back here."""
        if name not in self._said:
            self._said.add(name)
            log.info("%s: by Gloo where the network adds up no such numbers, or would win nothing", name)
        return getattr(self._gloo, name)(*(a for a in arguments if a is not None))

    # ---- the end -------------------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """By `destroy_process_group`."""
        if self._owner:
            atexit.unregister(self._exit)
            self.session.close()

    def abort(self) -> None:
        self.shutdown()

    def _exit(self) -> None:
        """A program that ends without destroying its groups leaves the job; one that ends in an exception ends it, at
        the latest by its silence."""
        if getattr(sys, "last_value", None) is None:
            self.session.close()
            return
        with contextlib.suppress(
            RuntimeError
        ):  # from Python 3.12 on nothing that needs a thread begins this late
            self.session.give_up()


def _kind(opts: Any) -> Any:
    """ReduceOp.SUM and the like, of options that hold it in one of two ways."""
    return getattr(opts.reduceOp, "op", opts.reduceOp)


def _nbytes(tensor: torch.Tensor) -> int:
    return int(tensor.numel() * tensor.element_size())


def _lanes(nbytes: int, device: torch.device) -> torch.Tensor:
    """Zeros, as many int32 as so many bytes need."""
    return torch.zeros(-(-nbytes // 4), dtype=torch.int32, device=device)


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def _into(tensor: torch.Tensor, found: torch.Tensor) -> None:
    """Bytes into a tensor of any kind of numbers and any strides."""
    if tensor.is_contiguous():
        _bytes_of(tensor).copy_(found)
    else:
        tensor.detach().copy_(found.clone().view(tensor.dtype).view(tensor.shape))
