//! The state that all tasks of a link share, and the life of a connection.

use super::datagram::Assembly;
use super::handshakes::{Handshake, Handshakes};
use super::inbox::{Inbox, Record};
use super::meet::meet;
use super::multicast::Multicast;
use super::origin::Origin;
use super::outbox::Sink;
use super::peer::Peer;
use super::peers::Peers;
use super::proof::Proof;
use super::{Inbound, Opening, PART_MAX, cause};
use crate::access::{Audit, Entry};
use crate::identity::{Identity, Introduction};
use bytes::Bytes;
use paceline_proto::{NodeId, ProbeInterval};
use quinn::Connection;
use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::task::JoinHandle;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep, timeout};

/// The most datagrams that are handled together.
const TOGETHER_MAX: usize = 64;
/// The interval of reading the certificates again and checking those of the peers.
const RENEW_EVERY: Duration = Duration::from_secs(2);

/// The state that all tasks of a link share.
pub(super) struct Shared {
    pub(super) link: String,
    pub(super) introduction: Introduction,
    pub(super) identity: Option<Arc<Identity>>,
    pub(super) inbound: Arc<dyn Inbound>,
    pub(super) peers: Peers,
    pub(super) handshakes: Arc<Handshakes>,
    /// The multicast groups, if the link uses any.
    pub(super) multicast: Option<Multicast>,
    /// The node has a policy, so that other users of the host may have rights.
    serves_users: bool,
    /// All peers are processes of this host.
    pub(super) is_local: bool,
    pub(super) opening: Opening,
    /// The interval of probes that the capacity of the link allows.
    probes: ProbeInterval,
    audit: Audit,
}

/// A connection before the introductions: a byte stream in each direction.
pub(super) struct Opened<R, W> {
    /// The other end, for messages.
    pub(super) from: String,
    pub(super) reader: R,
    pub(super) writer: W,
    /// The address of the other end; `None` over a unix socket.
    pub(super) address: Option<IpAddr>,
    /// What the other end has shown about itself.
    pub(super) proof: Proof,
    /// The connection that can carry datagrams, and whether this end sends frames in them.
    pub(super) quic: Option<(Connection, bool)>,
}

impl Shared {
    pub(super) fn new(
        link: &crate::config::LinkConfig,
        introduction: Introduction,
        inbound: Arc<dyn Inbound>,
    ) -> Self {
        let probes = ProbeInterval::of(link.capacity, 1);
        Self {
            link: link.name.clone(),
            introduction,
            identity: link.identity.clone(),
            inbound: inbound.clone(),
            peers: Peers::default(),
            handshakes: Arc::default(),
            multicast: link
                .multicast
                .map(|range| Multicast::new(range, &link.name, probes, inbound)),
            serves_users: link.serves_users,
            is_local: link.is_local(),
            opening: Opening::of(link.capacity),
            probes,
            audit: link.audit.clone(),
        }
    }

    fn entry(&self, event: &'static str, from: &str, why: &str) -> Entry {
        Entry::new(event).text("link", &self.link).text("from", from).text("why", why)
    }

    /// Reports a connection without a peer, unless the other end has sent nothing: a port scanner, for example, or an
    /// endpoint whose outage is reported if it lasts.
    pub(super) fn turned_away(&self, from: &str, why: &str) {
        if ![cause::SILENT, cause::NO_INTRODUCTION].contains(&why) {
            self.refused(from, why);
        }
    }

    /// Reports a peer that was refused.
    fn refused(&self, from: &str, why: &str) {
        crate::warn_limited!("link '{}': no link to the peer at {from}: {why}", self.link);
        self.audit.note_stranger(self.entry("refused", from, why));
    }

    /// Serves an incoming connection until it ends.
    pub(super) async fn serve_incoming<R, W>(&self, opened: Opened<R, W>, began: Handshake)
    where
        R: AsyncRead + Unpin + Send,
        W: Sink,
    {
        // What ends it is reported there.
        drop(self.serve(opened, Some(began), || ()).await);
    }

    /// Exchanges introductions, calls `connected`, and receives the frames of the peer until the connection ends.
    ///
    /// # Errors
    /// Returns the reason if either end refuses the other.
    pub(super) async fn serve<R, W>(
        &self,
        opened: Opened<R, W>,
        began: Option<Handshake>,
        connected: impl FnOnce() + Send,
    ) -> Result<(), String>
    where
        R: AsyncRead + Unpin + Send,
        W: Sink,
    {
        let Opened { from, address, mut reader, mut writer, proof, quic } = opened;
        let leaf = proof.certificates().and_then(<[_]>::first);
        let met = meet(&mut reader, &mut writer, &self.introduction, leaf);
        let began_at = Instant::now();
        let met = timeout(self.opening.max, met).await;
        // An end that has connected waits for the answer to its introduction. The other end may have got one already.
        let met_within = if began.is_none() { began_at.elapsed() } else { Duration::ZERO };
        let silent =
            if began.is_some() { "it sent no introduction" } else { cause::NO_INTRODUCTION };
        let node = match met.unwrap_or_else(|_| Err(silent.to_owned())) {
            Ok(node) => node,
            Err(why) => {
                return Err(self.part(&from, why, quic.map(|(connection, _)| connection)));
            }
        };
        let is_incoming = began.is_some();
        let stranger = began.as_ref().and_then(|_| self.stranger(&from, &proof));
        if began.is_some_and(|began| !began.complete()) {
            return Err("newer connections ended the handshake".to_owned());
        }
        let datagrams = quic.as_ref().filter(|(_, sends)| *sends).map(|(it, _)| it.clone());
        let origin = is_incoming.then(|| Origin::of(&proof, address));
        let peer = Peer::new(from, (proof, origin), datagrams, self.probes, met_within);
        let quic = quic.map(|(connection, _)| connection);
        let (peer, mut writing) = start(peer, writer);
        let admitted = stranger.map_or_else(|| self.peers.admit(node, &peer), Err);
        let ended = match admitted {
            Ok(()) => {
                connected();
                self.inbound.found(node);
                if let (Some(multicast), Some(connection)) = (&self.multicast, &quic) {
                    multicast.greet(node, &peer, connection.remote_address());
                }
                let receiving = self.receive(node, &peer, reader, quic.as_ref());
                tokio::pin!(receiving);
                tokio::select! {
                    ended = &mut receiving => ended,
                    // The other end may have sent frames that are still on the way.
                    () = peer.ends.notified() => timeout(PART_MAX, receiving).await.unwrap_or(Ok(())),
                }
            }
            Err(reason) => {
                self.refused(&peer.from, &reason);
                peer.close(&reason);
                Err(reason)
            }
        };
        peer.outbox.close("");
        if timeout(PART_MAX, &mut writing).await.is_err() {
            writing.abort();
        }
        self.peers.dismiss(node, &peer);
        self.multicast.iter().for_each(|multicast| multicast.part(node, &peer));
        if let Some(connection) = &quic {
            connection.close(0u8.into(), b"closed");
        }
        ended
    }

    /// Returns the reason to refuse a process of this host: nobody knows its user, or it is another one and there is
    /// no policy to give it rights.
    fn stranger(&self, from: &str, proof: &Proof) -> Option<String> {
        if self.is_local && matches!(proof, Proof::Nothing) {
            self.refused(from, "the kernel names no account for it");
            return Some("the kernel names no account for this connection".to_owned());
        }
        let user = proof.other_user().filter(|_| !self.serves_users)?;
        self.refused(from, &format!("user {user} needs rights; name @user:{user} in a policy"));
        Some(format!(
            "it gives user {user} no rights: it has no policy, which could name @user:{user}"
        ))
    }

    /// Ends a connection whose other end has not introduced itself. Returns the cause.
    fn part(&self, from: &str, why: String, quic: Option<Connection>) -> String {
        // The other end may have refused this one after the handshake.
        let reason = quic.as_ref().and_then(Connection::close_reason);
        let why = reason.map_or(why, |error| cause::of_quic(&error));
        if let Some(connection) = quic {
            connection.close(1u8.into(), why.as_bytes());
        }
        self.turned_away(from, &why);
        why
    }

    /// Receives frames until the stream ends; fails if the other end has closed it with a reason.
    async fn receive(
        &self,
        node: NodeId,
        peer: &Arc<Peer>,
        reader: impl AsyncRead + Unpin,
        quic: Option<&Connection>,
    ) -> Result<(), String> {
        let mut assembly = Assembly::default();
        let ended = tokio::select! {
            ended = self.receive_records(node, peer, reader) => ended,
            never = self.receive_datagrams((node, peer), quic, &mut assembly) => match never {},
            // It is dead.
            () = peer.liveness.silent() => Ok(()),
        };
        // Those that have arrived before the end.
        while let Some(connection) = quic
            && let Ok(Ok(datagram)) = timeout(Duration::ZERO, connection.read_datagram()).await
        {
            self.take(node, &mut assembly, datagram);
        }
        ended
    }

    async fn receive_records(
        &self,
        node: NodeId,
        peer: &Arc<Peer>,
        reader: impl AsyncRead + Unpin,
    ) -> Result<(), String> {
        let mut inbox = Inbox::new(reader);
        while inbox.fill().await.unwrap_or_default() {
            peer.liveness.note_heard();
            loop {
                let mut other = None;
                let mut frames = std::iter::from_fn(|| match inbox.next()? {
                    Record::Frame(frame) => Some(frame),
                    record @ (Record::Alive | Record::Message(_) | Record::Close(_)) => {
                        other = Some(record);
                        None
                    }
                });
                self.inbound.frames(node, &mut frames);
                match other {
                    None => break,
                    Some(Record::Frame(_) | Record::Alive) => {}
                    // A node without groups has no use for messages about them.
                    Some(Record::Message(message)) => self
                        .multicast
                        .iter()
                        .for_each(|multicast| multicast.handle(node, peer, &message)),
                    Some(Record::Close(why)) if why.is_empty() => return Ok(()),
                    Some(Record::Close(why)) => {
                        let why = format!("it has closed the link: {why}");
                        self.refused(&peer.from, &why);
                        return Err(why);
                    }
                }
            }
        }
        Ok(())
    }

    /// Receives datagrams. The end of the stream is the end of the connection.
    async fn receive_datagrams(
        &self,
        (node, peer): (NodeId, &Peer),
        connection: Option<&Connection>,
        assembly: &mut Assembly,
    ) -> Infallible {
        let Some(connection) = connection else { return pending().await };
        let mut arrived = Vec::with_capacity(TOGETHER_MAX);
        while let Ok(datagram) = connection.read_datagram().await {
            arrived.push(datagram);
            while arrived.len() < TOGETHER_MAX
                && let Some(Ok(datagram)) = at_once(connection.read_datagram()).await
            {
                arrived.push(datagram);
            }
            peer.liveness.note_heard();
            let mut frames = arrived.drain(..).filter_map(|datagram| assembly.take(datagram));
            self.inbound.frames(node, &mut frames);
            // The other tasks of this thread have their turn, however fast datagrams arrive.
            consume_budget().await;
        }
        pending().await
    }

    fn take(&self, node: NodeId, assembly: &mut Assembly, datagram: Bytes) {
        if let Some(frame) = assembly.take(datagram) {
            self.inbound.frame(node, frame);
        }
    }

    /// Reads the node's files again, and closes connections to peers that are no members any more.
    pub(super) async fn renew(self: Arc<Self>, identity: Arc<Identity>) {
        let mut reported = None;
        loop {
            sleep(RENEW_EVERY).await;
            let failed = identity.reload().err();
            if failed != reported {
                if let Some(why) = &failed {
                    tracing::warn!("link '{}': {why}; the previous files stay in force", self.link);
                }
                reported = failed;
            }
            for peer in self.peers.all() {
                let why = peer.proof.certificates().and_then(|chain| identity.rejects(chain));
                if let Some(why) = why {
                    let from = &peer.from;
                    tracing::warn!("link '{}': the peer at {from} is closed: {why}", self.link);
                    self.audit.note(self.entry("closed", from, &why));
                    peer.close(&why);
                }
            }
        }
    }
}

/// Returns the result of a future that is ready.
async fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Starts the tasks that write what waits for a peer.
fn start(peer: Peer, writer: impl Sink) -> (Arc<Peer>, JoinHandle<()>) {
    let peer = Arc::new(peer);
    let its = peer.clone();
    let writing = tokio::spawn(async move {
        if its.outbox.write_to(writer, &its.liveness).await.is_err() {
            its.ends.notify_one();
        }
    });
    if peer.datagrams.is_some() {
        let its = peer.clone();
        tokio::spawn(async move {
            if let Some(datagrams) = &its.datagrams {
                datagrams.run().await;
            }
        });
    }
    (peer, writing)
}
