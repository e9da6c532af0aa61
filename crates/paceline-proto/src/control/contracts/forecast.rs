//! Forecasts of measured links: warn both ends of the contracts that a link will soon no longer carry.
//!
//! The measurement of a link reports a fall that goes on ([`CapacityFall`]). The link is then tested as if its capacity had
//! fallen already by half a second, 1 s and so on, and the contracts that it would lose are those that it warns.

use super::booking::{Booking, Label};
use super::elastic::reduction_of;
use super::streams::booked;
use crate::capacity::CapacityFall;
use crate::control::data::codec::{put_pair, read_pair};
use crate::control::data::ids::{NAME_BYTES_MAX, PairKey};
use crate::control::data::warning::Warning;
use crate::control::{Control, ControlOutput, cut};
use crate::ids::NodeId;
use crate::topic::Topic;
use crate::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use paceline_admit::LinkParameters;
use paceline_sched::{Capacity, Duration, Instant};
use std::collections::BTreeMap;

/// The times ahead for which a link is tested.
const AHEAD: [Duration; 4] = [
    Duration::from_millis(500),
    Duration::from_millis(1_000),
    Duration::from_millis(1_500),
    Duration::from_millis(2_000),
];
const AHEAD_MAX: Duration = Duration::from_secs(10);
/// A warning holds for this time after the expected one. Until then, only a warning of a lower step follows.
const HOLDS: Duration = Duration::from_secs(2);

/// The warnings that this node has sent.
#[derive(Debug, Default)]
pub(in crate::control) struct State {
    warned: BTreeMap<PairKey, Warned>,
}

/// The lowest step that the ends of a pair were warned of.
#[derive(Clone, Copy, Debug)]
struct Warned {
    until: Instant,
    /// `None` if the contract is expected to end.
    step: Option<usize>,
}

impl Warned {
    /// Returns true if a warning of `step` would be no news.
    const fn covers(&self, step: Option<usize>) -> bool {
        match (self.step, step) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(warned), Some(step)) => warned >= step,
        }
    }
}

impl Control {
    /// Handles the fall of a measured link: warns the ends of the contracts that it will soon no longer carry.
    pub fn handle_fall(&mut self, now: Instant, link: &str, fall: &CapacityFall) {
        self.advance(now);
        let link = cut(link);
        let Some(capacity) = self.contracts.admission.links.measured(&link) else { return };
        let now = self.now;
        self.contracts.forecasts.warned.retain(|_, warned| warned.until > now);
        for after in AHEAD {
            for (pair, step) in self.lost_at(&link, (fall.after(after), capacity.bits_per_s())) {
                self.warn(pair, Foreseen { pair, after, step }, &link);
            }
        }
    }

    fn warn(&mut self, pair: PairKey, foreseen: Foreseen, link: &str) {
        let (until, step) = (self.now + foreseen.after + HOLDS, foreseen.step);
        let warned = &mut self.contracts.forecasts.warned;
        if warned.get(&pair).is_some_and(|warned| warned.covers(step)) {
            return;
        }
        warned.insert(pair, Warned { until, step });
        let body = foreseen.encode(link);
        self.notify(pair.0.node, body.clone());
        if pair.1.node != pair.0.node {
            self.notify(pair.1.node, body);
        }
    }

    /// Returns the pairs that a link would lose with `bits` of its present capacity of `of` bits per second, each with the step
    /// that would remain.
    fn lost_at(&self, link: &str, (bits, of): (u64, u64)) -> Vec<(PairKey, Option<usize>)> {
        let admission = &self.contracts.admission;
        let Some(id) = admission.links.id(link) else { return Vec::new() };
        let Some(held) = admission.reservations.link(id) else { return Vec::new() };
        // Admission uses a part of the capacity.
        let part = |whole: u64| {
            let part = u128::from(whole) * u128::from(bits) / u128::from(of.max(1));
            u64::try_from(part).unwrap_or(whole)
        };
        let present = held.spec().capacity.bits_per_s();
        let Ok(capacity) = Capacity::from_bits_per_s(part(present).max(1)) else {
            return Vec::new();
        };
        let spec = LinkParameters { capacity, ..held.spec().clone() };
        let lost = admission.reservations.lost_at(id, spec, Label::rank);
        let rate = held.ledger().held.rate;
        let lacks = rate.saturating_sub(part(rate)).max(1);
        let its = |booking: &&Booking| lost.contains(&booking.name.key);
        let pairs = booked(&self.membership.registry, admission.bookings().filter(its), self.me);
        let step = |pair| reduction_of(pair, lacks).map(|(step, _)| step);
        pairs.iter().map(|pair| (pair.key(), step(pair))).collect()
    }

    /// Handles a warning of a node on the path of a pair with an end here.
    pub(in crate::control) fn hear_warning(&mut self, from: NodeId, body: Bytes) {
        let Ok((Foreseen { pair, after, step }, link)) = Foreseen::decode(body) else {
            self.rejected += 1;
            return;
        };
        let mut bookings = self.contracts.admission.bookings();
        let Some(booking) = bookings.find(|it| it.pair == pair && it.path.contains(&from)) else {
            return;
        };
        if ![pair.0.node, pair.1.node].contains(&self.me) {
            return;
        }
        let steps = booking.request.steps().map(|(steps, _)| steps);
        let form = step.and_then(|step| steps?.get(step).copied());
        let node_name = self.name(from).unwrap_or_default().to_owned();
        let (subscription, publisher) = pair;
        drop(bookings);
        let warning = Warning { after, form, node_name, link };
        self.outputs.push_back(ControlOutput::Warned { subscription, publisher, warning });
    }
}

/// A warning on the wire.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Foreseen {
    pair: PairKey,
    after: Duration,
    step: Option<usize>,
}

impl Foreseen {
    fn encode(self, link: &str) -> Bytes {
        let mut out = vec![Topic::Warning.code()];
        put_pair(&mut out, self.pair.0, self.pair.1);
        out.put_varint(self.after.as_nanos());
        out.put_varint(self.step.map_or(0, |step| step as u64));
        out.put_text(link);
        out.into()
    }

    fn decode(body: Bytes) -> Result<(Self, String), WireError> {
        let mut reader = Reader::new(body);
        let pair = read_pair(&mut reader)?;
        let after = Duration::from_nanos(reader.varint_max(AHEAD_MAX.as_nanos(), "time ahead")?);
        // The first step is the most, to which nothing is reduced.
        let step = Some(reader.len(usize::from(u8::MAX), "step")?).filter(|step| *step > 0);
        let link = reader.text(NAME_BYTES_MAX, "link name")?;
        reader.finish()?;
        Ok((Self { pair, after, step }, link))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{PublisherId, SubscriptionId};

    #[test]
    fn a_warning_round_trips_and_every_truncation_is_an_error() {
        let subscription = SubscriptionId { node: NodeId(9), index: 3 };
        let pair = (subscription, PublisherId { node: NodeId(7), index: 1 });
        for step in [None, Some(7)] {
            let foreseen = Foreseen { pair, after: Duration::from_millis(1_500), step };
            let Some((Topic::Warning, body)) = Topic::split(foreseen.encode("radio")) else {
                panic!()
            };
            assert_eq!(Foreseen::decode(body.clone()), Ok((foreseen, "radio".to_owned())));
            for len in 0..body.len() {
                assert!(Foreseen::decode(body.slice(..len)).is_err(), "{len}");
            }
        }
    }
}
