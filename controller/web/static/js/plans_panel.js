// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

/** The view Plans: two schemes' trees on one fabric, side by side. */
import { FabricView } from "./fabric_view.js";
import { JOB_COLORS } from "./trees.js";
import { section } from "./recording.js";
import { percent, short } from "./numbers.js";

export class PlansPanel {
  constructor(root) {
    this._root = d3.select(root);
    this._sides = ["left", "right"].map((side) => ({
      choice: this._root.select(`#plan-${side}`),
      view: new FabricView(this._root.select(`#fabric-${side}`).node()),
    }));
    for (const { choice } of this._sides) choice.on("change", () => this.draw(this._state));
  }

  draw(state) {
    this._state = state;
    const plans = section(state, "plans");
    const drawn = [...plans].filter(([, plan]) => plan.trees);
    const names = drawn.map(([name]) => name);
    this._sides.forEach(({ choice, view }, side) => {
      const isNew = choice.selectAll("option").empty();
      choice.selectAll("option").data(names).join("option").attr("value", (name) => name).text((name) => name);
      if (isNew && names.length) choice.property("value", side ? fastest(drawn) : names[0]);
      const plan = plans.get(choice.property("value"));
      if (plan) drawPlan(view, state, plan);
    });
    const rows = this._root.select("#plans tbody").selectAll("tr").data([...plans]).join("tr");
    rows.selectAll("td").data(([name, plan]) => cells(state, name, plan)).join("td").text((text) => text);
  }
}

const fastest = (drawn) => drawn.reduce((best, row) => (row[1].rate > best[1].rate ? row : best))[0];

/** A plan's links as loads of jobs; each tree in its own color. */
function drawPlan(view, state, plan) {
  const links = new Map(Object.entries(plan.links).map(([link, load]) => [link, [load, 0]]));
  for (const { a, b } of state.fabric.links) {
    for (const link of [`${a}->${b}`, `${b}->${a}`]) if (!links.has(link)) links.set(link, [0, 0]);
  }
  const trees = plan.trees.map((tree, number) => ({ job: `tree ${number + 1}`, color: number % JOB_COLORS, trees: [tree] }));
  const switches = new Map(state.fabric.switches.map(({ name, slots }) => [name, { ready: true, repaired: 0, slots_in_use: 0, slots }]));
  const sections = new Map([["links", links], ["switches", switches]]);
  view.draw({ fabric: state.fabric, sections }, { trees });
}

function cells(state, name, plan) {
  if (!plan.trees) return [name, plan.error, "", "", ""];
  const rates = new Map(state.fabric.links.flatMap(({ a, b, rate }) => [[`${a}->${b}`, rate], [`${b}->${a}`, rate]]));
  const [link, used] = Object.entries(plan.links).map(([id, load]) => [id, load / rates.get(id)]).sort((x, y) => y[1] - x[1])[0] ?? ["", 0];
  const title = plan.scheme === name ? name : `${name} (${plan.scheme})`;
  return [title, `${short(plan.rate)} ${plan.unit}`, plan.bound === null ? "–" : short(plan.bound), plan.trees.length, `${link.replace("->", " → ")} ${percent(used)}`];
}
