//! Spacing next to four threads that use all processors, and without them.

use super::{errors, micros, run_once};
use crate::bench::machine::Watch;
use crate::bench::report::{Bound, Section, Unit};
use crate::bench::stats::float;
use anyhow::Result;
use paceline::Node;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const HOGS: usize = 4;
const PERIOD: Duration = Duration::from_millis(1);

/// Measures the spacing errors with and without the threads.
pub(super) fn measure(
    node: &Node,
    seconds: u32,
    (realtime, priority): (bool, &str),
) -> Result<Section> {
    let samples = u64::from(seconds) * 1_000;
    let idle = run_once(node, PERIOD, samples)?;
    let watch = Watch::begin()?;
    let stop = AtomicBool::new(false);
    let busy = std::thread::scope(|scope| {
        for _ in 0..HOGS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let busy = run_once(node, PERIOD, samples);
        stop.store(true, Ordering::Relaxed);
        busy
    })?;
    let load = watch.load()?;
    let title = format!("1000 µs, {HOGS} hogs, {priority}, {samples} samples");
    let mut section = Section::new(title).headings(["hogs", "without hogs"]);
    let (hogs, quiet) = (errors(&busy.ours, PERIOD), errors(&idle.ours, PERIOD));
    let p99 = |errors: &crate::bench::stats::Samples| micros(errors.percentile(990));
    let name = "p99 of the spacing error / that without hogs";
    let ratio = p99(&hogs) / p99(&quiet);
    if realtime {
        section.must(name, Unit::Ratio, ratio, f64::NAN, Bound::AtMost(1.0));
    } else {
        section.show(name, Unit::Ratio, ratio, f64::NAN);
    }
    for (name, part) in [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)] {
        let of = |errors: &crate::bench::stats::Samples| micros(errors.percentile(part));
        section.show(&format!("spacing error, {name}"), Unit::Micros, of(&hogs), of(&quiet));
    }
    let late = |run: &super::Run| float(run.report.late);
    section.show("late samples", Unit::Count, late(&busy), late(&idle));
    section.load(Some(load), None);
    Ok(section)
}
