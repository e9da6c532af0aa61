//! Runs with service curves, a tree of classes and policers. They must not panic, and must decide each sample
//! at most once and never before its arrival.

use super::{STREAMS_MAX, setup, spec, time};
use crate::input::Input;
use paceline_sched::curve::Curve;
use paceline_sched::discipline::{Eligibility, Hierarchy, LeafSpec, Policy};
use paceline_sched::hfsc::{ClassIndex, Curves};
use paceline_sched::police::{Action, Combined, Constraint, Dual, Moving, Police, PolicedUnit};
use paceline_sched::timeline::{Arrivals, SampleDecision, Spec, Step, Timeline};
use paceline_sched::{Duration, Instant};
use std::collections::BTreeSet;

const CLASSES_MAX: u8 = 8;
/// Fewer steps than a plain run, since decisions in a tree take longer.
const STEPS_MAX: usize = 300;

fn curve(input: &mut Input<'_>) -> Option<Curve> {
    let (first, second) = (time(input), time(input));
    let d = Duration::from_nanos(time(input));
    match input.below(4) {
        0 => Curve::linear(first).ok(),
        1 => Curve::two_piece(first, d, second).ok(),
        2 => Curve::burst(first, d, second).ok(),
        _ => None,
    }
}

fn curves(input: &mut Input<'_>) -> Curves {
    Curves { real_time: curve(input), link_share: curve(input), upper_limit: curve(input) }
}

fn constraint(input: &mut Input<'_>) -> Option<Constraint> {
    let unit = input.one_of(&[PolicedUnit::Bytes, PolicedUnit::Packets]);
    let (first, second) = (time(input), time(input));
    let lapse = |input: &mut Input<'_>| Duration::from_nanos(time(input));
    let constraint = match input.below(4) {
        0 => Constraint::leaky(unit, first, second),
        1 => Constraint::jumping(unit, first, lapse(input)),
        2 => {
            let (spacing, average, interval) = (lapse(input), lapse(input), lapse(input));
            Constraint::moving(unit, Moving { spacing, average, interval, largest: first })
        }
        _ => {
            let (burst, rate) = (time(input), time(input));
            Constraint::dual(unit, Dual { peak_burst: first, peak_rate: second, burst, rate })
        }
    };
    constraint.ok()
}

fn police(input: &mut Input<'_>) -> Option<Police> {
    let constraints: Vec<_> = (0..input.below(3)).filter_map(|_| constraint(input)).collect();
    let action = input.one_of(&[Action::Delay, Action::Drop, Action::Demote]);
    Combined::new(&constraints).ok().map(|policers| Police { policers, action })
}

/// Returns a tree and those of its classes that may have streams.
fn tree(input: &mut Input<'_>) -> (Hierarchy, Vec<ClassIndex>) {
    let (mut tree, mut parents, mut leaves) = (Hierarchy::new(), vec![ClassIndex::ROOT], vec![]);
    for _ in 0..input.below(CLASSES_MAX) {
        let (parent, curves) = (input.one_of(&parents), curves(input));
        if input.flag() {
            parents.extend(tree.add(parent, curves));
            continue;
        }
        let policy = input.one_of(&Policy::ALL);
        let eligibility = input.one_of(&[Eligibility::WorkConserving, Eligibility::OncePerPeriod]);
        leaves.extend(tree.add_leaf(parent, &LeafSpec { curves, policy, eligibility }));
    }
    (tree, leaves)
}

fn classed(input: &mut Input<'_>, leaves: &[ClassIndex]) -> Spec {
    let mut spec = spec(input);
    if input.flag() {
        spec.terms = spec.terms.with_curves(curves(input));
    }
    spec.police = police(input);
    // A policer checks each sample on arrival, even while one with an endless transmission waits.
    match &mut spec.arrivals {
        Arrivals::Every { count, .. } if spec.police.is_some() => *count = (*count).min(1_000),
        Arrivals::Backlogged => spec.police = None,
        Arrivals::Every { .. } | Arrivals::At(_) => {}
    }
    spec.class = (!leaves.is_empty()).then(|| input.one_of(leaves));
    spec
}

/// Runs `data` as a link, its classes and its streams.
pub(super) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let setup = setup(&mut input);
    let (tree, leaves) = tree(&mut input);
    let count = 1 + input.below(STREAMS_MAX);
    let specs: Vec<_> = (0..count).map(|_| classed(&mut input, &leaves)).collect();
    let arrivals: Vec<_> = specs.iter().map(|spec| spec.arrivals.clone()).collect();
    let mut timeline = match leaves.is_empty() {
        true => Timeline::new(setup, specs),
        false => Timeline::with_classes(setup, tree, specs),
    };
    let (mut decided, mut free) = (BTreeSet::new(), Instant::ZERO);
    for _ in 0..STEPS_MAX {
        match timeline.next() {
            Some(Step::Chosen(pick)) => {
                assert!(pick.at >= free && pick.at < setup.end, "{pick:?}");
                free = pick.at;
            }
            Some(Step::Decided(SampleDecision { at, stream, seq, finish, .. })) => {
                let arrived = arrivals[stream.0 as usize].nth(seq);
                assert!(
                    arrived.is_some_and(|arrived| arrived <= at),
                    "{stream:?} {seq}: {arrived:?} {at:?}"
                );
                assert!(finish.is_none_or(|finish| finish >= at), "{stream:?} {seq}");
                assert!(decided.insert((stream, seq)), "{stream:?} {seq} twice");
            }
            None => return,
        }
    }
}
