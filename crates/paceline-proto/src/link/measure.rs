//! Measurement of the link's capacity, with the frames that leave anyway and with trains of padding.

use super::Link;
use super::hops::Hops;
use super::loss_meter::LossMeter;
use super::pacing::PIECE_MIN;
use crate::budget::RepairShare;
use crate::capacity::{
    CapacityEstimate, CapacityEstimator, CapacityState, Departure, LinkCapacity, Receipt,
};
use crate::carrier::off_wire;
use crate::ids::NodeId;
use crate::receive::Heard;
use crate::wire::ack::Ack;
use crate::wire::frame::FrameBuf;
use crate::wire::segment::{PADDING_BYTES_MAX, write_padding};
use paceline_sched::{Capacity, Duration, Instant};
use std::collections::BTreeMap;

/// The least rate of a link that carries anything, in bits per second.
const LEAST: u64 = 10_000;
/// A train has at least this number of frames, so that its dispersion shows the bottleneck and not one frame.
const TRAIN_FRAMES: u64 = 5;
/// A train leaves at this multiple of the present rate: clearly faster than the bottleneck, but no burst of all its frames.
const TRAIN_SPEED: u64 = 8;
/// Frames of a train that are due within this time leave together, since threads do not wake up more exactly.
const TOGETHER: Duration = Duration::from_micros(500);
/// A train that could not begin is tried again after this time.
const RETRY: Duration = Duration::from_millis(2);
/// A smaller change of the rate, in percent, is not worth the new terms of all streams.
const SAME: u64 = 2;
/// A frame is lost if so many later ones have arrived.
const OVERTAKEN: u64 = 3;
/// The measurements of a new neighbour count next to those of another one after this time, even if they differ.
const SETTLES: Duration = Duration::from_secs(2);
/// The number of neighbours whose measurements are kept while they are away.
const AWAY_MAX: usize = 64;

/// The measurement of one neighbour's frames. A restart of the hop begins its numbers anew; here they continue.
#[derive(Debug)]
struct Gauge {
    estimator: CapacityEstimator,
    epoch: u32,
    /// The number of frame 0 of this epoch.
    base: u64,
    /// The number of the next frame.
    next: u64,
    /// All frames before this one of the epoch have arrived.
    settled: u64,
    /// The time of the first frame.
    begun: Instant,
    /// The measurements have agreed once, or had time enough.
    is_settled: bool,
}

impl Gauge {
    fn new(now: Instant, range: LinkCapacity) -> Self {
        let estimator = range.estimator().unwrap_or_else(|| CapacityEstimator::new(None, None));
        Self { estimator, epoch: 0, base: 0, next: 0, settled: 0, begun: now, is_settled: false }
    }

    fn note_sent(&mut self, now: Instant, epoch: u32, sent: &Departure) {
        if epoch != self.epoch {
            (self.epoch, self.base, self.settled) = (epoch, self.next, 0);
        }
        let number = self.base + sent.number;
        self.next = number + 1;
        self.estimator.handle_sent(now, &Departure { number, ..*sent });
    }

    fn note_ack(&mut self, now: Instant, ack: &Ack, held: Duration) {
        let Self { estimator, base, settled, .. } = self;
        let mut arrive = |first: u64, end: u64| {
            let (first, newest) = (*base + first, *base + end - 1);
            estimator.handle_ack(now, &Receipt { first, newest, held, arrived: None });
        };
        if *settled < ack.next() {
            arrive(*settled, ack.next());
            *settled = ack.next();
        }
        let described = ack.next().max(ack.end().saturating_sub(64));
        let mut first = None;
        for seq in described..=ack.end() {
            match (ack.covers(seq), first) {
                (true, None) => first = Some(seq),
                (false, Some(begin)) => {
                    arrive(begin, seq);
                    first = None;
                }
                (true, Some(_)) | (false, None) => {}
            }
        }
        for seq in described..ack.end().saturating_sub(OVERTAKEN) {
            if ack.lacks(seq) {
                estimator.handle_lost(now, *base + seq);
            }
        }
        self.is_settled |= self.estimator.estimate().state == CapacityState::Stable
            || now.since(self.begun) > SETTLES;
    }
}

/// A train of padding that leaves.
#[derive(Clone, Copy, Debug)]
struct Train {
    node: NodeId,
    /// The number of frames that have not left, and the bytes of each on the wire.
    frames: u64,
    bytes: u64,
    /// The time of the next frame.
    next: Instant,
}

/// The measurement of a link's capacity.
#[derive(Debug)]
pub(super) struct Measure {
    range: LinkCapacity,
    gauges: BTreeMap<NodeId, Gauge>,
    train: Option<Train>,
    /// No train begins before.
    again: Instant,
    /// The estimate may have changed.
    is_new: bool,
    /// Nothing has been measured yet.
    is_unknown: bool,
    losses: LossMeter,
}

impl Measure {
    pub(super) fn new(range: LinkCapacity) -> Self {
        let (gauges, train) = (BTreeMap::new(), None);
        let (losses, again) = (LossMeter::default(), Instant::ZERO);
        Self { range, gauges, train, again, is_new: false, is_unknown: true, losses }
    }

    /// Returns the gauges of the neighbours that are up.
    fn present<'a>(&'a self, hops: &'a Hops) -> impl Iterator<Item = &'a Gauge> {
        self.gauges.iter().filter(|(node, _)| hops.is_up(**node)).map(|(_, gauge)| gauge)
    }

    /// Returns the least estimate of the neighbours that are up, since their frames share the link. That of a new neighbour,
    /// which grows from nothing, does not count yet next to another one.
    pub(super) fn estimate(&self, hops: &Hops) -> CapacityEstimate {
        let all = || {
            let all =
                self.present(hops).map(|gauge| (gauge.is_settled, gauge.estimator.estimate()));
            all.filter(|(_, found)| found.state != CapacityState::Unknown)
        };
        let answers = |(is_settled, found): &(bool, CapacityEstimate)| {
            *is_settled && found.state != CapacityState::Outage
        };
        let settled = all().filter(answers).min_by_key(|(_, found)| found.low);
        let found = settled.or_else(|| all().max_by_key(|(_, found)| found.low));
        found.map(|(_, found)| found).unwrap_or_else(|| {
            let nothing = CapacityEstimator::new(None, None).estimate();
            self.range.estimator().map_or(nothing, |it| it.estimate())
        })
    }

    /// Returns true if the share of repairs follows the losses: a stated capacity promises a fixed one.
    pub(super) const fn has_losses(&self) -> bool {
        matches!(self.range, LinkCapacity::Measured { .. })
    }

    /// Returns the share that the repairs need, which is `present` until it changes.
    pub(super) fn repair_share(&mut self, now: Instant, present: RepairShare) -> RepairShare {
        let frames = self.gauges.values().map(|gauge| gauge.estimator.frames());
        let totals = frames.fold((0, 0), |(a, b), (arrived, lost)| (a + arrived, b + lost));
        self.losses.note(now, totals, present).unwrap_or(present)
    }

    /// Returns the rate of the link, if it is known.
    fn rate(&self, hops: &Hops) -> Option<u64> {
        let found = self.estimate(hops);
        match found.state {
            // During an outage the acknowledgements that are missing stop the sender.
            CapacityState::Unknown | CapacityState::Outage => None,
            CapacityState::Measuring | CapacityState::Stable | CapacityState::Falling => {
                let least = self.range.guaranteed().map_or(LEAST, Capacity::bits_per_s);
                Some(found.pace.max(least))
            }
        }
    }

    /// Returns the neighbour whose train is due, and the bytes of the train.
    fn due(&mut self, now: Instant, hops: &Hops) -> Option<(NodeId, u64)> {
        let Self { gauges, .. } = self;
        let free = |node: NodeId| {
            let hop = hops.get(node).map(|neighbour| &neighbour.hop);
            hop.is_some_and(|hop| hop.is_up() && hop.can_be_told() && hop.has_queue_room(now))
        };
        let mut due = gauges
            .iter_mut()
            .filter(|(node, _)| free(**node))
            .filter_map(|(node, it)| Some((*node, it.estimator.probe(now)?.bytes)));
        due.next()
    }

    /// Returns the time of the next train or outage. `paced` is the time at which the wire is free.
    fn next_wake(&self, hops: &Hops, paced: Instant) -> Instant {
        let train = self.train.map_or(Instant::FAR, |train| train.next);
        let due = self.present(hops).map(|gauge| gauge.estimator.poll_timeout());
        let due = due.min().map_or(Instant::FAR, |due| due.max(self.again).max(paced));
        train.min(due)
    }
}

impl Link {
    /// Returns the measured capacity; `None` for a link that is not measured, or whose stated capacity is not contradicted.
    #[must_use]
    pub fn estimate(&self) -> Option<CapacityEstimate> {
        let measure = self.measure.as_ref().filter(|_| self.follows())?;
        Some(measure.estimate(&self.hops))
    }

    /// Records that the last frame to `node` left, with its number if it has one.
    pub(super) fn note_measured(
        &mut self,
        now: Instant,
        (node, seq): (NodeId, Option<u64>),
        (bytes, backlogged, probe): (u64, bool, bool),
    ) {
        let Some(measure) = &mut self.measure else { return };
        let Some((number, neighbour)) = seq.zip(self.hops.get(node)) else { return };
        if !neighbour.hop.is_up() {
            return;
        }
        if measure.gauges.len() > AWAY_MAX {
            measure.gauges.retain(|node, _| self.hops.get(*node).is_some());
        }
        let range = measure.range;
        let gauge = measure.gauges.entry(node).or_insert_with(|| Gauge::new(now, range));
        let sent = Departure { number, bytes, left: now, backlogged, probe };
        gauge.note_sent(now, neighbour.hop.epoch(), &sent);
    }

    /// Passes the acknowledgement in a frame of `node` to its measurement.
    pub(super) fn note_receipt(&mut self, now: Instant, node: NodeId, heard: &Heard) {
        let Some(measure) = &mut self.measure else { return };
        let Some(gauge) = measure.gauges.get_mut(&node) else { return };
        let up = self.hops.is_up(node) && gauge.epoch == heard.known;
        if let Some(ack) = heard.ack.filter(|_| up) {
            gauge.note_ack(now, &ack, heard.held);
            measure.is_new = true;
        }
    }

    /// Follows the measurement.
    pub(super) fn follow_capacity(&mut self, now: Instant) {
        let Some(measure) = &mut self.measure else { return };
        for gauge in measure.gauges.values_mut() {
            if gauge.estimator.poll_timeout() <= now {
                gauge.estimator.handle_timeout(now);
                measure.is_new = true;
            }
        }
        if !std::mem::take(&mut measure.is_new) {
            return;
        }
        self.follow_losses(now);
        let Some(measure) = &mut self.measure else { return };
        measure.is_unknown &= measure.estimate(&self.hops).state == CapacityState::Unknown;
        let rate = measure.rate(&self.hops);
        if !self.follows() {
            return;
        }
        let present = self.pacer.wire.capacity.map_or(0, Capacity::bits_per_s);
        let rate = rate.filter(|rate| rate.abs_diff(present) > present / 100 * SAME);
        if let Some(Ok(capacity)) = rate.map(Capacity::from_bits_per_s) {
            self.set_rate(now, capacity);
        }
    }

    /// Returns the time at which the measurement needs a call of [`Self::poll_frame`] or [`Self::handle_timeout`].
    pub(super) fn next_measurement(&self) -> Instant {
        let Some(measure) = self.measure.as_ref().filter(|_| self.follows()) else {
            return Instant::FAR;
        };
        measure.next_wake(&self.hops, self.pacer.ready_at())
    }

    /// Begins a train, if one is due. It never leaves before data with a contract: then the caller sends that.
    pub(super) fn begin_train(&mut self, now: Instant, out: &mut FrameBuf) -> Option<NodeId> {
        if !self.follows() {
            return None;
        }
        let measure = self.measure.as_mut()?;
        if now < measure.again {
            return None;
        }
        measure.again = now + RETRY;
        let (node, bytes) = measure.due(now, &self.hops)?;
        let most = self.pacer.wire.frame_on_wire();
        let frames = bytes.div_ceil(most).max(TRAIN_FRAMES);
        measure.train = Some(Train { node, frames, bytes: bytes.div_ceil(frames), next: now });
        self.continue_train(now, out)
    }

    /// Builds the next frame of a train that has begun, if it may leave now.
    pub(super) fn continue_train(&mut self, now: Instant, out: &mut FrameBuf) -> Option<NodeId> {
        let measure = self.measure.as_mut()?;
        let train = measure.train.as_mut().filter(|train| train.next <= now + TOGETHER)?;
        let (node, bytes) = (train.node, train.bytes);
        train.frames -= 1;
        let last = train.frames == 0;
        train.next += self.pacer.wire.time_of(bytes).mul_div(1, TRAIN_SPEED);
        if last || !self.hops.is_up(node) {
            measure.train = None;
        }
        let neighbour = self.hops.get(node).filter(|it| it.hop.is_up() && it.hop.can_be_told())?;
        self.header(now, neighbour).write(&mut out.head);
        let room = usize::try_from(off_wire(bytes)).unwrap_or(usize::MAX);
        let room = room.saturating_sub(out.len() + PADDING_BYTES_MAX);
        write_padding(room.min(self.pacer.wire.limit()), &mut out.head);
        let wire = self.pacer.wire.occupied(out.len() as u64);
        let seq = self.hops.next_seq(node);
        self.note_frame(now, (node, wire), Vec::new(), &mut out.head);
        if let Some(neighbour) = self.hops.get_mut(node) {
            neighbour.hop.handle_background();
        }
        // Before the first measurement, the rate of the link is no guide.
        if self.measure.as_ref().is_some_and(|measure| !measure.is_unknown) {
            self.pacer.handle_background(now, wire);
        }
        self.count_sent(node, wire);
        self.note_measured(now, (node, seq), (wire, !last, true));
        Some(node)
    }

    /// Returns true if a frame is full, so that the link limits the rate and not the application.
    pub(super) fn is_full(&self, out: &FrameBuf) -> bool {
        self.room(out) < PIECE_MIN
    }
}
