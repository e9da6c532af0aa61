//! The table of all traces, with the parts of the link in percent, and times in milliseconds:
//!
//! `cargo test -p paceline-proto --lib capacity -- --ignored --nocapture every_trace`.

use super::bottleneck::{Path, Trace, float, seconds};
use super::run::{Load, Report, Run};
use super::traces;
use paceline_sched::{Duration, Instant};

/// The kinds of acknowledgements.
const KINDS: [&str; 4] = ["exact", "stamps", "jitter", "coalesced"];

/// Returns a path with acknowledgements of a kind.
fn path(trace: Trace, kind: &str) -> Path {
    let millis = Duration::from_millis;
    let plain = Path::new(trace);
    match kind {
        "exact" => plain,
        "stamps" => Path { stamps: true, ack_jitter: millis(10), loss_ppm: 5_000, ..plain },
        "jitter" => Path { ack_jitter: millis(5), loss_ppm: 5_000, ..plain },
        _ => Path { ack_jitter: millis(2), coalesced: 8, ..plain },
    }
}

fn millis(time: Option<Duration>) -> String {
    time.map_or_else(|| "never".to_owned(), |it| format!("{}", it.as_micros() / 1_000))
}

#[expect(clippy::print_stdout, reason = "the table is the purpose")]
fn row(name: &str, kind: &str, buffer: u64, report: &Report, length: f64, trace: &Trace) {
    let (from, end) = (seconds(2.0), seconds(length));
    let all = trace.bytes(Instant::ZERO, end);
    // Only this trace has one fall and one rise, at these times.
    let step = name == "step 20-2-20";
    let (fall, rise) = if step {
        (millis(report.noticed(seconds(20.0))), millis(report.climbed(seconds(40.0), 80)))
    } else {
        (String::new(), String::new())
    };
    println!(
        "{name:24} {kind:10} {buffer:5} {:7.1} {:7.1} {:7.1} {:7.2} {:6} {:6} {:>7} {:>7}",
        100.0 * report.granted(from, end),
        100.0 * float(report.data) / all,
        100.0 * report.excess(from, end),
        100.0 * float(report.probes) / all,
        report.late.len(),
        report.lost,
        fall,
        rise,
    );
}

#[expect(clippy::print_stdout, reason = "the table is the purpose")]
#[test]
#[ignore = "prints the table of all traces in a minute"]
fn every_trace() {
    println!(
        "{:24} {:10} {:>5} {:>7} {:>7} {:>7} {:>7} {:>6} {:>6} {:>7} {:>7}",
        "trace",
        "acks",
        "queue",
        "granted",
        "used",
        "excess",
        "probes",
        "late",
        "lost",
        "fall",
        "rise"
    );
    for named in traces::all() {
        for kind in KINDS {
            for buffer in [100, 1_000] {
                let mut path = path(named.trace.clone(), kind);
                path.buffer = Duration::from_millis(buffer);
                let report = Run::new(path, Load::FULL, 3).until(seconds(named.length));
                row(named.name, kind, buffer, &report, named.length, &named.trace);
            }
        }
    }
}
