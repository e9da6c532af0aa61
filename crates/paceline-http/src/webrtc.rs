//! WebRTC at the HTTP server: `POST /whep/robot/camera?max_hz=10` is a request for a tag, which the path grants or refuses
//! (docs/guides/webrtc.md).
//!
//! One thread and one UDP socket serve all sessions. Equal requests share a feed.

mod address;
mod publishing;
mod registry;
mod routes;
mod session;
mod socket;
mod view;
mod viewing;

pub use address::WebrtcAddress;
pub(crate) use routes::{answer, is_path, right_of};

use crate::feeds::Hub;
use anyhow::Context as _;
use paceline::Node;
use paceline_edge::PeerSetup;
use registry::Registry;
use socket::PeerSocket;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// The number of threads for calls of the node that may block.
const WAITING_THREADS: usize = 4;
/// The longest wait for the end of calls of the node.
const END_WITHIN: Duration = Duration::from_secs(1);

/// What all sessions of a server share.
pub(crate) struct Shared {
    hub: Arc<Hub>,
    setup: PeerSetup,
    socket: PeerSocket,
    registry: Arc<Registry>,
    runtime: Handle,
}

/// A running server of WebRTC, without its HTTP; dropping it ends its sessions.
pub struct WebrtcServer {
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl WebrtcServer {
    /// Opens the UDP socket of `address` for the tags that `node` knows.
    ///
    /// # Errors
    /// Errors if the address is in use, or no certificate can be created.
    pub fn start(address: &WebrtcAddress, node: &Node) -> anyhow::Result<Self> {
        let failed = || {
            format!(
                "cannot serve WebRTC on UDP {address}: give another address, or end the program that uses it"
            )
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(WAITING_THREADS)
            .thread_name("paceline-webrtc-ask")
            .build()
            .context("cannot start the WebRTC server")?;
        let socket = {
            let _entered = runtime.enter();
            PeerSocket::bind(address.bind).with_context(failed)?
        };
        let port = socket.address().with_context(failed)?.port();
        let candidates = address.candidates(port).with_context(failed)?;
        let setup = PeerSetup::new(candidates).map_err(anyhow::Error::msg)?;
        let registry = Arc::<Registry>::default();
        let shared = Arc::new(Shared {
            hub: Hub::new(node.clone()),
            setup,
            socket,
            registry,
            runtime: runtime.handle().clone(),
        });
        let (stop, stopped) = oneshot::channel();
        let of = shared.clone();
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = of.socket.read(&of.registry) => {}
                    _ = stopped => {}
                }
            });
            runtime.shutdown_timeout(END_WITHIN);
        };
        let thread = std::thread::Builder::new().name("paceline-webrtc".to_owned()).spawn(serve);
        let thread = thread.context("cannot start the WebRTC server's thread")?;
        Ok(Self { shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the addresses that browsers try.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.shared.setup.addresses()
    }

    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for WebrtcServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
