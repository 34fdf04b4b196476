// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

/** What a drawn element looks like in a state. Pure functions. */
import { section } from "./recording.js";
import { percent, short } from "./numbers.js";

/** Lower limits of the levels 1 to 5 of a link's load, as parts of its rate. */
export const LEVELS = [0.02, 0.25, 0.5, 0.75, 0.9];

export const levelOf = (used) => LEVELS.filter((limit) => used >= limit).length;

/** Of the fullest of a direction's links: load of jobs and of cross traffic, as parts of the rate. */
export function loadOf(state, direction) {
  const links = section(state, "links");
  const failed = section(state, "failed");
  const most = { jobs: 0, cross: 0, isKnown: false, isFailed: false };
  for (const { id, rate } of direction.members) {
    const row = links.get(id);
    if (row === undefined) continue;
    const jobs = row[0] / rate;
    const cross = row[1] / rate;
    if (most.isKnown && jobs + cross <= most.jobs + most.cross) continue;
    most.jobs = jobs;
    most.cross = cross;
    most.isKnown = true;
  }
  const isDown = ({ id }) => failed.has(id.split("->").sort().join("-"));
  most.isFailed = failed.size > 0 && direction.members.every(isDown);
  return most;
}

/** `{state, mark, slots, lines, packets}` of a node; `lines` are its facts as texts, `packets` a switch's rates. */
export function stateOf(state, node) {
  if (node.kind === "host" || node.kind === "hosts") return hostState(state, node);
  const rows = node.members.map((name) => [name, section(state, "switches").get(name)]).filter(([, row]) => row);
  if (!rows.length) return { state: "unknown", mark: "", slots: 0, lines: [] };
  const away = rows.filter(([name, row]) => !row.ready || section(state, "failed").has(name));
  const slots = rows.reduce((sum, [, row]) => sum + row.slots_in_use, 0) / Math.max(1, rows.reduce((sum, [, row]) => sum + row.slots, 0));
  const kind = away.length === rows.length ? "away" : away.length ? "part-away" : "ready";
  const lines = rows.length === 1 ? switchLines(rows[0][1], away.length > 0) : [`${rows.length - away.length} of ${rows.length} switches ready`];
  const mark = kind === "away" ? "✕ away" : kind === "part-away" ? `${away.length} away` : "";
  return { state: kind, mark, slots, lines, packets: packetLines(state, node) };
}

function switchLines(row, isAway) {
  const slots = `${row.slots_in_use} of ${row.slots} slots in use`;
  return isAway ? [`away: ${row.error || "failed"}`, slots] : ["ready", slots, `${row.repaired} entries repaired`];
}

function packetLines(state, node) {
  if (node.members.length !== 1) return [];
  const rates = section(state, "packets").get(node.members[0]) ?? {};
  return Object.entries(rates).flatMap(([job, verdicts]) =>
    Object.entries(verdicts).map(([verdict, rate]) => `${job || "no job"}: ${verdict} ${short(rate)}/s`),
  );
}

function hostState(state, node) {
  const lines = [];
  let kind = "idle";
  let mark = "";
  for (const [name, job] of section(state, "jobs")) {
    if (!["running", "installing"].includes(job.state)) continue;
    const mine = node.members.filter((host) => job.workers?.includes(host) || job.trees.some((tree) => tree.root === host));
    if (!mine.length) continue;
    const rows = mine.map((host) => section(state, "members").get(`${name} ${host}`)).filter(Boolean);
    const connected = rows.filter((row) => row.connected).length;
    if (kind === "idle") kind = connected || !rows.length ? "working" : "absent"; // a simulation has no reports
    if (mine.some((host) => job.excluded?.includes(host))) [kind, mark] = ["excluded", "–"];
    if (mine.includes(job.straggler)) [kind, mark] = ["straggler", "!"];
    lines.push(mine.length === 1 ? workerLine(name, job, mine[0], rows[0]) : `${name}: ${rows.length ? `${connected} of ${mine.length} workers connected` : `${mine.length} workers`}`);
  }
  return { state: kind, mark, slots: 0, lines };
}

function workerLine(name, job, host, row) {
  if (job.excluded?.includes(host)) return `${name}: left out`;
  if (!row) return `${name}: worker`;
  if (!row.connected) return `${name}: not connected`;
  const straggler = job.straggler === host ? ", straggler: the other workers wait for it" : "";
  return `${name}: ${short(row.goodput_mbps)} Mbit/s${straggler}`;
}

/** One sentence for screen readers and tooltips. */
export function describeNode(node, now) {
  return [node.kind === "host" ? `host ${node.label}` : node.kind === "switch" ? `switch ${node.label}` : node.label, ...now.lines].join("; ");
}

const ratesOf = new WeakMap(); // by fabric: the rate of each direction of a link

function rates(fabric) {
  if (!ratesOf.has(fabric)) {
    const found = new Map();
    for (const { a, b, rate } of fabric.links) found.set(`${a}->${b}`, rate).set(`${b}->${a}`, rate);
    ratesOf.set(fabric, found);
  }
  return ratesOf.get(fabric);
}

/** Links by use, the fullest first: `{id, used, jobs, cross}`. */
export function fullestLinks(state, count) {
  const known = rates(state.fabric);
  const most = [];
  for (const [id, row] of section(state, "links")) {
    const rate = known.get(id);
    if (rate === undefined) continue;
    const used = (row[0] + row[1]) / rate;
    if (most.length === count && used <= most[count - 1].used) continue;
    if (most.length === count) most.pop();
    const place = most.findIndex((other) => other.used < used);
    most.splice(place < 0 ? most.length : place, 0, { id, used, jobs: row[0], cross: row[1], rate });
  }
  return most;
}

/** What is not ready, as texts. */
export function notReady(state) {
  const switches = [...section(state, "switches")].filter(([, row]) => !row.ready).map(([name, row]) => `${name}: ${row.error}`);
  const known = section(state, "switches");
  const failed = [...section(state, "failed").keys()].filter((name) => known.get(name)?.ready ?? true).map((name) => `${name}: down`);
  return [...switches, ...failed];
}

export { percent };
