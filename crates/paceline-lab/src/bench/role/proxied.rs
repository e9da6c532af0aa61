//! A node on a path with a proxy: it relays, echoes, publishes or subscribes.

use super::paced::placed;
use super::ping::{await_path, round_trips};
use super::{send, wait_for_go, wait_for_stop};
use crate::bench::protocol::{Message, Proxied, ProxiedTask};
use anyhow::{Result, anyhow};
use paceline::{Node, Sample};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const PING: &str = "proxied/ping";
const PONG: &str = "proxied/pong";
const STREAM: &str = "proxied/stream";
/// The longest wait for multicast groups.
const GROUPING: Duration = Duration::from_secs(40);
/// Time for the path to take its final form after the first answer.
const SETTLE: Duration = Duration::from_millis(500);

pub(super) fn run(task: &Proxied) -> Result<()> {
    let mut builder = Node::builder().name(&task.name).realtime(task.is_realtime);
    if task.isolated {
        builder = builder.isolated();
    }
    if let Some(policy) = &task.access {
        builder = builder.policy(policy);
    }
    for link in &task.links {
        builder = builder.link(super::scene::config(link)?);
    }
    let node = builder.open()?;
    match &task.task {
        ProxiedTask::Relay => {
            send(&Message::Ready);
            wait_for_go()?;
            wait_for_stop();
        }
        ProxiedTask::Ping { bytes, warm_up, count } => ping(&node, *bytes, *warm_up, *count)?,
        ProxiedTask::Pong { proxy } => pong(&node, proxy.as_deref())?,
        ProxiedTask::Publish { hz, bytes } => publish(&node, *hz, *bytes)?,
        ProxiedTask::PacedPing { bytes, count, paced } => {
            super::paced::ping(&node, *bytes, *count, paced)?;
        }
        ProxiedTask::PacedPong { bytes, proxy, paced } => {
            super::paced::pong(&node, *bytes, proxy.as_deref(), paced)?;
        }
        ProxiedTask::Subscribe { every, proxy, within_ms, grouped } => {
            let within = within_ms.map(Duration::from_millis);
            subscribe(&node, *every, proxy, (within, *grouped))?;
        }
    }
    node.close();
    Ok(())
}

fn ping(node: &Node, bytes: usize, warm_up: u32, count: u32) -> Result<()> {
    let (sender, receiver) = mpsc::sync_channel(16);
    let answered = move |_: Sample| _ = sender.try_send(());
    let _answers = node.subscriber(PONG).callback(answered)?;
    let mut publisher = node.publisher(PING).declare()?;
    send(&Message::Ready);
    wait_for_go()?;
    let payload = bytes::Bytes::from(vec![7; bytes]);
    let mut put = || Ok(publisher.put(payload.clone()).map(drop)?);
    await_path(&receiver, SETTLE, &mut put)?;
    send(&Message::Started);
    let nanos = round_trips((warm_up, count), &receiver, &mut put)?;
    send(&Message::RoundTrips { nanos });
    wait_for_stop();
    Ok(())
}

fn pong(node: &Node, proxy: Option<&str>) -> Result<()> {
    let mut publisher = node.publisher(PONG).declare()?;
    let builder = node.subscriber(PING);
    let builder = match proxy {
        Some(proxy) => placed(builder, proxy)?,
        None => builder,
    };
    let _pings = builder.callback(move |sample: Sample| drop(publisher.put(sample.payload)))?;
    send(&Message::Ready);
    wait_for_go()?;
    wait_for_stop();
    Ok(())
}

fn publish(node: &Node, hz: f64, bytes: usize) -> Result<()> {
    let largest = u64::try_from(bytes)?;
    let mut publisher = node.publisher(STREAM).hz(hz).bytes_max(largest).declare()?;
    send(&Message::Ready);
    wait_for_go()?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let published = scope.spawn(|| {
            let payload = bytes::Bytes::from(vec![7; bytes]);
            let period = Duration::from_secs_f64(1.0 / hz);
            let mut next = std::time::Instant::now();
            while !is_over.load(Ordering::Relaxed) {
                publisher.put(payload.clone())?;
                next += period;
                std::thread::sleep(next.saturating_duration_since(std::time::Instant::now()));
            }
            anyhow::Ok(())
        });
        wait_for_stop();
        is_over.store(true, Ordering::Relaxed);
        published.join().unwrap_or_else(|_| Err(anyhow!("the publishing thread panicked")))
    })?;
    send(&Message::Done);
    Ok(())
}

/// Counts samples and their ages from `go` to `stop`.
fn subscribe(
    node: &Node,
    every: u32,
    proxy: &str,
    (within, grouped): (Option<Duration>, usize),
) -> Result<()> {
    let (samples, ages) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let builder = placed(node.subscriber(STREAM).every(every), proxy)?;
    let builder = match within {
        Some(within) => builder.within(within),
        None => builder,
    };
    let (counted, summed) = (samples.clone(), ages.clone());
    let _stream = builder.callback(move |sample: Sample| {
        counted.fetch_add(1, Ordering::Relaxed);
        let age = u64::try_from(sample.age.as_nanos()).unwrap_or(u64::MAX);
        summed.fetch_add(age, Ordering::Relaxed);
    })?;
    send(&Message::Ready);
    wait_for_go()?;
    // The publisher begins at the same time, and its path takes its final form.
    std::thread::sleep(2 * SETTLE);
    await_groups(node, grouped)?;
    samples.store(0, Ordering::Relaxed);
    ages.store(0, Ordering::Relaxed);
    let before = sent(node);
    send(&Message::Started);
    wait_for_stop();
    let links =
        sent(node).into_iter().zip(before).map(|(now, then)| now.saturating_sub(then)).collect();
    let (samples, age_ns) = (samples.load(Ordering::Relaxed), ages.load(Ordering::Relaxed));
    send(&Message::Proxied { samples, age_ns, links });
    Ok(())
}

/// Waits until multicast groups carry this number of streams over the links of all nodes.
fn await_groups(node: &Node, grouped: usize) -> Result<()> {
    let deadline = std::time::Instant::now() + GROUPING;
    let mut found = 0;
    while found < grouped {
        anyhow::ensure!(
            std::time::Instant::now() < deadline,
            "{found} of {grouped} streams are in multicast groups after {GROUPING:?}"
        );
        let status = node.status(Duration::from_secs(1));
        let links = status.iter().flat_map(|node| &node.links);
        let streams = links.flat_map(|link| &link.streams);
        let of_tag = streams.filter(|stream| stream.tag.as_deref() == Some(STREAM));
        found = of_tag.filter(|stream| stream.group.is_some()).count();
        std::thread::sleep(SETTLE);
    }
    Ok(())
}

/// Returns the bytes of the stream's samples on all links of all nodes, ordered by node and link.
fn sent(node: &Node) -> Vec<u64> {
    let mut status = node.status(Duration::from_secs(2));
    status.sort_by(|a, b| a.name.cmp(&b.name));
    let links = status.iter().flat_map(|node| &node.links);
    links
        .map(|link| {
            let open: u64 = link.streams.iter().map(|stream| stream.counters.bytes).sum();
            open + link.closed.bytes
        })
        .collect()
}
