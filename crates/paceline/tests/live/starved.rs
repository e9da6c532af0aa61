//! Ways to starve, break or refuse a subscription: the status of its own node shows each, with a reason.
//!
//! The test requires the state and the reason. It prints the time until both are shown; the target is 2 s.

use crate::support::{SOON, at_rate, free_endpoint, isolated};
use paceline::contract::Proxy;
use paceline::delivery::{Otherwise, TimeBuffering};
use paceline::status::{HealthState, NodeStatus, SubscriptionHealth, explain};
use paceline::{
    Capacity, Encoding, Kind, Late, LinkConfig, Node, Publisher, PublisherBuilder, Size,
    Subscriber, SubscriberBuilder,
};
use paceline_media::TestCard;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use HealthState::{Broken, NoPublisher, Refused, Short, Silent};

/// The bits per second of the link between the two nodes.
const THIN: u64 = 400_000;
/// The time until a state with its reason is expected.
const TARGET: Duration = Duration::from_secs(2);
/// Ways that run at once.
const LANES: usize = 4;

/// Two nodes with a thin link between them, and the subscriptions and the publishers of one way.
struct Stage {
    robot: Node,
    operator: Node,
    subscribers: Vec<Subscriber>,
    reads: bool,
    ends: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
    kept: Vec<Box<dyn std::any::Any>>,
}

impl Stage {
    fn new() -> Self {
        let (near, far) = ends("radio", THIN);
        let (robot, operator) = (isolated("robot", [near]), isolated("operator", [far]));
        Self {
            robot,
            operator,
            subscribers: Vec::new(),
            reads: true,
            ends: Arc::default(),
            threads: Vec::new(),
            kept: Vec::new(),
        }
    }

    fn subscribe(
        &mut self,
        pattern: &str,
        with: impl for<'a> FnOnce(SubscriberBuilder<'a>) -> SubscriberBuilder<'a>,
    ) {
        let subscriber = with(self.operator.subscriber(pattern)).declare().unwrap();
        self.subscribers.push(subscriber);
    }

    /// Declares a publisher at the robot and publishes `payload` at a rate until the end.
    fn publish(
        &mut self,
        tag: &str,
        with: impl for<'a> FnOnce(PublisherBuilder<'a>) -> PublisherBuilder<'a>,
        hertz: u32,
        payload: Vec<u8>,
    ) {
        let publisher = with(self.robot.publisher(tag)).declare().unwrap();
        self.repeat(publisher, hertz, payload);
    }

    fn repeat(&mut self, mut publisher: Publisher, hertz: u32, payload: Vec<u8>) {
        let ends = self.ends.clone();
        let payload = bytes::Bytes::from(payload);
        self.threads.push(std::thread::spawn(move || {
            let _ = publisher.wait_matching(Duration::from_millis(500));
            while !ends.load(Ordering::Relaxed) {
                // A closed node is the purpose of some ways.
                if publisher.put(payload.clone()).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_secs(1) / hertz);
            }
        }));
    }

    /// Keeps a publisher or a node until the end.
    fn keep(&mut self, of: impl std::any::Any) {
        self.kept.push(Box::new(of));
    }

    /// Returns the health of the last subscription.
    fn health(&mut self) -> Option<SubscriptionHealth> {
        if self.reads {
            for subscriber in &mut self.subscribers {
                while subscriber.try_recv().is_some() {}
            }
        }
        let mut nodes: Vec<NodeStatus> = self.operator.status(Duration::from_millis(100));
        explain(&mut nodes);
        let mine = nodes.into_iter().find(|node| node.name == "operator")?;
        mine.subscriptions.into_iter().next_back().map(|row| row.health)
    }

    /// Waits until the last subscription is in a state with a reason.
    fn expect(&mut self, state: HealthState, reason: &str) -> Result<Duration, String> {
        let began = Instant::now();
        let mut last = None;
        while began.elapsed() < SOON {
            last = self.health();
            let found = last.as_ref().filter(|health| health.state == state);
            let text = found.map(|health| health.reason.clone().unwrap_or_default());
            let is_explained =
                |text: String| text.contains(reason) && (!state.is_failure() || !text.is_empty());
            if text.is_some_and(is_explained) {
                return Ok(began.elapsed());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(format!("{state:?} with '{reason}' was expected: {last:?}"))
    }

    fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

fn ends(name: &str, bits_per_s: u64) -> (LinkConfig, LinkConfig) {
    let (endpoint, capacity) = (free_endpoint(), Capacity::from_bits_per_s(bits_per_s).unwrap());
    let near = LinkConfig::new(name).listen(&endpoint).capacity(capacity);
    (near, LinkConfig::new(name).connect(&endpoint).capacity(capacity))
}

/// A camera of ten times the capacity of the link.
fn camera(stage: &mut Stage) {
    stage.publish(
        "camera",
        |of| of.kind(Kind::Picture).hz(30.0).bytes_max(17_000),
        30,
        vec![0; 16_000],
    );
}

fn jpeg(width: u32, height: u32) -> Vec<u8> {
    let mut card = TestCard::new(paceline_media::Size::new(width, height).unwrap()).unwrap();
    card.draw_jpeg(1, 1, 80).unwrap()
}

/// A camera that declares JPEG pictures of 320x240.
fn pictures_of(stage: &mut Stage, payload: Vec<u8>) {
    let size = Size { width: 320, height: 240 };
    stage.publish(
        "camera",
        |of| of.encoding(Encoding::Jpeg).hz(30.0).picture_size(size),
        30,
        payload,
    );
}

fn pictures(stage: &mut Stage) {
    pictures_of(stage, jpeg(320, 240));
}

fn pose(stage: &mut Stage) {
    stage.publish("pose", |of| of.hz(20.0).bytes_max(100), 20, vec![0; 50]);
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

type Way = (&'static str, fn(&mut Stage), HealthState, &'static str);

/// Best effort that does not fit into the link.
const STARVED: &[Way] = &[
    (
        "every picture",
        |stage| {
            stage.subscribe("camera", |of| of);
            camera(stage);
        },
        Short,
        "on link 'radio' of 'robot' (superseded)",
    ),
    (
        "a requested rate",
        |stage| {
            stage.subscribe("camera", |of| of.max_hz(10.0));
            camera(stage);
        },
        Short,
        "on link 'radio' of 'robot'",
    ),
    (
        "every second picture",
        |stage| {
            stage.subscribe("camera", |of| of.every(2));
            camera(stage);
        },
        Short,
        "on link 'radio' of 'robot'",
    ),
    (
        "samples that wait for their turn",
        |stage| {
            stage.subscribe("log", |of| of);
            stage.publish("log", |of| of.hz(30.0).late(Late::Send), 30, vec![0; 16_000]);
        },
        Short,
        "radio",
    ),
    (
        "samples without a declared rate that wait for their turn",
        |stage| {
            stage.subscribe("log", |of| of);
            stage.publish("log", |of| of.late(Late::Send), 30, vec![0; 16_000]);
        },
        Short,
        "radio",
    ),
    (
        "next to contracts that have the link",
        |stage| {
            stage.subscribe("lidar", |of| of.within(ms(200)));
            stage.subscribe("camera", |of| of);
            stage.publish("lidar", |of| of.hz(20.0).bytes_max(1_900), 20, vec![0; 1_900]);
            camera(stage);
        },
        Short,
        "",
    ),
    (
        "two publishers of one pattern",
        |stage| {
            stage.subscribe("cameras/*", |of| of);
            for tag in ["cameras/left", "cameras/right"] {
                stage.publish(tag, |of| of.kind(Kind::Picture).hz(30.0), 30, vec![0; 16_000]);
            }
        },
        Short,
        "on link 'radio' of 'robot'",
    ),
    (
        "a bit rate below the pictures",
        |stage| {
            stage.subscribe("camera", |of| of.size(160, 120).bitrate(5_000));
            pictures(stage);
        },
        Short,
        "(over_budget)",
    ),
    (
        "through a relay",
        |stage| {
            let ((near, far), (up, down)) = (ends("wire", 10_000_000), ends("radio", THIN));
            let relay = isolated("relay", [far, up]);
            stage.robot = isolated("robot", [near]);
            stage.operator = isolated("operator", [down]);
            stage.subscribe("camera", |of| of);
            camera(stage);
            stage.keep(relay);
        },
        Short,
        "on link 'radio' of 'relay' (superseded)",
    ),
];

/// Publishers that pause, end or never appear.
const ABSENT: &[Way] = &[
    ("nobody publishes", |stage| stage.subscribe("camera", |of| of), NoPublisher, ""),
    (
        "a publisher of a declared rate is silent",
        |stage| {
            stage.subscribe("pose", |of| of);
            let mut pose = stage.robot.publisher("pose").hz(20.0).declare().unwrap();
            assert!(pose.wait_matching(SOON));
            at_rate(20, 10, |_| {
                pose.put(vec![0; 50]).unwrap();
            });
            stage.keep(pose);
        },
        Short,
        "20.0 Hz are declared",
    ),
    (
        "a publisher without a rate is silent",
        |stage| {
            stage.subscribe("door", |of| of);
            let door = stage.robot.publisher("door").declare().unwrap();
            stage.keep(door);
        },
        Silent,
        "",
    ),
    (
        "the publisher's node ends",
        |stage| {
            stage.subscribe("pose", |of| of);
            pose(stage);
            std::thread::sleep(ms(500));
            stage.robot.clone().close();
        },
        NoPublisher,
        "",
    ),
];

/// Samples that the subscriber's own node or program drops.
const AT_THE_READER: &[Way] = &[
    (
        "a program that does not read",
        |stage| {
            stage.subscribe("pose", |of| of.queue(4));
            stage.reads = false;
            pose(stage);
        },
        Short,
        "dropped here (subscriber_full)",
    ),
    (
        "a contract that is not read",
        |stage| {
            stage.subscribe("pose", |of| of.queue(4).within(ms(100)));
            stage.reads = false;
            pose(stage);
        },
        Broken,
        "dropped here",
    ),
    (
        "samples above an age limit",
        |stage| {
            stage.subscribe("camera", |of| of.fresh_within(ms(20), Otherwise::Hold));
            stage.publish("camera", |of| of.hz(3.0).bytes_max(5_000), 3, vec![0; 4_000]);
        },
        Short,
        "dropped here (stale)",
    ),
    (
        "video without an independent picture",
        |stage| {
            stage.subscribe("film", |of| of);
            stage.publish("film", |of| of.kind(Kind::VideoP).hz(30.0), 30, vec![0; 100]);
        },
        Short,
        "(undecodable)",
    ),
];

/// Contracts that a node ends or cannot keep.
const CONTRACTS: &[Way] = &[
    (
        "a publisher that sends more than it declared",
        |stage| {
            stage.subscribe("pose", |of| of.within(ms(100)));
            stage.publish("pose", |of| of.hz(10.0).bytes_max(100), 900, vec![0; 100]);
        },
        Broken,
        "",
    ),
    (
        "samples that are larger than declared",
        |stage| {
            stage.subscribe("pose", |of| of.within(ms(100)));
            stage.publish("pose", |of| of.hz(10.0).bytes_max(100), 10, vec![0; 8_000]);
        },
        Short,
        "on link 'radio' of 'robot' (deadline_missed)",
    ),
    (
        "the capacity falls",
        |stage| {
            stage.subscribe("lidar", |of| of.within(ms(200)));
            stage.publish("lidar", |of| of.hz(20.0).bytes_max(1_500), 20, vec![0; 1_500]);
            std::thread::sleep(ms(500));
            stage.robot.set_capacity("radio", Capacity::from_bits_per_s(100_000).unwrap()).unwrap();
        },
        Refused,
        "radio",
    ),
];

/// Requests that are refused before the first sample.
const REFUSED: &[Way] = &[
    (
        "a contract above the capacity",
        |stage| {
            stage.subscribe("camera", |of| of.within(ms(200)));
            camera(stage);
        },
        Refused,
        "radio",
    ),
    (
        "a delay bound below the transmission",
        |stage| {
            stage.subscribe("camera", |of| of.within(ms(50)));
            stage.publish("camera", |of| of.hz(1.0).bytes_max(16_000), 1, vec![0; 16_000]);
        },
        Refused,
        "radio",
    ),
    (
        "a size above the source",
        |stage| {
            stage.subscribe("camera", |of| of.size(640, 480));
            pictures(stage);
        },
        Refused,
        "640x480",
    ),
    (
        "a size of depth pictures",
        |stage| {
            stage.subscribe("depth", |of| of.size(160, 120));
            let depth = Encoding::new("image/x-depth");
            stage.publish(
                "depth",
                |of| of.encoding(depth).kind(Kind::Picture).hz(10.0),
                10,
                vec![0; 1_000],
            );
        },
        Refused,
        "160x120",
    ),
    (
        "a size of pictures that are damaged",
        |stage| {
            stage.subscribe("camera", |of| of.size(160, 120));
            let mut damaged = jpeg(320, 240);
            damaged.truncate(damaged.len() / 2);
            pictures_of(stage, damaged);
        },
        Refused,
        "160x120",
    ),
    (
        "a bit rate that no quality reaches, as a contract",
        |stage| {
            stage.subscribe("camera", |of| {
                of.size(160, 120).bitrate(2_000).max_hz(30.0).within(ms(200))
            });
            pictures(stage);
        },
        Refused,
        "bit",
    ),
    (
        "a node that does not exist",
        |stage| {
            stage.subscribe("camera", |of| of.size(160, 120).proxy(Proxy::Node("mast".into())));
            pictures(stage);
        },
        Refused,
        "mast",
    ),
    (
        "a spare path where there is one path",
        |stage| {
            stage.subscribe("pose", |of| of.within(ms(200)).spare());
            pose(stage);
        },
        Refused,
        "spare",
    ),
    (
        "an order by time above the delay bound",
        |stage| {
            let order = TimeBuffering::by_time(Duration::from_secs(1));
            stage.subscribe("pose", |of| of.ordered(order).within(ms(1)));
            pose(stage);
        },
        Refused,
        "radio",
    ),
    (
        "a second contract for the rest of a link",
        |stage| {
            stage.subscribe("lidar", |of| of.within(ms(200)));
            stage.subscribe("radar", |of| of.within(ms(200)));
            for tag in ["lidar", "radar"] {
                stage.publish(tag, |of| of.hz(20.0).bytes_max(1_500), 20, vec![0; 1_500]);
            }
        },
        Refused,
        "radio",
    ),
];

#[test]
fn each_way_to_starve_break_or_refuse_is_shown_with_its_reason() {
    let ways: Vec<Way> = [STARVED, ABSENT, AT_THE_READER, CONTRACTS, REFUSED].concat();
    assert!(ways.len() >= 30, "{}", ways.len());
    let next = std::sync::atomic::AtomicUsize::new(0);
    let lane = || {
        let mut results = Vec::new();
        while let Some((name, begin, state, reason)) =
            ways.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let mut stage = Stage::new();
            begin(&mut stage);
            results.push((*name, stage.expect(*state, reason)));
            stage.end();
        }
        results
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
        lanes.into_iter().flat_map(|lane| lane.join().unwrap()).collect()
    });
    let mut wrong = Vec::new();
    for (name, result) in &results {
        match result {
            Ok(time) => println!("{:>5} ms  {name}", time.as_millis()),
            Err(problem) => wrong.push(format!("{name}: {problem}")),
        }
    }
    let times = results.iter().filter_map(|(_, result)| result.as_ref().ok());
    let late = times.clone().filter(|time| **time > TARGET).count();
    println!("{} ways, {late} shown after more than {TARGET:?}", results.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
