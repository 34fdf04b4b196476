# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser, replaying made-up recordings: what is drawn, at which time, and for which users."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pytest

from netfold.controller.jobs.lookup import default_job
from netfold.controller.planning.planner import make_plan
from netfold.controller.recording.history import History
from netfold.controller.recording.lines import (
    RecordingSource,
    change_line,
    event_line,
    fabric_line,
    plan_row,
    state_line,
)
from netfold.controller.web.source import RecordingReplay, fill
from netfold.topologies.generators import fat_tree, single_switch
from netfold.topologies.spec import load_fabric
from tests.web.chromium import browser, expect, go_to_end, needs_chromium, open_page
from tests.web.example_recording import (
    FULL_AT,
    LOST_AT,
    LOST_SWITCH,
    MOVED_AT,
    SECONDS,
    START_S,
    example,
    job_row,
    switch_row,
)
from tests.web.test_server import shown

pytestmark = [needs_chromium, pytest.mark.long]  # run by make test-web

SPINE = f'.node[data-id="{LOST_SWITCH}"]'
FULL = '.direction[data-id="leaf1->spine1"]'


def replayed(lines: list[str]) -> AbstractContextManager[str]:
    """The address of a page that shows these lines."""
    return shown(RecordingReplay(lines))


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.fixture
def page(context: Any) -> Iterator[Any]:
    """The example, at its end."""
    with replayed(example()) as address, open_page(context, address) as opened:
        go_to_end(opened)
        yield opened


def go_to(page: Any, second: float) -> None:
    """Move the slider to a second of the example."""
    value = round(1000 * second / SECONDS)
    page.locator("#slider").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')) }", value
    )
    page.wait_for_function(
        "([at]) => Math.abs(Number(document.body.dataset.drawn) - at) < 0.5", arg=[START_S + second]
    )


def test_a_page_whose_script_did_not_load_is_loaded_again(context: Any):
    lost: list[str] = []

    def lose_once(route: Any) -> None:
        if lost:
            route.continue_()
        else:
            lost.append(route.request.url)
            route.abort("connectionreset")

    page = context.new_page()
    page.route("**/static/js/time_control.js", lose_once)
    with replayed(example()) as address:
        page.goto(address)
        page.wait_for_selector("body[data-drawn]")
        page.close()
    assert len(lost) == 1


def test_a_full_link_is_red_and_a_lost_switch_gray_at_their_times(page: Any):
    go_to(page, FULL_AT - 5)
    assert page.locator(FULL).get_attribute("data-level") != "5"
    assert page.locator(SPINE).get_attribute("data-state") == "ready"
    go_to(page, FULL_AT + 5)
    assert page.locator(FULL).get_attribute("data-level") == "5"
    red = page.locator(f"{FULL} .load").evaluate("line => getComputedStyle(line).stroke")
    assert red == "rgb(193, 18, 31)"
    assert page.locator(f"{FULL} .cross").is_visible(), "cross traffic is marked apart from jobs"
    go_to(page, LOST_AT + 2)
    assert page.locator(SPINE).get_attribute("data-state") == "away"
    assert "no answer within 2 s" in page.locator("#away").inner_text()
    gray = page.locator(f"{SPINE} .body").evaluate("body => getComputedStyle(body).fill")
    red_, green, blue = (int(n) for n in gray.removeprefix("rgb(").removesuffix(")").split(","))
    assert max(red_, green, blue) - min(red_, green, blue) < 30


def test_a_jobs_trees_are_drawn_up_and_down_and_leave_a_lost_switch(page: Any):
    def ways() -> set[str]:
        return set(page.locator(".trees path").evaluate_all("all => all.map(p => p.dataset.way)"))

    def touches(name: str) -> bool:
        ends = page.locator(".trees path").evaluate_all(
            "all => all.flatMap(p => [p.__data__.from, p.__data__.to])"
        )
        return name in ends

    go_to(page, 10)
    assert ways() == {"up", "down"}
    assert touches(LOST_SWITCH)
    go_to(page, MOVED_AT + 2)
    assert not touches(LOST_SWITCH)
    page.locator("#tree-choice").get_by_label("training").uncheck()
    page.wait_for_function("() => document.querySelectorAll('.trees path').length === 0")


def test_a_straggler_is_marked(page: Any):
    go_to(page, 55)
    expect(page.locator('#fabric .node[data-state="straggler"]')).to_have_count(1)
    page.locator('#fabric .node[data-state="straggler"]').click()
    expect(page.locator("#details")).to_contain_text("the other workers wait for it")


def test_a_jobs_time_line_has_its_epochs_with_reasons(page: Any):
    page.click("#tab-jobs")
    page.wait_for_selector("#epochs li")
    epochs = page.locator("#epochs").inner_text()
    assert "epoch 1" in epochs
    assert f"epoch 2, moved: switch {LOST_SWITCH} is unreachable" in epochs
    queue = page.locator("#jobs tr", has_text="waiting").inner_text()
    assert "no slots are left at leaf1" in queue
    labels = page.locator("#charts figure:visible").evaluate_all("all => all.map(f => f.ariaLabel)")
    assert any(label == "goodput, Mbit/s: 80 Mbit/s" for label in labels), labels
    assert "window, chunks: 24 chunks" in labels
    page.locator("#epochs button").last.click()
    page.wait_for_function("at => Number(document.body.dataset.drawn) === at", arg=START_S + MOVED_AT)


WRITE_DOWN_LABELS = """() => {
  const write = CanvasRenderingContext2D.prototype.fillText;
  window.labels = [];
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    if (text.startsWith("epoch ")) labels.push([text, x, x + this.measureText(text).width, this.canvas.width]);
    write.call(this, text, x, y);
  };
}"""
AXIS = 48
"""Pixels that the numbers take, left of a chart."""


def test_labels_of_epochs_are_whole_at_both_ends_of_the_time_line(context: Any):
    """The recording ends at once after the second epoch begins; the first begins before the first sample."""
    lines = [line for line in example() if json.loads(line).get("at", 0) <= START_S + MOVED_AT]
    with replayed(lines) as address, open_page(context, address) as page:
        go_to_end(page)
        page.evaluate(WRITE_DOWN_LABELS)
        page.click("#tab-jobs")
        page.wait_for_function("() => new Set(labels.map(([text]) => text)).size === 2")
        for text, start, end, width in page.evaluate("labels"):
            assert AXIS <= start < end <= width, text


class Answering:
    """A live source whose controller explains every job in the same way."""

    is_live = True

    def __init__(self, lines: list[str]) -> None:
        self.history = History()
        fill(self.history, lines)

    async def run(self) -> None: ...

    async def explain(self, job: str) -> list[str]:
        return [f"{job} runs"]


def test_an_answer_of_the_controller_has_its_time_and_goes_with_its_job(context: Any):
    with shown(Answering(example())) as address, open_page(context, address) as page:
        page.click("#tab-jobs")
        page.click("#why")
        expect(page.locator("#steps li")).to_have_text(["training runs"])
        expect(page.locator("#answered")).to_have_text(re.compile(r"answered at \d\d:\d\d:\d\d"))
        page.get_by_role("button", name="waiting").click()
        expect(page.locator("#steps li")).to_have_count(0)
        expect(page.locator("#answered")).to_have_text("")


def test_a_recording_offers_no_controller_to_ask(page: Any):
    page.click("#tab-jobs")
    expect(page.locator("#answered")).to_have_text("A recording has no controller to ask.")
    expect(page.locator("#why")).to_be_hidden()


def test_a_recording_plays(page: Any):
    go_to(page, 0)
    page.select_option("#speed", "60")
    page.click("#play")
    page.wait_for_function("at => Number(document.body.dataset.drawn) > at", arg=START_S + 30)
    page.wait_for_function(
        "() => document.querySelector('#play').ariaLabel === 'Play'"
    )  # it stops at the end


def test_two_plans_lie_side_by_side(context: Any):
    fabric = load_fabric("leaf-spine-2x2")
    spec = default_job(fabric).spec
    plans = {s: plan_row(make_plan(fabric, replace(spec, scheme=s))) for s in ("none", "panama")}
    rows = {"plans": {**plans, "grid": {"error": "no plan: the links are too slow"}}}
    lines = [fabric_line(fabric, RecordingSource.PLANNER), state_line(1.0, rows)]
    with replayed(lines) as address, open_page(context, address) as page:
        page.wait_for_selector("#panel-plans:visible")
        expect(page.locator("#plan-left")).to_have_value("none")
        expect(page.locator("#plan-right")).to_have_value("panama")
        full = '[data-level="5"]'
        # hosts' links to the parameter server
        expect(page.locator(f"#fabric-left {full}").first).to_be_attached()
        page.select_option("#plan-left", "panama")
        page.wait_for_function(
            """() => {
                 const [left, right] = ['left', 'right'].map(
                   side => document.querySelectorAll(`#fabric-${side} .trees path`).length);
                 return left === right && left > 0;
               }"""
        )
        expect(page.locator("#plans")).to_contain_text("the links are too slow")


def test_five_hundred_switches_are_drawn_as_groups(context: Any):
    fabric = fat_tree(20)
    assert len(fabric.switches) == 500
    rows = {
        "switches": {s.name: switch_row(ready=s.name != "edge21") for s in fabric.switches},
        "links": {"agg21->edge21": [0.95 * fabric.link("agg21", "edge21").rate, 0.0]},
    }
    lines = [fabric_line(fabric, RecordingSource.CONTROLLER), state_line(1.0, rows)]
    with replayed(lines) as address, open_page(context, address) as page:
        page.wait_for_function("() => document.querySelectorAll('#fabric .node').length <= 20")
        pods = page.locator('#fabric .node[data-state="part-away"]')
        expect(pods).to_have_attribute("aria-label", re.compile("39 of 40 switches ready"))
        pods.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector('#fabric .node[data-id="edge21"][data-state="away"]')
        expect(page.locator('#fabric .direction[data-id="agg21->edge21"]')).to_have_attribute(
            "data-level", "5"
        )
        page.click("#ungroup")
        page.wait_for_function("() => document.querySelectorAll('#fabric .node').length < 30")


def test_a_recording_opens_when_its_workers_sum_up(context: Any):
    """Long after the controller's start, and long before the end."""
    lines = example()
    idle = [
        fabric_line(load_fabric("leaf-spine-2x2"), RecordingSource.CONTROLLER),
        state_line(START_S - 600, {}),
    ]
    with replayed([*idle, *lines]) as address, open_page(context, address) as page:
        page.wait_for_function("at => Math.abs(Number(document.body.dataset.drawn) - at) <= 2", arg=START_S)
        expect(page.locator("#live")).to_have_attribute("aria-pressed", "false")


def test_keys_go_from_event_to_event(page: Any):
    """From the end back to the first event, and forth; the marks below the slider are as many."""
    times = sorted({json.loads(line)["at"] for line in example() if json.loads(line)["kind"] == "event"})
    assert len(times) > 2
    for at in reversed(times):
        page.keyboard.press("p")
        page.wait_for_function("at => Number(document.body.dataset.drawn) === at", arg=at)
    page.keyboard.press("p")  # nothing was before
    page.keyboard.press("n")
    page.wait_for_function("at => Number(document.body.dataset.drawn) === at", arg=times[1])
    expect(page.locator("#marks .event")).to_have_count(
        sum(json.loads(line)["kind"] == "event" for line in example())
    )
    expect(page.locator("#marks .run")).to_have_count(1)


def test_a_telephone_shows_all_views(page: Any):
    page.set_viewport_size({"width": 360, "height": 640})
    for name in ("fabric", "jobs", "sums", "events"):
        page.click(f"#tab-{name}")
        expect(page.locator(f"#panel-{name}")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
    page.click("#tab-fabric")
    width = page.locator("#fabric svg").evaluate("drawing => drawing.getBoundingClientRect().width")
    assert width > 300


def test_an_address_can_name_a_moment(context: Any):
    with replayed(example()) as address, open_page(context, f"{address}#t={START_S + 12}") as page:
        page.wait_for_function("at => Number(document.body.dataset.drawn) === at", arg=START_S + 12)
        expect(page.locator("#live")).to_have_attribute("aria-pressed", "false")


def test_the_keyboard_reaches_everything(context: Any):
    with replayed(example()) as address, open_page(context, address) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to content"
        page.focus("#tab-fabric")
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.id") == "tab-jobs"
        expect(page.locator("#panel-jobs")).to_be_visible()
        page.keyboard.press("ArrowLeft")
        page.locator('.node[tabindex="0"]').focus()
        start = page.evaluate("document.activeElement.dataset.id")
        page.keyboard.press("ArrowRight")
        after = page.evaluate("document.activeElement.dataset.id")
        assert after != start
        page.keyboard.press("Enter")
        expect(page.locator("#details")).to_contain_text(after)
        expect(page.locator('.node[tabindex="0"]')).to_have_count(1)  # the fabric is one stop of the Tab key


# A live region has no name of its own: a screen reader reads what is written into it, and it may be empty.
UNNAMED = """() => [...document.querySelectorAll('button, input, select, a, [role]:not([role="status"])')]
  .filter(e => e.checkVisibility() && !(e.ariaLabel || e.getAttribute('aria-labelledby') ||
               e.textContent.trim() || e.labels?.length || e.closest('label')))
  .map(e => e.outerHTML.slice(0, 100))"""


def test_a_screen_reader_finds_names_and_roles(page: Any):
    assert page.evaluate(UNNAMED) == []
    page.get_by_role("table", name="Fullest links").wait_for()
    page.click("#tab-sums")
    assert page.evaluate(UNNAMED) == []
    page.click("#tab-jobs")
    for heading in ("Workers", "Why"):
        page.get_by_role("heading", name=heading, exact=True).wait_for()  # without its button's text
    page.get_by_role("table", name="Workers", exact=True).wait_for()
    page.click("#tab-fabric")
    expect(page.locator('[role="tab"][aria-selected="true"]')).to_have_count(1)
    expect(page.locator('.node[data-id="leaf1"]')).to_have_attribute(
        "aria-label", re.compile("switch leaf1; ready; 1024 of 4096 slots in use")
    )
    expect(page.locator("#status")).to_have_attribute("role", "status")


HOSTILE = "<img src=x onerror=alert(1)>&quot;'\"</script><script>alert(1)</script>"


def test_hostile_names_are_text(context: Any):
    """A recording may come from anywhere."""
    fabric = json.loads(fabric_line(single_switch(2), RecordingSource.CONTROLLER))
    text = json.dumps(fabric).replace('"s1"', json.dumps(HOSTILE))
    text = text.replace(f'"name": "{fabric["name"]}"', f'"name": {json.dumps(HOSTILE)}')
    tree = {
        "tree": 1,
        "slots": 4,
        "root": HOSTILE,
        "edges": [{"child": "h1", "parent": HOSTILE, "path": ["h1", HOSTILE]}],
        "result_links": [[HOSTILE, "h1"]],
    }
    rows = {
        "switches": {HOSTILE: {**switch_row(ready=False), "error": HOSTILE}, "__proto__": switch_row()},
        "jobs": {
            HOSTILE: job_row([tree], ["h1"], reason=HOSTILE, scheme=HOSTILE),
            "constructor": job_row([tree], []),
        },
        "links": {f"h1->{HOSTILE}": [1, 1], "__proto__": [1, 1]},
        "failed": {HOSTILE: True},
    }
    event = event_line(2.0, HOSTILE, HOSTILE, job=HOSTILE)
    with replayed([text, state_line(1.0, rows), event]) as address, open_page(context, address) as page:
        page.on("dialog", lambda _: pytest.fail("a script of the recording ran"))
        expect(page.locator("#fabric-name")).to_contain_text(HOSTILE)
        expect(page.locator("#away")).to_contain_text(HOSTILE)
        for tab in ("jobs", "sums", "events"):
            page.click(f"#tab-{tab}")
            page.wait_for_function(
                "name => document.querySelector('main').innerText.includes(name)", arg=HOSTILE
            )
        expect(page.locator("main img:not([src='/static/sum.svg']), main script")).to_have_count(0)


@pytest.mark.parametrize("dark", [False, True])
def test_texts_have_contrast(context: Any, dark: bool):
    """At least 4.5 to 1, as WCAG 2 asks (AA), for the colors of texts on the page's surfaces."""
    with replayed(example()) as address, open_page(context, address, dark=dark) as page:
        ratios = page.evaluate(
            """() => {
                 const probe = document.body.appendChild(document.createElement('div'));
                 const color = name => {
                   probe.style.color = `var(${name})`;
                   return getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(Number);
                 };
                 const luminance = rgb => rgb.map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
                   .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
                 const ratio = (a, b) => {
                   const [x, y] = [luminance(color(a)), luminance(color(b))].sort((m, n) => n - m);
                   return (x + 0.05) / (y + 0.05);
                 };
                 const texts = ['--text', '--muted', '--accent'];
                 const pairs = ['--background', '--surface'].flatMap(b => texts.map(t => [t, b]));
                 pairs.push(['--away-text', '--away'], ['--mark', '--background'], ['--complete', '--background']);
                 return pairs.map(([t, b]) => [t, b, ratio(t, b)]);
               }"""
        )
    assert [r for r in ratios if r[2] < 4.5] == []


def test_a_job_that_is_over_shows_how_it_ran(context: Any):
    """Its row of the state has neither plan nor reports any more."""
    lines = example()
    first = json.loads(lines[1])
    running = first["state"]["jobs"]["training"]
    over = {**running, "state": "done", "reason": "every worker left", "trees": []}
    for of_plan in ("scheme", "rate", "unit"):
        del over[of_plan]
    gone = dict.fromkeys(first["state"]["members"])
    lines.append(change_line(START_S + SECONDS + 1, {"jobs": {"training": over}, "members": gone}))
    with replayed(lines) as address, open_page(context, address) as page:
        go_to_end(page)
        page.click("#tab-jobs")
        row = page.locator("#jobs tbody tr", has_text="training")
        expect(row.locator("td")).to_contain_text(
            [
                "done",
                "1",
                "panama",
                "100 Mbit/s",
                "Mbit/s, mean",
                f"{len(running['workers'])} took part",
                "",
                "left",
            ]
        )
        page.get_by_role("button", name="training").click()
        worker = page.locator("#workers tbody tr").first.locator("td")
        expect(worker.nth(1)).to_have_text("no")
        expect(worker.last).to_have_text(f"{1000 * SECONDS}")
