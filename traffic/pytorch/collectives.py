# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The collectives of a group: sums, averages, and those that can be expressed as sums go through the network.
All others go through an inner Gloo group."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist

from netfold.traffic.engine.blocks import Blocks, CallForm
from netfold.traffic.engine.call_log import CallKind
from netfold.traffic.numerics import ReduceOp
from netfold.traffic.pytorch.flight_recorder import kind_of
from netfold.traffic.pytorch.gathered_ops import GatheredOp, float_sum, gathered_op, operation_of
from netfold.traffic.pytorch.gloo_arguments import for_gloo
from netfold.traffic.pytorch.options import TorchOptions
from netfold.traffic.pytorch.rendezvous import RankLayout
from netfold.traffic.pytorch.session import Session
from netfold.traffic.pytorch.staging import Staging
from netfold.traffic.pytorch.tensor_bytes import (
    bytes_of,
    check_size,
    check_writable,
    is_dense,
    nbytes,
    write_bytes,
    zero_lanes,
)
from netfold.traffic.pytorch.tensor_call import (
    ROTATED_DTYPES,
    SUPPORTED_DTYPES,
    TensorCall,
    current_gradient,
)
from netfold.traffic.pytorch.work import NetfoldWork, without_dynamo

log = logging.getLogger("netfold.torch")

_OPS = {dist.ReduceOp.SUM: ReduceOp.SUM, dist.ReduceOp.AVG: ReduceOp.AVERAGE}
GATHER_MAX_BYTES = 1 << 16
"""Size S of the whole up to which an all-gather of n ranks is a sum where there are no targets; maxima and the like are
reductions of what is gathered. A sum takes one RTT but moves S on a host's link,
Gloo's ring (n - 1) / n S. Reduce-scatter is a sum of any size there: Gloo's reduces the whole at every rank, which
moves 2 (n - 1) / n S."""
MIN_GATHER_HOSTS = 3
"""Hosts from which larger all-gathers have targets. With two a gather moves 6 % more than a ring, also beside a
reduce-scatter in the other direction; with three the two move 13 % less than rings, with eight 26 %."""
EXACT_MAX_BYTES = 1 << 12
"""Size of all ranks' tensors together up to which floats are gathered and added in float64: exact but for one rounding,
where a sum in the network shares a scale among a packet's numbers."""
NAMES_BEFORE_2_13 = {
    "all_to_all_single": "alltoall_base",
    "all_gather_single_coalesced": "allgather_into_tensor_coalesced",
    "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced",
}
"""Names of Gloo's methods."""

_NO_SUM = "it is no sum"
_LAYOUT = "sparse, or of several dtypes, devices or layouts"
_LISTS = "lists of tensors"
_UNEVEN = "a part of another size than this rank's tensor"
_TOO_LARGE = f"more than {GATHER_MAX_BYTES >> 10} KiB at all ranks together"
_POINT_TO_POINT = ("send", "recv", "recv_anysource")

_CopyBack = Callable[[], None]


@dataclass(frozen=True)
class ByGloo:
    """Gloo carries the collective, for this reason."""

    reason: str


def _has_ranks_of_world(options: Any) -> bool:
    """Whether the ranks of a group of all ranks are those of the world."""
    return list(options.global_ranks_in_group) == [*range(options.group_size)]


def _name_of(op: Any) -> str:
    return getattr(op, "name", f"{op}")


def _on_cuda(arguments: Sequence[Any]) -> bool:
    """Whether a tensor of a call's arguments, which may be lists of lists, is on a GPU."""
    return any(
        one.is_cuda if isinstance(one, torch.Tensor) else isinstance(one, list | tuple) and _on_cuda(one)
        for one in arguments
    )


def register_backend(group: Any, kind: Any, backend: Any) -> None:
    """Makes a backend that of a group of torch, for all devices. `kind`: of torch's BackendType."""
    for device in ("cpu", "cuda"):
        group._register_backend(torch.device(device), kind, backend)
    group._set_default_backend(kind)


class Collectives:
    """The calls of a group's rank: of the world, or of a group with a job of its own. Groups of all ranks without one
    share the world's session, which the world owns; their collectives must be called in the same order at all ranks.

    A door of torch (create_group.py, backend.py) inherits them. They are all that torch dispatches to Python in either
    door: for the others C++ would run Gloo with the interpreter's lock held, and Gloo's thread may wait for that lock.
    `_gloo_group` is a group of C++ alone, whose methods release the lock.
    """

    def __init__(
        self,
        options: Any,
        layout: RankLayout,
        session: Session,
        gloo: Any,
        job_options: TorchOptions,
        owns_session: bool,
    ) -> None:
        self.job_options = job_options
        self.layout = layout
        self.session = session
        self._group_id: str = options.group_id
        self._gloo_backend = gloo
        self._owns_session = owns_session
        self._has_targets = session.has_targets and (owns_session or _has_ranks_of_world(options))
        self._process = os.getpid()
        self._staging = Staging()
        self._logged: set[tuple[str, str]] = set()
        self._gloo_group = dist.ProcessGroup(options.store, options.group_rank, options.group_size)
        register_backend(self._gloo_group, dist.ProcessGroup.BackendType.GLOO, gloo)
        if owns_session:
            atexit.register(self._exit)

    @property
    def fallback_reason(self) -> str:
        """Why all calls of the group go by Gloo; "": its job has started."""
        return self.session.fallback_reason

    # torch's C++ classes have these two
    rank: Callable[[], int]
    size: Callable[[], int]

    def getBackendName(self) -> str:  # noqa: N802 (torch's name)
        return "netfold"

    # ---- collectives that are sums -------------------------------------------------------------------------------

    @without_dynamo
    def allreduce(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Any:
        op = self._op_of(opts, tensors) if len(tensors) == 1 else ByGloo(_LISTS)
        if isinstance(op, ByGloo):
            return self._fallback_to_gloo(op.reason, "allreduce", tensors, opts)
        (tensor,) = tensors
        whole = tensor.data
        check_writable(whole)
        flat = whole.contiguous().reshape(-1)

        def copy_back() -> None:
            if flat.data_ptr() != whole.data_ptr():
                whole.copy_(flat.view_as(whole))

        return self._reduce_to("all-reduce", flat, op, tensors, opts, copy_back)

    @without_dynamo
    def allreduce_coalesced(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Any:
        op = self._op_of(opts, tensors)
        if isinstance(op, ByGloo):
            return self._fallback_to_gloo(op.reason, "allreduce_coalesced", tensors, opts)
        for tensor in tensors:
            check_writable(tensor.detach())
        flat = torch.cat([t.detach().reshape(-1) for t in tensors])

        def copy_back() -> None:
            for tensor, part in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
                tensor.data.copy_(part.view_as(tensor))

        return self._reduce_to("all-reduce", flat, op, tensors, opts, copy_back)

    @without_dynamo
    def broadcast(self, tensors: Sequence[torch.Tensor], opts: Any) -> Any:
        """A gather of the root's bytes, as int32. The other ranks have zeros, so it may also be a sum."""
        if self.fallback_reason or not is_dense(tensors):
            return self._fallback_to_gloo(_LAYOUT, "broadcast", tensors, opts)
        (tensor,) = tensors
        check_writable(tensor.detach())
        whole = zero_lanes(nbytes(tensor), tensor.device)
        if self.rank() == opts.rootRank:
            bytes_of(whole)[: nbytes(tensor)].copy_(bytes_of(tensor))

        def copy_back() -> None:
            write_bytes(tensor, bytes_of(whole)[: nbytes(tensor)])

        root = f"from {opts.rootRank}"
        blocks = self._block_of(CallForm.GATHER, whole, opts.rootRank)
        return self._reduce("broadcast", whole, ReduceOp.SUM, tensors, opts, copy_back, root, blocks=blocks)

    @without_dynamo
    def reduce(self, tensors: Sequence[torch.Tensor], opts: Any) -> Any:
        op = self._op_of(opts, tensors) if self._has_targets else ByGloo(_NO_SUM)
        if isinstance(op, ByGloo):
            return self._fallback_to_gloo(op.reason, "reduce", tensors, opts)
        (tensor,) = tensors
        check_writable(tensor.detach())
        flat = tensor.detach().clone(memory_format=torch.contiguous_format).reshape(-1)

        def copy_back() -> None:
            if self.rank() == opts.rootRank:
                tensor.data.copy_(flat.view_as(tensor))

        blocks = self._block_of(CallForm.SCATTER, flat, opts.rootRank)
        return self._reduce_to("reduce", flat, op, tensors, opts, copy_back, blocks, f"to {opts.rootRank}")

    @without_dynamo
    def barrier(self, opts: Any = None) -> Any:
        """The ranks meet in the opening of a call without elements. Members that know no targets make none."""
        if self.fallback_reason:
            return self._fallback_to_gloo(self.fallback_reason, "barrier", opts)
        meeting = torch.zeros(0 if self._has_targets else 1, dtype=torch.int32)
        return self._reduce("barrier", meeting, ReduceOp.SUM, [], opts, None)

    @without_dynamo
    def all_gather_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        check_size("all-gather", output, tensor, self.size())
        reason = self._why_not_gathered([output], [tensor])
        if reason:
            return self._fallback_to_gloo(reason, "_allgather_base", output, tensor, opts)
        return self._gather(
            bytes_of(tensor), lambda rows: write_bytes(output, rows.reshape(-1)), [output], opts
        )

    _allgather_base = all_gather_single  # torch's name before 2.13

    @without_dynamo
    def all_gather_single_coalesced(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Any:
        for output, tensor in zip(outputs, inputs, strict=True):
            check_size("all-gather", output, tensor, self.size())
        reason = self._why_not_gathered(outputs, inputs)
        if reason:
            return self._fallback_to_gloo(reason, "all_gather_single_coalesced", outputs, inputs, opts)

        def write(rows: torch.Tensor) -> None:
            for output, columns in zip(outputs, rows.split([nbytes(t) for t in inputs], 1), strict=True):
                write_bytes(output, columns.reshape(-1))

        return self._gather(torch.cat([bytes_of(t) for t in inputs]), write, outputs, opts)

    allgather_into_tensor_coalesced = all_gather_single_coalesced  # torch's name before 2.13

    @without_dynamo
    def allgather(
        self, outputs: Sequence[Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Any:
        reason = self._why_not_gathered(outputs[0], inputs) if len(inputs) == 1 else _LISTS
        sizes = [nbytes(output) for output in outputs[0]]
        if not reason and sizes[self.rank()] != nbytes(inputs[0]):
            reason = _UNEVEN
        if reason:
            return self._fallback_to_gloo(reason, "allgather", outputs, inputs, opts)

        def write(rows: Sequence[torch.Tensor]) -> None:
            for output, row in zip(outputs[0], rows, strict=True):
                write_bytes(output, row)

        return self._gather(bytes_of(inputs[0]), write, outputs[0], opts, sizes)

    @without_dynamo
    def reduce_scatter_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        check_size("reduce-scatter", tensor, output, self.size())
        op = self._op_of(opts, [tensor])
        if isinstance(op, ByGloo):
            return self._fallback_to_gloo(op.reason, "_reduce_scatter_base", output, tensor, opts)
        return self._scatter([output], tensor.detach().reshape(-1).clone(), self._evenly(tensor), op, opts)

    _reduce_scatter_base = reduce_scatter_single

    @without_dynamo
    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Any:
        for output, tensor in zip(outputs, inputs, strict=True):
            check_size("reduce-scatter", tensor, output, self.size())
        op = self._op_of(opts, inputs)
        if isinstance(op, ByGloo):
            return self._fallback_to_gloo(op.reason, "reduce_scatter_single_coalesced", outputs, inputs, opts)
        rows = torch.cat([t.detach().reshape(self.size(), -1) for t in inputs], 1)
        return self._scatter(outputs, rows.view(-1), self._evenly(rows), op, opts)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced  # torch's name before 2.13

    @without_dynamo
    def reduce_scatter(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[Sequence[torch.Tensor]], opts: Any = None
    ) -> Any:
        parts = inputs[0]
        sizes = [part.numel() for part in parts]
        if len(inputs) != 1:
            op: ReduceOp | GatheredOp | ByGloo = ByGloo(_LISTS)
        else:
            fits = sizes[self.rank()] == outputs[0].numel()
            op = self._op_of(opts, parts) if fits else ByGloo(_UNEVEN)
        if isinstance(op, ByGloo):
            return self._fallback_to_gloo(op.reason, "reduce_scatter", outputs, inputs, opts)
        return self._scatter(outputs, torch.cat([p.detach().reshape(-1) for p in parts]), sizes, op, opts)

    # ---- collectives of Gloo -------------------------------------------------------------------------------------

    @without_dynamo
    def all_to_all_single(
        self, output: Any, tensor: Any, output_sizes: Any, input_sizes: Any, opts: Any = None
    ) -> Any:
        return self._fallback_to_gloo(
            _NO_SUM, "all_to_all_single", output, tensor, output_sizes, input_sizes, opts
        )

    alltoall_base = all_to_all_single  # torch's name before 2.13

    @without_dynamo
    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        return self._fallback_to_gloo(_NO_SUM, "alltoall", outputs, inputs, opts)

    @without_dynamo
    def gather(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        return self._fallback_to_gloo(_NO_SUM, "gather", outputs, inputs, opts)

    @without_dynamo
    def scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        return self._fallback_to_gloo(_NO_SUM, "scatter", outputs, inputs, opts)

    @without_dynamo
    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        return self._fallback_to_gloo(_NO_SUM, "allgather_coalesced", outputs, inputs, opts)

    @without_dynamo
    def send(self, tensors: Any, rank: int, tag: int) -> Any:
        return self._fallback_to_gloo(_NO_SUM, "send", tensors, rank, tag)

    @without_dynamo
    def recv(self, tensors: Any, rank: int, tag: int) -> Any:
        return self._fallback_to_gloo(_NO_SUM, "recv", tensors, rank, tag)

    @without_dynamo
    def recv_anysource(self, tensors: Any, tag: int) -> Any:
        return self._fallback_to_gloo(_NO_SUM, "recv_anysource", tensors, tag)

    recvAnysource = recv_anysource  # noqa: N815 (the name in C++, by which other methods are dispatched)

    def _fallback_to_gloo(self, reason: str, name: str, *arguments: Any) -> Any:
        if self.fallback_reason:
            reason, arguments = self.fallback_reason, for_gloo(name, arguments, self.size())
        self.session.reporter.by_gloo(f"{name.lstrip('_')} ({reason})")
        if (name, reason) not in self._logged:
            self._logged.add((name, reason))
            log.info("%s: by Gloo: %s", name.lstrip("_"), reason)
        if not hasattr(self._gloo_group, name):
            name = NAMES_BEFORE_2_13[name]
        work = getattr(self._gloo_group, name)(*(a for a in arguments if a is not None))
        if name in _POINT_TO_POINT or _on_cuda(arguments):
            return work
        return self.session.watch(work, f"rank {self.rank()}: {name.lstrip('_')} by Gloo")

    # ---- how -----------------------------------------------------------------------------------------------------

    def _gather(
        self,
        mine: torch.Tensor,
        write: Callable[[Any], None],
        results: Sequence[torch.Tensor],
        opts: Any,
        sizes: Sequence[int] | None = None,
    ) -> NetfoldWork:
        """Gathers the ranks' bytes (uint8); `write` gets them with a row for each rank. `sizes`: of the rows; None: as
        many bytes at each rank, and rows of one tensor."""
        strides = self._strides(sizes or [len(mine)] * self.size())
        whole, blocks = self._placed(mine, strides)

        def copy_back() -> None:
            found = bytes_of(whole)[: sum(strides)]
            if sizes is None:
                write(found.view(self.size(), -1)[:, : len(mine)])
            else:
                write([row[:size] for row, size in zip(found.split(strides), sizes, strict=True)])

        return self._reduce("all-gather", whole, ReduceOp.SUM, results, opts, copy_back, blocks=blocks)

    def _strides(self, sizes: Sequence[int]) -> list[int]:
        """The bytes of the ranks' places. Blocks are whole words. Without them, a rank may be of a version that knows
        no blocks, and has the bytes of one rank behind those of another."""
        return [-(-size // 4) * 4 for size in sizes] if self._has_targets else list(sizes)

    def _placed(self, mine: torch.Tensor, strides: Sequence[int]) -> tuple[torch.Tensor, Blocks | None]:
        """The rank's bytes at its place, and zeros for the other ranks: the sum is the gathered bytes."""
        whole = zero_lanes(sum(strides), mine.device)
        first = sum(strides[: self.rank()])
        bytes_of(whole)[first : first + len(mine)].copy_(mine)
        return whole, self._blocks(CallForm.GATHER, [stride // 4 for stride in strides])

    def _evenly(self, whole: torch.Tensor) -> list[int]:
        return [whole.numel() // self.size()] * self.size()

    def _blocks(self, form: CallForm, sizes: Sequence[int]) -> Blocks | None:
        """A block of each rank; None: the call is a sum. Their owners are the ranks' hosts."""
        return Blocks(form, tuple(sizes), self.layout.places) if self._has_targets else None

    def _block_of(self, form: CallForm, whole: torch.Tensor, rank: int) -> Blocks | None:
        """One block, of one rank."""
        return Blocks(form, (whole.numel(),), (self.layout.places[rank],)) if self._has_targets else None

    def _why_not_gathered(self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> str:
        """Why Gloo gathers; "": the network does."""
        if self.fallback_reason:
            return self.fallback_reason
        if not inputs or not all(is_dense([t]) for t in (*outputs, *inputs)):
            return _LAYOUT
        if self._has_targets and self.layout.hosts >= MIN_GATHER_HOSTS:
            return ""
        return "" if sum(map(nbytes, outputs)) <= GATHER_MAX_BYTES else _TOO_LARGE

    def _scatter(
        self,
        outputs: Sequence[torch.Tensor],
        flat: torch.Tensor,
        sizes: Sequence[int],
        op: ReduceOp | GatheredOp,
        opts: Any,
    ) -> NetfoldWork:
        """Reduces `flat`, which has `sizes` elements for each rank; `outputs` divide this rank's."""

        def copy_back() -> None:
            parts = flat.split(list(sizes))[self.rank()].split([o.numel() for o in outputs])
            for output, part in zip(outputs, parts, strict=True):
                output.data.copy_(part.view_as(output))

        blocks = self._blocks(CallForm.SCATTER, sizes)
        return self._reduce_to("reduce-scatter", flat, op, outputs, opts, copy_back, blocks)

    def _reduce_to(
        self,
        name: str,
        flat: torch.Tensor,
        op: ReduceOp | GatheredOp,
        results: Sequence[torch.Tensor],
        opts: Any,
        copy_back: _CopyBack,
        blocks: Blocks | None = None,
        detail: str = "",
    ) -> NetfoldWork:
        """Replaces `flat`, or this rank's blocks of it, by the reduction over all ranks. Averages of integers are
        truncated, as NCCL's."""
        if isinstance(op, GatheredOp):
            return self._reduce_gathered(name, flat, op, results, opts, copy_back, detail)
        if flat.is_floating_point() and nbytes(flat) * self.size() <= EXACT_MAX_BYTES:
            return self._reduce_gathered(name, flat, float_sum(op), results, opts, copy_back, detail)
        if flat.is_floating_point() or op is ReduceOp.SUM:
            return self._reduce(name, flat, op, results, opts, copy_back, detail, blocks=blocks)

        def divide() -> None:
            flat.copy_(torch.div(flat, self.size(), rounding_mode="trunc"))
            copy_back()

        return self._reduce(name, flat, ReduceOp.SUM, results, opts, divide, f"AVG {detail}", blocks=blocks)

    def _reduce_gathered(
        self,
        name: str,
        flat: torch.Tensor,
        op: GatheredOp,
        results: Sequence[torch.Tensor],
        opts: Any,
        copy_back: _CopyBack,
        detail: str = "",
    ) -> NetfoldWork:
        """Gathers all ranks' tensors and reduces them at each rank."""
        size = nbytes(flat)
        strides = self._strides([size] * self.size())
        whole, blocks = self._placed(bytes_of(flat), strides)

        def apply() -> None:
            rows = bytes_of(whole)[: sum(strides)].view(self.size(), -1)[:, :size].contiguous()
            flat.copy_(op.apply(rows.view(flat.dtype)))
            copy_back()

        what = f"{op.operation} {flat.dtype} {detail}"
        return self._reduce(
            f"{name}{op.suffix}", whole, ReduceOp.SUM, results, opts, apply, what, blocks=blocks
        )

    def _reduce(
        self,
        name: str,
        flat: torch.Tensor,
        op: ReduceOp,
        results: Sequence[torch.Tensor],
        opts: Any,
        copy_back: _CopyBack | None,
        detail: str = "",
        *,
        blocks: Blocks | None = None,
    ) -> NetfoldWork:
        """`detail`: what the network does not see of the collective, and all ranks must have alike."""
        gradient = current_gradient() if flat.dtype in ROTATED_DTYPES else None
        if gradient is not None:
            name = f"{name} of gradients"
        with torch.profiler.record_function(f"netfold:{name}"):
            work = NetfoldWork(results, f"rank {self.rank()}: {name}", self.session.reporter.waiting)
            deadline = time.monotonic() + self._timeout_of(opts)
            self.session.reporter.by_netfold(name)
            context = zlib.crc32(f"{self._group_id} {name} {detail.strip()}".encode())
            kind = kind_of(name)
            if flat.numel() == 0 and kind is not CallKind.BARRIER:
                work.finish(None)
                return work
            if flat.is_cuda:
                call = self._staging.call(flat, op, deadline, work, copy_back)
            else:
                call = TensorCall(flat, op, deadline, lambda error: work.finish(error, copy_back))
            self.session.submit(replace(call, context=context, gradient=gradient, blocks=blocks, kind=kind))
        return work

    def _timeout_of(self, opts: Any) -> float:
        """Seconds; the group's for a call without a timeout of its own. Gloo keeps it, because torch sets it there."""
        own = getattr(opts, "timeout", None)
        if own is not None and own.total_seconds() > 0:
            return float(own.total_seconds())
        return float(self._gloo_backend.options._timeout.total_seconds())

    def _op_of(self, opts: Any, tensors: Sequence[torch.Tensor]) -> ReduceOp | GatheredOp | ByGloo:
        """How these tensors are reduced as one."""
        if self.fallback_reason:
            return ByGloo(self.fallback_reason)
        alike = {(t.dtype, t.device) for t in tensors}
        if len(alike) != 1 or not all(is_dense([t]) for t in tensors):
            return ByGloo(_LAYOUT)
        op = operation_of(opts)
        dtype = tensors[0].dtype
        if op in _OPS and dtype in SUPPORTED_DTYPES:
            return _OPS[op]
        gathered = gathered_op(op, dtype)
        if gathered is None:
            return ByGloo(f"{_name_of(op)} of {str(dtype).removeprefix('torch.')}")
        if sum(map(nbytes, tensors)) * self.size() > GATHER_MAX_BYTES:
            return ByGloo(f"{_name_of(op)}, {_TOO_LARGE}")
        return gathered

    # ---- the end -------------------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Called by `destroy_process_group`."""
        if self._owns_session:
            atexit.unregister(self._exit)
            self.session.close()

    def abort(self) -> None:
        """Ends the calls in flight at all ranks, and the job."""
        if self._owns_session:
            self.session.abort("its process group is aborted")
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
            self.session.abort(f"its program raised {sys.last_value!r}")


def collectives_of(group: Any) -> Collectives | None:
    """netfold's side of a process group of torch; None: it has other backends."""
    if group is None or isinstance(group, Collectives):
        return group
    for device in group._device_types:
        backend = group._get_backend(device)
        backend = getattr(backend, "wrapped_pg", backend)  # as TORCH_DISTRIBUTED_DEBUG=DETAIL has it
        if isinstance(backend, Collectives):
            return backend
    return None
