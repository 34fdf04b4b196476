// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

/** Draws a fabric: links by load, switches by state, hosts, and trees over them. Elements stay; only what has changed
 * is written to the document. */
import { layOut } from "./fabric_layout.js";
import { describeNode, levelOf, loadOf, stateOf } from "./fabric_state.js";
import { treeSegments } from "./trees.js";
import { percent } from "./numbers.js";

const LINE_OFFSET = 3.5;
const TREE_OFFSET = 9;
const TREE_STEP = 4.5;
const WIDTHS = [1.5, 2, 2.75, 3.5, 4.5, 6];
const BOX = { switch: [72, 34], group: [104, 46], hosts: [64, 26] };
const HOST_RADIUS = 10;

export class FabricView {
  /** `onSelect` takes the id of a node or of a direction of a link, or null. */
  constructor(figure, { onSelect = () => {} } = {}) {
    this._svg = d3.select(figure).append("svg").attr("role", "group").attr("aria-label", "Fabric: move with the arrow keys");
    this._scene = this._svg.append("g");
    this._links = this._scene.append("g").attr("class", "links");
    this._trees = this._scene.append("g").attr("class", "trees").attr("aria-hidden", "true");
    this._nodes = this._scene.append("g").attr("class", "nodes");
    this._zoom = d3.zoom().scaleExtent([0.2, 8]).on("zoom", (event) => this._scene.attr("transform", event.transform));
    this._svg.call(this._zoom).on("dblclick.zoom", null);
    this._onSelect = onSelect;
    this._expanded = new Set();
    this._fabric = null;
    this._selected = null;
    this._drawn = new Map(); // of each element what was written last
    this._treeKey = "";
  }

  get layout() {
    return this._layout;
  }

  fit() {
    this._svg.call(this._zoom.transform, d3.zoomIdentity);
  }

  _zoomTo(nodes) {
    const [left, right] = d3.extent(nodes, (node) => node.x);
    const scale = Math.max(1, Math.min(4, this._layout.width / (right - left + 240)));
    const x = this._layout.width / 2 - (scale * (left + right)) / 2;
    this._svg.call(this._zoom.transform, d3.zoomIdentity.translate(x, 0).scale(scale));
    this._focus(nodes[0].id);
  }

  /** All groups as single switches, or as groups again. */
  toggleGroups() {
    this._expanded = this._expanded.size ? new Set() : new Set(this._layout.groups);
    this._lay();
    this.draw(...this._shown);
  }

  /** `load`: total, jobs or cross; `trees`: `[{job, color, trees}]`. */
  draw(state, { load = "total", trees = [] } = {}) {
    this._shown = [state, { load, trees }];
    if (state.fabric !== this._fabric) {
      this._fabric = state.fabric;
      this._expanded = new Set();
      this._lay();
    }
    this._drawLoads(state, load);
    this._drawStates(state, trees);
    this._drawTrees(trees);
  }

  select(id) {
    this._selected = id;
    this._scene.selectAll("[data-id]").classed("selected", (item) => item?.id === id);
    this._onSelect(id);
  }

  _lay() {
    this._layout = layOut(this._fabric, this._expanded);
    this._drawn.clear();
    this._treeKey = "";
    this._at = new Map(this._layout.nodes.map((node) => [node.id, node]));
    this._svg.attr("viewBox", `0 0 ${this._layout.width} ${this._layout.height}`);
    this._layLinks();
    this._layNodes();
  }

  _layLinks() {
    const directions = this._layout.links.flatMap((link) => link.directions);
    const groups = this._links.selectAll("g.direction").data(directions, (item) => item.id).join((enter) => {
      const group = enter.append("g").attr("class", "direction").attr("data-id", (item) => item.id);
      group.append("path").attr("class", "load");
      group.append("path").attr("class", "cross");
      group.append("path").attr("class", "touch");
      group.append("title");
      group.on("pointerenter", (event, item) => {
        d3.select(event.currentTarget).select("title").text(describeLoad(item, loadOf(this._shown[0], item)));
      });
      return group.on("click", (_, item) => this.select(item.id));
    });
    groups.selectAll("path").attr("d", null);
    groups.each((item, index, all) => {
      d3.select(all[index]).selectAll("path").attr("d", this._line(item.from, item.to, LINE_OFFSET));
    });
  }

  /** From one node to another, shifted to the right of the way. */
  _line(from, to, offset) {
    const [a, b] = [this._at.get(from), this._at.get(to)];
    const [dx, dy] = [b.x - a.x, b.y - a.y];
    const size = Math.hypot(dx, dy) || 1;
    const [ox, oy] = [(-dy / size) * offset, (dx / size) * offset];
    const middle = [(a.x + b.x) / 2 + ox, (a.y + b.y) / 2 + oy];
    const bow = a.tier === b.tier && Math.abs(dx) > 150 ? -40 : 0; // a link within a tier passes above its switches
    if (bow) return `M${a.x + ox},${a.y + oy}Q${middle[0]},${middle[1] + 2 * bow} ${b.x + ox},${b.y + oy}`;
    return `M${a.x + ox},${a.y + oy}L${middle[0]},${middle[1]}L${b.x + ox},${b.y + oy}`;
  }

  _layNodes() {
    const nodes = this._nodes.selectAll("g.node").data(this._layout.nodes, (item) => item.id).join((enter) => {
      const group = enter.append("g").attr("data-id", (item) => item.id).attr("role", "button");
      group.each((item, index, all) => shape(d3.select(all[index]), item));
      return group;
    });
    nodes
      .attr("class", (item) => `node ${item.kind}`)
      .attr("transform", (item) => `translate(${item.x},${item.y})`)
      .attr("tabindex", (_, index) => (index === 0 ? 0 : -1))
      .on("click", (_, item) => this._activate(item))
      .on("keydown", (event, item) => this._onKey(event, item));
  }

  _activate(item) {
    this.select(item.id);
    if (item.kind !== "group") return;
    this._expanded.add(item.id);
    this._lay();
    this.draw(...this._shown);
    this._zoomTo(this._layout.nodes.filter((node) => node.group === item.id));
  }

  /** Arrow keys go to the nearest node in their direction; Enter and the space bar select. */
  _onKey(event, item) {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this._activate(item);
      return;
    }
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    let best = null;
    for (const other of this._layout.nodes) {
      const [dx, dy] = [other.x - item.x, other.y - item.y];
      const along = dx * way[0] + dy * way[1];
      const aside = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
      if (along <= 1) continue;
      const cost = along + 3 * aside;
      if (!best || cost < best.cost) best = { node: other, cost };
    }
    if (best) this._focus(best.node.id);
  }

  _focus(id) {
    const nodes = this._nodes.selectAll("g.node").attr("tabindex", (item) => (item.id === id ? 0 : -1));
    nodes.filter((item) => item.id === id).node().focus();
  }

  /** Whether the element's text or class differs from what was written last. */
  _isNew(id, value) {
    if (this._drawn.get(id) === value) return false;
    this._drawn.set(id, value);
    return true;
  }

  _drawLoads(state, choice) {
    this._links.selectAll("g.direction").each((item, index, all) => {
      const load = loadOf(state, item);
      const used = choice === "jobs" ? load.jobs : choice === "cross" ? load.cross : load.jobs + load.cross;
      const level = load.isFailed ? "failed" : load.isKnown ? levelOf(used) : "unknown";
      const crossWidth = choice === "total" && load.cross >= 0.02 ? 1 + 4 * Math.min(load.cross, 1) : 0;
      if (!this._isNew(item.id, `${level} ${crossWidth.toFixed(1)}`)) return;
      const group = d3.select(all[index]).attr("data-level", level);
      group.select(".load").attr("stroke-width", WIDTHS[level] ?? 1.5);
      group.select(".cross").attr("stroke-width", crossWidth).attr("visibility", crossWidth ? null : "hidden");
    });
  }

  _drawStates(state, trees) {
    const rootOf = new Map(trees.flatMap((job) => job.trees.map((tree) => [this._layout.nodeOf.get(tree.root), job.color])));
    this._nodes.selectAll("g.node").each((item, index, all) => {
      const now = stateOf(state, item);
      const color = rootOf.get(item.id) ?? null;
      const text = describeNode(item, now);
      if (!this._isNew(item.id, `${now.state} ${now.mark} ${now.slots.toFixed(3)} ${color} ${text}`)) return;
      const group = d3.select(all[index]).attr("data-state", now.state).attr("aria-label", text);
      group.select("title").text(text);
      group.select(".mark").text(now.mark);
      group.select(".root").attr("visibility", color === null ? "hidden" : null).attr("data-color", color);
      const [width] = BOX[item.kind] ?? [0];
      group.select(".slots").attr("width", Math.max(0, (width - 12) * Math.min(1, now.slots)));
    });
  }

  _drawTrees(trees) {
    const key = JSON.stringify(trees);
    if (key === this._treeKey) return;
    this._treeKey = key;
    const segments = trees.flatMap((job, place) => treeSegments(job, place, this._layout.nodeOf));
    this._trees
      .selectAll("path")
      .data(segments, (item) => item.id)
      .join("path")
      .attr("class", (item) => `tree ${item.way}`)
      .attr("data-job", (item) => item.job)
      .attr("data-way", (item) => item.way)
      .attr("data-color", (item) => item.color)
      .attr("d", (item) => this._line(item.from, item.to, TREE_OFFSET + TREE_STEP * item.lane))
      .attr("marker-mid", (item) => `url(#${this._arrow(item.color)})`);
  }

  /** The id of an arrowhead in a color. */
  _arrow(color) {
    const id = `arrow-${color}`;
    if (this._svg.select(`#${id}`).empty()) {
      const marker = this._svg.append("marker").attr("id", id).attr("viewBox", "0 0 8 8").attr("orient", "auto");
      marker.attr("refX", 4).attr("refY", 4).attr("markerWidth", 7).attr("markerHeight", 7).attr("markerUnits", "userSpaceOnUse");
      marker.append("path").attr("d", "M0,0L8,4L0,8Z").attr("class", "arrow").attr("data-color", color);
    }
    return id;
  }
}

function shape(group, item) {
  group.append("title");
  if (item.kind === "host") {
    group.append("circle").attr("class", "root").attr("r", HOST_RADIUS + 4).attr("visibility", "hidden");
    if (item.server) group.append("rect").attr("class", "body").attr("x", -9).attr("y", -9).attr("width", 18).attr("height", 18);
    else group.append("circle").attr("class", "body").attr("r", HOST_RADIUS);
    group.append("text").attr("class", "mark").attr("y", 4);
    group.append("text").attr("class", "name").attr("y", 28).text(item.label);
    return;
  }
  const [width, height] = BOX[item.kind];
  const box = (name, grow) =>
    group.append("rect").attr("class", name).attr("rx", 6).attr("x", -width / 2 - grow).attr("y", -height / 2 - grow)
      .attr("width", width + 2 * grow).attr("height", height + 2 * grow);
  box("root", 4).attr("visibility", "hidden");
  box("body", 0);
  group.append("text").attr("class", "name").attr("y", item.kind === "hosts" ? 4 : 0).text(item.label);
  group.append("text").attr("class", "mark").attr("y", -height / 2 - 8);
  if (item.kind === "hosts") return;
  const track = (name) => group.append("rect").attr("class", name).attr("x", -width / 2 + 6).attr("y", height / 2 - 10).attr("height", 4).attr("rx", 2);
  track("track").attr("width", width - 12);
  track("slots").attr("width", 0);
}

function describeLoad(item, load) {
  const count = item.members.length;
  const of = count > 1 ? ` (the fullest of ${count} links)` : "";
  if (load.isFailed) return `${item.id}: down`;
  if (!load.isKnown) return `${item.id}: load unknown`;
  return `${item.id}: jobs ${percent(load.jobs)}, cross traffic ${percent(load.cross)}${of}`;
}
