//! Browsers in virtual time: a serving node, a hub, and browsers that only acknowledge.

use super::frame;
use super::*;
use bytes::Bytes;
use paceline_node::{NewSample, Node, NodeOutput};
use paceline_proto::Carrier;
use paceline_proto::capacity::LinkCapacity;
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::link::LinkSpec;
use paceline_proto::{NodeId, Pattern, Tag};
use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;

const SERVING: NodeId = NodeId(1);
const GATE: NodeId = NodeId(2);
const BROWSER: NodeId = NodeId(3);

/// The path of a browser: messages in order at a capacity, and the time of each way.
struct Path {
    bits_per_s: u64,
    delay: Duration,
    free_at: Instant,
    /// Messages on the way, and their arrival.
    down: VecDeque<(Instant, u32)>,
    /// Acknowledgements on the way, and their arrival.
    up: VecDeque<(Instant, u32)>,
}

struct World {
    now: Instant,
    serving: Node,
    link: usize,
    hub: BrowserHub,
    session: SessionId,
    path: Path,
    /// Everything that the browser got.
    events: Vec<BrowserEvent>,
    readers: Vec<StreamReaders>,
    messages: Vec<Bytes>,
    ready_at: Option<Instant>,
}

impl World {
    fn new(bits_per_s: u64, delay: Duration) -> Self {
        let now = Instant::from_millis(10_000);
        let mut serving = Node::new(SERVING, "robot");
        let spec = LinkSpec { carrier: Carrier::Local, ..LinkSpec::default() };
        let link = serving.add_link("host", spec);
        serving.handle_neighbour(now, link, GATE);
        let mut hub = BrowserHub::new(GATE, "robot browsers");
        hub.connect(now, SERVING);
        let auto = LinkCapacity::Measured { min: None, max: None };
        let session = hub.open(now, (BROWSER, "browser"), (auto, Carrier::Ordered)).unwrap();
        let path =
            Path { bits_per_s, delay, free_at: now, down: VecDeque::new(), up: VecDeque::new() };
        Self {
            now,
            serving,
            link,
            hub,
            session,
            path,
            events: Vec::new(),
            readers: Vec::new(),
            messages: Vec::new(),
            ready_at: None,
        }
    }

    fn exchange(&mut self) {
        let now = self.now;
        loop {
            let mut moved = false;
            while let Some(output) = self.serving.poll_output(now) {
                if let NodeOutput::Frame { frame, .. } = output {
                    self.hub.handle_frame(now, frame);
                    moved = true;
                }
            }
            while let Some(output) = self.hub.poll_output(now) {
                match output {
                    HubOutput::Frame(frame) => {
                        self.serving.handle_frame(now, self.link, GATE, frame);
                        moved = true;
                    }
                    HubOutput::Message(_, bytes) => {
                        let bits = (bytes.len() as u64 + 60) * 8;
                        let time =
                            Duration::from_nanos(bits * 1_000_000_000 / self.path.bits_per_s);
                        self.path.free_at = self.path.free_at.max(now) + time;
                        let number = u32::from_le_bytes(*bytes.first_chunk().unwrap());
                        self.path.down.push_back((self.path.free_at + self.path.delay, number));
                        self.messages.push(bytes);
                    }
                    HubOutput::Readers(_, readers) => self.readers.push(readers),
                    HubOutput::Event(_, event) => {
                        if !matches!(*event, BrowserEvent::Link(_)) {
                            self.events.push(*event);
                        }
                    }
                    HubOutput::Ready(_) => self.ready_at = Some(now),
                    HubOutput::Stalled(_) => panic!("it reads"),
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn run(&mut self, time: Duration, mut each: impl FnMut(&mut Self)) {
        let end = self.now + time;
        while self.now < end {
            self.exchange();
            each(self);
            let next = self.serving.poll_timeout().at.min(self.hub.poll_timeout());
            let next = self.path.down.front().map_or(next, |(at, _)| next.min(*at));
            let next = self.path.up.front().map_or(next, |(at, _)| next.min(*at));
            self.now = next
                .clamp(self.now + Duration::from_micros(10), self.now + Duration::from_millis(1));
            while self.path.down.front().is_some_and(|(at, _)| *at <= self.now) {
                let (at, number) = self.path.down.pop_front().unwrap();
                self.path.up.push_back((at + self.path.delay, number));
            }
            while self.path.up.front().is_some_and(|(at, _)| *at <= self.now) {
                let (_, number) = self.path.up.pop_front().unwrap();
                self.hub.handle_acks(self.now, self.session, &[number]);
            }
        }
    }
}

fn wants(pattern: &str) -> SubscriptionSpec {
    SubscriptionSpec::all_of(Pattern::new(pattern).unwrap())
}

#[test]
fn a_browser_is_a_node_with_a_measured_link() {
    let mut world = World::new(5_000_000, Duration::from_millis(10));
    let started = world.now;
    let pose =
        world.serving.publish(world.now, PublisherSpec::new(Tag::new("robot/pose").unwrap()));
    world.run(Duration::from_secs(3), |_| {});
    let ready = world.ready_at.unwrap().since(started);
    assert!(ready < Duration::from_secs(2), "measured after {ready}");
    world.hub.subscribe(world.now, world.session, (7, wants("robot/*"))).unwrap();
    world.run(Duration::from_secs(1), |_| {});
    assert!(
        matches!(&world.events[..], [.., BrowserEvent::Publishers(7, known)] if known[0].1 == "robot/pose"),
        "{:?}",
        world.events
    );
    world.messages.clear();
    for _ in 0..10 {
        world.serving.handle_put(world.now, pose, NewSample::data("x=1"));
        world.run(Duration::from_millis(20), |_| {});
    }
    world.run(Duration::from_secs(2), |_| {});
    assert_eq!(world.readers.last().unwrap().subscriptions, [7], "{:?}", world.readers);
    let samples = world.messages.iter().filter(|bytes| bytes.windows(3).any(|part| part == b"x=1"));
    assert_eq!(samples.count(), 10);
}

#[test]
fn a_contract_beyond_the_path_of_the_browser_is_refused_with_an_offer() {
    let mut world = World::new(1_000_000, Duration::from_millis(10));
    let spec = PublisherSpec {
        period: Some(Duration::from_millis(20)),
        bytes_max: Some(10_000),
        ..PublisherSpec::new(Tag::new("robot/scan").unwrap())
    };
    let scan = world.serving.publish(world.now, spec);
    world.run(Duration::from_secs(3), |_| {});
    assert!(world.ready_at.is_some());
    let within =
        |ms| SubscriptionSpec { within: Some(Duration::from_millis(ms)), ..wants("robot/scan") };
    world.hub.subscribe(world.now, world.session, (1, within(300))).unwrap();
    let put = |world: &mut World| {
        world.serving.handle_put(world.now, scan, NewSample::data(vec![7; 10_000]));
    };
    world.run(Duration::from_secs(1), |_| {});
    let refusal = world.events.iter().find_map(|event| {
        if let BrowserEvent::Refused(1, refusal) = event { Some(refusal.clone()) } else { None }
    });
    let refusal = refusal.unwrap_or_else(|| panic!("no refusal: {:?}", world.events));
    assert!(refusal.to_string().contains("browser-1"), "{refusal}");
    put(&mut world);
    // Four of 50 samples per second fit.
    let rate = paceline_proto::Rate {
        max_millihertz: std::num::NonZeroU32::new(4_000),
        ..paceline_proto::Rate::ALL
    };
    let mut fits = within(500);
    fits.form.rate = rate;
    world.hub.subscribe(world.now, world.session, (2, fits)).unwrap();
    world.run(Duration::from_secs(2), |_| {});
    let granted = world.events.iter().any(|event| matches!(event, BrowserEvent::Granted(2, _)));
    assert!(granted, "{:?}", world.events);
}

#[test]
fn samples_of_a_browser_have_the_age_of_their_way() {
    let mut world = World::new(5_000_000, Duration::from_millis(10));
    world.run(Duration::from_secs(1), |_| {});
    let steer = world.serving.subscribe(world.now, wants("robot/steer"), 16);
    let spec = PublisherSpec::new(Tag::new("robot/steer").unwrap());
    world.hub.publish(world.now, world.session, (4, spec.clone())).unwrap();
    assert!(world.hub.publish(world.now, world.session, (4, spec)).is_err());
    world.run(Duration::from_secs(1), |_| {});
    let mut bytes = vec![2, 4, 0, 0, 0];
    let published = frame::micros(world.now) - 30_000.0;
    for time in [published, 5_000.0, 1.7e15] {
        bytes.extend_from_slice(&time.to_le_bytes());
    }
    bytes.push(0);
    bytes.extend_from_slice(b"left");
    let Some(frame::InMessage::Sample(sample)) = frame::read(world.now, bytes.clone().into())
    else {
        panic!("no sample");
    };
    assert_eq!((sample.age, sample.bound), (Duration::from_millis(30), Duration::from_millis(5)));
    assert!(world.hub.handle_sample(world.now, world.session, sample));
    world.run(Duration::from_millis(100), |_| {});
    let taken = world.serving.read(world.now, steer).unwrap().sample;
    assert_eq!(&taken.payload[..], b"left");
    assert!((30..230).contains(&taken.age.as_millis()), "{:?}", taken.age);
    for end in 0..bytes.len() - 4 {
        assert!(frame::read(world.now, Bytes::copy_from_slice(&bytes[..end])).is_none(), "{end}");
    }
}

#[test]
fn a_browser_that_leaves_makes_room_for_another() {
    let mut world = World::new(5_000_000, Duration::from_millis(1));
    world.run(Duration::from_secs(1), |_| {});
    world.hub.subscribe(world.now, world.session, (1, wants("**"))).unwrap();
    world.run(Duration::from_secs(1), |_| {});
    for round in 0..100 {
        world.hub.close(world.now, world.session);
        let auto = LinkCapacity::Measured { min: None, max: None };
        let id = NodeId(100 + round);
        world.session = world.hub.open(world.now, (id, "next"), (auto, Carrier::Ordered)).unwrap();
        world.path.down.clear();
        world.path.up.clear();
        world.run(Duration::from_millis(100), |_| {});
        world.hub.subscribe(world.now, world.session, (1, wants("**"))).unwrap();
    }
    assert_eq!(world.hub.len(), 1);
    // Until the network knows that all others have gone.
    world.run(Duration::from_secs(10), |_| {});
    let known = world.serving.control().nodes().count();
    assert_eq!(known, 3, "the serving node, the gate and the last browser");
}

#[test]
fn a_page_that_sleeps_for_a_minute_continues_when_it_wakes() {
    let mut world = World::new(5_000_000, Duration::from_millis(5));
    let pose =
        world.serving.publish(world.now, PublisherSpec::new(Tag::new("robot/pose").unwrap()));
    world.run(Duration::from_secs(2), |_| {});
    world.hub.subscribe(world.now, world.session, (1, wants("robot/*"))).unwrap();
    world.run(Duration::from_secs(1), |_| {});
    // Nothing is acknowledged, and samples go on.
    let asleep = world.messages.len();
    for _ in 0..600 {
        world.path.down.clear();
        world.path.up.clear();
        world.serving.handle_put(world.now, pose, NewSample::data(vec![7; 1_000]));
        world.run(Duration::from_millis(100), |world| world.path.down.clear());
    }
    let sent = world.messages[asleep..].iter().map(Bytes::len).sum::<usize>();
    assert!(sent < 600_000, "{sent} bytes for a page that sleeps");
    world.hub.handle_alive(world.now, world.session);
    let woke = world.now;
    let is_up = |world: &World| world.serving.control().nodes().count() == 3;
    while !is_up(&world) && world.now.since(woke) < Duration::from_secs(20) {
        world.run(Duration::from_millis(10), |_| {});
    }
    let took = world.now.since(woke);
    assert!(took < Duration::from_millis(500), "its node is known again after {took}");
    world.run(Duration::from_millis(100), |_| {});
    world.messages.clear();
    for _ in 0..10 {
        world.serving.handle_put(world.now, pose, NewSample::data("awake"));
        world.run(Duration::from_millis(50), |_| {});
    }
    let samples =
        world.messages.iter().filter(|bytes| bytes.windows(5).any(|part| part == b"awake"));
    assert_eq!(samples.count(), 10);
}
