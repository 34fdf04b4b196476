# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The view Sums in a real browser: the contributions to a chunk at each switch of a tree."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from netfold.controller.recording.history import History
from netfold.controller.recording.lines import RecordingSource, fabric_line, state_line
from netfold.controller.web.slot_reads import MAX_SWITCHES, SlotRequest
from netfold.controller.web.source import SourceError, fill
from netfold.topologies.generators import fat_tree
from tests.web.chromium import browser, expect, needs_chromium, open_page
from tests.web.example_recording import example, job_row
from tests.web.test_page import go_to, page, replayed, shown
from tests.web.test_server import Endless

pytestmark = [needs_chromium, pytest.mark.long]  # run by make test-web

__all__ = ["page"]
SLOTS = 512
EPOCH = 2
"""Job epoch of the example's job at its end."""


class Switches(Endless):
    """A controller whose switches hold what a test puts into `held`: (epoch, chunk, contributors) by switch."""

    def __init__(self, lines: list[str] | None = None) -> None:
        self.history = History()
        self.lines = lines or example()
        fill(self.history, self.lines)
        self.held: dict[str, tuple[int, int, list[str]]] = {}
        self.requests: list[SlotRequest] = []
        self.failure = ""

    def children(self, switch: str) -> list[str]:
        trees = [
            tree
            for line in map(json.loads, self.lines)
            for job in line.get("state", {}).get("jobs", {}).values()
            for tree in job["trees"]
        ]
        return next(
            children
            for tree in trees
            if (children := [e["child"] for e in tree["edges"] if e["parent"] == switch])
        )

    async def read_slots(self, request: SlotRequest) -> dict[str, dict[str, Any]]:
        self.requests.append(request)
        if self.failure:
            raise SourceError(self.failure)
        return {switch: self._row(switch) for switch in request.switches}

    def _row(self, switch: str) -> dict[str, Any]:
        epoch, chunk, contributors = self.held.get(switch, (0, 0, []))
        children = self.children(switch)
        return {
            "epoch": epoch,
            "chunk": chunk,
            "contributors": contributors,
            "missing": [child for child in children if child not in contributors],
            "overflow": False,
            "exponent": 0,
            "lanes": [sum(20 if child.startswith("leaf") else 5 for child in contributors)] * 8,
        }


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


def card(page: Any, switch: str) -> Any:
    return page.locator(f'#sum-nodes .sum[data-switch="{switch}"]')


def names(page: Any, switch: str, kind: str) -> list[str]:
    found: list[str] = card(page, switch).locator(f'[data-kind="{kind}"] .chips span').all_inner_texts()
    return found


def test_each_switch_shows_the_contributions_that_it_has_and_that_are_missing(context: Any):
    source = Switches()
    source.held = {
        "leaf1": (EPOCH, 7 * SLOTS, ["h1", "h2", "h3", "h4"]),
        "leaf2": (EPOCH, 7 * SLOTS, ["h5", "h6"]),
        "spine2": (EPOCH, 7 * SLOTS, ["leaf1"]),
    }
    with shown(source) as address, open_page(context, address) as page:
        page.click("#tab-sums")
        expect(card(page, "leaf1")).to_have_attribute("data-status", "complete")
        expect(card(page, "leaf2")).to_have_attribute("data-status", "waiting")
        assert names(page, "leaf1", "in") == ["h1", "h2", "h3", "h4"]
        assert names(page, "leaf2", "missing") == ["h7", "h8"]
        assert names(page, "spine2", "missing") == ["leaf2"]
        expect(card(page, "leaf2")).to_contain_text("sum 10 10 10 10 10 10 10 10")
        expect(page.locator("#sum-answer")).to_have_text(
            f"Chunk {7 * SLOTS} (slot 0 of {SLOTS}, job epoch {EPOCH}): spine2 lacks leaf2; leaf2 lacks h7, h8."
        )
        source.held["leaf2"] = (EPOCH, 7 * SLOTS, ["h5", "h6", "h7", "h8"])
        source.held["spine2"] = (EPOCH, 7 * SLOTS, ["leaf1", "leaf2"])
        page.get_by_label("every second").check()
        expect(page.locator("#sum-answer")).to_contain_text("the sum is complete")


def test_a_chunk_is_told_from_those_before_and_after_it_in_its_slot(context: Any):
    source = Switches()
    source.held = {
        "leaf1": (EPOCH, 3 + 2 * SLOTS, ["h1"]),
        "leaf2": (EPOCH, 3 + SLOTS, ["h5", "h6", "h7", "h8"]),
        "spine2": (EPOCH - 1, 3 + 9 * SLOTS, ["leaf1"]),
    }
    with shown(source) as address, open_page(context, address) as page:
        page.click("#tab-sums")
        page.select_option("#sum-unit", "chunk")
        page.get_by_label("Number", exact=True).fill(str(3 + SLOTS))
        page.keyboard.press("Enter")
        expect(card(page, "leaf1")).to_contain_text(f"over: its slot holds chunk {3 + 2 * SLOTS}")
        expect(card(page, "leaf2")).to_have_attribute("data-status", "complete")
        expect(card(page, "spine2")).to_contain_text(f"chunk {3 + 9 * SLOTS} of epoch {EPOCH - 1}")
        assert names(page, "spine2", "missing") == ["leaf1", "leaf2"]
        assert source.requests[-1].slot == 3


def test_a_slot_that_was_never_used_says_so(context: Any):
    with shown(Switches()) as address, open_page(context, address) as page:
        page.click("#tab-sums")
        expect(page.locator("#sum-answer")).to_have_text(re.compile("No packet has claimed it: slot 0 of"))
        expect(card(page, "leaf1")).to_contain_text("its slot was never used")


def test_why_nothing_was_read_is_shown(context: Any):
    source = Switches()
    source.failure = "pages read 10 slots a second already: try again"
    with shown(source) as address, open_page(context, address) as page:
        # the browser itself reports an answer 503 in its console
        page.route("**/slots?*", lambda route: route.fulfill(json={"error": source.failure}))
        page.click("#tab-sums")
        expect(page.locator("#sum-answer")).to_have_text(source.failure)


def test_a_recording_says_that_it_has_no_slots_and_shows_what_it_has(page: Any):
    page.click("#tab-sums")
    expect(page.locator("#sum-answer")).to_have_text(re.compile("A recording has no slots"))
    expect(page.get_by_role("button", name="Read")).to_be_disabled()
    assert names(page, "leaf1", "adds up") == ["h1", "h2", "h3", "h4"]
    expect(card(page, "leaf1")).to_contain_text("accumulated 8,000/s")


def test_at_a_moment_of_the_past_nothing_is_read(context: Any):
    source = Switches()
    with shown(source) as address, open_page(context, address) as page:
        go_to(page, 10)
        page.click("#tab-sums")
        expect(page.locator("#sum-answer")).to_contain_text("Slots are read as they are now")
        assert source.requests == []
        page.click("#live")
        expect(page.locator("#sum-answer")).to_contain_text("slot 0")
        assert len(source.requests) == 1


def test_following_stops_in_the_past_and_goes_on_when_live(context: Any):
    source = Switches()
    with shown(source) as address, open_page(context, address) as page:
        page.click("#tab-sums")
        page.get_by_label("every second").check()
        go_to(page, 10)
        expect(page.locator("#sum-answer")).to_contain_text("Slots are read as they are now")
        page.click("#live")
        before = len(source.requests)
        while len(source.requests) < before + 3:
            page.wait_for_timeout(100)


def test_a_choice_during_a_read_is_read_next(context: Any):
    source = Switches()
    with shown(source) as address, open_page(context, address) as page:
        page.click("#tab-sums")
        expect(page.locator("#sum-answer")).to_contain_text("slot 0 of")
        page.route("**/slots?*slot=1&*", lambda route: (page.wait_for_timeout(300), route.continue_()))
        page.fill("#sum-number", "1")
        page.click("#sum-read")
        page.fill("#sum-number", "2")
        page.click("#sum-read")
        expect(page.locator("#sum-answer")).to_contain_text("slot 2 of")
        assert [request.slot for request in source.requests][-1] == 2


def test_a_view_that_is_not_shown_reads_nothing(context: Any):
    source = Switches()
    with shown(source) as address, open_page(context, address) as page:
        page.click("#tab-sums")
        page.get_by_label("every second").check()
        while len(source.requests) < 3:
            page.wait_for_timeout(100)
        page.click("#tab-events")
        page.wait_for_timeout(200)  # one that is under way
        before = len(source.requests)
        page.wait_for_timeout(2500)
        assert len(source.requests) == before


def test_a_wide_tree_asks_for_no_more_switches_than_the_server_takes(context: Any):
    fabric = fat_tree(20)
    edges = [{"child": h.name, "parent": fabric.attachment(h.name), "path": []} for h in fabric.hosts]
    leaves = sorted({edge["parent"] for edge in edges})
    edges += [{"child": leaf, "parent": "core1", "path": []} for leaf in leaves]
    tree = {"root": "core1", "share": 1, "nodes": [], "edges": edges, "result_links": []}
    rows = {"jobs": {"wide": job_row([{**tree, "tree": 1, "slots": SLOTS, "window": 8}], ["h1"])}}
    source = Switches([fabric_line(fabric, RecordingSource.CONTROLLER), state_line(1.0, rows)])
    source.held = {"core1": (1, 0, leaves[:2])}
    with shown(source) as address, open_page(context, address) as page:
        page.click("#tab-sums")
        expect(card(page, "core1")).to_have_attribute("data-status", "waiting")
        (request,) = source.requests
        assert len(request.switches) == MAX_SWITCHES
        assert request.switches[0] == "core1"
        expect(page.locator("#sum-answer")).to_contain_text("core1 lacks")


def test_the_keyboard_chooses_and_reads(context: Any):
    source = Switches()
    with shown(source) as address, open_page(context, address) as page:
        page.focus("#tab-fabric")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        expect(page.locator("#panel-sums")).to_be_visible()
        page.focus("#sum-job")
        for expected in ("sum-tree", "sum-unit", "sum-number"):
            page.keyboard.press("Tab")
            assert page.evaluate("document.activeElement.id") == expected
        page.keyboard.type("5")
        page.keyboard.press("Enter")
        expect(page.locator("#sum-answer")).to_contain_text("slot 5 of")
        assert source.requests[-1].slot == 5
        expect(page.locator("#sum-answer")).to_have_attribute("role", "status")


def test_the_picture_of_a_sum_opens(context: Any):
    with replayed(example()) as address, open_page(context, address) as page:
        page.click("#tab-sums")
        page.get_by_text("How a sum is made", exact=True).click()
        page.wait_for_function("() => document.querySelector('#panel-sums img').naturalWidth > 0")
