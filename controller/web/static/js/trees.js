// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

/** Trees of jobs as lines between drawn nodes. */

/** Number of colors for jobs: [data-color] of the style sheet. */
export const JOB_COLORS = 6;

export const MAX_LANES = 4;

/** Segments `{id, from, to, way, lane, color, job}`; `way` is up or down. Several trees lie side by side. */
export function treeSegments({ job, color, trees }, place, nodeOf) {
  const found = new Map();
  trees.forEach((tree, number) => {
    const lane = (place + number) % MAX_LANES;
    const add = (a, b, way) => {
      const [from, to] = [nodeOf.get(a), nodeOf.get(b)];
      if (from === undefined || to === undefined || from === to) return;
      const id = `${job} ${lane} ${way} ${from} ${to}`;
      found.set(id, { id, from, to, way, lane, color, job });
    };
    for (const { path } of tree.edges) for (let i = 1; i < path.length; i += 1) add(path[i - 1], path[i], "up");
    for (const [a, b] of tree.result_links) add(a, b, "down");
  });
  return [...found.values()];
}
