//! `paceline trust invite` and `join`: a certificate for another machine by a one-time code.
//!
//! The inviting end listens with a key of its own for this one exchange. The code contains the hash of that key's
//! certificate, by which the joining end knows whom it talks to, and a secret, by which the inviting end knows who
//! asks. The private key of the new node never leaves its machine.

use super::authority::{Authority, Issued};
use anyhow::{Context as _, bail};
use rcgen::{CertificateParams, KeyPair, PublicKeyData as _};
use ring::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, ServerConfig, ServerConnection,
    SignatureScheme, Stream,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{TcpListener, TcpStream};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The lengths of the two parts of a code.
const SECRET_BYTES: usize = 10;
const HASH_BYTES: usize = 16;
/// The time for which an invitation waits, and the wrong attempts after which it ends.
pub(super) const WAIT: Duration = Duration::from_secs(600);
const ATTEMPTS_MAX: u32 = 10;
/// The longest time of one exchange, and its longest message.
const EXCHANGE_WITHIN: Duration = Duration::from_secs(10);
const MESSAGE_BYTES_MAX: u64 = 1 << 20;
/// The length of an uncompressed point of the curve P-256.
const KEY_BYTES: usize = 65;
/// RFC 4648 without letters that look like digits.
const LETTERS: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";

/// A one-time code: the hash of a certificate, and a secret.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct Code {
    hash: [u8; HASH_BYTES],
    secret: [u8; SECRET_BYTES],
}

impl fmt::Debug for Code {
    /// Shows no secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code")
    }
}

fn hash_of(certificate: &[u8]) -> [u8; HASH_BYTES] {
    let hash = digest(&SHA256, certificate);
    hash.as_ref().first_chunk().copied().unwrap_or_default()
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: Vec<u8> = self.hash.iter().chain(&self.secret).copied().collect();
        let bits = bytes.len() * 8;
        for (at, from) in (0..bits).step_by(5).enumerate() {
            let bit = |bit: usize| {
                bytes.get(bit / 8).map_or(0, |byte| usize::from(byte >> (7 - bit % 8) & 1))
            };
            let letter = (from..from + 5).fold(0, |letter, at| letter << 1 | bit(at));
            if at > 0 && at % 6 == 0 {
                f.write_str("-")?;
            }
            let letter = LETTERS.get(letter).copied().unwrap_or_default();
            write!(f, "{}", char::from(letter))?;
        }
        Ok(())
    }
}

impl FromStr for Code {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "must be the code that paceline trust invite has printed".to_owned();
        let mut bytes = Vec::new();
        let (mut word, mut bits) = (0u32, 0);
        for letter in text.bytes().filter(|byte| !matches!(byte, b'-' | b' ')) {
            let letter = letter.to_ascii_lowercase();
            let value = LETTERS.iter().position(|known| *known == letter).ok_or_else(wrong)?;
            word = word << 5 | u32::try_from(value).map_err(|_| wrong())?;
            bits += 5;
            if bits >= 8 {
                bits -= 8;
                bytes.push(u8::try_from(word >> bits & 0xff).map_err(|_| wrong())?);
            }
        }
        if bits > 2 || word & ((1 << bits) - 1) != 0 {
            return Err(wrong());
        }
        let (hash, secret) = bytes.split_at_checked(HASH_BYTES).ok_or_else(wrong)?;
        let hash = hash.try_into().map_err(|_| wrong())?;
        let secret = secret.try_into().map_err(|_| wrong())?;
        Ok(Self { hash, secret })
    }
}

/// The request of the joining end.
#[derive(Serialize, Deserialize)]
struct Ask {
    secret: Vec<u8>,
    /// The public key, an uncompressed point of P-256.
    key: Vec<u8>,
}

/// The answer: the files of the new node, or the reason for a refusal.
#[derive(Serialize, Deserialize)]
enum Answer {
    Issued(Issued),
    Refused(String),
}

/// An open invitation.
pub(super) struct Invitation {
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    code: Code,
    name: String,
    days: u32,
}

impl Invitation {
    /// Listens at `address` for one node, which will be named `name`.
    pub(super) fn open(address: &str, name: &str, days: u32) -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec!["invite".to_owned()])?.self_signed(&key)?;
        let mut secret = [0; SECRET_BYTES];
        File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut secret))?;
        let code = Code { hash: hash_of(certificate.der()), secret };
        let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
        let tls = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)?;
        let cannot = || format!("cannot listen at {address}");
        let addresses = paceline::resolve_address(address).map_err(anyhow::Error::msg);
        let listener = TcpListener::bind(addresses.with_context(cannot)?.as_slice());
        let listener = listener.with_context(cannot)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, tls: Arc::new(tls), code, name: name.to_owned(), days })
    }

    /// Returns the code for the joining end.
    pub(super) const fn code(&self) -> &Code {
        &self.code
    }

    /// Returns the port at which it listens.
    pub(super) fn port(&self) -> anyhow::Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// Waits for the node, and issues its certificate.
    pub(super) fn wait(
        &self,
        authority: &Authority,
        stopped: impl Fn() -> bool,
    ) -> anyhow::Result<()> {
        let until = Instant::now() + WAIT;
        let mut wrong = 0;
        while Instant::now() < until && !stopped() {
            let Ok((stream, from)) = self.listener.accept() else {
                std::thread::sleep(Duration::from_millis(50));
                continue;
            };
            match self.answer(stream, authority) {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    wrong += 1;
                    if wrong >= ATTEMPTS_MAX {
                        bail!("{wrong} attempts with a wrong code; invite again");
                    }
                }
                Err(error) => tracing::debug!("the attempt from {from} failed: {error}"),
            }
        }
        bail!("nobody has joined; invite again")
    }

    /// Answers one attempt. Returns true if a certificate was issued, and false if the code was wrong.
    fn answer(&self, mut stream: TcpStream, authority: &Authority) -> anyhow::Result<bool> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(EXCHANGE_WITHIN))?;
        stream.set_write_timeout(Some(EXCHANGE_WITHIN))?;
        let mut session = ServerConnection::new(self.tls.clone())?;
        let mut tls = Stream::new(&mut session, &mut stream);
        let ask: Ask = receive(&mut tls)?;
        let differs = ask.secret.iter().zip(&self.code.secret).fold(0, |all, (a, b)| all | (a ^ b));
        if ask.secret.len() != SECRET_BYTES || differs != 0 {
            send(&mut tls, &Answer::Refused("the code is wrong".to_owned()))?;
            return Ok(false);
        }
        if ask.key.len() != KEY_BYTES {
            send(&mut tls, &Answer::Refused("the key is no point of P-256".to_owned()))?;
            bail!("a key of {} bytes", ask.key.len());
        }
        let issued = authority.issue_to_key(&self.name, self.days, ask.key)?;
        send(&mut tls, &Answer::Issued(issued))?;
        Ok(true)
    }
}

/// Joins by an invitation: creates a key and returns it with the other files.
pub(super) fn join(address: &str, code: &Code) -> anyhow::Result<(KeyPair, Issued)> {
    let key = KeyPair::generate()?;
    let cannot = || format!("cannot reach {address}; does paceline trust invite wait there?");
    let addresses = paceline::resolve_address(address).map_err(anyhow::Error::msg);
    let mut stream =
        TcpStream::connect(addresses.with_context(cannot)?.as_slice()).with_context(cannot)?;
    stream.set_read_timeout(Some(EXCHANGE_WITHIN))?;
    stream.set_write_timeout(Some(EXCHANGE_WITHIN))?;
    let provider = provider();
    let pinned = Pinned { hash: code.hash, provider: provider.clone() };
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pinned))
        .with_no_client_auth();
    let mut session = ClientConnection::new(Arc::new(config), ServerName::try_from("invite")?)?;
    let mut tls = Stream::new(&mut session, &mut stream);
    let ask = Ask { secret: code.secret.to_vec(), key: key.der_bytes().to_vec() };
    send(&mut tls, &ask).context("the other end does not have this code")?;
    match receive(&mut tls)? {
        Answer::Issued(issued) => Ok((key, issued)),
        Answer::Refused(why) => bail!("the invitation is refused: {why}"),
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn send(to: &mut impl std::io::Write, message: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    Ok(to.flush()?)
}

fn receive<T: for<'d> Deserialize<'d>>(from: &mut impl std::io::Read) -> anyhow::Result<T> {
    let mut line = Vec::new();
    BufReader::new(from.take(MESSAGE_BYTES_MAX)).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}

/// Accepts the certificate of which a code contains the hash.
#[derive(Debug)]
struct Pinned {
    hash: [u8; HASH_BYTES],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match hash_of(certificate) == self.hash {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(rustls::Error::General(
                "another end answers: its key is not in the code".to_owned(),
            )),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("only TLS 1.3 is used".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_they_are_written() {
        let code = Code { hash: *b"0123456789abcdef", secret: *b"\0\xff secret." };
        let text = code.to_string();
        assert_eq!(text.len(), 42 + 6, "{text}");
        assert_eq!(text.parse(), Ok(code.clone()));
        assert_eq!(text.to_uppercase().replace('-', " ").parse(), Ok(code));
        for wrong in ["", "abc", &text[1..], &format!("{text}a"), &text.replace('-', "1")] {
            assert!(wrong.parse::<Code>().is_err(), "{wrong}");
        }
    }

    fn authority(name: &str) -> (std::path::PathBuf, Authority) {
        let dir = std::env::temp_dir().join(format!("pl-invite-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        Authority::create(&dir).unwrap();
        let opened = Authority::open(&dir).unwrap();
        (dir, opened)
    }

    #[test]
    fn a_code_works_once_and_only_for_whom_it_names() {
        let (dir, authority) = authority("once");
        let invitation = Invitation::open("127.0.0.1:0", "robot", 30).unwrap();
        let address = format!("127.0.0.1:{}", invitation.port().unwrap());
        let code = invitation.code().clone();
        let mut guessed = code.clone();
        guessed.secret[0] ^= 1;
        let mut other = code.clone();
        other.hash[0] ^= 1;
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| invitation.wait(&authority, || false));
            let error = format!("{:#}", join(&address, &guessed).err().unwrap());
            assert!(error.contains("the code is wrong"), "{error}");
            let error = format!("{:#}", join(&address, &other).err().unwrap());
            assert!(error.contains("its key is not in the code"), "{error}");
            let (key, issued) = join(&address, &code).unwrap();
            assert_eq!(issued.name, "robot");
            assert!(
                issued.certificate.contains("BEGIN CERTIFICATE") && !key.serialize_pem().is_empty()
            );
            waiting.join().unwrap().unwrap();
        });
        drop(invitation);
        assert!(join(&address, &code).is_err());
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn guessing_ends_an_invitation() {
        let (dir, authority) = authority("guess");
        let invitation = Invitation::open("127.0.0.1:0", "robot", 30).unwrap();
        let address = format!("127.0.0.1:{}", invitation.port().unwrap());
        let mut guessed = invitation.code().clone();
        guessed.secret[9] ^= 1;
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| invitation.wait(&authority, || false));
            for _ in 0..ATTEMPTS_MAX {
                let _ = join(&address, &guessed);
            }
            let error = waiting.join().unwrap().unwrap_err().to_string();
            assert!(error.contains("10 attempts"), "{error}");
        });
        std::fs::remove_dir_all(dir).unwrap();
    }
}
