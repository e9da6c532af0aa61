//! Connections over TCP and TLS 1.3. All frames arrive once and in order.

use super::super::{Error, OPEN_MAX};
use super::handshakes::Handshake;
use super::shared::{Opened, Shared};
use super::{PEERS_MAX, RETRY_FIRST, RETRY_MAX, cause, host_of, lock, race, resolve};
use crate::proxy::Proxy;
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, split};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::time::{sleep, timeout};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// The timeout of a name lookup.
const LOOK_UP_MAX: Duration = Duration::from_secs(2);
/// The longest answer of a proxy, in bytes.
const ANSWER_BYTES_MAX: usize = 8 << 10;
/// The pause after a failed accept: the process has no file descriptors left, for example.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Listens at `endpoint`.
pub(super) fn listen(shared: &Arc<Shared>, endpoint: &str) -> Result<(), Error> {
    let acceptor = match (is_tls(endpoint), &shared.identity) {
        (false, _) => None,
        (true, Some(identity)) => Some(TlsAcceptor::from(identity.server.clone())),
        (true, None) => return Err("TLS needs tls_cert, tls_key and tls_ca".into()),
    };
    let listener = std::net::TcpListener::bind(resolve(endpoint)?)?;
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    tokio::spawn(accept(shared.clone(), listener, acceptor));
    Ok(())
}

fn is_tls(endpoint: &str) -> bool {
    endpoint.starts_with("tls/")
}

/// Accepts connections until the runtime ends.
async fn accept(shared: Arc<Shared>, listener: TcpListener, acceptor: Option<TlsAcceptor>) {
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                crate::warn_limited!("link '{}': cannot accept: {error}", shared.link);
                sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        if lock(&shared.peers).len() >= PEERS_MAX {
            continue;
        }
        let (its, acceptor) = (shared.clone(), acceptor.clone());
        shared.handshakes.begin(|began| async move {
            let shared = its;
            let Some(acceptor) = acceptor else {
                return serve_tcp(&shared, stream, from, Some(began)).await;
            };
            match timeout(OPEN_MAX, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => serve_tls(&shared, stream.into(), from, Some(began)).await,
                Ok(Err(error)) => {
                    shared.turned_away(&format!("tls/{from}"), &cause::of_io(&error));
                }
                Err(_) => {}
            }
        });
    }
}

async fn serve_tcp(shared: &Shared, stream: TcpStream, from: SocketAddr, began: Option<Handshake>) {
    let _ = stream.set_nodelay(true);
    let (reader, writer) = stream.into_split();
    let from = format!("tcp/{from}");
    shared.serve(Opened { from, reader, writer, proof: None, quic: None }, began).await;
}

async fn serve_tls(
    shared: &Shared,
    stream: TlsStream<TcpStream>,
    from: SocketAddr,
    began: Option<Handshake>,
) {
    let (tcp, session) = stream.get_ref();
    let _ = tcp.set_nodelay(true);
    let proof = session
        .peer_certificates()
        .map(|chain| chain.iter().map(|certificate| certificate.clone().into_owned()).collect());
    let (reader, writer) = split(stream);
    let from = format!("tls/{from}");
    shared.serve(Opened { from, reader, writer, proof, quic: None }, began).await;
}

/// An endpoint to which a link connects.
pub(super) struct Dialler {
    shared: Arc<Shared>,
    endpoint: String,
    proxy: Option<Proxy>,
    /// The addresses as resolved last: the name server may be behind the lost path.
    addresses: Vec<SocketAddr>,
}

impl Dialler {
    pub(super) fn new(shared: Arc<Shared>, endpoint: &str, proxy: Option<Proxy>) -> Self {
        Self { shared, endpoint: endpoint.to_owned(), proxy, addresses: Vec::new() }
    }

    /// Connects, and connects again after the end of a connection, until the runtime ends.
    pub(super) async fn run(mut self) {
        let mut delay = RETRY_FIRST;
        loop {
            match self.reach().await {
                Ok((stream, address)) => {
                    if let Err(why) = self.serve(stream, address, &mut delay).await {
                        self.warn(&why);
                    }
                }
                Err(why) => self.warn(&why),
            }
            sleep(delay).await;
            delay = (delay * 2).min(RETRY_MAX);
        }
    }

    fn warn(&self, why: &str) {
        let Self { shared, endpoint, .. } = self;
        crate::warn_limited!("link '{}': cannot connect to {endpoint}: {why}", shared.link);
    }

    async fn serve(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        delay: &mut Duration,
    ) -> Result<(), String> {
        if !is_tls(&self.endpoint) {
            *delay = RETRY_FIRST;
            serve_tcp(&self.shared, stream, address, None).await;
            return Ok(());
        }
        let identity = self.shared.identity.as_ref();
        let identity = identity.ok_or("TLS needs tls_cert, tls_key and tls_ca")?;
        let (_, name) = host_of(&self.endpoint);
        let name = ServerName::try_from(name.to_owned());
        let name = name.map_err(|_| "the host is neither a name nor an address")?;
        let connector = TlsConnector::from(identity.client.clone());
        let stream = match timeout(OPEN_MAX, connector.connect(name, stream)).await {
            Ok(connected) => connected.map_err(|error| cause::of_io(&error))?,
            Err(_) => return Err("no answer".to_owned()),
        };
        *delay = RETRY_FIRST;
        serve_tls(&self.shared, stream.into(), address, None).await;
        Ok(())
    }

    /// Returns a connection to the other end, perhaps through the proxy.
    async fn reach(&mut self) -> Result<(TcpStream, SocketAddr), String> {
        let (place, _) = host_of(&self.endpoint);
        let near = self.proxy.as_ref().map_or(place, |proxy| proxy.place());
        match timeout(LOOK_UP_MAX, lookup_host(near)).await {
            Ok(Ok(found)) => self.addresses = found.collect(),
            Ok(Err(error)) if self.addresses.is_empty() => return Err(error.to_string()),
            Err(_) if self.addresses.is_empty() => return Err("the name server is silent".into()),
            Ok(Err(_)) | Err(_) => {}
        }
        let connected = race::first(|attempts| {
            for address in self.addresses.iter().copied() {
                attempts.spawn(async move {
                    let stream = TcpStream::connect(address).await;
                    stream.map(|it| (it, address)).map_err(|error| error.to_string())
                });
            }
        });
        let (mut stream, address) = connected.await?;
        if let Some(proxy) = &self.proxy {
            match timeout(OPEN_MAX, pass(proxy, &mut stream, place)).await {
                Ok(passed) => passed?,
                Err(_) => return Err(format!("the proxy at {near} does not answer")),
            }
        }
        Ok((stream, address))
    }
}

/// Asks the proxy at the other end of `stream` for a connection to `to`.
async fn pass(proxy: &Proxy, stream: &mut TcpStream, to: &str) -> Result<(), String> {
    let broken = |error| format!("the proxy at {}: {error}", proxy.place());
    stream.write_all(proxy.request(to).as_bytes()).await.map_err(broken)?;
    let mut answer = Vec::new();
    // The bytes behind the answer belong to the connection.
    while !answer.ends_with(b"\r\n\r\n") && answer.len() < ANSWER_BYTES_MAX {
        answer.push(stream.read_u8().await.map_err(broken)?);
    }
    proxy.read(&String::from_utf8_lossy(&answer), to)
}
