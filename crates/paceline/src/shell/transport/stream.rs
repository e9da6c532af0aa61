//! Connections over TCP and TLS 1.3. All frames arrive once and in order.

use super::accept::accept;
use super::account;
use super::dial::{Connect, Place, dial, first};
use super::handshakes::Handshake;
use super::proof::Proof;
use super::shared::{Opened, Shared};
use super::{Error, Opening};
use super::{address_of, cause, resolve};
use crate::proxy::Proxy;
use rustix::net::sockopt::set_tcp_congestion;
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Context;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf, split};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

const NO_FILES: &str = "TLS needs tls_cert, tls_key and tls_ca";
/// The longest answer of a proxy, in bytes.
const ANSWER_BYTES_MAX: usize = 8 << 10;

type TlsReader = ReadHalf<TlsStream<TcpStream>>;
type TlsWriter = WriteHalf<TlsStream<TcpStream>>;

/// Listens at `endpoint`.
pub(super) fn listen(shared: &Arc<Shared>, endpoint: &str) -> Result<(), Error> {
    let acceptor = match (is_tls(endpoint), &shared.identity) {
        (false, _) => None,
        (true, Some(identity)) => Some(TlsAcceptor::from(identity.server.clone())),
        (true, None) => return Err(NO_FILES.into()),
    };
    let listener = std::net::TcpListener::bind(resolve(endpoint)?)?;
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let (shared, next) = (shared.clone(), move |cx: &mut Context<'_>| listener.poll_accept(cx));
    match acceptor {
        None => tokio::spawn(accept(shared, next, serve_tcp)),
        Some(acceptor) => tokio::spawn(accept(shared, next, move |shared, socket, began| {
            serve_tls(shared, acceptor.clone(), socket, began)
        })),
    };
    Ok(())
}

fn is_tls(endpoint: &str) -> bool {
    endpoint.starts_with("tls/")
}

/// Serves a connection over TCP.
async fn serve_tcp(shared: Arc<Shared>, (stream, from): (TcpStream, SocketAddr), began: Handshake) {
    prepare(&stream, shared.opening);
    let account = if shared.is_local { account::of_tcp(&stream, from).await } else { None };
    let proof = account.map_or(Proof::Nothing, Proof::User);
    shared.serve_incoming(Opened { proof, ..over_tcp(stream, from) }, began).await;
}

/// Serves a connection over TLS.
async fn serve_tls(
    shared: Arc<Shared>,
    acceptor: TlsAcceptor,
    (stream, from): (TcpStream, SocketAddr),
    began: Handshake,
) {
    prepare(&stream, shared.opening);
    match timeout(shared.opening.max, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => shared.serve_incoming(over_tls(stream.into(), from), began).await,
        Ok(Err(error)) => shared.turned_away(&format!("tls/{from}"), &cause::of_io(&error)),
        Err(_) => {}
    }
}

/// Sets the options of a socket: frames leave at once, and at the pace of the link.
///
/// Some hosts use BBR by default, which lets only four packets per round trip pass for 200 ms in every ten seconds, to measure
/// the path (`PROBE_RTT`: Cardwell et al., draft-ietf-ccwg-bbr, 2026). That breaks deadlines on a link that is not idle. CUBIC
/// slows down after losses only. A system may have neither, or forbid the choice: then its default stays.
fn prepare(stream: &TcpStream, opening: Opening) {
    let _ = stream.set_nodelay(true);
    if opening.paced {
        let chosen = ["cubic", "reno"].into_iter();
        let _ = chosen.map(|name| set_tcp_congestion(stream, name)).find(Result::is_ok);
    }
}

/// Describes a TCP connection.
fn over_tcp(stream: TcpStream, from: SocketAddr) -> Opened<OwnedReadHalf, OwnedWriteHalf> {
    let (reader, writer) = stream.into_split();
    let (address, proof) = (Some(from.ip()), Proof::Nothing);
    Opened { from: format!("tcp/{from}"), address, reader, writer, proof, quic: None }
}

/// Describes a TLS connection.
fn over_tls(stream: TlsStream<TcpStream>, from: SocketAddr) -> Opened<TlsReader, TlsWriter> {
    let (_, session) = stream.get_ref();
    let proof = session
        .peer_certificates()
        .map(|chain| chain.iter().map(|certificate| certificate.clone().into_owned()).collect());
    let proof = proof.map_or(Proof::Nothing, Proof::Certificates);
    let (reader, writer) = split(stream);
    let address = Some(from.ip());
    Opened { from: format!("tls/{from}"), address, reader, writer, proof, quic: None }
}

/// Connects to `endpoint`, and connects again after the end of a connection.
pub(super) fn connect(
    shared: &Arc<Shared>,
    endpoint: &str,
    proxy: Option<Proxy>,
) -> Result<(), Error> {
    let to = endpoint.to_owned();
    let address = address_of(endpoint)?;
    let name = address.host().to_owned();
    let behind = address.to_string();
    let place = Place::new(proxy.as_ref().map_or(address, |proxy| proxy.address().clone()));
    let tcp = Tcp { place, behind, proxy, opening: shared.opening };
    match (is_tls(endpoint), &shared.identity) {
        (false, _) => tokio::spawn(dial(shared.clone(), to, tcp)),
        (true, Some(identity)) => {
            let name = ServerName::try_from(name)?;
            let connector = TlsConnector::from(identity.client.clone());
            tokio::spawn(dial(shared.clone(), to, Tls { tcp, name, connector }))
        }
        (true, None) => return Err(NO_FILES.into()),
    };
    Ok(())
}

/// The way to a TCP endpoint, perhaps through a proxy.
struct Tcp {
    /// The first address on the way.
    place: Place,
    /// Host and port of the endpoint, which a proxy connects to.
    behind: String,
    proxy: Option<Proxy>,
    opening: Opening,
}

impl Tcp {
    async fn reach(&mut self) -> Result<(TcpStream, SocketAddr), String> {
        let addresses = self.place.look_up().await?;
        let connected = first(self.opening, |attempts| {
            for address in addresses.iter().copied() {
                attempts.spawn(async move {
                    let stream = TcpStream::connect(address).await;
                    stream.map(|it| (it, address)).map_err(|error| cause::of_io(&error))
                });
            }
        });
        let connected = connected.await.map_err(|why| match &self.proxy {
            Some(proxy) => format!("the proxy at {}: {why}", proxy.address()),
            None => why,
        });
        let (mut stream, address) = connected?;
        prepare(&stream, self.opening);
        if let Some(proxy) = &self.proxy {
            match timeout(self.opening.max, pass(proxy, &mut stream, &self.behind)).await {
                Ok(passed) => passed?,
                Err(_) => return Err(format!("the proxy at {} does not answer", proxy.address())),
            }
        }
        Ok((stream, address))
    }
}

impl Connect for Tcp {
    type Reader = OwnedReadHalf;
    type Writer = OwnedWriteHalf;

    async fn connect(&mut self) -> Result<Opened<OwnedReadHalf, OwnedWriteHalf>, String> {
        let (stream, address) = self.reach().await?;
        Ok(over_tcp(stream, address))
    }
}

/// The way to a TLS endpoint.
struct Tls {
    tcp: Tcp,
    name: ServerName<'static>,
    connector: TlsConnector,
}

impl Connect for Tls {
    type Reader = TlsReader;
    type Writer = TlsWriter;

    async fn connect(&mut self) -> Result<Opened<TlsReader, TlsWriter>, String> {
        let (stream, address) = self.tcp.reach().await?;
        match timeout(self.tcp.opening.max, self.connector.connect(self.name.clone(), stream)).await
        {
            Ok(Ok(stream)) => Ok(over_tls(stream.into(), address)),
            Ok(Err(error)) => Err(cause::of_io(&error)),
            Err(_) => Err(cause::NO_ANSWER.to_owned()),
        }
    }
}

/// Asks the proxy at the other end of `stream` for a connection to `to`.
async fn pass(proxy: &Proxy, stream: &mut TcpStream, to: &str) -> Result<(), String> {
    let broken = |error| format!("the proxy at {}: {error}", proxy.address());
    stream.write_all(proxy.request(to).as_bytes()).await.map_err(broken)?;
    let mut answer = Vec::new();
    // The bytes behind the answer belong to the connection.
    while !answer.ends_with(b"\r\n\r\n") && answer.len() < ANSWER_BYTES_MAX {
        answer.push(stream.read_u8().await.map_err(broken)?);
    }
    proxy.read(&String::from_utf8_lossy(&answer), to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_sched::Capacity;
    use rustix::net::sockopt::tcp_congestion;

    #[tokio::test]
    async fn a_paced_connection_does_not_use_bbr() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = listener.local_addr().unwrap();
        let stream = TcpStream::connect(to).await.unwrap();
        let default = tcp_congestion(&stream).unwrap();
        prepare(&stream, Opening::of(None));
        assert_eq!(tcp_congestion(&stream).unwrap(), default, "the choice of the system");
        prepare(&stream, Opening::of(Capacity::from_bits_per_s(1_000_000).ok()));
        let chosen = tcp_congestion(&stream).unwrap();
        assert!(["cubic", "reno"].contains(&chosen.as_str()), "{chosen} instead of {default}");
        assert!(stream.nodelay().unwrap());
    }
}
