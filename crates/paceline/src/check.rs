//! Checks before a node opens anything: its name, its links, and the number of file descriptors.

use crate::config::{LinkConfig, is_local};
use crate::error::OpenError;
use paceline_proto::control::NAME_BYTES_MAX;
use paceline_proto::link::{ClassError, ClassTree};
use paceline_proto::text::is_plain;
use rustix::process::{Resource, getrlimit};
use std::sync::Arc;

/// Free descriptors needed for a node, and for each link: sessions, runtimes, sockets and
/// neighbours.
///
/// A generous estimate. The test of descriptor limits shows that a node opens at exactly this
/// limit.
const FILES: u64 = 32;
const FILES_PER_LINK: u64 = 32;

/// The environment variable with Zenoh's thread settings, read once per process.
const THREADS: &str = "ZENOH_RUNTIME";
/// One thread for all tasks, so that no two threads use a TLS connection at the same time.
const ONE_THREAD: &str =
    "(rx: (worker_threads: 1), tx: (handover: rx), net: (handover: rx), acc: (handover: rx))";

fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && is_plain(name)
}

pub(crate) fn node_name(name: &str) -> Result<(), OpenError> {
    if is_name(name) { Ok(()) } else { Err(OpenError::Name(name.to_owned())) }
}

/// Refuses invalid links, and two links of one name.
pub(crate) fn links(links: &[LinkConfig]) -> Result<(), OpenError> {
    for (at, config) in links.iter().enumerate() {
        link(config)?;
        if links.iter().take(at).any(|before| before.name == config.name) {
            let what = "two links have this name; give each link a unique name".to_owned();
            return Err(OpenError::Link { link: config.name.clone(), what });
        }
    }
    Ok(())
}

impl LinkConfig {
    /// Checks the configuration of this link as [`NodeBuilder::open`](crate::NodeBuilder::open) does, without opening
    /// anything.
    ///
    /// # Errors
    /// Returns [`OpenError::Link`] if
    /// - the name is empty, too long or not plain text,
    /// - there is no endpoint,
    /// - the capacity is below 8 bit/s,
    /// - an endpoint accepts connections from other hosts without TLS and without [`Self::insecure`],
    /// - a `quic/` endpoint has no [`Self::tls`] or shares the link with another protocol,
    /// - an endpoint uses TLS and the process does not run Zenoh on a single thread, or
    /// - the classes contradict each other.
    pub fn check(&self) -> Result<(), OpenError> {
        link(self)
    }
}

fn link(link: &LinkConfig) -> Result<(), OpenError> {
    let refuse = |what: String| Err(OpenError::Link { link: link.name.clone(), what });
    if !is_name(&link.name) {
        return refuse(format!(
            "its name must be 1 to {NAME_BYTES_MAX} bytes of text without control characters, such as radio"
        ));
    }
    if link.listen.is_empty() && link.connect.is_empty() {
        return refuse(
            "it has no endpoint; set listen or connect, for example tcp/127.0.0.1:7600".into(),
        );
    }
    if let Some(bits) = link.too_thin {
        return refuse(format!(
            "capacity of {bits} bit/s: must be at least 8 bit/s, such as 2000000"
        ));
    }
    if link.is_quic() {
        let mut endpoints = link.listen.iter().chain(&link.connect);
        if let Some(other) = endpoints.find(|it| !it.starts_with("quic/")) {
            return refuse(format!(
                "{other} and a quic/ endpoint cannot share a link; give each protocol a link of its own"
            ));
        }
        if link.tls.is_none() {
            return refuse(
                "a quic/ endpoint needs tls_cert, tls_key and tls_ca; paceline trust makes such files"
                    .into(),
            );
        }
    }
    let proves = link.tls.is_some();
    let is_open = |endpoint: &&String| !is_safe(endpoint, proves);
    if let Some(open) = link.listen.iter().find(is_open).filter(|_| !link.insecure) {
        if open.starts_with("tls/") {
            return refuse(format!(
                "listening on {open} admits everybody, because it asks for no certificate; set tls_cert, tls_key \
                 and tls_ca, or insecure"
            ));
        }
        return refuse(format!(
            "listening on {open} accepts connections from any host; use quic/…, an address of this \
             host, or set insecure"
        ));
    }
    let threads = std::env::var(THREADS).unwrap_or_default();
    if let Some(tls) = link.listen.iter().chain(&link.connect).find(|it| it.starts_with("tls/"))
        && !is_one_thread(&threads)
    {
        return refuse(format!(
            "{tls} needs {THREADS}='{ONE_THREAD}' in the environment when the process starts: with more threads Zenoh reads \
             and writes a TLS connection at the same time, which breaks it (eclipse-zenoh/zenoh issue 2557)"
        ));
    }
    classes(link).map(|_| ()).map_err(|error| wrong_class(link, &error))
}

/// Returns true if the endpoint is only reachable from this host, or for peers that prove their identity.
/// `proves` states whether the link has the files for that.
fn is_safe(endpoint: &str, proves: bool) -> bool {
    let protocol = endpoint.split_once('/').map(|(protocol, _)| protocol);
    is_local(endpoint) || proves && matches!(protocol, Some("tls" | "quic"))
}

/// Returns true if one thread reads and writes all of Zenoh's connections, as [`ONE_THREAD`] sets.
fn is_one_thread(threads: &str) -> bool {
    let threads: String = threads.chars().filter(|it| !it.is_whitespace()).collect();
    threads.contains("rx:(worker_threads:1)") && threads.contains("tx:(handover:rx)")
}

pub(crate) fn wrong_class(link: &LinkConfig, error: &ClassError) -> OpenError {
    OpenError::Link { link: link.name.clone(), what: error.to_string() }
}

pub(crate) fn classes(link: &LinkConfig) -> Result<Option<Arc<ClassTree>>, ClassError> {
    if link.classes.is_empty() {
        return Ok(None);
    }
    ClassTree::new(link.classes.clone(), link.capacity).map(|tree| Some(Arc::new(tree)))
}

/// Refuses to open a node with `links` links if the process may not open enough files: the
/// transport panics without them.
pub(crate) fn descriptors(links: usize) -> Result<(), OpenError> {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64);
    within(getrlimit(Resource::Nofile).current, open, links as u64)
}

fn within(limit: Option<u64>, open: u64, links: u64) -> Result<(), OpenError> {
    let needed = open + FILES + FILES_PER_LINK * links;
    match limit {
        Some(limit) if limit < needed => Err(OpenError::Descriptors { limit, needed }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_is_safe_on_this_host_or_with_certificates() {
        for safe in [
            "tcp/127.0.0.1:7600",
            "udp/[::1]:7600",
            "tcp/localhost:7600#so_sndbuf=65536",
            "tls/0.0.0.0:7600",
            "unixsock-stream//run/a.sock",
        ] {
            assert!(is_safe(safe, true), "{safe}");
            let proof = safe.starts_with("tls/");
            assert_eq!(is_safe(safe, false), !proof, "{safe}");
        }
        for open in [
            "tcp/0.0.0.0:7600",
            "tcp/[::]:7600",
            "tcp/localhost.example:7600",
            "tcp/127.example:7600",
            "udp/10.0.0.1:7600",
            "nonsense",
        ] {
            assert!(!is_safe(open, true), "{open}");
        }
    }

    #[test]
    fn a_capacity_below_eight_bits_per_second_is_refused() {
        let thin = LinkConfig::new("radio").connect("tcp/127.0.0.1:0").capacity_bits_per_s(7);
        let refused = link(&thin).unwrap_err().to_string();
        assert!(refused.contains("capacity of 7 bit/s: must be at least 8 bit/s"), "{refused}");
        let least = LinkConfig::new("radio").connect("tcp/127.0.0.1:0").capacity_bits_per_s(8);
        assert!(link(&least).is_ok());
    }

    #[test]
    fn tls_requires_a_single_zenoh_thread() {
        let tls = LinkConfig::new("radio").connect("tls/robot:7600");
        let refused = link(&tls).unwrap_err().to_string();
        assert!(refused.contains("tls/robot:7600 needs ZENOH_RUNTIME='(rx:"), "{refused}");
        assert!(is_one_thread(ONE_THREAD) && is_one_thread(&ONE_THREAD.replace(' ', "")));
        for other in
            ["", "()", "(rx: (worker_threads: 2), tx: (handover: rx))", "(rx: (worker_threads: 1))"]
        {
            assert!(!is_one_thread(other), "{other}");
        }
    }

    #[test]
    fn link_names_are_plain_text_and_unique() {
        let named = |name: &str| LinkConfig::new(name).listen("tcp/127.0.0.1:0");
        let long = "x".repeat(256);
        for bad in ["", "a\nb", "\x1b[2J", "radio\u{202e}", "a\0b", &long] {
            let refused = link(&named(bad)).unwrap_err().to_string();
            assert!(refused.contains("must be 1 to 255 bytes of text"), "{refused}");
            assert!(is_plain(&refused), "{refused:?}");
            let refused = node_name(bad).unwrap_err().to_string();
            assert!(refused.contains("1 to 255 bytes") && is_plain(&refused), "{refused:?}");
        }
        assert!(links(&[named("a"), named("b ü")]).is_ok());
        let twice = links(&[named("a"), named("b"), named("a")]).unwrap_err().to_string();
        assert!(twice.contains("link 'a': two links have this name"), "{twice}");
    }

    #[test]
    fn a_low_file_limit_is_reported_with_the_required_number() {
        let error = within(Some(8), 5, 2).unwrap_err().to_string();
        for part in ["8 files", "at least 101", "ulimit -n 1024", "LimitNOFILE=1024"] {
            assert!(error.contains(part), "'{part}' is not in {error}");
        }
        assert!(within(Some(101), 5, 2).is_ok() && within(None, 5, 16).is_ok());
    }
}
