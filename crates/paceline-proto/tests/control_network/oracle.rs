//! Invariants of a settled network, computed by brute force.

use super::net::{Net, id, index};
use paceline_proto::control::{NodeView, Refusal, RefusalReason};
use paceline_proto::plan::{OutputPlan, SourceKey, Target};
use paceline_proto::{Form, PublisherId, SubscriptionId};
use std::collections::{BTreeMap, BTreeSet};

impl Net {
    /// Returns the nodes that `node` is connected to, over any number of hops.
    fn component(&self, node: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::from([node]);
        loop {
            let further: BTreeSet<usize> = self
                .up
                .iter()
                .filter(|(from, _)| found.contains(from))
                .map(|&(_, to)| to)
                .collect();
            if further.is_subset(&found) {
                return found;
            }
            found.extend(further);
        }
    }

    /// Asserts that every node lists exactly the connected nodes, each as that node lists itself.
    pub(crate) fn assert_converged(&self) {
        for node in 0..self.nodes.len() {
            let component = self.component(node);
            let listed: BTreeSet<usize> =
                self.nodes[node].nodes().map(|view| index(view.id)).collect();
            assert_eq!(listed, component, "the list of node {node}");
            let first = component.first().copied().unwrap();
            assert_eq!(self.listing(node), self.listing(first), "nodes {node} and {first}");
            let own = self.nodes[node].nodes().find(|view| view.id == id(node)).unwrap();
            let hops: BTreeSet<(usize, usize)> =
                own.neighbours.keys().map(|&hop| (node, index(hop))).collect();
            let up = self.up.iter().copied().filter(|(from, _)| *from == node).collect();
            assert_eq!(hops, up);
        }
    }

    /// Follows each publisher's samples through the installed outputs. Asserts that each matching
    /// subscription that is not refused receives them once, in its form, and that nothing crosses a hop
    /// twice.
    pub(crate) fn assert_delivered(&self) {
        self.assert_reached();
        self.assert_nothing_stale();
    }

    /// The same, but allows outputs that continue for a while after a change.
    pub(crate) fn assert_reached(&self) {
        for node in 0..self.nodes.len() {
            let own = self.nodes[node].nodes().find(|view| view.id == id(node)).unwrap();
            for &publisher in own.publishers.keys() {
                let got = self.follow(publisher);
                assert_eq!(got, self.wanted(publisher), "samples of {publisher}");
                let matching = self.seen[node].matching.get(&publisher).copied();
                assert_eq!(matching.unwrap_or(false), !got.is_empty());
            }
        }
    }

    /// An output that ends with the first sample of its successor has one, which delivers to the same subscriptions. It may do
    /// so over another hop, because the path can change with the request.
    fn check_successor(&self, node: usize, publisher: PublisherId, output: &OutputPlan) {
        let Some(next) = output.until else { return };
        let successors = self.outputs(node, publisher, next);
        let lasting = successors.iter().filter(|it| it.until.is_none());
        let delivers =
            |subscription| lasting.clone().any(|it| it.subscriptions.contains(subscription));
        let found = lasting.clone().next().is_some() && output.subscriptions.iter().all(delivers);
        assert!(found, "no successor {next} of {output:?} at {node}: {successors:?}");
    }

    fn follow(&self, publisher: PublisherId) -> BTreeMap<SubscriptionId, Form> {
        let mut got = BTreeMap::new();
        let mut visited = BTreeSet::new();
        let mut waiting = vec![(index(publisher.node), Form::FULL)];
        while let Some((node, form)) = waiting.pop() {
            assert!(visited.insert((node, form)), "{form} of {publisher} twice at {node}");
            // Outputs with a successor end with its first sample, so what they deliver must also come from that.
            let lasting = |output: &&OutputPlan| output.until.is_none();
            for output in self.outputs(node, publisher, form) {
                self.check_successor(node, publisher, output);
            }
            for output in self.outputs(node, publisher, form).iter().filter(lasting) {
                let scaled = if output.scale == Form::FULL { form } else { output.scale };
                let scaled = scaled.without_via();
                assert_eq!(scaled, output.form.without_via(), "scaling produces the outgoing form");
                match output.target {
                    Target::Hop(hop) => waiting.push((index(hop), output.form)),
                    Target::Local => {
                        for &subscription in &output.subscriptions {
                            assert_eq!(index(subscription.node), node);
                            let form = output.form.without_via();
                            assert_eq!(got.insert(subscription, form), None);
                        }
                    }
                }
            }
        }
        got
    }

    fn wanted(&self, publisher: PublisherId) -> BTreeMap<SubscriptionId, Form> {
        let mut wanted = BTreeMap::new();
        let node = index(publisher.node);
        let views: Vec<_> = self.nodes[node].nodes().collect();
        let own = views.iter().find(|view| view.id == publisher.node).unwrap();
        let spec = &own.publishers[&publisher];
        for view in &views {
            for (&subscription, request) in view.subscriptions {
                // The refusal of a contract that only the publisher requests leaves best effort.
                let counts = |refusal: &Refusal| {
                    let obstacle = matches!(
                        refusal.reason,
                        RefusalReason::Rights { .. }
                            | RefusalReason::Unencrypted
                            | RefusalReason::NoProxy { .. }
                            | RefusalReason::SizeAboveSource { .. }
                            | RefusalReason::Unscalable { .. }
                            | RefusalReason::Unthinnable { .. }
                    );
                    // The refusal of a spare leaves a running contract.
                    let key = (subscription, publisher);
                    let granted = &self.seen[index(subscription.node)].granted;
                    let runs = refusal.spare && granted.contains_key(&key);
                    (request.wants_contract() || obstacle) && !runs
                };
                let refusal =
                    |view: &NodeView<'_>| view.refusals.get(&(subscription, publisher)).cloned();
                let refused = views.iter().filter_map(refusal).any(|refusal| counts(&refusal));
                let hears = self.heard(subscription).contains(&publisher);
                let wants = request.pattern.matches(&spec.tag) && !refused;
                assert_eq!(hears, wants, "{subscription} receives {publisher}");
                if wants {
                    wanted.insert(subscription, spec.form_of(request.form));
                }
            }
        }
        wanted
    }

    /// Asserts that samples arrive for every installed source. Outputs that continue for a while after a
    /// change fail this.
    fn assert_nothing_stale(&self) {
        for (node, seen) in self.seen.iter().enumerate() {
            for SourceKey { publisher, form } in seen.installed.keys() {
                let from = |other: usize| {
                    let installed = self.seen[other].installed.iter();
                    installed.filter(|(source, _)| source.publisher == *publisher).any(
                        |(_, (_, outputs))| {
                            outputs.iter().any(|output| {
                                output.target == Target::Hop(id(node)) && output.form == *form
                            })
                        },
                    )
                };
                let here = index(publisher.node) == node && *form == Form::FULL;
                assert!(here || (0..self.nodes.len()).any(from), "{form} of {publisher} at {node}");
            }
        }
    }
}
