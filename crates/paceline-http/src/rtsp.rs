//! A server for players of RTSP: each address is a request for a tag, `rtsp://HOST/robot/camera?max_hz=10&size=320x240`, which the
//! path grants or refuses (docs/guides/players.md).
//!
//! One thread serves all players. Players with the same address share a feed: one subscription, whose samples are cut into packets
//! once.

mod address;
mod connection;
mod output;
mod refusal;
mod sending;
mod udp;

pub use address::{RtspAddress, read_login};

use crate::feeds::Hub;
use crate::slots::{Client, SlotLimit, SlotLimits, Slots};
use anyhow::Context as _;
use connection::{Connection, Door};
use paceline::Node;
use paceline_edge::Login;
use paceline_tool::exit;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::oneshot;
use udp::UdpPair;

/// The largest numbers of connections: well below the usual limit of 1,024 open files.
const LIMITS: SlotLimits = SlotLimits {
    silent: SlotLimit { all: 128, each: 64 },
    pending: SlotLimit { all: 1, each: 1 },
    members: SlotLimit { all: 384, each: 384 },
    followers: 320,
};
/// The number of threads for calls of the node that may block.
const WAITING_THREADS: usize = 4;
/// The pause after an error of `accept`, such as too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// The bytes that the system keeps for a player, of which it uses twice as many: 0.1 s of 40 Mbit/s.
const SEND_BUFFER: u32 = 512 << 10;
/// The connections that wait to be accepted.
const BACKLOG: u32 = 128;
/// The longest wait for the end of calls of the node.
const END_WITHIN: Duration = Duration::from_secs(1);

/// A running server of players; dropping it ends it.
pub struct RtspServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RtspServer {
    /// Starts a server of the tags that `node` knows. Addresses beyond this host need a login.
    ///
    /// # Errors
    /// Errors if the address is in use, or needs a login.
    pub fn start(address: &RtspAddress, login: Option<Login>, node: &Node) -> anyhow::Result<Self> {
        address.check(login.is_some()).map_err(exit::usage)?;
        let failed = || {
            format!(
                "cannot serve RTSP on {address}: give another address, or end the program that uses it"
            )
        };
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(WAITING_THREADS)
            .thread_name("paceline-rtsp-ask")
            .build()
            .context("cannot start the RTSP server")?;
        let listener = {
            let _entered = runtime.enter();
            listen(address.0).with_context(failed)?
        };
        let address = listener.local_addr().with_context(failed)?;
        let hub = Hub::new(node.clone());
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    done = run(listener, login, hub) => if let Err(error) = done {
                        tracing::error!("RTSP: {error}");
                    },
                    _ = stopped => {}
                }
            });
            runtime.shutdown_timeout(END_WITHIN);
        };
        let thread = std::thread::Builder::new().name("paceline-rtsp".to_owned()).spawn(serve);
        let thread = thread.context("cannot start the RTSP server's thread")?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the address for players, which a tag follows.
    pub fn url(&self) -> String {
        format!("rtsp://{}/", self.address)
    }
}

impl Drop for RtspServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Opens the listener. Its connections have a bounded send buffer: the system would let megabytes wait for a player that does not
/// read.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn run(listener: TcpListener, login: Option<Login>, hub: Arc<Hub>) -> std::io::Result<()> {
    let host = listener.local_addr()?.ip();
    let udp = UdpPair::bind(host).await?;
    let _reports = udp.read(&hub);
    let door = Arc::new(Door { login, hub, udp });
    let slots = Slots::new(LIMITS);
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let (slot, closed) = slots.enter(Client::at(from));
                let connection = Connection::new(stream, from, slot, door.clone());
                tokio::spawn(connection.serve(closed));
            }
            Err(error) => {
                tracing::debug!("RTSP: a connection was not accepted: {error}");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
        tokio::task::yield_now().await;
    }
}
