//! Checks faults.

use super::{Fields, joined, known, needs_at, pair, tables, wire};
use crate::impair::Impairment;
use crate::scenario::course::CapacityCourse;
use crate::scenario::file::{self, File};
use crate::scenario::plan::{Fault, FaultKind, Plan};
use crate::scenario::problems::Checked;
use crate::scenario::values::{Place, TIME_MAX, span_of};
use core::ops::Range;
use paceline_sched::{Capacity, Duration};
use toml::Spanned;

const ONE: &str = "set one of cut = [\"a\", \"b\"], crash = \"a\", stall = \"a\", impair = [\"a\", \"b\"] \
                   and capacity = [\"a\", \"b\"]";

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
    let between = [fault.cut.is_some(), fault.impair.is_some(), fault.capacity.is_some()];
    let nodes = [fault.crash.is_some(), fault.stall.is_some()];
    let kinds = between.into_iter().chain(nodes);
    if kinds.filter(|there| *there).count() != 1 {
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
    if let (None, None, Some(rate)) = (&fault.impair, &fault.capacity, &fault.rate) {
        let rule =
            "applies only to capacity = [\"a\", \"b\"] and impair = [\"a\", \"b\"]; remove it";
        checked.refuse(&rate.span(), &place.name, "rate", rule);
    }
    let spans = [
        ("ramp", fault.ramp.as_ref().map(Spanned::span)),
        ("rates", fault.rates.as_ref().map(Spanned::span)),
        ("every", fault.every.as_ref().map(Spanned::span)),
    ];
    for (field, span) in spans {
        if let (None, Some(span)) = (&fault.capacity, span) {
            let rule = "applies only to capacity = [\"a\", \"b\"]; remove it";
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
    let (field, list) = match (&fault.cut, &fault.capacity) {
        (Some(list), _) => ("cut", list),
        (None, Some(list)) => ("capacity", list),
        (None, None) => ("impair", fault.impair.as_ref()?),
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
    if field == "capacity" {
        let course = course(place, fault, (link.wire.rate, &list.span()), checked)?;
        return Some(FaultKind::Capacity(between, course));
    }
    let rate = place.capacity("rate", &fault.rate, checked).or(link.wire.rate);
    let before = Impairment { rate, ..link.wire };
    Some(FaultKind::Impair(between, wire(place, &Fields::of_fault(fault), before, checked)))
}

/// Returns the capacity over time of a fault: a step, a ramp from `before`, or a trace.
fn course(
    place: &Place,
    fault: &file::Fault,
    (before, span): (Option<Capacity>, &Range<usize>),
    checked: &mut Checked<'_>,
) -> Option<CapacityCourse> {
    let Some(before) = before else {
        let rule = "names a link whose wire has no rate; set rate in its [[link]]";
        checked.refuse(span, &place.name, "capacity", rule);
        return None;
    };
    let range = |fix| (Duration::from_millis(10)..=TIME_MAX, fix);
    let every = "the time of each of the rates";
    let every = place.seconds("every", &fault.every, range(every), checked);
    let fix = "the time within which the rate changes; omit it for a step";
    let ramp = place.seconds("ramp", &fault.ramp, range(fix), checked);
    let to = place.capacity("rate", &fault.rate, checked);
    match (&fault.rates, to) {
        (None, Some(to)) if fault.every.is_none() => Some(ramp.map_or_else(
            || CapacityCourse::step(to),
            |within| CapacityCourse::ramp(before, to, within),
        )),
        (Some(rates), None) if fault.ramp.is_none() && every.is_some() => {
            let most = CapacityCourse::CHANGES_MAX;
            let all: Result<Vec<Capacity>, _> =
                rates.get_ref().iter().map(|it| it.parse()).collect();
            match all {
                Ok(all) if (1..=most).contains(&all.len()) => {
                    Some(CapacityCourse::trace(&all, every.unwrap_or_default()))
                }
                Ok(all) => {
                    let rule = format!("has {} rates, must be 1 to {most}", all.len());
                    checked.refuse(&rates.span(), &place.name, "rates", &rule);
                    None
                }
                Err(error) => {
                    let rule = format!("{error}, each as rates = [\"20mbit\", \"2mbit\"]");
                    checked.refuse(&rates.span(), &place.name, "rates", &rule);
                    None
                }
            }
        }
        (None, None) | (Some(_), _) | (None, Some(_)) => {
            let rule = "set rate, optionally with ramp, or rates with every";
            checked.add(&place.span, format!("{}{rule}", place.name));
            None
        }
    }
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
        | (
            FaultKind::Impair(a, ..) | FaultKind::Capacity(a, ..),
            FaultKind::Impair(b, ..) | FaultKind::Capacity(b, ..),
        ) => same(*a, *b),
        (FaultKind::Crash(a) | FaultKind::Stall(a), FaultKind::Crash(b) | FaultKind::Stall(b)) => {
            a == b
        }
        (
            FaultKind::Cut(_)
            | FaultKind::Crash(_)
            | FaultKind::Stall(_)
            | FaultKind::Impair(..)
            | FaultKind::Capacity(..),
            _,
        ) => false,
    }
}
