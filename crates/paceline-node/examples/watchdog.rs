//! Tests a program in virtual time: a watchdog stops a robot when its commands are 300 ms old.
//!
//! `cargo run -p paceline-node --example watchdog` takes milliseconds for ten seconds of traffic.

use paceline_node::testkit::{TestLink, TestNetwork, publisher, subscription};
use paceline_node::{NewSample, Sample};
use paceline_sched::{Capacity, Duration, Instant};

const TICK: Duration = Duration::from_millis(20);
const LIMIT: Duration = Duration::from_millis(300);

/// The program under test: it knows nothing of the network.
struct Watchdog {
    last: Instant,
    stopped_at: Option<Instant>,
}

impl Watchdog {
    fn tick(&mut self, now: Instant, commands: &[Sample]) {
        if !commands.is_empty() {
            (self.last, self.stopped_at) = (now, None);
        } else if now.since(self.last) > LIMIT {
            self.stopped_at.get_or_insert(now);
        }
    }
}

fn main() {
    let mut network = TestNetwork::new(7);
    let (operator, robot) = (network.add_node("operator"), network.add_node("robot"));
    let radio = TestLink {
        capacity: Capacity::from_bits_per_s(250_000).ok(),
        delay: Duration::from_millis(8),
        loss_ppm: 10_000,
    };
    network.connect(operator, robot, radio);
    let steer = network.publish(operator, publisher("robot/steer"));
    let commands = network.subscribe(robot, subscription("robot/steer"));
    network.run_for(Duration::from_secs(2));

    let mut watchdog = Watchdog { last: network.now(), stopped_at: None };
    let mut cut_at = network.now();
    for tick in 0..500 {
        if tick == 250 {
            cut_at = network.now();
            network.cut(operator, robot);
        }
        network.put(steer, NewSample::data("left"));
        network.run_for(TICK);
        let received = network.take(commands);
        watchdog.tick(network.now(), &received);
        let is_stopped = watchdog.stopped_at.is_some();
        assert!(!is_stopped || tick >= 250, "stopped in tick {tick}, while the link was up");
    }
    let stopped_at = watchdog.stopped_at.expect("the watchdog has stopped the robot");
    let after = stopped_at.since(cut_at);
    assert!(after <= Duration::from_millis(360), "stopped only after {after}");
    println!("stopped {after} after the cut");
}
