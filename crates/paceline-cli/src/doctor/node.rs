//! Checks Paceline on this host: its configuration, its runtime folder, and delivery between two
//! nodes.

use super::row::{Row, State, ok_if};
use crate::config;
use anyhow::Context as _;
use paceline::{LinkConfig, Node, OpenError, RecvError};
use paceline_tool::show;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest time for two nodes on loopback to connect and deliver.
const DELIVERY_MAX: Duration = Duration::from_millis(1_500);
const SAMPLES: usize = 20;

/// Checks the configuration file, and returns its runtime folder.
pub(super) fn configuration() -> (Row, Option<PathBuf>) {
    let row = |found: &str, state, fix: &str| {
        Row::new("configuration", found, "valid, or none", state, fix).needed()
    };
    let Some(file) = config::find() else {
        return (row("none: all defaults apply", State::Ok, ""), None);
    };
    let shown = file.display();
    match config::load(&file) {
        Ok(config) => (row(&shown.to_string(), State::Ok, ""), config.runtime_dir),
        Err(error) => (row(&format!("{shown} is invalid"), State::Lack, &error.to_string()), None),
    }
}

/// Checks the folder shared by the processes of this host by opening it like every command. The
/// flag overrides the environment, which overrides the configuration.
pub(super) fn runtime_dir(flag: Option<PathBuf>, configured: Option<PathBuf>) -> Row {
    let environment = std::env::var_os("PACELINE_RUNTIME_DIR").is_some_and(|dir| !dir.is_empty());
    let named = flag.or(configured.filter(|_| !environment));
    let dir = named.unwrap_or_else(paceline::NodeBuilder::default_runtime_dir);
    let row = |found: &str, state, fix: &str| {
        Row::new("runtime folder", found, "writable, owned by this user", state, fix).needed()
    };
    let shown = dir.display();
    match Node::builder().runtime_dir(&dir).guest().open() {
        Ok(node) => {
            node.close();
            row(&format!("{shown}, {}", socket(&dir)), State::Ok, "")
        }
        Err(error @ (OpenError::RuntimeDir { .. } | OpenError::UnsafeRuntimeDir { .. })) => {
            row(&format!("{shown} cannot be used"), State::Lack, &error.to_string())
        }
        Err(error) => row(&shown.to_string(), State::Lack, &error.to_string()),
    }
}

/// Describes the listener in the folder.
fn socket(dir: &Path) -> &'static str {
    let socket = dir.join("node.sock");
    match UnixStream::connect(&socket) {
        Ok(_) => "a node listens",
        Err(_) if socket.exists() => "the last node has ended",
        Err(_) => "no node yet",
    }
}

/// Checks delivery from one node to another over loopback TCP.
pub(super) fn delivery() -> Row {
    let (found, delivered) = match deliver() {
        Ok(age) => {
            (format!("{} ms from publish to delivery", show::millis(show::micros(age))), true)
        }
        Err(error) => (format!("{error:#}"), false),
    };
    Row::new(
        "two nodes over loopback",
        &found,
        "delivered within 1.5 s",
        ok_if(delivered),
        "ip link set lo up; paceline doctor --log info shows the steps of the nodes",
    )
    .needed()
}

/// Returns the median time from publish to delivery.
fn deliver() -> anyhow::Result<Duration> {
    let until = Instant::now() + DELIVERY_MAX;
    let port = TcpListener::bind(("127.0.0.1", 0)).context("no free port on 127.0.0.1")?;
    let endpoint = format!("tcp/{}", port.local_addr()?);
    drop(port);
    let open = |name, link| Node::builder().name(name).isolated().link(link).open();
    let near = open("doctor-1", LinkConfig::new("loopback").listen(&endpoint))?;
    let far = open("doctor-2", LinkConfig::new("loopback").connect(&endpoint))?;
    let mut publisher = near.publisher("doctor/sample").declare()?;
    let mut subscriber = far.subscriber("doctor/sample").declare()?;
    let left = until.saturating_duration_since(Instant::now());
    anyhow::ensure!(publisher.wait_matching(left), "they do not find each other");
    let mut ages = Vec::new();
    while ages.len() < SAMPLES && Instant::now() < until {
        let begun = Instant::now();
        publisher.put("a sample")?;
        match subscriber.recv_timeout(until.saturating_duration_since(begun)) {
            Ok(_) => ages.push(begun.elapsed()),
            Err(RecvError::Timeout) => break,
            Err(error) => return Err(error.into()),
        }
    }
    ages.sort_unstable();
    ages.get(ages.len() / 2).copied().context("no sample arrives")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_nodes_deliver() {
        let row = delivery();
        assert_eq!(row.state, State::Ok, "{row:?}");
    }

    #[test]
    fn an_unusable_folder_is_a_lack_with_its_fix() {
        let row = runtime_dir(Some(PathBuf::from("/proc/nowhere")), None);
        assert!(row.needed && row.state == State::Lack, "{row:?}");
        assert!(row.fix.unwrap().contains("set PACELINE_RUNTIME_DIR"));
    }
}
