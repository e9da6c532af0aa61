//! The carriers of a link: their endpoints, the certificates of their nodes, and raw connections.

use paceline::LinkConfig;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The account of the hostile member on carriers without certificates: nobody.
pub(crate) const NOBODY: u32 = 65_534;
/// The name in the certificate of the hostile member.
pub(crate) const MEMBER: &str = "mallory";
/// The capacity of the link under attack.
pub(crate) const CAPACITY: u64 = 2_000_000;

/// A carrier.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Carrier {
    Tcp,
    Tls,
    Quic,
    Unix,
}

impl Carrier {
    pub(crate) const ALL: [Self; 4] = [Self::Tcp, Self::Tls, Self::Quic, Self::Unix];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Quic => "quic",
            Self::Unix => "unix",
        }
    }

    pub(crate) fn of_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|it| it.name() == name).unwrap()
    }

    pub(crate) const fn is_certified(self) -> bool {
        matches!(self, Self::Tls | Self::Quic)
    }

    /// Returns the name of the hostile member in a policy.
    pub(crate) const fn member(self) -> &'static str {
        if self.is_certified() { MEMBER } else { "@user:nobody" }
    }
}

/// A place to meet: the endpoint of the node under test, and a folder with the files of the network.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) carrier: Carrier,
    pub(crate) endpoint: String,
    pub(crate) dir: PathBuf,
}

impl Place {
    /// Returns a new place, with certificates for these names.
    pub(crate) fn new(carrier: Carrier, names: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = format!("pl-member-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(dir);
        std::fs::create_dir_all(&dir).unwrap();
        if carrier.is_certified() {
            issue(&dir, names);
        }
        let endpoint = match carrier {
            Carrier::Unix => format!("unix/{}", dir.join("link.sock").display()),
            Carrier::Tcp | Carrier::Tls | Carrier::Quic => {
                format!("{}/127.0.0.1:{}", carrier.name(), free_port())
            }
        };
        Self { carrier, endpoint, dir }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Returns the link of the node with this name, without its endpoint.
    pub(crate) fn link(&self, name: &str) -> LinkConfig {
        let link = LinkConfig::new("radio").capacity_bits_per_s(CAPACITY);
        if !self.carrier.is_certified() {
            return link;
        }
        let [cert, key] = ["pem", "key"].map(|end| self.file(&format!("{name}.{end}")));
        link.tls(cert, key, self.file("ca.pem"))
    }

    /// Removes the folder.
    pub(crate) fn remove(&self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Returns a port that nobody uses, below those of the system's choice.
fn free_port() -> u16 {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    loop {
        let next = std::process::id() * 500 + ASKED.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(16_000 + next % 16_000).unwrap();
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Issues certificates of a new authority.
fn issue(dir: &Path, names: &[&str]) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::CrlSign];
    std::fs::write(dir.join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(params, key);
    for name in names {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![(*name).to_owned()]).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let cert = params.signed_by(&key, &issuer).unwrap().pem();
        std::fs::write(dir.join(format!("{name}.pem")), cert).unwrap();
        std::fs::write(dir.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

/// The bytes that a packet adds, as the link counts them.
const PACKET_BYTES: u64 = 100;

/// Both directions of a raw connection.
pub(crate) struct Raw {
    pub(crate) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// The connection that carries datagrams too, and its endpoint.
    pub(crate) quic: Option<(quinn::Connection, quinn::Endpoint)>,
    arrived: Arc<AtomicU64>,
}

impl Raw {
    /// Returns a connection over this stream, whose incoming bytes are counted in `arrived`.
    fn new(stream: impl AsyncRead + AsyncWrite + Send + 'static, arrived: Arc<AtomicU64>) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self { reader: Box::new(reader), writer: Box::new(writer), quic: None, arrived }
    }

    /// Returns the bytes that the node has sent so far, handshakes of TLS included, with those that the packets add: at
    /// most one for each read of a stream. Datagrams of QUIC count after [`Raw::count_datagrams`].
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    /// Counts the datagrams of QUIC until the connection ends.
    pub(crate) fn count_datagrams(&self) {
        let Some((connection, _)) = &self.quic else { return };
        let (connection, arrived) = (connection.clone(), self.arrived.clone());
        tokio::spawn(async move {
            while let Ok(datagram) = connection.read_datagram().await {
                arrived.fetch_add(datagram.len() as u64 + PACKET_BYTES, Ordering::Relaxed);
            }
        });
    }

    /// Returns the bytes of all packets of QUIC so far, its acknowledgements included, with those that the packets add.
    pub(crate) fn quic_bytes(&self) -> u64 {
        let Some((connection, _)) = &self.quic else { return 0 };
        let udp = connection.stats().udp_rx;
        udp.bytes + udp.datagrams * PACKET_BYTES
    }
}

/// A stream whose incoming bytes are counted.
struct Counted<S>(S, Arc<AtomicU64>);

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.0).poll_read(context, buffer);
        let read = (buffer.filled().len() - before) as u64;
        if read > 0 {
            self.1.fetch_add(read + PACKET_BYTES, Ordering::Relaxed);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// The means of a member to connect.
#[derive(Clone)]
pub(crate) struct Dialler {
    place: Place,
    tls: Option<Arc<rustls::ClientConfig>>,
    /// The hash of the public key of its certificate; zero without one.
    key: [u8; 32],
}

impl Dialler {
    pub(crate) fn new(place: &Place) -> Self {
        if !place.carrier.is_certified() {
            return Self { place: place.clone(), tls: None, key: [0; 32] };
        }
        let [cert, key] = ["pem", "key"].map(|end| place.file(&format!("{MEMBER}.{end}")));
        let cert = CertificateDer::from_pem_file(cert).unwrap();
        let parsed = rustls::server::ParsedCertificate::try_from(&cert).unwrap();
        let public = ring::digest::digest(&ring::digest::SHA256, &parsed.subject_public_key_info());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody))
            .with_client_auth_cert(vec![cert.clone()], PrivateKeyDer::from_pem_file(key).unwrap());
        let mut config = config.unwrap();
        config.alpn_protocols = vec![b"paceline".to_vec()];
        let key = public.as_ref().try_into().unwrap();
        Self { place: place.clone(), tls: Some(Arc::new(config)), key }
    }

    /// Returns the introduction of the node with this number: each number is another node of the same member.
    pub(crate) fn introduction(&self, number: u64) -> [u8; 48] {
        let mut introduction = [0; 48];
        introduction[..32].copy_from_slice(&self.key);
        introduction[32..40].copy_from_slice(&u64::from(std::process::id()).to_be_bytes());
        introduction[40..].copy_from_slice(&number.to_be_bytes());
        introduction
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self) -> std::io::Result<Raw> {
        let address = self.place.endpoint.split_once('/').unwrap().1.to_owned();
        let arrived = Arc::new(AtomicU64::new(0));
        let tcp = async || {
            let stream = tokio::net::TcpStream::connect(&address).await?;
            stream.set_nodelay(true)?;
            std::io::Result::Ok(Counted(stream, arrived.clone()))
        };
        match self.place.carrier {
            Carrier::Unix => {
                let path = self.place.endpoint.strip_prefix("unix/").unwrap();
                let stream = tokio::net::UnixStream::connect(path).await?;
                Ok(Raw::new(Counted(stream, arrived.clone()), arrived))
            }
            Carrier::Tcp => Ok(Raw::new(tcp().await?, arrived)),
            Carrier::Tls => {
                let connector = tokio_rustls::TlsConnector::from(self.tls.clone().unwrap());
                let name = ServerName::try_from("victim").unwrap();
                Ok(Raw::new(connector.connect(name, tcp().await?).await?, arrived))
            }
            Carrier::Quic => self.connect_quic(&address).await.map_err(std::io::Error::other),
        }
    }

    async fn connect_quic(&self, address: &str) -> Result<Raw, String> {
        let text = |error: &dyn std::error::Error| error.to_string();
        let crypto = rustls::ClientConfig::clone(self.tls.as_ref().unwrap());
        let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(crypto).unwrap();
        let mut config = quinn::ClientConfig::new(Arc::new(crypto));
        let mut transport = quinn::TransportConfig::default();
        transport.max_idle_timeout(None).datagram_receive_buffer_size(Some(8 << 20));
        config.transport_config(Arc::new(transport));
        let endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap());
        let endpoint = endpoint.map_err(|error| text(&error))?;
        let connecting = endpoint.connect_with(config, address.parse().unwrap(), "victim");
        let connection = connecting.map_err(|error| text(&error))?.await;
        let connection = connection.map_err(|error| text(&error))?;
        let (writer, reader) = connection.open_bi().await.map_err(|error| text(&error))?;
        let quic = Some((connection, endpoint));
        let stream = Counted(tokio::io::join(reader, writer), Arc::default());
        let arrived = stream.1.clone();
        Ok(Raw { quic, ..Raw::new(stream, arrived) })
    }
}

/// Accepts any server: the member attacks whoever answers.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
