//! Configuration of a node and its links.

use crate::access::Audit;
use crate::identity::{Identity, TlsFiles};
use crate::multicast::MulticastRange;
use crate::proxy::Proxy;
use crate::time::ClockConfig;
use paceline_proto::Carrier;
use paceline_proto::address::Address;
use paceline_proto::capacity::LinkCapacity;
use paceline_proto::control::CpuBudget;
use paceline_proto::link::LinkClass;
use paceline_proto::medium::Medium;
use paceline_sched::{Capacity, Policy};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Configuration of one link: endpoints that share one capacity and one scheduler.
///
/// Endpoints are `PROTOCOL/ADDRESS`: `quic/192.0.2.7:7600`, `tls/robot:7600`, `tcp/127.0.0.1:7600`,
/// `unix//run/a.sock`. `quic/` and `tls/` need [`Self::tls`]. On a `quic/` link with a capacity,
/// Paceline retransmits lost data as each subscription requests, as long as it can arrive in time. On all other
/// links, and on those that are [ordered](Self::ordered), everything arrives in order.
///
/// ```
/// use paceline::LinkConfig;
///
/// let radio = LinkConfig::new("radio").listen("tcp/127.0.0.1:7600").capacity_bits_per_s(2_000_000);
/// radio.check()?;
/// let open = LinkConfig::new("radio").listen("tcp/0.0.0.0:7600");
/// assert!(open.check().is_err_and(|error| error.to_string().contains("insecure")));
/// # Ok::<(), paceline::OpenError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct LinkConfig {
    pub(crate) name: String,
    pub(crate) listen: Vec<String>,
    pub(crate) connect: Vec<String>,
    /// The present capacity: as configured, or as measured so far.
    pub(crate) capacity: Option<Capacity>,
    /// The range within which the capacity is measured.
    pub(crate) measured: Option<LinkCapacity>,
    /// The medium that it shares with other links.
    pub(crate) medium: Option<Medium>,
    /// A change of the capacity changes that of the medium, too.
    pub(crate) medium_follows_capacity: bool,
    /// A capacity in bits per second that is too small.
    pub(crate) too_thin: Option<u64>,
    pub(crate) policy: Policy,
    /// The queue space for contracts in bytes; `None` for the default.
    pub(crate) buffer: Option<u64>,
    pub(crate) classes: Vec<LinkClass>,
    pub(crate) insecure: bool,
    pub(crate) ordered: bool,
    pub(crate) multicast: Option<MulticastRange>,
    pub(crate) proxy: Option<Proxy>,
    /// A proxy of an invalid form, without its password, and the error.
    pub(crate) bad_proxy: Option<(String, String)>,
    pub(crate) tls: Option<TlsFiles>,
    /// The identity in these files, once the node has loaded them.
    pub(crate) identity: Option<Arc<Identity>>,
    /// The audit log of the node.
    pub(crate) audit: Audit,
    /// The node has a policy, in which other users of the host may have rights.
    pub(crate) serves_users: bool,
}

impl LinkConfig {
    /// Creates a link named `name` without endpoints.
    ///
    /// Add at least one endpoint with [`Self::listen`] or [`Self::connect`].
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Listens for neighbours at `endpoint`.
    #[must_use]
    pub fn listen(mut self, endpoint: &str) -> Self {
        self.listen.push(endpoint.to_owned());
        self
    }

    /// Connects to the neighbour at `endpoint`, and retries until it answers.
    #[must_use]
    pub fn connect(mut self, endpoint: &str) -> Self {
        self.connect.push(endpoint.to_owned());
        self
    }

    /// Sets the capacity on the wire, including the headers of all layers.
    ///
    /// Without a capacity the link sends each sample immediately and cannot grant a contract. A capacity that nobody knows is
    /// measured ([`LinkCapacity`]): contracts wait for the first measurement for up to 2 s, and then use the conservative end.
    ///
    /// ```
    /// use paceline::{LinkCapacity, LinkConfig};
    ///
    /// let radio: LinkCapacity = "auto 1mbit..50mbit".parse()?;
    /// LinkConfig::new("radio").connect("tcp/192.0.2.7:7600").capacity(radio).check()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn capacity(mut self, capacity: impl Into<LinkCapacity>) -> Self {
        let capacity = capacity.into();
        self.capacity = Some(capacity.first());
        self.measured = capacity.is_measured().then_some(capacity);
        self
    }

    /// Shares a medium, such as a radio channel, with other links of this node and of others: all links with a medium of this
    /// name together send at most its capacity, less 1/16 for links that join. One of the nodes is the manager and
    /// allots each link a rate, which bounds contracts and best effort.
    ///
    /// Each end of a link names the medium for what it sends. Without a [capacity](Self::capacity) of its own, the link can
    /// use all of the medium. If nodes state different capacities of the medium, the smallest counts.
    ///
    /// ```
    /// use paceline::{Capacity, LinkConfig, Medium};
    /// use std::time::Duration;
    ///
    /// let mut medium = Medium::new("field-radio", Capacity::from_bits_per_s(2_000_000)?);
    /// medium.access = Duration::from_millis(16).into();
    /// LinkConfig::new("radio").connect("tcp/192.0.2.7:7600").medium(medium).check()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn medium(mut self, medium: Medium) -> Self {
        self.medium = Some(medium);
        self
    }

    /// Lets the capacity of the [medium](Self::medium) follow that of this link: [`Node::set_capacity`](crate::Node::set_capacity)
    /// changes both. Otherwise the medium keeps its own.
    ///
    /// ```
    /// use paceline::{Capacity, LinkConfig, Medium};
    ///
    /// let capacity = Capacity::from_bits_per_s(2_000_000)?;
    /// let radio = LinkConfig::new("radio").connect("tcp/192.0.2.7:7600").capacity(capacity);
    /// radio.medium(Medium::new("field-radio", capacity)).medium_follows_capacity().check()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn medium_follows_capacity(mut self) -> Self {
        self.medium_follows_capacity = true;
        self
    }

    /// Returns the capacity of this link, which that of its medium bounds.
    pub(crate) fn bounded_capacity(&self) -> Option<Capacity> {
        let of_medium = self.medium.as_ref().map(|medium| medium.capacity);
        self.capacity.into_iter().chain(of_medium).min()
    }

    /// Sets the capacity in bits per second, at least 8. See [`Self::capacity`].
    #[must_use]
    pub fn capacity_bits_per_s(mut self, bits: u64) -> Self {
        match Capacity::from_bits_per_s(bits) {
            Ok(capacity) => self.capacity = Some(capacity),
            Err(_) => self.too_thin = Some(bits),
        }
        self
    }

    /// Sets the queue space for contracts, in bytes on the wire. Defaults to 256 MB.
    ///
    /// Admission reserves for each contract the most bytes that it can have queued, and refuses those that do
    /// not fit. Best effort has queues of its own.
    #[must_use]
    pub const fn buffer_bytes(mut self, bytes: u64) -> Self {
        self.buffer = Some(bytes);
        self
    }

    /// Sets the scheduling policy. Defaults to VDS.
    #[must_use]
    pub const fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Adds a class to the class tree that shares this link.
    ///
    /// Each stream belongs to the first class that matches it. Without classes all streams share
    /// one scheduler with [`Self::policy`]. With classes, that policy applies to the classes that
    /// set none.
    #[must_use]
    pub fn class(mut self, class: LinkClass) -> Self {
        self.classes.push(class);
        self
    }

    /// Allows listening on an address beyond this host without TLS.
    #[must_use]
    pub const fn insecure(mut self) -> Self {
        self.insecure = true;
        self
    }

    /// Delivers everything that this end sends in order, also on a `quic/` link with a capacity. A lost packet then
    /// delays all that follows.
    #[must_use]
    pub const fn ordered(mut self) -> Self {
        self.ordered = true;
        self
    }

    /// Sends a stream that several neighbours on the same network segment receive in the same form to a UDP multicast group,
    /// once for all of them.
    ///
    /// The first address of the range is for probes, and each other one for one stream. Both ends configure the same range, the link uses QUIC between IPv4 addresses and
    /// has a [capacity](Self::capacity), which is that of the segment, and no classes. Frames in groups are encrypted and
    /// authenticated as on the connection, and what is lost is retransmitted there. Neighbours that receive no probes, and
    /// streams that no other neighbour receives, have unicast.
    #[must_use]
    pub const fn multicast(mut self, range: MulticastRange) -> Self {
        self.multicast = Some(range);
        self
    }

    /// Connects the `tcp/` and `tls/` endpoints of the link through this HTTP proxy, by its method CONNECT:
    /// `http://HOST:PORT` or `http://USER:PASSWORD@HOST:PORT`.
    #[must_use]
    pub fn proxy(mut self, proxy: &str) -> Self {
        match Proxy::parse(proxy) {
            Ok(proxy) => self.proxy = Some(proxy),
            // Without the password.
            Err(what) => {
                let place = proxy.rsplit('@').next().unwrap_or_default();
                self.bad_proxy = Some((place.to_owned(), what));
            }
        }
        self
    }

    /// Sets the files with which this end proves its identity: its certificate, the private key of
    /// that, and the authorities whose certificates the other end may have, all in PEM format.
    ///
    /// Both ends of a link prove their identity, and one authority issues the certificates of all nodes of
    /// a network and of nothing else. `paceline trust` makes an authority and certificates. The
    /// authority's file may also contain its revocation lists. All links of a node have the same
    /// certificate.
    #[must_use]
    pub fn tls(
        mut self,
        cert: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
        ca: impl Into<PathBuf>,
    ) -> Self {
        self.tls = Some(TlsFiles { cert: cert.into(), key: key.into(), ca: ca.into() });
        self
    }

    /// Returns true if only processes of this host reach the link's endpoints.
    pub(crate) fn is_local(&self) -> bool {
        self.listen.iter().chain(&self.connect).all(|endpoint| is_local_endpoint(endpoint))
    }

    /// Returns true for a link between the processes of a host.
    pub(crate) fn is_host(&self) -> bool {
        let mut endpoints = self.listen.iter().chain(&self.connect);
        endpoints.all(|endpoint| endpoint.starts_with("unix/"))
    }

    /// Returns the capacity that its scheduler measures: within a range, or while the link contradicts a stated one. Shares of
    /// a medium, the path to one member of a multicast group, and sockets of one host are not measured.
    pub(crate) fn measurable(&self) -> Option<LinkCapacity> {
        let shared = self.multicast.is_some() || self.medium.is_some();
        let plain = !self.is_host() && !shared;
        self.measured.or_else(|| self.capacity.filter(|_| plain).map(LinkCapacity::Fixed))
    }

    /// Returns true if this end connects to a neighbour.
    pub(crate) const fn connects(&self) -> bool {
        !self.connect.is_empty()
    }

    /// Returns true if everything on the link is encrypted, or does not leave the host.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.listen.iter().chain(&self.connect).all(|endpoint| is_safe(endpoint))
    }

    /// Returns true if the link's peers have all rights unless a policy says otherwise: this node has chosen
    /// to connect to them, or to open the link to anybody.
    pub(crate) const fn is_open(&self) -> bool {
        self.insecure || self.listen.is_empty()
    }

    /// Returns true if each peer of the link has a certificate.
    pub(crate) fn is_certified(&self) -> bool {
        self.listen.iter().chain(&self.connect).all(|endpoint| is_certified(endpoint))
    }

    /// Returns true if this end sends all frames in byte streams.
    pub(crate) fn is_ordered(&self) -> bool {
        self.ordered || self.capacity.is_none() || !self.is_quic()
    }

    /// Returns true if the link uses QUIC.
    pub(crate) fn is_quic(&self) -> bool {
        self.listen.iter().chain(&self.connect).any(|endpoint| endpoint.starts_with("quic/"))
    }

    /// The transport of the link's frames. Several endpoints share the one with the shortest
    /// frames.
    pub(crate) fn carrier(&self) -> Carrier {
        if !self.is_ordered() {
            Carrier::Datagrams
        } else if self.is_host() {
            Carrier::Local
        } else {
            Carrier::Ordered
        }
    }
}

/// Configures and opens a [`Node`](crate::Node). Created by [`Node::builder`](crate::Node::builder).
#[derive(Clone, Debug, Default)]
pub struct NodeBuilder {
    pub(crate) name: Option<String>,
    pub(crate) label: Option<String>,
    pub(crate) runtime_dir: Option<PathBuf>,
    pub(crate) isolated: bool,
    pub(crate) guest: bool,
    pub(crate) links: Vec<LinkConfig>,
    pub(crate) processor: Option<CpuBudget>,
    pub(crate) host_buffer: Option<u64>,
    pub(crate) neighbour_memory: Option<u64>,
    pub(crate) realtime: bool,
    pub(crate) policy: Option<PathBuf>,
    pub(crate) token: Option<PathBuf>,
    pub(crate) clock: ClockConfig,
}

impl NodeBuilder {
    /// Returns the default of [`Self::runtime_dir`].
    #[must_use]
    pub fn default_runtime_dir() -> PathBuf {
        default_dir()
    }

    /// Sets the display name of the node. Defaults to the name in its certificate, then to its
    /// [label](Self::label).
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Sets the text from which the default name is made. Defaults to the name of the program.
    ///
    /// The first node of a host with the label `viewer` is named `viewer`, the next one `viewer-2`, and so on. An
    /// isolated node, and a guest of another user's node, has the process number instead. Characters other than ASCII
    /// letters, digits, `.`, `_` and `-` are replaced, and the label ends after 40 bytes.
    #[must_use]
    pub fn label(mut self, label: &str) -> Self {
        self.label = Some(label.to_owned());
        self
    }

    /// Adds a link. A node accepts [`Node::LINKS_MAX`](crate::Node::LINKS_MAX) links in addition to its host link.
    #[must_use]
    pub fn link(mut self, link: LinkConfig) -> Self {
        self.links.push(link);
        self
    }

    /// Sets the folder of `node.sock`, the socket that joins the processes of a host.
    ///
    /// Defaults to `$PACELINE_RUNTIME_DIR`, then `$XDG_RUNTIME_DIR/paceline`, then a folder of this
    /// user in the system's temporary folder.
    #[must_use]
    pub fn runtime_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.runtime_dir = Some(dir.into());
        self
    }

    /// Isolates the node from the other processes of this host: it opens no host socket and uses
    /// only the configured links.
    #[must_use]
    pub const fn isolated(mut self) -> Self {
        self.isolated = true;
        self
    }

    /// Connects to this host's node but never becomes it. Use it for short-lived tools, so that no
    /// other process depends on them.
    #[must_use]
    pub const fn guest(mut self) -> Self {
        self.guest = true;
        self
    }

    /// Sets the policy file: the rights of other nodes at this one, in TOML.
    ///
    /// Each `[[rule]]` grants rights to the peers that it names; everything else is refused. A change of the
    /// file takes effect within 2 s. By default, the processes of this host have all rights, and so have the
    /// peers of links that this node connects or opens with [`LinkConfig::insecure`]. Peers that connect with
    /// a certificate have none.
    ///
    /// ```toml
    /// audit = "audit.jsonl"
    ///
    /// [[rule]]
    /// peers = ["operator-*"]
    /// publish = ["cmd/**"]
    /// subscribe = ["camera/**", "status"]
    /// rate = "30Hz"
    /// bandwidth = "4mbit"
    /// within = "50ms"
    /// observe = true
    /// ```
    #[must_use]
    pub fn policy(mut self, file: impl Into<PathBuf>) -> Self {
        self.policy = Some(file.into());
        self
    }

    /// Sets the file of a token that grants this node rights at other nodes: a JSON Web Token of an identity
    /// provider that they trust. A change of the file takes effect within 2 s.
    #[must_use]
    pub fn token(mut self, file: impl Into<PathBuf>) -> Self {
        self.token = Some(file.into());
        self
    }

    /// Sets the servers that the node's clock follows, and the address at which it serves time.
    ///
    /// By default the clock follows that of this host's node. If that follows none either, it is the system clock, with
    /// an unknown error.
    #[must_use]
    pub fn clock(mut self, clock: ClockConfig) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the processor cost of samples on this host and the share of a processor that samples may use.
    ///
    /// On every path with a contract this node charges each stream that it forwards. Best effort may use the rest of the
    /// share: samples beyond it are dropped as [`ProcessorBusy`](paceline_proto::DropReason::ProcessorBusy). By default
    /// nothing is charged, and nothing is dropped for this reason.
    #[must_use]
    pub const fn processor(mut self, budget: CpuBudget) -> Self {
        self.processor = Some(budget);
        self
    }

    /// Sets the queue space of this node for contracts, in bytes with headers: on all its links and for its subscribers
    /// together. Defaults to 1 GB; each link also has a [buffer](LinkConfig::buffer_bytes) of its own.
    ///
    /// A contract that does not fit is refused with the figures.
    #[must_use]
    pub const fn host_buffer(mut self, bytes: u64) -> Self {
        self.host_buffer = Some(bytes);
        self
    }

    /// The least [memory for neighbours](Self::neighbour_memory), in bytes.
    pub const NEIGHBOUR_MEMORY_MIN: u64 = 32_000_000;

    /// Sets the memory for the input of all neighbours together, in bytes: unfinished samples, queued control messages,
    /// the records of other nodes and the current pictures of videos. Defaults to 128 MiB; less than 32 MB counts as
    /// 32 MB.
    ///
    /// If it is full, the neighbour with the most unfinished samples drops some. A sample for which there is no room is
    /// counted as [`DropReason::TooLarge`](crate::status::DropReason).
    #[must_use]
    pub const fn neighbour_memory(mut self, bytes: u64) -> Self {
        self.neighbour_memory = Some(bytes);
        self
    }

    /// Gives the node's threads real-time priorities (SCHED_FIFO, 1 to 20) and locks the memory of the process, where
    /// that is permitted. By default they have the priority of the thread that opens the node.
    ///
    /// The processor is then reserved for the node: busy programs on the same host do not delay its contracts. Grants
    /// name the nodes for which that is so ([`GrantedHop::realtime`](crate::contract::GrantedHop)). Callbacks of
    /// subscribers run at this priority, too, so they must be short. Without permission the node logs a warning.
    #[must_use]
    pub const fn realtime(mut self, realtime: bool) -> Self {
        self.realtime = realtime;
        self
    }
}

/// Returns true if both ends of a connection to the endpoint show certificates.
pub(crate) fn is_certified(endpoint: &str) -> bool {
    endpoint.starts_with("quic/") || endpoint.starts_with("tls/")
}

/// Returns true if the endpoint is only reachable from this host, or for peers that prove their identity.
pub(crate) fn is_safe(endpoint: &str) -> bool {
    is_local_endpoint(endpoint) || is_certified(endpoint)
}

/// Returns true if only processes of this host reach the endpoint, such as `tcp/127.0.0.1:7600`.
#[must_use]
pub fn is_local_endpoint(endpoint: &str) -> bool {
    let Some((protocol, rest)) = endpoint.split_once('/') else { return false };
    let address = rest.split(['?', '#']).next().unwrap_or_default();
    protocol == "unix"
        || protocol == "unixsock-stream" // Zenoh's name
        || Address::parse(address).is_ok_and(|address| address.is_local())
}

/// Returns the default runtime folder.
///
/// That is `$PACELINE_RUNTIME_DIR` if set, then `$XDG_RUNTIME_DIR/paceline`, then a folder of this
/// user in the system's temporary folder.
pub(crate) fn default_dir() -> PathBuf {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(dir) = named("PACELINE_RUNTIME_DIR") {
        return dir;
    }
    if let Some(dir) = named("XDG_RUNTIME_DIR").filter(|dir| Path::new(dir).is_dir()) {
        return dir.join("paceline");
    }
    std::env::temp_dir().join(format!("paceline-{}", rustix::process::geteuid().as_raw()))
}
