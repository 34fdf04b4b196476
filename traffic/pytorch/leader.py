# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The rank of a host that talks to the network: it adds up what its siblings bring, has it added up over the hosts, and
hands the sums back. NetReduce (ASPLOS 2023) calls it hierarchical aggregation.

    leader.Leader.start    call k of this rank; wait for call k of every sibling; add up, always in their order
      -> network.Network   over the hosts
      -> Leader._over      the sums into every sibling's memory, and a word to each
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch

from netfold.traffic.errors import AllReduceTimeout, CallMismatch, SumOverflow, TrafficError
from netfold.traffic.numerics import ReduceOp
from netfold.traffic.pytorch.call import Call, Carrier, in_step
from netfold.traffic.pytorch.shared import Block, SiblingLost, Word, readable

_PIECE = 1 << 18  # elements; what is added up in float32 on the way is never larger


@dataclass
class Sibling:
    """Another rank of this host, as its leader knows it."""

    rank: int
    sock: socket.socket
    blocks: dict[int, Block] = field(default_factory=dict)

    def bring(self, number: int, call: Call) -> torch.Tensor:
        """Its numbers of the call, in memory that both share. Raises SiblingLost, CallMismatch, AllReduceTimeout."""
        if not readable(self.sock, call.left()):
            raise AllReduceTimeout(f"rank {self.rank} of this host has not come to call {number}")
        try:
            word = Word.receive(self.sock)
        except OSError as error:
            raise SiblingLost(f"rank {self.rank} of this host is gone: {error}") from error
        if word is None:
            raise SiblingLost(f"rank {self.rank} of this host is gone")
        if word.fd >= 0:
            block = Block(word.block, word.fd)
            block.forget_fd()
            self.blocks[word.block] = block
        mine = (number, call.op, call.tensor.dtype, call.tensor.numel())
        if (word.number, word.op, word.dtype, word.elements) != mine:
            raise CallMismatch(
                f"call {number} of rank {self.rank} is the {word.op} of {word.elements} x {word.dtype}, here it is the "
                f"{call.op} of {call.tensor.numel()} x {call.tensor.dtype}"
            )
        return self.blocks[word.block].tensor(word.dtype, word.elements)


class Leader:
    """A `call.Carrier`. `hosts`: None where all ranks share this host, else what carries calls over the hosts (as many
    as `host_count`). `ranks`: of the world."""

    def __init__(
        self, siblings: Sequence[Sibling], hosts: Carrier | None, host_count: int, ranks: int
    ) -> None:
        self._siblings = siblings
        self._hosts = hosts
        self._share = ranks / host_count
        self._number = 0

    def start(self, call: Call) -> None:
        number = self._number
        self._number += 1
        brought: list[torch.Tensor] = []
        try:
            for sibling in self._siblings:
                brought.append(sibling.bring(number, call))
            # Sums of int32 need more room on the way: whether the whole fits is known at the end, at all hosts alike.
            mine = call.tensor.long() if call.tensor.dtype is torch.int32 else call.tensor
            add_up(mine, brought, self._share if call.op is ReduceOp.AVERAGE else 1.0)

            def over(error: Exception | None) -> None:
                self._over(number, call, brought, error or _take(call.tensor, mine))

            if self._hosts is None:
                over(None)
            else:
                self._hosts.start(replace(call, tensor=mine, done=over))
        except Exception as error:
            self._over(number, call, brought, error)

    def _over(
        self, number: int, call: Call, brought: Sequence[torch.Tensor], error: Exception | None
    ) -> None:
        """The sums, or why there are none, to all ranks of this host."""
        if error is None:
            for memory in brought:
                memory.copy_(call.tensor)
        text = "" if error is None else f"{type(error).__name__}: {error}"
        word = Word(number, call.op, call.tensor.dtype, 0, call.tensor.numel(), text, in_step(error))
        for sibling in self._siblings:
            with contextlib.suppress(OSError):  # it is gone, which the next call says
                word.send(sibling.sock)
        call.done(error)

    def give_up(self) -> None:
        """Lets the siblings know that this rank does not go on."""
        for sibling in self._siblings:
            with contextlib.suppress(OSError):
                sibling.sock.shutdown(socket.SHUT_RDWR)
        if self._hosts is not None:
            self._hosts.give_up()

    def close(self) -> None:
        if self._hosts is not None:
            self._hosts.close()
        for sibling in self._siblings:
            sibling.sock.close()


def add_up(mine: torch.Tensor, others: Sequence[torch.Tensor], share: float) -> None:
    """Adds `others` to `mine` in place, in their order, and divides floats by `share`. Numbers of 16 bits are added as
    float32 and rounded once. Raises TrafficError for whole numbers whose sum does not fit int64."""
    for at in range(0, mine.numel(), _PIECE):
        into = mine[at : at + _PIECE]
        parts = [other[at : at + _PIECE] for other in others]
        if not mine.is_floating_point():
            _add_whole(into, parts)
            continue
        wide = into.float() if mine.dtype.itemsize == 2 else into
        for part in parts:
            wide += part
        if share != 1.0:
            wide /= share
        if wide is not into:
            into.copy_(wide)


def _add_whole(into: torch.Tensor, parts: Sequence[torch.Tensor]) -> None:
    for part in parts:
        total = into + part
        wrong = ((into ^ total) & (part ^ total)) < 0  # both signs differ from the sum's
        if bool(wrong.any()):
            raise TrafficError("a sum of int64 over the ranks of one host does not fit int64")
        into.copy_(total)


def _take(into: torch.Tensor, sums: torch.Tensor) -> SumOverflow | None:
    """What was summed up in a wider dtype; an error if it does not fit."""
    if sums is into:
        return None
    limits = torch.iinfo(into.dtype)
    wrong = (sums < limits.min) | (sums > limits.max)
    if bool(wrong.any()):
        index = int(wrong.nonzero()[0])
        return SumOverflow(index, int(sums[index]), str(into.dtype).removeprefix("torch."))
    into.copy_(sums)
    return None
