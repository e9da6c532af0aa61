//! Random declarations over the whole range of the API, between two processes of a host.

use crate::support::{HostDir, SOON, wait_until};
use paceline::status::SourceView;
use paceline::{Encoding, LossTolerance, Node, Pattern, PublisherBuilder, Size, SubscriberBuilder};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const NUMBER: usize = 100;
/// The environment variable with the runtime folder, for the process with the publishers.
const FOLDER: &str = "PACELINE_TEST_DECLARED";
const MATCHING: &str = "MATCHING ";

/// Random numbers (SplitMix64): the same in both processes.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    /// Returns an end of a range, or a number of any order of magnitude between them.
    fn within(&mut self, min: f64, max: f64) -> f64 {
        match self.next() % 6 {
            0 => min,
            1 => max,
            _ => min * (max / min).powf((self.next() % 1_000) as f64 / 1_000.0),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the number saturates")]
    fn whole(&mut self, min: u64, max: u64) -> u64 {
        (self.within(min.max(1) as f64, max as f64) as u64).clamp(min, max)
    }

    fn time(&mut self) -> Duration {
        Duration::from_nanos(self.whole(1, u64::MAX))
    }
}

fn tag(number: usize) -> String {
    format!("tag/{number}")
}

/// Returns publisher `number`, and its declared rate and encoding.
fn publisher(node: &Node, number: usize) -> (PublisherBuilder<'_>, Option<f64>, Encoding) {
    let mut chance = Chance(number as u64);
    let long = format!("application/{}", "x".repeat(243));
    let names = ["", "text/plain", "application/x-état", "image/png", &long];
    let encoding = Encoding::new(names[number % names.len()]);
    let mut builder = node.publisher(&tag(number)).encoding(encoding.clone());
    let hz = (!chance.one_in(8)).then(|| chance.within(1e-6, 1e6));
    if let Some(hz) = hz {
        builder = builder.hz(hz);
    }
    // Empty samples first: their rate is below 1 byte per second.
    let bytes = match number % 3 {
        0 => Some(0),
        1 => Some(chance.whole(0, 64 << 20)),
        _ => None,
    };
    if let Some(bytes) = bytes {
        builder = builder.bytes_max(bytes);
        if chance.one_in(2) {
            builder = builder.traffic(1, bytes.max(1));
        }
    }
    if chance.one_in(3) {
        let y = chance.whole(1, LossTolerance::Y_MAX.into());
        let x = chance.whole(0, y);
        builder = builder.loss(u32::try_from(x).unwrap(), u32::try_from(y).unwrap());
    }
    if chance.one_in(3) {
        builder = builder.within(chance.time());
    }
    if chance.one_in(4) {
        let side = |chance: &mut Chance| u32::try_from(chance.whole(1, u32::MAX.into())).unwrap();
        let (width, height) = (side(&mut chance), side(&mut chance));
        builder = builder.picture_size(Size { width, height });
    }
    (builder, hz, encoding)
}

/// Returns a request for the samples of publisher `number`.
fn request(node: &Node, number: usize) -> SubscriberBuilder<'_> {
    let mut chance = Chance(1_000 + number as u64);
    let builder = node.subscriber(&tag(number));
    let mut builder = match chance.next() % 3 {
        0 => builder.max_hz(chance.within(1e-3, 1e6)),
        1 => builder.every(u32::try_from(chance.whole(1, u32::MAX.into())).unwrap()),
        _ => builder,
    };
    if chance.one_in(4) {
        let side = |chance: &mut Chance| u32::try_from(chance.whole(1, 16_384)).unwrap();
        builder = builder.size(side(&mut chance), side(&mut chance));
    }
    if chance.one_in(2) {
        builder = builder.within(chance.time());
        if chance.one_in(3) {
            builder = builder.idle(Duration::from_secs(chance.whole(1, u64::MAX)));
        }
    }
    builder.priority(u32::try_from(chance.whole(0, u32::MAX.into())).unwrap())
}

/// The process with the publishers, until its input ends.
#[test]
#[ignore = "a child process of the other test here"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let node = Node::builder().name("robot").runtime_dir(folder).open().unwrap();
    let mut publishers: Vec<_> =
        (0..NUMBER).map(|number| publisher(&node, number).0.declare().unwrap()).collect();
    let samples = std::thread::spawn(move || {
        wait_until("every request is known", || publishers.iter().all(|one| one.matching()));
        println!("{MATCHING}{}", publishers.len());
        loop {
            for publisher in &mut publishers {
                if publisher.put(&b""[..]).is_err() {
                    return;
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    node.close();
    samples.join().unwrap();
}

struct Robot(Child);

impl Drop for Robot {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn every_declaration_is_known_to_the_other_process() {
    let host = HostDir::new("declared");
    let operator = host.open("operator");
    let mut all = operator.subscriber("tag/*").queue(4_096).declare().unwrap();
    let _requests: Vec<_> =
        (0..NUMBER).map(|number| request(&operator, number).declare().unwrap()).collect();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["declared::child", "--exact", "--ignored", "--nocapture"]);
    command.env(FOLDER, host.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut robot = Robot(command.spawn().unwrap());
    let pattern = Pattern::new("tag/*").unwrap();
    wait_until("every publisher is known", || operator.sources(&pattern).len() == NUMBER);
    let mut output = BufReader::new(robot.0.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(output.any(|line| line == format!("{MATCHING}{NUMBER}")));
    for source in operator.sources(&pattern) {
        let number: usize = source.tag.as_str()[4..].parse().unwrap();
        let (_, hz, encoding) = publisher(&operator, number);
        assert_eq!(source.encoding, encoding, "{number}");
        let declared = hz.map(|hz| Duration::try_from_secs_f64(1.0 / hz).unwrap());
        assert_eq!(source.period, declared, "{number}");
    }
    // A deadline of microseconds has passed when the sample is sent, and a stream that tolerates every loss may lose it.
    let can_be_met = |source: &&SourceView| {
        let times = [source.within, source.period];
        times.into_iter().flatten().all(|time| time > Duration::from_secs(1))
            && source.loss.is_none_or(|loss| loss.x() < loss.y())
    };
    let sources = operator.sources(&pattern);
    let met: BTreeSet<_> =
        sources.iter().filter(can_be_met).map(|source| source.tag.to_string()).collect();
    assert!(met.len() > NUMBER / 5, "{}", met.len());
    let mut seen = BTreeSet::new();
    wait_until("a sample of every publisher whose deadline can be met arrives", || {
        while let Some(sample) = all.try_recv() {
            seen.insert(sample.tag.to_string());
        }
        met.is_subset(&seen)
    });
    assert!(seen.len() > NUMBER / 2, "{}", seen.len());
    let status = operator.status(SOON);
    assert_eq!(status.len(), 2);
    for node in &status {
        assert_eq!(node.unread, [], "{} cannot read what the other declares", node.name);
    }
    let subscriptions = &status.iter().find(|node| node.name == "operator").unwrap().subscriptions;
    assert_eq!(subscriptions.len(), 1 + NUMBER);
}
