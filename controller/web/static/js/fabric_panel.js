// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

/** The view Fabric: the drawing, which trees and loads it shows, and what is selected. */
import { FabricView } from "./fabric_view.js";
import { describeNode, fullestLinks, LEVELS, notReady, percent, stateOf } from "./fabric_state.js";
import { JOB_COLORS } from "./trees.js";
import { section } from "./recording.js";
import { short, write } from "./numbers.js";

const SHOWN_LINKS = 8;

export class FabricPanel {
  constructor(root) {
    this._root = d3.select(root);
    this._selected = null;
    this._hidden = new Set(); // jobs whose trees are not shown
    this._colors = new Map();
    this._view = new FabricView(this._root.select("#fabric").node(), {
      onSelect: (id) => {
        this._selected = id;
        if (this._state) this._describe();
      },
    });
    this._root.select("#fit").on("click", () => this._view.fit());
    this._root.select("#ungroup").on("click", () => this._view.toggleGroups());
    this._root.selectAll("[name=load]").on("change", () => this.draw(this._state));
    drawLegend(this._root.select("#legend"));
  }

  draw(state) {
    this._state = state;
    const jobs = [...section(state, "jobs")].filter(([, job]) => job.trees?.length);
    for (const [name] of jobs) if (!this._colors.has(name)) this._colors.set(name, this._colors.size % JOB_COLORS);
    this._offerTrees(jobs.map(([name]) => name));
    const trees = jobs
      .filter(([name]) => !this._hidden.has(name))
      .map(([name, job]) => ({ job: name, color: this._colors.get(name), trees: job.trees }));
    this._view.draw(state, { load: this._root.select("[name=load]:checked").property("value"), trees });
    this._root.select("#ungroup").attr("hidden", this._view.layout.isGrouped ? null : "");
    this._describe();
    this._listLinks();
    this._root.select("#away").selectAll("li").data(notReady(state)).join("li").call(write);
  }

  _offerTrees(names) {
    this._root
      .select("#tree-choice")
      .selectAll("label")
      .data(names, (name) => name)
      .join((enter) => {
        const label = enter.append("label");
        label.append("input").attr("type", "checkbox").property("checked", true).on("change", (event, name) => {
          if (event.target.checked) this._hidden.delete(name);
          else this._hidden.add(name);
          this.draw(this._state);
        });
        const swatch = label.append("svg").attr("class", "swatch").attr("viewBox", "0 0 24 10").attr("aria-hidden", "true");
        swatch.append("line").attr("x2", 24).attr("y1", 5).attr("y2", 5).attr("class", "tree").attr("data-color", (name) => this._colors.get(name));
        label.append("span").text((name) => name);
        return label;
      });
    this._root.select("#tree-choice").attr("hidden", names.length ? null : "");
  }

  _describe() {
    const node = this._view.layout?.nodes.find((item) => item.id === this._selected);
    const rows = node
      ? nodeLines(this._state, node)
      : this._selected
        ? linkLines(this._state, this._view.layout, this._selected)
        : ["Select a switch, a host or a link."];
    this._root.select("#details").selectAll("p").data(rows).join("p").call(write);
  }

  _listLinks() {
    this._root.select("#links .unit").text(`, ${this._state.fabric.unit.name}`);
    const rows = this._root.select("#links tbody").selectAll("tr").data(fullestLinks(this._state, SHOWN_LINKS)).join("tr");
    rows.selectAll("td").data((row) => [row.id.replace("->", " → "), percent(row.used), short(row.jobs), short(row.cross)]).join("td").call(write);
  }
}

function nodeLines(state, node) {
  const { lines, packets = [] } = stateOf(state, node);
  return [describeNode(node, { lines: [] }), ...lines, ...packets];
}

function linkLines(state, layout, id) {
  const direction = layout.links.flatMap((link) => link.directions).find((item) => item.id === id);
  if (!direction) return ["Select a switch, a host or a link."];
  const unit = state.fabric.unit.name;
  return direction.members.map(({ id: link, rate }) => {
    const row = section(state, "links").get(link);
    const load = row ? `jobs ${short(row[0])}, cross traffic ${short(row[1])}` : "load unknown";
    return `link ${link.replace("->", " → ")}: ${load}, of ${short(rate)} ${unit}`;
  });
}

function drawLegend(legend) {
  const entry = (title, draw) => {
    const item = legend.append("span").attr("class", "entry");
    draw(item.append("svg").attr("class", "swatch").attr("viewBox", "0 0 24 14").attr("aria-hidden", "true"));
    item.append("span").text(title);
  };
  const limits = ["idle", ...LEVELS.map((limit) => `≥ ${Math.round(limit * 100)} %`)];
  limits.forEach((title, level) =>
    entry(title, (svg) =>
      svg.append("g").attr("class", "direction").attr("data-level", level).append("line").attr("class", "load")
        .attr("x2", 24).attr("y1", 7).attr("y2", 7).attr("stroke-width", [1.5, 2, 2.75, 3.5, 4.5, 6][level]),
    ),
  );
  entry("cross traffic", (svg) => svg.append("line").attr("class", "cross").attr("x2", 24).attr("y1", 7).attr("y2", 7).attr("stroke-width", 3));
  entry("tree, up", (svg) => svg.append("line").attr("class", "tree up").attr("x2", 24).attr("y1", 7).attr("y2", 7).attr("data-color", 0));
  entry("tree, down", (svg) => svg.append("line").attr("class", "tree down").attr("x2", 24).attr("y1", 7).attr("y2", 7).attr("data-color", 0));
  const box = (state) => (svg) => svg.append("g").attr("class", "node switch").attr("data-state", state).append("rect").attr("class", "body").attr("x", 2).attr("y", 1).attr("width", 20).attr("height", 12).attr("rx", 3);
  entry("switch ready", box("ready"));
  entry("away", box("away"));
  entry("root of a tree", (svg) => svg.append("rect").attr("class", "root").attr("x", 2).attr("y", 1).attr("width", 20).attr("height", 12).attr("rx", 3).attr("data-color", 0));
  const dot = (state) => (svg) => svg.append("g").attr("class", "node host").attr("data-state", state).append("circle").attr("class", "body").attr("cx", 12).attr("cy", 7).attr("r", 5.5);
  entry("worker", dot("working"));
  entry("straggler", dot("straggler"));
  entry("idle host", dot("idle"));
}
