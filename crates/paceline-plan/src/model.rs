//! The numbers of a problem that all planners use: forms, costs per link, limits and paths.

use crate::check::check;
use crate::error::PlanError;
use crate::problem::{CostModel, Objective, PlanLink, PlanProblem, PlanSubscriber, PlanTag};
use crate::routes::{Routes, UNREACHED};
use std::collections::{BTreeMap, BTreeSet};

/// A stream of a publisher in one form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Form {
    /// One sample in this many.
    pub(crate) every: u32,
    /// The bytes of a sample.
    pub(crate) bytes: u64,
    /// The samples per second.
    pub(crate) rate: f64,
    /// The bits per second.
    pub(crate) bits: f64,
    /// The processor time to scale to this form, in seconds per second; 0 for the original.
    pub(crate) scaling: f64,
    /// The cost of one link.
    pub(crate) per_link: f64,
}

/// The forms of a tag, the original first.
#[derive(Clone, Debug)]
pub(crate) struct TagForms {
    pub(crate) forms: Vec<Form>,
    /// The form of each subscriber.
    pub(crate) of: Vec<usize>,
}

impl TagForms {
    pub(crate) fn get(&self, form: usize) -> Form {
        let none = Form { every: 1, bytes: 0, rate: 0.0, bits: 0.0, scaling: 0.0, per_link: 0.0 };
        self.forms.get(form).copied().unwrap_or(none)
    }

    pub(crate) fn of_subscriber(&self, subscriber: usize) -> Form {
        self.get(crate::list::at(&self.of, subscriber))
    }
}

/// A checked problem with its paths. Resources are the links, then the nodes.
#[derive(Debug)]
pub(crate) struct Model<'a> {
    pub(crate) problem: &'a PlanProblem,
    pub(crate) routes: Routes<'a>,
    pub(crate) tags: Vec<TagForms>,
    /// The limit of each resource: bits per second of a link, seconds per second of a node.
    pub(crate) limits: Vec<f64>,
    /// True if each link has one in the other direction, so that distances are symmetric.
    pub(crate) is_symmetric: bool,
    /// The first link from the same node on the same segment, for each link.
    pub(crate) first_on_segment: Vec<usize>,
    /// The cost of a bit per second on a link.
    pub(crate) bit_cost: f64,
    /// The cost of a second per second on a node.
    pub(crate) cpu_cost: f64,
}

impl<'a> Model<'a> {
    pub(crate) fn new(problem: &'a PlanProblem) -> Result<Self, PlanError> {
        check(problem)?;
        let (bit_cost, cpu_cost) = match problem.objective {
            Objective::Bandwidth => (1.0, 0.0),
            Objective::Cpu => (0.0, 1.0),
            Objective::Weighted(weight) => (1.0, weight),
        };
        let links = problem.links.iter().map(|link| link.capacity);
        let links = links.map(|rate| rate.map_or(f64::INFINITY, |rate| wide(rate.bits_per_s())));
        let nodes = problem.nodes.iter().map(|node| node.cpu.unwrap_or(f64::INFINITY));
        let limits = links.chain(nodes).collect();
        let tags = problem.tags.iter().map(|tag| forms(tag, bit_cost, cpu_cost)).collect();
        let routes = Routes::new(problem);
        let pairs: BTreeSet<(usize, usize)> =
            problem.links.iter().map(|link| (link.from, link.to)).collect();
        let is_symmetric = pairs.iter().all(|&(from, to)| pairs.contains(&(to, from)));
        let first_on_segment = first_on_segment(problem);
        let model = Self {
            problem,
            routes,
            tags,
            limits,
            is_symmetric,
            first_on_segment,
            bit_cost,
            cpu_cost,
        };
        model.connected()?;
        Ok(model)
    }

    fn connected(&self) -> Result<(), PlanError> {
        for tag in &self.problem.tags {
            for &publisher in &tag.publishers {
                let tree = self.routes.tree(publisher);
                let cut = |to: &&PlanSubscriber| tree.hops(to.node) == UNREACHED;
                if let Some(subscriber) = tag.subscribers.iter().find(cut) {
                    return Err(PlanError::Disconnected {
                        tag: tag.tag.clone(),
                        publisher: self.name(publisher),
                        subscriber: self.name(subscriber.node),
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns true if some links count bits together.
    pub(crate) fn shares_segments(&self) -> bool {
        self.first_on_segment.iter().enumerate().any(|(link, first)| link != *first)
    }

    pub(crate) fn name(&self, node: usize) -> String {
        self.problem.nodes.get(node).map_or_else(String::new, |node| node.id.clone())
    }

    /// Returns the index of the first node among the resources.
    pub(crate) fn first_node(&self) -> usize {
        self.problem.links.len()
    }

    pub(crate) fn tag(&self, tag: usize) -> Option<(&'a PlanTag, &TagForms)> {
        Some((self.problem.tags.get(tag)?, self.tags.get(tag)?))
    }

    /// Returns the nodes that may run a proxy of the tag and are reached by all publishers.
    pub(crate) fn candidates(&self, tag: &PlanTag) -> Vec<usize> {
        let trees: Vec<_> = tag.publishers.iter().map(|&from| self.routes.tree(from)).collect();
        let is_reached = |node: usize| trees.iter().all(|tree| tree.hops(node) != UNREACHED);
        let is_allowed =
            |node: &usize| tag.allowed.as_ref().is_none_or(|allowed| allowed.contains(node));
        let nodes = 0..self.problem.nodes.len();
        nodes.filter(|&node| is_reached(node)).filter(is_allowed).collect()
    }
}

fn first_on_segment(problem: &PlanProblem) -> Vec<usize> {
    let shares = problem.cost == CostModel::Multicast;
    let mut known = BTreeMap::new();
    let first = |(link, spec): (usize, &PlanLink)| match spec.segment.filter(|_| shares) {
        Some(segment) => *known.entry((spec.from, segment)).or_insert(link),
        None => link,
    };
    problem.links.iter().enumerate().map(first).collect()
}

/// Converts a rate or size for arithmetic on costs. Values above 2^53 are rounded.
pub(crate) fn wide(value: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "costs are compared with a relative tolerance")]
    let float = value as f64;
    float
}

fn forms(tag: &PlanTag, bit_cost: f64, cpu_cost: f64) -> TagForms {
    let make = |every: u32, bytes: u64| {
        let rate = 1e9 / (wide(tag.period.as_nanos()) * f64::from(every));
        let bits = wide(bytes) * 8.0 * rate;
        let is_original = every == 1 && bytes == tag.bytes;
        let scaling = if is_original { 0.0 } else { tag.cpu.scale * rate };
        let per_link = bit_cost * bits + cpu_cost * (tag.cpu.send + tag.cpu.receive) * rate;
        Form { every, bytes, rate, bits, scaling, per_link }
    };
    let mut forms = vec![make(1, tag.bytes)];
    let mut of = Vec::with_capacity(tag.subscribers.len());
    for subscriber in &tag.subscribers {
        let same = |form: &Form| (form.every, form.bytes) == (subscriber.scale, subscriber.bytes);
        let known = forms.iter().position(same);
        of.push(known.unwrap_or(forms.len()));
        if known.is_none() {
            forms.push(make(subscriber.scale, subscriber.bytes));
        }
    }
    TagForms { forms, of }
}
