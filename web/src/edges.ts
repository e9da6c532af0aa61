// The edges of the topology: one between two nodes, with the traffic between these two only.

import type { Link, Node } from "./api.gen";

export interface Edge {
  from: string;
  to: string;
  /** The name of the link. */
  label: string;
  /** The traffic from `from` to `to`; null before the second reading. */
  use: number | null;
  /** The traffic of the whole link. All of its neighbours share its capacity. */
  linkUse: number | null;
  capacity: number | null;
  neighbours: number;
  streams: number;
}

/**
 * Returns one edge for each pair of nodes, whichever of them owns the link. It shows the direction
 * with more traffic.
 */
export function edges(links: readonly { node: Node; link: Link }[]): Edge[] {
  const found = new Map<string, Edge>();
  for (const { node, link } of links) {
    for (const to of link.hops) {
      const edge = {
        from: node.id,
        to,
        label: link.name,
        use: link.neighbours.find(({ id }) => id === to)?.use_bits_per_s ?? null,
        linkUse: link.use_bits_per_s,
        capacity: link.capacity_bits_per_s,
        neighbours: link.hops.length,
        streams: link.streams.filter(({ hop }) => hop === to).length,
      };
      const key = [node.id, to].sort().join(" ");
      const other = found.get(key);
      if (!other || carriesMore(edge, other)) found.set(key, edge);
    }
  }
  return [...found.values()];
}

function carriesMore(one: Edge, other: Edge): boolean {
  return one.streams !== other.streams ? one.streams > other.streams : (one.use ?? 0) > (other.use ?? 0);
}
