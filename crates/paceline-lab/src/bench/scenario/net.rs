//! The network of a scenario: one namespace per node, one [`Road`] per link.

use super::road::{Passed, Road, is_plain};
use super::trust::Certificates;
use crate::bench::protocol::NetLink;
use crate::netns::{Namespace, remove_leftovers};
use anyhow::{Context as _, Result};
use paceline::Node;
use paceline_sim::impair::Impairment;
use paceline_sim::scenario::{FaultKind, Plan, Protocol};
use std::path::PathBuf;
use std::rc::Rc;

/// The largest number of links; each link has its own subnet of 10.254.0.0/16.
const NETS_MAX: usize = 250;

/// Returns a node's name for its link to another node.
pub(in crate::bench) fn link_name(plan: &Plan, node: usize, other: usize) -> String {
    format!("{}-{}", plan.node(node), plan.node(other))
}

/// Checks that live nodes support the scenario; the error suggests a fix.
pub(super) fn check(plan: &Plan) -> Result<(), String> {
    for (place, node) in plan.nodes.iter().enumerate() {
        let links = plan.links.iter().filter(|link| link.between.contains(&place)).count();
        if links > Node::LINKS_MAX {
            let name = &node.name;
            return Err(format!(
                "node {name} has {links} links, must be at most {max} on a live node; try a chain \
                 of nodes, or paceline simulate",
                max = Node::LINKS_MAX
            ));
        }
        if node.drift_ppm != 0 || !node.steps.is_empty() {
            return Err(only_simulated(&format!("the clock of node {}", node.name)));
        }
    }
    if plan.links.len() > NETS_MAX {
        return Err(format!(
            "{} links, must be at most {NETS_MAX} on live nodes; try paceline simulate",
            plan.links.len()
        ));
    }
    for publisher in &plan.publishers {
        if matches!(publisher.content, paceline_sim::scenario::Content::Video(_)) {
            return Err(only_simulated(&format!("video on {}", publisher.tag.as_str())));
        }
    }
    Ok(())
}

fn only_simulated(what: &str) -> String {
    format!("{what} is available only in simulation; remove it, or try paceline simulate")
}

/// Returns true if a link ever does more to packets than limit their rate.
fn is_impaired(plan: &Plan, link: usize) -> bool {
    let Some(link) = plan.links.get(link) else { return false };
    let same = |[a, b]: [usize; 2]| link.between == [a, b] || link.between == [b, a];
    let fault = |what: &FaultKind| match what {
        FaultKind::Impair(between, wire) => same(*between) && !is_plain(wire),
        // The emulator changes its rate without losing its queue.
        FaultKind::Capacity(between, _) => same(*between),
        FaultKind::Cut(_) | FaultKind::Crash(_) | FaultKind::Stall(_) => false,
    };
    !is_plain(&link.wire) || plan.faults.iter().any(|one| fault(&one.what))
}

/// The network of a scenario; dropping this removes it.
pub(super) struct Net<'p> {
    plan: &'p Plan,
    certificates: Option<Certificates>,
    /// The roads by link. They must end before their namespaces, so they are declared first.
    roads: Vec<Road>,
    /// The namespaces by node.
    nodes: Vec<Rc<Namespace>>,
}

impl<'p> Net<'p> {
    pub(super) fn new(plan: &'p Plan) -> Result<Self> {
        remove_leftovers();
        Self::build(plan).context("cannot build the network of the scenario")
    }

    fn build(plan: &'p Plan) -> Result<Self> {
        let nodes = 0..plan.nodes.len();
        let nodes = nodes.map(|node| Namespace::of_scene(node).map(Rc::new));
        let is_quic = plan.links.iter().any(|link| link.protocol == Protocol::Quic);
        let names = plan.nodes.iter().map(|node| node.name.as_str());
        let certificates = is_quic.then(|| Certificates::issue(names)).transpose()?;
        let nodes = nodes.collect::<Result<_>>()?;
        let mut net = Self { plan, certificates, roads: Vec::new(), nodes };
        let mut seeds = paceline_sim::Random::new(plan.seed);
        for (place, link) in plan.links.iter().enumerate() {
            let [a, b] = link.between;
            let ends = [net.node(a)?, net.node(b)?].map(Rc::clone);
            let seed = seeds.below(u64::MAX);
            let impaired = is_impaired(plan, place).then_some(seed);
            net.roads.push(Road::new(ends, place, link.wire, impaired)?);
        }
        Ok(net)
    }

    fn node(&self, node: usize) -> Result<&Rc<Namespace>> {
        self.nodes.get(node).with_context(|| format!("no node {node}"))
    }

    /// Returns the name of a node's namespace.
    pub(super) fn namespace(&self, node: usize) -> Result<&str> {
        Ok(self.node(node)?.name())
    }

    /// Returns the link configurations of a node.
    pub(super) fn links(&self, node: usize) -> Vec<NetLink> {
        let mut links = Vec::new();
        for (place, link) in self.plan.links.iter().enumerate() {
            let [a, b] = link.between;
            let endpoint = format!("{}/10.254.{place}.1:7600", link.protocol.name());
            let other = if a == node { b } else { a };
            if ![a, b].contains(&node) {
                continue;
            }
            let certificates = self.certificates.as_ref();
            let certificates = certificates.filter(|_| link.protocol == Protocol::Quic);
            links.push(NetLink {
                tls: certificates.map(|it| it.files(self.plan.node(node))),
                name: link_name(self.plan, node, other),
                listen: (a == node).then(|| endpoint.clone()),
                connect: (b == node).then_some(endpoint),
                capacity: link.capacity.map(|capacity| capacity.to_string()),
                policy: link.policy.name().to_owned(),
                multicast: None,
            });
        }
        links
    }

    /// Returns the policy file of all nodes, if links need one.
    pub(super) fn policy(&self) -> Option<PathBuf> {
        self.certificates.as_ref().map(Certificates::policy)
    }

    /// Returns the traffic so far on every link in each direction.
    pub(super) fn carried(&self) -> Result<Vec<[Passed; 2]>> {
        self.roads.iter().map(Road::carried).collect()
    }

    fn roads(&self, [a, b]: [usize; 2]) -> impl Iterator<Item = &Road> {
        let joins = move |between: [usize; 2]| between == [a, b] || between == [b, a];
        let roads = self.plan.links.iter().zip(&self.roads);
        roads.filter(move |(link, _)| joins(link.between)).map(|(_, road)| road)
    }

    /// Interrupts (`cut`) or restores the traffic between two nodes.
    pub(super) fn cut(&self, between: [usize; 2], cut: bool) -> Result<()> {
        self.roads(between).try_for_each(|road| road.cut(cut))
    }

    /// Changes the impairment between two nodes; `None` restores the initial one.
    pub(super) fn impair(&self, between: [usize; 2], wire: Option<&Impairment>) -> Result<()> {
        self.roads(between).try_for_each(|road| road.impair(wire))
    }
}
