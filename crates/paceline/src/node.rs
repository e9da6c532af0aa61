//! The node: one Paceline engine with its links, and the entry point of the library.

mod link;

use crate::access::{Audit, Entry};
use crate::check::{self, classes, wrong_class};
use crate::config::{LinkConfig, NodeBuilder, default_dir};
use crate::error::{CapacityError, ClassesError, OpenError};
use crate::identity::{Identity, Introduction};
use crate::label::{self, Claim};
use crate::limits;
use crate::network::NetworkView;
use crate::shell::clockwork::Clockwork;
use crate::shell::clockwork::follow::Follower;
use crate::shell::clockwork::neighbours::NeighbourPort;
use crate::shell::command::{COMMANDS_MAX, Command, Commands};
use crate::shell::depth::HostDepth;
use crate::shell::engine::{Engine, Parts};
use crate::shell::gate::Gate;
use crate::shell::host::Host;
use crate::shell::opening::WaitingBytes;
use crate::shell::rx::RxSources;
use crate::shell::vitals::{Vitals, Watchdog};
use crate::status::{NodeStatus, SourceView};
use crate::time::{Clock, ClockConfig};
use crate::view::View;
use link::open_link;
use paceline_proto::control::{Control, HOST_LINK};
use paceline_proto::link::LinkClass;
use paceline_proto::memory::Memory;
use paceline_proto::{DropReason, NodeId, Pattern, SubscriptionId};
use paceline_sched::Capacity;
use std::collections::BTreeSet;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

const ENGINE: &str = "paceline-engine";

/// A Paceline engine and its links.
///
/// `Node` is a cheap handle: clones, publishers, subscriptions and buffers share one engine.
/// Dropping the last of them closes the node.
///
/// ```no_run
/// use paceline::{LinkConfig, Node};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let radio = LinkConfig::new("radio").connect("tcp/10.0.0.2:7600").capacity_bits_per_s(2_000_000);
/// let node = Node::builder().name("operator").link(radio).open()?;
/// let mut steer = node.publisher("robot/steer").hz(100.0).declare()?;
/// steer.put("left")?;
/// for status in node.status(Duration::from_millis(500)) {
///     println!("{}: {} links", status.name, status.links.len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Node {
    inner: Arc<Inner>,
}

struct Inner {
    id: NodeId,
    name: String,
    commands: Commands,
    sources: Arc<RxSources>,
    waiting: Arc<WaitingBytes>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    vitals: Arc<Vitals>,
    audit: Audit,
    watchdog: Mutex<Option<Watchdog>>,
    clock: NodeClock,
    /// The default name of this node, reserved among the processes of the host.
    _claim: Option<Claim>,
}

/// The clock of a node, and its thread if it has servers.
struct NodeClock {
    handle: Clock,
    work: Mutex<Option<Clockwork>>,
}

impl Node {
    /// The largest number of links of a node, not counting the link to the other processes of its
    /// host.
    ///
    /// Each link uses a thread and a transport session of its own.
    pub const LINKS_MAX: usize = limits::LINKS_MAX;

    /// The name of the link between the processes of a host.
    pub const HOST_LINK: &str = HOST_LINK;

    /// Opens an embedded node with default settings.
    ///
    /// The first node of a host listens for the host's other processes; later ones connect to it.
    /// Use [`Self::builder`] to give the node a name, links or a runtime folder.
    ///
    /// # Errors
    /// Returns an [`OpenError`] that names the cause and a remedy.
    pub fn open() -> Result<Self, OpenError> {
        Self::builder().open()
    }

    /// Returns a builder for a node with its own name, links or runtime folder.
    #[must_use]
    pub fn builder() -> NodeBuilder {
        NodeBuilder::default()
    }

    fn open_with(builder: NodeBuilder) -> Result<Self, OpenError> {
        check_links(&builder)?;
        let identity = identity(&builder.links)?;
        let name = name(&builder, identity.as_deref())?;
        let gate = Gate::open(&builder)?;
        let introduction = introduction(identity.as_deref());
        let id = introduction.id();
        let audit = gate.audit();
        let (sender, inbox) = sync_channel(COMMANDS_MAX);
        let commands = Commands::new(sender);
        let sources = Arc::new(RxSources::new(memory(&builder)));
        let vitals = vitals(builder.realtime, &commands);
        let (place, host_link) = host_place(&builder)?.unzip();
        let mut host = place.map(|place| (place, 0));
        let place = host.as_ref().map(|(place, _)| place);
        let (name, claim) = name.map_or_else(|| labelled(&builder, place), |name| (name, None));
        let mut control = control(id, &name, &builder);
        let configs: Vec<_> = host_link.into_iter().chain(builder.links).collect();
        let (clock, follower, neighbours) =
            start_clock(&builder.clock, (&vitals, &commands), place, &configs)?;
        let (mut threads, mut links) = (Vec::new(), Vec::new());
        for mut config in configs {
            config.identity = identity.clone().filter(|_| config.tls.is_some());
            config.audit = audit.clone();
            config.serves_users = gate.has_policy();
            declare_link(&mut control, &config);
            let (link, thread) =
                open_link(introduction, links.len(), config, &sources, (&commands, &vitals))?;
            links.push(link);
            threads.push(thread);
        }
        host.iter_mut().filter(|(it, _)| it.listens()).for_each(|(it, _)| it.note_bound());
        let engine = Engine::new(
            Parts {
                control,
                introduction,
                name: name.clone(),
                inbox,
                commands: commands.clone(),
                links,
                host,
                sources: sources.clone(),
                vitals: vitals.clone(),
                gate,
                clock: clock.handle.clone(),
                follower,
                neighbours,
            },
            vitals.pulse(ENGINE),
        );
        let named = std::thread::Builder::new().name(ENGINE.to_owned());
        threads.push(named.spawn(move || engine.run(ENGINE)).map_err(OpenError::Thread)?);
        let watchdog = Mutex::new(Some(vitals.watch().map_err(OpenError::Thread)?));
        let (waiting, threads) = (Arc::default(), Mutex::new(threads));
        Ok(Self {
            inner: Arc::new(Inner {
                id,
                name,
                commands,
                sources,
                waiting,
                threads,
                vitals,
                audit,
                watchdog,
                clock,
                _claim: claim,
            }),
        })
    }

    /// Returns the identifier of this node, drawn at random when it was opened.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.inner.id
    }

    /// Adds an entry to the audit log that the node's [policy](NodeBuilder::policy) names; does nothing without one.
    /// `details` are names and values.
    ///
    /// Use it for access that the program itself refuses, such as at its own HTTP interface. Of more than 50 entries
    /// per second, the others are only counted as lost.
    pub fn audit(&self, event: &'static str, details: &[(&'static str, &str)]) {
        let entry =
            details.iter().fold(Entry::new(event), |entry, (name, text)| entry.text(name, text));
        self.inner.audit.note_stranger(entry);
    }

    /// Returns the display name of this node.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the reason why the node ended by itself: one of its threads panicked.
    ///
    /// Returns `None` while the node works and after [`Self::close`]. After a fault, every other
    /// call of the node, its publishers and its subscribers reports that the node is closed.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.inner.vitals.fault()
    }

    /// Returns the clock of this node: the time with a bound on its error.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.inner.clock.handle.clone()
    }

    /// Asks every reachable node for its status and blocks for at most `timeout`.
    ///
    /// Nodes that do not answer in time are left out. The list is empty if this node is closed.
    #[must_use]
    pub fn status(&self, timeout: Duration) -> Vec<NodeStatus> {
        self.ask_status(None, timeout)
    }

    /// Asks the given nodes for their status and blocks for at most `timeout`.
    ///
    /// Nodes that do not answer in time are left out. Reading this node's own status sends nothing.
    /// Another node costs one request and one answer on every link of the path.
    #[must_use]
    pub fn status_of(&self, nodes: &[NodeId], timeout: Duration) -> Vec<NodeStatus> {
        self.ask_status(Some(nodes.to_vec()), timeout)
    }

    fn ask_status(&self, only: Option<Vec<NodeId>>, timeout: Duration) -> Vec<NodeStatus> {
        let (reply, answer) = std::sync::mpsc::channel();
        if !self.inner.commands.send(Command::Status(only, timeout, reply)) {
            return Vec::new();
        }
        // Decoded here and not by the engine, whose thread all links need.
        crate::status::decoded(&answer.recv().unwrap_or_default())
    }

    /// Opens a view of the newest sample of a subscription of this node.
    ///
    /// Returns `None` if this node has no such subscription. A view requests nothing from any link
    /// and takes no samples away from the subscriber.
    #[must_use]
    pub fn view(&self, subscription: SubscriptionId) -> Option<View> {
        let (reply, answer) = std::sync::mpsc::channel();
        if !self.inner.commands.send(Command::View(subscription, reply)) {
            return None;
        }
        answer.recv().ok().flatten().map(View::new)
    }

    /// Returns the reachable nodes and their names, from the registry of this node. Sends nothing.
    #[must_use]
    pub fn nodes(&self) -> Vec<(NodeId, String)> {
        let (reply, answer) = std::sync::mpsc::channel();
        if !self.inner.commands.send(Command::Nodes(reply)) {
            return Vec::new();
        }
        answer.recv().unwrap_or_default()
    }

    /// Returns true if the registry of this node is complete: each link that connects has a neighbour, every neighbour of
    /// a known node is known, and the neighbours of this node know it. Another reachable node may have started a moment ago. Sends nothing.
    ///
    /// Returns false as long as this node has no neighbour.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let (reply, answer) = std::sync::mpsc::channel();
        self.inner.commands.send(Command::IsComplete(reply)) && answer.recv().unwrap_or(false)
    }

    /// Returns the nodes, including this one, that can be reached without crossing a link that has
    /// a capacity. Requests to them use no capacity of such a link.
    #[must_use]
    pub fn near(&self) -> Vec<NodeId> {
        let (reply, answer) = std::sync::mpsc::channel();
        if !self.inner.commands.send(Command::Near(reply)) {
            return Vec::new();
        }
        answer.recv().unwrap_or_default()
    }

    /// Returns the publishers whose tags match `pattern`, sorted by tag, with the path to this node
    /// and their other subscriptions.
    ///
    /// Reads the registry of this node and sends nothing.
    #[must_use]
    pub fn sources(&self, pattern: &Pattern) -> Vec<SourceView> {
        let (reply, answer) = std::sync::mpsc::channel();
        if !self.inner.commands.send(Command::Sources(pattern.clone(), reply)) {
            return Vec::new();
        }
        answer.recv().unwrap_or_default()
    }

    /// Returns the topology, and the streams of the tags that match `pattern` with their places.
    ///
    /// Reads the registry of this node and sends nothing.
    #[must_use]
    pub fn network(&self, pattern: &Pattern) -> NetworkView {
        let (reply, answer) = std::sync::mpsc::channel();
        if !self.inner.commands.send(Command::Network(pattern.clone(), reply)) {
            return NetworkView::default();
        }
        answer.recv().unwrap_or_default()
    }

    /// Sets the capacity of the link named `link`.
    ///
    /// Admission uses the new capacity from now on: the node refuses subscriptions that no longer
    /// fit, and grants refused ones that now do. The capacity of the link's [medium](crate::LinkConfig::medium) bounds it, and
    /// changes only if it [follows](crate::LinkConfig::medium_follows_capacity).
    ///
    /// # Errors
    /// Returns a [`CapacityError`] if
    /// - there is no such link,
    /// - the link was opened without a capacity, or with a measured one,
    /// - the guarantees of its classes exceed `capacity`,
    /// - its medium follows it and `capacity` is below 64 kbit/s, or
    /// - the node is closed.
    pub fn set_capacity(&self, link: &str, capacity: Capacity) -> Result<(), CapacityError> {
        let (reply, answer) = std::sync::mpsc::channel();
        let command = Command::SetCapacity { link: link.to_owned(), capacity, reply };
        if !self.inner.commands.send(command) {
            return Err(CapacityError::Closed);
        }
        answer.recv().unwrap_or(Err(CapacityError::Closed))
    }

    /// Replaces the classes of a link; an empty list removes them. Takes effect at the next
    /// iteration of the link's thread.
    ///
    /// Queued samples stay queued. Loss-tolerance windows, policers and the counters of the classes
    /// restart.
    ///
    /// # Errors
    /// [`ClassesError`] if there is no such link, if it has a medium, if the classes contradict each other, or if
    /// the node is closed.
    pub fn set_classes(&self, link: &str, classes: Vec<LinkClass>) -> Result<(), ClassesError> {
        let (reply, answer) = std::sync::mpsc::channel();
        let command = Command::SetClasses { link: link.to_owned(), classes, reply };
        if !self.inner.commands.send(command) {
            return Err(ClassesError::Closed);
        }
        answer.recv().unwrap_or(Err(ClassesError::Closed))
    }

    /// Adds `samples` to the drops of this node, as read by [`Self::status`].
    ///
    /// Intended for bridges: it counts samples that arrived from another system and could not be
    /// published.
    pub fn note_dropped(&self, reason: DropReason, samples: u64) {
        self.inner.sources.drops.add(reason, samples);
    }

    /// Closes the node even if other handles exist. First sends the samples already published, for
    /// at most 500 ms.
    pub fn close(self) {
        self.inner.close();
    }

    /// Returns true if its threads have real-time priorities.
    pub(crate) fn is_realtime(&self) -> bool {
        self.inner.vitals.is_realtime()
    }

    pub(crate) fn commands(&self) -> &Commands {
        &self.inner.commands
    }

    /// The contracted samples that wait on this node.
    pub(crate) fn depth(&self) -> Arc<HostDepth> {
        self.inner.sources.depth.clone()
    }

    /// The memory budget shared by the first samples of this node's publishers.
    pub(crate) fn waiting(&self) -> &Arc<WaitingBytes> {
        &self.inner.waiting
    }
}

impl NodeBuilder {
    /// Opens the node. Connects to neighbours in the background and does not wait for them.
    ///
    /// # Errors
    /// Returns an [`OpenError`] that names the link or folder, the cause and a remedy.
    pub fn open(self) -> Result<Node, OpenError> {
        Node::open_with(self)
    }
}

impl Inner {
    fn close(&self) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        // The last handle can be dropped by a callback on one of the node's own threads. That
        // thread must not join the others, or itself.
        let me = std::thread::current().id();
        if threads.iter().any(|thread| thread.thread().id() == me) {
            self.commands.offer(Command::Close);
            return;
        }
        self.commands.send(Command::Close);
        drop(self.clock.work.lock().unwrap_or_else(PoisonError::into_inner).take());
        while let Some(thread) = threads.pop() {
            let _ = thread.join();
        }
        let watchdog = self.watchdog.lock().unwrap_or_else(PoisonError::into_inner).take();
        watchdog.into_iter().for_each(Watchdog::stop);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns the memory of a node for its neighbours.
fn memory(builder: &NodeBuilder) -> Memory {
    let least = |bytes: u64| bytes.max(NodeBuilder::NEIGHBOUR_MEMORY_MIN);
    let bytes = |bytes| usize::try_from(least(bytes)).unwrap_or(usize::MAX);
    builder.neighbour_memory.map(bytes).map_or_else(Memory::default, Memory::new)
}

/// Creates the control part of a node.
fn control(id: NodeId, name: &str, builder: &NodeBuilder) -> Control {
    let mut control = Control::new(id, name);
    control.set_records_max(memory(builder).kept_max());
    builder.processor.into_iter().for_each(|budget| control.set_processor(budget));
    builder.host_buffer.into_iter().for_each(|bytes| control.set_host_buffer(bytes));
    control
}

/// Returns the introduction of a node on its connections, with the key of its certificate if it has one.
fn introduction(identity: Option<&Identity>) -> Introduction {
    identity.map_or_else(|| Introduction::anonymous(random()), |own| *own.introduction())
}

/// Declares a link and its settings to the control part.
fn declare_link(control: &mut Control, config: &LinkConfig) {
    control.set_link(&config.name, config.policy, config.carrier());
    if config.measured.is_some() {
        control.set_measured(&config.name, true);
    }
    // An invalid tree is an error of `open_link`.
    control.set_classes(&config.name, classes(config).ok().flatten());
    config.buffer.into_iter().for_each(|bytes| control.set_buffer(&config.name, bytes));
    if let Some(medium) = &config.medium {
        control.set_medium(&config.name, medium.clone());
    }
}

/// Starts the thread of a node's clock, or follows the clock of the host's node if the node has neither servers nor
/// neighbours to follow.
fn start_clock(
    config: &ClockConfig,
    shared: (&Arc<Vitals>, &Commands),
    place: Option<&Host>,
    links: &[LinkConfig],
) -> Result<(NodeClock, Option<Follower>, Option<NeighbourPort>), OpenError> {
    config.check().map_err(OpenError::Clock)?;
    let handle = Clock::default();
    let followed = followed_links(config, place, links);
    if !config.has_source() && followed.is_empty() {
        let follower = place.map(|place| Follower::new(place.dir(), handle.clone()));
        return Ok((NodeClock { handle, work: Mutex::default() }, follower, None));
    }
    let dir = place.filter(|place| place.listens()).map(Host::dir);
    let (work, port) = Clockwork::start(config, handle.clone(), shared, dir, followed)?;
    Ok((NodeClock { handle, work: Mutex::new(Some(work)) }, None, port))
}

/// Returns the numbers of the links whose neighbours the clock follows. By default, those are the neighbours to which a node
/// without servers connects: its configuration names them, whereas anybody may connect to a node that listens.
fn followed_links(
    config: &ClockConfig,
    place: Option<&Host>,
    links: &[LinkConfig],
) -> BTreeSet<usize> {
    let is_default = !config.has_source() && place.is_none_or(Host::listens);
    let follows = |link: &LinkConfig| match config.neighbours {
        Some(all) => all,
        None => is_default && link.listen.is_empty(),
    };
    let others = links.iter().enumerate().filter(|(_, link)| !link.is_host());
    others.filter(|(_, link)| follows(link)).map(|(number, _)| number).collect()
}

/// The monitor of a node's threads; a panic of one ends the node.
fn vitals(realtime: bool, commands: &Commands) -> Arc<Vitals> {
    let vitals = Arc::new(Vitals::default());
    if realtime {
        vitals.set_realtime();
    }
    let ends = commands.clone();
    vitals.on_fault(move || {
        ends.offer(Command::Close);
    });
    vitals
}

/// Validates the links of a builder, before any resource is opened.
fn check_links(builder: &NodeBuilder) -> Result<(), OpenError> {
    if builder.links.len() > Node::LINKS_MAX {
        return Err(OpenError::TooManyLinks(builder.links.len()));
    }
    check::links(&builder.links)?;
    check::descriptors(builder.links.len() + usize::from(!builder.isolated))
}

/// Returns the node's name, if it was given. The name of a node with a certificate is the one in it, because policies
/// of others refer to that.
fn name(builder: &NodeBuilder, identity: Option<&Identity>) -> Result<Option<String>, OpenError> {
    let certified = identity.and_then(Identity::name);
    let name = match (builder.name.clone(), certified) {
        (Some(name), Some(certified)) if name != certified => {
            return Err(OpenError::CertifiedName { name, certified });
        }
        (name, certified) => name.or(certified),
    };
    name.as_deref().map(check::node_name).transpose()?;
    Ok(name)
}

/// Returns the default name, and its reservation among the processes of the host.
fn labelled(builder: &NodeBuilder, place: Option<&Host>) -> (String, Option<Claim>) {
    let label = builder.label.clone().unwrap_or_else(label::program);
    label::unique(&label, place.filter(|place| place.is_own()).map(Host::dir))
}

/// Joins the host's node or becomes it, and returns the link to it; `None` for an isolated node.
fn host_place(builder: &NodeBuilder) -> Result<Option<(Host, LinkConfig)>, OpenError> {
    if builder.isolated {
        return Ok(None);
    }
    let dir = builder.runtime_dir.clone().unwrap_or_else(default_dir);
    let place = Host::join(dir, builder.guest)?;
    let (link, endpoint) = (LinkConfig::new(HOST_LINK), place.endpoint());
    let link = if place.listens() { link.listen(&endpoint) } else { link.connect(&endpoint) };
    Ok(Some((place, link)))
}

fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // Without any entropy source, the clock and the process number still make the identifier
        // unique on this host.
        let now = u128::from(crate::shell::clock::now().as_nanos());
        return (now | u128::from(std::process::id()) << 64).to_be_bytes();
    }
    bytes
}

/// Loads the certificate of a node's links.
fn identity(links: &[LinkConfig]) -> Result<Option<Arc<Identity>>, OpenError> {
    let mut with_files = links.iter().filter_map(|link| Some((link, link.tls.as_ref()?)));
    let Some((link, files)) = with_files.next() else { return Ok(None) };
    let refuse = |link: &LinkConfig, what| OpenError::Link { link: link.name.clone(), what };
    if let Some((other, _)) = with_files.find(|(_, its)| *its != files) {
        let first = &link.name;
        return Err(refuse(
            other,
            format!(
                "its tls files differ from those of link '{first}'; a node has one certificate"
            ),
        ));
    }
    let identity = Identity::load(files, random());
    identity.map(|it| Some(Arc::new(it))).map_err(|what| refuse(link, what))
}
