# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The reduction of a host with several ranks, at its first rank: it adds up the inputs of the other ranks, reduces
the sum over the hosts, and returns the result to them. NetReduce (ASPLOS 2023) calls it hierarchical aggregation.

    HostReducer.start            call k of this rank; waits for call k of every other rank; adds up in their order
      -> InNetworkReducer.start  over the hosts
      -> HostReducer._complete   the result into every rank's memory, and a message to each
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch

from netfold.traffic.engine.blocks import CallForm
from netfold.traffic.errors import AllReduceTimeoutError, CollectiveMismatchError, SumOverflowError
from netfold.traffic.numerics import ReduceOp
from netfold.traffic.pytorch.shared_memory import RankLostError, RankMessage, SharedBuffer, readable
from netfold.traffic.pytorch.tensor_call import NetworkUse, Reducer, TensorCall, can_continue

_PIECE = 1 << 18  # elements; bounds the float32 copy of 16-bit floats
_LOW = (1 << 32) - 1


@dataclass
class LocalRank:
    """Another rank of this host, at its first rank."""

    rank: int
    sock: socket.socket
    buffers: dict[int, SharedBuffer] = field(default_factory=dict)

    def receive_input(self, number: int, call: TensorCall) -> torch.Tensor:
        """The rank's input of the call, in shared memory. Raises RankLostError, CollectiveMismatchError,
        AllReduceTimeoutError."""
        if not readable(self.sock, call.remaining_s()):
            raise AllReduceTimeoutError(f"timeout: rank {self.rank} of this host has not made call {number}")
        try:
            message = RankMessage.receive(self.sock)
        except OSError as error:
            raise RankLostError(f"rank {self.rank} of this host is gone: {error}") from error
        if message is None:
            raise RankLostError(f"rank {self.rank} of this host is gone")
        if message.fd >= 0:
            buffer = SharedBuffer(message.buffer, message.fd)
            buffer.close_fd()
            self.buffers[message.buffer] = buffer
        expected = (number, call.op, call.tensor.dtype, call.tensor.numel(), call.context)
        found = (message.number, message.op, message.dtype, message.elements, message.context)
        if found != expected:
            raise CollectiveMismatchError(
                f"call {number} of rank {self.rank} is the {message.op} of {message.elements} x {message.dtype}, here "
                f"it is the {call.op} of {call.tensor.numel()} x {call.tensor.dtype}, or of another collective or group"
            )
        return self.buffers[message.buffer].tensor(message.dtype, message.elements)


class HostReducer:
    """A `tensor_call.Reducer`. Writes in inference mode, as tensors may be inference tensors. `hosts`: reduces over
    the hosts (as many as `host_count`); None where all ranks share this host. `ranks`: of the world."""

    def __init__(
        self, local_ranks: Sequence[LocalRank], hosts: Reducer | None, host_count: int, ranks: int
    ) -> None:
        self._local_ranks = local_ranks
        self._hosts = hosts
        self._ranks_per_host = ranks / host_count
        self._number = 0
        self._awaited: LocalRank | None = None

    def waiting(self) -> str:
        """The rank of this host that its first one waits for; "": none."""
        awaited = self._awaited
        return "" if awaited is None else f"the first rank of the host waits for rank {awaited.rank} there"

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def start(self, call: TensorCall) -> None:
        number = self._number
        self._number += 1
        inputs: list[torch.Tensor] = []
        try:
            for local in self._local_ranks:
                self._awaited = local
                inputs.append(local.receive_input(number, call))
            self._awaited = None
            total = self._add_up(call, inputs)

            def done(error: Exception | None) -> None:
                if call.op is ReduceOp.AVERAGE:
                    self._scale_remainder(call)
                self._complete(number, call, inputs, total, error)

            if self._hosts is None:
                done(None)
            else:
                blocks = call.blocks if total is call.tensor else None
                self._hosts.start(replace(call, tensor=total, done=done, blocks=blocks))
        except Exception as error:
            self._complete(number, call, inputs, None, error)

    def _add_up(self, call: TensorCall, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
        """The sum of this host's inputs. Sums of integers are wide, and go to all hosts: only the owner of a block
        would know whether its sum fits. A gather adds zeros."""
        if call.blocks is not None and call.blocks.form is CallForm.GATHER:
            for one in inputs:
                call.tensor.add_(one)
            return call.tensor
        total = widen(call.tensor)
        add_up(total, inputs, self._ranks_per_host if call.op is ReduceOp.AVERAGE else 1.0)
        return total

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def _scale_remainder(self, call: TensorCall) -> None:
        """The remainder is of the mean over this host's ranks. This rank adds it to its next input, of which the mean
        takes a part."""
        if call.gradient is not None and call.gradient.remainder is not None:
            call.gradient.remainder.mul_(self._ranks_per_host)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def _complete(
        self,
        number: int,
        call: TensorCall,
        inputs: Sequence[torch.Tensor],
        total: torch.Tensor | None,
        error: Exception | None,
    ) -> None:
        """The result, or the error, to all ranks of this host."""
        if error is None and total is not None:
            error = narrow(call.tensor, total)
        if error is None:
            for shared in inputs:
                shared.copy_(call.tensor)
        text = "" if error is None else f"{type(error).__name__}: {error}"
        message = RankMessage(
            number,
            call.op,
            call.tensor.dtype,
            0,
            call.tensor.numel(),
            call.context,
            text,
            can_continue(error),
        )
        for local in self._local_ranks:
            with contextlib.suppress(OSError):  # a lost rank: the next call raises RankLostError
                message.send(local.sock)
        call.done(error)

    def on_end(self, callback: Callable[[Exception], None]) -> None:
        if self._hosts is not None:
            self._hosts.on_end(callback)

    def abort(self, cause: str) -> None:
        for local in self._local_ranks:
            with contextlib.suppress(OSError):
                local.sock.shutdown(socket.SHUT_RDWR)
        if self._hosts is not None:
            self._hosts.abort(cause)

    def network_use(self) -> NetworkUse | None:
        return None if self._hosts is None else self._hosts.network_use()

    def close(self) -> None:
        if self._hosts is not None:
            self._hosts.close()
        for local in self._local_ranks:
            local.sock.close()


def add_up(total: torch.Tensor, inputs: Sequence[torch.Tensor], divisor: float) -> None:
    """Adds `inputs` to `total` (of `widen`) in place, in their order, and divides floats by `divisor`. Floats of 16
    bits are added as float32 and rounded once."""
    if not total.is_floating_point():
        for one in inputs:
            total += widen(one)
        return
    for at in range(0, total.numel(), _PIECE):
        piece = total[at : at + _PIECE]
        wide = piece.float() if total.dtype.itemsize == 2 else piece
        for one in inputs:
            wide += one[at : at + _PIECE]
        if divisor != 1.0:
            wide /= divisor
        if wide is not piece:
            piece.copy_(wide)


def widen(tensor: torch.Tensor) -> torch.Tensor:
    """Integers in a form whose sums cannot overflow: int32 as int64, int64 as its high halves and then its low halves.
    Only the sum over all ranks, which all ranks see alike, has to fit. Floats as they are."""
    if tensor.dtype is torch.int32:
        return tensor.long()
    return torch.cat([tensor >> 32, tensor & _LOW]) if tensor.dtype is torch.int64 else tensor


def narrow(into: torch.Tensor, total: torch.Tensor) -> SumOverflowError | None:
    """Writes sums of `widen`'s form into a tensor of the original dtype; an error if one does not fit."""
    if total is into:
        return None
    if into.dtype is torch.int64:
        high, low = total.chunk(2)
        high = high + (low >> 32)
        low = low & _LOW
        wrong = (high < -(1 << 31)) | (high >= 1 << 31)
        if not bool(wrong.any()):
            into.copy_(high << 32 | low)
            return None
        index = int(wrong.nonzero()[0])
        return SumOverflowError(index, int(high[index]) << 32 | int(low[index]), "int64")
    limits = torch.iinfo(into.dtype)
    wrong = (total < limits.min) | (total > limits.max)
    if bool(wrong.any()):
        index = int(wrong.nonzero()[0])
        return SumOverflowError(index, int(total[index]), str(into.dtype).removeprefix("torch."))
    into.copy_(total)
    return None
