//! The node. Its keyword arguments are declared in `python/paceline/node.py`.

use crate::buffer::Buffer;
use crate::clock::Clock;
use crate::http::HttpServer;
use crate::life::{self, Held};
use crate::publisher::Publisher;
use crate::pulled::Pulled;
use crate::quote::Quote;
use crate::subscriber::{self, Subscriber};
use crate::view::SubscriptionView;
use crate::world::{self, World};
use crate::{convert, errors, options};
use paceline::class::Policy;
use paceline::{Capacity, LinkCapacity, LinkConfig, Medium};
use paceline_http::status::StatusDocument;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::time::Duration;

/// The native base class of `paceline.Node`.
#[pyclass(frozen, subclass, weakref, module = "paceline._native")]
pub(crate) struct Node(Held<paceline::Node>);

/// Reads the medium of a Python `Link`.
fn medium(link: &Bound<'_, PyAny>, name: &str) -> PyResult<Medium> {
    let wrong = |what: String| errors::value(format!("medium='{name}': {what}"));
    let bits: Option<u64> = match link.getattr("medium_bits_per_s")?.extract()? {
        Some(bits) => Some(bits),
        None => link.getattr("capacity_bits_per_s")?.extract()?,
    };
    let bits = bits.ok_or_else(|| {
        wrong("it has no capacity; give medium_bits_per_s, which all its links share".to_owned())
    })?;
    let capacity = Capacity::from_bits_per_s(bits).map_err(|error| wrong(error.to_string()))?;
    let access: f64 = link.getattr("medium_access_ms")?.extract()?;
    let access = Duration::try_from_secs_f64(access / 1_000.0)
        .map_err(|error| wrong(format!("medium_access_ms={access}: {error}")))?;
    let mut medium = Medium::new(name, capacity);
    medium.access = access.into();
    Ok(medium)
}

/// Reads the fields of a Python `Link`.
fn link(link: &Bound<'_, PyAny>) -> PyResult<LinkConfig> {
    let name: String = link.getattr("name")?.extract()?;
    let listen: Vec<String> = link.getattr("listen")?.extract()?;
    let connect: Vec<String> = link.getattr("connect")?.extract()?;
    let mut config = LinkConfig::new(&name);
    config = listen.iter().fold(config, |config, endpoint| config.listen(endpoint));
    config = connect.iter().fold(config, |config, endpoint| config.connect(endpoint));
    if let Some(bits) = link.getattr("capacity_bits_per_s")?.extract()? {
        let capacity = Capacity::from_bits_per_s(bits);
        config = config.capacity(capacity.map_err(|error| errors::value(error.to_string()))?);
    }
    if let Some(range) = link.getattr("measured")?.extract::<Option<String>>()? {
        let wrong = |what: String| errors::value(format!("measured='{range}': {what}"));
        let measured = range.parse::<LinkCapacity>().map_err(|error| wrong(error.to_string()))?;
        if !measured.is_measured() {
            return Err(wrong(
                "must be auto or auto 1mbit..50mbit; use capacity_bits_per_s".into(),
            ));
        }
        if !link.getattr("capacity_bits_per_s")?.is_none() {
            return Err(wrong("excludes capacity_bits_per_s; remove one of them".into()));
        }
        config = config.capacity(measured);
    }
    if let Some(name) = link.getattr("medium")?.extract::<Option<String>>()? {
        config = config.medium(medium(link, &name)?);
        if link.getattr("medium_bits_per_s")?.is_none() {
            config = config.medium_follows_capacity();
        }
    }
    if let Some(policy) = link.getattr("policy")?.extract::<Option<String>>()? {
        let policy = Policy::offered(&policy)
            .map_err(|error| errors::value(format!("policy='{policy}': {error}")))?;
        config = config.policy(policy);
    }
    if let Some((cert, key, ca)) =
        link.getattr("tls")?.extract::<Option<(PathBuf, PathBuf, PathBuf)>>()?
    {
        config = config.tls(cert, key, ca);
    }
    if let Some(proxy) = link.getattr("proxy")?.extract::<Option<String>>()? {
        config = config.proxy(&proxy);
    }
    if let Some(range) = link.getattr("multicast")?.extract::<Option<String>>()? {
        let parsed = range.parse::<paceline::MulticastRange>();
        let parsed =
            parsed.map_err(|error| errors::value(format!("multicast='{range}': {error}")))?;
        config = config.multicast(parsed);
    }
    if link.getattr("ordered")?.extract()? {
        config = config.ordered();
    }
    if link.getattr("insecure")?.extract()? {
        config = config.insecure();
    }
    Ok(config)
}

#[pymethods]
impl Node {
    /// Opens the node.
    #[new]
    fn new(py: Python<'_>, asked: &Bound<'_, PyDict>) -> PyResult<Self> {
        life::check_open()?;
        let mut builder = paceline::Node::builder();
        // The program of a script is the interpreter. The first argument is absent in an embedded interpreter.
        let script = py.import("sys").and_then(|sys| sys.getattr("argv")?.get_item(0));
        let script = script.and_then(|script| script.extract::<PathBuf>()).unwrap_or_default();
        if let Some(stem) = script.file_stem().filter(|stem| *stem != "-c" && *stem != "-m") {
            builder = builder.label(&stem.to_string_lossy());
        }
        if let Some(name) = convert::option::<String>(asked, "name", "a text")? {
            builder = builder.name(&name);
        }
        if let Some(dir) = convert::option::<PathBuf>(asked, "runtime_dir", "a path")? {
            builder = builder.runtime_dir(dir);
        }
        if convert::option(asked, "isolated", "True or False")? == Some(true) {
            builder = builder.isolated();
        }
        if convert::option(asked, "guest", "True or False")? == Some(true) {
            builder = builder.guest();
        }
        let links: Vec<Bound<'_, PyAny>> =
            convert::option(asked, "links", "a sequence of paceline.Link")?.unwrap_or_default();
        for one in &links {
            builder = builder.link(link(one)?);
        }
        if let Some(policy) = convert::option::<PathBuf>(asked, "policy", "a path")? {
            builder = builder.policy(policy);
        }
        if let Some(token) = convert::option::<PathBuf>(asked, "token", "a path")? {
            builder = builder.token(token);
        }
        let node = py.detach(|| builder.open()).map_err(errors::open)?;
        Ok(Self(Held::new(node)))
    }

    /// The id of the node.
    #[getter]
    fn id(&self) -> PyResult<String> {
        Ok(self.0.get()?.id().to_string())
    }

    /// The name of the node.
    #[getter]
    fn name(&self) -> PyResult<&str> {
        Ok(self.0.get()?.name())
    }

    /// The panic message if a thread of the node panicked and ended it; `None` otherwise.
    #[getter]
    fn fault(&self) -> PyResult<Option<&str>> {
        Ok(self.0.get()?.fault())
    }

    /// Returns the clock of the node. It follows that of the host's node, if that has one.
    fn clock(&self) -> PyResult<Clock> {
        Ok(Clock(self.0.get()?.clock()))
    }

    /// Declares a publisher; called by `Node.publisher`.
    fn declare_publisher(
        &self,
        py: Python<'_>,
        tag: &str,
        asked: &Bound<'_, PyDict>,
    ) -> PyResult<Publisher> {
        let node = self.0.get()?;
        let builder = options::publisher(node, tag, asked)?;
        let publisher = py.detach(|| builder.declare()).map_err(errors::publish)?;
        Ok(Publisher::new(publisher, node.clone()))
    }

    /// Declares a subscriber; called by `Node.subscriber`.
    fn declare_subscriber(
        &self,
        py: Python<'_>,
        pattern: &str,
        asked: &Bound<'_, PyDict>,
    ) -> PyResult<Subscriber> {
        let node = self.0.get()?;
        let builder = options::subscriber(node, pattern, asked)?;
        let require = convert::option(asked, "require", "True or False")? == Some(true);
        if require {
            // Ask before declaring, so that a known refusal arrives before the first sample.
            // Publishers that are not yet known are answered when they appear.
            let quotes = py.detach(|| builder.quotes()).map_err(errors::subscribe)?;
            if let Some(refusal) = quotes.into_iter().find_map(|quote| quote.refusal) {
                return Err(errors::refused(crate::refusal::Refusal(refusal)));
            }
        }
        let subscriber = py.detach(|| builder.declare()).map_err(errors::subscribe)?;
        Ok(Subscriber::new(subscriber, node.clone(), require))
    }

    /// Joins a world; called by `Node.world`.
    fn join_world(
        &self,
        py: Python<'_>,
        world: &str,
        asked: &Bound<'_, PyDict>,
    ) -> PyResult<World> {
        world::join(py, self.0.get()?, world, asked)
    }

    /// Runs the admission tests without reserving; called by `Node.quotes`.
    fn quotes_native(
        &self,
        py: Python<'_>,
        pattern: &str,
        asked: &Bound<'_, PyDict>,
    ) -> PyResult<Vec<Quote>> {
        let builder = options::subscriber(self.0.get()?, pattern, asked)?;
        let quotes = py.detach(|| builder.quotes()).map_err(errors::subscribe)?;
        Ok(quotes.into_iter().map(Quote).collect())
    }

    /// Declares a pull buffer; called by `Node.buffer`.
    fn declare_buffer(
        &self,
        py: Python<'_>,
        pattern: &str,
        asked: &Bound<'_, PyDict>,
    ) -> PyResult<Buffer> {
        let builder = options::buffer(self.0.get()?, pattern, asked)?;
        let buffer = py.detach(|| builder.declare()).map_err(errors::subscribe)?;
        Ok(Buffer::new(buffer, pattern))
    }

    /// Returns the subscriptions of all reachable nodes. The list is local knowledge: no message is
    /// sent.
    fn subscriptions(&self, py: Python<'_>) -> PyResult<Vec<SubscriptionView>> {
        let node = self.0.get()?;
        let views = py.detach(|| node.subscriptions());
        Ok(views.into_iter().map(SubscriptionView).collect())
    }

    /// Changes the request of a subscription on any node; called by `Node.change`.
    fn change_one(
        &self,
        py: Python<'_>,
        subscription: &str,
        asked: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        subscriber::change(py, self.0.get()?, convert::subscription(subscription)?, asked)
    }

    /// Starts a pull; called by `Node.pull`.
    fn begin_pull(&self, py: Python<'_>, tag: &str, asked: &Bound<'_, PyDict>) -> PyResult<Pulled> {
        let builder = options::pull(self.0.get()?, tag, asked)?;
        let pulled = py.detach(|| builder.run()).map_err(errors::pull)?;
        Ok(Pulled::new(pulled))
    }

    /// Returns the reachable nodes as (id, name).
    fn nodes(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let node = self.0.get()?;
        let nodes = py.detach(|| node.nodes());
        Ok(nodes.into_iter().map(|(id, name)| (id.to_string(), name)).collect())
    }

    /// Changes the capacity of a link that has one, in bits per second. Raises `ValueError` if the
    /// link has no capacity.
    fn set_capacity(&self, py: Python<'_>, link: &str, capacity_bits_per_s: u64) -> PyResult<()> {
        let node = self.0.get()?;
        let capacity = Capacity::from_bits_per_s(capacity_bits_per_s);
        let capacity = capacity.map_err(|error| errors::value(error.to_string()))?;
        py.detach(|| node.set_capacity(link, capacity)).map_err(errors::capacity)
    }

    /// Returns the status of every node that answers within `timeout_s` seconds, as in the document of `paceline ls --json`.
    #[pyo3(signature = (timeout_s=0.5))]
    fn status<'py>(&self, py: Python<'py>, timeout_s: f64) -> PyResult<Bound<'py, PyAny>> {
        let node = self.0.get()?;
        let timeout = convert::from_ms("timeout_s", timeout_s * 1e3)?;
        let nodes = py.detach(|| StatusDocument::new(node.status(timeout)).nodes);
        let text =
            serde_json::to_string(&nodes).map_err(|error| errors::value(error.to_string()))?;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// Serves the dashboard, the JSON API and metrics on an address of this host.
    fn serve_http(&self, py: Python<'_>, address: &str) -> PyResult<HttpServer> {
        HttpServer::start(py, self.0.get()?, address)
    }

    /// Closes the node with everything declared on it. Has no effect on a closed node, or in a
    /// forked child.
    fn close(&self, py: Python<'_>) {
        if let Ok(node) = self.0.get() {
            py.detach(|| node.clone().close());
        }
    }

    fn __repr__(&self) -> String {
        match self.0.get() {
            Ok(node) => format!("Node('{}', id={})", node.name(), node.id()),
            Err(_) => "Node(of a parent process)".to_owned(),
        }
    }
}
