//! A flood of small best-effort samples next to a contract, through a node with a tenth of a processor (Christie 1995, load 4).
//!
//! The node between both ends is a process of its own in a control group with a CPU quota, so the kernel gives it no more,
//! whatever the cost of a sample is. Its calibration leaves best effort less than the quota.

use crate::support::{SOON, at_rate, free_endpoint, isolated, wait_until};
use paceline::contract::{CpuBudget, CpuCost};
use paceline::status::{DropReason, NodeStatus};
use paceline::{Capacity, LinkConfig, Node};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The environment variable with the endpoints of the child process, and with the share of its processor.
const ENDPOINTS: &str = "PACELINE_TEST_SLOW_CORE";
const SHARE: &str = "PACELINE_TEST_SLOW_CORE_SHARE";
/// The quota of the node: so many microseconds in each period.
const QUOTA_US: u32 = 1_000;
const PERIOD_US: u32 = 10_000;
/// The charge of a sample, and the processor time for all of them: half of the quota.
const SAMPLE_NANOS: u64 = 20_000;
const NANOS_PER_S: u64 = 50_000_000;
/// The flood per second in bursts of one millisecond, and the commands under the contract.
const FLOOD_HZ: u32 = 20_000;
const STEER_HZ: u32 = 50;
const SECONDS: u32 = 6;
const WITHIN: Duration = Duration::from_millis(300);

/// A control group with a CPU quota.
struct Quota(PathBuf);

impl Quota {
    /// Creates one; `None` if this host does not permit it.
    fn new() -> Option<Self> {
        let name = format!("paceline-test-{}", std::process::id());
        let root = Path::new("/sys/fs/cgroup");
        let controllers = std::fs::read_to_string(root.join("cgroup.subtree_control"));
        let (parent, limits) = match controllers {
            Ok(list) if list.split_whitespace().any(|it| it == "cpu") => {
                (root.to_owned(), vec![("cpu.max", format!("{QUOTA_US} {PERIOD_US}"))])
            }
            Ok(_) => return None,
            // Version 1, with a hierarchy per controller.
            Err(_) => (
                root.join("cpu"),
                vec![
                    ("cpu.cfs_period_us", PERIOD_US.to_string()),
                    ("cpu.cfs_quota_us", QUOTA_US.to_string()),
                ],
            ),
        };
        let group = Self(parent.join(name));
        std::fs::create_dir(&group.0).ok()?;
        let set = |(file, value): (&str, String)| std::fs::write(group.0.join(file), value).is_ok();
        limits.into_iter().all(set).then_some(group)
    }

    /// Returns the number of periods in which the kernel held the group back.
    fn throttled(&self) -> u64 {
        let text = std::fs::read_to_string(self.0.join("cpu.stat")).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        line.unwrap().trim().parse().unwrap()
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The node between both ends, in a process of its own.
struct Router(Child);

impl Router {
    /// Starts it in a control group. `share` is its processor time in nanoseconds per second; 0 leaves it without a calibration.
    fn start(quota: &Quota, endpoints: [&str; 2], share: u64) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["slow_core::router", "--exact", "--ignored", "--nocapture"]);
        command.env(ENDPOINTS, endpoints.join(" ")).env(SHARE, share.to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let pid = child.id().to_string();
        // It opens its node, and starts its threads, only after this line.
        std::fs::write(quota.0.join("cgroup.procs"), pid).unwrap();
        child.stdin.as_mut().unwrap().write_all(b"start\n").unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.is_ok_and(|line| line.contains("ready"))), "it is not ready");
        Self(child)
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn link(name: &str) -> LinkConfig {
    LinkConfig::new(name).capacity(Capacity::from_bits_per_s(100_000_000).unwrap())
}

/// The node of [`Router`], until its input ends.
#[test]
#[ignore = "a child process of the other tests here"]
fn router() {
    let Ok(endpoints) = std::env::var(ENDPOINTS) else { return };
    let share = std::env::var(SHARE).unwrap_or_default().parse().unwrap();
    let mut input = BufReader::new(std::io::stdin());
    input.read_line(&mut String::new()).unwrap();
    let (near, far) = endpoints.split_once(' ').unwrap();
    let builder = Node::builder().name("router").isolated();
    let builder = builder.link(link("near").listen(near)).link(link("far").listen(far));
    let cost = CpuCost { sample_nanos: SAMPLE_NANOS, byte_picos: 0 };
    let budget = CpuBudget { cost, nanos_per_s: share };
    let _node = if share > 0 { builder.processor(budget) } else { builder }.open().unwrap();
    println!("ready");
    input.read_to_end(&mut Vec::new()).unwrap();
}

/// The result of a flood.
#[derive(Debug, Default)]
struct Outcome {
    steered: u64,
    late: u64,
    flooded: u64,
    violations: u64,
    /// The samples of the flood that the router dropped to save processor time.
    busy: u64,
    throttled: u64,
    time: Duration,
}

fn flood(share: u64) -> Option<Outcome> {
    let quota = Quota::new()?;
    let (near, far) = (free_endpoint(), free_endpoint());
    let router = Router::start(&quota, [&near, &far], share);
    let robot = isolated("robot", [link("near").connect(&near)]);
    let operator = isolated("operator", [link("far").connect(&far)]);
    let mut steering =
        robot.publisher("steer").hz(STEER_HZ.into()).bytes_max(64).declare().unwrap();
    let mut noise = robot.publisher("noise").declare().unwrap();
    let counts: Arc<[AtomicU64; 3]> = Arc::default();
    let counting = |place: usize| {
        let counts = counts.clone();
        move |sample: paceline::Sample| {
            counts[place].fetch_add(1, Ordering::Relaxed);
            let late = place == 0 && sample.age > WITHIN;
            counts[2].fetch_add(u64::from(late), Ordering::Relaxed);
        }
    };
    let steers = operator.subscriber("steer").within(WITHIN).callback(counting(0)).unwrap();
    let listens = operator.subscriber("noise").callback(counting(1)).unwrap();
    assert!(noise.wait_matching(SOON));
    let is_granted = || steering.feedback(SOON).first().is_some_and(|it| it.grant.is_some());
    wait_until("the contract is granted", is_granted);
    let (before, began) = (quota.throttled(), Instant::now());
    at_rate(1_000, 1_000 * SECONDS, |n| {
        if n.is_multiple_of(1_000 / STEER_HZ) {
            steering.put(vec![1; 64]).unwrap();
        }
        (0..FLOOD_HZ / 1_000).for_each(|_| _ = noise.put(vec![2; 64]).unwrap());
    });
    std::thread::sleep(Duration::from_secs(1));
    let [steered, flooded, late] = [0, 1, 2].map(|place| counts[place].load(Ordering::Relaxed));
    let (throttled, time) = (quota.throttled() - before, began.elapsed());
    let status = operator.status(SOON);
    let streams = |status: &NodeStatus| {
        let streams = status.links.iter().flat_map(|link| &link.streams);
        streams.map(|it| it.counters).collect::<Vec<_>>()
    };
    let violations = status.iter().flat_map(streams).map(|it| it.violations).sum();
    let busy = status.iter().filter(|it| it.name == "router").flat_map(streams);
    let busy = busy.map(|it| it.dropped.of(DropReason::ProcessorBusy)).sum();
    drop((steers, listens));
    drop((robot, operator));
    drop(router);
    let outcome = Outcome { steered, late, flooded, violations, busy, throttled, time };
    println!("a tenth of a processor, {share} ns/s for samples: {outcome:?}");
    Some(outcome)
}

/// Checks the share and its visibility, which hold on a busy host too.
#[test]
fn a_flood_of_small_samples_uses_only_its_share_of_a_slow_core() {
    let Some(outcome) = flood(NANOS_PER_S) else {
        println!("skipped: a flood on a slow core (no CPU quota of a control group is permitted)");
        return;
    };
    let Outcome { steered, flooded, busy, time, .. } = outcome;
    assert!(steered > 0);
    // The share of the whole time, the burst, and one more sample.
    let millis = u64::try_from(time.as_millis()).unwrap();
    let most = millis * NANOS_PER_S / 1_000 / SAMPLE_NANOS + 51;
    assert!((1_000..=most).contains(&flooded), "{flooded} of {most}");
    assert!(
        busy > u64::from(FLOOD_HZ * SECONDS) / 2,
        "{busy} samples are dropped as processor_busy"
    );
}

#[test]
#[ignore = "needs a host without other load: cargo xtask long runs it"]
fn a_flood_of_small_samples_breaks_no_contract_on_a_slow_core() {
    let Some(Outcome { steered, late, violations, .. }) = flood(NANOS_PER_S) else {
        println!("skipped: a flood on a slow core (no CPU quota of a control group is permitted)");
        return;
    };
    assert_eq!((steered, late, violations), (u64::from(STEER_HZ * SECONDS), 0, 0));
}

/// Shows how much the flood takes without the regulator. The order and the credit of links mostly keep the contract then too,
/// but nothing states it, so the test checks only that the quota is what limits.
#[test]
#[ignore = "a comparison for the test before: cargo xtask long runs it"]
fn without_a_calibration_the_flood_exhausts_a_slow_core() {
    let Some(Outcome { busy, throttled, .. }) = flood(0) else {
        println!("skipped: a flood on a slow core (no CPU quota of a control group is permitted)");
        return;
    };
    assert_eq!(busy, 0);
    assert!(throttled > 100, "the quota was exhausted in {throttled} periods of 10 ms only");
}
