# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A thread of a parameter server, with a socket and slots of its own: traffic/engine/server/root.c."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from ipaddress import IPv4Address
from itertools import accumulate

import numpy as np

from netfold.traffic.engine.engine import to_link_end
from netfold.traffic.engine.native import library
from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.packets.host_link import HostLink
from netfold.traffic.packets.transport import Address, TransportError, UdpEndpoint

_SIGNAL_CHECK_S = 0.25
"""The longest time in C: Python handles signals in between."""


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
