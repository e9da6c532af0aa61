//! One namespace a node, one shaped pair of interfaces a link.

use crate::netns::{SCENE, ip, output, remove, remove_leftovers, shape, tc};
use anyhow::{Context as _, Result};
use paceline_sim::impair::{Impairment, Loss};
use paceline_sim::scenario::{FaultKind, Plan};
use serde::{Deserialize, Serialize};

/// Links that a live node takes.
const LINKS_MAX: usize = 2;
/// Links of a network: each has a net of its own below 10.254.
const NETS_MAX: usize = 250;

/// A node's end of a link.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(in crate::bench) struct NetLink {
    pub(in crate::bench) name: String,
    pub(in crate::bench) listen: Option<String>,
    pub(in crate::bench) connect: Option<String>,
    pub(in crate::bench) capacity: Option<u64>,
    pub(in crate::bench) policy: String,
}

/// Says what live nodes cannot do of a scenario, with the mend.
pub(super) fn check(plan: &Plan) -> Result<(), String> {
    for (place, node) in plan.nodes.iter().enumerate() {
        let links = plan.links.iter().filter(|link| link.between.contains(&place)).count();
        if links > LINKS_MAX {
            let name = &node.name;
            return Err(format!(
                "node {name} has {links} links, a live node takes at most {LINKS_MAX}: join them in a \
                 row, or use paceline simulate"
            ));
        }
        if node.drift_ppm != 0 || !node.steps.is_empty() {
            return Err(only_simulated(&format!("the clock of node {}", node.name)));
        }
    }
    if plan.links.len() > NETS_MAX {
        return Err(format!("{} links, at most {NETS_MAX} live", plan.links.len()));
    }
    for link in &plan.links {
        let [a, b] = link.between.map(|node| plan.node(node));
        if !is_plain(&link.wire) {
            return Err(only_simulated(&format!("what link {a} - {b} does to packets")));
        }
    }
    for publisher in &plan.publishers {
        if matches!(publisher.content, paceline_sim::scenario::Content::Video(_)) {
            return Err(only_simulated(&format!("video on {}", publisher.tag.as_str())));
        }
    }
    for fault in &plan.faults {
        match &fault.what {
            FaultKind::Impair(_, wire) if !is_plain(wire) => {
                return Err(only_simulated(&format!("'{}'", plan.told(fault))));
            }
            FaultKind::Cut(_)
            | FaultKind::Crash(_)
            | FaultKind::Stall(_)
            | FaultKind::Impair(..) => {}
        }
    }
    Ok(())
}

fn only_simulated(what: &str) -> String {
    format!("{what} is simulated only: leave it out, or use paceline simulate")
}

/// True if packets do nothing but wait for the rate.
fn is_plain(wire: &Impairment) -> bool {
    wire.delay.is_zero()
        && wire.jitter.is_zero()
        && wire.loss == Loss::None
        && wire.reorder_ppm == 0
        && wire.duplicate_ppm == 0
}

/// The network of a scenario, for as long as this lives.
pub(super) struct Net<'p> {
    plan: &'p Plan,
    id: u32,
}

impl<'p> Net<'p> {
    pub(super) fn new(plan: &'p Plan) -> Result<Self> {
        remove_leftovers();
        let net = Self { plan, id: std::process::id() };
        net.build().context("cannot build the network of the scenario")?;
        Ok(net)
    }

    /// The namespace of a node.
    pub(super) fn namespace(&self, node: usize) -> String {
        format!("{SCENE}{}x{node}", self.id)
    }

    fn build(&self) -> Result<()> {
        for node in 0..self.plan.nodes.len() {
            let name = self.namespace(node);
            ip(&format!("netns add {name}"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        for (place, link) in self.plan.links.iter().enumerate() {
            let [a, b] = link.between.map(|node| self.namespace(node));
            ip(&format!("link add l{place} netns {a} type veth peer name l{place} netns {b}"))?;
            for (side, name) in [(1, &a), (2, &b)] {
                ip(&format!("-n {name} link set l{place} gso_max_segs 1"))?;
                ip(&format!("-n {name} addr add 10.254.{place}.{side}/30 dev l{place}"))?;
                ip(&format!("-n {name} link set l{place} up"))?;
                self.shape(name, place, &link.wire)?;
            }
        }
        Ok(())
    }

    fn shape(&self, namespace: &str, link: usize, wire: &Impairment) -> Result<()> {
        let Some(rate) = wire.rate else { return Ok(()) };
        shape(namespace, &format!("l{link}"), rate.bits_per_s(), wire.queue_bytes)
    }

    /// What a node's links are told.
    pub(super) fn links(&self, node: usize) -> Vec<NetLink> {
        let mut links = Vec::new();
        for (place, link) in self.plan.links.iter().enumerate() {
            let [a, b] = link.between;
            let endpoint = format!("{}/10.254.{place}.1:7600", link.protocol.name());
            let other = if a == node { b } else { a };
            if ![a, b].contains(&node) {
                continue;
            }
            links.push(NetLink {
                name: format!("{}-{}", self.plan.node(node), self.plan.node(other)),
                listen: (a == node).then(|| endpoint.clone()),
                connect: (b == node).then_some(endpoint),
                capacity: link.capacity.map(paceline::Capacity::bits_per_s),
                policy: link.policy.name().to_owned(),
            });
        }
        links
    }

    /// Bytes that left over every link so far, each way, by the kernel's count: whole Ethernet frames.
    pub(super) fn wire_bytes(&self) -> Result<Vec<[u64; 2]>> {
        let mut all = Vec::new();
        for (place, link) in self.plan.links.iter().enumerate() {
            let [a, b] = link.between;
            all.push([self.sent_by(a, place)?, self.sent_by(b, place)?]);
        }
        Ok(all)
    }

    fn sent_by(&self, node: usize, link: usize) -> Result<u64> {
        let name = self.namespace(node);
        let text = output("ip", &format!("-n {name} -s -j link show dev l{link}"))?;
        let links: serde_json::Value = serde_json::from_str(&text).context("ip -j")?;
        let sent = links.pointer("/0/stats64/tx/bytes").and_then(serde_json::Value::as_u64);
        sent.with_context(|| format!("ip tells no byte counter of l{link} in {name}"))
    }

    /// Lets nothing pass between two nodes, or everything again.
    pub(super) fn cut(&self, [a, b]: [usize; 2], cut: bool) -> Result<()> {
        let state = if cut { "down" } else { "up" };
        for (place, link) in self.plan.links.iter().enumerate() {
            if link.between == [a, b] || link.between == [b, a] {
                ip(&format!("-n {} link set l{place} {state}", self.namespace(b)))?;
            }
        }
        Ok(())
    }
}

impl Net<'_> {
    /// Gives the wire between two nodes another rate, or its own again.
    pub(super) fn reshape(&self, [a, b]: [usize; 2], wire: Option<&Impairment>) -> Result<()> {
        for (place, link) in self.plan.links.iter().enumerate() {
            if link.between != [a, b] && link.between != [b, a] {
                continue;
            }
            for name in link.between.map(|node| self.namespace(node)) {
                if link.wire.rate.is_some() {
                    tc(&format!("-n {name} qdisc del dev l{place} root"))?;
                }
                self.shape(&name, place, wire.unwrap_or(&link.wire))?;
            }
        }
        Ok(())
    }
}

impl Drop for Net<'_> {
    fn drop(&mut self) {
        (0..self.plan.nodes.len()).for_each(|node| remove(&self.namespace(node)));
    }
}
