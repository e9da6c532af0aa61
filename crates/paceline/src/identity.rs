//! The identity of a node: its certificate, and the authority that it trusts.

use paceline_proto::NodeId;
use ring::digest::{SHA256, digest};
use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{
    ClientHello, NoServerSessionStorage, ParsedCertificate, ResolvesServerCert,
    WebPkiClientVerifier,
};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, RootCertStore,
    ServerConfig, SignatureScheme,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use x509_parser::extensions::GeneralName;

/// The protocol name in the TLS handshake (ALPN, RFC 7301).
const PROTOCOL: &[u8] = b"paceline";
/// The lengths of the parts of an [`Introduction`].
const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 16;
pub(crate) const INTRODUCTION_BYTES: usize = KEY_BYTES + NONCE_BYTES;

/// What a node shows to its neighbours to prove its id.
///
/// The id is the beginning of SHA-256 over both parts. So only a node that knows them can claim the id; others can
/// only have them from a connection to that node. On connections with certificates the first part is
/// also the hash of the certificate's key, so nobody else can claim the id.
#[derive(Clone, Copy)]
pub(crate) struct Introduction {
    /// SHA-256 over the public key of the node's certificate; zero without one.
    key: [u8; KEY_BYTES],
    /// Random, so that a restarted node has another id.
    nonce: [u8; NONCE_BYTES],
}

impl Introduction {
    /// Returns the introduction of a node without a certificate.
    pub(crate) const fn anonymous(nonce: [u8; NONCE_BYTES]) -> Self {
        Self { key: [0; KEY_BYTES], nonce }
    }

    fn of(
        certificate: &CertificateDer<'_>,
        nonce: [u8; NONCE_BYTES],
    ) -> Result<Self, rustls::Error> {
        let key = ParsedCertificate::try_from(certificate)?.subject_public_key_info();
        let mut hashed = [0; KEY_BYTES];
        hashed.copy_from_slice(digest(&SHA256, &key).as_ref());
        Ok(Self { key: hashed, nonce })
    }

    pub(crate) fn id(&self) -> NodeId {
        let hash = digest(&SHA256, &self.to_bytes());
        let first = hash.as_ref().iter().take(8);
        NodeId(first.fold(0, |id, byte| id << 8 | u64::from(*byte)))
    }

    pub(crate) fn to_bytes(self) -> [u8; INTRODUCTION_BYTES] {
        let mut bytes = [0; INTRODUCTION_BYTES];
        let (key, nonce) = bytes.split_at_mut(KEY_BYTES);
        key.copy_from_slice(&self.key);
        nonce.copy_from_slice(&self.nonce);
        bytes
    }

    /// Returns `None` if the length is wrong.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (key, nonce) = bytes.split_first_chunk()?;
        Some(Self { key: *key, nonce: nonce.try_into().ok()? })
    }

    /// Checks that the node with this certificate has made the introduction.
    ///
    /// # Errors
    /// Returns the cause.
    pub(crate) fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), String> {
        let its = Self::of(certificate, self.nonce).map_err(|error| reason(&error))?;
        if its.key == self.key {
            Ok(())
        } else {
            Err("its introduction belongs to another certificate".to_owned())
        }
    }
}

/// The files with which a link proves its identity, in PEM format.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct TlsFiles {
    /// The certificate, with its intermediates.
    pub(crate) cert: PathBuf,
    /// The private key of the certificate.
    pub(crate) key: PathBuf,
    /// The authorities whose certificates are accepted, and their revocation lists.
    pub(crate) ca: PathBuf,
}

/// The certificate of a node, and the TLS 1.3 settings with which it proves its identity and checks
/// that of others.
///
/// The node's id depends on both ([`Introduction`]), so a node cannot claim the id of another one.
pub(crate) struct Identity {
    introduction: Introduction,
    files: TlsFiles,
    provider: Arc<CryptoProvider>,
    own: Arc<Own>,
    members: Arc<Members>,
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) client: Arc<ClientConfig>,
}

impl std::fmt::Debug for Identity {
    /// Shows no secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("id", &self.introduction.id()).finish_non_exhaustive()
    }
}

impl Identity {
    /// Loads the files of a link, and checks that the certificate is a valid one of the authority.
    ///
    /// # Errors
    /// Returns a description with the file and a remedy.
    pub(crate) fn load(files: &TlsFiles, nonce: [u8; NONCE_BYTES]) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let members = Arc::new(Members(RwLock::new(members(&files.ca, provider.clone())?)));
        let own = own(files, &members, &provider)?;
        let TlsFiles { cert, .. } = files;
        let leaf = own.end_entity_cert().map_err(|_| empty("tls_cert", cert))?;
        let introduction = Introduction::of(leaf, nonce).map_err(|error| {
            format!("tls_cert {}: {error}; issue the certificate again", cert.display())
        })?;
        let own = Arc::new(Own(RwLock::new(Arc::new(own))));
        let broken = |error: rustls::Error| error.to_string();
        let versions = [&rustls::version::TLS13];
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .map_err(broken)?
            .with_client_cert_verifier(members.clone())
            .with_cert_resolver(own.clone());
        server.alpn_protocols = vec![PROTOCOL.to_vec()];
        // A resumed session would skip the check of the certificate.
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .map_err(broken)?
            .dangerous()
            .with_custom_certificate_verifier(members.clone())
            .with_client_cert_resolver(own.clone());
        client.alpn_protocols = vec![PROTOCOL.to_vec()];
        // Each connection is checked in full.
        client.resumption = rustls::client::Resumption::disabled();
        let (files, server, client) = (files.clone(), Arc::new(server), Arc::new(client));
        Ok(Self { introduction, files, provider, own, members, server, client })
    }

    /// Reads the files again, so that a renewed certificate and new revocations take effect.
    ///
    /// # Errors
    /// Returns a description with the file and a remedy. The previous content then stays in force.
    pub(crate) fn reload(&self) -> Result<(), String> {
        let current = members(&self.files.ca, self.provider.clone())?;
        *self.members.0.write().unwrap_or_else(PoisonError::into_inner) = current;
        let renewed = own(&self.files, &self.members, &self.provider)?;
        let leaf = renewed.end_entity_cert().map_err(|error| error.to_string())?;
        if self.introduction.check(leaf).is_err() {
            return Err(format!(
                "tls_cert {}: it has another key than before; restart the node to use it",
                self.files.cert.display()
            ));
        }
        *self.own.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(renewed);
        Ok(())
    }

    /// Returns the reason why a connected peer is no member any more, if it is not.
    pub(crate) fn rejects(&self, chain: &[CertificateDer<'_>]) -> Option<String> {
        let (leaf, intermediates) = chain.split_first()?;
        let checked = self.members.now().verify_client_cert(leaf, intermediates, UnixTime::now());
        checked.err().map(|error| reason(&error))
    }

    /// Returns the name in the certificate of this node.
    pub(crate) fn name(&self) -> Option<String> {
        certified_name(self.own.now().end_entity_cert().ok()?)
    }

    /// Returns what this node shows to its neighbours.
    pub(crate) const fn introduction(&self) -> &Introduction {
        &self.introduction
    }
}

/// Returns the time at which the certificate in a file ends.
///
/// # Errors
/// Returns a description with the file and a remedy.
pub fn certificate_end(file: &Path) -> Result<SystemTime, String> {
    let certs = certificates("tls_cert", file)?;
    let leaf = certs.first().ok_or_else(|| empty("tls_cert", file))?;
    let parsed = x509_parser::parse_x509_certificate(leaf);
    let (_, parsed) = parsed.map_err(|error| format!("tls_cert {}: {error}", file.display()))?;
    let ends = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or_default();
    Ok(UNIX_EPOCH.checked_add(Duration::from_secs(ends)).unwrap_or(UNIX_EPOCH))
}

/// Returns the name in a certificate: its first DNS name, or its common name if it has none.
pub(crate) fn certified_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let names = parsed.subject_alternative_name().ok().flatten();
    let mut names = names.iter().flat_map(|names| &names.value.general_names);
    let dns = names.find_map(|name| {
        let GeneralName::DNSName(name) = name else { return None };
        Some((*name).to_owned())
    });
    dns.or_else(|| {
        let common = parsed.subject().iter_common_name().next()?;
        common.as_str().ok().map(str::to_owned)
    })
}

/// Reads the certificate and its key, and checks that it is a valid one of the authority.
fn own(
    files: &TlsFiles,
    members: &Members,
    provider: &Arc<CryptoProvider>,
) -> Result<CertifiedKey, String> {
    let TlsFiles { cert, key, .. } = files;
    let certs = certificates("tls_cert", cert)?;
    let private = PrivateKeyDer::from_pem_file(key);
    let private = private.map_err(|error| unreadable("tls_key", key, &error))?;
    let leaf = certs.first().ok_or_else(|| empty("tls_cert", cert))?;
    let rest = certs.get(1..).unwrap_or_default();
    let valid = members.now().verify_client_cert(leaf, rest, UnixTime::now());
    valid.map_err(|error| format!("tls_cert {}: {}", cert.display(), reason(&error)))?;
    CertifiedKey::from_der(certs, private, provider).map_err(|error| {
        format!(
            "tls_key {} does not fit tls_cert {}: {error}; use the key that belongs to the certificate",
            key.display(),
            cert.display()
        )
    })
}

/// The certificate of this node, which may be renewed.
#[derive(Debug)]
struct Own(RwLock<Arc<CertifiedKey>>);

impl Own {
    fn now(&self) -> Arc<CertifiedKey> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResolvesServerCert for Own {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.now())
    }
}

impl ResolvesClientCert for Own {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.now())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Returns the verifier of members: certificates of the authority in `ca`, except revoked ones. The file
/// may also contain certificate revocation lists.
fn members(
    ca: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for root in certificates("tls_ca", ca)? {
        roots.add(root).map_err(|error| format!("tls_ca {}: {}", ca.display(), reason(&error)))?;
    }
    let lists = CertificateRevocationListDer::pem_file_iter(ca)
        .map_err(|error| unreadable("tls_ca", ca, &error))?;
    let lists = lists.collect::<Result<Vec<_>, _>>();
    let lists = lists.map_err(|error| unreadable("tls_ca", ca, &error))?;
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .with_crls(lists)
        .allow_unknown_revocation_status()
        .build()
        .map_err(|error| format!("tls_ca {}: {error}; use the file of the authority", ca.display()))
}

fn certificates(field: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all =
        CertificateDer::pem_file_iter(file).map_err(|error| unreadable(field, file, &error))?;
    let all: Vec<_> =
        all.collect::<Result<_, _>>().map_err(|error| unreadable(field, file, &error))?;
    if all.is_empty() { Err(empty(field, file)) } else { Ok(all) }
}

fn empty(field: &str, file: &Path) -> String {
    format!("{field} {}: contains no certificate; use a file in PEM format", file.display())
}

fn unreadable(field: &str, file: &Path, error: &rustls::pki_types::pem::Error) -> String {
    format!(
        "{field} {}: {error}; it must be a readable file in PEM format, such as paceline trust writes",
        file.display()
    )
}

/// Returns the cause and a remedy of a rejected certificate.
pub(crate) fn reason(error: &rustls::Error) -> String {
    use CertificateError::{
        BadEncoding, BadSignature, Expired, ExpiredContext, InvalidPurpose, InvalidPurposeContext,
        NotValidYet, NotValidYetContext, Revoked, UnknownIssuer,
    };
    let rustls::Error::InvalidCertificate(why) = error else { return error.to_string() };
    let text = if matches!(why, Expired | ExpiredContext { .. }) {
        "the certificate has expired, or the clock of this host is wrong; issue it again"
    } else if matches!(why, NotValidYet | NotValidYetContext { .. }) {
        "the certificate is not valid yet; set the clock of this host"
    } else if matches!(why, Revoked) {
        "the certificate was revoked"
    } else if matches!(why, UnknownIssuer | BadSignature) {
        "another authority issued the certificate; use the tls_ca of this network"
    } else if matches!(why, InvalidPurpose | InvalidPurposeContext { .. }) {
        "the certificate is not for TLS clients; it needs the extended key usage clientAuth"
    } else if matches!(why, BadEncoding) {
        "the certificate is damaged"
    } else {
        return why.to_string();
    };
    text.to_owned()
}

/// Checks the other end of a connection. Both ends are members alike: the certificate must be valid for
/// clients, and the address need not be in it.
#[derive(Debug)]
struct Members(RwLock<Arc<dyn ClientCertVerifier>>);

impl Members {
    fn now(&self) -> Arc<dyn ClientCertVerifier> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ServerCertVerifier for Members {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let checked = self.now().verify_client_cert(certificate, intermediates, now);
        checked.map(|_| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.now().verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.now().verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.now().supported_verify_schemes()
    }
}

impl ClientCertVerifier for Members {
    /// Names no authority: the other end has only one certificate.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.now().verify_client_cert(certificate, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.now().verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.now().verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.now().supported_verify_schemes()
    }
}
