//! Round trips at a rate, with or without contracts, next to another stream and busy threads.

use super::ping::await_path;
use super::{send, wait_for_go, wait_for_stop};
use crate::bench::clock;
use crate::bench::protocol::{Message, Paced};
use anyhow::{Context as _, Result};
use bytes::Bytes;
use paceline::{Node, Publisher, Sample, SubscriberBuilder, Subscription};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

const PING: &str = "paced/ping";
const PONG: &str = "paced/pong";
/// Time for the path to take its final form after the first answer.
const SETTLE: Duration = Duration::from_millis(500);
/// The longest wait for contracts.
const PATIENCE: Duration = Duration::from_secs(10);
/// Answers after this time count as lost.
const SILENCE: Duration = Duration::from_secs(3);

/// Publishes `count` samples at the rate, and sends the time to each echo. The times of lost ones are missing.
pub(super) fn ping(node: &Node, bytes: usize, count: u32, paced: &Paced) -> Result<()> {
    let (sender, receiver) = mpsc::channel();
    let builder = node.subscriber(PONG);
    let builder = match paced.within_ms {
        Some(within) => builder.within(Duration::from_millis(within)),
        None => builder,
    };
    // The instant of the arrival in the node's thread, so that the wait for this program's own thread does not count.
    let answered = move |sample: Sample| {
        let number = sample.payload.first_chunk().map_or(u64::MAX, |of| u64::from_be_bytes(*of));
        let _ = sender.send((number, clock::now()));
    };
    let _answers = builder.callback(answered)?;
    let mut publisher = declare(node, PING, bytes, paced)?;
    send(&Message::Ready);
    wait_for_go()?;
    let (first, path) = mpsc::sync_channel(16);
    let mut put = || {
        publisher.put(payload(bytes, u64::MAX))?;
        if receiver.recv_timeout(Duration::from_millis(100)).is_ok() {
            let _ = first.try_send(());
        }
        Ok(())
    };
    await_path(&path, SETTLE, &mut put)?;
    await_contract(&publisher, paced)?;
    send(&Message::Started);
    let is_over = AtomicBool::new(false);
    let nanos = std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..if paced.is_busy { cores } else { 0 } {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let flood = scope.spawn(|| flood(node, "ping", paced, &is_over));
        let nanos = round_trips((&mut publisher, bytes), count, paced, &receiver);
        is_over.store(true, Ordering::Relaxed);
        flood.join().ok().context("the thread of the other stream panicked")??;
        nanos
    })?;
    send(&Message::RoundTrips { nanos });
    wait_for_stop();
    Ok(())
}

/// Publishes each received sample again.
pub(super) fn pong(node: &Node, bytes: usize, proxy: Option<&str>, paced: &Paced) -> Result<()> {
    let mut publisher = declare(node, PONG, bytes, paced)?;
    let mut builder = node.subscriber(PING);
    if let Some(proxy) = proxy {
        builder = placed(builder, proxy)?;
    }
    if let Some(within) = paced.within_ms {
        builder = builder.within(Duration::from_millis(within));
    }
    let _pings = builder.callback(move |sample: Sample| drop(publisher.put(sample.payload)))?;
    let _other = drain(node, "ping", paced)?;
    send(&Message::Ready);
    wait_for_go()?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let flood = scope.spawn(|| flood(node, "pong", paced, &is_over));
        wait_for_stop();
        is_over.store(true, Ordering::Relaxed);
        flood.join().ok().context("the thread of the other stream panicked")?
    })
}

/// Sets the place of the proxy.
pub(super) fn placed<'a>(
    builder: SubscriberBuilder<'a>,
    proxy: &str,
) -> Result<SubscriberBuilder<'a>> {
    let proxy = proxy.parse().with_context(|| format!("proxy {proxy}"))?;
    Ok(builder.proxy(proxy))
}

fn declare(node: &Node, tag: &str, bytes: usize, paced: &Paced) -> Result<Publisher> {
    let builder = node.publisher(tag).hz(paced.hz).bytes_max(u64::try_from(bytes)?);
    Ok(builder.declare()?)
}

fn payload(bytes: usize, number: u64) -> Bytes {
    let mut payload = vec![7; bytes.max(8)];
    payload.splice(..8, number.to_be_bytes());
    payload.into()
}

/// Waits until the subscription at the other end has its contract.
fn await_contract(publisher: &Publisher, paced: &Paced) -> Result<()> {
    if paced.within_ms.is_none() {
        return Ok(());
    }
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let feedback = publisher.feedback(Duration::from_millis(500));
        if feedback.iter().any(|it| it.grant.is_some()) {
            return Ok(());
        }
    }
    anyhow::bail!("no contract within {PATIENCE:?}: {:?}", publisher.feedback(PATIENCE))
}

fn round_trips(
    (publisher, bytes): (&mut Publisher, usize),
    count: u32,
    paced: &Paced,
    answers: &Receiver<(u64, u64)>,
) -> Result<Vec<u64>> {
    while answers.try_recv().is_ok() {}
    let period = Duration::from_secs_f64(1.0 / paced.hz);
    let (mut next, mut sent) = (Instant::now(), Vec::new());
    for number in 0..u64::from(count) {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        // A late sample does not shorten the next period, so the declared rate is never exceeded.
        next = next.max(Instant::now()) + period;
        sent.push(clock::now());
        publisher.put(payload(bytes, number))?;
    }
    let mut nanos = Vec::new();
    while nanos.len() < sent.len() {
        let Ok((number, at)) = answers.recv_timeout(SILENCE) else { break };
        let began = usize::try_from(number).ok().and_then(|number| sent.get(number));
        nanos.extend(began.map(|began| at.saturating_sub(*began)));
    }
    Ok(nanos)
}

/// Publishes the other stream of one end, if there is one.
fn flood(node: &Node, end: &str, paced: &Paced, is_over: &AtomicBool) -> Result<()> {
    let Some((hz, bytes)) = paced.flood else { return Ok(()) };
    let other = if end == "ping" { "pong" } else { "ping" };
    let _received = if end == "ping" { drain(node, other, paced)? } else { None };
    let mut publisher = node.publisher(&format!("paced/flood/{end}")).declare()?;
    let payload = Bytes::from(vec![7; bytes]);
    let (period, mut next) = (Duration::from_secs_f64(1.0 / hz), Instant::now());
    while !is_over.load(Ordering::Relaxed) {
        publisher.put(payload.clone())?;
        next += period;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// Subscribes to the other stream of the other end, if there is one.
fn drain(node: &Node, end: &str, paced: &Paced) -> Result<Option<Subscription>> {
    let subscribe = |_| node.subscriber(&format!("paced/flood/{end}")).callback(drop::<Sample>);
    Ok(paced.flood.map(subscribe).transpose()?)
}
