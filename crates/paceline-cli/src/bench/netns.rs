//! Two network namespaces joined by a thin link, taken down again whatever happens.
//!
//! The thin link is a veth pair that sends one packet at a time (`gso_max_segs 1`: else the shaper
//! would let a whole offloaded burst through at once and then block, and delays would look near zero),
//! shaped in both directions by htb over a plain queue of 64 KB. Or it is a network that delays, loses
//! and reorders packets too, carried by this process (docs/impair.md).

use crate::impair::{End, Link, PathArgs};
use crate::netns::{self, Namespace};
use anyhow::{Context as _, Result};
use paceline_sched::Capacity;
use paceline_sim::impair::Impairment;

/// The capacity of the thin link, each way.
pub(super) const THIN_BITS_PER_S: u64 = 2_000_000;
/// Bytes that the queue in front of the link holds.
const QUEUE_BYTES: u64 = 65_536;
/// The robot's address; the operator's is next to it.
pub(super) const ROBOT_ADDRESS: &str = "10.254.77.1";
const OPERATOR_ADDRESS: &str = "10.254.77.2";

/// The two ends of the link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Side {
    Robot,
    Operator,
}

/// The namespaces and the link between them, for as long as this lives.
#[derive(Debug)]
pub(super) struct Rig {
    bits_per_s: u64,
    /// What carries packets, if the link is no veth pair; it ends before its namespaces.
    link: Option<Link>,
    robot: Namespace,
    operator: Namespace,
}

/// Bytes that left over the link so far, by the kernel's count: whole Ethernet frames, or packets if
/// they are impaired.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireBytes {
    pub(super) to_operator: u64,
    pub(super) to_robot: u64,
}

/// True if this process may build a network; else says to the user of a benchmark what to do.
pub(super) fn can_build(bench: &str) -> bool {
    let root = netns::may_build();
    if !root {
        eprintln!(
            "paceline bench {bench} builds network namespaces and a shaped link, which needs root: run \
             it with sudo, or see `paceline demo`, which needs nothing"
        );
    }
    root
}

impl Rig {
    /// Sets everything up with a link of `bits_per_s` each way, after taking down what a killed run
    /// left behind.
    pub(super) fn new(bits_per_s: u64) -> Result<Self> {
        let rig = Self::namespaces(bits_per_s).and_then(|rig| rig.shaped().map(|()| rig));
        rig.context("cannot build the network for the benchmark")
    }

    /// As [`Self::new`], and this happens to packets on their way.
    pub(super) fn over(path: &PathArgs, bits_per_s: u64) -> Result<Self> {
        if path.is_clean() {
            return Self::new(bits_per_s);
        }
        let rate = Some(Capacity::from_bits_per_s(bits_per_s)?);
        Self::impaired(Impairment { rate, ..path.impairment() }, path.seed)
            .context("cannot build the network for the benchmark")
    }

    fn impaired(impairment: Impairment, seed: u64) -> Result<Self> {
        let bits_per_s = impairment.rate.map_or(u64::MAX, Capacity::bits_per_s);
        let mut rig = Self::namespaces(bits_per_s)?;
        let ends = [(&rig.robot, ROBOT_ADDRESS), (&rig.operator, OPERATOR_ADDRESS)];
        let ends =
            ends.map(|(namespace, address)| End { namespace, device: namespace.name(), address });
        rig.link = Some(Link::new(ends, [impairment; 2], seed)?);
        Ok(rig)
    }

    fn namespaces(bits_per_s: u64) -> Result<Self> {
        netns::remove_leftovers();
        let (robot, operator) = (Namespace::new("plr")?, Namespace::new("plo")?);
        Ok(Self { bits_per_s, link: None, robot, operator })
    }

    fn shaped(&self) -> Result<()> {
        let (robot, operator) = (self.robot.name(), self.operator.name());
        netns::ip(&format!(
            "link add {robot} netns {robot} type veth peer name {operator} netns {operator}"
        ))?;
        self.shape(&self.robot, ROBOT_ADDRESS)?;
        self.shape(&self.operator, OPERATOR_ADDRESS)
    }

    fn shape(&self, namespace: &Namespace, address: &str) -> Result<()> {
        let name = namespace.name();
        namespace.ip(&format!("link set {name} gso_max_segs 1"))?;
        namespace.ip(&format!("addr add {address}/30 dev {name}"))?;
        namespace.ip(&format!("link set {name} up"))?;
        namespace.shape(name, self.bits_per_s, QUEUE_BYTES)
    }

    /// The capacity of the link, each way.
    pub(super) fn bits_per_s(&self) -> u64 {
        self.bits_per_s
    }

    /// The namespace of one side.
    pub(super) fn namespace(&self, side: Side) -> &str {
        match side {
            Side::Robot => self.robot.name(),
            Side::Operator => self.operator.name(),
        }
    }

    pub(super) fn wire_bytes(&self) -> Result<WireBytes> {
        Ok(WireBytes {
            to_operator: self.robot.sent(self.robot.name())?.bytes,
            to_robot: self.operator.sent(self.operator.name())?.bytes,
        })
    }
}
