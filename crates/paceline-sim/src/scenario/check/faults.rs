//! Checks faults.

use super::{Fields, joined, known, needs_at, pair, tables, wire};
use crate::impair::Impairment;
use crate::scenario::file::{self, File};
use crate::scenario::plan::{Fault, FaultKind, Plan};
use crate::scenario::problems::Checked;
use crate::scenario::values::{Place, span_of};
use paceline_sched::Duration;
use toml::Spanned;

const ONE: &str = "set one of cut = [\"a\", \"b\"], crash = \"a\", stall = \"a\" and impair = \
                   [\"a\", \"b\"]";

pub(super) fn faults(written: &File, plan: &mut Plan, checked: &mut Checked<'_>) {
    for (place, fault) in tables("fault", &written.fault) {
        let Some(made) = one(&place, fault, plan, checked) else { continue };
        if let Some(other) = plan.faults.iter().find(|other| meet(other, &made)) {
            let text = plan.describe(other);
            checked.add(
                &place.span,
                format!(
                    "{}overlaps '{text}' at {}: end one fault before the other begins",
                    place.name, other.at
                ),
            );
        }
        plan.faults.push(made);
    }
    plan.faults.sort_by_key(|fault| fault.at);
}

fn one(
    place: &Place,
    fault: &file::Fault,
    plan: &Plan,
    checked: &mut Checked<'_>,
) -> Option<Fault> {
    let at = needs_at(place, &fault.at, plan.duration, checked);
    let kinds =
        [fault.cut.is_some(), fault.crash.is_some(), fault.stall.is_some(), fault.impair.is_some()];
    if kinds.iter().filter(|there| **there).count() != 1 {
        checked.add(&place.span, format!("{}{ONE}", place.name));
        return None;
    }
    stray(place, fault, checked);
    let lasts = lasts(place, fault, at, plan, checked);
    let what = kind(place, fault, plan, checked)?;
    let at = at?;
    Some(Fault { at, until: lasts.map(|lasts| at.saturating_add(lasts)), what })
}

/// Rejects fields that belong to another kind of fault.
fn stray(place: &Place, fault: &file::Fault, checked: &mut Checked<'_>) {
    if let (None, Some(restart)) = (&fault.crash, &fault.restart_after) {
        let rule = "applies only to a crash; use for or remove it";
        checked.refuse(&restart.span(), &place.name, "restart_after", rule);
    }
    if let (Some(_), Some(time)) = (&fault.crash, &fault.lasts) {
        let rule = "does not apply to a crash; use restart_after";
        checked.refuse(&time.span(), &place.name, "for", rule);
    }
    let spans = [
        ("rate", fault.rate.as_ref().map(Spanned::span)),
        ("delay", fault.delay.as_ref().map(Spanned::span)),
        ("jitter", fault.jitter.as_ref().map(Spanned::span)),
        ("loss", fault.loss.as_ref().map(Spanned::span)),
        ("reorder", fault.reorder.as_ref().map(Spanned::span)),
        ("duplicate", fault.duplicate.as_ref().map(Spanned::span)),
        ("queue", fault.queue.as_ref().map(Spanned::span)),
    ];
    for (field, span) in spans {
        if let (None, Some(span)) = (&fault.impair, span) {
            let rule = "applies only to impair = [\"a\", \"b\"]; remove it";
            checked.refuse(&span, &place.name, field, rule);
        }
    }
}

fn lasts(
    place: &Place,
    fault: &file::Fault,
    at: Option<Duration>,
    plan: &Plan,
    checked: &mut Checked<'_>,
) -> Option<Duration> {
    let (field, value) = match fault.crash {
        Some(_) => ("restart_after", &fault.restart_after),
        None => ("for", &fault.lasts),
    };
    let fix = "omit it for a permanent fault";
    let lasts = place.time(field, value, fix, checked)?;
    let end = at.unwrap_or_default().saturating_add(lasts);
    if lasts.is_zero() || end > plan.duration {
        let rule =
            format!("must be above 0 and end within duration, which is {}; {fix}", plan.duration);
        checked.refuse(&span_of(value, place), &place.name, field, &rule);
    }
    Some(lasts)
}

fn kind(
    place: &Place,
    fault: &file::Fault,
    plan: &Plan,
    checked: &mut Checked<'_>,
) -> Option<FaultKind> {
    let node = |name: &str| known(plan, name);
    if fault.crash.is_some() {
        return place.text("crash", &fault.crash, node, checked).map(FaultKind::Crash);
    }
    if fault.stall.is_some() {
        return place.text("stall", &fault.stall, node, checked).map(FaultKind::Stall);
    }
    let (field, list) = match &fault.cut {
        Some(list) => ("cut", list),
        None => ("impair", fault.impair.as_ref()?),
    };
    let between = pair(place, field, list, plan, checked)?;
    let Some(link) = joined(plan, between) else {
        let rule = "names two nodes without a link between them; name the two of one [[link]]";
        checked.refuse(&list.span(), &place.name, field, rule);
        return None;
    };
    if field == "cut" {
        return Some(FaultKind::Cut(between));
    }
    let rate = place.capacity("rate", &fault.rate, checked).or(link.wire.rate);
    let before = Impairment { rate, ..link.wire };
    Some(FaultKind::Impair(between, wire(place, &Fields::of_fault(fault), before, checked)))
}

/// Returns true if two faults affect the same thing at the same time.
fn meet(one: &Fault, other: &Fault) -> bool {
    let ends = |fault: &Fault| fault.until.unwrap_or(Duration::MAX);
    if ends(one) <= other.at || ends(other) <= one.at {
        return false;
    }
    let same = |[a, b]: [usize; 2], other: [usize; 2]| other == [a, b] || other == [b, a];
    match (&one.what, &other.what) {
        (FaultKind::Cut(a), FaultKind::Cut(b))
        | (FaultKind::Impair(a, ..), FaultKind::Impair(b, ..)) => same(*a, *b),
        (FaultKind::Crash(a) | FaultKind::Stall(a), FaultKind::Crash(b) | FaultKind::Stall(b)) => {
            a == b
        }
        (
            FaultKind::Cut(_) | FaultKind::Crash(_) | FaultKind::Stall(_) | FaultKind::Impair(..),
            _,
        ) => false,
    }
}
