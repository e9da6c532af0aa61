//! The attacks of the hostile member, in a process of its own that leaves by its end.

use crate::carrier::{Carrier, Dialler, Place};
use crate::introductions::introductions;
use crate::questions;
use crate::records;
use crate::session::{CHANGES, EXCESS, FOREIGN, Session, note_sample};
use paceline::{LinkConfig, Node};
use paceline_fuzz::speaker::{PIECE_BYTES, SamplePiece};
use paceline_proto::control::PublisherSpec;
use paceline_proto::{PublisherId, Tag};
use paceline_sched::Instant as Now;
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;

pub(crate) const ATTACK: &str = "PACELINE_TEST_MEMBER_ATTACK";
pub(crate) const ENDPOINT: &str = "PACELINE_TEST_MEMBER_ENDPOINT";
pub(crate) const CARRIER: &str = "PACELINE_TEST_MEMBER_CARRIER";
pub(crate) const DIR: &str = "PACELINE_TEST_MEMBER_DIR";
pub(crate) const SECONDS: &str = "PACELINE_TEST_MEMBER_SECONDS";
pub(crate) const LONG: &str = "PACELINE_TEST_MEMBER_LONG";

/// The attacks, by their names. The last ones use up what the member may do at all, so its rights are tested before them.
pub(crate) const ATTACKS: [&str; 8] = [
    "questions",
    "fast-publisher",
    "one-certificate",
    "unfinished",
    "introductions",
    "subscriptions",
    "announcements",
    "announcements-15",
];

/// The means of an attack.
#[derive(Clone)]
pub(crate) struct Means {
    pub(crate) place: Place,
    pub(crate) dialler: Dialler,
    pub(crate) until: Instant,
    /// True for the sizes of the long form.
    pub(crate) long: bool,
}

impl Means {
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Opens an ordinary node of the member.
    pub(crate) fn node(&self) -> Node {
        let link = match self.place.carrier.is_certified() {
            true => self.place.link(crate::carrier::MEMBER),
            false => LinkConfig::new("radio"),
        };
        let link = link.capacity_bits_per_s(50_000_000).connect(&self.place.endpoint);
        Node::builder().name(crate::carrier::MEMBER).isolated().link(link).open().unwrap()
    }
}

/// The longest time that the member waits for answers after its attack.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// The process of the member.
#[test]
#[ignore = "a process of the other tests"]
fn a_member_for_the_other_tests() {
    let words = [ATTACK, ENDPOINT, CARRIER, DIR, SECONDS].map(std::env::var);
    let [Ok(attack), Ok(endpoint), Ok(carrier), Ok(dir), Ok(seconds)] = words else { return };
    let place = Place { carrier: Carrier::of_name(&carrier), endpoint, dir: dir.into() };
    let until = Instant::now() + Duration::from_secs_f64(seconds.parse().unwrap());
    let long = std::env::var(LONG).is_ok();
    let means = Means { dialler: Dialler::new(&place), place, until, long };
    // An attack may wait for answers that never arrive, and has taken place all the same.
    std::thread::spawn(move || {
        std::thread::sleep(until.saturating_duration_since(Instant::now()) + WAIT_MAX);
        end("some of its requests were not answered");
    });
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.worker_threads(2).enable_all().build().unwrap();
    let did = match attack.as_str() {
        "questions" => runtime.block_on(questions::ask(means)),
        "unfinished" => runtime.block_on(unfinished(means)),
        "introductions" => runtime.block_on(introductions(means, 300)),
        "introductions-1000" => runtime.block_on(introductions(means, 1_000)),
        "subscriptions" => runtime.block_on(records::subscriptions(means)),
        "announcements" => runtime.block_on(records::announcements(means, 1)),
        "announcements-15" => runtime.block_on(records::announcements(means, 15)),
        "fast-publisher" => fast_publisher(&means),
        "one-certificate" => one_certificate(&means),
        other => panic!("unknown attack {other}"),
    };
    end(&did);
}

/// Reports what the member got, and ends it. The end of the process is the end of its connections.
fn end(did: &str) -> ! {
    let [foreign, changes, excess] =
        [&FOREIGN, &CHANGES, &EXCESS].map(|it| it.load(Ordering::Relaxed));
    println!("member {foreign} {changes} {excess} {did}");
    std::process::exit(0);
}

/// Leaves large samples unfinished, over several connections, and connects again.
async fn unfinished(means: Means) -> String {
    let each = if means.long { 128 << 20 } else { 24 << 20 };
    let rounds = if means.long { 7 } else { 3 };
    let begun = Instant::now();
    let time = means.until - begun;
    let mut sent = 0;
    for round in 0..rounds {
        let until = begun + time * (round + 1) / rounds;
        let mut tasks = JoinSet::new();
        for connection in 0..4 {
            let dialler = means.dialler.clone();
            tasks.spawn(async move { leave_unfinished(&dialler, connection, each, until).await });
        }
        while let Some(bytes) = tasks.join_next().await {
            sent += bytes.unwrap().unwrap_or_default();
        }
    }
    format!("sent {} MB in {rounds} rounds of 4 connections", sent / 1_000_000)
}

async fn leave_unfinished(
    dialler: &Dialler,
    number: u64,
    total: usize,
    until: Instant,
) -> io::Result<usize> {
    let mut session = Session::join(dialler, number).await?;
    let spec = PublisherSpec::new(Tag::new(&format!("own/{number}")).unwrap());
    let publisher = session.control.publish(Now::from_millis(1), spec);
    session.turn(Duration::from_millis(100)).await?;
    let open = session.speaker.open(0, publisher);
    session.send(&open).await?;
    let mut offset = 0;
    while offset + PIECE_BYTES < total && Instant::now() < until {
        let piece = SamplePiece { stream: 0, number: 0, total, offset, bytes: PIECE_BYTES };
        let frame = session.speaker.piece(piece);
        if session.send(&frame).await.is_err() {
            return Ok(offset);
        }
        offset += PIECE_BYTES;
        if offset.is_multiple_of(20 * PIECE_BYTES) {
            session.turn(Duration::from_millis(1)).await?;
        }
    }
    while Instant::now() < until {
        session.turn(Duration::from_millis(50)).await?;
    }
    Ok(offset)
}

/// Publishes far faster than it declares.
fn fast_publisher(means: &Means) -> String {
    let node = means.node();
    let mut publisher = node.publisher("own/fast").hz(10.0).bytes_max(100).declare().unwrap();
    assert!(publisher.wait_matching(Duration::from_secs(10)));
    let (begun, mut sent) = (Instant::now(), 0_u32);
    // Also if it was opened late.
    let until = means.until.max(begun + Duration::from_secs(1));
    while Instant::now() < until {
        let due = begun + Duration::from_nanos(1_000_000_000 / 1_733) * sent;
        if due > Instant::now() {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        publisher.put(vec![b'h'; 60]).unwrap();
        sent += 1;
    }
    format!("sent {sent} samples in {:.1?}", begun.elapsed())
}

/// Opens eight nodes with one certificate, each of which uses the quota of two streams.
fn one_certificate(means: &Means) -> String {
    let nodes: Vec<_> = (0..8).map(|_| means.node()).collect();
    let subscribe =
        |node: &Node| ["pub/a", "pub/b"].map(|tag| node.subscriber(tag).declare().unwrap());
    let mut all: Vec<_> = nodes.iter().flat_map(subscribe).enumerate().collect();
    let (begun, mut streams, mut samples) = (Instant::now(), BTreeSet::new(), 0_u64);
    while !means.is_over() {
        for (number, subscriber) in &mut all {
            while let Some(sample) = subscriber.try_recv() {
                note_sample(&sample.payload);
                streams.insert(*number);
                samples += 1;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // Two streams of at most 10 Hz are granted, and they work. Another node may take over the place of one that leaves.
    let most = 20 * begun.elapsed().as_secs() + 40;
    let beyond = if samples == 0 { 1 } else { samples.saturating_sub(most) };
    CHANGES.fetch_add(beyond, Ordering::Relaxed);
    format!("{samples} samples of {} streams of eight nodes; two are granted", streams.len())
}

/// Sends whole samples on a stream, as a publisher.
pub(crate) async fn forge(
    session: &mut Session,
    stream: u32,
    publisher: PublisherId,
) -> io::Result<()> {
    let open = session.speaker.open(stream, publisher);
    session.send(&open).await?;
    for number in 0..10 {
        let piece = SamplePiece { stream, number, total: 60, offset: 0, bytes: 60 };
        let frame = session.speaker.piece(piece);
        session.send(&frame).await?;
    }
    sleep(Duration::from_millis(1)).await;
    Ok(())
}
