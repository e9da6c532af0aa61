//! A late joiner pulls 25 samples of 1 MB over 8 Mbit/s: live streams are unaffected.

use paceline_proto::control::PublisherSpec;
use paceline_proto::pull::{private_pattern, private_tag};
use paceline_proto::{NodeId, PublisherId};
use paceline_sched::{Capacity, Duration};
use paceline_sim::ask::{Ask as _, Declare as _, all, data, payload, payloads, pictures};
use paceline_sim::{Delivered, LinkPlan, World};

const PULLED: u64 = 25;
const PULLED_BYTES: usize = 1_000_000;
const SECONDS: u64 = 45;
/// The time of a frame of 2,000 bytes with 100 bytes of overhead, at 8 Mbit/s.
const FRAME_TIME: Duration = Duration::from_micros(2_180);

/// The result of a run.
struct Outcome {
    commands: Vec<Delivered>,
    pictures: Vec<Delivered>,
    pulled: Vec<Delivered>,
    /// The used share of the link during the pull.
    used: f64,
}

/// Runs contracted commands at 100 Hz and best-effort pictures at 30 Hz, with or without a concurrent pull.
fn run(pulls: bool) -> Outcome {
    let mut world = World::new(5);
    let (robot, home) = (world.add_node("robot"), world.add_node("home"));
    let capacity = Capacity::from_bits_per_s(8_000_000).ok();
    world.connect(robot, home, LinkPlan { capacity });
    let steering = PublisherSpec { bytes_max: Some(64), ..data("steering") }.hertz(100);
    let steering = world.publish(robot, steering);
    let camera = world.publish(robot, pictures("camera", 30, 10_000));
    let commands = world.subscribe(home, all("steering").within_ms(10));
    let seen = world.subscribe(home, all("camera"));
    let puller = world.node_id(home);
    let publisher = PublisherId { node: NodeId(1), index: 0 };
    let (Ok(tag), Ok(pattern)) = (private_tag(puller, 1, publisher), private_pattern(puller, 1))
    else {
        panic!("no private tag")
    };
    // The samples of a pull do not replace each other, even if they are pictures.
    let buffered = world.publish(robot, PublisherSpec { tag, ..pictures("held", 30, 1_000_000) });
    let pull = world.subscribe(home, all(pattern.as_str()));
    world.run_for(Duration::from_secs(2));
    world.every(steering, Duration::from_millis(10), SECONDS * 100, payloads(64));
    let thirtieth = Duration::from_secs(1).mul_div(1, 30);
    world.every(camera, thirtieth, SECONDS * 30, payloads(10_000));
    let before = world.wire(robot, home).bytes;
    let (mut put, mut used) = (0, 0.0);
    for tenth in 1..=SECONDS * 10 {
        // Keeps the backlog non-empty and below its limit.
        while pulls && put < PULLED && put < world.delivered(pull).len() as u64 + 3 {
            world.put(buffered, payload(put, PULLED_BYTES));
            put += 1;
        }
        world.run_for(Duration::from_millis(100));
        if (world.delivered(pull).len() as u64) < PULLED {
            let bytes = world.wire(robot, home).bytes - before;
            used = bytes as f64 / (tenth as f64 * 100_000.0);
        }
    }
    world.run_for(Duration::from_secs(2));
    Outcome {
        commands: world.delivered(commands).to_vec(),
        pictures: world.delivered(seen).to_vec(),
        pulled: world.delivered(pull).to_vec(),
        used,
    }
}

/// Returns the additional delay of each sample. Both runs must deliver all of them.
fn later(alone: &[Delivered], with_pull: &[Delivered]) -> Vec<Duration> {
    assert_eq!(alone.len(), with_pull.len());
    let pairs = alone.iter().zip(with_pull);
    pairs
        .map(|(alone, with_pull)| {
            assert_eq!(alone.seq, with_pull.seq);
            with_pull.at.since(alone.at)
        })
        .collect()
}

#[test]
fn a_pull_costs_live_streams_no_more_than_a_frame() {
    let (alone, with_pull) = (run(false), run(true));
    assert_eq!(alone.commands.len() as u64, SECONDS * 100);
    assert_eq!(alone.pictures.len() as u64, SECONDS * 30);
    assert!(with_pull.commands.iter().all(|sample| !sample.late));
    let commands = later(&alone.commands, &with_pull.commands);
    let pictures = later(&alone.pictures, &with_pull.pictures);
    let most = |all: &[Duration]| all.iter().copied().max().unwrap_or_default();
    println!("later by {} and {}; used {}", most(&commands), most(&pictures), with_pull.used);
    assert!(most(&commands) <= FRAME_TIME, "{}", most(&commands));
    assert!(most(&pictures) <= FRAME_TIME, "{}", most(&pictures));

    let seqs = with_pull.pulled.iter().map(|sample| sample.seq);
    assert!(seqs.eq(0..PULLED), "all of them, in order: {}", with_pull.pulled.len());
    // Except for the time in which it waits for the acknowledgement of its last frame.
    assert!(with_pull.used > 0.9, "the pull takes what is left: {}", with_pull.used);
}
