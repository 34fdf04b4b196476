# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Arbitration of primary and backups (specification, "Client Arbitration and Controller Replication").

Without I/O: a `Session` represents one stream; `update` and `leave` return the notifications to send, in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from finsy.proto import p4r

from softswitch.p4runtime.status import Code, StatusError

DEFAULT_ROLE = ""
STREAMS_PER_ROLE = 64
ROLES_MAX = 64
ROLE_NAME_MAX = 256


@dataclass(eq=False)
class Session:
    """One stream. `role`: None until its first arbitration; without an `election_id` it is never primary."""

    role: str | None = None
    election_id: int | None = None


Notice = tuple[Session, p4r.MasterArbitrationUpdate]


@dataclass
class _Role:
    sessions: list[Session] = field(default_factory=list)
    primary: Session | None = None
    highest: int | None = None


def uint128(message: p4r.Uint128) -> int:
    """The number that a Uint128 stands for."""
    return message.high << 64 | message.low


class Arbiter:
    """The arbitration of one device."""

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._roles: dict[str, _Role] = {DEFAULT_ROLE: _Role()}

    def update(self, session: Session, message: p4r.MasterArbitrationUpdate) -> list[Notice]:
        """Handles an arbitration message. Raises StatusError when the stream must end, and changes nothing."""
        name = message.role.name if message.HasField("role") else DEFAULT_ROLE
        self._check(session, message, name)
        role = self._role(name)
        election_id = uint128(message.election_id) if message.HasField("election_id") else None
        if session.role is None and len(role.sessions) >= STREAMS_PER_ROLE:
            raise StatusError(
                Code.RESOURCE_EXHAUSTED, f"role {name!r} has {STREAMS_PER_ROLE} streams already"
            )
        taken = any(s is not session and s.election_id == election_id for s in role.sessions)
        if election_id is not None and taken:
            raise StatusError(
                Code.INVALID_ARGUMENT,
                f"another connected controller of role {name!r} has the election id {election_id}",
            )
        if session.role is None:
            session.role = name
            role.sessions.append(session)
        session.election_id = election_id
        return self._elect(role, session)

    def _role(self, name: str) -> _Role:
        """The role, created if it is new. A role without sessions is kept for its highest election id, up to
        ROLES_MAX."""
        if name not in self._roles:
            if len(self._roles) >= ROLES_MAX:
                idle = next((n for n, r in self._roles.items() if n != DEFAULT_ROLE and not r.sessions), None)
                if idle is None:
                    raise StatusError(Code.RESOURCE_EXHAUSTED, f"there are already {ROLES_MAX} roles")
                del self._roles[idle]
            self._roles[name] = _Role()
        return self._roles[name]

    def leave(self, session: Session) -> list[Notice]:
        """Forgets a stream that has ended."""
        if session.role is None:
            return []
        role = self._roles[session.role]
        role.sessions.remove(session)
        if role.primary is not session:
            return []
        role.primary = None
        return [self._notice(role, other) for other in role.sessions]

    def require_primary(self, role_name: str, election_id: p4r.Uint128 | None) -> None:
        """Raises StatusError unless this is how the primary of the role names itself in a request."""
        role = self._roles.get(role_name)
        if role is None:
            raise StatusError(Code.NOT_FOUND, f"no controller has taken the role {role_name!r}")
        if role.primary is None:
            raise StatusError(Code.PERMISSION_DENIED, f"role {role_name!r} has no primary controller")
        if election_id is None or uint128(election_id) != role.primary.election_id:
            given = "unset" if election_id is None else str(uint128(election_id))
            raise StatusError(
                Code.PERMISSION_DENIED,
                f"not primary: election id is {given}, that of the primary of role {role_name!r} is "
                f"{role.primary.election_id}",
            )

    def is_primary(self, session: Session) -> bool:
        """Does this stream lead its role?"""
        return session.role is not None and self._roles[session.role].primary is session

    def primaries(self) -> list[Session]:
        """The leading stream of each role that has one."""
        return [role.primary for role in self._roles.values() if role.primary is not None]

    def _check(self, session: Session, message: p4r.MasterArbitrationUpdate, name: str) -> None:
        live = session.role is not None
        if message.device_id != self._device_id:
            code = Code.FAILED_PRECONDITION if live else Code.NOT_FOUND
            raise StatusError(
                code, f"device id {message.device_id} is not served here; this is device {self._device_id}"
            )
        if len(name) > ROLE_NAME_MAX:
            raise StatusError(Code.INVALID_ARGUMENT, f"a role's name of {len(name)} characters")
        if live and name != session.role:
            raise StatusError(
                Code.FAILED_PRECONDITION,
                f"the stream has the role {session.role!r}; open another for {name!r}",
            )
        if message.role.HasField("config"):
            raise StatusError(
                Code.INVALID_ARGUMENT,
                f"role.config {message.role.config.type_url!r}: no role scheme is agreed; "
                "leave it unset for full access",
            )

    def _elect(self, role: _Role, session: Session) -> list[Notice]:
        election_id = session.election_id
        if election_id is not None and (role.highest is None or election_id >= role.highest):
            role.primary = session
            role.highest = election_id
            others = [other for other in role.sessions if other is not session]
            return [self._notice(role, other) for other in [*others, session]]
        if role.primary is session:
            role.primary = None
            return [self._notice(role, other) for other in role.sessions]
        return [self._notice(role, session)]

    def _notice(self, role: _Role, to: Session) -> Notice:
        message = p4r.MasterArbitrationUpdate(device_id=self._device_id)
        if to.role:
            message.role.name = to.role
        if role.highest is not None:
            message.election_id.high = role.highest >> 64
            message.election_id.low = role.highest & (1 << 64) - 1
        if role.primary is to:
            message.status.code = Code.OK
            message.status.message = "you are primary"
        elif role.primary is not None:
            message.status.code = Code.ALREADY_EXISTS
            message.status.message = "another controller is primary"
        else:
            message.status.code = Code.NOT_FOUND
            message.status.message = "there is no primary controller"
        return to, message
