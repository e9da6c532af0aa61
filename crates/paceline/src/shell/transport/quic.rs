//! Connections over QUIC (RFC 9000). Lost frames in datagrams (RFC 9221) are retransmitted by Paceline, as each
//! subscription requests.
//!
//! A peer that changes its address keeps its connection (connection migration).

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
use paceline_proto::ProbeInterval;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig, TransportConfig,
};
use rustls::pki_types::CertificateDer;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use tokio::time::timeout;

/// The size of UDP payloads: one Ethernet packet with a frame. QUIC falls back to 1,200 bytes on paths
/// that carry less.
const DATAGRAM_BYTES: u16 = 1_420;
/// The limits of queued data in bytes.
const SEND_BUFFER: usize = 1 << 20;
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
            .datagram_send_buffer_size(SEND_BUFFER)
            .datagram_receive_buffer_size(Some(RECEIVE_BUFFER))
            .stream_receive_window(u32::try_from(RECEIVE_BUFFER)?.into())
            .max_concurrent_bidi_streams(1u8.into())
            .max_concurrent_uni_streams(0u8.into());
        if ProbeInterval::of(link.capacity, 1) > ProbeInterval::SHORTEST {
            // Packets that only test what the path carries would take seconds on a slow link.
            config.mtu_discovery_config(None);
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
        let listening = Endpoint::server(server, resolve(endpoint)?)?;
        tokio::spawn(accept(self.shared.clone(), listening.clone(), self.sends_datagrams));
        Ok(listening)
    }

    /// Connects to `endpoint`, and connects again after the end of a connection.
    pub(super) fn connect(&self, endpoint: &str) -> Result<Endpoint, Error> {
        let dialler = Endpoint::client(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)))
            .or_else(|_| Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))))?;
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
