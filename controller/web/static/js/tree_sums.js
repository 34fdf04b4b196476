// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

/** What a slot that was read says of a chunk. Pure functions. */

/** The names of the nodes that add up, the root first, then its children and so on. */
export function nodesByLevel(tree) {
  const parents = new Set(tree.edges.map((edge) => edge.parent));
  const levels = [[tree.root]];
  const seen = new Set(levels[0]);
  while (levels.at(-1).length) {
    const above = new Set(levels.at(-1));
    const next = tree.edges.filter((edge) => above.has(edge.parent) && parents.has(edge.child) && !seen.has(edge.child));
    const names = next.map((edge) => edge.child);
    for (const name of names) seen.add(name);
    levels.push(names);
  }
  return levels.slice(0, -1);
}

/**
 * `{status, contributors, missing, notes}` of chunk `chunk` at a switch whose slot holds `row`. The status is complete,
 * waiting, empty (nothing of the chunk has come), over (a newer chunk has the slot) or unread.
 */
export function statusOf(row, { chunk, epoch, children }) {
  if (row.error) return { status: "unread", notes: [row.error] };
  if (row.epoch !== epoch || chunk === null || row.chunk < chunk) {
    const held = row.epoch ? `its slot holds chunk ${row.chunk}${row.epoch === epoch ? "" : ` of epoch ${row.epoch}`}` : "its slot was never used";
    return { status: "empty", contributors: [], missing: children, notes: [held] };
  }
  if (row.chunk > chunk) return { status: "over", contributors: [], missing: [], notes: [`over: its slot holds chunk ${row.chunk}`] };
  const { contributors, missing } = row;
  const notes = row.lanes ? [`sum ${row.lanes.join(" ")} ...`] : [];
  if (row.exponent) notes.push(`exponent ${row.exponent}`);
  if (row.overflow) notes.push("a lane is saturated");
  return { status: missing.length ? "waiting" : "complete", contributors, missing, notes };
}
