//! Connections that introduce themselves, show that they are alive, and say nothing else.

use crate::attacks::Means;
use crate::carrier::{CAPACITY, Raw};
use crate::session::{EXCESS, introduce};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The most that the node under attack may send to them in a second, in bits: greetings have 1 % of the capacity, and the
/// reasons for which connections are closed less than that.
const SHARE: u64 = CAPACITY / 50;
/// The time in which a connection may be introduced.
const PATIENCE: Duration = Duration::from_secs(30);
const SHOW_EVERY: Duration = Duration::from_millis(500);

/// What all connections count.
#[derive(Default)]
struct Totals {
    /// The connections that are introduced or have given up.
    begun: AtomicU64,
    introduced: AtomicU64,
    /// The bytes of the handshakes of TLS and of the introductions, and those after them.
    before: AtomicU64,
    after: AtomicU64,
    /// The bytes of all packets of QUIC after the introductions.
    quic: AtomicU64,
}

/// Opens so many connections. The rates count from the moment at which the last one is introduced.
pub(crate) async fn introductions(means: Means, count: u64) -> String {
    let totals = Arc::new(Totals::default());
    let mut tasks = JoinSet::new();
    for number in 0..count {
        tasks.spawn(stay(means.clone(), number, totals.clone()));
    }
    let rates = observe(&means, count, &totals).await;
    let mut open = 0;
    while let Some(task) = tasks.join_next().await {
        open += u64::from(matches!(task, Ok(Some(()))));
    }
    let total = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let most = |of: fn(&[u64; 2]) -> u64| rates.iter().map(of).max().unwrap_or_default();
    let (most, packets) = (most(|[after, _]| *after), most(|[_, quic]| *quic));
    // The short form is over before all are introduced; the long one measures.
    let unmeasured = u64::from(means.long && rates.is_empty());
    EXCESS.fetch_max(most.saturating_sub(SHARE).max(unmeasured), Ordering::Relaxed);
    format!(
        "{} of {count} connections introduced with {} bytes in total, {open} open at the end; at most {most} bit/s to them \
         in {} s, {last} in the last one, {packets} with all packets of QUIC",
        total(&totals.introduced),
        total(&totals.before),
        rates.len(),
        last = rates.last().map_or(0, |[after, _]| *after),
    )
}

/// Returns the bits that arrive in each second after the last introduction, and those of all packets of QUIC.
async fn observe(means: &Means, count: u64, totals: &Totals) -> Vec<[u64; 2]> {
    while totals.begun.load(Ordering::Relaxed) < count && !means.is_over() {
        sleep(Duration::from_millis(10)).await;
    }
    let read = || [&totals.after, &totals.quic].map(|bytes| bytes.load(Ordering::Relaxed));
    let (mut rates, mut since, mut before) = (Vec::new(), Instant::now(), read());
    while !means.is_over() {
        sleep(Duration::from_secs(1)).await;
        let (bytes, millis) = (read(), u64::try_from(since.elapsed().as_millis()).unwrap());
        rates.push([0, 1].map(|of| (bytes[of] - before[of]) * 8_000 / millis));
        (before, since) = (bytes, Instant::now());
    }
    rates
}

/// Introduces a connection and keeps it; returns `None` if it is closed.
async fn stay(means: Means, number: u64, totals: Arc<Totals>) -> Option<()> {
    let begun = Instant::now();
    let mut found = introduce(&means.dialler, number).await;
    while found.is_err() && begun.elapsed() < PATIENCE && !means.is_over() {
        sleep(SHOW_EVERY).await;
        found = introduce(&means.dialler, number).await;
    }
    totals.begun.fetch_add(1, Ordering::Relaxed);
    let (mut raw, ..) = found.ok()?;
    totals.introduced.fetch_add(1, Ordering::Relaxed);
    raw.count_datagrams();
    let mut counted = [raw.arrived(), raw.quic_bytes()];
    totals.before.fetch_add(counted[0], Ordering::Relaxed);
    let mut shown = Instant::now();
    while !means.is_over() {
        let alive = exchange(&mut raw, &mut shown).await;
        let now = [raw.arrived(), raw.quic_bytes()];
        for (total, (now, before)) in
            [&totals.after, &totals.quic].into_iter().zip(now.iter().zip(counted))
        {
            total.fetch_add(now - before, Ordering::Relaxed);
        }
        counted = now;
        alive?;
    }
    Some(())
}

/// Shows that the connection is alive, and reads for a quarter of a second.
async fn exchange(raw: &mut Raw, shown: &mut Instant) -> Option<()> {
    if shown.elapsed() > SHOW_EVERY {
        *shown = Instant::now();
        raw.writer.write_all(&[0, 0]).await.ok()?;
        raw.writer.flush().await.ok()?;
    }
    let mut buffer = [0; 4_096];
    match timeout(SHOW_EVERY / 2, raw.reader.read(&mut buffer)).await {
        Ok(read) => read.ok().filter(|read| *read > 0).map(|_| ()),
        Err(_) => Some(()),
    }
}
