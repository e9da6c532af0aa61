//! One publisher and many subscribers in one process.

use super::{send, wait_for_go};
use crate::bench::clock;
use crate::bench::machine::{cpu_seconds, resident_bytes};
use crate::bench::protocol::Message;
use anyhow::{Context as _, Result};
use paceline::{Node, Subscriber, Subscription};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TAG: &str = "meeting/voice";
const PAYLOAD: [u8; 252] = [7; 252];
const PERIOD: u64 = 30_000_000;
const HZ: f64 = 1_000.0 / 30.0;
/// The number of samples before the measurement, so that all buffers have reached their size.
const WARM_UP: u64 = 33;

/// The subscribers, by type of delivery.
enum Subscribers {
    Callbacks { _subscriptions: Vec<Subscription> },
    Queues { reader: std::thread::JoinHandle<Vec<Subscriber>> },
}

pub(super) fn run(subscriptions: u32, seconds: u32, queues: bool) -> Result<()> {
    let node = Node::builder().isolated().open().context("node")?;
    let mut publisher = node.publisher(TAG).hz(HZ).declare()?;
    publisher.put(&PAYLOAD[..])?;
    send(&Message::Ready);
    wait_for_go()?;
    let before = resident_bytes()?;
    let delivered = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let subscribers = subscribe(&node, subscriptions, queues, &delivered, &stop)?;
    let start = clock::now();
    for tick in 0..WARM_UP {
        clock::sleep_until(start + tick * PERIOD);
        publisher.put(&PAYLOAD[..])?;
    }
    std::thread::sleep(Duration::from_millis(200));
    let bytes_each = (resident_bytes()? - before) / f64::from(subscriptions);
    let warm = delivered.load(Ordering::Relaxed);
    let (cpu, since) = (cpu_seconds(std::process::id())?, Instant::now());
    let (start, samples) = (clock::now(), u64::from(seconds) * 1_000_000_000 / PERIOD);
    for tick in 0..samples {
        clock::sleep_until(start + tick * PERIOD);
        publisher.put(&PAYLOAD[..])?;
    }
    std::thread::sleep(Duration::from_millis(200));
    let used = cpu_seconds(std::process::id())? - cpu;
    let cpu_percent = 100.0 * used / since.elapsed().as_secs_f64();
    let delivered = delivered.load(Ordering::Relaxed) - warm;
    send(&Message::Fanout { cpu_percent, bytes_each, delivered, published: samples });
    stop.store(true, Ordering::Relaxed);
    if let Subscribers::Queues { reader } = subscribers {
        drop(reader.join());
    }
    node.close();
    Ok(())
}

fn subscribe(
    node: &Node,
    subscriptions: u32,
    queues: bool,
    delivered: &Arc<AtomicU64>,
    stop: &Arc<AtomicBool>,
) -> Result<Subscribers> {
    if !queues {
        let mut declared = Vec::new();
        for _ in 0..subscriptions {
            let delivered = delivered.clone();
            declared.push(node.subscriber(TAG).callback(move |_| {
                delivered.fetch_add(1, Ordering::Relaxed);
            })?);
        }
        return Ok(Subscribers::Callbacks { _subscriptions: declared });
    }
    let mut subscribers = Vec::new();
    for _ in 0..subscriptions {
        subscribers.push(node.subscriber(TAG).declare()?);
    }
    let (delivered, stop) = (delivered.clone(), stop.clone());
    let reader = std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            // Like a program that polls once per tick.
            std::thread::sleep(Duration::from_millis(15));
            for subscriber in &mut subscribers {
                while subscriber.try_recv().is_some() {
                    delivered.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        subscribers
    });
    Ok(Subscribers::Queues { reader })
}
