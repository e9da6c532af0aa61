//! Reports excess traffic of streams to their subscriptions.
//!
//! Every node of a path reports for its own link, so a subscription can see which link delayed which samples.
//! Counts only grow while a stream is open, so a lost report is corrected by the next one.

use super::booking::trunk;
use crate::control::membership::message::QUESTION_BYTES_MAX;
use crate::control::{Control, ControlOutput};
use crate::form::Form;
use crate::ids::{NodeId, PublisherId};
use crate::reason::Excess;
use crate::topic::Topic;
use crate::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use paceline_admit::Trunk;
use paceline_sched::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// The most bytes of a row: a trunk and two counts.
const ROW_BYTES_MAX: usize = 16 + 2 * 10;
/// The most rows per message.
const ROWS_MAX: usize = (QUESTION_BYTES_MAX - 1) / ROW_BYTES_MAX;

/// The excess that a link of this node has counted since it opened a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StreamExcess {
    /// The publisher.
    pub publisher: PublisherId,
    /// The form of the samples.
    pub form: Form,
    /// The neighbour at the other end.
    pub hop: NodeId,
    /// The number of samples beyond the grant.
    pub excess: Excess,
}

impl Control {
    /// Reports `streams` to all their subscriptions with a promise, which output [`ControlOutput::Excess`].
    ///
    /// Call this with all streams whose counts changed, no more often than subscribers need updates.
    pub fn report_excess(&mut self, now: Instant, streams: &[StreamExcess]) {
        self.advance(now);
        // A stream may serve requests that share it and others.
        let both = |it: &StreamExcess| {
            [false, true].map(|apart| ((trunk(it.publisher, apart, it.form), it.hop), it.excess))
        };
        let counted: BTreeMap<(Trunk, NodeId), Excess> = streams.iter().flat_map(both).collect();
        if counted.is_empty() {
            return;
        }
        let mut reports: BTreeMap<NodeId, BTreeSet<(Trunk, NodeId)>> = BTreeMap::new();
        for booking in self.contracts.admission.carrying(&self.membership.registry) {
            let here = booking.path.iter().position(|node| *node == self.me);
            let Some(&hop) = here.and_then(|here| booking.path.get(here + 1)) else { continue };
            let own = booking.at(self.me).trunk;
            let its = counted.keys().filter(|(it, to)| *to == hop && concerns(*it, own));
            for key in its {
                reports.entry(booking.pair.0.node).or_default().insert(*key);
            }
        }
        for (node, keys) in reports {
            let rows: Vec<(Trunk, Excess)> =
                keys.iter().filter_map(|key| Some((key.0, *counted.get(key)?))).collect();
            for rows in rows.chunks(ROWS_MAX) {
                self.notify(node, encode(rows));
            }
        }
    }

    /// Handles a report from a node on the path of subscriptions of this node.
    pub(in crate::control) fn hear_excess(&mut self, node: NodeId, body: Bytes) {
        let Ok(rows) = decode(body) else {
            self.rejected += 1;
            return;
        };
        let node_name = self.name(node).unwrap_or_default().to_owned();
        let rows: BTreeMap<Trunk, Excess> = rows.into_iter().collect();
        for booking in self.contracts.admission.carrying(&self.membership.registry) {
            let (subscription, publisher) = booking.pair;
            let ours = subscription.node == self.me && booking.path.contains(&node);
            let own = booking.at(node).trunk;
            // A stream that carries it is the only one with a count.
            let mut its = rows.iter().filter(|(it, _)| ours && concerns(**it, own));
            if let Some((_, &excess)) = its.next() {
                let node_name = node_name.clone();
                let output =
                    ControlOutput::Excess { subscription, publisher, node, node_name, excess };
                self.outputs.push_back(output);
            }
        }
    }
}

/// Returns true if samples of the stream `own` are, or may be, those of `counted`.
fn concerns(counted: Trunk, own: Trunk) -> bool {
    counted == own || counted.carries(own)
}

fn encode(rows: &[(Trunk, Excess)]) -> Bytes {
    let mut out = vec![Topic::Excess.code()];
    for (trunk, excess) in rows {
        out.put_bytes(&trunk.0.to_le_bytes());
        out.put_varint(excess.early);
        out.put_varint(excess.long);
    }
    out.into()
}

fn decode(body: Bytes) -> Result<Vec<(Trunk, Excess)>, WireError> {
    let mut reader = Reader::new(body);
    let mut rows = Vec::new();
    while reader.remaining() > 0 {
        let (low, high) = (reader.u64("trunk")?, reader.u64("trunk")?);
        let excess =
            Excess { early: reader.varint("too early")?, long: reader.varint("too long")? };
        rows.push((Trunk(u128::from(high) << 64 | u128::from(low)), excess));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_message_round_trips_and_no_prefix_decodes() {
        let all = Excess { early: u64::MAX, long: u64::MAX };
        let rows: Vec<_> = (0..ROWS_MAX).map(|n| (Trunk(u128::MAX - n as u128), all)).collect();
        let body = encode(&rows);
        assert_eq!(body.len(), 1 + ROWS_MAX * ROW_BYTES_MAX);
        assert!(body.len() <= QUESTION_BYTES_MAX);
        let Some((Topic::Excess, body)) = Topic::split(body) else { panic!("its topic") };
        assert!(decode(body.clone()) == Ok(rows), "it reads back");
        for len in (0..body.len()).filter(|len| len % ROW_BYTES_MAX != 0) {
            assert!(decode(body.slice(..len)).is_err(), "{len}");
        }
    }
}
