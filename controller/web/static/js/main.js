// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

/** Wires the page: lines arrive, the time control chooses a state, the visible view draws it. */
import { follow } from "./connection.js";
import { EventsPanel } from "./events_panel.js";
import { FabricPanel } from "./fabric_panel.js";
import { JobsPanel } from "./jobs_panel.js";
import { PlansPanel } from "./plans_panel.js";
import { Recording, section } from "./recording.js";
import { SumsPanel } from "./sums_panel.js";
import { TimeControl } from "./time_control.js";

const STATUS = { connecting: "connecting", live: "live", replay: "recording", lost: "connection lost" };
const ARRIVAL_PERIOD_MS = 250;
const VIEWS = ["fabric", "jobs", "sums", "events", "plans"];

const recording = new Recording();
const find = (selector) => document.querySelector(selector);
const seek = (at) => time.seek(at);
const panels = {
  fabric: new FabricPanel(find("#panel-fabric")),
  jobs: new JobsPanel(find("#panel-jobs"), { recording, seek }),
  sums: new SumsPanel(find("#panel-sums")),
  events: new EventsPanel(find("#panel-events"), { recording, seek }),
  plans: new PlansPanel(find("#panel-plans")),
};
const time = new TimeControl(find("#time"), recording, draw);
let view = "fabric";
let isDrawing = false;
let isFirst = true;
let drawnAt = -Infinity;
let isAwaited = false;

/** For lines that arrive: at most once a period, however many updates a second there are. */
function drawArrived() {
  const wait = drawnAt + ARRIVAL_PERIOD_MS - performance.now();
  if (wait <= 0) draw();
  else if (!isAwaited) {
    isAwaited = true;
    setTimeout(() => {
      isAwaited = false;
      draw();
    }, wait);
  }
}

/** At most once a frame. */
function draw() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    if (!recording.isEmpty) drawNow();
  });
}

function drawNow() {
  drawnAt = performance.now();
  const state = recording.stateAt(time.time ?? Infinity);
  time.draw();
  find("#fabric-name").textContent = state.fabric.name;
  document.title = `netfold: ${state.fabric.name}`;
  const hasPlans = section(state, "plans").size > 0;
  find("#tab-plans").hidden = !hasPlans;
  if (isFirst) {
    isFirst = false;
    if (state.fabric.source === "planner") show("plans");
    goToMoment();
  }
  panels[view].draw(state, time.time);
  document.body.dataset.drawn = String(time.time ?? recording.end); // what tests wait for
}

function show(name, { focus = false } = {}) {
  view = name;
  for (const other of VIEWS) {
    const tab = find(`#tab-${other}`);
    tab.setAttribute("aria-selected", String(other === name));
    tab.tabIndex = other === name ? 0 : -1;
    find(`#panel-${other}`).hidden = other !== name;
  }
  if (focus) find(`#tab-${name}`).focus();
  draw();
}

for (const name of VIEWS) {
  const tab = find(`#tab-${name}`);
  tab.addEventListener("click", () => show(name));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const shown = VIEWS.filter((other) => !find(`#tab-${other}`).hidden);
    show(shown[(shown.indexOf(name) + step + shown.length) % shown.length], { focus: true });
  });
}

find("#theme").addEventListener("click", () => {
  const chosen = document.documentElement.dataset.theme;
  const isDark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = isDark ? "light" : "dark";
  draw();
});

/** `#t=SECONDS` of the address is a moment of the recording. */
function goToMoment() {
  const at = Number(new URLSearchParams(location.hash.slice(1)).get("t") ?? NaN);
  if (at >= recording.start && at <= recording.end) time.seek(at);
}

/** A recording often ends after its jobs: it opens where there is something to see. */
function goToFirstBusy() {
  if (time.time === null && !location.hash && recording.firstBusy !== null) time.seek(recording.firstBusy);
}

addEventListener("hashchange", goToMoment);

follow({
  onLines: (lines) => {
    for (const line of lines) recording.add(line);
    drawArrived();
  },
  onStatus: (status) => {
    const pill = find("#status");
    pill.dataset.state = status;
    pill.textContent = STATUS[status];
    find("#live").textContent = status === "replay" ? "End" : "Live";
    panels.jobs.setHasController(status !== "replay");
    panels.sums.setHasController(status !== "replay");
  },
  onEnd: goToFirstBusy,
});
