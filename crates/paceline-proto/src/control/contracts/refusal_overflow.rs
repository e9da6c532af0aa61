//! Refusals beyond the limit of a node's record, sent only to the subscription's node.
//!
//! A refusal in the record reaches all nodes, including new ones, and ends with a change of the record. These
//! refusals are sent once, when they occur. A later grant to the subscription ends them.

use crate::control::data::codec::{put_refusal, read_refusal};
use crate::control::data::refusal::Refusal;
use crate::control::{Control, ControlOutput};
use crate::ids::NodeId;
use crate::topic::Topic;
use crate::wire::{Reader, WireError};
use bytes::Bytes;

impl Control {
    /// Sends the refusals that did not fit into the record to their subscriptions' nodes.
    pub(in crate::control) fn send_refusal_overflow(&mut self) {
        for refusal in self.contracts.admission.take_refusal_overflow() {
            self.notify(refusal.subscription.node, encode(&refusal));
        }
    }

    /// Handles the refusal of a subscription of this node by a publisher's node.
    pub(in crate::control) fn hear_refused(&mut self, from: NodeId, body: Bytes) {
        let Ok(refusal) = decode(body) else {
            self.rejected += 1;
            return;
        };
        let (subscription, publisher) = (refusal.subscription, refusal.publisher);
        if publisher.node != from {
            // Only the publisher's node decides, and nobody else takes back a change.
            self.contradictions += 1;
            return;
        }
        let mine = self.membership.registry.record(self.me);
        let asks = mine.is_some_and(|mine| mine.subscriptions.contains_key(&subscription));
        let current = self.subscription(subscription).map(|spec| spec.revision);
        if current != Some(refusal.revision) || self.hear_refused_change(&refusal) {
            return;
        }
        let answer = self.contracts.answers.get(&(subscription, publisher));
        let granted = answer.is_some_and(|answer| answer.granted.is_some());
        if asks && granted && refusal.spare {
            // The contract continues without its spare.
            self.outputs.push_back(ControlOutput::NoSpare { refusal });
        } else if asks && !granted {
            self.outputs.push_back(ControlOutput::Refused { subscription, publisher, refusal });
        }
    }
}

fn encode(refusal: &Refusal) -> Bytes {
    let mut out = vec![Topic::Refused.code()];
    put_refusal(&mut out, refusal);
    out.into()
}

fn decode(body: Bytes) -> Result<Refusal, WireError> {
    let mut reader = Reader::new(body);
    let refusal = read_refusal(&mut reader)?;
    reader.finish()?;
    Ok(refusal)
}

#[cfg(test)]
pub(in crate::control) mod tests {
    use super::*;
    use crate::control::data::refusal::RefusalReason;
    use crate::control::membership::blank::blank;
    use crate::control::membership::registry::REFUSALS_MAX;
    use crate::control::{HopInfo, PublisherSpec, SubscriptionSpec};
    use crate::{Encoding, Kind, Pattern, Tag};
    use paceline_sched::{Capacity, Duration, Instant};

    const IDS: [NodeId; 2] = [NodeId(1), NodeId(2)];

    /// Exchanges messages of both nodes for two seconds; returns the other outputs of the second node.
    fn talk(nodes: &mut [Control; 2], now: &mut Instant) -> Vec<ControlOutput> {
        let mut others = Vec::new();
        for _ in 0..200 {
            *now += Duration::from_millis(10);
            for from in [0, 1] {
                nodes[from].handle_timeout(*now);
                while let Some(output) = nodes[from].poll_output() {
                    if let ControlOutput::Send { message, .. } = output {
                        nodes[1 - from].handle_message(*now, IDS[from], message).unwrap();
                    } else if from == 1 {
                        others.push(output);
                    }
                }
            }
        }
        others
    }

    /// Returns two nodes, joined by a link.
    fn joined(now: &mut Instant, bits_per_s: u64) -> [Control; 2] {
        let mut nodes = IDS.map(|id| Control::new(id, "node"));
        let capacity = Capacity::from_bits_per_s(bits_per_s).ok();
        for (from, to) in [(0, 1), (1, 0)] {
            let hop = HopInfo::new("link".to_owned(), capacity);
            nodes[from].handle_hop_up(*now, IDS[to], hop);
        }
        talk(&mut nodes, now);
        nodes
    }

    /// Returns a camera that needs 2.4 Mbit/s.
    pub(in crate::control) fn camera() -> PublisherSpec {
        PublisherSpec {
            kind: Kind::Picture,
            encoding: Encoding::Jpeg,
            period: Some(Duration::from_millis(40)),
            bytes_max: Some(10_900),
            ..PublisherSpec::new(Tag::new("camera").unwrap())
        }
    }

    fn request() -> SubscriptionSpec {
        SubscriptionSpec {
            within: Some(Duration::from_millis(200)),
            ..SubscriptionSpec::all_of(Pattern::new("camera").unwrap())
        }
    }

    /// A publisher on the first node and a subscription on the second, over a link that cannot carry the
    /// stream. The first node already has `others` refusals.
    fn refused(others: usize) -> (Vec<ControlOutput>, usize) {
        let mut now = Instant::from_millis(1_000);
        let mut nodes = joined(&mut now, 100_000);
        nodes[0].contracts.admission.pairs.refused = others;
        nodes[0].publish(now, camera());
        nodes[1].subscribe(now, request());
        let others = talk(&mut nodes, &mut now);
        let refused =
            others.into_iter().filter(|output| matches!(output, ControlOutput::Refused { .. }));
        let listed = nodes[1].nodes().map(|node| node.refusals.len()).sum();
        (refused.collect(), listed)
    }

    #[test]
    fn a_running_contract_without_its_spare_is_reported_even_on_overflow() {
        let mut now = Instant::from_millis(1_000);
        let mut nodes = joined(&mut now, 10_000_000);
        nodes[0].publish(now, camera());
        let subscription = nodes[1].subscribe(now, request());
        talk(&mut nodes, &mut now);
        nodes[0].contracts.admission.pairs.refused = REFUSALS_MAX;
        let spared = SubscriptionSpec { spare: true, ..request() };
        nodes[1].update_subscription(now, subscription, spared);
        let others = talk(&mut nodes, &mut now);
        let of_spare = |output: &&ControlOutput| matches!(output, ControlOutput::NoSpare { .. });
        assert_eq!(others.iter().filter(of_spare).count(), 1, "{others:?}");
        assert_eq!(nodes[1].nodes().map(|node| node.refusals.len()).sum::<usize>(), 0);
        let answers = nodes[1].contracts.answers.values();
        let granted = answers.filter(|answer| answer.granted.is_some());
        assert_eq!(granted.count(), 1, "the contract continues");
    }

    #[test]
    fn only_the_node_of_the_publisher_takes_back_a_change() {
        let mut now = Instant::from_millis(1_000);
        let mut nodes = joined(&mut now, 10_000_000);
        let publisher = nodes[0].publish(now, camera());
        let subscription = nodes[1].subscribe(now, request());
        talk(&mut nodes, &mut now);
        let sooner = SubscriptionSpec { within: Some(Duration::from_millis(150)), ..request() };
        nodes[1].update_subscription(now, subscription, sooner);
        let revision = nodes[1].subscription(subscription).unwrap().revision;
        let key = (subscription, publisher);
        let why = RefusalReason::Capacity;
        let refusal =
            Refusal { revision, ..blank(key, IDS[0], &nodes[1].membership.registry, why) };
        let body = encode(&refusal).slice(1..);
        nodes[1].hear_refused(NodeId(9), body.clone());
        assert_eq!(nodes[1].subscription(subscription).unwrap().revision, revision);
        assert_eq!(nodes[1].contradictions(), 1);
        nodes[1].hear_refused(IDS[0], body);
        assert_eq!(nodes[1].subscription(subscription).unwrap().revision, 0);
    }

    #[test]
    fn every_refused_subscriber_is_notified_even_on_overflow() {
        let (known, listed) = refused(REFUSALS_MAX - 1);
        assert_eq!((known.len(), listed), (1, 1));
        let (alone, listed) = refused(REFUSALS_MAX);
        assert_eq!(
            (&alone, listed),
            (&known, 0),
            "the status is the same, though no record has it"
        );
    }
}
