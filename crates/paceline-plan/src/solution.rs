//! A plan: the proxies, and the path and delay of each stream.

use crate::error::PlanError;
use crate::list::{Assignment, TOLERANCE, at};
use crate::model::Model;
use crate::problem::{PlanProblem, PlanTag};
use crate::reason::because;
use paceline_sched::Duration;
use std::collections::BTreeMap;

/// The proven quality of a plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PlanState {
    /// No plan costs less.
    Optimal,
    /// A plan could cost less, by at most the gap.
    Gap,
}

impl std::fmt::Display for PlanState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Optimal => "optimal",
            Self::Gap => "gap",
        })
    }
}

/// A proxy of a tag.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlannedProxy {
    /// The index of the tag.
    pub tag: usize,
    /// The index of the proxy's node.
    pub node: usize,
    /// The indices of the tag's subscribers that it serves, in ascending order.
    pub subscribers: Vec<usize>,
}

/// A stream from a publisher to a subscriber.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlannedStream {
    /// The index of the tag.
    pub tag: usize,
    /// The index of the subscriber in its tag.
    pub subscriber: usize,
    /// The index of the proxy's node.
    pub proxy: usize,
    /// The nodes from the publisher over the proxy to the subscriber.
    pub path: Vec<usize>,
    /// The delay by the delay model.
    pub delay: Duration,
    /// The requested delay bound.
    pub within: Option<Duration>,
}

/// A plan for all tags of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The proven quality.
    pub state: PlanState,
    /// The part of the cost by which a better plan could be cheaper: (cost − bound) ÷ cost.
    pub gap: f64,
    /// The cost: bits per second, seconds of processor time per second, or their weighted sum.
    pub cost: f64,
    /// A proven lower bound of the cost of every plan.
    pub bound: f64,
    /// The proxies by tag and node.
    pub proxies: Vec<PlannedProxy>,
    /// The streams by tag, publisher and subscriber.
    pub streams: Vec<PlannedStream>,
    /// The bits per second on each link.
    pub link_bits: Vec<f64>,
    /// The processor time on each node in seconds per second.
    pub node_cpu: Vec<f64>,
    /// The reason for each place, compared with the alternatives.
    pub because: String,
}

/// Returns the cost of given places: for each tag, the node of each subscriber's proxy. Delay bounds and limits are not
/// checked.
///
/// # Errors
/// [`PlanError::Value`] for an invalid problem or if `places` does not have a known node for each subscriber, and
/// [`PlanError::Disconnected`].
pub fn cost_of(problem: &PlanProblem, places: &[Vec<usize>]) -> Result<f64, PlanError> {
    let model = Model::new(problem)?;
    let fits = |(tag, nodes): (&PlanTag, &Vec<usize>)| {
        let reached = model.candidates(&PlanTag { allowed: None, ..tag.clone() });
        nodes.len() == tag.subscribers.len() && nodes.iter().all(|node| reached.contains(node))
    };
    if places.len() != problem.tags.len() || !problem.tags.iter().zip(places).all(fits) {
        return Err(PlanError::Value(
            "places must have a reachable node for each subscriber of each tag".to_owned(),
        ));
    }
    Ok(model.total(&places.to_vec()))
}

impl Model<'_> {
    /// Returns the sum of the costs of all tags.
    pub(crate) fn total(&self, assignment: &Assignment) -> f64 {
        assignment.iter().enumerate().map(|(tag, proxies)| self.usage(tag, proxies).cost).sum()
    }

    /// Returns true if all bounds and limits are met.
    pub(crate) fn is_valid(&self, assignment: &Assignment) -> bool {
        let mut loads = vec![0.0; self.limits.len()];
        for (tag, proxies) in assignment.iter().enumerate() {
            let mut ends = proxies.iter().enumerate();
            if !ends.all(|(to, &node)| self.in_time(tag, to, node)) {
                return false;
            }
            self.add(&mut loads, &self.usage(tag, proxies), 1.0);
        }
        self.exceeded(&loads).is_none()
    }

    /// Returns the plan of an assignment. `bound` is a proven lower bound of the cost.
    pub(crate) fn planned(&self, assignment: &Assignment, bound: f64) -> Planned {
        let cost = self.total(assignment);
        let bound = bound.min(cost).max(0.0);
        let gap = if cost > 0.0 { (cost - bound) / cost } else { 0.0 };
        let (state, gap, bound) = match gap <= TOLERANCE {
            true => (PlanState::Optimal, 0.0, cost),
            false => (PlanState::Gap, gap, bound),
        };
        let (mut proxies, mut streams) = (Vec::new(), Vec::new());
        for (tag, nodes) in assignment.iter().enumerate() {
            let mut served: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            for (subscriber, &node) in nodes.iter().enumerate() {
                served.entry(node).or_default().push(subscriber);
            }
            proxies.extend(served.into_iter().map(|(node, subscribers)| PlannedProxy {
                tag,
                node,
                subscribers,
            }));
            self.streams(&mut streams, tag, nodes);
        }
        let because = because(self, assignment);
        let (link_bits, node_cpu) = self.all_loads(assignment);
        Planned { state, gap, cost, bound, proxies, streams, link_bits, node_cpu, because }
    }

    /// Returns the loads of all links and nodes, also of those without a limit.
    fn all_loads(&self, assignment: &Assignment) -> (Vec<f64>, Vec<f64>) {
        let mut loads = vec![0.0; self.limits.len()];
        for (tag, proxies) in assignment.iter().enumerate() {
            let usage = self.usage_of(tag, proxies, true);
            self.add(&mut loads, &usage, 1.0);
        }
        let nodes = loads.split_off(self.first_node());
        (loads, nodes)
    }

    fn streams(&self, streams: &mut Vec<PlannedStream>, tag: usize, nodes: &[usize]) {
        let Some(spec) = self.problem.tags.get(tag) else { return };
        for &from in &spec.publishers {
            for (subscriber, to) in spec.subscribers.iter().enumerate() {
                let proxy = at(nodes, subscriber);
                let mut path = self.routes.nodes(from, proxy);
                path.extend(self.routes.nodes(proxy, to.node).into_iter().skip(1));
                let delay = Duration::from_nanos(self.delay(tag, from, subscriber, proxy));
                let within = to.within;
                streams.push(PlannedStream { tag, subscriber, proxy, path, delay, within });
            }
        }
    }
}
