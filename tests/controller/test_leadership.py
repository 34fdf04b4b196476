# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One controller of a store leads, in a term of its own; a standby knows by a digest whether it takes the tokens of its
primary."""

from __future__ import annotations

import asyncio
import signal
import stat
import subprocess
import sys

import pytest

from netfold.controller.jobs.revisions import Revision, is_known
from netfold.controller.jobs.slot_allocator import Range
from netfold.controller.jobs.store import Store
from netfold.controller.service.leadership import Leadership, has_tokens_of, token_digest
from netfold.controller.service.security import Security

OPERATORS, MEMBERS = frozenset({"operator-1", "operator-2"}), frozenset({"member"})


def security(operators: frozenset[str], members: frozenset[str], certificate: bytes = b"") -> Security:
    return Security(certificate, b"", operators, members)


def test_one_leads_and_terms_grow(tmp_path):
    stores = [Store(tmp_path / "db", "f") for _ in range(2)]
    first, second = (Leadership(store, now=lambda: 1.0) for store in stores)
    assert first.try_lead() == 1
    assert second.try_lead() is None
    first.release()
    assert second.try_lead() == 2, "the clock has not moved, and the term has"
    second.release()
    assert stat.S_IMODE((tmp_path / "db.lock").stat().st_mode) == 0o600
    for store in stores:
        store.close()


def test_the_lock_of_a_killed_leader_is_free(tmp_path):
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from netfold.controller.jobs.store import Store\n"
        "from netfold.controller.service.leadership import Leadership\n"
        "assert Leadership(Store(Path(sys.argv[1]), 'f'), now=lambda: 1.0).try_lead() == 1\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "db"], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    store = Store(tmp_path / "db", "f")
    leadership = Leadership(store, now=lambda: 1.0)
    assert leadership.try_lead() == 2
    leadership.release()
    store.close()


async def test_a_standby_leads_once_the_leader_has_ended_and_not_after_its_own_stop(tmp_path):
    store = Store(tmp_path / "db", "f")
    leader, standby, stopped = (Leadership(store) for _ in range(3))
    term, stop = leader.try_lead(), asyncio.Event()
    waiting = asyncio.create_task(standby.wait_until_leader(asyncio.Event()))
    other = asyncio.create_task(stopped.wait_until_leader(stop))
    await asyncio.sleep(0)
    assert not waiting.done()
    stop.set()
    assert await other is None
    leader.release()
    assert await waiting > term
    standby.release()
    store.close()


def test_a_restored_store_leads_in_a_greater_term_and_does_not_know_what_came_after_its_backup(tmp_path):
    now = 1000.0

    def revision(store: Store) -> Revision:
        with store.change():
            store.use_slots({"s": [Range(0, 16)]}, 1)
        term, number = max(store.revisions("s").items())
        return Revision(term, number)

    def store() -> Store:
        found = Store(tmp_path / "db", "f")
        leadership = Leadership(found, now=lambda: now)
        assert leadership.try_lead() is not None
        leadership.release()
        return found

    first = store()
    backed_up = revision(first)
    first.close()
    backup = (tmp_path / "db").read_bytes()
    later, lost = store(), []
    lost.append(revision(later))
    later.close()
    now = 2000.0
    later = store()
    lost.append(revision(later))
    term = later.number("term")
    later.close()

    (tmp_path / "db").write_bytes(backup)
    now = 3000.0
    restored = store()
    assert restored.number("term") > term
    for _ in range(5):  # its own numbers pass those that are lost
        newest = revision(restored)
    known = restored.revisions("s")
    assert [is_known(r, known) for r in (backed_up, newest)] == [True, True]
    assert [is_known(r, known) for r in lost] == [False, False]
    restored.close()


def test_the_same_tokens_are_known_whatever_the_certificate_is():
    published = token_digest(security(OPERATORS, MEMBERS))
    assert has_tokens_of(security(frozenset(sorted(OPERATORS)), MEMBERS, b"another"), published)


@pytest.mark.parametrize(
    "other",
    [
        None,
        security(OPERATORS, frozenset()),
        security(OPERATORS - {"operator-1"}, MEMBERS),
        security(OPERATORS, MEMBERS | {"member-2"}),
        security(OPERATORS | MEMBERS, frozenset()),
        security(MEMBERS, OPERATORS),
    ],
)
def test_other_tokens_are_told_from_them(other: Security | None):
    assert not has_tokens_of(other, token_digest(security(OPERATORS, MEMBERS)))


@pytest.mark.parametrize("own", [None, security(OPERATORS, MEMBERS)])
def test_a_controller_without_tokens_and_one_that_has_published_none_refuse_no_holder(own: Security | None):
    assert token_digest(None) == ""
    assert has_tokens_of(own, "")


def test_no_two_digests_are_alike():
    """Neither of two stores nor of two terms: equal tokens are not seen to be equal."""
    assert token_digest(security(OPERATORS, MEMBERS)) != token_digest(security(OPERATORS, MEMBERS))
