//! Transfer of samples from the streams' rings into the link, in bounded portions and round robin.
//!
//! A publisher that never pauses can fill its ring as fast as the link drains it. A thread that
//! drained the ring to its end would send nothing, and contracted streams would wait behind it.

use super::super::port::{Announcements, RingEnd};
use paceline_proto::DropReason;
use paceline_proto::link::Link;
use paceline_sched::Instant;
use paceline_sched::discipline::StreamIndex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The limit per iteration of samples plus visits to empty rings.
pub(super) const SAMPLES_PER_TURN: usize = 1_024;
/// The limit of samples of one stream per visit.
pub(super) const SAMPLES_PER_VISIT: usize = 64;

/// The link's end of a stream.
struct StreamEnd {
    ring: RingEnd,
    /// True if the stream is in `waiting` or `stuck`.
    listed: bool,
}

/// The result of a visit to a ring.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Visit {
    /// The ring is empty.
    Done,
    /// The ring has more samples, and the link has room.
    More,
    /// The ring has more samples, and the link has no room.
    Stuck,
}

/// The rings of a link's streams.
pub(super) struct Intake {
    streams: Vec<Option<StreamEnd>>,
    /// Streams with samples in their ring, in round-robin order.
    waiting: VecDeque<StreamIndex>,
    /// Streams for which the link had no room.
    stuck: VecDeque<StreamIndex>,
    /// Rings of closed streams whose source may still push a sample.
    closed: Vec<RingEnd>,
    announcements: Arc<Announcements>,
    /// The rest of the iteration's limit.
    left: usize,
}

impl Intake {
    pub(super) fn new(announcements: Arc<Announcements>) -> Self {
        let (streams, waiting, stuck) = (Vec::new(), VecDeque::new(), VecDeque::new());
        let closed = Vec::new();
        Self { streams, waiting, stuck, closed, announcements, left: SAMPLES_PER_TURN }
    }

    /// Resets the limit for a new iteration.
    pub(super) const fn begin_turn(&mut self) {
        self.left = SAMPLES_PER_TURN;
    }

    /// Returns true if rings still have samples for which the link has room.
    pub(super) fn has_more(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Adds the ring of a new stream. It may already have samples.
    pub(super) fn open(&mut self, index: StreamIndex, ring: RingEnd) {
        let place = index.0 as usize;
        if self.streams.len() <= place {
            self.streams.resize_with(place + 1, || None);
        }
        if let Some(slot) = self.streams.get_mut(place) {
            *slot = Some(StreamEnd { ring, listed: false });
        }
        self.list(index);
    }

    /// Removes a stream before it is closed: moves the samples that fit, and counts the others as
    /// dropped.
    pub(super) fn close(&mut self, now: Instant, index: StreamIndex, link: &mut Link) {
        let Some(mut end) = self.streams.get_mut(index.0 as usize).and_then(Option::take) else {
            return;
        };
        self.waiting.retain(|listed| *listed != index);
        self.stuck.retain(|listed| *listed != index);
        drain(&mut end.ring, now, index, link, usize::MAX);
        count_drops(&end.ring, index, link);
        let left = std::iter::from_fn(|| end.ring.consumer.pop().ok()).count() as u64;
        link.handle_dropped(index, DropReason::NoRoute, left);
        self.closed.push(end.ring);
    }

    /// Counts samples that their source pushed while the stream was being closed.
    fn count_closed(&mut self, link: &mut Link) {
        self.closed.retain_mut(|ring| {
            // The order matters: samples pushed before the source's end are visible after it.
            let over = ring.consumer.is_abandoned();
            let left = std::iter::from_fn(|| ring.consumer.pop().ok()).count() as u64;
            link.handle_dropped_late(DropReason::NoRoute, left);
            let drops = ring.shared.drops.take();
            drops.iter().for_each(|(reason, samples)| link.handle_dropped_late(reason, samples));
            !over
        });
    }

    /// Returns true if the ring of the stream is empty or unknown.
    pub(super) fn is_empty(&self, index: StreamIndex) -> bool {
        let end = self.streams.get(index.0 as usize).and_then(Option::as_ref);
        end.is_none_or(|end| end.ring.consumer.is_empty())
    }

    /// Returns true if the ring is empty and its source has ended, or if the stream is unknown.
    pub(super) fn is_spent(&self, index: StreamIndex) -> bool {
        let end = self.streams.get(index.0 as usize).and_then(Option::as_ref);
        // The order matters: samples pushed before the source's end are visible after
        // `is_abandoned`.
        end.is_none_or(|end| end.ring.consumer.is_abandoned() && end.ring.consumer.is_empty())
    }

    /// Counts samples that did not fit into their ring.
    pub(super) fn count_drops(&mut self, link: &mut Link) {
        self.count_closed(link);
        for (place, end) in self.streams.iter().enumerate() {
            let index = StreamIndex(u32::try_from(place).unwrap_or(u32::MAX));
            end.iter().for_each(|end| count_drops(&end.ring, index, link));
        }
    }

    /// Moves samples from rings to the link, within its room and the limit of the iteration.
    pub(super) fn take(&mut self, now: Instant, link: &mut Link) {
        // Stuck streams have waited longest and are first, but they leave half of the limit to the
        // others.
        for _ in 0..self.stuck.len().min(self.left / 2) {
            if let Some(index) = self.stuck.pop_front() {
                self.visit(now, index, link);
            }
        }
        while let Some(index) = self.announcements.ready.pop() {
            self.list(index);
        }
        while self.left > 0
            && let Some(index) = self.waiting.pop_front()
        {
            self.visit(now, index, link);
        }
    }

    fn list(&mut self, index: StreamIndex) {
        let Some(Some(end)) = self.streams.get_mut(index.0 as usize) else { return };
        if !std::mem::replace(&mut end.listed, true) {
            self.waiting.push_back(index);
        }
    }

    /// Visits a stream that was taken from its list.
    fn visit(&mut self, now: Instant, index: StreamIndex, link: &mut Link) {
        let Some(Some(end)) = self.streams.get_mut(index.0 as usize) else { return };
        let most = self.left.min(SAMPLES_PER_VISIT);
        let (moved, visit) = drain(&mut end.ring, now, index, link, most);
        self.left = self.left.saturating_sub(moved.max(1));
        end.listed = visit != Visit::Done;
        if moved > 0 && end.ring.has_much_room() {
            self.announcements.room.notify(usize::MAX);
        }
        match visit {
            Visit::Done => {}
            Visit::More => self.waiting.push_back(index),
            Visit::Stuck => self.stuck.push_back(index),
        }
    }
}

/// Moves at most `most` samples of a ring to the link; returns their number and the state of the
/// ring.
fn drain(
    ring: &mut RingEnd,
    now: Instant,
    index: StreamIndex,
    link: &mut Link,
    most: usize,
) -> (usize, Visit) {
    ring.shared.withdraw();
    ring.shared.queued.store(link.queued(index), Ordering::Relaxed);
    let mut moved = 0;
    loop {
        if ring.consumer.is_empty() {
            return (moved, Visit::Done);
        }
        if !link.has_room(now, index) {
            return (moved, Visit::Stuck);
        }
        if moved >= most {
            return (moved, Visit::More);
        }
        let Ok((since, sample)) = ring.consumer.pop() else { return (moved, Visit::Done) };
        link.handle_waiting(now, since, index, sample);
        moved += 1;
    }
}

/// Counts samples that the source could not push into the ring.
fn count_drops(ring: &RingEnd, index: StreamIndex, link: &mut Link) {
    let drops = ring.shared.drops.take();
    drops.iter().for_each(|(reason, samples)| link.handle_dropped(index, reason, samples));
}

#[cfg(test)]
mod tests {
    use super::super::super::port::{Port, RING_SAMPLES, ring};
    use super::super::super::wake::Waker;
    use super::*;
    use crossbeam_queue::ArrayQueue;
    use event_listener::Event;
    use paceline_proto::link::{LinkSpec, StreamSpec};
    use paceline_proto::{Encoding, Form, Kind, NodeId, PublisherId, RawSample, Timestamp};
    use paceline_sched::Duration;

    const STREAMS: u32 = 8;

    fn sample(seq: u64) -> RawSample {
        RawSample {
            seq,
            captured: Timestamp::default(),
            shift: 0,
            published_at: Instant::ZERO,
            doubt: Duration::ZERO,
            kind: Kind::Data,
            encoding: Encoding::Bytes,
            payload: vec![0; 64].into(),
            attachment: None,
        }
    }

    fn announcements() -> Arc<Announcements> {
        let (ready, waker) = (ArrayQueue::new(STREAMS as usize), Arc::new(Waker::default()));
        Arc::new(Announcements { ready, waker, room: Event::new() })
    }

    fn offered(link: &Link, index: u32) -> u64 {
        link.counters(StreamIndex(index)).unwrap().offered
    }

    /// Opens streams on a link whose hop is down, which accepts and counts all samples.
    fn open(intake: &mut Intake, link: &mut Link) -> Vec<Port> {
        let ports = (0..STREAMS).map(|index| {
            let publisher = PublisherId { node: NodeId(1), index };
            let spec = StreamSpec::best_effort(publisher, NodeId(2), Form::FULL, Kind::Data);
            assert!(link.open_stream(StreamIndex(index), spec));
            let (port, end) = ring(StreamIndex(index), intake.announcements.clone());
            intake.open(StreamIndex(index), end);
            Port::Ring(port)
        });
        ports.collect()
    }

    #[test]
    fn an_iteration_reads_a_portion_of_every_ring_and_reports_the_rest() {
        let mut link = Link::new(LinkSpec::default());
        let mut intake = Intake::new(announcements());
        let mut ports = open(&mut intake, &mut link);
        let now = Instant::ZERO + Duration::from_millis(1);
        for port in &mut ports {
            for seq in 0..RING_SAMPLES as u64 {
                assert!(port.push(now, sample(seq)));
            }
        }
        let share = (SAMPLES_PER_TURN as u64) / u64::from(STREAMS);
        for turn in 1..=4 {
            intake.begin_turn();
            intake.take(now, &mut link);
            intake.take(now, &mut link);
            for index in 0..STREAMS {
                assert_eq!(offered(&link, index), turn * share, "turn {turn}, stream {index}");
            }
            assert_eq!(intake.has_more(), turn < 4, "turn {turn}");
        }
        assert!((0..STREAMS).all(|index| intake.is_empty(StreamIndex(index))));
    }

    #[test]
    fn a_continuous_publisher_does_not_delay_others() {
        let mut link = Link::new(LinkSpec::default());
        let mut intake = Intake::new(announcements());
        let mut ports = open(&mut intake, &mut link);
        let (flood, others) = ports.split_first_mut().unwrap();
        let now = Instant::ZERO + Duration::from_millis(1);
        for turn in 0..100 {
            while flood.push(now, sample(turn)) {}
            others.iter_mut().for_each(|port| assert!(port.push(now, sample(turn))));
            intake.begin_turn();
            intake.take(now, &mut link);
            (1..STREAMS).for_each(|index| assert_eq!(offered(&link, index), turn + 1));
        }
        intake.close(now, StreamIndex(0), &mut link);
        assert!(intake.is_empty(StreamIndex(0)));
    }

    #[test]
    fn samples_pushed_after_the_close_are_counted_until_the_source_ends() {
        let mut link = Link::new(LinkSpec::default());
        let mut intake = Intake::new(announcements());
        let mut ports = open(&mut intake, &mut link);
        let now = Instant::ZERO + Duration::from_millis(1);
        intake.close(now, StreamIndex(0), &mut link);
        assert!(link.close_stream(StreamIndex(0)).is_some());
        assert!(ports[0].push(now, sample(0)));
        ports[0].count(DropReason::LinkDown, 2);
        intake.count_drops(&mut link);
        let closed = |link: &Link| (link.closed().offered, link.closed().drops);
        let (offered, drops) = closed(&link);
        assert_eq!((offered, drops.of(DropReason::NoRoute)), (3, 1));
        assert_eq!(drops.of(DropReason::LinkDown), 2);
        assert!(ports[0].push(now, sample(1)));
        drop(ports);
        intake.count_drops(&mut link);
        assert_eq!(closed(&link).0, 4);
        assert!(intake.closed.is_empty());
    }
}
