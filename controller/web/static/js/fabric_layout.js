// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0

/** Where the elements of a fabric are drawn: rows by tier, hosts below their switch. Many switches are drawn as groups,
 * many hosts of a switch as one row. Pure functions. */

const TIERS = { core: 0, spine: 0, aggregation: 1, leaf: 2, plain: 2 };
const HOST_TIER = 3;
const MAX_SWITCHES = 48; // drawn one by one
const MAX_HOSTS = 64;
const MAX_GROUPS = { pod: 10, core: 5 };
const ASPECT = 0.55; // height of a wide drawing, as part of its width
const ROW_HEIGHT = 150;
const HOST_GAP = 46;
const SWITCH_GAP = 92;
const MARGIN = 60;

/** `{nodes, links, width, height, isGrouped}`. A node: `{id, kind, label, tier, x, y, members}`; a link:
 * `{id, a, b, directions}`, where a direction is `{id, from, to, members}` and members are `{id, rate}`. */
export function layOut(fabric, expanded = new Set()) {
  const groups = groupsOf(fabric);
  const nodeOf = new Map(); // element -> id of the node that stands for it
  const nodes = new Map();
  const place = (id, element, fields) => {
    nodeOf.set(element, id);
    if (!nodes.has(id)) nodes.set(id, { id, label: id, members: [], ...fields });
    nodes.get(id).members.push(element);
  };
  for (const { name, role } of fabric.switches) {
    const group = groups.get(name);
    if (group && !expanded.has(group.id)) place(group.id, name, { kind: "group", tier: group.tier, group: group.id });
    else place(name, name, { kind: "switch", tier: tierOf(fabric, name, role), group: group?.id });
  }
  placeHosts(fabric, place, nodeOf, nodes);
  const links = linksBetween(fabric, nodeOf);
  const width = groups.size ? placeColumns([...nodes.values()]) : placeAlong([...nodes.values()], links);
  const tiers = [...new Set([...nodes.values()].map((node) => node.tier))].sort();
  const isFlat = tiers.filter((tier) => tier < HOST_TIER).length === 1;
  const rowHeight = Math.max(ROW_HEIGHT, (ASPECT * width) / tiers.length);
  for (const node of nodes.values()) node.y = MARGIN + tiers.indexOf(node.tier) * rowHeight;
  if (isFlat) bend([...nodes.values()].filter((node) => node.tier < HOST_TIER), links);
  return {
    nodes: [...nodes.values()],
    links,
    nodeOf,
    width,
    height: MARGIN * 2 + (tiers.length - 1) * rowHeight,
    isGrouped: groups.size > 0,
    groups: new Set([...groups.values()].map((group) => group.id)),
  };
}

function tierOf(fabric, name, role) {
  if (role !== "plain") return TIERS[role] ?? 2;
  return fabric.hosts.some((host) => host.switch === name) ? 2 : 1;
}

/** Of a large fabric: pods, the parts into which it falls without its top tier, and parts of the top tier. */
function groupsOf(fabric) {
  const groups = new Map();
  if (fabric.switches.length <= MAX_SWITCHES) return groups;
  const top = fabric.switches.filter((item) => TIERS[item.role] === 0).map((item) => item.name);
  const parts = componentsWithout(fabric, new Set(top));
  const put = (lists, name) => {
    const size = Math.ceil(lists.length / MAX_GROUPS[name]);
    for (let first = 0; first < lists.length; first += size) {
      const last = Math.min(first + size, lists.length);
      const id = last === first + 1 ? `${name} ${last}` : `${name}s ${first + 1}–${last}`;
      const members = lists.slice(first, first + size).flat();
      for (const member of members) groups.set(member, { id, tier: name === "core" ? 0 : 2 });
    }
  };
  put(parts, "pod");
  put(top.map((name) => [name]), "core");
  return groups;
}

function componentsWithout(fabric, left) {
  const near = new Map(fabric.switches.map((item) => [item.name, []]));
  for (const { a, b } of fabric.links) {
    if (!near.has(a) || !near.has(b) || left.has(a) || left.has(b)) continue;
    near.get(a).push(b);
    near.get(b).push(a);
  }
  const seen = new Set(left);
  const parts = [];
  for (const name of near.keys()) {
    if (seen.has(name)) continue;
    seen.add(name);
    const part = [name];
    for (let i = 0; i < part.length; i += 1) {
      for (const next of near.get(part[i])) {
        if (!seen.has(next)) part.push(next);
        seen.add(next);
      }
    }
    parts.push(part);
  }
  return parts;
}

/** Hosts one by one, or as one node per switch where there are many; those of a group are in its node. */
function placeHosts(fabric, place, nodeOf, nodes) {
  const many = fabric.hosts.length > MAX_HOSTS;
  for (const host of fabric.hosts) {
    const at = nodeOf.get(host.switch);
    if (nodes.get(at)?.kind === "group") {
      nodeOf.set(host.name, at);
      nodes.get(at).members.push(host.name);
    } else if (many) {
      const id = `hosts of ${host.switch}`;
      place(id, host.name, { kind: "hosts", tier: HOST_TIER, parent: host.switch });
      const count = nodes.get(id).members.length;
      nodes.get(id).label = count === 1 ? host.name : `${count} hosts`;
    } else {
      place(host.name, host.name, { kind: "host", tier: HOST_TIER, parent: host.switch, server: host.parameter_server });
    }
  }
}

function linksBetween(fabric, nodeOf) {
  const links = new Map();
  for (const { a, b, rate } of fabric.links) {
    const [from, to] = [nodeOf.get(a), nodeOf.get(b)];
    if (from === undefined || to === undefined || from === to) continue;
    const [first, second, x, y] = from < to ? [from, to, a, b] : [to, from, b, a];
    const id = `${first} - ${second}`;
    if (!links.has(id)) {
      const direction = (s, t) => ({ id: `${s}->${t}`, from: s, to: t, members: [] });
      links.set(id, { id, a: first, b: second, directions: [direction(first, second), direction(second, first)] });
    }
    const [out, back] = links.get(id).directions;
    out.members.push({ id: `${x}->${y}`, rate });
    back.members.push({ id: `${y}->${x}`, rate });
  }
  return [...links.values()];
}

/** Sets every node's x; returns the width. */
function placeAlong(nodes, links) {
  const lowest = nodes.filter((node) => node.tier === HOST_TIER);
  const carriers = nodes.filter((node) => node.tier < HOST_TIER);
  let x = MARGIN;
  const placed = new Set();
  for (const carrier of carriers) {
    const own = lowest.filter((node) => node.parent === carrier.id);
    if (!own.length) continue;
    const span = Math.max((own.length - 1) * HOST_GAP, 0);
    const width = Math.max(span, SWITCH_GAP - HOST_GAP);
    own.forEach((node, index) => {
      node.x = x + (width - span) / 2 + index * HOST_GAP;
    });
    carrier.x = x + width / 2;
    placed.add(carrier);
    x += width + HOST_GAP * 1.3;
  }
  const rows = d3.group(carriers.filter((node) => !placed.has(node)), (node) => node.tier);
  const widest = Math.max(0, ...[...rows.values()].map((row) => row.length));
  const width = Math.max(640, x - HOST_GAP * 1.3 + MARGIN, widest * SWITCH_GAP + 2 * MARGIN);
  const shift = (width - (x - HOST_GAP * 1.3 + MARGIN)) / 2;
  if (placed.size) for (const node of [...placed, ...lowest]) node.x += shift;
  for (const row of [...rows.keys()].sort((a, b) => b - a).map((tier) => rows.get(tier))) spread(row, width, links, nodes);
  return width;
}

/** Of a grouped fabric: each group has a column, as wide as its widest row; the top tier spreads over all. */
function placeColumns(nodes) {
  const column = (node) => node.group ?? nodes.find((other) => other.id === node.parent)?.group;
  let x = MARGIN;
  for (const own of d3.group(nodes.filter((node) => node.tier > 0), column).values()) {
    const rows = [...d3.group(own, (node) => node.tier).values()];
    const width = Math.max(...rows.map((row) => row.length)) * (SWITCH_GAP + 22);
    for (const row of rows) {
      row.forEach((node, index) => {
        node.x = x + ((index + 0.5) * width) / row.length;
      });
    }
    x += width;
  }
  const width = Math.max(640, x + MARGIN);
  const top = nodes.filter((node) => node.tier === 0);
  const gap = Math.max((SWITCH_GAP * top.length + 2 * MARGIN) / width, 1);
  top.forEach((node, index) => {
    node.x = ((index + 0.5) * width * gap) / top.length;
  });
  return width * gap;
}

/** Evenly, in the order of what hangs below. */
function spread(row, width, links, nodes) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const wanted = new Map(
    row.map((node, index) => {
      const below = links
        .filter((link) => link.a === node.id || link.b === node.id)
        .map((link) => byId.get(link.a === node.id ? link.b : link.a).x)
        .filter((value) => value !== undefined);
      return [node.id, [below.length ? d3.mean(below) : 0, index]];
    }),
  );
  row.sort((a, b) => wanted.get(a.id)[0] - wanted.get(b.id)[0] || wanted.get(a.id)[1] - wanted.get(b.id)[1]);
  row.forEach((node, index) => {
    node.x = ((index + 0.5) * width) / row.length;
  });
}

/** Lifts the inner switches of a fabric of one tier, so that a link does not pass over a switch. */
function bend(row, links) {
  if (!links.length || row.length < 3) return;
  [...row].sort((a, b) => a.x - b.x).slice(1, -1).forEach((node, index) => {
    node.y -= 26 + 22 * (index % 2);
  });
}
