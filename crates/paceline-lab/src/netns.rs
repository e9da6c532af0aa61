//! Network namespaces that are removed when they are dropped.

use anyhow::{Context as _, Result, anyhow, bail};
use paceline_tool::scratch::is_gone;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;

/// Name prefixes of this program's namespaces; the id of the creating process follows.
const PREFIXES: [&str; 5] = ["plr", "plo", "pln", "plf", SCENE];
/// Name prefix of a scenario's namespaces; the process id, `x` and a number follow.
const SCENE: &str = "plx";

/// A network namespace that is removed on drop. A single interface in it has the same name.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
}

/// Transmit counters that the kernel keeps for an interface.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// Bytes sent.
    pub(crate) bytes: u64,
    /// Packets dropped because the queue was full.
    pub(crate) dropped: u64,
}

impl Namespace {
    /// Creates a namespace in which only the loopback interface is up. A process has at most one namespace
    /// per prefix of [`PREFIXES`].
    pub(crate) fn new(prefix: &str) -> Result<Self> {
        debug_assert!(
            PREFIXES.contains(&prefix),
            "otherwise nothing removes the remains of a killed run"
        );
        Self::named(format!("{prefix}{}", std::process::id()))
    }

    /// Creates the namespace of a scenario's node with this number.
    pub(crate) fn of_scene(number: usize) -> Result<Self> {
        Self::named(format!("{SCENE}{}x{number}", std::process::id()))
    }

    fn named(name: String) -> Result<Self> {
        ip(&format!("netns add {name}"))?;
        let namespace = Self { name };
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    /// Returns the name of the namespace and of its interface.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` in the namespace.
    pub(crate) fn ip(&self, arguments: &str) -> Result<()> {
        ip(&format!("-n {} {arguments}", self.name))
    }

    /// Returns a command that runs in the namespace.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Runs `work` in the namespace on a new thread. Sockets and devices that it opens stay in the namespace
    /// on every thread.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let place = Path::new("/run/netns").join(&self.name);
        let done = std::thread::scope(|scope| {
            let inside = scope.spawn(|| -> Result<T> {
                let namespace = File::open(&place).context("open it")?;
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                    .context("enter it")?;
                Ok(work())
            });
            inside.join().unwrap_or_else(|_| Err(anyhow!("the thread in the namespace panicked")))
        });
        done.with_context(|| format!("network namespace {}", place.display()))
    }

    /// Returns the transmit counters of an interface.
    pub(crate) fn sent(&self, device: &str) -> Result<Sent> {
        let name = &self.name;
        let text = output("ip", &format!("-n {name} -s -j link show dev {device}"))?;
        let links: serde_json::Value = serde_json::from_str(&text).context("ip -j")?;
        let number = |field: &str| {
            let found = links.pointer(&format!("/0/stats64/tx/{field}"));
            let found = found.and_then(serde_json::Value::as_u64);
            found.with_context(|| format!("ip reports no {field} for {device} in {name}"))
        };
        Ok(Sent { bytes: number("bytes")?, dropped: number("dropped")? })
    }

    /// Limits the rate of an interface; packets above it wait in a FIFO queue of `queue_bytes`.
    pub(crate) fn shape(&self, device: &str, bits_per_s: u64, queue_bytes: u64) -> Result<()> {
        let tc = |rest: &str| tc(&format!("-n {} {rest}", self.name));
        tc(&format!("qdisc add dev {device} root handle 1: htb default 10"))?;
        tc(&format!(
            "class add dev {device} parent 1: classid 1:10 htb rate {bits_per_s}bit burst 1600 \
             cburst 1600"
        ))?;
        tc(&format!("qdisc add dev {device} parent 1:10 bfifo limit {queue_bytes}"))
    }

    /// Removes the rate limit of an interface.
    pub(crate) fn unshape(&self, device: &str) -> Result<()> {
        tc(&format!("-n {} qdisc del dev {device} root", self.name))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

/// Returns true if this process may create namespaces, which needs root.
pub(crate) fn may_build() -> bool {
    rustix::process::geteuid().is_root()
}

/// Removes the namespaces of processes that no longer run.
pub(crate) fn remove_leftovers() {
    let list = output("ip", "netns list").unwrap_or_default();
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    for name in names.filter(|name| owner(name).is_some_and(is_gone)) {
        remove(name);
    }
}

/// Returns the id of the process that created a namespace, `None` if the name is not one of ours.
fn owner(name: &str) -> Option<u32> {
    let rest = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix))?;
    let (process, number) = rest.split_once('x').unwrap_or((rest, "0"));
    number.parse::<u16>().ok()?;
    process.parse().ok()
}

fn remove(namespace: &str) {
    // Deleting the namespace deletes its interfaces. A namespace that does not exist is no error.
    let _ = output("ip", &format!("netns delete {namespace}"));
}

/// Runs `ip`.
pub(crate) fn ip(arguments: &str) -> Result<()> {
    output("ip", arguments).map(drop)
}

fn tc(arguments: &str) -> Result<()> {
    output("tc", arguments).map(drop)
}

/// Returns a program's standard output; its standard error becomes the error.
fn output(program: &str, arguments: &str) -> Result<String> {
    let run = Command::new(program).args(arguments.split_whitespace()).output();
    let run = run.with_context(|| format!("cannot start {program}; try installing iproute2"))?;
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
        assert_eq!(owner("pln7"), Some(7));
        assert_eq!(owner("plf7"), Some(7));
        assert_eq!(owner("plx12x0"), Some(12));
        assert_eq!(owner("plrx"), None);
        assert_eq!(owner("blue"), None);
        assert!(is_gone(std::process::id()) && !is_gone(1));
    }
}
