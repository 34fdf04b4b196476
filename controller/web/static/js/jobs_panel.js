// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

/** The view Jobs: all jobs and, of one, its time line, workers and explanation. */
import { Charts } from "./charts.js";
import { why } from "./connection.js";
import { meanOf, section } from "./recording.js";
import { dateOf, percent, short, timeOf } from "./numbers.js";

const ENDED = ["done", "failed", "canceled"];

export class JobsPanel {
  constructor(root, { recording, seek }) {
    this._root = d3.select(root);
    this._recording = recording;
    this._seek = seek;
    this._job = null;
    this._charts = new Charts(this._root.select("#charts").node(), seek);
    this._note = "";
    this._root.select("#why").on("click", () => this._ask());
    this._root.select("#copy-workers").on("click", () => navigator.clipboard.writeText(this._csv()));
  }

  setHasController(hasController) {
    this._root.select("#why").attr("hidden", hasController ? null : "");
    this._note = hasController ? "" : "A recording has no controller to ask.";
    if (this._root.select("#steps li").empty()) this._showAnswer([], this._note);
  }

  draw(state, time) {
    this._state = state;
    const jobs = [...section(state, "jobs")].sort(([, a], [, b]) => ENDED.includes(a.state) - ENDED.includes(b.state) || a.sequence - b.sequence);
    if (!this._job && jobs.length) this._job = jobs[0][0];
    this._listJobs(jobs);
    const job = section(state, "jobs").get(this._job);
    this._root.select("#job").attr("hidden", job ? null : "");
    if (job) this._drawJob(job, time);
  }

  _listJobs(jobs) {
    const rows = this._root
      .select("#jobs tbody")
      .selectAll("tr")
      .data(jobs, ([name]) => name)
      .join((enter) => {
        const row = enter.append("tr");
        row.append("th").attr("scope", "row").append("button").attr("type", "button").attr("class", "link").on("click", (_, [name]) => {
          this._job = name;
          this._showAnswer([], this._note);
          this.draw(this._state, null);
        });
        return row;
      })
      .attr("data-state", ([, job]) => job.state)
      .attr("aria-current", ([name]) => (name === this._job ? "true" : null));
    rows.select("th button").text(([name]) => name);
    rows.selectAll("td").data(([name, job]) => this._cells(name, job)).join("td").text((text) => text);
  }

  _cells(name, job) {
    const isOver = ENDED.includes(job.state);
    const plan = isOver ? this._recording.summaryOf(name, job.sequence) : job;
    return [
      job.state + (job.moving ? ", moving" : ""),
      job.epoch || "",
      plan.scheme ?? "",
      plan.rate === undefined ? "" : `${short(plan.rate)} ${plan.unit}`,
      ...(isOver ? this._pastCells(job, plan) : this._presentCells(name, job)),
      job.straggler ?? "",
      job.reason,
    ];
  }

  _presentCells(name, job) {
    const rows = this._membersOf(name, job).map(([, row]) => row).filter((row) => row?.connected);
    const goodput = rows.length ? `${short(Math.min(...rows.map((row) => row.goodput_mbps)))} Mbit/s` : "";
    return [goodput, `${rows.length}/${job.workers?.length ?? 0}`];
  }

  _pastCells(job, { goodput, workers }) {
    const count = job.workers.filter((host) => workers.has(host)).length;
    return [goodput === null ? "" : `${short(goodput)} Mbit/s, mean`, count ? `${count} took part` : ""];
  }

  _membersOf(name, job) {
    return (job.workers ?? []).map((host) => [host, section(this._state, "members").get(`${name} ${host}`)]);
  }

  _drawJob(job, time) {
    const events = this._recording.events.filter((event) => event.job === this._job && (time === null || event.at <= time));
    this._root.select("#job-title").text(`Job ${this._job}`);
    const marks = events.filter((event) => event.event === "epoch");
    this._charts.draw(this._recording.series.get(this._job) ?? [], marks, time);
    const items = this._root
      .select("#epochs")
      .selectAll("li")
      .data(events, (event, index) => `${event.at} ${index}`)
      .join((enter) => {
        const item = enter.append("li");
        item.append("button").attr("type", "button").attr("class", "link").on("click", (_, event) => this._seek(event.at));
        item.append("span");
        return item;
      });
    items.select("button").text((event) => timeOf(event.at)).attr("aria-label", (event) => `Go to ${dateOf(event.at)}`);
    items.select("span").text((event) => ` ${event.event === "epoch" ? `epoch ${event.epoch}, ` : ""}${event.text}`);
    const rows = this._root.select("#workers tbody").selectAll("tr").data(this._workerRows()).join("tr");
    rows.attr("class", (row) => (row[0] === job.straggler ? "straggler" : null));
    rows.selectAll("td").data((row) => row).join("td").text((text) => text);
  }

  _workerRows() {
    const job = section(this._state, "jobs").get(this._job);
    const past = ENDED.includes(job.state) ? this._recording.summaryOf(this._job, job.sequence).workers : new Map();
    return this._membersOf(this._job, job).map(([host, present]) => {
      const row = present ?? (past.has(host) ? { ...past.get(host), connected: false } : undefined);
      if (!row) return [host, "no", "", "", "", "", "", ""];
      const [rtt, minRtt, retransmitted, marked] = ["rtt_ms", "min_rtt_ms", "retransmitted", "marked"].map((name) => meanOf(row.trees, name));
      const numbers = [short(row.goodput_mbps), short(rtt), short(minRtt), percent(retransmitted), percent(marked), row.chunks];
      return [host, row.connected ? "yes" : "no", ...numbers];
    });
  }

  _csv() {
    const head = ["worker", "connected", "goodput_mbps", "rtt_ms", "min_rtt_ms", "retransmitted", "marked", "chunks"];
    return [head, ...this._workerRows()].map((row) => row.join(",")).join("\n") + "\n";
  }

  async _ask() {
    const job = this._job;
    let steps;
    try {
      steps = await why(job);
    } catch (error) {
      steps = [error.message];
    }
    if (job === this._job) this._showAnswer(steps, `answered at ${timeOf(Date.now() / 1000)}`);
  }

  _showAnswer(steps, when) {
    this._root.select("#answered").text(when);
    this._root.select("#steps").selectAll("li").data(steps).join("li").text((text) => text);
  }
}
