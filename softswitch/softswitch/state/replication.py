# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Multicast groups and clone sessions of one pipeline."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from softswitch.build.capi import ReplicaC
from softswitch.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from softswitch.state.entities import CloneSession, Replica
from softswitch.state.profiles import check

MAX_GROUP = 65535
MAX_SESSION = 32767
MAX_PORT = 65535


class Replication:
    """Keeps what was written; the core holds the lists of copies."""

    def __init__(self, core: ctypes.CDLL, handle: int) -> None:
        self.core, self.handle = core, handle
        self.groups: dict[int, tuple[Replica, ...]] = {}
        self.clones: dict[int, CloneSession] = {}

    def group_insert(self, group_id: int, replicas: Sequence[Replica]) -> None:
        if group_id in self.groups:
            raise AlreadyExistsError(f"multicast group {group_id} exists already")
        if not 1 <= group_id <= MAX_GROUP:
            raise InvalidArgumentError(f"multicast group {group_id} is not in 1..{MAX_GROUP}")
        self._set_group(group_id, replicas)

    def group_modify(self, group_id: int, replicas: Sequence[Replica]) -> None:
        self._known_group(group_id)
        self._set_group(group_id, replicas)

    def group_delete(self, group_id: int) -> None:
        self._known_group(group_id)
        check(self.core.ss_group_replicas(self.handle, group_id, None, 0), f"multicast group {group_id}")
        del self.groups[group_id]

    def _known_group(self, group_id: int) -> None:
        if group_id not in self.groups:
            raise NotFoundError(f"no multicast group {group_id}")

    def _set_group(self, group_id: int, replicas: Sequence[Replica]) -> None:
        array = _copies(replicas, f"multicast group {group_id}")
        check(
            self.core.ss_group_replicas(self.handle, group_id, array, len(replicas)),
            f"multicast group {group_id}",
        )
        self.groups[group_id] = tuple(replicas)

    def clone_insert(self, session: CloneSession) -> None:
        if session.session_id in self.clones:
            raise AlreadyExistsError(f"clone session {session.session_id} exists already")
        if not 0 <= session.session_id <= MAX_SESSION:
            raise InvalidArgumentError(f"clone session {session.session_id} is not in 0..{MAX_SESSION}")
        self._set_clone(session)

    def clone_modify(self, session: CloneSession) -> None:
        self._known_clone(session.session_id)
        self._set_clone(session)

    def clone_delete(self, session_id: int) -> None:
        self._known_clone(session_id)
        check(self.core.ss_clone_replicas(self.handle, session_id, None, 0, 0), f"clone session {session_id}")
        del self.clones[session_id]

    def _known_clone(self, session_id: int) -> None:
        if session_id not in self.clones:
            raise NotFoundError(f"no clone session {session_id}")

    def _set_clone(self, session: CloneSession) -> None:
        what = f"clone session {session.session_id}"
        if not 0 <= session.packet_length < 1 << 32:
            raise InvalidArgumentError(f"{what}: packet length {session.packet_length} is not in 0..2^32-1")
        array = _copies(session.replicas, what)
        check(
            self.core.ss_clone_replicas(
                self.handle, session.session_id, array, len(session.replicas), session.packet_length
            ),
            what,
        )
        self.clones[session.session_id] = session


def _copies(replicas: Sequence[Replica], what: str) -> ctypes.Array[ReplicaC]:
    seen: set[tuple[int, int]] = set()
    for r in replicas:
        if not 0 <= r.port <= MAX_PORT:
            raise InvalidArgumentError(f"{what}: port {r.port} is not in 0..{MAX_PORT}")
        if not 0 <= r.instance <= MAX_GROUP:
            raise InvalidArgumentError(f"{what}: instance {r.instance} is not in 0..{MAX_GROUP}")
        if (r.port, r.instance) in seen:
            raise InvalidArgumentError(f"{what}: port {r.port} with instance {r.instance} appears twice")
        seen.add((r.port, r.instance))
    return (ReplicaC * max(1, len(replicas)))(*[ReplicaC(r.port, r.instance) for r in replicas])
