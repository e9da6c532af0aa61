//! Two network namespaces joined by a thin link, taken down again whatever happens.
//!
//! The link is a veth pair that sends one packet at a time (`gso_max_segs 1`: else the shaper would
//! let a whole offloaded burst through at once and then block, and delays would look near zero),
//! shaped in both directions by htb over a plain queue of 64 KB.

use super::scenario::PREFIX;
use anyhow::{Context as _, Result, bail};
use std::process::Command;

/// The capacity of the thin link, each way.
pub(super) const THIN_BITS_PER_S: u64 = 2_000_000;
/// Bytes that the queue in front of the link holds.
const QUEUE_BYTES: u64 = 65_536;
/// The robot's address; the operator's is next to it.
pub(super) const ROBOT_ADDRESS: &str = "10.254.77.1";
const OPERATOR_ADDRESS: &str = "10.254.77.2";
const ROBOT: &str = "plr";
const OPERATOR: &str = "plo";

/// The two ends of the link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Side {
    Robot,
    Operator,
}

/// The namespaces and the link between them, for as long as this lives.
#[derive(Debug)]
pub(super) struct Rig {
    id: u32,
    bits_per_s: u64,
}

/// Bytes that left over the link so far, by the kernel's count: whole Ethernet frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireBytes {
    pub(super) to_operator: u64,
    pub(super) to_robot: u64,
}

/// True if this process may build a network; else says to the user of a benchmark what to do.
pub(super) fn can_build(bench: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
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
        namespaces_gone();
        let rig = Self { id: std::process::id(), bits_per_s };
        rig.build().context("cannot build the network for the benchmark")?;
        Ok(rig)
    }

    /// The capacity of the link, each way.
    pub(super) fn bits_per_s(&self) -> u64 {
        self.bits_per_s
    }

    /// The namespace of one side, which is also the name of its interface.
    pub(super) fn namespace(&self, side: Side) -> String {
        let prefix = match side {
            Side::Robot => ROBOT,
            Side::Operator => OPERATOR,
        };
        format!("{prefix}{}", self.id)
    }

    fn build(&self) -> Result<()> {
        let robot = self.namespace(Side::Robot);
        let operator = self.namespace(Side::Operator);
        ip(&format!("netns add {robot}"))?;
        ip(&format!("netns add {operator}"))?;
        ip(&format!(
            "link add {robot} netns {robot} type veth peer name {operator} netns {operator}"
        ))?;
        self.build_side(Side::Robot, ROBOT_ADDRESS)?;
        self.build_side(Side::Operator, OPERATOR_ADDRESS)
    }

    fn build_side(&self, side: Side, address: &str) -> Result<()> {
        let name = self.namespace(side);
        ip(&format!("-n {name} link set lo up"))?;
        ip(&format!("-n {name} link set {name} gso_max_segs 1"))?;
        ip(&format!("-n {name} addr add {address}/30 dev {name}"))?;
        ip(&format!("-n {name} link set {name} up"))?;
        shape(&name, &name, self.bits_per_s, QUEUE_BYTES)
    }

    pub(super) fn wire_bytes(&self) -> Result<WireBytes> {
        Ok(WireBytes {
            to_operator: self.sent_by(Side::Robot)?,
            to_robot: self.sent_by(Side::Operator)?,
        })
    }

    fn sent_by(&self, side: Side) -> Result<u64> {
        let name = self.namespace(side);
        let text = output("ip", &format!("-n {name} -s -j link show dev {name}"))?;
        let links: serde_json::Value = serde_json::from_str(&text).context("ip -j")?;
        let sent = links.pointer("/0/stats64/tx/bytes").and_then(serde_json::Value::as_u64);
        sent.with_context(|| format!("ip tells no byte counter of {name}"))
    }
}

/// Shapes what leaves `namespace` over `device`, over a plain queue.
pub(super) fn shape(
    namespace: &str,
    device: &str,
    bits_per_s: u64,
    queue_bytes: u64,
) -> Result<()> {
    tc(&format!("-n {namespace} qdisc add dev {device} root handle 1: htb default 10"))?;
    tc(&format!(
        "-n {namespace} class add dev {device} parent 1: classid 1:10 htb rate {bits_per_s}bit \
         burst 1600 cburst 1600"
    ))?;
    tc(&format!("-n {namespace} qdisc add dev {device} parent 1:10 bfifo limit {queue_bytes}"))
}

impl Drop for Rig {
    fn drop(&mut self) {
        for side in [Side::Robot, Side::Operator] {
            remove(&self.namespace(side));
        }
    }
}

/// Removes namespaces of runs that are gone.
pub(super) fn namespaces_gone() {
    let list = output("ip", "netns list").unwrap_or_default();
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    for name in names.filter(|name| owner(name).is_some_and(is_gone)) {
        remove(name);
    }
}

/// The process that a namespace of ours was made by.
fn owner(name: &str) -> Option<u32> {
    if let Some(rest) = name.strip_prefix(PREFIX) {
        return rest.split('x').next()?.parse().ok();
    }
    let id = name.strip_prefix(ROBOT).or_else(|| name.strip_prefix(OPERATOR))?;
    id.parse().ok()
}

/// True of a process that ended, and of this one.
pub(super) fn is_gone(process: u32) -> bool {
    let own = process == std::process::id();
    own || !std::path::Path::new("/proc").join(process.to_string()).exists()
}

pub(super) fn remove(namespace: &str) {
    // The interfaces go with their namespace. There is nobody to tell if it does not exist.
    let _ = output("ip", &format!("netns delete {namespace}"));
}

pub(super) fn ip(arguments: &str) -> Result<()> {
    output("ip", arguments).map(drop)
}

pub(super) fn tc(arguments: &str) -> Result<()> {
    output("tc", arguments).map(drop)
}

pub(super) fn output(program: &str, arguments: &str) -> Result<String> {
    let run = Command::new(program).args(arguments.split_whitespace()).output();
    let run = run.with_context(|| format!("{program} does not start; install iproute2"))?;
    if !run.status.success() {
        bail!("{program} {arguments}: {}", String::from_utf8_lossy(&run.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&run.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_namespaces_are_leftovers() {
        assert_eq!(owner("plr123"), Some(123));
        assert_eq!(owner("plo99"), Some(99));
        assert_eq!(owner("plx12x0"), Some(12));
        assert_eq!(owner("plrx"), None);
        assert_eq!(owner("blue"), None);
        assert!(is_gone(std::process::id()) && !is_gone(1));
    }
}
