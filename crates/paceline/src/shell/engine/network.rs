//! The topology and the streams of tags, from the registry.

use super::Engine;
use crate::network::{NetworkNode, NetworkStream, NetworkView};
use crate::status::HopView;
use paceline_proto::control::{HopInfo, NodeView, PublisherSpec};
use paceline_proto::{Form, NodeId, Pattern, PublisherId};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

type Nodes<'a> = BTreeMap<NodeId, NodeView<'a>>;

impl Engine {
    pub(super) fn reply_network(&self, pattern: &Pattern, reply: &Sender<NetworkView>) {
        let nodes: Nodes<'_> = self.control.nodes().map(|node| (node.id, node)).collect();
        let hosts = hosts(&nodes);
        let host = |id: NodeId| hosts.get(&id).copied().unwrap_or(id);
        let mut view = NetworkView::default();
        for node in nodes.values() {
            view.nodes.push(network_node(&nodes, node, host(node.id)));
            for (&to, info) in node.neighbours {
                if is_linked(&nodes, to, node.id) {
                    view.hops.push(hop_view(node.id, to, info));
                }
            }
            for (&id, spec) in node.publishers {
                if pattern.matches(&spec.tag) && !spec.tag.is_private() {
                    let others = nodes.values().filter(|other| host(other.id) != host(node.id));
                    self.add_streams(&mut view.streams, others, (id, spec));
                }
            }
        }
        // The caller may have stopped waiting.
        let _ = reply.send(view);
    }

    /// Adds the streams from a publisher to the subscriptions of other nodes.
    fn add_streams<'a>(
        &self,
        streams: &mut Vec<NetworkStream>,
        others: impl Iterator<Item = &'a NodeView<'a>>,
        (publisher, spec): (PublisherId, &PublisherSpec),
    ) {
        for node in others {
            for (&subscription, request) in node.subscriptions {
                if !request.pattern.matches(&spec.tag) || request.local {
                    continue;
                }
                let path = self.control.stream_path(publisher, subscription);
                let Some(path) = path else { continue };
                let form = spec.form_of(request.form);
                let period = spec.assumed_period();
                let form_period = form.rate.period(Some(period)).unwrap_or(period);
                streams.push(NetworkStream {
                    publisher,
                    tag: spec.tag.clone(),
                    period: period.into(),
                    full_bytes_per_s: spec.bytes_per_s(Form::FULL),
                    work: spec.longest_work().into(),
                    subscription,
                    form,
                    bytes_per_s: spec.bytes_per_s(form),
                    form_period: form_period.into(),
                    within: spec.bound_for(request).map(Into::into),
                    place: path.proxy,
                });
            }
        }
    }
}

pub(super) fn hop_view(from: NodeId, to: NodeId, info: &HopInfo) -> HopView {
    let HopInfo { link_name, capacity, multicast, .. } = info;
    HopView { from, to, link: link_name.clone(), capacity: *capacity, multicast: *multicast }
}

/// Returns true if both nodes announce the hop between them.
fn is_linked(nodes: &Nodes<'_>, from: NodeId, to: NodeId) -> bool {
    let lists = |from, to| nodes.get(&from).is_some_and(|it| it.neighbours.contains_key(&to));
    lists(from, to) && lists(to, from)
}

/// Returns the node of each node's host: of the processes that are linked on a host, the one with the most neighbours on
/// other hosts, and of equal ones the one with the most neighbours.
fn hosts(nodes: &Nodes<'_>) -> BTreeMap<NodeId, NodeId> {
    let mut hosts = BTreeMap::new();
    for &first in nodes.keys() {
        if hosts.contains_key(&first) {
            continue;
        }
        let (mut members, mut next) = (vec![first], 0);
        while let Some(node) = members.get(next).and_then(|id| nodes.get(id)) {
            let own = node.neighbours.iter().filter(|(to, hop)| {
                hop.own && is_linked(nodes, node.id, **to) && !members.contains(to)
            });
            let own: Vec<NodeId> = own.map(|(to, _)| *to).collect();
            members.extend(own);
            next += 1;
        }
        let rank = |id: &&NodeId| {
            let hops = nodes.get(id).into_iter().flat_map(|node| node.neighbours.values());
            (hops.clone().filter(|hop| !hop.own).count(), hops.count(), Reverse(**id))
        };
        let host = members.iter().max_by_key(rank).copied().unwrap_or(first);
        hosts.extend(members.into_iter().map(|member| (member, host)));
    }
    hosts
}

fn network_node(nodes: &Nodes<'_>, node: &NodeView<'_>, host: NodeId) -> NetworkNode {
    let is_leaf = |of: &NodeId| {
        let hop = nodes.get(of).and_then(|other| other.neighbours.get(&node.id));
        hop.is_some_and(|hop| hop.leaf)
    };
    let relays = !node.neighbours.keys().any(is_leaf);
    NetworkNode { id: node.id, name: node.name.to_owned(), host, relays }
}
