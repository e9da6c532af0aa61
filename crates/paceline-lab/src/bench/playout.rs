//! `paceline-lab bench playout`: two receivers of one group on two nodes, and the difference of their releases.
//!
//! Three network namespaces: a publisher that also serves time, and two receivers whose clocks follow it. The true
//! time is the monotonic clock of the machine, which all processes share.

use super::child::Child;
use super::machine::Watch;
use super::protocol::{Message, Playout, Role};
use super::report::{Bound, Report, Section, Unit};
use super::stats::{Samples, count, float, millis};
use super::{OutputArgs, interrupt};
use crate::netns::{self, Namespace};
use anyhow::{Context as _, Result};
use paceline::time::ClockConfig;
use paceline::{LinkConfig, Node};
use paceline_tool::scratch::Scratch;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Two receivers of one group on two nodes: the difference of their releases (needs root)
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Time of the measurement
    #[arg(long = "duration", value_name = "TIME", default_value = "60s", conflicts_with = "short",
          value_parser = paceline_tool::args::seconds::<1, 3_600>)]
    seconds: u32,
    #[command(flatten)]
    output: OutputArgs,
}

/// The namespaces of the receivers, the addresses of the publisher, and those of the receivers.
const ENDS: [(&str, &str, &str); 2] =
    [("plr", "10.254.79.1", "10.254.79.2"), ("pln", "10.254.80.1", "10.254.80.2")];
const PERIOD: Duration = Duration::from_millis(10);
const DELAY_MS: u64 = 60;
/// The time after which the frequency is known to some ppm.
const SETTLE: Duration = Duration::from_secs(15);

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install()?;
    if !netns::may_build() {
        eprintln!(
            "paceline-lab bench playout creates network namespaces, which needs root; try sudo"
        );
        return Ok(ExitCode::from(2));
    }
    let (seconds, settle) =
        if args.output.short { (1, Duration::ZERO) } else { (args.seconds, SETTLE) };
    let mut command = "paceline-lab bench playout".to_owned();
    if args.seconds != 60 {
        command += &format!(" --duration {}s", args.seconds);
    }
    let mut report = Report::new("Two receivers of one group", &command);
    for realtime in [false, true] {
        let measured = Measured::run(seconds, settle, realtime)?;
        report.add(measured.section(seconds, realtime), &args.output);
    }
    report.finish(&args.output)
}

/// A released sample: the instant of the release and the error of the receiver's clock, in nanoseconds.
type Released = (u64, u64);

/// The releases of both receivers by capture time.
struct Measured {
    released: [BTreeMap<u64, Released>; 2],
    /// The late samples and the stated wake-up of each receiver.
    late: [u64; 2],
    wakeup: [u64; 2],
    published: u64,
    load: super::machine::Load,
}

impl Measured {
    fn run(seconds: u32, settle: Duration, realtime: bool) -> Result<Self> {
        netns::remove_leftovers();
        let scratch = Scratch::new("playout")?;
        let hub = Namespace::new("plo")?;
        let mut places = Vec::new();
        for (prefix, near, far) in ENDS {
            let place = Namespace::new(prefix)?;
            let device = place.name();
            hub.ip(&format!("link add {device} type veth peer name eth netns {device}"))?;
            hub.ip(&format!("addr add {near}/24 dev {device}"))?;
            hub.ip(&format!("link set {device} up"))?;
            place.ip(&format!("addr add {far}/24 dev eth"))?;
            place.ip("link set eth up")?;
            places.push(place);
        }
        let clock = ClockConfig::new().system(Duration::from_micros(1)).serve("0.0.0.0:10123");
        let links = ENDS.iter().map(|(name, near, _)| {
            LinkConfig::new(name).listen(&format!("tcp/{near}:7447")).insecure()
        });
        let builder = Node::builder().name("stage").isolated().clock(clock);
        let builder = links.fold(builder, |builder, link| builder.link(link));
        let node = hub.inside(|| builder.open())??;
        let mut children = Vec::new();
        for (place, (name, near, _)) in places.iter().zip(ENDS) {
            let role = Role::Playout(Playout {
                connect: format!("tcp/{near}:7447"),
                server: format!("{near}:10123"),
                delay_ms: DELAY_MS,
                realtime,
            });
            let mut child = Child::start(name, &role, Some(place.name()), &scratch.host())?;
            child.expect_ready()?;
            children.push(child);
        }
        let mut publisher = node.publisher("stage").declare()?;
        anyhow::ensure!(publisher.wait_matching(Duration::from_secs(10)), "no receiver");
        interrupt::sleep(settle + Duration::from_secs(1))?;
        children.iter_mut().try_for_each(Child::go)?;
        interrupt::sleep(Duration::from_millis(100))?;
        let watch = Watch::begin()?;
        let (began, mut published) = (Instant::now(), 0);
        while began.elapsed() < Duration::from_secs(u64::from(seconds)) {
            publisher.put(vec![7; 64])?;
            published += 1;
            let next = began + PERIOD * published;
            interrupt::sleep(next.saturating_duration_since(Instant::now()))?;
        }
        interrupt::sleep(Duration::from_millis(5 * DELAY_MS))?;
        let load = watch.load()?;
        let (mut released, mut late, mut wakeup) = (Vec::new(), Vec::new(), Vec::new());
        for child in &mut children {
            child.stop()?;
            let (samples, lates, wake) =
                child.expect("releases", Duration::from_secs(20), |message| {
                    let Message::Playout { released, late, wakeup } = message else { return None };
                    Some((released, late, wakeup))
                })?;
            released.push(samples.into_iter().map(|(key, at, error)| (key, (at, error))).collect());
            late.push(lates);
            wakeup.push(wake);
        }
        let two = "two receivers";
        Ok(Self {
            released: released.try_into().ok().context(two)?,
            late: late.try_into().ok().context(two)?,
            wakeup: wakeup.try_into().ok().context(two)?,
            published: u64::from(published),
            load,
        })
    }

    fn section(self, seconds: u32, realtime: bool) -> Section {
        let [left, right] = &self.released;
        let pairs: Vec<(Released, Released)> =
            left.iter().filter_map(|(captured, one)| Some((*one, *right.get(captured)?))).collect();
        let mismatches: Vec<u64> = pairs.iter().map(|(a, b)| a.0.abs_diff(b.0)).collect();
        let bounds: Vec<u64> = pairs.iter().map(|(a, b)| a.1.saturating_add(b.1)).collect();
        let beyond = mismatches.iter().zip(&bounds).map(|(by, bound)| by.saturating_sub(*bound));
        let beyond = Samples::new(beyond.collect());
        let (mismatches, bounds) = (Samples::new(mismatches), Samples::new(bounds));
        let micros = |nanos: Option<u64>| millis(nanos) * 1e3;
        let priority = if realtime { "SCHED_FIFO where permitted" } else { "ordinary priority" };
        let title = format!("100 samples/s for {seconds} s, {priority}");
        let mut section = Section::new(title).alone("group");
        let none = f64::NAN;
        section.must(
            "release mismatch beyond both clocks' bounds, p99",
            Unit::Micros,
            micros(beyond.percentile(990)),
            none,
            Bound::AtMost(200.0),
        );
        let both = 100.0 * count(pairs.len()) / float(self.published.max(1));
        let name = "samples released by both receivers";
        section.must(name, Unit::Percent, both, none, Bound::AtLeast(100.0));
        let mut show = |name: &str, unit, value| section.show(name, unit, value, none);
        for (name, part) in [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)] {
            let name = format!("release mismatch, {name}");
            show(&name, Unit::Micros, micros(mismatches.percentile(part)));
        }
        show("release mismatch, maximum", Unit::Micros, micros(mismatches.max()));
        show("both clocks' bounds, p50", Unit::Micros, micros(bounds.percentile(500)));
        show("both clocks' bounds, p99", Unit::Micros, micros(bounds.percentile(990)));
        for (name, wakeup) in ["first", "second"].iter().zip(self.wakeup) {
            let name = format!("stated wake-up of the {name} receiver, p99");
            show(&name, Unit::Micros, micros(Some(wakeup)));
        }
        show("late samples", Unit::Count, float(self.late.iter().sum()));
        section.load(Some(self.load), None);
        section
    }
}
