# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Decides which links and switches have failed, and when jobs have to leave them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from netfold.controller.lifecycle.clock import Clock
from netfold.controller.lifecycle.events import CapacityFreed, ElementsFailed, EventBus, FailuresChanged
from netfold.controller.lifecycle.failure_state import FailureState
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.controller.switches.failed_elements import FailedElements, link_name
from netfold.controller.switches.fleet import Fleet
from netfold.controller.switches.miscabling import Miscabling

CallLater = Callable[..., None]
"""A function call_later(seconds, function, *arguments)."""

START_CHECK_S = 1.0
"""Seconds between two checks of a switch that answers and is not ready."""


class FailureMonitor:
    """Keeps `failures`, and publishes FailuresChanged, ElementsFailed and CapacityFreed."""

    def __init__(
        self,
        fleet: Fleet,
        timeouts: ControllerTimeouts,
        call_later: CallLater,
        failures: FailureState,
        events: EventBus,
        clock: Clock,
    ) -> None:
        self._failures = failures
        self._clock = clock
        self._fleet = fleet
        self._timeouts = timeouts
        self._call_later = call_later
        self._events = events
        self._up: set[str] = set()
        self._connecting: set[str] = set(fleet.sessions)
        self._timed: set[str] = set()
        """Switches that have a restart timeout."""
        self._cuts: Counter[frozenset[str]] = Counter()
        """Number of times that each link went down."""

    def start(self) -> None:
        for switch in self._fleet.sessions:
            self._call_later(self._timeouts.start, self._on_start_timeout, switch)

    def switch_changed(self, switch: str) -> None:
        if self._fleet.health(switch).ready:
            self._up.add(switch)
            self._mark_known(switch)
            self._failures.awaited -= {switch}
            if switch in self._failures.failed.switches:
                self._publish_failed(
                    FailedElements(self._failures.failed.links, self._failures.failed.switches - {switch})
                )
                self._events.publish(CapacityFreed())
        elif switch in self._up:
            self._up.discard(switch)
            self._call_later(self._timeouts.reroute, self._on_unreachable, switch)
            self._time_restart(switch)

    def links_changed(
        self, down: frozenset[frozenset[str]], miscablings: tuple[Miscabling, ...] = ()
    ) -> None:
        """Set the links between switches that are down now, and the cables that lead elsewhere."""
        before = self._failures.failed.links
        self._failures.miscablings = miscablings
        self._failures.awaited = (self._failures.awaited - (before - down)) | (down - before)
        self._publish_failed(FailedElements(down, self._failures.failed.switches))
        for link in down - before:
            self._cuts[link] += 1
            self._call_later(self._timeouts.restart, self._on_link_timeout, link, self._cuts[link])
            elements = FailedElements(frozenset((link,)))
            why = next((f": {m}" for m in miscablings if m.link == link_name(link)), "")
            self._events.publish(ElementsFailed(elements, f"link {link_name(link)} is down{why}", False))
        if before - down:
            self._events.publish(CapacityFreed())

    def on_failures_changed(self, _: FailuresChanged) -> None:
        """Wait again for switches that were given up, and are held now."""
        for switch in self._failures.failed.switches - self._failures.awaited:
            if self._failures.held_s(switch):
                self._failures.awaited |= {switch}
                self._time_restart(switch)

    def _on_link_timeout(self, link: frozenset[str], cut: int) -> None:
        """Make jobs without another plan fail, as the link is still down, unless a switch at its end is held."""
        if self._cuts[link] == cut and link in self._failures.failed.links:
            if held_s := max(map(self._failures.held_s, link)):
                self._call_later(min(held_s, self._timeouts.restart), self._on_link_timeout, link, cut)
                return
            why = f"link {link_name(link)} is down for {self._timeouts.restart:g} s"
            self._give_up(link, ElementsFailed(FailedElements(frozenset((link,))), why, True))

    def _on_start_timeout(self, switch: str) -> None:
        """Give up a switch that has not been ready since the start. One that answers may still be loading its
        pipeline."""
        health = self._fleet.health(switch)
        if switch not in self._connecting:
            return
        if health.reached:
            self._call_later(START_CHECK_S, self._on_start_timeout, switch)
            return
        self._on_unreachable(switch)
        self._time_restart(switch)
        self._mark_known(switch)

    def _mark_known(self, switch: str) -> None:
        self._connecting.discard(switch)
        if not self._connecting:
            self._failures.known.set()

    def _on_unreachable(self, switch: str) -> None:
        """Move jobs that can avoid the switch; the others wait for it."""
        if self._fleet.health(switch).ready or switch in self._failures.failed.switches:
            return
        self._failures.awaited |= {switch}
        self._publish_failed(
            FailedElements(self._failures.failed.links, self._failures.failed.switches | {switch})
        )
        elements = FailedElements(switches=frozenset((switch,)))
        self._events.publish(ElementsFailed(elements, f"switch {switch} is unreachable", False))

    def _time_restart(self, switch: str) -> None:
        if switch not in self._timed:
            self._timed.add(switch)
            self._call_later(self._timeouts.restart, self._on_restart_timeout, switch)

    def _on_restart_timeout(self, switch: str) -> None:
        """Make jobs without another plan fail, unless the switch is held, or another controller is primary, because the
        switch then still adds up, or the switch is silent: a slow switch is not dead, and jobs wait for it. An attempt
        to connect that is in flight may find that it takes connections."""
        health, seconds = self._fleet.health(switch), self._timeouts.restart
        if health.ready:
            self._timed.discard(switch)
            return
        if held_s := self._failures.held_s(switch):
            self._call_later(min(held_s, seconds), self._on_restart_timeout, switch)
            return
        left_s = seconds - (self._clock.monotonic_s() - health.since)
        slack_s = 0.1 * seconds
        is_early = left_s > slack_s
        if health.silent or health.preempted or is_early:
            if health.preempted and not is_early:  # it may be held for ever
                self._failures.awaited -= {switch}
                self._events.publish(FailuresChanged())
            self._call_later(left_s if is_early else seconds, self._on_restart_timeout, switch)
            return
        if health.failed_at - health.since < seconds:
            self._call_later(slack_s, self._on_restart_timeout, switch)
            return
        self._timed.discard(switch)
        why = f"switch {switch} is unreachable for {seconds:g} s ({health.error})"
        self._give_up(switch, ElementsFailed(FailedElements(switches=frozenset((switch,))), why, True))

    def _give_up(self, element: str | frozenset[str], event: ElementsFailed) -> None:
        self._failures.awaited -= {element}
        self._events.publish(event)

    def _publish_failed(self, failed: FailedElements) -> None:
        self._failures.failed = failed
        self._events.publish(FailuresChanged())
