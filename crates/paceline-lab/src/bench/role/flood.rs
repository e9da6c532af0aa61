//! Throughput: one process publishes as fast as the engine accepts samples, another counts them.

use super::engine::{Sample, Session};
use super::{send, wait_for_go, wait_for_stop};
use crate::bench::clock;
use crate::bench::protocol::{Message, Place, Want};
use anyhow::{Result, anyhow};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const TAG: &str = "bench/flood";

pub(super) fn flood(place: &Place, bytes: usize) -> Result<()> {
    let session = Session::open(place)?;
    let mut publisher = session.plain_publisher(TAG, false)?;
    send(&Message::Ready);
    wait_for_go()?;
    let stop = AtomicBool::new(false);
    let payload = Bytes::from(vec![7; bytes]);
    thread::scope(|scope| {
        let pump = scope.spawn(|| -> Result<()> {
            while !stop.load(Ordering::Relaxed) {
                publisher.put_blocking(payload.clone())?;
            }
            Ok(())
        });
        send(&Message::Started);
        wait_for_stop();
        stop.store(true, Ordering::Relaxed);
        pump.join().unwrap_or_else(|_| Err(anyhow!("the publishing thread panicked")))
    })?;
    drop(publisher);
    session.close();
    Ok(())
}

pub(super) fn sink(place: &Place) -> Result<()> {
    let session = Session::open(place)?;
    let counter = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&counter);
    let want = Want { tag: TAG.to_owned(), ..Want::default() };
    let count = move |_: Sample| {
        if counted.fetch_add(1, Ordering::Relaxed) == 0 {
            send(&Message::First { want: 0 });
        }
    };
    let subscription = session.subscribe(&want, count)?;
    send(&Message::Ready);
    wait_for_go()?;
    let (start, before) = (clock::now(), counter.load(Ordering::Relaxed));
    send(&Message::Started);
    wait_for_stop();
    let (end, after) = (clock::now(), counter.load(Ordering::Relaxed));
    send(&Message::Counted { samples: after - before, nanos: end - start });
    drop(subscription);
    session.close();
    Ok(())
}
