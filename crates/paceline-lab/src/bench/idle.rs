//! `paceline-lab bench idle`: the cost of an idle link on the wire, per carrier and delay, with the headers of IP.
//!
//! Two nodes in network namespaces are linked through the emulator, which counts each packet in both directions. Nothing is
//! published. The packets are those of both ends' probes, digests and clocks, and the acknowledgements of the transport.

use super::netns::{self, ROBOT_ADDRESS, Rig, Side};
use super::report::{Bound, Report, Section, Table, Unit};
use super::scenario::trust::Certificates;
use super::soak::sums::array;
use super::terminal::Terminal;
use super::{OutputArgs, interrupt};
use anyhow::{Context as _, Result};
use paceline_sched::Duration as Delay;
use paceline_tool::scratch::Scratch;
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Bytes and packets of an idle link, per carrier and delay (needs root)
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Time of each measurement; on slow links at least ten probes
    #[arg(long = "duration", value_name = "TIME", default_value = "20s", conflicts_with = "short",
          value_parser = paceline_tool::args::seconds::<1, 3_600>)]
    seconds: u32,
    #[command(flatten)]
    output: OutputArgs,
}

const ROBOT: &str = "robot";
const OPERATOR: &str = "operator";
const PORT: u16 = 7_600;
/// The one-way delays in milliseconds.
const DELAYS: [u64; 9] = [0, 15, 50, 150, 300, 500, 1_000, 1_500, 2_000];
const SHORT_DELAYS: [u64; 2] = [0, 50];
/// The delay of slow links.
const SLOW_DELAYS: [u64; 1] = [300];
/// The time for the first comparison of the clocks.
const SETTLE: Duration = Duration::from_secs(20);
/// The same after a change of the delay, and in new round trips: TCP repeats packets until it has learned the new delay.
const CHANGE: Duration = Duration::from_secs(5);
const CHANGE_TRIPS: u64 = 10;
const HEADINGS: [&str; 6] = [
    "one-way delay",
    "kbit/s there",
    "kbit/s back",
    "packets/s there",
    "packets/s back",
    "down after s",
];
/// The bounds of an idle hop each way, and the share of a slow link.
const BITS_PER_S_MAX: f64 = 4_000.0;
const PACKETS_PER_S_MAX: f64 = 8.0;
const SHARE_PERCENT_MAX: f64 = 2.0;
/// Links below this capacity are slow, in bits per second.
const SLOW_BELOW: u64 = 200_000;

/// A link whose idle cost is measured.
#[derive(Clone, Copy, Debug)]
struct Case {
    protocol: &'static str,
    bits_per_s: Option<u64>,
}

impl Case {
    fn name(self) -> String {
        let protocol = self.protocol;
        match self.bits_per_s {
            None => format!("{protocol}, without a capacity"),
            Some(bits) => format!("{protocol}, {} kbit/s", bits as f64 / 1_000.0),
        }
    }

    fn is_slow(self) -> bool {
        self.bits_per_s.is_some_and(|bits| bits < SLOW_BELOW)
    }

    /// Returns the interval of the link's probes: 300 bytes in a fiftieth of the capacity.
    fn probe_every(self) -> Duration {
        let slow = self.bits_per_s.map_or(0.0, |bits| 300.0 * 50.0 * 8.0 / bits as f64);
        Duration::from_secs_f64(slow.max(0.6))
    }
}

const CASES: [Case; 11] = {
    const fn case(protocol: &'static str, bits_per_s: Option<u64>) -> Case {
        Case { protocol, bits_per_s }
    }
    [
        case("tcp", None),
        case("tls", None),
        case("quic", None),
        case("tcp", Some(10_000_000)),
        case("quic", Some(10_000_000)),
        case("tcp", Some(57_600)),
        case("quic", Some(57_600)),
        case("tcp", Some(9_600)),
        case("quic", Some(9_600)),
        case("tcp", Some(2_400)),
        case("quic", Some(2_400)),
    ]
};

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if !netns::can_build("idle") {
        return Ok(ExitCode::from(2));
    }
    interrupt::install()?;
    let scratch = Scratch::new("idle")?;
    let certificates = Certificates::issue([ROBOT, OPERATOR].into_iter())?;
    let command = match args.seconds {
        20 => "paceline-lab bench idle".to_owned(),
        seconds => format!("paceline-lab bench idle --duration {seconds}s"),
    };
    let mut report = Report::new("The cost of an idle link", &command);
    let bench = Bench { scratch, certificates, short: args.output.short, seconds: args.seconds };
    for case in CASES.into_iter().filter(|case| !args.output.short || case.bits_per_s.is_none()) {
        report.add(bench.measure(case)?, &args.output);
    }
    report.finish(&args.output)
}

struct Bench {
    scratch: Scratch,
    certificates: Certificates,
    short: bool,
    seconds: u32,
}

/// The traffic of one direction per second.
#[derive(Clone, Copy, Debug)]
struct Rate {
    bits: f64,
    packets: f64,
}

impl Bench {
    fn measure(&self, case: Case) -> Result<Section> {
        let mut section = Section::new(case.name()).headings(["value", ""]);
        let mut table = Table::new(HEADINGS.map(str::to_owned).into());
        let rig = Rig::delayed(Delay::ZERO)?;
        let robot = self.scratch.host();
        let nodes = self.nodes(case, &rig, &robot)?;
        let probe = case.probe_every();
        let (settle, change) = if self.short { (CHANGE, CHANGE) } else { (SETTLE, CHANGE) };
        interrupt::sleep(settle.max(probe * 2))?;
        let window = if self.short { 2 } else { u64::from(self.seconds) };
        // The digests of the registry come once per ten probes.
        let window = Duration::from_secs(window).max(probe * 10);
        let (mut most, mut down) = (Rate { bits: 0.0, packets: 0.0 }, 0.0);
        let delays: &[u64] = match (self.short, case.is_slow()) {
            (true, _) => &SHORT_DELAYS,
            (false, true) => &SLOW_DELAYS,
            (false, false) => &DELAYS,
        };
        for &delay in delays {
            rig.set_delay(Delay::from_millis(delay));
            let trips = Duration::from_millis(2 * delay * CHANGE_TRIPS);
            interrupt::sleep((change + trips).max(probe))?;
            let [there, back] = count(&rig, window)?;
            let silence = down_after(&rig, &robot)?;
            down += f64::from(u8::from(silence.is_none()));
            table.row(
                format!("{delay} ms"),
                vec![
                    there.bits / 1_000.0,
                    back.bits / 1_000.0,
                    there.packets,
                    back.packets,
                    silence.unwrap_or(f64::NAN),
                ],
            );
            for rate in [there, back] {
                most.bits = most.bits.max(rate.bits);
                most.packets = most.packets.max(rate.packets);
            }
        }
        drop(nodes);
        section.table(table);
        let bits = "most bits per second, each way";
        section.must(bits, Unit::Count, most.bits, f64::NAN, Bound::AtMost(BITS_PER_S_MAX));
        let packets = Bound::AtMost(PACKETS_PER_S_MAX);
        section.must("most packets, each way", Unit::PerSecond, most.packets, f64::NAN, packets);
        section.must(
            "delays without a connection",
            Unit::Count,
            down,
            f64::NAN,
            Bound::AtMost(0.0),
        );
        if let Some(bits) = case.bits_per_s.filter(|_| case.is_slow()) {
            let share = most.bits / bits as f64 * 100.0;
            let bound = Bound::AtMost(SHARE_PERCENT_MAX);
            section.must("share of the capacity", Unit::Percent, share, f64::NAN, bound);
        }
        Ok(section)
    }

    /// Starts both nodes; commands of the robot's host find them.
    fn nodes(&self, case: Case, rig: &Rig, robot_host: &Path) -> Result<[Terminal; 2]> {
        let start = |name: &str, side: Side, place: String, host: &Path| -> Result<Terminal> {
            let mut link = format!("name=radio,{place}");
            if let Some(bits) = case.bits_per_s {
                link.push_str(&format!(",capacity={bits}bit"));
            }
            if case.protocol == "tcp" {
                link.push_str(",insecure");
            } else {
                let [cert, key, ca] = self.certificates.files(name);
                let (cert, key, ca) = (cert.display(), key.display(), ca.display());
                link.push_str(&format!(",tls_cert={cert},tls_key={key},tls_ca={ca}"));
            }
            let words = ["node", "--name", name, "--json", "--link", &link];
            Terminal::start(&words, host, Some(rig.namespace(side)))
        };
        let address = format!("{}/{ROBOT_ADDRESS}:{PORT}", case.protocol);
        let mut robot = start(ROBOT, Side::Robot, format!("listen={address}"), robot_host)?;
        robot.first_line()?;
        let connect = format!("connect={address}");
        let mut operator = start(OPERATOR, Side::Operator, connect, &self.scratch.host())?;
        operator.first_line()?;
        Ok([robot, operator])
    }
}

/// Returns the seconds of silence after which the robot's hop would be down; `None` if it is.
fn down_after(rig: &Rig, host: &Path) -> Result<Option<f64>> {
    let place = Some(rig.namespace(Side::Robot));
    let mut ls = Terminal::start(&["ls", "--json"], host, place)?;
    let lines = ls.rest(Duration::from_secs(30))?;
    let text: String = lines.into_iter().map(|line| line.text).collect();
    let document: Value = serde_json::from_str(&text).context("paceline ls --json")?;
    let robot = array(&document, "nodes").find(|node| node["name"] == ROBOT);
    let links = robot.into_iter().flat_map(|robot| array(robot, "links"));
    let mut silences = links
        .flat_map(|link| array(link, "neighbours"))
        .filter_map(|neighbour| neighbour.get("down_after_us").and_then(Value::as_f64));
    Ok(silences.find(|_| true).map(|micros| micros / 1e6))
}

/// Counts the packets on the wire for some time.
fn count(rig: &Rig, window: Duration) -> Result<[Rate; 2]> {
    let (before, began) = (rig.packets(), Instant::now());
    interrupt::sleep(window)?;
    let (after, took) = (rig.packets(), began.elapsed().as_secs_f64());
    let per_s = |now: u64, before: u64| now.saturating_sub(before) as f64 / took;
    let rate = |now: (u64, u64), before: (u64, u64)| Rate {
        bits: 8.0 * per_s(now.1, before.1),
        packets: per_s(now.0, before.0),
    };
    let ([there, back], [there_before, back_before]) = (after, before);
    Ok([rate(there, there_before), rate(back, back_before)])
}
