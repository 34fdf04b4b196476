# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Decides which controller of a store leads.

With a file, a lock next to it makes one process the leader, and the kernel releases it when the process dies. With
etcd it is a lease, which the process renews while it goes on. A standby follows the store, and leads once no other
process does. Each leader has a greater term than the one before, which is its election id at the switches. The leader
publishes its address in the store, and a digest of its tokens, from which no token can be read."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from enum import Enum

from netfold.controller.core import Controller
from netfold.controller.jobs.engine import NotLeaderError, Progress, StoreError, StoreUnavailableError
from netfold.controller.jobs.store import Store
from netfold.controller.lifecycle.background_tasks import STORE_RETRY_S
from netfold.controller.service.security import Security

POLL_S = 0.2
"""Seconds between two attempts to lead: the kernel has no event for the release of the lock of another process."""

STEP_DOWN_S = 3.0
"""Seconds in which a leader that stepped down leaves it to others to lead."""

log = logging.getLogger(__name__)


_SALT_BYTES = 16
_COST = {"n": 2**14, "r": 8, "p": 1}
"""Cost of scrypt (RFC 7914): 16 MiB, and tens of milliseconds a guess."""


class Leadership:
    """Leadership of the controllers of `store`. `now`: wall clock. `progress`: of this process."""

    def __init__(
        self, store: Store, now: Callable[[], float] = time.time, progress: Progress = object
    ) -> None:
        self._store = store
        self._now = now
        self._progress = progress
        self._leads = False
        self._since = 0.0
        self._address: str | None = None

    def try_lead(self) -> int | None:
        """Become the leader and return the new term; None while another process leads. Terms follow the clock: the
        first leader of a restored store has a greater one than all leaders that came after the backup. Raises
        StoreError, also if another version has finalized the store."""
        if not self._leads:
            self._leads, self._since = self._store.try_lead(self._progress), self._now()
        if not self._leads:
            return None
        try:
            with self._store.change():
                self._store.expect_schema()  # another version may have finalized it while this one stood by
                term = max(self._store.number("term") + 1, int(self._now()))
                self._store.set_number("term", term)
                return term
        except StoreError:
            self.release()
            raise

    async def wait_until_leader(
        self, stop: asyncio.Event, pause_s: float = 0.0, address: str = ""
    ) -> int | None:
        """Follow the store until this process leads, at the earliest after `pause_s`, and return its term; None if
        `stop` is set before. `address`: where it serves meanwhile. Raises StoreError for a store that this version
        cannot use."""
        now = asyncio.get_running_loop().time
        began, logged, has_failed = now(), "", False
        while not stop.is_set():
            try:
                is_vacant = await self._store.follow() and now() - began >= pause_s
                if is_vacant and (term := self.try_lead()) is not None:
                    return term
                self._store.stand_by(address, self._progress)
                if has_failed:
                    log.warning("%s: it can be used again", self._store.name)
                fault, has_failed = self._store.engine.fault, False
            except (StoreUnavailableError, NotLeaderError) as error:
                # members of etcd without a majority have several causes in turn
                fault, has_failed = logged if has_failed else str(error), True
            if fault and fault != logged:
                log.error("%s", fault)
            logged = fault
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await stop.wait()
        return None

    def publish(self, address: str, security: Security | None) -> None:
        """Publish the address and the tokens of this leader."""
        self._address = address
        digest = token_digest(security)
        with self._store.change():
            self._store.set_primary(address, digest, self._since)

    def publish_tokens(self, security: Security | None) -> None:
        """Publish other tokens at the same address. A standby publishes them once it leads."""
        if self._address is not None:
            self.publish(self._address, security)

    def release(self) -> None:
        """Let other processes lead."""
        if self._leads:
            self._leads, self._address = False, None
            self._store.engine.release()


def token_digest(security: Security | None) -> str:
    """A digest of the tokens, different at each call; "" for a controller without tokens, as at a Unix socket."""
    return "" if security is None else _digest(security, secrets.token_bytes(_SALT_BYTES))


def has_tokens_of(security: Security | None, published: str) -> bool:
    """Whether this controller accepts the tokens of the one that published the digest `published` (by `token_digest`).
    "": that one has no tokens, and this one accepts its callers."""
    if not published:
        return True
    salt = bytes.fromhex(published.partition(":")[0])
    return security is not None and hmac.compare_digest(_digest(security, salt), published)


def _digest(security: Security, salt: bytes) -> str:
    known = security.callers
    callers = sorted((digest, repr(identity)) for digest, identity in known.by_digest.items())
    callers += sorted(("", repr(named)) for named in (*known.verifier.issuers, *known.by_name.values()))
    return f"{salt.hex()}:{hashlib.scrypt(repr(callers).encode(), salt=salt, **_COST).hex()}"


class End(Enum):
    """Why a controller of this process does not lead any more."""

    NEW_FABRIC = "the store has another fabric"
    STEPPED_DOWN = "an operator requested it"
    LOST = "another controller leads, or the store cannot be reached"
    STOPPED = "a signal, or its own end"


async def take_turns(
    leadership: Leadership,
    stop: asyncio.Event,
    stand_by: Callable[[float], Awaitable[int | None]],
    lead: Callable[[int], Awaitable[End]],
    report: Callable[[str], None],
) -> None:
    """Return once `stop` is set. `stand_by` gets the seconds in which others are to lead, and returns the term in which
    this process leads; None: it stops before. `lead` gets the term. Raises StoreError for a store that this version
    cannot use."""
    end = End.NEW_FABRIC
    while not stop.is_set():
        term = _term(leadership) if end is End.NEW_FABRIC else None
        if term is None:
            term = await stand_by(STEP_DOWN_S if end is End.STEPPED_DOWN else 0.0)
        if term is None:
            break
        try:
            end = await lead(term)
        except (NotLeaderError, StoreUnavailableError) as error:
            report(f"stands by: {error}")
            end = End.LOST
        if end is not End.NEW_FABRIC:
            leadership.release()


async def lead_until_end(
    controller: Controller, store: Store, stop: asyncio.Event, serve: Callable[[], Awaitable[None]]
) -> End:
    """Run a controller, and let it serve. Raises NotLeaderError if this process does not lead any more."""
    running = asyncio.create_task(controller.run())
    applied, steps_down = controller.planning.fabric_changes.applied, controller.state.steps_down
    ends = [asyncio.create_task(event.wait()) for event in (stop, applied, steps_down, store.engine.lost)]
    settling = asyncio.create_task(_settle(store))
    try:
        await serve()
        await asyncio.wait([running, *ends], return_when=asyncio.FIRST_COMPLETED)
        if store.engine.lost.is_set():
            raise NotLeaderError(f"{store.name}: this controller has lost its lease, or the store")
        if applied.is_set():
            return End.NEW_FABRIC
        return End.STEPPED_DOWN if steps_down.is_set() else End.STOPPED
    finally:
        for task in (settling, *ends):
            task.cancel()
        running.cancel()
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await running
        finally:
            controller.end()


async def _settle(store: Store) -> None:
    """Undo changes that were refused, and which the store may have all the same: the next leader would find them, long
    after an operator was refused."""
    while True:
        await asyncio.sleep(STORE_RETRY_S)  # after an error, too
        with contextlib.suppress(StoreError), store.change():
            pass


def _term(leadership: Leadership) -> int | None:
    """The next term; None while another process leads, or the store cannot be reached."""
    try:
        return leadership.try_lead()
    except (NotLeaderError, StoreUnavailableError):
        return None
