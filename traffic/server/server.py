# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A parameter server: a host that is the root of trees. traffic/engine/root.c runs the slot machine over UDP.

A result leaves as ONE packet, to the source address of the contribution that completed it (or asked for it
again): the first switch on the way recognizes a RESULT from the server's port and replicates it towards
all workers. Without switches, `reply_to` names the workers, and each gets its own copy.

A contribution counts only if it comes from the job's port and from an address that the assignment names for its child:
the server's socket has no peer, and what the last switch forwards as ordinary traffic reaches it, too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from ipaddress import IPv4Address
from itertools import accumulate

import numpy as np

from netfold.traffic.engine.native import library
from netfold.traffic.membership.assignment import Assignment, TreePart
from netfold.traffic.packets.transport import Address, TransportError, UdpEndpoint
from netfold.traffic.packets.wire import Verdict

_SLICE = 0.25  # seconds in C before signals are looked at


class ParameterServer:
    """The root of all trees of an assignment that name their `children`.

    `verdicts` counts packets by verdict number, as the switches do. `serve` runs until `stop`, from
    another thread.
    """

    def __init__(
        self, assignment: Assignment, local: str = "0.0.0.0", reply_to: Sequence[Address] = ()
    ) -> None:
        self.verdicts = np.zeros(32, np.int64)
        self._code = library()
        self._endpoint = UdpEndpoint(Address(local, assignment.udp_port), ecn=True)
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        names = np.array([address.name() for address in reply_to], np.uint8)
        self._root = self._code.nf_root_create(
            self._endpoint.fileno(),
            self._wake,
            assignment.lanes,
            assignment.udp_port,
            names.ctypes.data,
            len(reply_to),
            self.verdicts.ctypes.data,
        )
        if not self._root:
            raise MemoryError("no memory for a parameter server")
        self._new: Assignment | None = assignment
        self._stopped = False
        self._books = (
            threading.Lock()
        )  # `stop` and `assign` may come while `close` gives the descriptors back

    def assign(self, assignment: Assignment) -> None:
        """Goes on with a new epoch (same job, port and lanes); may be called from another thread."""
        self._new = assignment
        self._tell()

    def stop(self) -> None:
        """Ends `serve`; may be called from another thread."""
        self._stopped = True
        self._tell()

    def _tell(self) -> None:
        with self._books:
            if self._root:
                os.eventfd_write(self._wake, 1)

    def serve(self) -> None:
        """Adds up until `stop`. Raises TransportError if the socket fails."""
        while not self._stopped:
            if self._new is not None:
                assignment, self._new = self._new, None
                self._take_over(assignment)
            error = self._code.nf_root_serve(self._root, _SLICE)
            if error:
                raise TransportError(
                    error, f"the parameter server's socket at {self._endpoint.local}: {os.strerror(error)}"
                )

    def _take_over(self, assignment: Assignment) -> None:
        """A new epoch: the slots of the old one are of no use to anybody."""
        self._code.nf_root_begin(self._root, assignment.epoch)
        for part in assignment.trees:
            if part.children:
                self._plant(part, assignment.quorum)

    def _plant(self, part: TreePart, least: int) -> None:
        children = np.array(part.children, np.uint16)
        known = [sorted({int(IPv4Address(address)) for address in own}) for own in part.sources]
        known += [[]] * (len(children) - len(known))
        sources = np.array([address for own in known for address in own], np.uint32)
        starts = np.array([0, *accumulate(map(len, known))], np.int64)
        if self._code.nf_root_tree(
            self._root,
            part.tree,
            part.slots,
            children.ctypes.data,
            len(children),
            sources.ctypes.data,
            starts.ctypes.data,
        ):
            raise MemoryError(f"no memory for the {part.slots} slots of tree {part.tree}")
        own = part.own_children or len(part.children)
        if least and self._code.nf_root_quorum(self._root, part.tree, own, least):
            raise MemoryError(f"no memory for the quorum of tree {part.tree}")

    def counts(self) -> dict[str, int]:
        """The verdicts by name, those that occurred."""
        return {v.name.lower(): int(self.verdicts[v]) for v in Verdict if self.verdicts[v]}

    def close(self) -> None:
        """After `serve`."""
        with self._books:
            if self._root:
                self._code.nf_root_destroy(self._root)
                self._root = None
                os.close(self._wake)
                self._endpoint.close()
