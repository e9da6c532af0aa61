//! The state that all tasks of a link share, and the life of a connection.

use super::super::{Inbound, OPEN_MAX};
use super::datagram::Assembly;
use super::handshakes::{Handshake, Handshakes};
use super::inbox::{Inbox, Record};
use super::meet::meet;
use super::outbox::Sink;
use super::peer::Peer;
use super::{IDLE_MAX, KEEP_ALIVE, PEERS_MAX, lock};
use crate::access::{Audit, Entry};
use crate::identity::{Identity, Introduction};
use paceline_proto::NodeId;
use quinn::Connection;
use rustls::pki_types::CertificateDer;
use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::time::{sleep, timeout};

/// The interval of reading the certificates again and checking those of the peers.
const RENEW_EVERY: Duration = Duration::from_secs(2);
/// The longest wait for the end of a connection that this node closes.
const PART_MAX: Duration = Duration::from_millis(200);

/// The state that all tasks of a link share.
pub(super) struct Shared {
    pub(super) link: String,
    pub(super) introduction: Introduction,
    pub(super) identity: Option<Arc<Identity>>,
    pub(super) inbound: Arc<dyn Inbound>,
    /// The connected peers, by the ids that they have proven.
    pub(super) peers: Mutex<BTreeMap<NodeId, Arc<Peer>>>,
    pub(super) handshakes: Arc<Handshakes>,
    /// All connections with an introduction, also older ones of a peer.
    served: Mutex<Vec<(NodeId, Weak<Peer>)>>,
    audit: Audit,
}

/// A connection before the introductions: a byte stream in each direction.
pub(super) struct Opened<R, W> {
    /// The other end, for messages.
    pub(super) from: String,
    pub(super) reader: R,
    pub(super) writer: W,
    /// The certificates that the other end has shown.
    pub(super) proof: Option<Vec<CertificateDer<'static>>>,
    /// The connection that can carry datagrams, and whether this end sends frames in them.
    pub(super) quic: Option<(Connection, bool)>,
}

impl Shared {
    pub(super) fn new(
        link: &crate::config::LinkConfig,
        introduction: Introduction,
        inbound: Arc<dyn Inbound>,
    ) -> Self {
        Self {
            link: link.name.clone(),
            introduction,
            identity: link.identity.clone(),
            inbound,
            peers: Mutex::default(),
            handshakes: Arc::default(),
            served: Mutex::default(),
            audit: link.audit.clone(),
        }
    }

    fn entry(&self, event: &'static str, from: &str, why: &str) -> Entry {
        Entry::new(event).text("link", &self.link).text("from", from).text("why", why)
    }

    /// Reports an incoming connection without a peer, unless the other end has closed it without a word.
    pub(super) fn turned_away(&self, from: &str, why: &str) {
        if why != super::cause::SILENT {
            self.refused(from, why);
        }
    }

    /// Reports a peer that was refused.
    fn refused(&self, from: &str, why: &str) {
        crate::warn_limited!("link '{}': no link to the peer at {from}: {why}", self.link);
        self.audit.note_stranger(self.entry("refused", from, why));
    }

    /// Exchanges introductions, and receives the frames of the peer until the connection ends.
    pub(super) async fn serve<R, W>(&self, opened: Opened<R, W>, began: Option<Handshake>)
    where
        R: AsyncRead + Unpin + Send,
        W: Sink,
    {
        let Opened { from, mut reader, mut writer, proof, quic } = opened;
        let leaf = proof.as_ref().and_then(|chain| chain.first());
        let met = meet(&mut reader, &mut writer, &self.introduction, leaf);
        let node = match timeout(OPEN_MAX, met).await {
            Ok(Ok(node)) => node,
            Ok(Err(why)) => {
                // The other end may have refused this one after the handshake.
                let connection = quic.map(|(connection, _)| connection);
                let reason = connection.as_ref().and_then(Connection::close_reason);
                let why = reason.map_or(why, |error| super::cause::of_quic(&error));
                if let Some(connection) = connection {
                    connection.close(1u8.into(), why.as_bytes());
                }
                return match began {
                    Some(_) => self.turned_away(&from, &why),
                    None => self.refused(&from, &why),
                };
            }
            Err(_) => return self.refused(&from, "it sent no introduction"),
        };
        drop(began);
        let datagrams = quic.as_ref().filter(|(_, sends)| *sends).map(|(it, _)| it.clone());
        let peer = Arc::new(Peer::new(from, proof, datagrams));
        let is_quic = quic.is_some();
        let its = peer.clone();
        let mut writing = tokio::spawn(async move {
            // QUIC keeps its connections alive itself.
            let quiet = (!is_quic).then_some(KEEP_ALIVE);
            if its.outbox.write_to(writer, quiet).await.is_err() {
                its.ends.notify_one();
            }
        });
        if self.admit(node, &peer) {
            self.inbound.found(node);
        } else {
            peer.close("the link has the maximum of peers");
        }
        let quic = quic.map(|(connection, _)| connection);
        let receiving = async {
            tokio::select! {
                () = self.receive_records(node, &peer, reader, is_quic) => {}
                () = self.receive_datagrams(node, quic.as_ref()) => {}
            }
        };
        tokio::pin!(receiving);
        tokio::select! {
            () = &mut receiving => {}
            // The other end may have sent frames that it has not closed behind.
            () = peer.ends.notified() => drop(timeout(PART_MAX, receiving).await),
        }
        self.dismiss(node, &peer);
        peer.outbox.close("");
        if timeout(PART_MAX, &mut writing).await.is_err() {
            writing.abort();
        }
        if let Some(connection) = &quic {
            connection.close(0u8.into(), b"closed");
        }
    }

    async fn receive_records(
        &self,
        node: NodeId,
        peer: &Peer,
        reader: impl AsyncRead + Unpin,
        is_quic: bool,
    ) {
        let mut inbox = Inbox::new(reader);
        loop {
            let filled = if is_quic {
                inbox.fill().await
            } else {
                match timeout(IDLE_MAX, inbox.fill()).await {
                    Ok(filled) => filled,
                    // The connection is dead: nothing that waits can be sent.
                    Err(_) => return,
                }
            };
            if !filled.unwrap_or_default() {
                return;
            }
            while let Some(record) = inbox.next() {
                match record {
                    Record::Frame(frame) => self.inbound.frame(node, frame),
                    Record::Alive => {}
                    Record::Close(why) => {
                        if !why.is_empty() {
                            self.refused(&peer.from, &format!("it has closed the link: {why}"));
                        }
                        return;
                    }
                }
            }
        }
    }

    async fn receive_datagrams(&self, node: NodeId, connection: Option<&Connection>) {
        let Some(connection) = connection else { return pending().await };
        let mut assembly = Assembly::default();
        while let Ok(datagram) = connection.read_datagram().await {
            if let Some(frame) = assembly.take(datagram) {
                self.inbound.frame(node, frame);
            }
        }
    }

    /// Adds a peer; returns false if there are too many.
    fn admit(&self, node: NodeId, peer: &Arc<Peer>) -> bool {
        {
            let mut served = lock(&self.served);
            served.retain(|(_, it)| it.strong_count() > 0);
            if served.len() >= PEERS_MAX {
                return false;
            }
            served.push((node, Arc::downgrade(peer)));
        }
        let mut peers = lock(&self.peers);
        let has_room = peers.len() < PEERS_MAX || peers.contains_key(&node);
        if has_room {
            peers.insert(node, peer.clone());
        }
        has_room
    }

    fn dismiss(&self, node: NodeId, peer: &Arc<Peer>) {
        let mut peers = lock(&self.peers);
        // A newer connection of the same peer stays.
        if peers.get(&node).is_some_and(|it| Arc::ptr_eq(it, peer)) {
            peers.remove(&node);
            // An older one takes its place.
            let served = lock(&self.served);
            let others = served.iter().filter(|(of, _)| *of == node);
            let mut others = others.filter_map(|(_, it)| it.upgrade());
            if let Some(other) = others.find(|it| !Arc::ptr_eq(it, peer) && !it.outbox.is_closed())
            {
                peers.insert(node, other);
            }
        }
    }

    /// Reads the node's files again, and closes connections to peers that are no members any more.
    pub(super) async fn renew(self: Arc<Self>, identity: Arc<Identity>) {
        let mut told = None;
        loop {
            sleep(RENEW_EVERY).await;
            let failed = identity.reload().err();
            if failed != told {
                if let Some(why) = &failed {
                    tracing::warn!("link '{}': {why}; the previous files stay in force", self.link);
                }
                told = failed;
            }
            let peers: Vec<_> =
                lock(&self.served).iter().filter_map(|(_, it)| it.upgrade()).collect();
            for peer in peers {
                let why = peer.proof.as_ref().and_then(|chain| identity.rejects(chain));
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
