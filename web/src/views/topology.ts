// Shows the topology: nodes in columns by their distance from publishers, or in rows on narrow
// screens.

import { attribute, byId, onResize, type Shown, svg, text } from "../dom";
import { type Edge, edges } from "../edges";
import { bits } from "../format";
import type { View } from "../store";

interface Place {
  id: string;
  name: string;
  about: string;
  known: boolean;
  x: number;
  y: number;
}

const NODES_MAX = 24;
const BOX = { width: 148, height: 58 };

const box = byId("topology");
/** The width for the drawing, from an observer, because reading it would lay out the page; null before the first layout. */
let width: number | null = null;
let shown: View | null = null;
/** The present drawing: it is made again only if `structure`, its nodes, edges and their places, has changed. */
let drawing = { structure: "", root: svg("svg"), edges: [] as Shown<Edge>[] };

/** Returns the number of hops from the nearest publishing node. Links count in both directions. */
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
      about: [amount(node.publishers.length, "publisher"), amount(node.subscriptions.length, "subscriber")].filter(Boolean).join(", ") || (node.links.some(({ hops }) => hops.length > 0) ? "relay" : "no programs yet"),
    })),
    ...view.state.known.map(({ id, name }) => ({ id, name, known: true, about: "details not shown" })),
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

/**
 * Returns the traffic between the two nodes, and that of the whole link if other neighbours share
 * it.
 */
function usage({ use, linkUse, capacity, neighbours }: Edge): string {
  if (capacity === null) return bits(use);
  return neighbours > 1 ? `${bits(use)} · link ${bits(linkUse)} of ${bits(capacity)}` : `${bits(use)} of ${bits(capacity)}`;
}

/** Returns the part of the path at which the label stands: near the end where fewer edges meet, so that labels are apart. */
function labelAt(edge: Edge, all: readonly Edge[]): number {
  const leaving = all.filter(({ from }) => from === edge.from).length;
  const arriving = all.filter(({ to }) => to === edge.to).length;
  return arriving > leaving ? 0.3 : 0.66;
}

function drawEdge(edge: Edge, from: Place, to: Place, across: boolean, t: number): Shown<Edge> {
  const [x1, y1] = across ? [from.x + BOX.width / 2, from.y] : [from.x, from.y + BOX.height / 2];
  const [x2, y2] = across ? [to.x - BOX.width / 2, to.y] : [to.x, to.y - BOX.height / 2];
  const [mx, my] = [(x1 + x2) / 2, (y1 + y2) / 2];
  const bend = (from: number, to: number) => from + (to - from) * (3 * t * t - 2 * t * t * t);
  const straight = (from: number, to: number) => from + (to - from) * t;
  const [lx, ly] = across ? [straight(x1, x2) - 10, bend(y1, y2)] : [bend(x1, x2), straight(y1, y2)];
  const d = across ? `M${x1} ${y1}C${mx} ${y1} ${mx} ${y2} ${x2} ${y2}` : `M${x1} ${y1}C${x1} ${my} ${x2} ${my} ${x2} ${y2}`;
  const flow = svg("path", { d, class: "flow" });
  const use = svg("text", { x: lx, y: ly + 24, class: "use" });
  const element = svg(
    "g",
    {},
    svg("path", { d, class: "pipe", "stroke-width": edge.capacity === null ? 16 : 9 }),
    flow,
    svg("text", { x: lx, y: ly - 15, class: "name" }, `${edge.label} → ${to.name}`),
    use,
  );
  return {
    element,
    update(now) {
      const share = (part: number | null) => (now.capacity === null ? 0 : Math.min(1, (part ?? 0) / now.capacity));
      const full = share(now.linkUse);
      attribute(element, "class", `edge ${full > 0.97 ? "full" : full > 0.7 ? "busy" : "calm"}`);
      attribute(flow, "stroke-width", (now.capacity === null ? 4 : Math.max(1.5, 9 * share(now.use))).toFixed(1));
      text(use, usage(now));
    },
  };
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
  shown = view;
  if (width === null) return;
  const wide = Math.max(280, width);
  const across = wide >= 560;
  const { all, height } = places(view, across, wide);
  const lines = edges(view.links).flatMap((edge) => {
    const [from, to] = [all.get(edge.from), all.get(edge.to)];
    return from && to ? [{ edge, from, to }] : [];
  });
  const structure = JSON.stringify([wide, [...all.values()], lines.map(({ edge }) => [edge.from, edge.to, edge.label, edge.capacity])]);
  if (structure !== drawing.structure) {
    const drawn = lines.map(({ edge, from, to }) => drawEdge(edge, from, to, across, labelAt(edge, lines.map((line) => line.edge))));
    const size = { viewBox: `0 0 ${wide} ${height}`, width: wide, height };
    const root = svg("svg", { ...size, role: "img" }, ...drawn.map(({ element }) => element), ...[...all.values()].map(drawPlace));
    drawing = { structure, root, edges: drawn };
    box.replaceChildren(root);
  }
  lines.forEach(({ edge }, at) => drawing.edges[at]?.update(edge));
  const spoken = lines.map(({ edge, from, to }) => `${from.name} to ${to.name} over ${edge.label}: ${usage(edge)}`);
  attribute(drawing.root, "aria-label", spoken.join("; ") || "no links");
}

onResize(box, (size) => {
  if (size.width === 0 || size.width === width) return;
  width = size.width;
  if (shown) showTopology(shown);
});
