//! Several proxies per tag with multicast, without limits: a local search with a lower bound, and
//! the mixed-integer program for small networks.

use crate::budget::Remaining;
use crate::facility::{Bounded, several};
use crate::list::{TOLERANCE, at, float};
use crate::model::Model;
use crate::program::{Answer, size, solve};
use crate::routes::UNREACHED;
use std::collections::BTreeSet;

/// The most variables for which the mixed-integer program replaces the search.
const VARIABLES_MAX: usize = 600;

/// Returns good proxies of a tag, or `None` if none were found.
pub(crate) fn grouped(
    model: &Model<'_>,
    tag: usize,
    remaining: &mut Remaining<'_>,
) -> Option<Bounded> {
    if size(model, &[tag]) <= VARIABLES_MAX
        && let Answer::Optimal(mut all) = solve(model, &[tag], false, remaining)
    {
        let proxies = all.get_mut(tag).map(std::mem::take)?;
        let cost = model.usage(tag, &proxies).cost;
        return Some(Bounded { proxies, cost, bound: cost });
    }
    let count = model.problem.tags.get(tag)?.subscribers.len();
    let single = model.ranked(tag).best(model, remaining).map(|best| vec![best.node; count]);
    let set = several(model, tag, remaining).map(|found| found.proxies);
    let with_cost = |proxies: Vec<usize>| (model.usage(tag, &proxies).cost, proxies);
    let starts = single.into_iter().chain(set).map(with_cost);
    let (mut cost, mut proxies) = starts.min_by(|a, b| a.0.total_cmp(&b.0))?;
    while let Some(better) = step(model, tag, &proxies, cost, remaining) {
        (cost, proxies) = better;
    }
    let bound = model.shares(tag).min(cost);
    Some(Bounded { proxies, cost, bound })
}

/// Moves one subscriber, or all subscribers of a proxy, to another node. Returns the first
/// improvement.
fn step(
    model: &Model<'_>,
    tag: usize,
    proxies: &[usize],
    cost: f64,
    remaining: &mut Remaining<'_>,
) -> Option<(f64, Vec<usize>)> {
    let (spec, _) = model.tag(tag)?;
    let used: BTreeSet<usize> = proxies.iter().copied().collect();
    let try_all = |movers: &[usize], node: usize| {
        let mut moved = proxies.to_vec();
        for &to in movers {
            if !model.in_time(tag, to, node) {
                return None;
            }
            if let Some(proxy) = moved.get_mut(to) {
                *proxy = node;
            }
        }
        let distinct: BTreeSet<usize> = moved.iter().copied().collect();
        let less = model.usage(tag, &moved).cost;
        (distinct.len() <= model.problem.proxies && less < cost * (1.0 - TOLERANCE))
            .then_some((less, moved))
    };
    for node in model.candidates(spec) {
        if remaining().is_zero() {
            return None;
        }
        for &old in used.iter().filter(|&&old| old != node) {
            let movers: Vec<usize> =
                (0..proxies.len()).filter(|&to| at(proxies, to) == old).collect();
            if let Some(better) = try_all(&movers, node) {
                return Some(better);
            }
        }
        if used.len() < model.problem.proxies || used.contains(&node) {
            let better = (0..proxies.len()).find_map(|to| try_all(&[to], node));
            if better.is_some() {
                return better;
            }
        }
    }
    None
}

impl Model<'_> {
    /// Returns a lower bound of the cost with multicast: each subscriber pays its share of the
    /// streams, even if it could share more links with fewer others. A path leaves each node once, so it pays one share of
    /// what a segment carries, too.
    fn shares(&self, tag: usize) -> f64 {
        let Some((spec, forms)) = self.tag(tag) else { return 0.0 };
        let publishers = float(spec.publishers.len());
        let trees: Vec<_> = spec.publishers.iter().map(|&from| self.routes.tree(from)).collect();
        let alone = |share_of: &dyn Fn(usize) -> (f64, f64), to: usize| -> f64 {
            let form = forms.of_subscriber(to);
            let target = spec.subscribers.get(to).map_or(0, |to| to.node);
            let (first, second) = share_of(at(&forms.of, to));
            let back = self.routes.back(target).iter().enumerate();
            let costs = back.filter(|(_, hops)| **hops != UNREACHED).map(|(node, &hops)| {
                let before: f64 = trees.iter().map(|tree| f64::from(tree.hops(node))).sum();
                let before = before * forms.get(0).per_link * first;
                before + f64::from(hops) * form.per_link * publishers * second
            });
            costs.fold(f64::INFINITY, f64::min)
        };
        let all = float(spec.subscribers.len());
        let of_form = |form: usize| float(forms.of.iter().filter(|of| **of == form).count());
        // The original form before and behind the proxy is one stream, so both parts have one share.
        let equal = |form: usize| match form {
            0 => (0.5 / all, 0.5 / all),
            _ => (1.0 / all, 1.0 / of_form(form)),
        };
        let shared: f64 = (0..spec.subscribers.len()).map(|to| alone(&equal, to)).sum();
        let single = (0..spec.subscribers.len())
            .map(|to| alone(&|form| if form == 0 { (0.5, 0.5) } else { (1.0, 1.0) }, to));
        shared.max(single.fold(0.0, f64::max))
    }
}
