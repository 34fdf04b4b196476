// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

/** The view Events: what happened, the newest first; a time is a button that goes there. */
import { dateOf, timeOf } from "./numbers.js";

const SHOWN = 500;

export class EventsPanel {
  constructor(root, { recording, seek }) {
    this._body = d3.select(root).select("#events tbody");
    this._recording = recording;
    this._seek = seek;
  }

  draw(_, time) {
    const events = this._recording.events.filter((event) => time === null || event.at <= time).slice(-SHOWN).reverse();
    const rows = this._body.selectAll("tr").data(events, (event) => `${event.at} ${event.event} ${event.text}`).join((enter) => {
      const row = enter.append("tr");
      row.append("td").append("button").attr("type", "button").attr("class", "link").on("click", (_, event) => this._seek(event.at));
      for (let cell = 0; cell < 3; cell += 1) row.append("td");
      return row;
    });
    rows.order();
    rows.attr("data-event", (event) => event.event);
    rows.select("button").text((event) => timeOf(event.at)).attr("aria-label", (event) => `Go to ${dateOf(event.at)}`);
    rows.each((event, index, all) => {
      const cells = all[index].cells;
      const texts = [event.event.replaceAll("_", " "), [event.job, event.host].filter(Boolean).join(", "), event.text];
      texts.forEach((text, cell) => {
        cells[cell + 1].textContent = text;
      });
    });
  }
}
