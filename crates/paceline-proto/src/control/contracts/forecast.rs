//! Forecasts of measured links: warn both ends of the contracts that a link will soon no longer carry.
//!
//! The forecast extends the last two falls of the capacity, by the slower of them, so that a step is no trend. The link is
//! then tested as if its capacity had fallen already, and the contracts that it would lose are those that it warns.

use super::booking::{Booking, Label};
use super::elastic::reduction_of;
use super::streams::booked;
use crate::control::data::codec::{put_pair, read_pair};
use crate::control::data::ids::{NAME_BYTES_MAX, PairKey};
use crate::control::data::warning::Warning;
use crate::control::{Control, ControlOutput};
use crate::ids::NodeId;
use crate::topic::Topic;
use crate::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use paceline_admit::LinkParameters;
use paceline_sched::{Capacity, Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// The times ahead for which a link is tested.
const AHEAD: [Duration; 4] = [
    Duration::from_millis(500),
    Duration::from_millis(1_000),
    Duration::from_millis(1_500),
    Duration::from_millis(2_000),
];
const AHEAD_MAX: Duration = Duration::from_secs(10);
/// Falls within less than this are one step.
const TREND_MIN: Duration = Duration::from_millis(500);
/// The shortest time between two warnings of a pair's request.
const AGAIN: Duration = Duration::from_secs(4);

/// The falls of the links of this node, and the warnings that it has sent.
#[derive(Debug, Default)]
pub(in crate::control) struct State {
    trends: BTreeMap<String, Trend>,
    /// By pair and request: each step of an elastic contract is warned by itself.
    warned: BTreeMap<(PairKey, u64), Instant>,
}

/// The last capacities of a link since it began to fall, in bits per second.
#[derive(Debug, Default)]
struct Trend(VecDeque<(Instant, u64)>);

impl Trend {
    fn note(&mut self, now: Instant, bits: u64) {
        match self.0.back() {
            Some((_, last)) if bits == *last => return,
            Some((_, last)) if bits > *last => self.0.clear(),
            Some(_) | None => {}
        }
        self.0.push_back((now, bits));
        if self.0.len() > 3 {
            self.0.pop_front();
        }
    }

    /// Returns the expected fall in bits per second and second, and the time of the last fall; `None` if there is no trend.
    fn slope(&self) -> Option<(u64, Duration)> {
        let [(t0, c0), (t1, c1), (t2, c2)] =
            self.0.iter().copied().collect::<Vec<_>>().try_into().ok()?;
        let per_second = |fall: u64, time: Duration| {
            let part = u128::from(fall) * 1_000_000_000 / u128::from(time.as_nanos().max(1));
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let (first, last) = (t1.since(t0), t2.since(t1));
        let slope = per_second(c0 - c1, first).min(per_second(c1 - c2, last));
        (t2.since(t0) >= TREND_MIN).then_some((slope, last))
    }

    /// Returns the expected capacities, each with the time ahead.
    fn ahead(&self) -> Vec<(Duration, u64)> {
        let (Some((slope, last)), Some((_, now))) = (self.slope(), self.0.back()) else {
            return Vec::new();
        };
        // A slow fall is seen rarely, so that the next time must be foreseen too.
        let rare = Some(last.min(AHEAD_MAX)).filter(|last| AHEAD.iter().all(|ahead| ahead < last));
        let expected = |ahead: Duration| {
            let fall = u128::from(slope) * u128::from(ahead.as_nanos()) / 1_000_000_000;
            (ahead, now.saturating_sub(u64::try_from(fall).unwrap_or(u64::MAX)))
        };
        AHEAD.into_iter().chain(rare).map(expected).collect()
    }
}

impl Control {
    /// Notes the capacity of a measured link, and warns the ends of the contracts that it will soon no longer carry.
    pub(in crate::control) fn foresee(&mut self, link: &str) {
        let Some(now_bits) = self.contracts.admission.links.measured(link) else { return };
        let (now, state) = (self.now, &mut self.contracts.forecasts);
        state.warned.retain(|_, until| *until > now);
        let trend = state.trends.entry(link.to_owned()).or_default();
        trend.note(now, now_bits.bits_per_s());
        for (after, bits) in trend.ahead() {
            for (key, form) in self.lost_at(link, (bits, now_bits.bits_per_s())) {
                if self.contracts.forecasts.warned.contains_key(&key) {
                    continue;
                }
                self.contracts.forecasts.warned.insert(key, now + AGAIN);
                let (pair, _) = key;
                let step = Foreseen { pair, after, step: form };
                let body = step.encode(link);
                self.notify(pair.0.node, body.clone());
                if pair.1.node != pair.0.node {
                    self.notify(pair.1.node, body);
                }
            }
        }
    }

    /// Returns the pairs that a link would lose with `bits` of its present capacity of `of` bits per second, each with the
    /// number of its request and the step that would remain.
    fn lost_at(&self, link: &str, (bits, of): (u64, u64)) -> Vec<((PairKey, u64), Option<usize>)> {
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
        pairs.iter().map(|pair| ((pair.key(), pair.request.revision), step(pair))).collect()
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

    fn trend(falls: &[(u64, u64)]) -> Trend {
        let mut trend = Trend::default();
        falls
            .iter()
            .for_each(|(millis, mbit)| trend.note(Instant::from_millis(*millis), mbit * 1_000_000));
        trend
    }

    #[test]
    fn a_step_is_no_trend_and_a_ramp_is() {
        assert_eq!(trend(&[(0, 20), (100, 5), (200, 2)]).slope(), None);
        let ramp = trend(&[(0, 20), (500, 19), (1_000, 18)]);
        assert_eq!(ramp.slope(), Some((2_000_000, Duration::from_millis(500))));
        assert_eq!(ramp.ahead().last(), Some(&(Duration::from_secs(2), 14_000_000)));
        // After a step, its slower end counts.
        let after = trend(&[(0, 20), (100, 3), (2_100, 2)]);
        assert_eq!(after.slope(), Some((500_000, Duration::from_secs(2))));
        assert_eq!(trend(&[(0, 20), (500, 19), (900, 21), (1_400, 20)]).slope(), None);
        let slow = trend(&[(0, 20), (5_000, 19), (11_000, 18)]);
        assert_eq!(
            slow.ahead().last().unwrap().0,
            Duration::from_secs(6),
            "as far as the last fall"
        );
        assert_eq!(trend(&[(0, 2), (600, 1), (1_200, 0)]).ahead()[3].1, 0);
    }

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
