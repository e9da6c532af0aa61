//! `paceline trust invite`: issues a certificate to another machine by a one-time code.
//!
//! The inviting end listens with a key of its own for this one exchange. The code contains the hash of that key's
//! certificate, which identifies this end to the joining end, and a secret, which shows that the joining end is
//! invited. The private key of the new node never leaves its machine.

use super::authority::Authority;
use super::code::{Code, SECRET_BYTES, hash_of};
use super::exchange::{
    ASK_BYTES_MAX, Answer, Ask, EXCHANGE_WITHIN, Failure, provider, receive, send,
};
use anyhow::{Context as _, bail};
use paceline_http::slots::{Client, Slot, SlotLimits, Slots};
use paceline_tool::exit;
use paceline_tool::stop::STOP_SLICE;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at};
use tokio_rustls::server::TlsStream;

/// The time for which an invitation waits.
pub(super) const WAIT: Duration = Duration::from_secs(600);
/// The most results of connections that wait.
const OUTCOMES_MAX: usize = 64;
/// The pause after an error of `accept`, such as too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// The length of an uncompressed point of the curve P-256.
const KEY_BYTES: usize = 65;

/// A connection that has sent a request.
type Asked = (Ask, TlsStream<TcpStream>);
/// The result of a connection from this address.
type Outcome = (SocketAddr, Result<Asked, Failure>);

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
    ///
    /// # Errors
    /// Errors if nobody with the code has joined in time, with the causes of the failed attempts, or if the authority
    /// cannot issue.
    pub(super) fn wait(
        &self,
        authority: &Authority,
        stopped: impl Fn() -> bool,
    ) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.serve(authority, stopped))
    }

    /// Serves connections until one of them has joined.
    async fn serve(&self, authority: &Authority, stopped: impl Fn() -> bool) -> anyhow::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener.try_clone()?)?;
        let (to, mut outcomes) = mpsc::channel(OUTCOMES_MAX);
        let (slots, mut attempts) = (Slots::new(SlotLimits::USUAL), Attempts::default());
        let until = Instant::now() + WAIT;
        let mut check = interval(STOP_SLICE);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // The others run first, so that a new connection is read before newer ones need its slot.
            yield_now().await;
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, from)) => self.begin(stream, from, &slots, to.clone()),
                    Err(error) => {
                        tracing::debug!("a connection was not accepted: {error}");
                        sleep(ACCEPT_AGAIN).await;
                    }
                },
                Some((from, outcome)) = outcomes.recv() => {
                    let answered = match outcome {
                        Ok((ask, tls)) => self.answer(ask, tls, authority).await?,
                        Err(failure) => Err(failure),
                    };
                    match answered {
                        Ok(()) => return Ok(()),
                        Err(failure) => attempts.note(from, &failure),
                    }
                }
                _ = check.tick() => {
                    if stopped() {
                        let why = format!("interrupted: nobody has joined{attempts}");
                        return Err(exit::interrupted(why));
                    }
                    if Instant::now() >= until {
                        let minutes = WAIT.as_secs() / 60;
                        bail!("nobody has joined within {minutes} minutes{attempts}; invite again");
                    }
                }
            }
        }
    }

    /// Begins to serve a connection.
    fn begin(
        &self,
        stream: TcpStream,
        from: SocketAddr,
        slots: &Arc<Slots>,
        to: mpsc::Sender<Outcome>,
    ) {
        let (slot, ended) = slots.enter(Client::at(from));
        let tls = self.tls.clone();
        tokio::spawn(async move {
            let outcome = tokio::select! {
                asked = receive_ask(stream, tls, &slot) => asked,
                _ = displaced(ended) => Err(Failure::Displaced),
            };
            // An error means that the invitation has ended.
            let _ = to.send((from, outcome)).await;
        });
    }

    /// Answers one request.
    ///
    /// # Errors
    /// The outer error is one of this machine and ends the invitation.
    async fn answer(
        &self,
        ask: Ask,
        mut tls: TlsStream<TcpStream>,
        authority: &Authority,
    ) -> anyhow::Result<Result<(), Failure>> {
        let differs = ask.secret.iter().zip(&self.code.secret).fold(0, |all, (a, b)| all | (a ^ b));
        if ask.secret.len() != SECRET_BYTES || differs != 0 {
            refuse(tls, "the code is wrong");
            return Ok(Err(Failure::WrongCode));
        }
        if ask.key.len() != KEY_BYTES {
            refuse(tls, "the key is no point of P-256");
            return Ok(Err(Failure::Message(format!("a key of {} bytes", ask.key.len()))));
        }
        let issued = match authority.issue_to_key(&self.name, self.days, ask.key) {
            Ok(issued) => issued,
            Err(error) => {
                let why = Answer::Refused("the authority cannot issue a certificate".to_owned());
                let _ = timeout(EXCHANGE_WITHIN, send(&mut tls, &why)).await;
                return Err(error);
            }
        };
        let sent = timeout(EXCHANGE_WITHIN, send(&mut tls, &Answer::Issued(issued))).await;
        Ok(sent.unwrap_or(Err(Failure::SlowMessage)))
    }
}

/// Sends a refusal without waiting for it, so that a slow reader delays nobody.
fn refuse(mut tls: TlsStream<TcpStream>, why: &'static str) {
    tokio::spawn(async move {
        let answer = Answer::Refused(why.to_owned());
        timeout(EXCHANGE_WITHIN, send(&mut tls, &answer)).await
    });
}

/// Waits until a newer connection needs the slot.
async fn displaced(ended: oneshot::Receiver<()>) {
    let _ = ended.await;
}

async fn receive_ask(
    stream: TcpStream,
    tls: Arc<ServerConfig>,
    slot: &Slot,
) -> Result<Asked, Failure> {
    let until = Instant::now() + EXCHANGE_WITHIN;
    let accepted = timeout_at(until, slot.encrypt(stream, tls)).await;
    let accepted = accepted.map_err(|_| Failure::SlowTls)?;
    let mut tls = accepted.map_err(|error| Failure::Tls(error.to_string()))?;
    let ask = timeout_at(until, receive(&mut tls, ASK_BYTES_MAX)).await;
    Ok((ask.map_err(|_| Failure::SlowMessage)??, tls))
}

/// The failed attempts, by cause.
#[derive(Default)]
struct Attempts(BTreeMap<String, (u32, String)>);

impl Attempts {
    /// The most causes that are listed; others count together.
    const CAUSES_MAX: usize = 8;

    fn note(&mut self, from: SocketAddr, failure: &Failure) {
        if *failure != Failure::Displaced {
            paceline::warn_limited!("the attempt from {from} failed: {failure}");
        }
        let mut cause = failure.to_string();
        if self.0.len() >= Self::CAUSES_MAX && !self.0.contains_key(&cause) {
            cause = "another cause".to_owned();
        }
        let (count, last) = self.0.entry(cause).or_default();
        *count = count.saturating_add(1);
        *last = from.to_string();
    }
}

impl fmt::Display for Attempts {
    /// Writes nothing if there was no attempt.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (cause, (count, last))) in self.0.iter().enumerate() {
            let separator = if number == 0 { "; failed attempts: " } else { ", " };
            write!(f, "{separator}{count} × {cause} (last from {last})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
