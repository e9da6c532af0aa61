//! The streams of a tag for given proxies, with their cost and their use of links and nodes.
//!
//! This module is the definition of the cost models: the other modules compute the same values
//! faster, and tests compare them.

use crate::list::at;
use crate::model::{Form, Model};
use crate::problem::{CostModel, PlanTag};
use std::collections::BTreeSet;

/// The cost of a tag, and its use of limited resources in ascending order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) cost: f64,
    pub(crate) loads: Vec<(usize, f64)>,
}

/// Adds up the copies of streams.
pub(crate) struct Sum<'a, 'b> {
    model: &'a Model<'b>,
    tag: &'a PlanTag,
    usage: Usage,
    cpu: f64,
    bits: f64,
    /// True if the loads of resources without a limit are recorded too.
    is_complete: bool,
}

impl<'a, 'b> Sum<'a, 'b> {
    pub(crate) fn new(model: &'a Model<'b>, tag: &'a PlanTag) -> Self {
        let (usage, is_complete) = (Usage::default(), false);
        Self { model, tag, usage, cpu: 0.0, bits: 0.0, is_complete }
    }

    fn load(&mut self, resource: usize, amount: f64) {
        if amount > 0.0 && (self.is_complete || at(&self.model.limits, resource) < f64::INFINITY) {
            self.usage.loads.push((resource, amount));
        }
    }

    pub(crate) fn link(&mut self, link: usize, form: Form) {
        self.copy(link, form);
        self.bits(form);
    }

    /// Adds the bits of a form to the cost.
    pub(crate) fn bits(&mut self, form: Form) {
        self.bits += form.bits;
    }

    /// Adds a form on a link, except the cost of its bits.
    pub(crate) fn copy(&mut self, link: usize, form: Form) {
        let Some(ends) = self.model.problem.links.get(link) else { return };
        let first = self.model.first_node();
        let (send, receive) = (self.tag.cpu.send * form.rate, self.tag.cpu.receive * form.rate);
        self.load(link, form.bits);
        self.load(first + ends.from, send);
        self.load(first + ends.to, receive);
        self.cpu += send + receive;
    }

    pub(crate) fn path(&mut self, from: usize, to: usize, form: Form) {
        let model = self.model;
        model.routes.walk(from, to, |link| self.link(link, form));
    }

    pub(crate) fn scale(&mut self, node: usize, form: Form) {
        self.load(self.model.first_node() + node, form.scaling);
        self.cpu += form.scaling;
    }

    pub(crate) fn finish(mut self) -> Usage {
        self.usage.cost = self.model.bit_cost * self.bits + self.model.cpu_cost * self.cpu;
        merge(&mut self.usage.loads);
        self.usage
    }
}

/// Sorts loads by resource and adds up those of the same one.
fn merge(loads: &mut Vec<(usize, f64)>) {
    loads.sort_unstable_by_key(|(resource, _)| *resource);
    loads.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
}

impl Model<'_> {
    /// Returns the use of a tag whose subscribers are served by these proxies, one for each.
    pub(crate) fn usage(&self, tag: usize, proxies: &[usize]) -> Usage {
        self.usage_of(tag, proxies, false)
    }

    /// As [`usage`](Self::usage), and with `is_complete` also for resources without a limit.
    pub(crate) fn usage_of(&self, tag: usize, proxies: &[usize], is_complete: bool) -> Usage {
        let Some((spec, forms)) = self.tag(tag) else { return Usage::default() };
        let mut sum = Sum::new(self, spec);
        sum.is_complete = is_complete;
        let nodes: BTreeSet<usize> = proxies.iter().copied().collect();
        let scaled: BTreeSet<(usize, usize)> =
            proxies.iter().copied().zip(forms.of.clone()).collect();
        let ends = || proxies.iter().zip(&spec.subscribers).zip(&forms.of);
        for &from in &spec.publishers {
            match self.problem.cost {
                CostModel::PerSubscriber => {
                    for ((&node, to), &form) in ends() {
                        sum.path(from, node, forms.get(0));
                        sum.path(node, to.node, forms.get(form));
                        sum.scale(node, forms.get(form));
                    }
                    continue;
                }
                CostModel::SharedUpstream => {
                    nodes.iter().for_each(|&node| sum.path(from, node, forms.get(0)));
                    for ((&node, to), &form) in ends() {
                        sum.path(node, to.node, forms.get(form));
                    }
                }
                CostModel::Multicast => {
                    let mut used: Vec<(usize, usize)> = Vec::new();
                    for &node in &nodes {
                        self.routes.walk(from, node, |link| used.push((0, link)));
                    }
                    for ((&node, to), &form) in ends() {
                        self.routes.walk(node, to.node, |link| used.push((form, link)));
                    }
                    used.sort_unstable();
                    used.dedup();
                    let mut sent = BTreeSet::new();
                    for (form, link) in used {
                        sum.copy(link, forms.get(form));
                        if sent.insert((form, at(&self.first_on_segment, link))) {
                            sum.bits(forms.get(form));
                        }
                    }
                }
            }
            scaled.iter().for_each(|&(node, form)| sum.scale(node, forms.get(form)));
        }
        sum.finish()
    }

    /// Returns the cost that multicast on segments saves a tag, compared with a copy on each link.
    pub(crate) fn saved(&self, tag: usize, proxies: &[usize]) -> f64 {
        let usage = self.usage_of(tag, proxies, true);
        let price =
            |resource| if resource < self.first_node() { self.bit_cost } else { self.cpu_cost };
        let copies: f64 = usage.loads.iter().map(|&(of, load)| price(of) * load).sum();
        copies - usage.cost
    }

    /// Returns the load of a resource if only this subscriber of the tag existed.
    pub(crate) fn lone(&self, tag: usize, to: usize, node: usize, resource: usize) -> f64 {
        let Some((spec, forms)) = self.tag(tag) else { return 0.0 };
        let target = spec.subscribers.get(to).map_or(node, |to| to.node);
        let mut sum = Sum::new(self, spec);
        for &from in &spec.publishers {
            sum.path(from, node, forms.get(0));
            sum.path(node, target, forms.of_subscriber(to));
            sum.scale(node, forms.of_subscriber(to));
        }
        let loads = sum.finish().loads;
        loads.into_iter().filter(|(of, _)| *of == resource).map(|(_, load)| load).sum()
    }

    /// Adds the use of a tag to the loads of all resources.
    pub(crate) fn add(&self, loads: &mut [f64], usage: &Usage, sign: f64) {
        for &(resource, amount) in &usage.loads {
            if let Some(load) = loads.get_mut(resource) {
                *load += sign * amount;
            }
        }
    }

    /// Returns the first resource whose limit is exceeded.
    pub(crate) fn exceeded(&self, loads: &[f64]) -> Option<usize> {
        loads.iter().zip(&self.limits).position(|(&load, &limit)| is_over(load, limit))
    }
}

/// Returns true if a load exceeds a limit by more than rounding.
pub(crate) fn is_over(load: f64, limit: f64) -> bool {
    load > limit * (1.0 + 1e-9) + 1e-12
}
