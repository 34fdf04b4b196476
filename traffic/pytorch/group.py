# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The process group `netfold`: sums, averages, and collectives that can be expressed as sums go through the network,
all others through an inner Gloo group."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from netfold.protocol.connection import ConnectError
from netfold.traffic.errors import TrafficError
from netfold.traffic.membership.host import bindable
from netfold.traffic.numerics import ReduceOp
from netfold.traffic.pytorch.options import TorchOptions
from netfold.traffic.pytorch.rendezvous import RankLayout, rendezvous
from netfold.traffic.pytorch.session import Session, open_session
from netfold.traffic.pytorch.staging import Staging
from netfold.traffic.pytorch.tensor_call import SUPPORTED_DTYPES, TensorCall
from netfold.traffic.pytorch.work import NetfoldWork, without_dynamo

log = logging.getLogger("netfold.torch")

_OPS = {dist.ReduceOp.SUM: ReduceOp.SUM, dist.ReduceOp.AVG: ReduceOp.AVERAGE}
GATHER_MAX_BYTES = 1 << 16
"""Size of the whole up to which all-gather and reduce-scatter are sums, which take one RTT. Above, a ring sends
less."""
EXACT_MAX_BYTES = 1 << 12
"""Size of all ranks' tensors together up to which floats are gathered and added in float64: exact but for one rounding,
where a sum in the network shares a scale among a packet's numbers."""

_CopyBack = Callable[[], None]


def create(options: Any, program_options: Any) -> Any:
    """Called by `init_process_group` and `new_group` with torch's _DistributedBackendOptions and the program's
    pg_options. Raises DistBackendError."""
    world = dist.distributed_c10d.GroupMember.WORLD
    if not isinstance(world, NetfoldGroup):
        return _create_world(options, program_options)
    store = dist.PrefixStore(f"netfold/{world.layout.session}", options.store)
    gloo = _create_gloo(options, store, world.layout, world.rank())
    if options.group_size == world.size():
        return NetfoldGroup(options, world.layout, world.session, gloo, owns_session=False)
    log.info("group %s: %d of %d ranks, by Gloo", options.group_id, options.group_size, world.size())
    return gloo


def _create_world(options: Any, program_options: Any) -> NetfoldGroup:
    seconds = options.timeout.total_seconds()
    rank, size = options.group_rank, options.group_size
    store = dist.PrefixStore("netfold", options.store)
    try:
        layout = rendezvous(store, rank, size, TorchOptions.of(program_options), seconds)
        store = dist.PrefixStore(layout.session, store)
        session = open_session(layout, store, rank, seconds)
    except (TrafficError, ConnectError, ValueError) as error:
        raise dist.DistBackendError(f"netfold: {error}") from error
    if rank == 0:
        where = f"job {layout.job} over {layout.hosts} hosts" if layout.job else "one host, in shared memory"
        log.info("%d ranks: %s", size, where)
    return NetfoldGroup(
        options, layout, session, _create_gloo(options, store, layout, rank), owns_session=True
    )


def _create_gloo(options: Any, store: Any, layout: RankLayout, rank: int) -> Any:
    """A Gloo backend of the group's ranks, at the addresses that netfold uses. `rank`: of the world."""
    gloo_options = dist.ProcessGroupGloo._Options()
    gloo_options._timeout = options.timeout
    gloo_options._devices = _gloo_devices(layout, rank)
    return dist.ProcessGroupGloo(store, options.group_rank, options.group_size, gloo_options)


def _gloo_devices(layout: RankLayout, rank: int) -> list[Any]:
    """GLOO_SOCKET_IFNAME's interfaces; by default the host's address in the fabric, because its name may resolve to
    another network."""
    gloo = dist.ProcessGroupGloo
    interfaces = [name for name in os.environ.get("GLOO_SOCKET_IFNAME", "").split(",") if name]
    if interfaces:
        return [gloo.create_device(interface=name) for name in interfaces]
    address = bindable(layout.addresses[layout.places[rank]]) if layout.job else "127.0.0.1"
    return [gloo.create_default_device() if address == "0.0.0.0" else gloo.create_device(hostname=address)]


class NetfoldGroup(dist.ProcessGroup):  # type: ignore[misc]
    """All ranks. Groups of all ranks share one session, which the first of them owns; collectives of different groups
    must be called in the same order at all ranks.

    Where this class overrides a method, it must override every one that PyProcessGroup.hpp dispatches to Python: for
    the others C++ runs Gloo with the interpreter's lock held, and Gloo's thread may wait for that lock. `_gloo_group`
    is a group of C++ alone, whose methods release the lock.
    """

    def __init__(
        self, options: Any, layout: RankLayout, session: Session, gloo: Any, owns_session: bool
    ) -> None:
        super().__init__(options.group_rank, options.group_size)
        self.layout = layout
        self.session = session
        self._group_id: str = options.group_id
        self._timeout_s: float = options.timeout.total_seconds()
        self._owns_session = owns_session
        self._process = os.getpid()
        self._staging = Staging()
        self._logged: set[str] = set()
        self._gloo_group = dist.ProcessGroup(options.store, options.group_rank, options.group_size)
        for group in (self, self._gloo_group):
            for device in ("cpu", "cuda"):
                group._register_backend(torch.device(device), dist.ProcessGroup.BackendType.GLOO, gloo)
            group._set_default_backend(dist.ProcessGroup.BackendType.GLOO)
        if owns_session:
            atexit.register(self._exit)

    def getBackendName(self) -> str:  # noqa: N802 (torch's name)
        return "netfold"

    # ---- collectives that are sums -------------------------------------------------------------------------------

    @without_dynamo
    def allreduce(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Any:
        op = _op_of(opts)
        if op is None or not self._is_supported(tensors):
            return self._fallback_to_gloo("allreduce", tensors, opts)
        (tensor,) = tensors
        whole = tensor.detach()
        _check_writable(whole)
        if whole.is_floating_point() and _nbytes(whole) * self.size() <= EXACT_MAX_BYTES:
            return self._reduce_exactly(whole, op, tensors, opts)
        flat = whole.contiguous().reshape(-1)
        is_integer_average = op is ReduceOp.AVERAGE and not whole.is_floating_point()

        def copy_back() -> None:
            if is_integer_average:  # as NCCL: the sum, divided and truncated
                flat.copy_(torch.div(flat, self.size(), rounding_mode="trunc"))
            if flat.data_ptr() != whole.data_ptr():
                whole.copy_(flat.view_as(whole))

        op = ReduceOp.SUM if is_integer_average else op
        return self._reduce("all-reduce", flat, op, tensors, opts, copy_back)

    @without_dynamo
    def broadcast(self, tensors: Sequence[torch.Tensor], opts: Any) -> Any:
        """The sum of the root's bytes, as int32, and zeros of the other ranks: exact."""
        if not _is_dense(tensors):
            return self._fallback_to_gloo("broadcast", tensors, opts)
        (tensor,) = tensors
        _check_writable(tensor.detach())
        whole = _zero_lanes(_nbytes(tensor), tensor.device)
        if self.rank() == opts.rootRank:
            _bytes_of(whole)[: _nbytes(tensor)].copy_(_bytes_of(tensor))

        def copy_back() -> None:
            _write_bytes(tensor, _bytes_of(whole)[: _nbytes(tensor)])

        return self._reduce("broadcast", whole, ReduceOp.SUM, tensors, opts, copy_back, opts.rootRank)

    @without_dynamo
    def barrier(self, opts: Any = None) -> Any:
        return self._reduce("barrier", torch.zeros(1, dtype=torch.int32), ReduceOp.SUM, [], opts, None)

    @without_dynamo
    def all_gather_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        _check_size("all-gather", output, tensor, self.size())
        if not (_is_dense([output]) and _is_dense([tensor]) and _nbytes(output) <= GATHER_MAX_BYTES):
            return self._fallback_to_gloo("_allgather_base", output, tensor, opts)
        return self._gather(tensor, [output], opts)

    _allgather_base = all_gather_single  # torch's name before 2.13

    @without_dynamo
    def allgather(
        self, outputs: Sequence[Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Any:
        dense = len(inputs) == 1 and _is_dense(inputs) and all(_is_dense([o]) for o in outputs[0])
        even = dense and all(_nbytes(o) == _nbytes(inputs[0]) for o in outputs[0])
        if not even or _nbytes(inputs[0]) * self.size() > GATHER_MAX_BYTES:
            return self._fallback_to_gloo("allgather", outputs, inputs, opts)
        return self._gather(inputs[0], outputs[0], opts)

    @without_dynamo
    def reduce_scatter_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        _check_size("reduce-scatter", tensor, output, self.size())
        op = _op_of(opts)
        if op is None or not self._is_summable([tensor], op) or _nbytes(tensor) > GATHER_MAX_BYTES:
            return self._fallback_to_gloo("_reduce_scatter_base", output, tensor, opts)
        return self._scatter(output, tensor.detach().reshape(-1).clone(), op, opts)

    _reduce_scatter_base = reduce_scatter_single

    @without_dynamo
    def reduce_scatter(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[Sequence[torch.Tensor]], opts: Any = None
    ) -> Any:
        op = _op_of(opts)
        parts = inputs[0]
        even = len(inputs) == 1 and all(p.numel() == outputs[0].numel() for p in parts)
        if op is None or not even or not all(self._is_summable([p], op) for p in parts):
            return self._fallback_to_gloo("reduce_scatter", outputs, inputs, opts)
        if _nbytes(parts[0]) * len(parts) > GATHER_MAX_BYTES:
            return self._fallback_to_gloo("reduce_scatter", outputs, inputs, opts)
        return self._scatter(outputs[0], torch.cat([p.detach().reshape(-1) for p in parts]), op, opts)

    # ---- collectives of Gloo -------------------------------------------------------------------------------------

    @without_dynamo
    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Any:
        return self._fallback_to_gloo("allreduce_coalesced", tensors, opts)

    @without_dynamo
    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        return self._fallback_to_gloo("all_gather_single_coalesced", outputs, inputs, opts)

    @without_dynamo
    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        return self._fallback_to_gloo("reduce_scatter_single_coalesced", outputs, inputs, opts)

    @without_dynamo
    def all_to_all_single(
        self, output: Any, tensor: Any, output_sizes: Any, input_sizes: Any, opts: Any = None
    ) -> Any:
        return self._fallback_to_gloo("all_to_all_single", output, tensor, output_sizes, input_sizes, opts)

    @without_dynamo
    def send(self, tensors: Any, rank: int, tag: int) -> Any:
        return self._fallback_to_gloo("send", tensors, rank, tag)

    @without_dynamo
    def recv(self, tensors: Any, rank: int, tag: int) -> Any:
        return self._fallback_to_gloo("recv", tensors, rank, tag)

    def _fallback_to_gloo(self, name: str, *arguments: Any) -> Any:
        if name not in self._logged:
            self._logged.add(name)
            log.info("%s: by Gloo for dtypes, operations and sizes that the network does not reduce", name)
        return getattr(self._gloo_group, name)(*(a for a in arguments if a is not None))

    # ---- how -----------------------------------------------------------------------------------------------------

    def _gather(self, mine: torch.Tensor, outputs: Sequence[torch.Tensor], opts: Any) -> Any:
        step = _nbytes(mine)
        whole = self._placed(mine)

        def copy_back() -> None:
            for number, output in enumerate(outputs):
                at = number * step if len(outputs) > 1 else 0
                _write_bytes(output, _bytes_of(whole)[at : at + _nbytes(output)])

        return self._reduce("all-gather", whole, ReduceOp.SUM, outputs, opts, copy_back)

    def _placed(self, mine: torch.Tensor) -> torch.Tensor:
        """The bytes of all ranks' tensors, as int32, with zeros for those of the other ranks: their sum is the gathered
        tensor."""
        step = _nbytes(mine)
        whole = _zero_lanes(step * self.size(), mine.device)
        _bytes_of(whole)[self.rank() * step : (self.rank() + 1) * step].copy_(_bytes_of(mine))
        return whole

    def _reduce_exactly(
        self, tensor: torch.Tensor, op: ReduceOp, results: Sequence[torch.Tensor], opts: Any
    ) -> NetfoldWork:
        """Gathers all ranks' floats and adds them in float64, in the order of ranks."""
        whole, nbytes = self._placed(tensor), _nbytes(tensor) * self.size()

        def copy_back() -> None:
            inputs = _bytes_of(whole)[:nbytes].view(tensor.dtype).view(self.size(), -1).double()
            total = inputs.sum(0) if op is ReduceOp.SUM else inputs.mean(0)
            tensor.copy_(total.to(tensor.dtype).view(tensor.shape))

        return self._reduce("all-reduce", whole, ReduceOp.SUM, results, opts, copy_back)

    def _scatter(self, output: torch.Tensor, whole: torch.Tensor, op: ReduceOp, opts: Any) -> Any:
        mine = output.numel()

        def copy_back() -> None:
            output.detach().copy_(whole[self.rank() * mine : (self.rank() + 1) * mine].view_as(output))

        return self._reduce("reduce-scatter", whole, op, [output], opts, copy_back)

    def _reduce(
        self,
        name: str,
        flat: torch.Tensor,
        op: ReduceOp,
        results: Sequence[torch.Tensor],
        opts: Any,
        copy_back: _CopyBack | None,
        root: int = 0,
    ) -> NetfoldWork:
        with torch.profiler.record_function(f"netfold:{name}"):
            work = NetfoldWork(results, f"rank {self.rank()}: {name}")
            deadline = time.monotonic() + self._timeout_of(opts)
            context = zlib.crc32(f"{self._group_id} {name} {root}".encode())
            if flat.numel() == 0:
                work.finish(None)
            elif flat.is_cuda:
                self.session.submit(self._staging.call(flat, op, deadline, work, copy_back, context))
            else:
                call = TensorCall(
                    flat, op, deadline, lambda error: work.finish(error, copy_back), context=context
                )
                self.session.submit(call)
        return work

    def _timeout_of(self, opts: Any) -> float:
        """Seconds; the group's for a call without a timeout of its own."""
        own = getattr(opts, "timeout", None)
        seconds: float = 0.0 if own is None else own.total_seconds()
        return seconds if seconds > 0 else self._timeout_s

    def _is_supported(self, tensors: Sequence[torch.Tensor]) -> bool:
        return _is_dense(tensors) and tensors[0].dtype in SUPPORTED_DTYPES

    def _is_summable(self, tensors: Sequence[torch.Tensor], op: ReduceOp) -> bool:
        """Whether the engine reduces these with this operation. Averages are of floats."""
        return self._is_supported(tensors) and (op is ReduceOp.SUM or tensors[0].is_floating_point())

    # ---- the end -------------------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Called by `destroy_process_group`."""
        if self._owns_session:
            atexit.unregister(self._exit)
            self.session.close()

    def abort(self) -> None:
        self.shutdown()

    def _exit(self) -> None:
        """A program that ends without destroying its groups leaves the job; one that ends in an exception cancels it. A
        forked child has none of the session's threads."""
        if os.getpid() != self._process:
            return
        if getattr(sys, "last_value", None) is None:
            self.session.close()
            return
        with contextlib.suppress(RuntimeError):  # from Python 3.12 on no thread can be started this late
            self.session.abort()


def _op_of(opts: Any) -> ReduceOp | None:
    """None: an operation of Gloo's. torch's options hold theirs in one of two ways."""
    return _OPS.get(getattr(opts.reduceOp, "op", opts.reduceOp)) if opts is not None else ReduceOp.SUM


def _is_dense(tensors: Sequence[torch.Tensor]) -> bool:
    return (
        len(tensors) == 1 and tensors[0].layout is torch.strided and tensors[0].device.type in ("cpu", "cuda")
    )


def _check_writable(tensor: torch.Tensor) -> None:
    """Raises ValueError for a tensor whose elements share memory, as after `expand`."""
    if torch._debug_has_internal_overlap(tensor) == 1:
        raise ValueError("elements of the tensor share memory (an expanded tensor?); clone it first")


def _check_size(name: str, whole: torch.Tensor, part: torch.Tensor, ranks: int) -> None:
    """Raises ValueError unless `whole` holds one `part` of each rank."""
    if whole.numel() != part.numel() * ranks or whole.dtype != part.dtype:
        raise ValueError(
            f"{name}: {whole.numel()} x {whole.dtype} for {ranks} ranks with {part.numel()} x {part.dtype} each; "
            "the sizes must match"
        )


def _nbytes(tensor: torch.Tensor) -> int:
    return int(tensor.numel() * tensor.element_size())


def _zero_lanes(nbytes: int, device: torch.device) -> torch.Tensor:
    """Zeros: as many int32 as `nbytes` need."""
    return torch.zeros(-(-nbytes // 4), dtype=torch.int32, device=device)


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def _write_bytes(tensor: torch.Tensor, data: torch.Tensor) -> None:
    """Into a tensor of any dtype and strides."""
    if tensor.is_contiguous():
        _bytes_of(tensor).copy_(data)
    else:
        tensor.detach().copy_(data.clone().view(tensor.dtype).view(tensor.shape))
