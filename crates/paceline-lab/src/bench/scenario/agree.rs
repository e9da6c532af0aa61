//! Compares the live and the simulated result row by row and defines the tolerances.

use super::Pair;
use crate::bench::machine::Load;
use crate::bench::report::{Bound, Section, Unit};
use crate::bench::stats::float;
use paceline_sim::scenario::{DelayQuantiles, FaultKind, FaultRow, Flow, LinkRow};
use std::collections::BTreeSet;

/// The relative tolerance for rates, bytes and drops by reason.
const SHARE: f64 = 0.05;
/// The tolerance for median delays, in addition to a tenth.
const P50_MS: f64 = 0.5;
/// The tolerance for tail delays, in addition to one segment.
const P99_MS: f64 = 1.0;
/// The absolute tolerance for drops; so few may be chance.
const DROPS_MIN: f64 = 3.0;
/// The longest time from the repair of a cut to the streams' recovery.
const AGAIN_MS_MAX: f64 = 2_000.0;

/// Builds the rows of one scenario.
pub(super) fn section(pair: &Pair<'_>, load: Load) -> Section {
    let plan = pair.plan;
    let title = format!("{} ({})", plan.name, plan.duration);
    let mut section = Section::new(title).headings(["live", "simulated"]);
    for (live, simulated) in pair.live.flows.iter().zip(&pair.simulated.flows) {
        flow(&mut section, live, simulated, millis(plan.segment().as_nanos()));
    }
    for (live, simulated) in pair.live.links.iter().zip(&pair.simulated.links) {
        link(&mut section, live, simulated);
    }
    for ((live, simulated), fault) in
        pair.live.faults.iter().zip(&pair.simulated.faults).zip(&plan.faults)
    {
        let cut = matches!(fault.what, FaultKind::Cut(_));
        self::fault(&mut section, live, simulated, cut);
    }
    section.load(Some(load), None);
    section.warn_if_busy();
    section
}

fn near(value: f64, off: f64) -> Bound {
    Bound::Near(value, off)
}

fn millis(nanos: u64) -> f64 {
    float(nanos) / 1e6
}

fn hertz(millihertz: u64) -> f64 {
    float(millihertz) / 1e3
}

fn flow(section: &mut Section, live: &Flow, simulated: &Flow, segment_ms: f64) {
    let Flow { subscriber, publisher, asked, .. } = live;
    let name = |what: &str| match asked.as_str() {
        "all" => format!("{subscriber} < {publisher}: {what}"),
        asked => format!("{subscriber} < {publisher}, {asked}: {what}"),
    };
    let (a, b) = (hertz(live.rate_millihertz), hertz(simulated.rate_millihertz));
    section.must(&name("rate"), Unit::Hertz, a, b, near(b, SHARE * b));
    let (a, b) = (float(live.bytes), float(simulated.bytes));
    section.must(&name("payload bytes"), Unit::Count, a, b, near(b, SHARE * b));
    let delays = |of: fn(&DelayQuantiles) -> u64| {
        let of = |flow: &Flow| flow.delay_ns.as_ref().map_or(f64::NAN, |delays| millis(of(delays)));
        (of(live), of(simulated))
    };
    let (a, b) = delays(|delays| delays.p50);
    if b.is_finite() {
        section.must(&name("delay p50"), Unit::Millis, a, b, near(b, 0.1 * b + P50_MS));
        let (a, b) = delays(|delays| delays.p99);
        section.must(&name("delay p99"), Unit::Millis, a, b, near(b, segment_ms + P99_MS));
        let (a, b) = delays(|delays| delays.p999);
        section.show(&name("delay p99.9"), Unit::Millis, a, b);
        let (a, b) = delays(|delays| delays.max);
        section.show(&name("delay max"), Unit::Millis, a, b);
    }
    if let (Some(a), Some(b)) = (live.windows, simulated.windows) {
        section.show(&name("windows violated"), Unit::Count, float(a.violated), float(b.violated));
    }
    section.show(&name("longest gap"), Unit::Millis, millis(live.gap_ns), millis(simulated.gap_ns));
    for (kind, why) in [("live", &live.refused), ("simulated", &simulated.refused)] {
        if let Some(why) = why {
            section.note(format!("{kind}: {subscriber} refused {publisher}: {why}"));
        }
    }
}

fn link(section: &mut Section, live: &LinkRow, simulated: &LinkRow) {
    let name = format!("{} > {}", live.from, live.to);
    let reasons: BTreeSet<_> = live.dropped.keys().chain(simulated.dropped.keys()).collect();
    for reason in reasons {
        let of = |row: &LinkRow| float(row.dropped.get(reason).copied().unwrap_or_default());
        let (a, b) = (of(live), of(simulated));
        let off = (SHARE * b).max(DROPS_MIN);
        section.must(&format!("{name}: {reason}"), Unit::Count, a, b, near(b, off));
    }
    let (a, b) = (float(live.wire_bytes), float(simulated.wire_bytes));
    section.must(&format!("{name}: wire bytes"), Unit::Count, a, b, near(b, SHARE * b));
}

fn fault(section: &mut Section, live: &FaultRow, simulated: &FaultRow, cut: bool) {
    let name = format!("{}: streams that recovered", live.fault);
    let (a, b) = (float(live.again), float(simulated.again));
    section.must(&name, Unit::Count, a, b, near(b, 0.0));
    let after = |row: &FaultRow| row.again_after_ns.map_or(f64::NAN, millis);
    let (name, a, b) =
        (format!("{}: recovery of all streams", live.fault), after(live), after(simulated));
    match cut {
        true => section.must(&name, Unit::Millis, a, b, Bound::AtMost(AGAIN_MS_MAX)),
        false => section.show(&name, Unit::Millis, a, b),
    }
}
