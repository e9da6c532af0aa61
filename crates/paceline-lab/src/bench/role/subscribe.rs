//! Subscriptions that record the arrival time of each sample.

use super::engine::{Sample, Session, Subscription};
use super::publish::TRAILER;
use super::{send, wait_for_go, wait_for_stop};
use crate::bench::clock;
use crate::bench::protocol::{Arrival, Message, Place, Want};
use anyhow::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The interval between checks for refusals.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The record of one subscription.
#[derive(Default)]
struct Log {
    arrivals: Vec<Arrival>,
    /// Samples whose content differs from the published one.
    wrong: u64,
}

pub(super) fn run(place: &Place, wants: &[Want]) -> Result<()> {
    let session = Session::open(place)?;
    let mut logs = Vec::new();
    let mut subscriptions = Vec::new();
    for (index, want) in wants.iter().enumerate() {
        let log = Arc::new(Mutex::new(Log::default()));
        logs.push(Arc::clone(&log));
        let deliver = move |sample: Sample| {
            let at = clock::now();
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            if log.arrivals.is_empty() {
                send(&Message::First { want: index });
            }
            log.note(at, &sample);
        };
        subscriptions.push(session.subscribe(want, deliver)?);
    }
    send(&Message::Ready);
    wait_for_go()?;
    let over = AtomicBool::new(false);
    let refusals = thread::scope(|scope| {
        let watcher = scope.spawn(|| refusals(&subscriptions, &over));
        wait_for_stop();
        over.store(true, Ordering::Relaxed);
        watcher.join().unwrap_or_default()
    });
    drop(subscriptions);
    let (mut arrivals, mut wrong) = (Vec::new(), 0);
    for log in logs {
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        arrivals.push(std::mem::take(&mut log.arrivals));
        wrong += log.wrong;
    }
    send(&Message::Received { arrivals, wrong, refusals });
    session.close();
    Ok(())
}

/// Passes refusals to the parent as they arrive; returns all of them as text once `over` is set.
fn refusals(subscriptions: &[Subscription], over: &AtomicBool) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let last = over.load(Ordering::Relaxed);
        for (want, subscription) in subscriptions.iter().enumerate() {
            for refusal in subscription.refusals() {
                send(&Message::Refused { want, bytes: refusal.offer.bytes });
                all.push(refusal.to_string());
            }
        }
        if last {
            return all;
        }
        thread::sleep(LOOK_EVERY);
    }
}

impl Log {
    fn note(&mut self, at: u64, sample: &Sample) {
        let payload = sample.payload();
        let trailer = payload.last_chunk::<TRAILER>().map(|bytes| u64::from_le_bytes(*bytes));
        let picture = payload.starts_with(&[0xFF, 0xD8]);
        let size = match picture {
            true => paceline_media::jpeg::dimensions(&payload).ok(),
            false => None,
        };
        // A scaled picture was encoded again, so its last bytes are not the sequence number.
        let wrong = match picture {
            true => size.is_none(),
            false => sample.seq().is_some_and(|seq| trailer != Some(seq)),
        };
        self.wrong += u64::from(wrong);
        let Some(seq) = sample.seq().or(trailer) else { return };
        let bytes = u64::try_from(payload.len()).unwrap_or(u64::MAX);
        let size = size.map(|size| (size.width, size.height));
        self.arrivals.push(Arrival { seq, at, bytes, size });
    }
}
