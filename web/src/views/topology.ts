// Who is joined to whom: nodes in columns by their distance from where samples come from, or in rows where
// the screen is narrow.

import { byId, svg } from "../dom";
import { bits } from "../format";
import type { LinkView, View } from "../store";

interface Place {
  id: string;
  name: string;
  about: string;
  known: boolean;
  x: number;
  y: number;
}

interface Edge {
  from: Place;
  to: Place;
  label: string;
  use: number;
  capacity: number | null;
  streams: number;
}

const NODES_MAX = 24;
const BOX = { width: 148, height: 58 };
let last = "";

/** Steps from a node that publishes; links are walked both ways. */
function distances(view: View): Map<string, number> {
  const near = new Map<string, Set<string>>();
  const join = (a: string, b: string) => near.set(a, (near.get(a) ?? new Set()).add(b));
  for (const { node, link } of view.links) {
    for (const hop of link.hops) {
      join(node.id, hop);
      join(hop, node.id);
    }
  }
  const steps = new Map<string, number>();
  let front = view.state.nodes.filter((node) => node.publishers.length > 0).map((node) => node.id);
  if (front.length === 0) front = view.state.nodes.slice(0, 1).map((node) => node.id);
  for (let step = 0; front.length > 0; step += 1) {
    for (const id of front) steps.set(id, step);
    front = [...new Set(front.flatMap((id) => [...(near.get(id) ?? [])]))].filter((id) => !steps.has(id));
  }
  return steps;
}

function places(view: View, across: boolean, width: number): { all: Map<string, Place>; height: number } {
  const steps = distances(view);
  const nodes = [
    ...view.state.nodes.map((node) => ({
      id: node.id, name: node.name, known: false,
      about: [amount(node.publishers.length, "publisher"), amount(node.subscriptions.length, "subscriber")].filter(Boolean).join(", ") || "relay",
    })),
    ...view.state.known.map(({ id, name }) => ({ id, name, known: true, about: "beyond a link" })),
  ].slice(0, NODES_MAX);
  const groups: (typeof nodes)[] = [];
  for (const node of nodes) (groups[steps.get(node.id) ?? 0] ??= []).push(node);
  const columns = groups.filter((group) => group?.length);
  const deepest = Math.max(1, ...columns.map((group) => group.length));
  const height = across ? deepest * (BOX.height + 30) + 10 : columns.length * (BOX.height + 74) - 30;
  const all = new Map<string, Place>();
  columns.forEach((group, at) => {
    group.forEach((node, row) => {
      const along = columns.length === 1 ? 0.5 : at / (columns.length - 1);
      const beside = (row + 0.5) / group.length;
      const x = across ? BOX.width / 2 + 4 + along * (width - BOX.width - 8) : beside * width;
      const y = across ? beside * height : BOX.height / 2 + 4 + along * (height - BOX.height - 8);
      all.set(node.id, { ...node, x, y });
    });
  });
  return { all, height };
}

function amount(count: number, what: string): string {
  return count === 0 ? "" : `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** One line between two nodes, whichever of them the link is of; the direction that carries more counts. */
function edges(links: LinkView[], all: Map<string, Place>): Edge[] {
  const found = new Map<string, Edge>();
  for (const { node, link } of links) {
    for (const hop of link.hops) {
      const [from, to] = [all.get(node.id), all.get(hop)];
      if (!from || !to) continue;
      const use = link.use_bits_per_s ?? 0;
      const key = [node.id, hop].sort().join(" ");
      const before = found.get(key);
      if (before && (before.streams > link.streams.length || (before.streams === link.streams.length && before.use >= use))) continue;
      found.set(key, { from, to, use, label: link.name, capacity: link.capacity_bits_per_s, streams: link.streams.length });
    }
  }
  return [...found.values()];
}

function drawEdge({ from, to, label, use, capacity }: Edge, across: boolean): SVGElement {
  const [x1, y1] = across ? [from.x + BOX.width / 2, from.y] : [from.x, from.y + BOX.height / 2];
  const [x2, y2] = across ? [to.x - BOX.width / 2, to.y] : [to.x, to.y - BOX.height / 2];
  const [mx, my] = [(x1 + x2) / 2, (y1 + y2) / 2];
  // Towards the far end, where lines from one node are apart.
  const t = 0.66;
  const bend = (from: number, to: number) => from + (to - from) * (3 * t * t - 2 * t * t * t);
  const straight = (from: number, to: number) => from + (to - from) * t;
  const [lx, ly] = across ? [straight(x1, x2) - 10, bend(y1, y2)] : [bend(x1, x2), straight(y1, y2)];
  const d = across ? `M${x1} ${y1}C${mx} ${y1} ${mx} ${y2} ${x2} ${y2}` : `M${x1} ${y1}C${x1} ${my} ${x2} ${my} ${x2} ${y2}`;
  const part = capacity === null ? 0 : Math.min(1, use / capacity);
  const level = part > 0.97 ? "full" : part > 0.7 ? "busy" : "calm";
  const of = capacity === null ? bits(use) : `${bits(use)} of ${bits(capacity)}`;
  return svg(
    "g",
    { class: `edge ${level}` },
    svg("path", { d, class: "pipe", "stroke-width": capacity === null ? 16 : 9 }),
    svg("path", { d, class: "flow", "stroke-width": capacity === null ? 4 : Math.max(1.5, 9 * part) }),
    svg("text", { x: lx, y: ly - 15, class: "name" }, label),
    svg("text", { x: lx, y: ly + 24, class: "use" }, of),
  );
}

function drawPlace({ x, y, name, about, known }: Place): SVGElement {
  return svg(
    "g",
    { class: known ? "node known" : "node", transform: `translate(${x - BOX.width / 2} ${y - BOX.height / 2})` },
    svg("rect", { width: BOX.width, height: BOX.height, rx: 10 }),
    svg("text", { x: BOX.width / 2, y: 25, class: "name" }, name.length > 18 ? `${name.slice(0, 17)}…` : name),
    svg("text", { x: BOX.width / 2, y: 44, class: "about" }, about),
  );
}

export function showTopology(view: View): void {
  const box = byId("topology");
  const width = Math.max(280, box.clientWidth);
  const across = width >= 560;
  const { all, height } = places(view, across, width);
  const lines = edges(view.links, all);
  // Drawn again only when something on it differs.
  const now = JSON.stringify([width, [...all.values()], lines.map((edge) => [edge.label, bits(edge.use), edge.capacity])]);
  if (now === last) return;
  last = now;
  const spoken = lines.map((edge) => `${edge.from.name} to ${edge.to.name} over ${edge.label}: ${bits(edge.use)}`);
  const drawing = svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": spoken.join("; ") || "no links" },
    ...lines.map((edge) => drawEdge(edge, across)),
    ...[...all.values()].map(drawPlace),
  );
  box.replaceChildren(drawing);
}
