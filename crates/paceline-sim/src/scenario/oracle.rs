//! The invariants of every run, whatever its scenario.

use super::plan::Plan;
use super::record::Record;
use super::summary::Summary;
use paceline_proto::ids::PublisherId;
use paceline_sched::Duration;
use std::collections::BTreeMap;

/// The time within which streams must run again after the end of a fault. Slow streams get additional time to
/// publish.
const AGAIN_WITHIN: Duration = Duration::from_secs(8);

/// Returns descriptions of the invariants that a run violates; empty if there are none.
///
/// The sums are not among them, since the [`World`](crate::World) checks its own.
#[must_use]
pub fn oracles(plan: &Plan, record: &Record) -> Vec<String> {
    let mut broken = Vec::new();
    arrivals(plan, record, &mut broken);
    recoveries(plan, record, &mut broken);
    broken
}

/// Checks that each arriving sample was published before, and that samples arrive in order and at most once.
fn arrivals(plan: &Plan, record: &Record, broken: &mut Vec<String>) {
    let published: BTreeMap<PublisherId, &[paceline_sched::Instant]> =
        record.published.iter().map(|life| (life.id, life.at.as_slice())).collect();
    for (subscriber, received) in plan.subscribers.iter().zip(&record.received) {
        let flow =
            || format!("{} at {}", subscriber.spec.pattern.as_str(), plan.node(subscriber.node));
        let mut last: BTreeMap<PublisherId, u64> = BTreeMap::new();
        for arrival in &received.arrivals {
            let at = published
                .get(&arrival.from)
                .and_then(|at| at.get(usize::try_from(arrival.seq).unwrap_or(usize::MAX)));
            let (seq, arrived) = (arrival.seq, arrival.at);
            match at {
                None => {
                    broken.push(format!("{}: got sample {seq}, which nobody published", flow()))
                }
                Some(at) if *at > arrived => {
                    broken.push(format!("{}: got sample {seq} at {arrived}, before {at}", flow()));
                }
                Some(_) => {}
            }
            if let Some(before) = last.insert(arrival.from, seq)
                && before >= seq
            {
                broken.push(format!("{}: got sample {seq} after {before}", flow()));
            }
        }
    }
}

/// Checks that every stream that ran before a fault runs again after it. Streams without enough time before
/// another fault or the end are skipped.
fn recoveries(plan: &Plan, record: &Record, broken: &mut Vec<String>) {
    let slowest = plan.publishers.iter().map(|publisher| publisher.period).max();
    let within = AGAIN_WITHIN.saturating_add(slowest.unwrap_or_default().mul_div(3, 1));
    let summary = Summary::of(plan, record, 0);
    let ends = plan
        .publishers
        .iter()
        .map(|p| p.lifetime)
        .chain(plan.subscribers.iter().map(|s| s.lifetime));
    let last_end = ends.filter_map(|lifetime| lifetime.to).fold(plan.duration, Duration::min);
    for (fault, row) in plan.faults.iter().zip(&summary.faults) {
        let Some(until) = fault.until else { continue };
        let quiet = until.saturating_add(within);
        let other = |other: &&super::Fault| {
            other.at < quiet && other.until.is_none_or(|end| end > fault.at) && *other != fault
        };
        if quiet > last_end || plan.faults.iter().any(|one| other(&one)) {
            continue;
        }
        if row.again < row.ran {
            let (again, ran, what) = (row.again, row.ran, &row.fault);
            broken.push(format!("{what}: {again} of {ran} streams ran again within {within}"));
        }
    }
}
