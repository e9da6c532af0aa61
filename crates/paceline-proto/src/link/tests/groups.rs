//! Multicast: two receivers of one stream, in virtual time.

use super::*;
use crate::form::Rate;
use crate::ids::SubscriptionId;
use crate::link::GroupMembers;
use core::num::NonZeroU32;
use paceline_sched::LossTolerance;

const SAMPLE: usize = 15_000;
const EVERY: Duration = Duration::from_millis(33);

/// A sender with a stream to each of two receivers, which answer.
struct Segment {
    sender: Link,
    heard_by_sender: Vec<Receiver>,
    ends: Vec<End>,
    /// Returns `true` if receiver `.0` gets frame number `.2`, sent to the group if `.1`.
    arrives: fn(usize, bool, u64) -> bool,
    frames: u64,
    group_frames: u64,
}

fn members() -> GroupMembers {
    let all = [node(2), node(3)].into_iter().collect();
    [((publisher(), Form::FULL), all)].into_iter().collect()
}

impl Segment {
    fn new(contract: Option<Contract>, arrives: fn(usize, bool, u64) -> bool) -> Self {
        let capacity = Capacity::from_bits_per_s(10_000_000).ok();
        let spec = LinkSpec { capacity, carrier: Carrier::Datagrams, ..LinkSpec::default() };
        Self::with(spec, contract, arrives)
    }

    fn with(
        spec: LinkSpec,
        contract: Option<Contract>,
        arrives: fn(usize, bool, u64) -> bool,
    ) -> Self {
        let mut sender = Link::new(spec.clone());
        let mut ends = Vec::new();
        for id in [2, 3] {
            sender.add_hop(at(0), node(id), 1);
            ends.push(End::new(id, 1, spec.clone()));
            let stream = to(node(id), Kind::Data, contract);
            sender.open_stream(StreamIndex(u32::try_from(id).unwrap()), stream);
        }
        let heard_by_sender = vec![Receiver::new(), Receiver::new()];
        let mut segment =
            Self { sender, heard_by_sender, ends, arrives, frames: 0, group_frames: 0 };
        (0..100).for_each(|step| segment.run(at(step * 10)));
        segment
    }

    /// Exchanges everything that is due at `now`.
    fn run(&mut self, now: Instant) {
        for _ in 0..3 {
            self.sender.handle_timeout(now);
            let mut frame = FrameBuf::default();
            while let Some(hop) = self.sender.poll_frame(now, &mut frame) {
                self.frames += 1;
                self.group_frames += u64::from(frame.group.is_some());
                self.deliver(now, hop, &frame);
            }
            for (place, end) in self.ends.iter_mut().enumerate() {
                end.receiver.handle_timeout(now, |item| {
                    if let Received::Sample { sample, .. } = item {
                        end.got.push(sample.seq)
                    }
                });
                end.poll(now);
                for answer in end.sent.drain(..) {
                    let epoch = self.sender.epoch(end.me);
                    let heard =
                        self.heard_by_sender[place].handle_frame(now, epoch, answer, |_| {});
                    self.sender.handle_heard(now, end.me, &heard.unwrap());
                }
            }
        }
    }

    fn deliver(&mut self, now: Instant, hop: NodeId, frame: &FrameBuf) {
        let whole = frame.to_bytes();
        let group = frame.group.as_deref();
        let mut copies = vec![(hop, whole.clone())];
        for (other, own) in group.iter().flat_map(|group| &group.others) {
            let common = whole.slice(whole.len() - group.unwrap().common..);
            copies.push((*other, [own, &common[..]].concat().into()));
        }
        for (to, bytes) in copies {
            let place = usize::from(to == node(3));
            if (self.arrives)(place, group.is_some(), self.frames) {
                self.ends[place].hear(now, bytes);
            }
        }
    }

    /// Sends `samples` samples to both streams, one per period.
    fn publish(&mut self, samples: u64) {
        for seq in 0..samples {
            let now = at(1_000) + EVERY.mul_div(seq, 1);
            let sample = sample(now, seq, SAMPLE);
            for index in [2, 3].map(StreamIndex) {
                self.sender.handle_sample(now, index, sample.clone());
            }
            for millis in 0..33 {
                self.run(now + Duration::from_millis(millis));
            }
        }
        let end = at(1_000) + EVERY.mul_div(samples, 1);
        (0..300).for_each(|millis| self.run(end + Duration::from_millis(millis)));
    }

    fn counters(&self) -> [StreamCounters; 2] {
        [2, 3].map(|index| self.sender.counters(StreamIndex(index)).unwrap())
    }
}

fn promised() -> Option<Contract> {
    let loss = LossTolerance::NONE;
    let late = Late::Drop;
    Some(Contract { period: EVERY, deadline: EVERY, loss, late, jitter: Duration::ZERO })
}

/// Runs a network and returns its payload bytes on the wire, in samples.
fn samples_on_wire(segment: &mut Segment, samples: u64) -> u64 {
    let before = segment.sender.sent().1;
    segment.publish(samples);
    (segment.sender.sent().1 - before) / SAMPLE as u64
}

#[test]
fn a_group_gets_each_sample_once_and_every_receiver_gets_all() {
    let mut segment = Segment::new(promised(), |_, _, _| true);
    segment.sender.set_groups(members());
    let sent = samples_on_wire(&mut segment, 60);
    assert!((60..72).contains(&sent), "{sent}");
    let all: Vec<u64> = (0..60).collect();
    segment.ends.iter().for_each(|end| assert_eq!(end.got, all));
    assert!(segment.group_frames > 60 * 11);
    for counters in segment.counters() {
        assert_eq!((counters.sent, counters.late, counters.violations), (60, 0, 0));
    }
    let without = samples_on_wire(&mut Segment::new(promised(), |_, _, _| true), 60);
    assert!(without > sent * 17 / 10, "{without} without groups, {sent} with");
}

#[test]
fn lost_pieces_are_repaired_by_unicast_within_the_deadline() {
    // One frame in 16 is lost at one receiver, another at the other one.
    let mut segment = Segment::new(promised(), |place, grouped, frame| {
        !grouped || frame % 16 != 3 + 5 * place as u64
    });
    segment.sender.set_groups(members());
    segment.publish(60);
    let all: Vec<u64> = (0..60).collect();
    segment.ends.iter().for_each(|end| assert_eq!(end.got, all));
    assert!(segment.sender.repair_counters().repeated > 50);
    for counters in segment.counters() {
        assert_eq!((counters.late, counters.violations), (0, 0));
    }
}

#[test]
fn a_receiver_that_hears_no_group_gets_unicast_and_loses_nothing() {
    let mut segment = Segment::new(promised(), |place, grouped, _| !grouped || place == 0);
    segment.sender.set_groups(members());
    segment.publish(60);
    let all: Vec<u64> = (0..60).collect();
    segment.ends.iter().for_each(|end| assert_eq!(end.got, all));
    assert!(segment.group_frames < 20, "{}", segment.group_frames);
    assert!(segment.sender.hops().any(|(id, hop)| id == node(3) && hop.misses_groups()));
    for counters in segment.counters() {
        assert_eq!((counters.late, counters.violations), (0, 0));
    }
}

#[test]
fn a_stream_that_joins_late_shares_from_its_first_whole_sample_on() {
    let mut segment = Segment::new(None, |_, _, _| true);
    segment.sender.set_groups(members());
    let now = at(1_000);
    // The second stream lacks the first sample.
    segment.sender.handle_sample(now, StreamIndex(2), sample(now, 0, SAMPLE));
    (0..40).for_each(|millis| segment.run(now + Duration::from_millis(millis)));
    assert_eq!(segment.group_frames, 0);
    let now = at(1_050);
    let next = sample(now, 1, SAMPLE);
    for index in [2, 3].map(StreamIndex) {
        segment.sender.handle_sample(now, index, next.clone());
    }
    (0..40).for_each(|millis| segment.run(now + Duration::from_millis(millis)));
    assert!(segment.group_frames > 11);
    assert_eq!((&segment.ends[0].got[..], &segment.ends[1].got[..]), (&[0, 1][..], &[1][..]));
    segment.sender.close_stream(StreamIndex(3));
    let before = segment.group_frames;
    let now = at(1_100);
    segment.sender.handle_sample(now, StreamIndex(2), sample(now, 2, SAMPLE));
    (0..40).for_each(|millis| segment.run(now + Duration::from_millis(millis)));
    assert_eq!((segment.group_frames, segment.ends[0].got.len()), (before, 3));
}

#[test]
fn a_move_between_streams_of_a_hop_without_credit_delays_no_other_hop() {
    let mut segment = Segment::with(LinkSpec::default(), None, |_, _, _| true);
    // Nothing that is sent to node 2 arrives any more, so it returns no credit.
    segment.arrives = |place, _, _| place == 1;
    let now = at(1_000);
    let [old, new, other] = [4, 5, 3].map(StreamIndex);
    let thinned = Form { rate: Rate::every(NonZeroU32::MAX), ..Form::FULL };
    for (index, form) in [(old, Form::FULL), (new, thinned)] {
        let subscriptions = [SubscriptionId { node: node(3), index: 1 }].into();
        let contract = promised().map(|it| Contract { deadline: Duration::from_secs(5), ..it });
        let spec = StreamSpec { form, subscriptions, ..to(node(2), Kind::Data, contract) };
        assert!(segment.sender.open_stream(index, spec));
    }
    for seq in 0..100 {
        segment.sender.handle_sample(now, old, sample(now, seq, 100_000));
    }
    segment.sender.hand_over(old);
    segment.sender.handle_sample(now, new, sample(now, 100, 1_000));
    segment.run(now);
    assert!(segment.sender.counters(old).unwrap().sent < 100, "credit is used up");
    for seq in 0..5 {
        segment.sender.handle_sample(now, other, sample(now, seq, 1_000));
    }
    segment.run(now);
    assert_eq!(segment.ends[1].got, [0, 1, 2, 3, 4]);
}
