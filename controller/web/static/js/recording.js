// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

/** The lines of a recording, and the state at any time of it. docs/reference/recording.md describes the lines. */

const MAX_LINES = 200_000;
const MAX_EVENTS = 5_000;
const MAX_SAMPLES = 50_000; // of a job's time line
const MAX_SUMMARIES = 1_000; // of jobs

export class Recording {
  constructor() {
    this.lines = []; // states, changes and fabrics, in the order of their arrival
    this.events = [];
    this.series = new Map(); // job -> samples of its time line
    this._times = []; // of `lines`
    this._members = new Map(); // job -> host -> row: the newest, for `series`
    this._summaries = new Map(); // "job sequence" -> what the state forgets when the job ends
    this._sequences = new Map(); // job -> the sequence of the newest job of this name
    this._cursor = null;
  }

  get isEmpty() {
    return !this.lines.some((line) => line.kind === "state");
  }

  get start() {
    return this._times[0] ?? 0;
  }

  get end() {
    const lastEvent = this.events.length ? this.events[this.events.length - 1].at : 0;
    return Math.max(this._times[this._times.length - 1] ?? 0, lastEvent);
  }

  /** When workers first summed up gradients; null if they never did. */
  get firstBusy() {
    const starts = [...this.series.values()].map((samples) => samples.find((sample) => sample.goodput > 0)?.at);
    return d3.min(starts) ?? null;
  }

  /** The times between which each job had workers, as `{job, start, end}`. */
  get runs() {
    return [...this.series].filter(([, samples]) => samples.length)
      .map(([job, samples]) => ({ job, start: samples[0].at, end: samples[samples.length - 1].at }));
  }

  add(line) {
    if (line.kind === "event") {
      this.events.push(line);
      if (this.events.length > MAX_EVENTS) this.events.shift();
      return;
    }
    if (line.kind !== "fabric" && line.kind !== "state" && line.kind !== "change") return;
    this.lines.push(line);
    this._times.push(line.at ?? this._times[this._times.length - 1]);
    if (line.kind === "state") {
      this._fixTimesOfFabric();
      this._members.clear();
    }
    if (line.state) {
      this._keepPlans(line.state.jobs ?? {});
      this._sample(line);
    }
    if (this.lines.length > MAX_LINES) this._dropOldest();
  }

  /** `{fabric, sections}` at a time; sections are maps of maps. */
  stateAt(time) {
    const last = this._indexAt(time);
    let cursor = this._cursor;
    if (!cursor || cursor.index > last || this._startOfSegment(last) > cursor.index) {
      const first = this._startOfSegment(last);
      cursor = { index: first - 1, fabric: null, sections: new Map() };
      this._cursor = cursor;
    }
    while (cursor.index < last) {
      cursor.index += 1;
      apply(cursor, this.lines[cursor.index]);
    }
    return cursor;
  }

  /**
   * What was known of a job while it ran: `{scheme, rate, unit, goodput, workers}`. `goodput` is the mean of the samples
   * in which all workers received sums, `workers` maps each host to its last report.
   */
  summaryOf(name, sequence) {
    const { goodputs, ...summary } = this._summary(name, sequence);
    return { ...summary, goodput: goodputs.count ? goodputs.sum / goodputs.count : null };
  }

  _summary(name, sequence) {
    const key = `${name} ${sequence}`;
    if (!this._summaries.has(key)) {
      this._summaries.set(key, { workers: new Map(), goodputs: { sum: 0, count: 0 } });
      if (this._summaries.size > MAX_SUMMARIES) this._summaries.delete(this._summaries.keys().next().value);
    }
    return this._summaries.get(key);
  }

  _keepPlans(jobs) {
    for (const [name, job] of Object.entries(jobs)) {
      if (job === null) continue;
      this._sequences.set(name, job.sequence);
      const { scheme, rate, unit } = job;
      if (scheme !== undefined) Object.assign(this._summary(name, job.sequence), { scheme, rate, unit });
    }
  }

  _indexAt(time) {
    let low = 0;
    let high = this._times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this._times[middle] ?? -Infinity) <= time) low = middle + 1;
      else high = middle;
    }
    return Math.max(low - 1, Math.min(1, this.lines.length - 1)); // a fabric's state is the line after it
  }

  _startOfSegment(index) {
    let first = Math.min(index, this.lines.length - 1);
    while (first > 0 && this.lines[first].kind !== "fabric") first -= 1;
    return first;
  }

  /** A description of a fabric has no time: it is of the state after it. */
  _fixTimesOfFabric() {
    const place = this._times.length - 2;
    if (place >= 0 && this.lines[place].kind === "fabric") this._times[place] = this._times[place + 1];
  }

  _dropOldest() {
    const next = this.lines.findIndex((line, index) => index > 0 && line.kind === "fabric");
    if (next <= 0) return;
    this.lines.splice(0, next);
    this._times.splice(0, next);
    this._cursor = null;
  }

  /** Add a sample to the time line of each job with new reports of its workers. */
  _sample(line) {
    const rows = line.state.members;
    if (!rows) return;
    const jobs = new Set();
    for (const [key, row] of Object.entries(rows)) {
      const [job, host] = key.split(" ");
      if (!this._members.has(job)) this._members.set(job, new Map());
      if (row === null) this._members.get(job).delete(host);
      else {
        this._members.get(job).set(host, row);
        this._summary(job, this._sequences.get(job)).workers.set(host, row);
      }
      jobs.add(job);
    }
    for (const job of jobs) {
      if (!this.series.has(job)) this.series.set(job, []);
      const sample = sampleOf(line.at, this._members.get(job));
      const samples = this.series.get(job);
      if (sample) samples.push(sample);
      if (sample?.goodput > 0) {
        const { goodputs } = this._summary(job, this._sequences.get(job));
        goodputs.sum += sample.goodput;
        goodputs.count += 1;
      }
      if (samples.length > MAX_SAMPLES) samples.splice(0, MAX_SAMPLES / 2);
    }
  }
}

function apply(cursor, line) {
  if (line.kind === "fabric") {
    cursor.fabric = line;
    cursor.sections = new Map();
    return;
  }
  if (line.kind === "state") cursor.sections = new Map();
  for (const [section, rows] of Object.entries(line.state)) {
    if (!cursor.sections.has(section)) cursor.sections.set(section, new Map());
    const known = cursor.sections.get(section);
    for (const [key, value] of Object.entries(rows)) {
      if (value === null) known.delete(key);
      else known.set(key, value);
    }
  }
}

/** Of all workers at one time: the least goodput, and means over the trees. */
function sampleOf(at, members) {
  const rows = [...members.values()].filter((row) => row.connected);
  if (!rows.length) return null;
  const trees = rows.flatMap((row) => row.trees ?? []);
  return {
    at,
    goodput: Math.min(...rows.map((row) => row.goodput_mbps)),
    rtt: meanOf(trees, "rtt_ms"),
    minRtt: meanOf(trees, "min_rtt_ms"),
    window: trees.some((tree) => tree.window !== undefined) ? meanOf(trees, "window") : null,
    retransmitted: meanOf(trees, "retransmitted"),
    marked: meanOf(trees, "marked"),
  };
}

/** The mean of a field of a worker's or of all workers' trees; null where no tree has it. A tree without results has
 * no round trips: its smallest one is only the engine's upper limit. */
export function meanOf(trees, name) {
  const known = name.endsWith("rtt_ms") ? trees.filter((tree) => tree.rtt_ms > 0) : trees;
  return d3.mean(known, (tree) => tree[name] ?? 0) ?? null;
}

/** A section of the state; an empty map where there is none. */
export function section(state, name) {
  return state.sections.get(name) ?? new Map();
}
