# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server: a host that is the root of trees. traffic/engine/server/root.c runs the slot machine over UDP.

A result leaves as ONE packet, to the source address of the contribution that completed it, or of the duplicate that
requested it: the first switch recognizes a RESULT by the server's port and replicates it to all workers. Without
switches, `reply_to` names the workers, and each gets its own copy.

A contribution counts only if it comes from the job's port and from an address that the assignment names for its child:
the server's socket is not connected, so packets that the last switch forwards as ordinary traffic reach it, too.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from ipaddress import IPv4Address
from itertools import accumulate

import numpy as np

from netfold.protocol.wire import Verdict
from netfold.traffic.engine.engine import to_link_end
from netfold.traffic.engine.native import library
from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.packets.host_link import HostLink
from netfold.traffic.packets.transport import Address, TransportError, UdpEndpoint

_SIGNAL_CHECK_S = 0.25
"""Longest time in C: Python handles signals in between."""


class ParameterServer:
    """The root of all trees of an assignment that name their `children`.

    `verdicts` counts packets by verdict number, as the switches do; `socket_errors` ICMP errors at the socket, and
    packets that the kernel dropped. `serve` runs until `stop` is called from another thread.
    """

    def __init__(
        self,
        assignment: Assignment,
        local: str = "0.0.0.0",
        reply_to: Sequence[Address] = (),
        link: HostLink | None = None,
    ) -> None:
        self.verdicts = np.zeros(32, np.int64)
        self.socket_errors = 0
        self._code = library()
        self._endpoint: UdpEndpoint | None = None
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        if link is None:
            self._root = self._on_socket(assignment, local, reply_to)
        else:
            self._root = self._code.nf_root_create_on_link(
                ctypes.byref(to_link_end(link)),
                self._wake,
                assignment.lanes,
                assignment.udp_port,
                self.verdicts.ctypes.data,
            )
        if not self._root:
            raise MemoryError("no memory for a parameter server")
        self._next: Assignment | None = assignment
        self._stopped = False
        self._close_lock = threading.Lock()  # `stop` and `assign` may be called while `close` runs

    def _on_socket(self, assignment: Assignment, local: str, reply_to: Sequence[Address]) -> int | None:
        self._endpoint = UdpEndpoint(Address(local, assignment.udp_port), ecn=True)
        names = np.array([address.name() for address in reply_to], np.uint8)
        root: int | None = self._code.nf_root_create(
            self._endpoint.fileno(),
            self._wake,
            assignment.lanes,
            assignment.udp_port,
            names.ctypes.data,
            len(reply_to),
            self.verdicts.ctypes.data,
        )
        return root

    def assign(self, assignment: Assignment) -> None:
        """Starts a new epoch (same job, port and lanes). From any thread."""
        self._next = assignment
        self._notify()

    def stop(self) -> None:
        """Ends `serve`. From any thread."""
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
                self._start_epoch(assignment)
            error = self._code.nf_root_serve(self._root, _SIGNAL_CHECK_S)
            self.socket_errors = self._code.nf_root_socket_errors(self._root)
            if error:
                raise TransportError(error, f"the parameter server's socket: {os.strerror(error)}")

    def _start_epoch(self, assignment: Assignment) -> None:
        """The slots of the old epoch are dropped."""
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

    def counts(self) -> dict[str, int]:
        """Packets by verdict, without zeros."""
        return {v.name.lower(): int(self.verdicts[v]) for v in Verdict if self.verdicts[v]}

    def close(self) -> None:
        """After `serve` has returned."""
        with self._close_lock:
            if self._root:
                self._code.nf_root_destroy(self._root)
                self._root = None
                os.close(self._wake)
                if self._endpoint is not None:
                    self._endpoint.close()
