// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

/** The view Sums: of one chunk, which contributions each switch of a tree has, and which are missing. */
import { readSlots } from "./connection.js";
import { section } from "./recording.js";
import { short, write } from "./numbers.js";
import { nodesByLevel, statusOf } from "./tree_sums.js";

const PERIOD_MS = 1000;
const MAX_SWITCHES = 32; // of a request: slot_reads.py
const SHOWN_NAMES = 64; // of a switch's children

const NO_SLOTS = "A recording has no slots: the sums were in the switches. It has the tree, and the rates of the job's packets.";
const IN_THE_PAST = "Slots are read as they are now. Live goes there. Below are the tree and the rates of the moment shown.";

export class SumsPanel {
  constructor(root) {
    this._root = d3.select(root);
    this._hasController = false;
    this._read = null; // {key, rows}: the newest answer
    this._timer = null;
    this._root.select("#sum-choice").on("submit", (event) => {
      event.preventDefault();
      this._readNow();
    });
    for (const id of ["job", "tree", "unit"]) this._root.select(`#sum-${id}`).on("change", () => this._readNow());
    this._root.select("#sum-follow").on("change", () => this._readNow());
  }

  setHasController(hasController) {
    this._hasController = hasController;
  }

  draw(state, time) {
    this._state = state;
    this._canRead = this._hasController && time === null;
    this._offer();
    for (const id of ["read", "follow"]) this._root.select(`#sum-${id}`).property("disabled", !this._canRead || !this._tree);
    this._drawNodes();
    if (this._canRead && this._tree && this._read?.key !== this._key && !this._isReading) this._readNow();
  }

  /** The jobs that run, and the trees of the chosen one; what was chosen stays if it can. */
  _offer() {
    const jobs = [...section(this._state, "jobs")].filter(([, job]) => job.trees?.length);
    const jobName = choose(this._root.select("#sum-job"), jobs.map(([name]) => [name, name]));
    this._jobName = jobName;
    this._job = section(this._state, "jobs").get(jobName);
    const trees = this._job?.trees ?? [];
    const options = trees.map((tree, index) => [String(tree.tree ?? index + 1), `${tree.tree ?? index + 1}, root ${tree.root}`]);
    const chosen = choose(this._root.select("#sum-tree"), options);
    this._tree = trees[options.findIndex(([value]) => value === chosen)];
  }

  /** `{slot, chunk}` of the number; `chunk` is null where the number is a slot's: the newest one of the slot is meant. */
  get _wanted() {
    const number = Math.max(0, Math.floor(Number(this._root.select("#sum-number").property("value")) || 0));
    if (this._root.select("#sum-unit").property("value") === "slot") return { slot: number, chunk: null };
    return { slot: number % (this._tree?.slots || 1), chunk: number };
  }

  get _key() {
    const { slot, chunk } = this._wanted;
    return JSON.stringify([this._jobName, this._job?.epoch, this._tree?.tree, slot, chunk]);
  }

  get _switches() {
    const known = new Set(this._state.fabric.switches.map(({ name }) => name));
    return nodesByLevel(this._tree).flat().filter((name) => known.has(name)).slice(0, MAX_SWITCHES);
  }

  async _readNow() {
    if (this._state) this._offer();
    if (!this._isReading) {
      this._isReading = true;
      while (this._canRead && this._tree) {
        const key = this._key;
        await this._readOnce(key);
        if (key === this._key) break; // else another slot was chosen meanwhile
      }
      this._isReading = false;
      if (this._state) this._drawNodes();
    }
    clearTimeout(this._timer);
    if (this._root.select("#sum-follow").property("checked")) this._timer = setTimeout(() => this._follow(), PERIOD_MS);
  }

  async _readOnce(key) {
    const wanted = { job: this._jobName, tree: this._tree.tree, slot: this._wanted.slot, switches: this._switches };
    try {
      this._read = { key, rows: await readSlots(wanted) };
    } catch (error) {
      this._read = { key, error: error.message, rows: new Map() };
    }
  }

  /** A hidden view reads nothing. */
  _follow() {
    if (this._root.property("hidden") || document.hidden) this._timer = setTimeout(() => this._follow(), PERIOD_MS);
    else this._readNow();
  }

  _drawNodes() {
    const isCurrent = this._canRead && this._read?.key === this._key;
    const rows = isCurrent ? this._read.rows : new Map();
    const { slot, chunk } = this._wanted;
    const current = [...rows.values()].filter((row) => row.epoch === this._job?.epoch);
    const shown = chunk ?? d3.max(current, (row) => row.chunk) ?? null;
    const levels = this._tree ? nodesByLevel(this._tree) : [];
    const cards = levels.map((names) => names.map((name) => this._card(name, rows.get(name), shown)));
    this._root.select("#sum-answer").data([this._answer(isCurrent, shown, slot, cards.flat())]).call(write);
    const level = this._root.select("#sum-nodes").selectAll("ul.level").data(cards).join("ul").attr("class", "level");
    level.attr("aria-label", (_, index) => (index ? `${index} below the root` : "The root"));
    level.selectAll("li.sum").data((all) => all, (card) => card.name).join("li").attr("class", "sum").each(drawCard)
      .attr("data-switch", (card) => card.name).attr("data-status", (card) => card.status);
  }

  _card(name, row, chunk) {
    const children = this._tree.edges.filter((edge) => edge.parent === name).map((edge) => edge.child);
    const card = { name, isRoot: name === this._tree.root, children, notes: [] };
    if (row) return { ...card, ...statusOf(row, { chunk, epoch: this._job.epoch, children }) };
    const isSwitch = this._state.fabric.switches.some((item) => item.name === name);
    const rates = section(this._state, "packets").get(name)?.[this._jobName] ?? {};
    const notes = Object.entries(rates).map(([verdict, rate]) => `${verdict} ${short(rate)}/s`);
    if (!isSwitch) notes.push("a parameter server, which adds up in its own process");
    return { ...card, status: "unread", notes };
  }

  _answer(isCurrent, chunk, slot, cards) {
    if (!this._tree) return "No job has trees at this moment.";
    if (!this._hasController) return NO_SLOTS;
    if (!this._canRead) return IN_THE_PAST;
    if (!isCurrent) return "Reading.";
    if (this._read.error) return this._read.error;
    const place = `slot ${slot} of ${this._tree.slots}, job epoch ${this._job.epoch}`;
    if (chunk === null) return `No packet has claimed it: ${place}.`;
    const root = cards.find((card) => card.isRoot);
    const isDone = root.status === "complete" || root.status === "over";
    const waiting = cards.filter((card) => card.status === "waiting" || card.status === "empty");
    const lacks = waiting.map((card) => `${card.name} lacks ${card.missing.slice(0, 4).join(", ")}${card.missing.length > 4 ? ", ..." : ""}`);
    const state = isDone ? "the sum is complete" : lacks.slice(0, 4).join("; ");
    return `Chunk ${chunk} (${place}): ${state}.`;
  }
}

/** Offer `[value, text]` options, and return the value that is chosen then. */
function choose(select, options) {
  const before = select.property("value");
  select.selectAll("option").data(options, ([value]) => value).join("option").attr("value", ([value]) => value).text(([, text]) => text);
  if (options.some(([value]) => value === before)) select.property("value", before);
  return select.property("value");
}

function drawCard(card) {
  const item = d3.select(this);
  const title = card.isRoot ? `${card.name}, root` : card.name;
  item.selectAll("h3").data([title]).join("h3").text((text) => text);
  const lists = card.status === "unread" ? [["adds up", card.children]] : [["in", card.contributors], ["missing", card.missing]];
  const list = item.selectAll("div.names").data(lists.filter(([, names]) => names?.length), ([kind]) => kind).join((enter) => {
    const box = enter.append("div").attr("class", "names");
    box.append("span").attr("class", "kind").text(([kind]) => kind);
    box.append("span").attr("class", "chips");
    return box;
  });
  list.attr("data-kind", ([kind]) => kind);
  list.select(".chips").selectAll("span").data(([, names]) => shortened(names)).join("span").text((name) => name);
  item.selectAll("p").data(card.notes).join("p").text((text) => text).raise();
}

function shortened(names) {
  return names.length <= SHOWN_NAMES ? names : [...names.slice(0, SHOWN_NAMES), `${names.length - SHOWN_NAMES} more`];
}
