// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

/** Which time of the recording is shown: the newest (live), or one that was sought, or one that is playing. */
import { dateOf } from "./numbers.js";

const STEPS = 1000;
const TICK_MS = 100;

/** A recording of less than some seconds, as of a simulation, plays in so many. */
const SHORTEST_S = 20;

const slowMotion = ({ start, end }) => Math.min(1, (end - start) / SHORTEST_S);

export class TimeControl {
  /** `onChange` is called when another time is to be drawn. */
  constructor(root, recording, onChange) {
    this._root = d3.select(root);
    this._recording = recording;
    this._onChange = onChange;
    this._time = null; // null: the newest
    this._timer = null;
    this._root.select("#slider").on("input", (event) => {
      const { start, end } = recording;
      const sought = start + ((end - start) * event.target.value) / STEPS;
      this._pause();
      this.seek(sought);
    });
    this._root.select("#play").on("click", () => (this._timer ? this._pause() : this._play()));
    this._root.select("#live").on("click", () => this.goLive());
    d3.select(document).on("keydown.time", (event) => {
      const step = { n: 1, p: -1 }[event.key];
      const isTyping = event.target.matches("select, input:not([type=range])");
      if (step && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) this._seekEvent(step);
    });
  }

  /** Seconds since 1970; null: the newest. */
  get time() {
    return this._time;
  }

  seek(time) {
    const { start, end } = this._recording;
    this._time = Math.min(Math.max(time, start), end);
    this._onChange();
  }

  /** To the next event (1) or the previous one (-1). */
  _seekEvent(step) {
    const shown = this._time ?? this._recording.end;
    const times = this._recording.events.map((event) => event.at).filter((at) => (at - shown) * step > 0);
    const next = step > 0 ? d3.min(times) : d3.max(times);
    if (next === undefined) return;
    this._pause();
    this.seek(next);
  }

  goLive() {
    this._pause();
    this._time = null;
    this._onChange();
  }

  /** After each change, and when the recording has grown. */
  draw() {
    const { start, end } = this._recording;
    const shown = this._time ?? end;
    const place = end > start ? Math.round(((shown - start) / (end - start)) * STEPS) : STEPS;
    this._root.select("#slider").property("value", place).attr("aria-valuetext", dateOf(shown));
    this._root.select("#clock").text(dateOf(shown));
    this._root.select("#live").attr("aria-pressed", String(this._time === null));
    this._drawMarks();
    this._root.select("#play").attr("aria-label", this._timer ? "Pause" : "Play").text(this._timer ? "⏸" : "▶");
  }

  /** Below the slider: when jobs ran, and when something happened. */
  _drawMarks() {
    const { start, end, events, runs } = this._recording;
    const shown = `${start} ${end} ${events.length}`;
    if (shown === this._marked) return; // a tick of a recording that plays
    this._marked = shown;
    const place = d3.scaleLinear([start, Math.max(end, start + 1e-9)], [0, 100]);
    const marks = this._root.select("#marks");
    marks.selectAll(".run").data(runs, (run) => run.job).join((enter) => enter.append("i").attr("class", "run"))
      .style("left", (run) => `${place(run.start)}%`)
      .style("width", (run) => `${place(run.end) - place(run.start)}%`);
    marks.selectAll(".event").data(events.filter((event) => event.at >= start)).join((enter) => enter.append("i").attr("class", "event"))
      .style("left", (event) => `${place(event.at)}%`);
  }

  _play() {
    if (this._time === null || this._time >= this._recording.end) this._time = this._recording.start;
    let last = performance.now();
    this._timer = setInterval(() => {
      const now = performance.now();
      const speed = Number(this._root.select("#speed").property("value"));
      const next = this._time + ((now - last) / 1000) * speed * slowMotion(this._recording);
      last = now;
      if (next >= this._recording.end) this._pause();
      this.seek(next);
    }, TICK_MS);
    this._onChange();
  }

  _pause() {
    clearInterval(this._timer);
    this._timer = null;
    this.draw();
  }
}
