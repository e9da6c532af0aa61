//! Connections over QUIC (RFC 9000). Lost frames in datagrams (RFC 9221) are retransmitted by Paceline, as each
//! subscription requests.
//!
//! A peer that changes its address keeps its connection (connection migration).

use super::datagrams::WAITING_MAX;
use super::dial::{Connect, Place, dial, first};
use super::handshakes::HANDSHAKES_MAX;
use super::pacer::NoCongestionControl;
use super::peers::PEERS_MAX;
use super::proof::Proof;
use super::shared::{Opened, Shared};
use super::{Error, Opening};
use super::{address_of, cause, resolve};
use crate::config::LinkConfig;
use crate::identity::Identity;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, setsockopt, socket, sockopt,
};
use paceline_proto::ProbeInterval;
use paceline_sched::{Capacity, Duration};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, MtuDiscoveryConfig, RecvStream, SendStream,
    ServerConfig, TransportConfig, default_runtime,
};
use rustls::pki_types::CertificateDer;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use tokio::time::timeout;

/// The size of UDP payloads: one Ethernet packet with a frame. QUIC falls back to 1,200 bytes on paths
/// that carry less.
const DATAGRAM_BYTES: u16 = 1_420;
/// The largest UDP payload that a path is tested for, such as one of jumbo frames, or loopback: the kernel takes 64 KiB at once, and
/// quinn gives it up to 10 packets.
const PATH_BYTES_MAX: u16 = 6_500;
/// The same within what Ethernet carries over IPv4 and IPv6.
const ETHERNET_BYTES: u16 = 1_452;
/// The longest time of a packet on a link.
const PACKET_TIME: Duration = Duration::from_micros(500);
/// The limit of received data in bytes.
const RECEIVE_BUFFER: usize = 8 << 20;

/// The settings of a link's QUIC endpoints.
pub(super) struct Quic {
    shared: Arc<Shared>,
    identity: Arc<Identity>,
    transport: Arc<TransportConfig>,
    sends_datagrams: bool,
}

impl Quic {
    pub(super) fn new(shared: Arc<Shared>, link: &LinkConfig) -> Result<Self, Error> {
        let identity = shared.identity.clone();
        let identity =
            identity.ok_or("QUIC needs a certificate: set tls_cert, tls_key and tls_ca")?;
        let mut config = TransportConfig::default();
        config
            // The liveness of the connection is that of the hop, whose interval both ends know.
            .max_idle_timeout(None)
            .initial_mtu(DATAGRAM_BYTES)
            .datagram_send_buffer_size(WAITING_MAX)
            .datagram_receive_buffer_size(Some(RECEIVE_BUFFER))
            .stream_receive_window(u32::try_from(RECEIVE_BUFFER)?.into())
            .max_concurrent_bidi_streams(1u8.into())
            .max_concurrent_uni_streams(0u8.into());
        if ProbeInterval::of(link.capacity, 1) > ProbeInterval::SHORTEST {
            // Packets that only test what the path carries would take seconds on a slow link.
            config.mtu_discovery_config(None);
        } else {
            let mut discovery = MtuDiscoveryConfig::default();
            discovery.upper_bound(path_bytes(link.capacity));
            config.mtu_discovery_config(Some(discovery));
        }
        if link.capacity.is_some() {
            config.congestion_controller_factory(Arc::new(NoCongestionControl));
        }
        let sends_datagrams = !link.is_ordered();
        Ok(Self { shared, identity, transport: Arc::new(config), sends_datagrams })
    }

    /// Listens at `endpoint`.
    pub(super) fn listen(&self, endpoint: &str) -> Result<Endpoint, Error> {
        let crypto = QuicServerConfig::try_from(self.identity.server.clone())?;
        let mut server = ServerConfig::with_crypto(Arc::new(crypto));
        server.transport_config(self.transport.clone());
        let listening = open(Some(server), resolve(endpoint)?)?;
        tokio::spawn(accept(self.shared.clone(), listening.clone(), self.sends_datagrams));
        Ok(listening)
    }

    /// Connects to `endpoint`, and connects again after the end of a connection.
    pub(super) fn connect(&self, endpoint: &str) -> Result<Endpoint, Error> {
        let dialler = open(None, SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)))
            .or_else(|_| open(None, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))))?;
        let crypto = QuicClientConfig::try_from(self.identity.client.clone())?;
        let mut client = ClientConfig::new(Arc::new(crypto));
        client.transport_config(self.transport.clone());
        let address = address_of(endpoint)?;
        let (name, place) = (address.host().to_owned(), Place::new(address));
        let (to, sends_datagrams) = (endpoint.to_owned(), self.sends_datagrams);
        let opening = self.shared.opening;
        let endpoint = dialler.clone();
        let way = QuicClient { endpoint, client, place, name, sends_datagrams, opening };
        tokio::spawn(dial(self.shared.clone(), to, way));
        Ok(dialler)
    }
}

/// Returns the largest UDP payload that is tested on the path of a link. A thin link does not wait for a large packet.
fn path_bytes(capacity: Option<Capacity>) -> u16 {
    let bytes = capacity.map_or(u64::MAX, |capacity| capacity.bytes_in(PACKET_TIME));
    u16::try_from(bytes).unwrap_or(u16::MAX).clamp(ETHERNET_BYTES, PATH_BYTES_MAX)
}

/// Opens a socket that receives packets of any size that a path is tested for.
fn open(server: Option<ServerConfig>, at: SocketAddr) -> Result<Endpoint, Error> {
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(PATH_BYTES_MAX)?;
    let socket = if server.is_some() { UdpSocket::bind(at)? } else { dialling(at)? };
    let runtime = default_runtime().ok_or("no runtime for QUIC")?;
    Ok(Endpoint::new(config, server, socket, runtime)?)
}

/// Returns a socket that reaches IPv4 addresses too, whatever the system's default for IPv6 is.
fn dialling(at: SocketAddr) -> Result<UdpSocket, Error> {
    let family = if at.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet };
    let socket = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    if at.is_ipv6() {
        setsockopt(&socket, sockopt::Ipv6V6Only, &false)?;
    }
    bind(socket.as_raw_fd(), &SockaddrStorage::from(at))?;
    Ok(UdpSocket::from(socket))
}

/// Accepts connections until the endpoint is closed.
async fn accept(shared: Arc<Shared>, endpoint: Endpoint, sends_datagrams: bool) {
    while let Some(incoming) = endpoint.accept().await {
        let busy = shared.handshakes.len() >= HANDSHAKES_MAX / 2;
        if endpoint.open_connections() >= PEERS_MAX + HANDSHAKES_MAX {
            incoming.ignore();
        } else if busy && !incoming.remote_address_validated() {
            // The sender of a forged address does not answer.
            let _ = incoming.retry();
        } else {
            let its = shared.clone();
            shared.handshakes.begin(|began| async move {
                let shared = its;
                let from = format!("quic/{}", incoming.remote_address());
                let opening = async {
                    let connection = incoming.await?;
                    let streams = connection.accept_bi().await?;
                    Ok((connection, streams))
                };
                match timeout(shared.opening.max, opening).await {
                    Ok(Ok((connection, streams))) => {
                        let opened = opened(connection, streams, sends_datagrams);
                        shared.serve_incoming(opened, began).await;
                    }
                    Ok(Err(error)) => shared.turned_away(&from, &cause::of_quic(&error)),
                    Err(_) => {}
                }
            });
        }
    }
}

/// Describes a connection with its only stream, which the end that connects opens.
fn opened(
    connection: Connection,
    (writer, reader): (SendStream, RecvStream),
    sends_datagrams: bool,
) -> Opened<RecvStream, SendStream> {
    let from = format!("quic/{}", connection.remote_address());
    let proof = chain(&connection).map_or(Proof::Nothing, Proof::Certificates);
    let address = Some(connection.remote_address().ip());
    Opened { from, address, reader, writer, proof, quic: Some((connection, sends_datagrams)) }
}

/// Returns the certificates that the peer has presented.
fn chain(connection: &Connection) -> Option<Vec<CertificateDer<'static>>> {
    connection.peer_identity()?.downcast().ok().map(|chain| *chain)
}

/// The way to a QUIC endpoint.
struct QuicClient {
    endpoint: Endpoint,
    client: ClientConfig,
    place: Place,
    name: String,
    sends_datagrams: bool,
    opening: Opening,
}

impl Connect for QuicClient {
    type Reader = RecvStream;
    type Writer = SendStream;

    async fn connect(&mut self) -> Result<Opened<RecvStream, SendStream>, String> {
        let addresses = self.place.look_up().await?;
        let connected = first(self.opening, |attempts| {
            for address in addresses.iter().copied() {
                let client = self.client.clone();
                let connecting = self.endpoint.connect_with(client, address, &self.name);
                attempts.spawn(async move {
                    let connecting = connecting.map_err(|error| error.to_string())?;
                    let connection = connecting.await.map_err(|error| cause::of_quic(&error))?;
                    let streams = connection.open_bi().await;
                    let streams = streams.map_err(|error| cause::of_quic(&error))?;
                    Ok((connection, streams))
                });
            }
        });
        let (connection, streams) = connected.await?;
        Ok(opened(connection, streams, self.sends_datagrams))
    }
}
