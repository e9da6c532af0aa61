//! WebTransport: QUIC for browsers, with datagrams (draft-ietf-webtrans-http3).
//!
//! A browser accepts a certificate that no authority has signed if the page knows its hash, and it is valid for at most 14 days.
//! The page gets the hash, and a ticket for one connection, over the HTTP port, whose rights the connection has.

use super::carrier::{BrowserReader, BrowserWriter, TransportReader};
use super::hub::HubTask;
use super::{BrowserRights, MESSAGE_MAX, PATH, connection};
use anyhow::Context as _;
use paceline::attach::NoCongestionControl;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, ServerConfig, TransportConfig};
use rcgen::{CertificateParams, DnType, KeyPair};
use ring::digest::{SHA256, digest};
use rustls::pki_types::PrivateKeyDer;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use web_transport_quinn::Request;

/// The validity of the certificate: browsers accept 14 days.
const VALID: Duration = Duration::from_secs(13 * 86_400);
/// A certificate is replaced so long before its end.
const RENEWED: Duration = Duration::from_secs(6 * 86_400);
/// The time within which a ticket is used.
const TICKET_MAX: Duration = Duration::from_secs(10);
const TICKETS_MAX: usize = 256;
/// The connections that may be within that time together; others are refused.
const OPENING_MAX: usize = 64;
/// The longest time from the first packet to the first stream.
const OPEN_WITHIN: Duration = Duration::from_secs(5);
/// The largest UDP payload that a path is tested for.
const PACKET_MAX: u16 = 1_452;
/// The bytes of datagrams that wait in each direction. The window of a browser's link is smaller.
const WAITING_MAX: usize = 4 << 20;

/// The parameters of a connection for a page.
#[derive(Debug, Serialize)]
pub(crate) struct Offered {
    port: u16,
    /// SHA-256 of the certificate, in hexadecimal digits.
    hash: String,
    ticket: String,
}

/// A connection that was allowed over HTTP.
struct Ticket {
    rights: BrowserRights,
    until: Instant,
}

/// The server of WebTransport.
pub(super) struct TransportServer {
    endpoint: Endpoint,
    certificate: Mutex<Certificate>,
    tickets: Mutex<BTreeMap<String, Ticket>>,
    opening: Arc<Semaphore>,
}

struct Certificate {
    hash: String,
    since: SystemTime,
}

impl TransportServer {
    /// Opens the server at the address of the HTTP server, over UDP. Call it on the runtime that serves it.
    pub(super) fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let (config, certificate) = settings()?;
        let endpoint =
            Endpoint::server(config, address).with_context(|| format!("udp/{address}"))?;
        Ok(Self {
            endpoint,
            certificate: Mutex::new(certificate),
            tickets: Mutex::default(),
            opening: Arc::new(Semaphore::new(OPENING_MAX)),
        })
    }

    /// Returns the parameters of a connection with these rights.
    pub(super) fn offer(&self, rights: BrowserRights) -> anyhow::Result<Offered> {
        self.renew()?;
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).context("no random numbers")?;
        let ticket = hex(&bytes);
        let now = Instant::now();
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.retain(|_, ticket| ticket.until > now);
        if tickets.len() >= TICKETS_MAX {
            anyhow::bail!(
                "too many pages connect at once: try again in {} s",
                TICKET_MAX.as_secs()
            );
        }
        tickets.insert(ticket.clone(), Ticket { rights, until: now + TICKET_MAX });
        drop(tickets);
        let hash = self.certificate.lock().unwrap_or_else(PoisonError::into_inner).hash.clone();
        Ok(Offered { port: self.endpoint.local_addr()?.port(), hash, ticket })
    }

    /// Replaces a certificate that ends soon. Connections stay.
    fn renew(&self) -> anyhow::Result<()> {
        let mut present = self.certificate.lock().unwrap_or_else(PoisonError::into_inner);
        let age = present.since.elapsed().unwrap_or_default();
        if age + RENEWED >= VALID {
            let (config, certificate) = settings()?;
            self.endpoint.set_server_config(Some(config));
            *present = certificate;
        }
        Ok(())
    }

    /// Returns the rights of a ticket, which counts once.
    fn redeem(&self, query: &str) -> Option<BrowserRights> {
        let ticket = query.split('&').find_map(|pair| pair.strip_prefix("ticket="))?;
        let found = self.tickets.lock().unwrap_or_else(PoisonError::into_inner).remove(ticket)?;
        (found.until > Instant::now()).then_some(found.rights)
    }

    /// Accepts connections until the runtime ends.
    pub(super) async fn run(self: Arc<Self>, hub: Arc<HubTask>) {
        while let Some(incoming) = self.endpoint.accept().await {
            let Ok(opening) = self.opening.clone().try_acquire_owned() else {
                incoming.refuse();
                continue;
            };
            let (server, hub) = (self.clone(), hub.clone());
            tokio::spawn(async move {
                let from = incoming.remote_address();
                let opened = timeout(OPEN_WITHIN, server.admit(incoming)).await;
                drop(opening);
                match opened {
                    Ok(Ok((reader, writer, rights))) => {
                        connection::run((reader, writer), &hub, rights, &from.to_string()).await;
                    }
                    Ok(Err(error)) => tracing::debug!("WebTransport: {from}: {error:#}"),
                    Err(_) => tracing::debug!("WebTransport: {from}: it took too long"),
                }
            });
        }
    }

    async fn admit(
        &self,
        incoming: quinn::Incoming,
    ) -> anyhow::Result<(BrowserReader, BrowserWriter, BrowserRights)> {
        let request = Request::accept(incoming.await?).await?;
        let (path, rights) = {
            let url = &request.url;
            (url.path() == PATH, url.query().and_then(|query| self.redeem(query)))
        };
        let Some(rights) = rights.filter(|_| path) else {
            request.reject(hyper::StatusCode::FORBIDDEN).await?;
            anyhow::bail!("no valid ticket");
        };
        let session = request.ok().await?;
        let (send, receive) = session.accept_bi().await?;
        let reader = TransportReader::new(session.clone(), receive, MESSAGE_MAX);
        let writer = BrowserWriter::Transport(Box::new((session, send)));
        Ok((BrowserReader::Transport(Box::new(reader)), writer, rights))
    }
}

/// Makes a certificate, and the settings of a server that shows it.
fn settings() -> anyhow::Result<(ServerConfig, Certificate)> {
    let since = SystemTime::now();
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, "paceline");
    params.not_before = (since - Duration::from_secs(3_600)).into();
    params.not_after = (since + VALID).into();
    let signed = params.self_signed(&key)?;
    let hash = hex(digest(&SHA256, signed.der()).as_ref());
    let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![signed.der().clone()], private)?;
    tls.alpn_protocols = vec![web_transport_quinn::ALPN.as_bytes().to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    let mut transport = TransportConfig::default();
    let mut discovery = quinn::MtuDiscoveryConfig::default();
    discovery.upper_bound(PACKET_MAX);
    transport
        .mtu_discovery_config(Some(discovery))
        .datagram_send_buffer_size(WAITING_MAX)
        .datagram_receive_buffer_size(Some(WAITING_MAX))
        .keep_alive_interval(Some(Duration::from_secs(2)))
        .max_idle_timeout(Some(Duration::from_secs(10).try_into()?))
        // The link of the browser is measured and paced.
        .congestion_controller_factory(Arc::new(NoCongestionControl));
    config.transport_config(Arc::new(transport));
    Ok((config, Certificate { hash, since }))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
