//! Round trips: one process publishes, the other publishes each sample back.

use super::engine::{Sample, Session};
use super::{send, wait_for_go, wait_for_stop};
use crate::bench::clock;
use crate::bench::protocol::{Message, Place, Want};
use anyhow::{Context as _, Result};
use bytes::Bytes;
use std::sync::mpsc;
use std::time::Duration;

const PING: &str = "bench/ping";
const PONG: &str = "bench/pong";
const BYTES: usize = 64;
/// The longest wait for a reply.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn ping(place: &Place, warm_up: u32, count: u32) -> Result<()> {
    let session = Session::open(place)?;
    let (sender, receiver) = mpsc::sync_channel(16);
    let want = Want { tag: PONG.to_owned(), ..Want::default() };
    let subscription = session.subscribe(&want, move |_: Sample| {
        let _ = sender.try_send(());
    })?;
    let mut publisher = session.plain_publisher(PING, true)?;
    send(&Message::Ready);
    wait_for_go()?;
    let payload = Bytes::from(vec![7; BYTES]);
    // Until discovery is complete in both directions, samples are lost.
    let deadline = clock::now() + 10_000_000_000;
    while clock::now() < deadline {
        publisher.put(payload.clone())?;
        if receiver.recv_timeout(Duration::from_millis(200)).is_ok() {
            break;
        }
    }
    std::thread::sleep(Duration::from_millis(200));
    while receiver.try_recv().is_ok() {}
    let mut nanos = Vec::new();
    for turn in 0..warm_up + count {
        let start = clock::now();
        publisher.put(payload.clone())?;
        receiver.recv_timeout(PATIENCE).with_context(|| format!("round trip {turn}: no answer"))?;
        if turn >= warm_up {
            nanos.push(clock::now() - start);
        }
    }
    send(&Message::RoundTrips { nanos });
    wait_for_stop();
    drop((subscription, publisher));
    session.close();
    Ok(())
}

pub(super) fn pong(place: &Place) -> Result<()> {
    let session = Session::open(place)?;
    let mut publisher = session.plain_publisher(PONG, true)?;
    let want = Want { tag: PING.to_owned(), ..Want::default() };
    let answer = move |sample: Sample| drop(publisher.put(sample.into_payload()));
    let subscription = session.subscribe(&want, answer)?;
    send(&Message::Ready);
    wait_for_go()?;
    wait_for_stop();
    drop(subscription);
    session.close();
    Ok(())
}
