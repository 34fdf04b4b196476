// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

/** The time line of a job: charts with a common time axis, epochs as vertical lines. */
import { short, timeOf } from "./numbers.js";

const HEIGHT = 100;
const LABEL_WIDTH = 60; // of a time
const CHARTS = [
  { title: "goodput, Mbit/s", caption: "goodput of the slowest worker, Mbit/s", of: ["goodput"], summary: (value) => `${short(value)} Mbit/s` },
  { title: "round trip, ms", caption: "round trip, ms: SRTT; dashed: min RTT", of: ["rtt", "minRtt"], summary: (value) => `${short(value)} ms` },
  { title: "window, chunks", of: ["window"], summary: (value) => `${short(value)} chunks` },
  { title: "retransmitted, %", of: ["retransmitted"], scale: 100, summary: (value) => `${short(value)} %` },
  { title: "ECN marks, %", of: ["marked"], scale: 100, summary: (value) => `${short(value)} %` },
];

export class Charts {
  /** `seek` takes the time that is clicked. */
  constructor(root, seek) {
    this._root = root;
    this._seek = seek;
    this._plots = [];
    this._marks = [];
    this._time = null;
    new ResizeObserver(() => this._resize()).observe(root);
  }

  /** `samples` and `marks` of the whole recording; `time`: the one that is shown, null for the newest. */
  draw(samples, marks, time) {
    if (!this._plots.length) this._make();
    this._marks = marks;
    this._time = time;
    const times = samples.map((sample) => sample.at);
    for (const { plot, chart, figure } of this._plots) {
      const columns = chart.of.map((name) => samples.map((sample) => (sample[name] === null ? null : sample[name] * (chart.scale ?? 1))));
      figure.hidden = columns.every((column) => column.every((value) => value === null || value === undefined));
      plot.setData([times, ...columns]);
      const at = time === null ? times.length - 1 : d3.bisectRight(times, time) - 1;
      const now = columns[0][at];
      figure.setAttribute("aria-label", `${chart.title}: ${now === undefined || now === null ? "unknown" : chart.summary(now)}`);
    }
  }

  _make() {
    const style = getComputedStyle(document.documentElement);
    for (const chart of CHARTS) {
      const figure = document.createElement("figure");
      figure.setAttribute("role", "img");
      const caption = document.createElement("figcaption");
      caption.textContent = chart.caption ?? chart.title;
      figure.append(caption);
      this._root.append(figure);
      const axis = { stroke: () => style.getPropertyValue("--text"), grid: { stroke: () => style.getPropertyValue("--grid"), width: 1 }, ticks: { show: false } };
      const options = {
        width: this._width(),
        height: HEIGHT,
        cursor: { sync: { key: "job" }, drag: { x: false, y: false } },
        legend: { show: false },
        scales: { y: { range: (_, low, high) => [0, Math.max(high * 1.1, 1)] } },
        padding: [null, LABEL_WIDTH / 2, null, null],
        axes: [
          { ...axis, space: LABEL_WIDTH + 10, size: (_, texts) => (texts?.[0] ? 28 : 8), values: (plot, splits) => this._times(plot, splits) },
          { ...axis, size: 48, space: 18 },
        ],
        series: [{}, ...chart.of.map((_, index) => this._series(index, style))],
        hooks: { draw: [(plot) => this._drawMarks(plot, style)], ready: [(plot) => this._listen(plot)] },
      };
      this._plots.push({ chart, figure, plot: new uPlot(options, [[], ...chart.of.map(() => [])], figure) });
    }
  }

  /** The common axis has its times below the last chart that is shown. */
  _times(plot, splits) {
    const last = this._plots.findLast(({ figure }) => !figure.hidden);
    return splits.map((seconds) => (plot === last?.plot ? timeOf(seconds) : ""));
  }

  _series(index, style) {
    return {
      stroke: () => style.getPropertyValue(index ? "--line-2" : "--line-1"),
      width: 2,
      dash: index ? [6, 4] : undefined,
      points: { show: false },
      spanGaps: true,
    };
  }

  _listen(plot) {
    plot.over.addEventListener("click", () => {
      if (plot.cursor.left >= 0) this._seek(plot.posToVal(plot.cursor.left, "x"));
    });
  }

  /** Epochs, and the time that is shown. The epoch in which the axis begins keeps its label. */
  _drawMarks(plot, style) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.textAlign = "left";
    ctx.font = `${11 * devicePixelRatio}px sans-serif`;
    const line = (at, color, dash, text) => {
      const x = plot.valToPos(at, "x", true);
      ctx.strokeStyle = ctx.fillStyle = color;
      ctx.lineWidth = 1.5 * devicePixelRatio;
      ctx.setLineDash(dash);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      if (!text) return;
      const last = bbox.left + bbox.width - ctx.measureText(text).width - 4;
      const place = [text, Math.max(bbox.left, Math.min(x + 4, last)), bbox.top + 11 * devicePixelRatio];
      ctx.setLineDash([]);
      ctx.lineWidth = 4 * devicePixelRatio;
      ctx.strokeStyle = style.getPropertyValue("--background"); // between the text and the curve
      ctx.strokeText(...place);
      ctx.fillText(...place);
    };
    const newest = this._marks.findLastIndex((mark) => plot.valToPos(mark.at, "x", true) < bbox.left);
    for (const mark of this._marks.slice(Math.max(newest, 0))) line(mark.at, style.getPropertyValue("--mark"), [], `epoch ${mark.epoch}`);
    if (this._time !== null) line(this._time, style.getPropertyValue("--text"), [4, 4], "");
    ctx.restore();
  }

  _width() {
    return Math.max(280, Math.floor(this._root.clientWidth));
  }

  _resize() {
    if (this._root.clientWidth) for (const { plot } of this._plots) plot.setSize({ width: this._width(), height: HEIGHT });
  }

  redraw() {
    for (const { plot } of this._plots) plot.redraw();
  }
}
