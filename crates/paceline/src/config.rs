//! How a node is opened: its name, its place on the host, its links.

use crate::error::OpenError;
use crate::node::Node;
use paceline_proto::control::CpuBudget;
use paceline_proto::link::{Carrier, LinkClass};
use paceline_sched::{Capacity, Policy};
use std::path::PathBuf;

/// One link of a node: the endpoints that share one capacity and one scheduler.
///
/// Endpoints are Zenoh's: `tcp/127.0.0.1:7600`, `udp/[::1]:7600`, `unixsock-stream//run/a.sock`. Over `udp/` what
/// is lost is sent again by Paceline, as each subscription asks for and as long as it can arrive in time.
#[derive(Clone, Debug, Default)]
pub struct LinkConfig {
    pub(crate) name: String,
    pub(crate) listen: Vec<String>,
    pub(crate) connect: Vec<String>,
    pub(crate) capacity: Option<Capacity>,
    pub(crate) policy: Policy,
    pub(crate) classes: Vec<LinkClass>,
    pub(crate) insecure: bool,
}

impl LinkConfig {
    /// A link named `name` without endpoints; it needs at least one of [`Self::listen`] and
    /// [`Self::connect`].
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Waits for neighbours at `endpoint`.
    #[must_use]
    pub fn listen(mut self, endpoint: &str) -> Self {
        self.listen.push(endpoint.to_owned());
        self
    }

    /// Reaches out to the neighbour at `endpoint`, again and again until it answers.
    #[must_use]
    pub fn connect(mut self, endpoint: &str) -> Self {
        self.connect.push(endpoint.to_owned());
        self
    }

    /// What the link carries, on the wire, headers counted. Without one the link takes whatever
    /// comes and can hold no contract.
    #[must_use]
    pub const fn capacity(mut self, capacity: Capacity) -> Self {
        self.capacity = Some(capacity);
        self
    }

    /// Which discipline schedules it; VDS if not said.
    #[must_use]
    pub const fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Adds a class: the link is shared by its classes, and each stream belongs to the first that wants
    /// it. Without any all streams are in one, under [`Self::policy`]; with classes that is the
    /// discipline of those that name none.
    #[must_use]
    pub fn class(mut self, class: LinkClass) -> Self {
        self.classes.push(class);
        self
    }

    /// Allows listening beyond this host without TLS.
    #[must_use]
    pub const fn insecure(mut self) -> Self {
        self.insecure = true;
        self
    }

    /// The transport that carries its frames; of several endpoints the one with the shortest frames.
    pub(crate) fn carrier(&self) -> Carrier {
        let mut endpoints = self.listen.iter().chain(&self.connect);
        if endpoints.clone().any(|endpoint| endpoint.starts_with("udp/")) {
            Carrier::Datagrams
        } else if endpoints.all(|endpoint| endpoint.starts_with("unixsock-stream/")) {
            Carrier::Local
        } else {
            Carrier::Ordered
        }
    }

    /// Says what [`NodeBuilder::open`] would refuse about this link before it opens anything.
    ///
    /// # Errors
    /// [`OpenError::Link`]: a name that is empty, too long or no plain text, no endpoint, one that lets anybody in, or classes that contradict each other.
    pub fn check(&self) -> Result<(), OpenError> {
        crate::check::link(self)
    }
}

/// Opens a [`Node`].
#[derive(Clone, Debug, Default)]
pub struct NodeBuilder {
    pub(crate) name: Option<String>,
    pub(crate) runtime_dir: Option<PathBuf>,
    pub(crate) isolated: bool,
    pub(crate) guest: bool,
    pub(crate) links: Vec<LinkConfig>,
    pub(crate) processor: Option<CpuBudget>,
}

impl NodeBuilder {
    /// What people call this node; host name and process number if not said.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Adds a link; a node takes [`LINKS_MAX`](crate::LINKS_MAX) beside the host's own.
    #[must_use]
    pub fn link(mut self, link: LinkConfig) -> Self {
        self.links.push(link);
        self
    }

    /// The folder whose `node.sock` joins the processes of a host; `$PACELINE_RUNTIME_DIR`, else
    /// `$XDG_RUNTIME_DIR/paceline`, else a folder of this user's under the system's temporary one.
    #[must_use]
    pub fn runtime_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.runtime_dir = Some(dir.into());
        self
    }

    /// Stays apart from the other processes of this host: no socket, only the links given.
    #[must_use]
    pub const fn isolated(mut self) -> Self {
        self.isolated = true;
        self
    }

    /// Joins this host's node if there is one, and never becomes it: for tools that look and leave, so
    /// that nobody comes to depend on them.
    #[must_use]
    pub const fn guest(mut self) -> Self {
        self.guest = true;
        self
    }

    /// What samples cost this host, and what of a processor promises may use: on every path that is promised
    /// anything, this node charges each stream that it hands on. Nothing is charged if it is not said.
    #[must_use]
    pub const fn processor(mut self, budget: CpuBudget) -> Self {
        self.processor = Some(budget);
        self
    }

    /// Opens the node. It connects in the background; nothing here waits for a neighbour.
    ///
    /// # Errors
    /// [`OpenError`] names the link or folder, what is wrong with it, and the mend.
    pub fn open(self) -> Result<Node, OpenError> {
        Node::open_with(self)
    }
}
