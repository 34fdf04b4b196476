# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated annealing for small jobs: reaches trees that single moves of the local search (search.py) do not reach.

A step gives one child another parent (a present or a new node) or another route, or replaces the result tree. Two trees
are evaluated at the best of some shares; with more trees a step may also move a part of one share to the others. A step
is accepted if it relieves the fullest resource, else with a probability that falls with its cost and with time. The
number of steps is fixed, so that a seed always gives the same trees."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from netfold.controller.planning.layout import Draft, cheapest_links, result_tree_by
from netfold.controller.planning.resend_paths import find_unreached
from netfold.controller.planning.residual_network import ResidualNetwork

SMALL_JOB = 48
"""Number of workers times trees up to which annealing is tried."""
STEPS = 2_000
HOT, COLD = 0.1, 0.004
"""Temperatures at the first and the last step, as fractions of the utilization."""
SPREAD = 0.01
"""Weight of the sum of all utilizations relative to the greatest one: of equal trees, those with more residual capacity
win."""
OFTEN_DOWN, OFTEN_SHARE = 0.12, 0.12
OF_TWO = np.array([[i / 24, 1 - i / 24] for i in range(25)])
"""Shares at which two trees are evaluated."""


def anneal(
    network: ResidualNetwork,
    drafts: Sequence[Draft],
    workers: Sequence[str],
    nodes: Sequence[str],
    *,
    has_levels: bool = False,
    steps: int = STEPS,
    target: float = float("inf"),
    seed: int = 0,
) -> list[Draft]:
    """Anneal drafts whose result trees are set, and return the best drafts found. With `has_levels`, nodes may send to
    nodes. The search stops at the rate `target`. Trees rooted at a switch stay such that their root can resend
    results."""
    walk = _Walk(network, [d.copy() for d in drafts], workers, nodes, has_levels, random.Random(seed))
    return walk.run(steps, target)


class _Walk:
    def __init__(
        self,
        network: ResidualNetwork,
        drafts: list[Draft],
        workers: Sequence[str],
        nodes: Sequence[str],
        has_levels: bool,
        rng: random.Random,
    ) -> None:
        self.network, self.drafts, self.has_levels, self.rng = network, drafts, has_levels, rng
        self.workers = dict.fromkeys(workers)
        self.nodes = tuple(nodes)
        with np.errstate(divide="ignore"):
            self.slowness = np.where(network.capacity > 0, 1.0 / network.capacity, 1e30)
        self.counts = [self._count(d) for d in drafts]

    def run(self, steps: int, target: float) -> list[Draft]:
        drafts, rng = self.drafts, self.rng
        energy, least = self._energy()
        best = [d.copy() for d in drafts]
        cooling = (COLD / HOT) ** (1.0 / max(1, steps))
        heat = HOT
        for _ in range(steps):
            if least <= 1.0 / target * (1 + 1e-9):
                break
            heat *= cooling
            t = rng.randrange(len(drafts))
            other = self._neighbor(t)
            if other is None:
                continue
            old, old_counts = drafts[t], self.counts[t]
            shares = [d.share for d in drafts]
            drafts[t], self.counts[t] = other, self._count(other)
            if other.share != old.share:
                self._balance(t, shares[t], other.share)
            reached, greatest = self._energy()
            worse = (reached - energy) / energy
            if (worse <= 0 or rng.random() < math.exp(-worse / heat)) and self._answers(other):
                energy = reached
                if greatest < least * (1 - 1e-9):
                    least, best = greatest, [d.copy() for d in drafts]
            else:
                drafts[t], self.counts[t] = old, old_counts
                for draft, share in zip(drafts, shares, strict=True):
                    draft.share = share
        return best

    # ---- loads -------------------------------------------------------------------------------------------

    def _count(self, draft: Draft) -> NDArray[np.int64]:
        """The number of streams of a tree that each resource carries."""
        used = list(draft.result_links)
        spent = self.network.capacity_id
        for child, parent in draft.parent.items():
            used += draft.route[child]
            used.append(spent[parent])
        return np.bincount(used, minlength=len(self.slowness))

    def _energy(self) -> tuple[float, float]:
        """The objective and the greatest utilization, after the best shares of two trees are set."""
        used = np.array(self.counts) * self.slowness
        two = len(self.drafts) == 2
        shares = OF_TWO if two else np.array([[d.share for d in self.drafts]])
        load = shares @ used
        greatest = load.max(axis=1)
        energy = greatest + SPREAD * load.sum(axis=1)
        least = int(energy.argmin())
        if two:
            for draft, share in zip(self.drafts, shares[least], strict=True):
                draft.share = float(share)
        return float(energy[least]), float(greatest[least])

    # ---- steps -------------------------------------------------------------------------------------------

    def _neighbor(self, t: int) -> Draft | None:
        """A draft one step away, or None if this draw gives no valid draft."""
        draw, draft = self.rng.random(), self.drafts[t]
        if draw < OFTEN_DOWN:
            return self._other_down(draft)
        if draw < OFTEN_DOWN + OFTEN_SHARE and len(self.drafts) > 2:
            other = draft.copy()
            other.share = min(1.0, draft.share * self.rng.choice((0.5, 0.8, 0.95, 1.05, 1.25, 2.0)))
            return other
        return self._other_place(draft)

    def _balance(self, t: int, old: float, new: float) -> None:
        """Change the other shares in proportion, so that all sum to 1."""
        for i, draft in enumerate(self.drafts):
            if i != t:
                whole = 1.0 - old
                part = draft.share / whole if whole > 0 else 1.0 / (len(self.drafts) - 1)
                draft.share = part * (1.0 - new)

    def _other_place(self, draft: Draft) -> Draft | None:
        rng = self.rng
        child = rng.choice(tuple(draft.parent))
        inner = child not in self.workers
        parent = draft.root if inner and not self.has_levels else rng.choice((*self.nodes, draft.root))
        if parent == child or (inner and self._leads_to(draft, parent, child)):
            return None
        other = draft.copy()
        if parent != draft.root and parent not in draft.parent:
            above = rng.choice((draft.root, *self._open(draft))) if self.has_levels else draft.root
            if above == child or (inner and self._leads_to(draft, above, child)):
                return None
            if not self._connect(other, parent, above):
                return None
        if not self._connect(other, child, parent):
            return None
        self._close_empty(other)
        return other

    def _open(self, draft: Draft) -> list[str]:
        return [node for node in draft.parent if node not in self.workers]

    def _leads_to(self, draft: Draft, start: str, wanted: str) -> bool:
        at: str | None = start
        while at is not None and at != wanted:
            at = draft.parent.get(at)
        return at == wanted

    def _connect(self, draft: Draft, child: str, parent: str) -> bool:
        routes = self.network.paths.routes(child, parent)
        if not routes:
            return False
        draft.connect(child, parent, self.rng.choice(routes))
        if parent in self.network.server_id:
            return True
        return sum(p == parent for p in draft.parent.values()) <= self.network.max_children(parent)

    def _close_empty(self, draft: Draft) -> None:
        while True:
            used = set(draft.parent.values())
            empty = [node for node in draft.parent if node not in self.workers and node not in used]
            if not empty:
                return
            for node in empty:
                del draft.parent[node], draft.route[node]

    def _other_down(self, draft: Draft) -> Draft | None:
        """A draft with another result tree: shortest paths by links of random lengths."""
        network, rng = self.network, self.rng

        def cost(a: str, b: str) -> float:
            length = rng.random()
            return length if network.capacity[network.link_id[a, b]] > 0 else math.inf

        start = network.attachment(draft.root)
        via = cheapest_links(network, start, cost)
        if any((switch := network.attachment(w)) != start and switch not in via for w in self.workers):
            return None
        other = draft.copy()
        other.result_links = result_tree_by(network, draft, tuple(self.workers), via)
        return other

    def _answers(self, draft: Draft) -> bool:
        network = self.network
        if draft.root in network.server_id:
            return True
        path = {c: network.path(draft.route[c]) for c, p in draft.parent.items() if p == draft.root}
        links = [network.links[i] for i in draft.result_links]
        return find_unreached(draft.root, draft.parent, path, links, self.workers) is None
