//! Registry queries for nodes and publishers. They send nothing.

use super::Engine;
use super::network::hop_view;
use crate::status::{HopView, SourceView, Taken};
use paceline_proto::control::{HopInfo, PublisherSpec};
use paceline_proto::{NodeId, Pattern, PublisherId};
use paceline_sched::Late;
use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

impl Engine {
    pub(super) fn reply_nodes(&self, reply: &Sender<Vec<(NodeId, String)>>) {
        let nodes = self.control.nodes().map(|node| (node.id, node.name.to_owned()));
        // The caller may have stopped waiting.
        let _ = reply.send(nodes.collect());
    }

    pub(super) fn reply_near(&self, reply: &Sender<Vec<NodeId>>) {
        let me = self.control.me();
        let free = |from, to| self.hops(from, to).iter().all(|hop| hop.capacity.is_none());
        let near = self.control.nodes().map(|node| node.id);
        let _ = reply.send(near.filter(|&id| free(me, id) && free(id, me)).collect());
    }

    /// Returns true if each link that connects has a neighbour, all neighbours of this node announce the hop too, and the
    /// records of all neighbours of known nodes are known.
    pub(super) fn is_complete(&self) -> bool {
        let me = self.control.me();
        let nodes: BTreeMap<NodeId, &BTreeMap<NodeId, HopInfo>> =
            self.control.nodes().map(|node| (node.id, node.neighbours)).collect();
        let Some(own) = nodes.get(&me).filter(|own| !own.is_empty()) else { return false };
        let is_up = |name: &str| own.values().any(|hop| hop.link_name == name);
        let mut connecting = self.links.iter().filter(|link| link.config.connects());
        // Without the other end's announcement no path leads back to this node.
        let is_announced =
            |next: &NodeId| nodes.get(next).is_some_and(|theirs| theirs.contains_key(&me));
        let are_known = |neighbours: &BTreeMap<NodeId, HopInfo>| {
            neighbours.keys().all(|next| self.control.name(*next).is_some())
        };
        connecting.all(|link| is_up(&link.config.name))
            && own.keys().all(is_announced)
            && nodes.values().all(|neighbours| are_known(neighbours))
    }

    pub(super) fn reply_sources(&self, pattern: &Pattern, reply: &Sender<Vec<SourceView>>) {
        let _ = reply.send(self.sources_of(pattern));
    }

    fn sources_of(&self, pattern: &Pattern) -> Vec<SourceView> {
        let mut found = Vec::new();
        for node in self.control.nodes() {
            for (&id, spec) in node.publishers {
                if pattern.matches(&spec.tag) && !spec.tag.is_private() {
                    found.push(self.source(id, spec, node.name));
                }
            }
        }
        found.sort_by(|a, b| (&a.tag, a.publisher).cmp(&(&b.tag, b.publisher)));
        found
    }

    fn source(&self, id: PublisherId, spec: &PublisherSpec, node: &str) -> SourceView {
        let mut taken = Vec::new();
        for other in self.control.nodes().filter(|other| other.id != self.control.me()) {
            for (&subscription, request) in other.subscriptions {
                if !request.pattern.matches(&spec.tag) || (request.local && other.id != id.node) {
                    continue;
                }
                let Some(path) = self.control.stream_path(id, subscription) else { continue };
                taken.push(Taken {
                    subscription,
                    form: path.last,
                    retransmit: request.retransmit,
                    hops: self.hops_along(&path.nodes),
                });
            }
        }
        let declared = spec.envelope.filter(|envelope| !envelope.is_learned());
        SourceView {
            publisher: id,
            tag: spec.tag.clone(),
            node: node.to_owned(),
            encoding: spec.encoding.clone(),
            period: spec.period.map(Into::into),
            key_interval: spec.key_interval.map(Into::into),
            late: if spec.waits { Late::Send } else { spec.late },
            loss: spec.loss,
            within: spec.within.map(Into::into),
            size: spec.size,
            bytes_max: spec.bytes_max,
            traffic: declared.map(|of| (of.bytes_per_s().saturating_mul(8), of.burst())),
            latch: spec.latch,
            hops: self.hops(id.node, self.control.me()),
            taken,
        }
    }

    fn hops_along(&self, nodes: &[NodeId]) -> Vec<HopView> {
        let pairs = nodes.iter().zip(nodes.iter().skip(1));
        pairs.flat_map(|(from, to)| self.hops(*from, *to)).collect()
    }

    fn hops(&self, from: NodeId, to: NodeId) -> Vec<HopView> {
        let path = self.control.path(from, to).unwrap_or_default();
        path.into_iter().map(|(from, to, info)| hop_view(from, to, info)).collect()
    }
}
