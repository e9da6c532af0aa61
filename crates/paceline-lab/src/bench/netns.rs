//! Two network namespaces joined by a thin link, removed again in every case.
//!
//! The thin link is a veth pair, shaped in both directions by htb over a plain queue of 64 KB. It
//! sends one packet at a time (`gso_max_segs 1`). Otherwise the shaper would pass a whole offloaded
//! burst at once and then block, and delays would look near zero. Alternatively this process
//! carries the packets and delays, loses and reorders them (docs/reference/impair.md).

use crate::impair::{End, Link, PathArgs};
use crate::netns::{self, Namespace};
use anyhow::{Context as _, Result};
use paceline_sched::{Capacity, Duration};
use paceline_sim::impair::Impairment;

/// The capacity of the thin link in each direction.
pub(super) const THIN_BITS_PER_S: u64 = 2_000_000;
/// The size of the queue in front of the link in bytes.
const QUEUE_BYTES: u64 = 65_536;
/// The robot's address; the operator's is the next one.
pub(super) const ROBOT_ADDRESS: &str = "10.254.77.1";
const OPERATOR_ADDRESS: &str = "10.254.77.2";

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Side {
    Robot,
    Operator,
}

/// The namespaces and the link between them; dropping this removes them.
#[derive(Debug)]
pub(super) struct Rig {
    bits_per_s: u64,
    /// The packet carrier, unless the link is a veth pair. It must end before its namespaces, so it
    /// is declared first.
    link: Option<Link>,
    robot: Namespace,
    operator: Namespace,
}

/// Bytes sent over the link so far, as the kernel counts them: whole Ethernet frames, or packets if
/// the link is impaired.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireBytes {
    pub(super) to_operator: u64,
    pub(super) to_robot: u64,
}

/// Returns true if this process may build a network; otherwise prints advice for the user.
pub(super) fn can_build(bench: &str) -> bool {
    let root = netns::may_build();
    if !root {
        eprintln!(
            "paceline-lab bench {bench} creates network namespaces and a shaped link, which needs \
             root; try sudo, or `paceline demo`, which needs no root"
        );
    }
    root
}

impl Rig {
    /// Builds the namespaces and a link of `bits_per_s` in each direction. First removes the
    /// remains of a killed run.
    pub(super) fn new(bits_per_s: u64) -> Result<Self> {
        let rig = Self::namespaces(bits_per_s).and_then(|rig| rig.shaped().map(|()| rig));
        rig.context("cannot build the network for the benchmark")
    }

    /// Like [`Self::new`], with the impairment of `path`.
    pub(super) fn over(path: &PathArgs, bits_per_s: u64) -> Result<Self> {
        if path.is_clean() {
            return Self::new(bits_per_s);
        }
        let rate = Some(Capacity::from_bits_per_s(bits_per_s)?);
        Self::impaired(Impairment { rate, ..path.impairment() }, path.seed)
            .context("cannot build the network for the benchmark")
    }

    /// Builds the namespaces, and a link without a limit that delays every packet.
    pub(super) fn delayed(delay: Duration) -> Result<Self> {
        Self::impaired(Impairment { delay, ..Impairment::NONE }, 1)
            .context("cannot build the network for the benchmark")
    }

    /// Builds the namespaces, and a link with an impairment that may change.
    pub(super) fn carried(impairment: Impairment) -> Result<Self> {
        Self::impaired(impairment, 1).context("cannot build the network for the benchmark")
    }

    /// Changes the impairment of both directions, on a link that this process carries.
    pub(super) fn set(&self, impairment: Impairment) {
        self.link.iter().for_each(|link| link.set([impairment; 2]));
    }

    /// Changes the delay of packets, on a link that this process carries.
    pub(super) fn set_delay(&self, delay: Duration) {
        let impairment = Impairment { delay, ..Impairment::NONE };
        self.link.iter().for_each(|link| link.set([impairment; 2]));
    }

    /// Returns the packets that this process has carried to the operator and to the robot, and their bytes with the headers of
    /// IP.
    pub(super) fn packets(&self) -> [(u64, u64); 2] {
        let traffic = self.link.as_ref().map(Link::traffic).unwrap_or_default();
        traffic.map(|way| (way.counters.packets, way.counters.bytes))
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

    /// Returns the capacity of the link in each direction.
    pub(super) fn bits_per_s(&self) -> u64 {
        self.bits_per_s
    }

    /// Returns the name of one side's namespace.
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
