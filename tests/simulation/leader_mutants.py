# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Faults of leading with a store in etcd (mutant.py)."""

from __future__ import annotations

from tests.simulation.mutant import Mutant

CLIENT = "jobs/etcd_client.py"
ENGINE = "jobs/etcd_engine.py"
LEASE = "jobs/etcd_lease.py"

_ENDS = (
    "        self.state.registry.retire()\n        self.state.tasks.stop()\n        self.jobs.leases.stop()\n"
)

LEADER_MUTANTS = (
    Mutant(
        "a commit compares nothing",
        CLIENT,
        "            compare=[compare],\n",
        "",
        "commits of a leader arrive when another one leads",
    ),
    Mutant(
        "a lease is not revoked",
        LEASE,
        "            self._client.revoke(self.number)\n",
        "            pass\n",
        "a leader steps down",
    ),
    Mutant(
        "a thread renews the lease while the loop hangs",
        LEASE,
        "                if self._checks.check() < CHECKS:\n",
        "                if True:\n",
        "the loop of a leader hangs",
    ),
    Mutant(
        "the own clock does not count",
        LEASE,
        "        return not self._ended.is_set() and self._now() < self._until\n",
        "        return not self._ended.is_set()\n",
        "a leader is stopped while it changes a switch that forgets ids",
    ),
    Mutant(
        "a lease counts from when a renewal is answered",
        LEASE,
        "        self._until = max(self._until, sent + seconds)\n",
        "        self._until = max(self._until, self._now() + seconds)\n",
        "renewals are answered late before a leader is cut off",
    ),
    Mutant(
        "a commit has the number of the one before, so that it is made again when it is repeated",
        ENGINE,
        "        self._number += 1\n",
        "        self._number = 1\n",
        "the answer of a commit is lost, and comes when it is repeated",
    ),
    Mutant(
        "a commit that failed in memory stays in etcd",
        ENGINE,
        "        changed = self._in_doubt | set(",
        "        changed = set(",
        "a commit is made, and its answer is lost",
    ),
    Mutant(
        "a commit that failed in memory stays in etcd until the next one",
        "service/leadership.py",
        "        with contextlib.suppress(StoreError), store.change():\n",
        "        with contextlib.suppress(StoreError):\n",
        "a commit is made, its answer is lost, and nothing else is ever committed",
    ),
    Mutant(
        "a controller that has ended goes on",
        "core.py",
        _ENDS,
        "        pass\n",
        "a leader steps down, and leads again soon",
    ),
    Mutant(
        "a change of a switch does not wait for the lease",
        "switches/finsy_adapter.py",
        "    while not may_write():\n",
        "    while False:\n",
        "a leader is stopped while it changes a switch that forgets ids",
    ),
)
