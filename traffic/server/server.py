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

import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray

from netfold.protocol.wire import Verdict
from netfold.traffic.engine.native import library
from netfold.traffic.membership.assignment import Assignment
from netfold.traffic.packets.host_link import HostLink
from netfold.traffic.packets.transport import BUFFER_BYTES, Address, TransportError, UdpEndpoint
from netfold.traffic.server.shard import Shard

THREADS_MAX = 64
"""This is NF_SHARDS_MAX of traffic/engine/server/shards.h."""


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
