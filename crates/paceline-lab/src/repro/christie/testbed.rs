//! The paper's testbed in virtual time: a video, a file transfer and background traffic through one
//! router, and the acknowledgements of video frames back through it.
//!
//! A frame's latency is the time of the paper's blocking send call, until the acknowledgement is back. It
//! includes a constant time in the end systems, for which the paper gives no figure. Each sender has its
//! ring alone.

use super::film::FRAMES;
use super::paper::{BUFFERS, FRAMES_PER_S, PACKET, RING, RouterCosts, TimerBucket};
use super::router::{Observed, Packet, Priority, Router};
use crate::bench::stats::{self, float};
use paceline_admit::cpu::BestEffortRegulator;
use paceline_sched::capacity::{Capacity, ZeroCapacity};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::police::{Combined, Conformance, Constraint, ConstraintError, PolicedUnit};
use paceline_sched::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

const VIDEO: StreamIndex = StreamIndex(0);
const ACKNOWLEDGEMENTS: StreamIndex = StreamIndex(1);
const FILE: StreamIndex = StreamIndex(2);
const BACKGROUND: StreamIndex = StreamIndex(3);
const PRIORITIES: [Priority; 4] = [Priority::High, Priority::High, Priority::High, Priority::Low];
/// The length of an acknowledgement: the smallest packet that the paper measured, in bytes.
const ACKNOWLEDGEMENT: u64 = 48;
/// The length of a control packet, likewise.
const CONTROL: u64 = 48;
/// The frames that wait for the sender; a newer one overwrites the last (§4.3.1.2). The text states no number, so this is
/// the receiver's.
const QUEUE: u64 = 4;

/// A sender's policer; packets that do not conform wait.
#[derive(Clone, Debug)]
pub(super) enum Gate {
    /// The product's policers.
    Exact(Combined),
    /// The paper's counter with a timer.
    Timer(TimerBucket),
}

impl Gate {
    /// Charges a packet of `bytes` at `now` if it conforms.
    pub(super) fn police(&mut self, now: Instant, bytes: u64) -> Conformance {
        match self {
            Self::Exact(policers) => policers.police(now, bytes),
            Self::Timer(bucket) => bucket.police(now),
        }
    }
}

/// Returns the product's policers of a stream with this burst in bytes and rate in bits per second.
/// They count bytes and also packets, because short packets cost the router nearly as much as long
/// ones.
pub(super) fn exact_gate(burst: u64, rate: u64) -> Result<Gate, ConstraintError> {
    let bytes = Constraint::leaky(PolicedUnit::Bytes, burst, rate)?;
    let packets_per_s = rate.div_ceil(PACKET * 8);
    let packets = Constraint::leaky(PolicedUnit::Packets, burst / PACKET, packets_per_s)?;
    Ok(Gate::Exact(Combined::new(&[bytes, packets])?))
}

/// The video's sender: a camera, a queue, and a blocking call that sends a frame.
#[derive(Clone, Debug)]
pub(super) struct Video {
    /// The policer of all its packets.
    pub(super) gate: Gate,
    /// The lengths of its frames in bytes, repeated.
    pub(super) frames: &'static [u64],
    /// True if each frame is preceded by a control packet, which the policer charges.
    pub(super) has_control: bool,
    /// The time of each frame in the end systems.
    pub(super) end_systems: Duration,
    /// The sender stops this often and for this time.
    pub(super) pauses: Option<(Duration, Duration)>,
}

impl Video {
    /// Returns the paper's video with this policer and this time of each frame in the end systems.
    pub(super) const fn of_paper(gate: Gate, end_systems: Duration) -> Self {
        Self { gate, frames: &FRAMES, has_control: true, end_systems, pauses: None }
    }

    /// Returns the end of the pause that contains `at`.
    fn pause(&self, at: Instant) -> Option<Instant> {
        let (every, length) = self.pauses?;
        let number = at.as_nanos() / every.as_nanos().max(1);
        let end = Instant::ZERO + every.mul_div(number, 1).saturating_add(length);
        (number > 0 && at < end).then_some(end)
    }
}

/// The place at which the product's regulator of best effort drops packets.
#[derive(Clone, Debug)]
pub(super) enum Regulated {
    /// Nowhere.
    Not,
    /// In the sender, before they cost the router anything.
    AtSender(Arc<BestEffortRegulator>),
    /// In the router, after it has received them.
    AtRouter(Arc<BestEffortRegulator>),
}

/// Background traffic of equal packets at equal intervals.
#[derive(Clone, Debug)]
pub(super) struct Background {
    pub(super) bytes: u64,
    pub(super) packets_per_s: u64,
    pub(super) regulated: Regulated,
}

/// The parameters of a run.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) costs: RouterCosts,
    /// The buffers of each priority at the router, in packets.
    pub(super) buffers: usize,
    pub(super) video: Option<Video>,
    /// The policer of a file transfer that always has packets to send.
    pub(super) file: Option<Gate>,
    pub(super) background: Option<Background>,
    pub(super) time: Duration,
}

impl Setup {
    /// Returns the setup of a video without other traffic.
    pub(super) fn alone(
        costs: RouterCosts,
        video: Video,
        time: Duration,
    ) -> Result<Self, std::num::TryFromIntError> {
        let buffers = usize::try_from(BUFFERS)?;
        Ok(Self { costs, buffers, video: Some(video), file: None, background: None, time })
    }
}

/// The results of a run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Outcome {
    /// The latencies of the frames.
    pub(super) latencies: Vec<Duration>,
    /// The instants at which frames were acknowledged.
    pub(super) done: Vec<Instant>,
    /// The number of frames that the full queue of the sender lost.
    pub(super) lost: u64,
    pub(super) router: Observed,
    /// The number of forwarded packets of the file transfer.
    pub(super) file_packets: u64,
    /// The number of background packets that reached the router.
    pub(super) background_packets: u64,
}

impl Outcome {
    /// Returns the average latency of a frame in milliseconds; NaN without frames.
    pub(super) fn average_millis(&self) -> f64 {
        let sum = self.latencies.iter().map(|latency| latency.as_nanos()).sum();
        float(sum) / 1e6 / stats::count(self.latencies.len())
    }

    /// Returns the longest latency of a frame in milliseconds; NaN without frames.
    pub(super) fn longest_millis(&self) -> f64 {
        stats::millis(self.latencies.iter().max().map(|latency| latency.as_nanos()))
    }
}

/// An event, in the order of processing at the same instant.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Event {
    /// A packet is completely at the router: stream, bytes, last.
    Arrives(u32, u64, bool),
    /// An acknowledgement is back at the video's sender.
    Acknowledged,
    /// The camera has a new frame.
    Frame,
    /// A sender may try its next packet.
    Send(u32),
    /// The background sender has its next packet.
    Background,
}

struct Testbed {
    setup: Setup,
    router: Router,
    ring: Capacity,
    events: BinaryHeap<Reverse<(Instant, Event)>>,
    /// The number of frames that the camera has made, and of those that wait for the sender.
    made: u64,
    waiting: u64,
    /// The number of frames sent so far, the unsent bytes of the present one, and whether its control packet is unsent.
    sent: usize,
    unsent: u64,
    owes_control: bool,
    /// The instant at which the present frame's send call began.
    began: Option<Instant>,
    outcome: Outcome,
}

/// Runs a setup for its time.
pub(super) fn run(setup: Setup) -> Result<Outcome, ZeroCapacity> {
    let ring = Capacity::from_bits_per_s(RING)?;
    let mut router = Router::new(setup.costs, setup.buffers, &PRIORITIES);
    if let Some(Background { regulated: Regulated::AtRouter(regulator), .. }) = &setup.background {
        router.regulator = Some(regulator.clone());
    }
    let mut events = BinaryHeap::new();
    let start = |there: bool, event| there.then_some(Reverse((Instant::ZERO, event)));
    events.extend(start(setup.video.is_some(), Event::Frame));
    events.extend(start(setup.file.is_some(), Event::Send(FILE.0)));
    events.extend(start(setup.background.is_some(), Event::Background));
    let mut testbed = Testbed {
        setup,
        router,
        ring,
        events,
        made: 0,
        waiting: 0,
        sent: 0,
        unsent: 0,
        owes_control: false,
        began: None,
        outcome: Outcome::default(),
    };
    testbed.run();
    testbed.outcome.router = testbed.router.observed;
    Ok(testbed.outcome)
}

impl Testbed {
    fn run(&mut self) {
        let end = Instant::ZERO + self.setup.time;
        loop {
            let event = self.events.peek().map(|Reverse((at, _))| *at);
            let Some(now) = [self.router.next(), event].into_iter().flatten().min() else { return };
            if now >= end {
                return;
            }
            if let Some(packet) = self.router.work(now) {
                self.forwarded(now, packet);
            }
            while let Some(&Reverse((at, event))) = self.events.peek()
                && at <= now
            {
                self.events.pop();
                self.handle(now, event);
            }
        }
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.events.push(Reverse((at, event)));
    }

    fn handle(&mut self, now: Instant, event: Event) {
        match event {
            Event::Arrives(stream, bytes, last) => {
                let stream = StreamIndex(stream);
                self.outcome.background_packets += u64::from(stream == BACKGROUND);
                self.router.arrive(Packet { stream, bytes, arrived: now, last });
            }
            Event::Acknowledged => {
                let Some(began) = self.began.take() else { return };
                self.outcome.latencies.push(now.since(began));
                self.outcome.done.push(now);
                self.next_frame(now);
            }
            Event::Frame => {
                self.made += 1;
                if self.waiting < QUEUE {
                    self.waiting += 1;
                } else {
                    self.outcome.lost += 1;
                }
                let at = Duration::from_secs(1).mul_div(self.made, FRAMES_PER_S);
                self.schedule(Instant::ZERO + at, Event::Frame);
                self.next_frame(now);
            }
            Event::Send(stream) if stream == FILE.0 => self.send_file(now),
            Event::Send(_) => self.send_video(now),
            Event::Background => self.send_background(now),
        }
    }

    /// Begins the next frame if there is one and the last is acknowledged.
    fn next_frame(&mut self, now: Instant) {
        let Some(video) = &self.setup.video else { return };
        if self.began.is_some() || self.waiting == 0 {
            return;
        }
        let bytes = video.frames.get(self.sent % video.frames.len().max(1)).copied();
        let first = now + video.end_systems;
        self.owes_control = video.has_control;
        self.waiting -= 1;
        self.sent += 1;
        (self.began, self.unsent) = (Some(now), bytes.unwrap_or_default());
        self.schedule(first, Event::Send(VIDEO.0));
    }

    fn send_video(&mut self, now: Instant) {
        let Some(video) = &mut self.setup.video else { return };
        let bytes = if self.owes_control { CONTROL } else { self.unsent.min(PACKET) };
        if bytes == 0 {
            return;
        }
        if let Some(end) = video.pause(now) {
            self.schedule(end, Event::Send(VIDEO.0));
            return;
        }
        let result = video.gate.police(now, bytes);
        let is_control = self.owes_control;
        if result == Conformance::Conforms {
            self.unsent -= if is_control { 0 } else { bytes };
            self.owes_control = false;
        }
        let last = self.unsent == 0 && !is_control;
        self.sent(now, VIDEO, (bytes, last), result);
    }

    fn send_file(&mut self, now: Instant) {
        let Some(gate) = &mut self.setup.file else { return };
        let result = gate.police(now, PACKET);
        self.sent(now, FILE, (PACKET, false), result);
    }

    /// Puts a conforming packet on the ring, and schedules the next attempt of its sender.
    fn sent(&mut self, now: Instant, stream: StreamIndex, packet: (u64, bool), it: Conformance) {
        match it {
            Conformance::Conforms => {
                let (bytes, last) = packet;
                let at = now + self.ring.time_for(bytes);
                self.schedule(at, Event::Arrives(stream.0, bytes, last));
                self.schedule(at, Event::Send(stream.0));
            }
            Conformance::At(at) => self.schedule(at, Event::Send(stream.0)),
            Conformance::Never => {}
        }
    }

    fn send_background(&mut self, now: Instant) {
        let Some(Background { bytes, packets_per_s, regulated }) = &self.setup.background else {
            return;
        };
        let (bytes, next) = (*bytes, now + Duration::from_secs(1).mul_div(1, *packets_per_s));
        let passes = match regulated {
            Regulated::AtSender(regulator) => regulator.take(now, bytes),
            Regulated::Not | Regulated::AtRouter(_) => true,
        };
        if passes {
            let at = now + self.ring.time_for(bytes);
            self.schedule(at, Event::Arrives(BACKGROUND.0, bytes, false));
        }
        self.schedule(next, Event::Background);
    }

    /// Delivers a packet that leaves the router.
    fn forwarded(&mut self, now: Instant, packet: Packet) {
        let there = now + self.ring.time_for(packet.bytes);
        if packet.stream == ACKNOWLEDGEMENTS {
            self.schedule(there, Event::Acknowledged);
        } else if packet.stream == VIDEO && packet.last {
            let back = there + self.ring.time_for(ACKNOWLEDGEMENT);
            self.schedule(back, Event::Arrives(ACKNOWLEDGEMENTS.0, ACKNOWLEDGEMENT, true));
        }
        self.outcome.file_packets += u64::from(packet.stream == FILE);
    }
}

#[cfg(test)]
mod tests {
    use super::super::paper::{FRAME, VIDEO_BURST, VIDEO_RATE};
    use super::*;

    const LARGEST: [u64; 1] = [FRAME];

    fn largest(gate: Gate) -> Video {
        let end_systems = Duration::ZERO;
        Video { gate, frames: &LARGEST, has_control: false, end_systems, pauses: None }
    }

    #[test]
    fn the_latency_of_a_frame_is_the_sum_of_its_path() {
        let costs = RouterCosts::of_text().unwrap();
        let setup = Setup {
            costs,
            buffers: 32,
            video: Some(largest(exact_gate(VIDEO_BURST, VIDEO_RATE).unwrap())),
            file: None,
            background: None,
            time: Duration::from_secs(1),
        };
        let outcome = run(setup).unwrap();
        assert_eq!(outcome.latencies.len(), 30);
        let ring = |bytes| Capacity::from_bits_per_s(RING).unwrap().time_for(bytes);
        let router = |bytes| costs.receive(bytes).saturating_add(costs.forward(bytes));
        // The router is the bottleneck after the first packet, and the burst covers a frame.
        let (full, rest) = (router(PACKET), router(FRAME % PACKET));
        let path = [ring(PACKET), full, full, full, full, rest, ring(FRAME % PACKET)];
        let back = [ring(48), router(48), ring(48)];
        let sum: u64 = path.iter().chain(&back).map(|part| part.as_nanos()).sum();
        assert!(outcome.latencies.iter().all(|latency| latency.as_nanos() == sum));
        assert_eq!(outcome.router.deepest, 4);
    }

    #[test]
    fn control_packets_take_credit_and_a_full_queue_loses_frames() {
        let sent = |has_control, pauses| {
            let timer = Gate::Timer(TimerBucket::new(VIDEO_BURST, 6_000_000).unwrap());
            let video = Video { has_control, pauses, ..largest(timer) };
            let time = Duration::from_secs(20);
            let costs = RouterCosts::of_text().unwrap();
            let (video, file, background) = (Some(video), None, None);
            let outcome = run(Setup { costs, buffers: 32, video, file, background, time }).unwrap();
            (outcome.latencies.len(), outcome.lost)
        };
        // One credit per 6 ms: five packets per frame pass at 30 frames per second, and six do not.
        assert_eq!(sent(false, None), (600, 0));
        let (passed, lost) = sent(true, None);
        assert!((540..=560).contains(&passed) && lost > 30, "{passed} {lost}");
        // A pause longer than the queue loses frames too.
        let pauses = Some((Duration::from_secs(5), Duration::from_millis(300)));
        assert!(sent(false, pauses).1 >= 9);
    }
}
