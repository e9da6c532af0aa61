//! Checks before a node opens anything: its name, its links, and the number of file descriptors.

use crate::config::{LinkConfig, is_certified, is_safe};
use crate::error::OpenError;
use paceline_proto::address::Address;
use paceline_proto::control::NAME_BYTES_MAX;
use paceline_proto::link::{ClassError, ClassTree};
use paceline_proto::medium::Medium;
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

/// The protocols of endpoints.
const PROTOCOLS: [&str; 4] = ["quic", "tls", "tcp", "unix"];

/// Returns true if other nodes can read the name of a node.
pub(crate) fn is_name(name: &str) -> bool {
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
    /// - an endpoint has another protocol than `quic`, `tls`, `tcp` and `unix`,
    /// - an endpoint accepts connections from other hosts without TLS and without [`Self::insecure`],
    /// - a `quic/` or `tls/` endpoint has no [`Self::tls`],
    /// - it has a medium or multicast groups, but lacks what they need,
    /// - the proxy is not one, or an endpoint cannot pass it, or
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
    if link.measured.is_some() && link.is_host() {
        return refuse(
            "capacity = auto: a unix socket has none to measure; use quic/, tls/ or tcp/, or remove it"
                .into(),
        );
    }
    if link.measured.is_some() && !link.classes.is_empty() {
        return refuse(
            "classes share a capacity that is known; give a fixed one, such as 2mbit, or remove the classes"
                .into(),
        );
    }
    medium(link).map_err(|what| OpenError::Link { link: link.name.clone(), what })?;
    multicast(link).map_err(|what| OpenError::Link { link: link.name.clone(), what })?;
    endpoints(link).map_err(|what| OpenError::Link { link: link.name.clone(), what })?;
    classes(link).map(|_| ()).map_err(|error| wrong_class(link, &error))
}

/// Checks the medium of a link.
fn medium(link: &LinkConfig) -> Result<(), String> {
    let Some(Medium { name, capacity, access }) = &link.medium else { return Ok(()) };
    if !is_name(name) {
        return Err(format!(
            "the name of its medium must be 1 to {NAME_BYTES_MAX} bytes of text without control characters, such as \
             field-radio"
        ));
    }
    let problem = if capacity.bits_per_s() < Medium::CAPACITY_MIN {
        format!("a capacity of at least {} kbit/s, not {capacity}", Medium::CAPACITY_MIN / 1_000)
    } else if *access > Medium::ACCESS_MAX {
        format!("an access time of at most {}, not {access}", Medium::ACCESS_MAX)
    } else if link.measured.is_some() {
        "a fixed capacity, such as 2mbit: other links of the medium send, too, so a measurement does not show it".into()
    } else if !link.classes.is_empty() {
        "a link without classes; remove the classes or the medium".into()
    } else if link.multicast.is_some() {
        "a link without multicast; remove multicast or the medium".into()
    } else if link.is_host() {
        "an endpoint for other hosts: quic/, tls/ or tcp/".into()
    } else {
        return Ok(());
    };
    Err(format!("medium '{name}' needs {problem}"))
}

/// Checks the multicast groups of a link.
fn multicast(link: &LinkConfig) -> Result<(), String> {
    let Some(range) = link.multicast else { return Ok(()) };
    let without = if !link.is_quic() {
        "a quic/ endpoint, over which the keys of groups are sent and lost data is repaired"
    } else if link.capacity.is_none() {
        "a capacity, that of the segment"
    } else if link.measured.is_some() {
        "the fixed capacity of the segment; a measurement shows the path to one neighbour"
    } else if link.ordered {
        "datagrams; remove ordered"
    } else if !link.classes.is_empty() {
        "a single class; remove the classes or multicast"
    } else {
        return Ok(());
    };
    Err(format!("multicast = \"{range}\" needs {without}"))
}

/// Checks the endpoints of a link, and its proxy.
fn endpoints(link: &LinkConfig) -> Result<(), String> {
    let all = || link.listen.iter().chain(&link.connect);
    for endpoint in all() {
        let (protocol, place) = endpoint.split_once('/').unwrap_or((endpoint, ""));
        if protocol == "udp" {
            return Err(format!(
                "{endpoint}: udp/ has neither encryption nor identities; use quic/{place}, which retransmits in the same way"
            ));
        }
        if !PROTOCOLS.contains(&protocol) {
            return Err(format!("{endpoint}: the protocol must be {}", PROTOCOLS.join(", ")));
        }
        if protocol != "unix"
            && let Err(rule) = Address::parse(place)
        {
            let rule =
                rule.replacen("HOST:PORT", &format!("{protocol}/HOST:PORT without options"), 1);
            return Err(format!("{endpoint}: {rule}"));
        }
    }
    let is_local = |endpoint: &&String| endpoint.starts_with("unix/");
    if let Some(local) = all().find(is_local).filter(|_| !link.is_host()) {
        return Err(format!(
            "{local} shares the link with an endpoint for other hosts; give it a link of its own"
        ));
    }
    let certified = |it: &&String| is_certified(it);
    let open = all().find(|it| it.starts_with("tcp/"));
    if let (Some(open), Some(proven)) = (open, all().find(certified)) {
        return Err(format!(
            "{open} and {proven} cannot share a link, because peers prove nothing over tcp; give each a link of its own"
        ));
    }
    if let Some(endpoint) = all().find(certified).filter(|_| link.tls.is_none()) {
        return Err(format!(
            "{endpoint} needs tls_cert, tls_key and tls_ca, with which both ends prove their identity; paceline \
             trust makes such files"
        ));
    }
    let open = link.listen.iter().find(|it| !is_safe(it)).filter(|_| !link.insecure);
    if let Some(open) = open {
        return Err(format!(
            "listening on {open} accepts connections from any host; use quic/…, an address of this host, or set \
             insecure"
        ));
    }
    proxy(link)
}

fn proxy(link: &LinkConfig) -> Result<(), String> {
    if let Some((proxy, what)) = &link.bad_proxy {
        return Err(format!("proxy '{proxy}' {what}"));
    }
    if link.proxy.is_none() {
        return Ok(());
    }
    let passes = |it: &&String| it.starts_with("tcp/") || it.starts_with("tls/");
    match link.connect.iter().find(|it| !passes(it)) {
        Some(other) => Err(format!("{other} cannot pass an HTTP proxy; use tls/ or tcp/")),
        None if link.connect.is_empty() => {
            Err("a proxy is for connecting; set connect, or remove proxy".to_owned())
        }
        None => Ok(()),
    }
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
    use std::time::Duration;

    #[test]
    fn listening_is_safe_on_this_host_or_with_certificates() {
        for safe in [
            "tcp/127.0.0.1:7600",
            "tcp/[::1]:7600",
            "tcp/localhost:7600",
            "tls/0.0.0.0:7600",
            "unix//run/a.sock",
        ] {
            assert!(is_safe(safe), "{safe}");
        }
        for open in [
            "tcp/0.0.0.0:7600",
            "tcp/[::]:7600",
            "tcp/localhost.example:7600",
            "tcp/127.example:7600",
            "tcp/10.0.0.1:7600",
            "nonsense",
        ] {
            assert!(!is_safe(open), "{open}");
        }
    }

    #[test]
    fn wrong_endpoints_are_named_with_a_fix() {
        let link = || LinkConfig::new("radio");
        for (wrong, part) in [
            (link().connect("udp/robot:7600"), "use quic/robot:7600"),
            (link().connect("ws/robot:7600"), "the protocol must be quic, tls, tcp"),
            (link().connect("tcp/robot:7600#so_sndbuf=1"), "tcp/HOST:PORT without options"),
            (link().connect("tcp/robot"), "tcp/HOST:PORT without options"),
            (link().connect("tls/robot:7600"), "tls/robot:7600 needs tls_cert, tls_key"),
            (link().listen("tls/0.0.0.0:7600"), "tls/0.0.0.0:7600 needs tls_cert, tls_key"),
            (link().listen("tcp/0.0.0.0:7600"), "accepts connections from any host"),
            (
                link().connect("tcp/robot:7600").listen("unix//run/a.sock"),
                "unix//run/a.sock shares the link",
            ),
            (link().connect("tcp/robot:7600").proxy("proxy"), "proxy 'proxy' must be http://"),
            (link().listen("tcp/127.0.0.1:0").proxy("http://p:1"), "a proxy is for connecting"),
            (
                link().connect("quic/robot:7600").tls("a", "b", "c").proxy("http://p:1"),
                "quic/robot:7600 cannot pass an HTTP proxy",
            ),
        ] {
            let refused = wrong.check().unwrap_err().to_string();
            assert!(refused.contains(part), "{refused}");
        }
        let mixed = link().connect("tls/a:1").connect("quic/b:1").tls("a", "b", "c");
        assert!(mixed.check().is_ok());
        let mixed = mixed.connect("tcp/c:1").check().unwrap_err().to_string();
        assert!(mixed.contains("tcp/c:1 and tls/a:1 cannot share a link"), "{mixed}");
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
    fn a_capacity_is_measured_where_there_is_one() {
        use crate::LinkCapacity;
        use paceline_proto::link::LinkClass;
        let auto = || LinkConfig::new("radio").capacity("auto".parse::<LinkCapacity>().unwrap());
        assert!(auto().connect("tls/127.0.0.1:1").tls("c", "k", "a").check().is_ok());
        let local = auto().listen("unix//tmp/radio.sock").check().unwrap_err().to_string();
        assert!(local.contains("a unix socket has none to measure"), "{local}");
        let video = LinkClass { name: "video".to_owned(), ..LinkClass::default() };
        let classed = auto().connect("tcp/127.0.0.1:1").class(video);
        let classed = classed.check().unwrap_err().to_string();
        assert!(classed.contains("classes share a capacity that is known"), "{classed}");
    }

    #[test]
    fn a_medium_needs_a_fixed_capacity_and_one_stream_of_frames() {
        use crate::{Capacity, LinkCapacity};
        use paceline_proto::link::LinkClass;
        let air = |bits| Medium::new("air", Capacity::from_bits_per_s(bits).unwrap());
        let link = || LinkConfig::new("radio").connect("tcp/127.0.0.1:1");
        assert!(link().medium(air(64_000)).check().is_ok());
        let auto = || link().capacity("auto".parse::<LinkCapacity>().unwrap());
        let video = LinkClass { name: "video".to_owned(), ..LinkClass::default() };
        let slow = Medium { access: Duration::from_secs(2).into(), ..air(2_000_000) };
        let unix = LinkConfig::new("radio").listen("unix//tmp/radio.sock");
        let unnamed = Medium::new("", air(64_000).capacity);
        for (wrong, part) in [
            (link().medium(air(63_992)), "at least 64 kbit/s, not 63.99 kbit/s"),
            (link().medium(slow), "an access time of at most 1 s, not 2 s"),
            (auto().medium(air(2_000_000)), "medium 'air' needs a fixed capacity, such as 2mbit"),
            (link().class(video).medium(air(2_000_000)), "a link without classes"),
            (unix.medium(air(2_000_000)), "an endpoint for other hosts"),
            (link().medium(unnamed), "the name of its medium must be 1 to 255 bytes"),
        ] {
            let refused = wrong.check().unwrap_err().to_string();
            assert!(refused.contains(part), "{refused}");
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
