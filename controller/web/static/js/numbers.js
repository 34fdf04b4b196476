// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

/** Numbers and times as texts. */

export const percent = (value) => (value === null || value === undefined ? "–" : (100 * value).toFixed(value < 0.1 ? 1 : 0) + " %");

export const short = (value) =>
  value === null || value === undefined ? "–" : Number(Number(value).toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 3 });

/** Sets the text of each element to its datum; one that has it already costs no layout. */
export function write(selection) {
  selection.each((text, index, all) => {
    const value = String(text);
    if (all[index].textContent !== value) all[index].textContent = value;
  });
}

/** Times of a simulation count from its start. */
const isSimulated = (seconds) => seconds < 1e6;

export function timeOf(seconds) {
  if (isSimulated(seconds)) return `${seconds.toPrecision(4)} s`;
  return new Date(seconds * 1000).toLocaleTimeString("en-GB", { hour12: false });
}

export function dateOf(seconds) {
  if (isSimulated(seconds)) return timeOf(seconds);
  return new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";
}
