//! Attacks with records: many subscriptions, and a record that is announced all the time.

use crate::attacks::Means;
use crate::carrier::MEMBER;
use crate::session::Session;
use bytes::Bytes;
use paceline_proto::control::{Control, ControlOutput, HopInfo, SubscriptionSpec};
use paceline_proto::wire::{Reader, Writer};
use paceline_proto::{NodeId, Pattern};
use paceline_sched::Instant as Now;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The kind of the message that requests a record.
const NEED: u8 = 2;
/// The bytes before the version in the message with a record: its kind and its node.
const BEFORE: usize = 9;

/// A record as its node sends it: the parts before and after its version.
struct Template {
    head: Vec<u8>,
    tail: Bytes,
    version: u64,
}

impl Template {
    /// Returns the record of a node with so many subscriptions, and with these neighbours.
    fn of(node: (NodeId, &str), neighbours: &[NodeId], wanted: (usize, &str)) -> Self {
        let ((node, name), (subscriptions, pattern)) = (node, wanted);
        let now = Now::from_millis(1);
        let mut control = Control::new(node, name);
        for next in neighbours {
            let hop = HopInfo { own: true, ..HopInfo::new("link".to_owned(), None) };
            control.handle_hop_up(now, *next, hop);
        }
        let spec = SubscriptionSpec::all_of(Pattern::new(pattern).unwrap());
        for _ in 0..subscriptions {
            control.subscribe(now, spec.clone());
        }
        while control.poll_output().is_some() {}
        let mut need = vec![NEED];
        need.put_u64(node.0);
        let first = neighbours.first().copied().unwrap();
        control.handle_message(now, first, need.into()).unwrap();
        let mut longest = Bytes::new();
        while let Some(output) = control.poll_output() {
            if let ControlOutput::Send { message, .. } = output
                && message.len() > longest.len()
            {
                longest = message;
            }
        }
        let mut reader = Reader::new(longest.slice(BEFORE..));
        let version = reader.varint("version").unwrap();
        let tail = reader.bytes(reader.remaining(), "rest").unwrap();
        Self { head: longest[..BEFORE].to_vec(), tail, version }
    }

    /// Returns the record with the next version.
    fn next(&mut self) -> Vec<u8> {
        self.version += 1;
        let mut message = self.head.clone();
        message.put_varint(self.version);
        message.extend_from_slice(&self.tail);
        message
    }

    /// Makes it the record of another node.
    fn give_to(&mut self, node: NodeId) {
        let mut head = vec![self.head[0]];
        head.put_u64(node.0);
        self.head = head;
    }
}

/// Delivers 13 to 28 MiB of subscriptions, of itself and of processes of its host.
pub(crate) async fn subscriptions(means: Means) -> String {
    // Each about 450 KB.
    let processes = if means.long { 60 } else { 8 };
    match deliver(&means, processes).await {
        Ok(bytes) => format!("sent {:.1} MB of subscriptions", bytes as f64 / 1e6),
        Err((bytes, error)) => {
            format!("sent {:.1} MB of subscriptions, then {error}", bytes as f64 / 1e6)
        }
    }
}

async fn deliver(means: &Means, processes: u64) -> Result<usize, (usize, io::Error)> {
    let mut session = Session::join(&means.dialler, 0).await.map_err(|error| (0, error))?;
    let ids: Vec<_> = (0..processes).map(|number| NodeId(session.id.0 ^ (number + 1))).collect();
    let neighbours: Vec<_> = [session.victim].into_iter().chain(ids.clone()).collect();
    let mut own = Template::of((session.id, MEMBER), &neighbours, (20_000, "a"));
    own.version += 1_000;
    let mut process = Template::of((NodeId(1), "p"), &[session.id], (40_000, "pub/**"));
    let mut bytes = 0;
    let mut send = async |session: &mut Session, message: Vec<u8>| {
        bytes += message.len();
        session.say(&message).await.map_err(|error| (bytes, error))?;
        session.glance().await.map_err(|error| (bytes, error))
    };
    send(&mut session, own.next()).await?;
    for id in ids {
        process.give_to(id);
        let message = process.next();
        send(&mut session, message).await?;
    }
    while !means.is_over() {
        session.turn(Duration::from_millis(50)).await.map_err(|error| (bytes, error))?;
    }
    Ok(bytes)
}

/// Announces a record of 18 KB 900 times per second, by so many connections.
pub(crate) async fn announcements(means: Means, connections: u64) -> String {
    let sent = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for number in 0..connections {
        let (means, sent) = (means.clone(), sent.clone());
        tasks.spawn(async move { announce(&means, number, &sent).await });
    }
    let mut ended = None;
    while let Some(task) = tasks.join_next().await {
        ended = ended.or(task.unwrap().err());
    }
    let sent = sent.load(Ordering::Relaxed);
    let ended = ended.map(|error| format!(", then {error}")).unwrap_or_default();
    format!("sent {sent} records of 18 KB{ended}")
}

async fn announce(means: &Means, number: u64, count: &AtomicU64) -> io::Result<()> {
    let mut session = Session::join(&means.dialler, number).await?;
    let mut own = Template::of((session.id, MEMBER), &[session.victim], (1_500, "pub/abc"));
    own.version += 1_000;
    let (begun, mut sent) = (Instant::now(), 0_u32);
    while !means.is_over() {
        let due = begun + Duration::from_nanos(1_000_000_000 / 900) * sent;
        if due > Instant::now() {
            session.glance().await?;
            sleep(Duration::from_millis(1)).await;
            continue;
        }
        session.say(&own.next()).await?;
        sent += 1;
        count.fetch_add(1, Ordering::Relaxed);
        if sent.is_multiple_of(50) {
            session.turn(Duration::from_millis(1)).await?;
        }
    }
    Ok(())
}
