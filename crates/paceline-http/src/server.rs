//! The server: one thread, a bounded number of connections, and one reading per second shared by all of
//! them.

use super::access::Access;
use super::browser::Browsers;
use super::guard::Guard;
use super::history::History;
use super::patience::Patience;
use super::route;
use super::served::{Peer, Served, Tick, Upgrade};
use super::source::{Neighbours, OwnSource, Source};
use super::webrtc::{self, WebrtcServer};
use crate::address::HttpAddress;
use crate::slots::{Client, SlotLimits, Slots};
use anyhow::Context as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use paceline::Node;
use paceline_tool::exit;
use rustls::ServerConfig;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{oneshot, watch};

/// The largest number of headers in a request, and their total size in bytes.
const HEADERS_MAX: usize = 64;
const HEAD_BYTES_MAX: usize = 16 << 10;
/// The longest time for a TLS handshake. Its round trip takes 3 s on the slowest links.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(4);
/// The longest time for a request's head, and between two requests. Slow bytes do not extend it.
const HEAD_WITHIN: Duration = Duration::from_secs(3);
/// The longest time without the client reading its data.
const READ_WITHIN: Duration = Duration::from_secs(10);
/// The number of threads for blocking work: readings and pictures.
const WAITING_THREADS: usize = 4;
const TICK: Duration = Duration::from_secs(1);
/// The pause after an error of `accept`, such as too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A running server; dropping it ends it.
pub struct HttpServer {
    address: HttpAddress,
    /// The scheme without encryption.
    scheme: &'static str,
    encrypted: bool,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Ends behind the server.
    _webrtc: Option<WebrtcServer>,
}

/// What a server serves next to the state.
#[derive(Default)]
struct Extras {
    /// The node whose samples are served to Foxglove, instead of the page and the API.
    foxglove: Option<Node>,
    webrtc: Option<WebrtcServer>,
}

enum Listener {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

impl HttpServer {
    /// Starts a server for `source` on `address`. Addresses beyond this host need TLS and tokens.
    pub fn start(
        address: &HttpAddress,
        access: Option<Access>,
        source: Arc<dyn Source>,
    ) -> anyhow::Result<Self> {
        Self::open(address, access, source, Extras::default())
    }

    /// Starts a server as [`Self::start`] does, which also begins the sessions of `webrtc`.
    ///
    /// # Errors
    /// Errors if the address is in use, or needs TLS and tokens.
    pub fn with_webrtc(
        address: &HttpAddress,
        access: Option<Access>,
        source: Arc<dyn Source>,
        webrtc: WebrtcServer,
    ) -> anyhow::Result<Self> {
        Self::open(address, access, source, Extras { foxglove: None, webrtc: Some(webrtc) })
    }

    /// Starts a server of Foxglove's WebSocket protocol for the topics that `node` knows. Addresses beyond this host need
    /// TLS and tokens.
    ///
    /// # Errors
    /// Errors if the address is in use, or needs TLS and tokens.
    pub fn foxglove(
        address: &HttpAddress,
        access: Option<Access>,
        node: &Node,
    ) -> anyhow::Result<Self> {
        let source = Arc::new(OwnSource::new(node, Neighbours::No));
        Self::open(address, access, source, Extras { foxglove: Some(node.clone()), webrtc: None })
    }

    fn open(
        address: &HttpAddress,
        access: Option<Access>,
        source: Arc<dyn Source>,
        Extras { foxglove, webrtc }: Extras,
    ) -> anyhow::Result<Self> {
        let complete = access.as_ref().is_some_and(Access::is_complete);
        if !address.is_local() && !complete {
            let option = if foxglove.is_some() { "--foxglove" } else { "--http" };
            return Err(exit::usage(address.needs(option)));
        }
        let (listener, address) = bind(address)?;
        let tls = access.as_ref().and_then(|access| access.tls.as_ref());
        let guard = Guard::new(&address, tls.map(|tls| &tls.certificate));
        let scheme = if foxglove.is_some() { "ws" } else { "http" };
        let tls = tls.map(|tls| tls.config.clone());
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(WAITING_THREADS)
            .thread_name("paceline-http-ask")
            .build()
            .context("cannot start the HTTP server")?;
        let encrypted = tls.is_some();
        let at = address.clone();
        let sessions = webrtc.as_ref().map(|webrtc| webrtc.shared().clone());
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    done = run((listener, &at), tls, (guard, access), (source, foxglove, sessions)) => if let Err(error) = done {
                        tracing::error!("HTTP: {error}");
                    },
                    _ = stopped => {}
                }
            });
            runtime.shutdown_timeout(TICK);
        };
        let thread = std::thread::Builder::new().name("paceline-http".to_owned()).spawn(serve);
        let thread = thread.context("cannot start the HTTP server's thread")?;
        Ok(Self {
            address,
            scheme,
            encrypted,
            stop: Some(stop),
            thread: Some(thread),
            _webrtc: webrtc,
        })
    }

    /// Returns the URL for a browser, or for Foxglove.
    pub fn url(&self) -> String {
        let (scheme, s) = (self.scheme, if self.encrypted { "s" } else { "" });
        match &self.address {
            HttpAddress::Tcp(address) => format!("{scheme}{s}://{address}/"),
            HttpAddress::Unix(_) => self.address.to_string(),
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let HttpAddress::Unix(path) = &self.address {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Opens the listener and returns its actual address; port 0 selects a free one.
fn bind(address: &HttpAddress) -> anyhow::Result<(Listener, HttpAddress)> {
    let failed = || {
        format!(
            "cannot serve HTTP on {address}: give another address, or end the program that \
             uses it"
        )
    };
    match address {
        HttpAddress::Tcp(to) => {
            let listener = std::net::TcpListener::bind(to).with_context(failed)?;
            listener.set_nonblocking(true).with_context(failed)?;
            let bound = listener.local_addr().with_context(failed)?;
            Ok((Listener::Tcp(listener), HttpAddress::Tcp(bound)))
        }
        HttpAddress::Unix(path) => {
            remove_stale(path);
            let listener = std::os::unix::net::UnixListener::bind(path).with_context(failed)?;
            let owner = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(path, owner).with_context(failed)?;
            listener.set_nonblocking(true).with_context(failed)?;
            Ok((Listener::Unix(listener), address.clone()))
        }
    }
}

/// Removes the socket file of a process that has ended; it would prevent binding.
fn remove_stale(path: &Path) {
    if std::os::unix::net::UnixStream::connect(path)
        .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    {
        let _ = std::fs::remove_file(path);
    }
}

async fn run(
    (listener, address): (Listener, &HttpAddress),
    tls: Option<Arc<ServerConfig>>,
    (guard, access): (Guard, Option<Access>),
    (source, foxglove, webrtc): (Arc<dyn Source>, Option<Node>, Option<Arc<webrtc::Shared>>),
) -> std::io::Result<()> {
    let (to, ticks) = watch::channel(None);
    let history = Arc::<History>::default();
    // Foxglove reads samples, not the state.
    if foxglove.is_none() {
        tokio::spawn(tick(source.clone(), history.clone(), to));
    }
    let browsers = source.node().filter(|_| foxglove.is_none());
    let browsers = browsers.map(|node| Browsers::start(node, address));
    let served =
        Arc::new(Served { guard, access, source, ticks, history, foxglove, browsers, webrtc });
    // After each connection the others run, so that a new one is read before newer ones need its slot.
    let door = Door { tls, served, slots: Slots::new(SlotLimits::USUAL) };
    match listener {
        Listener::Tcp(listener) => {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            loop {
                match listener.accept().await {
                    Ok((stream, from)) => door.welcome_tcp(stream, from),
                    Err(error) => accept_again(&error).await,
                }
                tokio::task::yield_now().await;
            }
        }
        Listener::Unix(listener) => {
            let listener = tokio::net::UnixListener::from_std(listener)?;
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let (peer, ended) = door.enter("unix".to_owned(), Client::Owner);
                        tokio::spawn(until(ended, serve(stream, peer, door.served.clone())));
                    }
                    Err(error) => accept_again(&error).await,
                }
                tokio::task::yield_now().await;
            }
        }
    }
}

async fn accept_again(error: &std::io::Error) {
    tracing::debug!("HTTP: a connection was not accepted: {error}");
    tokio::time::sleep(ACCEPT_AGAIN).await;
}

/// Reads the state once per second.
async fn tick(
    source: Arc<dyn Source>,
    history: Arc<History>,
    to: watch::Sender<Option<Arc<Tick>>>,
) {
    let mut due = tokio::time::interval(TICK);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        let source = source.clone();
        // One receiver is the server's own; each page has another one.
        let viewed = to.receiver_count() > 1;
        let state = tokio::task::spawn_blocking(move || source.state(viewed)).await;
        let Ok(state) = state else { return };
        history.take(&state);
        if to.send(Some(Arc::new(Tick::new(state)))).is_err() {
            return;
        }
    }
}

/// Accepts connections. A new one always gets a slot; an older one may lose its own.
struct Door {
    tls: Option<Arc<ServerConfig>>,
    served: Arc<Served>,
    slots: Arc<Slots>,
}

impl Door {
    fn enter(&self, from: String, client: Client) -> (Peer, oneshot::Receiver<()>) {
        let (slot, ended) = self.slots.enter(client);
        (Peer { from, client, slot, upgrade: Mutex::default() }, ended)
    }

    fn welcome_tcp(&self, stream: tokio::net::TcpStream, from: SocketAddr) {
        let (peer, ended) = self.enter(from.to_string(), Client::at(from));
        let served = self.served.clone();
        // Samples of browsers leave at once.
        let _ = stream.set_nodelay(true);
        match self.tls.clone() {
            Some(tls) => tokio::spawn(until(ended, serve_encrypted(stream, peer, tls, served))),
            None => tokio::spawn(until(ended, serve(stream, peer, served))),
        };
    }
}

/// Serves a connection until it is done or another one needs its slot.
async fn until(ended: oneshot::Receiver<()>, served: impl Future<Output = ()>) {
    tokio::select! {
        () = served => {}
        _ = ended => {}
    }
}

async fn serve_encrypted(
    stream: tokio::net::TcpStream,
    peer: Peer,
    tls: Arc<ServerConfig>,
    served: Arc<Served>,
) {
    match tokio::time::timeout(HANDSHAKE_WITHIN, peer.slot.encrypt(stream, tls)).await {
        Ok(Ok(stream)) => serve(stream, peer, served).await,
        Ok(Err(error)) => tracing::debug!("HTTP: a TLS handshake failed: {error}"),
        Err(_) => tracing::debug!("HTTP: a TLS handshake took too long"),
    }
}

async fn serve<S>(stream: S, peer: Peer, served: Arc<Served>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let peer = Arc::new(peer);
    let (of, all) = (peer.clone(), served.clone());
    let answer = service_fn(move |request| {
        let (served, peer) = (served.clone(), of.clone());
        async move { Ok::<_, Infallible>(route::answer(&served, &peer, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Patience::new(stream, READ_WITHIN)), answer)
        .with_upgrades();
    if let Err(error) = connection.await {
        tracing::debug!("HTTP: a connection ended: {error}");
    }
    match peer.take_upgrade() {
        Some(Upgrade::Viewer(viewer)) => {
            if let Some(node) = all.foxglove.clone() {
                viewer.serve(node).await;
            }
        }
        Some(Upgrade::Browser(browser)) => {
            if let Some(browsers) = &all.browsers {
                browser.serve(browsers).await;
            }
        }
        None => {}
    }
}
