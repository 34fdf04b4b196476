# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server: a host that is the root of trees. traffic/engine/server/root.c runs the slot machine over UDP.

A result leaves as ONE packet, to the source address of the contribution that completed it, or of the duplicate that
requested it: the first switch recognizes a RESULT by the server's port and replicates it to all workers. Without
switches, `reply_to` names the workers, and each gets its own copy.

A contribution counts only if it comes from the job's port and from an address that the assignment names for its child:
the server's socket is not connected, so packets that the last switch forwards as ordinary traffic reach it, too.

Several threads divide the slots (traffic/engine/server/shards.h). Each has its own socket at the job's port.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from ipaddress import IPv4Address
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from netfold.protocol.wire import Verdict
from netfold.traffic.engine.engine import to_link_end
from netfold.traffic.engine.native import library
from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.packets.host_link import HostLink
from netfold.traffic.packets.transport import BUFFER_BYTES, Address, TransportError, UdpEndpoint

THREADS_MAX = 64
"""This is NF_SHARDS_MAX of traffic/engine/server/shards.h."""

_SIGNAL_CHECK_S = 0.25
"""The longest time in C: Python handles signals in between."""


class ParameterServer:
    """The root of all trees of an assignment that name their `children`.

    `shards` are its threads. `serve` runs until `stop` is called from another thread. `buffers`: bytes of each
    socket's. Raises TransportError, and ValueError for several `threads` on a link, which has one reader.
    """

    def __init__(
        self,
        assignment: Assignment,
        local: str = "0.0.0.0",
        reply_to: Sequence[Address] = (),
        link: HostLink | None = None,
        threads: int = 1,
        buffers: int = BUFFER_BYTES,
    ) -> None:
        if not 1 <= threads <= THREADS_MAX:
            raise ValueError(f"threads is {threads}; it must be 1 to {THREADS_MAX}")
        if link is not None and threads > 1:
            raise ValueError(f"threads is {threads}; it must be 1 where the host's network is a Unix socket")
        self._failures: list[Exception] = []
        with ExitStack() as stack:
            if link is not None:
                self.shards = [Shard(assignment, link)]
            elif threads == 1:
                endpoint = UdpEndpoint(Address(local, assignment.udp_port), ecn=True, buffers=buffers)
                stack.callback(endpoint.close)
                self.shards = [Shard(assignment, endpoint, reply_to)]
            else:
                self.shards = self._on_shared_port(assignment, local, reply_to, threads, buffers, stack)
            for shard in self.shards:
                stack.callback(shard.close)
            self._closing = stack.pop_all()

    @staticmethod
    def _on_shared_port(
        assignment: Assignment,
        local: str,
        reply_to: Sequence[Address],
        threads: int,
        buffers: int,
        stack: ExitStack,
    ) -> list[Shard]:
        code = library()
        shards = code.nf_shards_create(threads, assignment.lanes)
        if not shards:
            raise MemoryError("no memory for the threads of a parameter server")
        stack.callback(code.nf_shards_destroy, shards)
        endpoints: list[UdpEndpoint] = []
        for _ in range(threads):
            shared = bool(endpoints)
            if shared:
                endpoints[0].share(True)
            address = Address(local, assignment.udp_port)
            endpoint = UdpEndpoint(address, ecn=True, shared=shared, buffers=buffers)
            stack.callback(endpoint.close)
            endpoints.append(endpoint)
        error = code.nf_shards_steer(endpoints[-1].fileno(), threads)
        if error:
            raise TransportError(
                error, f"the kernel cannot share a port between {threads} threads: {os.strerror(error)}"
            )
        # no other process is admitted; the kernel looks at the newest one only when it shares packets out
        endpoints[0].share(False)
        return [
            Shard(assignment, endpoint, reply_to, (shards, number))
            for number, endpoint in enumerate(endpoints)
        ]

    def assign(self, assignment: Assignment) -> None:
        """Starts its epoch (same job, port and lanes), if that is a new one. Any thread may call it."""
        for shard in self.shards:
            shard.assign(assignment)

    def stop(self) -> None:
        """Ends `serve`. Any thread may call it."""
        for shard in self.shards:
            shard.stop()

    def serve(self) -> None:
        """Serves until `stop`. Raises TransportError if a socket fails."""
        others = [threading.Thread(target=self._serve_shard, args=(shard,)) for shard in self.shards[1:]]
        for thread in others:
            thread.start()
        try:
            self._serve_shard(self.shards[0])
        finally:
            self.stop()
            for thread in others:
                thread.join()
        if self._failures:
            raise self._failures[0]

    def _serve_shard(self, shard: Shard) -> None:
        """Serves one shard. One that fails ends the others, too."""
        try:
            shard.serve()
        except (TransportError, MemoryError) as error:
            self._failures.append(error)
            self.stop()

    @property
    def verdicts(self) -> NDArray[np.int64]:
        """Counts packets by verdict number, as the switches do."""
        total = np.zeros_like(self.shards[0].verdicts)
        for shard in self.shards:
            total += shard.verdicts
        return total

    @property
    def socket_errors(self) -> int:
        """Counts ICMP errors at the sockets, and packets that the kernel or a full queue between threads dropped."""
        return sum(shard.socket_errors for shard in self.shards)

    @property
    def handed_over(self) -> int:
        """Counts packets that the kernel gave to another thread than their slot's, and this one to that."""
        return sum(shard.handed_over for shard in self.shards)

    def counts(self) -> dict[str, int]:
        """Counts packets by verdict, without zeros."""
        verdicts = self.verdicts
        return {v.name.lower(): int(verdicts[v]) for v in Verdict if verdicts[v]}

    def close(self) -> None:
        """Frees the server. Call it after `serve` has returned."""
        self._closing.close()


class Shard:
    """Serves the slots of one thread, in all trees. `end`: its socket, which stays the caller's, or the host's
    link. `shards`: the handle of nf_shards, and which one this is; None: all slots are this thread's."""

    def __init__(
        self,
        assignment: Assignment,
        end: UdpEndpoint | HostLink,
        reply_to: Sequence[Address] = (),
        shards: tuple[int, int] | None = None,
    ) -> None:
        self.verdicts = np.zeros(32, np.int64)
        self.socket_errors = 0
        self.handed_over = 0
        self._code = library()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        lanes, port, verdicts = assignment.lanes, assignment.udp_port, self.verdicts.ctypes.data
        if isinstance(end, HostLink):
            link = ctypes.byref(to_link_end(end))
            self._root = self._code.nf_root_create_on_link(link, self._wake, lanes, port, verdicts)
        else:
            names = np.array([address.name() for address in reply_to], np.uint8)
            self._root = self._code.nf_root_create(
                end.fileno(), self._wake, lanes, port, names.ctypes.data, len(reply_to), verdicts
            )
        if not self._root:
            os.close(self._wake)
            raise MemoryError("no memory for a parameter server")
        if shards is not None:
            self._code.nf_root_set_shard(self._root, *shards)
        self._next: Assignment | None = assignment
        self._epoch = 0
        self._stopped = False
        self._close_lock = threading.Lock()  # `stop` and `assign` may be called while `close` runs

    def assign(self, assignment: Assignment) -> None:
        """Starts its epoch, if that is a new one. Any thread may call it."""
        self._next = assignment
        self._notify()

    def stop(self) -> None:
        """Ends `serve`. Any thread may call it."""
        self._stopped = True
        self._notify()

    def _notify(self) -> None:
        with self._close_lock:
            if self._root:
                os.eventfd_write(self._wake, 1)

    def serve(self) -> None:
        """Serves until `stop`. Raises TransportError if the socket fails."""
        while not self._stopped:
            if self._next is not None:
                assignment, self._next = self._next, None
                if assignment.epoch != self._epoch:  # else workers may still request sums of its slots
                    self._start_epoch(assignment)
            error = self._code.nf_root_serve(self._root, _SIGNAL_CHECK_S)
            self.socket_errors = self._code.nf_root_socket_errors(self._root)
            self.handed_over = self._code.nf_root_handed_over(self._root)
            if error:
                raise TransportError(error, f"the parameter server's socket: {os.strerror(error)}")

    def _start_epoch(self, assignment: Assignment) -> None:
        """Starts the epoch, which drops the slots of the old one."""
        self._epoch = assignment.epoch
        self._code.nf_root_start_epoch(self._root, assignment.epoch)
        for part in assignment.trees:
            if part.children:
                self._add_tree(part, assignment.quorum)

    def _add_tree(self, part: TreeAssignment, quorum: int) -> None:
        children = np.array(part.children, np.uint16)
        known = [sorted({int(IPv4Address(address)) for address in addresses}) for addresses in part.sources]
        known += [[]] * (len(children) - len(known))
        sources = np.array([address for addresses in known for address in addresses], np.uint32)
        starts = np.array([0, *accumulate(map(len, known))], np.int64)
        if self._code.nf_root_add_tree(
            self._root,
            part.tree,
            part.slots,
            children.ctypes.data,
            len(children),
            sources.ctypes.data,
            starts.ctypes.data,
        ):
            raise MemoryError(f"no memory for the {part.slots} slots of tree {part.tree}")
        direct = part.direct_children or len(part.children)
        if quorum and self._code.nf_root_set_quorum(self._root, part.tree, direct, quorum):
            raise MemoryError(f"no memory for the quorum of tree {part.tree}")

    def close(self) -> None:
        """Frees the shard. Call it after `serve` has returned."""
        with self._close_lock:
            if self._root:
                self._code.nf_root_destroy(self._root)
                self._root = None
                os.close(self._wake)
