//! Round trips: one process publishes, the other publishes each sample back.

use super::engine::{Sample, Session};
use super::{send, wait_for_go, wait_for_stop};
use crate::bench::clock;
use crate::bench::protocol::{Message, Place, Want};
use anyhow::{Context as _, Result};
use bytes::Bytes;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

const PING: &str = "bench/ping";
const PONG: &str = "bench/pong";
const BYTES: usize = 64;
/// The longest wait for an answer, and for the path.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time for both directions to take their final form after the first answer.
const SETTLE: Duration = Duration::from_millis(200);

/// Publishes until the first answer, and waits for `settle` afterwards. Samples are lost until discovery is complete in
/// both directions.
pub(super) fn await_path(
    answers: &Receiver<()>,
    settle: Duration,
    put: &mut impl FnMut() -> Result<()>,
) -> Result<()> {
    let deadline = clock::now() + u64::try_from(PATIENCE.as_nanos())?;
    while clock::now() < deadline {
        put()?;
        if answers.recv_timeout(Duration::from_millis(200)).is_ok() {
            break;
        }
    }
    std::thread::sleep(settle);
    while answers.try_recv().is_ok() {}
    Ok(())
}

/// Returns the times from a sample to its answer in nanoseconds, without those of the warm-up.
pub(super) fn round_trips(
    (warm_up, count): (u32, u32),
    answers: &Receiver<()>,
    put: &mut impl FnMut() -> Result<()>,
) -> Result<Vec<u64>> {
    let mut nanos = Vec::new();
    for turn in 0..warm_up + count {
        let start = clock::now();
        put()?;
        answers.recv_timeout(PATIENCE).with_context(|| format!("round trip {turn}: no answer"))?;
        if turn >= warm_up {
            nanos.push(clock::now() - start);
        }
    }
    Ok(nanos)
}

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
    let mut put = || publisher.put(payload.clone());
    await_path(&receiver, SETTLE, &mut put)?;
    let nanos = round_trips((warm_up, count), &receiver, &mut put)?;
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
