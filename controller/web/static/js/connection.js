// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

/** The server's stream of lines: `onLines` takes objects, `onStatus` one of connecting, live, replay, lost. `onEnd`: a
 * recording is there as a whole. */
export function follow({ onLines, onStatus, onEnd }) {
  const stream = new EventSource("/events");
  let isLive = true;
  stream.addEventListener("hello", (event) => {
    isLive = JSON.parse(event.data).live;
    onStatus(isLive ? "live" : "replay");
  });
  stream.addEventListener("message", (event) => {
    const lines = [];
    for (const text of event.data.split("\n")) {
      try {
        lines.push(JSON.parse(text));
      } catch {
        console.warn("a line of the recording is no JSON");
      }
    }
    onLines(lines);
  });
  stream.addEventListener("end", () => {
    stream.close();
    onStatus("replay");
    onEnd();
  });
  stream.addEventListener("error", () => {
    if (stream.readyState !== EventSource.CLOSED || isLive) onStatus("lost");
  });
}

/** The steps of `netfold job explain`. Throws an Error with the server's reason. */
export const why = async (job) => (await ask("/why", [["job", job]])).steps;

/** By switch what it holds in a slot, or an `error`. Throws an Error with the server's reason. */
export async function readSlots({ job, tree, slot, switches }) {
  const query = [["job", job], ["tree", tree], ["slot", slot], ...switches.map((name) => ["switch", name])];
  return new Map(Object.entries((await ask("/slots", query)).switches));
}

async function ask(path, query) {
  const answer = await fetch(`${path}?${new URLSearchParams(query)}`);
  const document = await answer.json();
  if (document.error) throw new Error(document.error);
  return document;
}
