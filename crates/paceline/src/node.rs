//! The node.

mod link;

use crate::buffer::BufferBuilder;
use crate::check::{self, classes, wrong_class};
use crate::config::{LinkConfig, NodeBuilder};
use crate::error::{CapacityError, ClassesError, OpenError, PublishError, SubscribeError};
use crate::publisher::PublisherBuilder;
use crate::pull::{PullBuilder, PullError};
use crate::shell::engine::{COMMANDS_MAX, Command, Commands, Engine, Silence};
use crate::shell::host::{Host, default_dir};
use crate::shell::opening::WaitingBytes;
use crate::shell::pull::Holder;
use crate::shell::rx::RxSources;
use crate::shell::scaling::ScalePool;
use crate::shell::vitals::{Vitals, Watchdog};
use crate::source::SourceView;
use crate::status::NodeStatus;
use crate::subscriber::SubscriberBuilder;
use crate::view::View;
use link::open_link;
use paceline_proto::control::{Control, Ways};
use paceline_proto::link::LinkClass;
use paceline_proto::text::escape;
use paceline_proto::{DropReason, NodeId, Pattern, SubscriptionId, Tag};
use paceline_sched::{Capacity, Instant};
use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Links that a node takes beside the host's own; each has a thread and a transport session of its own.
pub const LINKS_MAX: usize = 16;
/// The name of the engine's thread.
const ENGINE: &str = "paceline-engine";
/// The name of the link that joins the processes of a host.
const HOST_LINK: &str = "host";

/// One Paceline engine. Clones, publishers and subscriptions are handles of the same node; the last one
/// to go closes it.
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
    watchdog: Mutex<Option<Watchdog>>,
}

impl Node {
    /// Opens an embedded node: it joins the node of this host, or becomes it.
    ///
    /// # Errors
    /// [`OpenError`] names what is wrong and the mend.
    pub fn open() -> Result<Self, OpenError> {
        Self::builder().open()
    }

    /// Opens a node with a name, links or a folder of its own.
    #[must_use]
    pub fn builder() -> NodeBuilder {
        NodeBuilder::default()
    }

    pub(crate) fn open_with(builder: NodeBuilder) -> Result<Self, OpenError> {
        let name = checked_name(&builder)?;
        let id = NodeId(random());
        let (sender, inbox) = sync_channel(COMMANDS_MAX);
        let commands = Commands::new(sender);
        let sources = Arc::new(RxSources::default());
        let vitals = Arc::new(Vitals::default());
        let ends = commands.clone();
        vitals.on_fault(move || {
            ends.offer(Command::Close);
        });
        let (place, host_link) = host_place(&builder)?.unzip();
        let mut host = place.map(|place| (place, 0));
        let configs: Vec<_> = host_link.into_iter().chain(builder.links).collect();
        let mut threads = Vec::new();
        let mut links = Vec::new();
        let mut control = Control::new(id, &name);
        builder.processor.into_iter().for_each(|budget| control.set_processor(budget));
        for config in configs {
            control.set_link(&config.name, config.policy, config.carrier());
            let (link, thread) =
                open_link(id, links.len(), config, &sources, (&commands, &vitals))?;
            links.push(link);
            threads.push(thread);
        }
        let listening = host.iter_mut().map(|(place, _)| place).filter(|place| place.listens());
        listening.for_each(Host::note_bound);
        let engine = Engine {
            control,
            name: name.clone(),
            inbox,
            commands: commands.clone(),
            links,
            host_open: host.as_ref().is_some_and(|(host, _)| host.listens()),
            host,
            sources: sources.clone(),
            pool: Arc::new(ScalePool::default()),
            ways: Ways::default(),
            publishers: BTreeMap::new(),
            sinks: BTreeMap::new(),
            outgoing: BTreeMap::new(),
            heard: BTreeMap::new(),
            lingering: BTreeMap::new(),
            opening: BTreeMap::new(),
            holder: Holder::new(commands.clone()),
            asking: BTreeMap::new(),
            changing: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            awaited: BTreeMap::new(),
            tracing: BTreeMap::new(),
            excess: BTreeMap::new(),
            decide_at: Instant::ZERO,
            undecided: false,
            pulls: Default::default(),
            closing: false,
            unsettled: false,
            pending: Vec::new(),
            rates: Default::default(),
            silence: Silence::default(),
            next_tick: Instant::ZERO,
            vitals: vitals.clone(),
            pulse: vitals.pulse(ENGINE),
        };
        let named = std::thread::Builder::new().name(ENGINE.to_owned());
        threads.push(named.spawn(move || engine.run(ENGINE)).map_err(OpenError::Thread)?);
        let watchdog = Mutex::new(Some(vitals.watch().map_err(OpenError::Thread)?));
        let (waiting, threads) = (Arc::default(), Mutex::new(threads));
        let inner = Inner { id, name, commands, sources, waiting, threads, vitals, watchdog };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Who it is.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.inner.id
    }

    /// What people call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Why the node has ended by itself: a thread of it panicked. `None` while it works and after [`Self::close`].
    ///
    /// Every other call of such a node, of its publishers and subscribers returns that the node is closed.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.inner.vitals.fault()
    }

    /// A publisher on `tag`, to be declared.
    ///
    /// # Errors
    /// [`PublishError::Tag`], [`PublishError::Private`].
    pub fn publisher(&self, tag: &str) -> Result<PublisherBuilder<'_>, PublishError> {
        let tag = Tag::new(tag)?;
        if tag.is_private() {
            return Err(PublishError::Private(tag.to_string()));
        }
        Ok(PublisherBuilder::new(self, tag))
    }

    /// A subscriber to `pattern`, to be declared.
    ///
    /// # Errors
    /// [`SubscribeError::Pattern`], [`SubscribeError::Private`].
    pub fn subscriber(&self, pattern: &str) -> Result<SubscriberBuilder<'_>, SubscribeError> {
        let pattern = Pattern::new(pattern)?;
        if pattern.is_private() {
            return Err(SubscribeError::Private(pattern.to_string()));
        }
        Ok(SubscriberBuilder::new(self, pattern))
    }

    /// A buffer that holds what comes on `pattern` for any node to pull, to be declared.
    ///
    /// # Errors
    /// [`SubscribeError::Pattern`], [`SubscribeError::Private`].
    pub fn buffer(&self, pattern: &str) -> Result<BufferBuilder<'_>, SubscribeError> {
        Ok(BufferBuilder::new(self.subscriber(pattern)?))
    }

    /// A pull of samples of `tag` that buffers hold: the newest one, if nothing else is said.
    ///
    /// # Errors
    /// [`PullError::Tag`], [`PullError::Private`].
    pub fn pull(&self, tag: &str) -> Result<PullBuilder<'_>, PullError> {
        let tag = Tag::new(tag)?;
        if tag.is_private() {
            return Err(PullError::Private(tag.to_string()));
        }
        Ok(PullBuilder::new(self, tag))
    }

    /// What every reachable node says of itself; nodes that do not answer within `timeout` are left
    /// out.
    #[must_use]
    pub fn status(&self, timeout: Duration) -> Vec<NodeStatus> {
        self.ask_status(None, timeout)
    }

    /// What these nodes say of themselves; those that do not answer within `timeout` are left out. Its own
    /// status costs nothing, that of another node a question and an answer on every link between.
    #[must_use]
    pub fn status_of(&self, nodes: &[NodeId], timeout: Duration) -> Vec<NodeStatus> {
        self.ask_status(Some(nodes.to_vec()), timeout)
    }

    fn ask_status(&self, only: Option<Vec<NodeId>>, timeout: Duration) -> Vec<NodeStatus> {
        let (reply, answer) = std::sync::mpsc::channel();
        if !self.inner.commands.send(Command::Status(only, timeout, reply)) {
            return Vec::new();
        }
        answer.recv().unwrap_or_default()
    }

    /// A look at what a subscription of this node gets, whoever reads it; `None` if there is no such one.
    /// Nothing is fetched for it, and the subscriber misses nothing.
    #[must_use]
    pub fn view(&self, subscription: SubscriptionId) -> Option<View> {
        let (reply, answer) = std::sync::mpsc::channel();
        if !self.inner.commands.send(Command::View(subscription, reply)) {
            return None;
        }
        answer.recv().ok().flatten().map(View::new)
    }

    /// The reachable nodes, by name, without asking them.
    #[must_use]
    pub fn nodes(&self) -> Vec<(NodeId, String)> {
        let (reply, answer) = std::sync::mpsc::channel();
        if !self.inner.commands.send(Command::Nodes(reply)) {
            return Vec::new();
        }
        answer.recv().unwrap_or_default()
    }

    /// The nodes, this one included, that no link with a capacity lies between: asking them costs no such link
    /// anything.
    #[must_use]
    pub fn near(&self) -> Vec<NodeId> {
        let (reply, answer) = std::sync::mpsc::channel();
        if !self.inner.commands.send(Command::Near(reply)) {
            return Vec::new();
        }
        answer.recv().unwrap_or_default()
    }

    /// The publishers on the tags of `pattern`, how their samples would come here, and who else gets them; in the
    /// order of their tags. It is what every node knows: nobody is asked.
    #[must_use]
    pub fn sources(&self, pattern: &Pattern) -> Vec<SourceView> {
        let (reply, answer) = std::sync::mpsc::channel();
        if !self.inner.commands.send(Command::Sources(pattern.clone(), reply)) {
            return Vec::new();
        }
        answer.recv().unwrap_or_default()
    }

    /// Gives the link `link` another capacity. What it promised is judged by it from now on:
    /// subscriptions that do not fit any more are refused, others that do are granted.
    ///
    /// # Errors
    /// [`CapacityError`]: no such link, one that was opened without a capacity, or a closed node.
    pub fn set_capacity(&self, link: &str, capacity: Capacity) -> Result<(), CapacityError> {
        let (reply, answer) = std::sync::mpsc::channel();
        let command = Command::SetCapacity { link: link.to_owned(), capacity, reply };
        if !self.inner.commands.send(command) {
            return Err(CapacityError::Closed);
        }
        answer.recv().unwrap_or(Err(CapacityError::Closed))
    }

    /// Gives a link other classes, or none, from its next turn on. What waits stays; windows, and what
    /// policers have seen, begin anew, and so do the sums of classes.
    ///
    /// # Errors
    /// [`ClassesError`]: no such link, classes that contradict each other, or a closed node.
    pub fn set_classes(&self, link: &str, classes: Vec<LinkClass>) -> Result<(), ClassesError> {
        let (reply, answer) = std::sync::mpsc::channel();
        let command = Command::SetClasses { link: link.to_owned(), classes, reply };
        if !self.inner.commands.send(command) {
            return Err(ClassesError::Closed);
        }
        answer.recv().unwrap_or(Err(ClassesError::Closed))
    }

    /// Counts samples that were to be published here and were not, for whoever brings them from elsewhere:
    /// they are among the drops of [`Self::status`].
    pub fn note_dropped(&self, reason: DropReason, samples: u64) {
        self.inner.sources.drops.add(reason, samples);
    }

    /// Closes the node, whoever else holds a handle of it. What was published is sent first, for at
    /// most half a second.
    pub fn close(self) {
        self.inner.close();
    }

    pub(crate) fn commands(&self) -> &Commands {
        &self.inner.commands
    }

    /// What the first samples of this node's publishers wait in.
    pub(crate) fn waiting(&self) -> &Arc<WaitingBytes> {
        &self.inner.waiting
    }
}

impl Inner {
    fn close(&self) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        // The last handle may go with a callback, on one of our own threads: that one cannot wait for
        // the others, nor for itself.
        let me = std::thread::current().id();
        if threads.iter().any(|thread| thread.thread().id() == me) {
            self.commands.offer(Command::Close);
            return;
        }
        self.commands.send(Command::Close);
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

/// The name of a node about which nothing is wrong before anything of it is opened.
fn checked_name(builder: &NodeBuilder) -> Result<String, OpenError> {
    if builder.links.len() > LINKS_MAX {
        return Err(OpenError::TooManyLinks(builder.links.len()));
    }
    check::links(&builder.links)?;
    let name = builder.name.clone().unwrap_or_else(default_name);
    check::node_name(&name)?;
    check::descriptors(builder.links.len() + usize::from(!builder.isolated))?;
    Ok(name)
}

/// The node's place on its host and the link to it; `None` for a node that stays apart.
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

fn random() -> u64 {
    let mut bytes = [0; 8];
    if getrandom::fill(&mut bytes).is_err() {
        // No entropy source at all: the clock and the process still tell nodes of a host apart.
        let now = crate::shell::clock::now().as_nanos();
        return now ^ u64::from(std::process::id()) << 40;
    }
    u64::from_le_bytes(bytes)
}

fn default_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "node" } else { host.trim() };
    format!("{}-{}", escape(host), std::process::id())
}
