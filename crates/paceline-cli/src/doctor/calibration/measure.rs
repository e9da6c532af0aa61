//! Measures the processor cost of forwarding a sample, by sample length and by background load.

use super::role::Child;
use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use paceline::contract::CpuPoint;
use paceline::{Node, Publisher, Subscription};
use paceline_tool::scratch::Scratch;
use paceline_tool::stop::Stop;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, available_parallelism};
use std::time::{Duration, Instant};

const SIZES: [usize; 4] = [64, 1_000, 16_000, 64_000];
const LOADS_PERMILLE: [u32; 2] = [0, 1_000];
/// Rates in samples per second, tried in ascending order. Samples that arrive together are
/// forwarded together and cost less each. So the highest rate within [`SHARE_PERMILLE`] decides. If
/// the total cost grows with the rate, load admitted by that cost stays within the share.
const HZ: [u64; 6] = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000];
/// The share of one processor, in thousandths.
const SHARE_PERMILLE: u64 = 500;
/// The number of windows at the decisive rate; the result is their median.
const WINDOWS: usize = 3;
const WINDOW_MILLIS: u64 = 150;
const WINDOW: Duration = Duration::from_millis(WINDOW_MILLIS);
/// The longest wait for the last published samples.
const DRAIN: Duration = Duration::from_millis(40);
/// The smallest share of the published samples that must arrive for a window to count, in
/// thousandths.
const ARRIVES_PERMILLE: u64 = 800;

/// The longest duration of [`measure`], in seconds.
pub(super) const SECONDS_MAX: u64 = 20;

/// Measures samples from one node through a second one, which is a separate process, to a third.
pub(super) fn measure() -> Result<Vec<CpuPoint>> {
    let stop = Stop::on_signals()?;
    let scratch = Scratch::new("calibrate")?;
    let mut stage = Stage::open(&scratch, stop)?;
    let until = Instant::now() + Duration::from_secs(SECONDS_MAX);
    let mut points = Vec::new();
    for load_permille in LOADS_PERMILLE {
        let busy = (load_permille > 0).then(Busy::start);
        for bytes in SIZES {
            let nanos = stage.cost(bytes, until)?;
            let bytes = u64::try_from(bytes)?;
            points.push(CpuPoint { bytes, load_permille, nanos: nanos.max(1) });
        }
        drop(busy);
    }
    Ok(points)
}

/// Three nodes of one host. This process contains the first and the last.
struct Stage {
    stop: Stop,
    forward: Child,
    publisher: Publisher,
    arrived: Arc<AtomicU64>,
    _subscription: Subscription,
    _ends: [Node; 2],
}

impl Stage {
    fn open(scratch: &Scratch, stop: Stop) -> Result<Self> {
        let dir = scratch.host();
        let forward = Child::start(&dir)?;
        let end = |name| Node::builder().name(name).runtime_dir(&dir).guest().open();
        let (near, far) = (end("near")?, end("far")?);
        let arrived = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&arrived);
        let count = move |_| _ = counter.fetch_add(1, Ordering::Relaxed);
        let subscription = far.subscriber("calibrate/sample").callback(count)?;
        let publisher = near.publisher("calibrate/sample").declare()?;
        let met = publisher.wait_matching(Duration::from_secs(3));
        ensure!(met, "the nodes do not find each other: run paceline doctor for the cause");
        Ok(Self {
            stop,
            forward,
            publisher,
            arrived,
            _subscription: subscription,
            _ends: [near, far],
        })
    }

    /// Returns the processor time per sample of `bytes`, in nanoseconds.
    fn cost(&mut self, bytes: usize, until: Instant) -> Result<u64> {
        let payload = Bytes::from(vec![7; bytes]);
        let mut best: Option<(u64, u64)> = None;
        for hz in HZ {
            let window = self.window(&payload, hz, until)?;
            let counts = window.is_whole(hz) && window.share_permille() <= SHARE_PERMILLE;
            if let (Some(_), false) = (best, counts) {
                break;
            }
            best = Some((hz, window.each()?));
        }
        let (hz, first) = best.context("no window was measured")?;
        let mut all = vec![first];
        while all.len() < WINDOWS {
            all.push(self.window(&payload, hz, until)?.each()?);
        }
        all.sort_unstable();
        all.get(WINDOWS / 2).copied().context("no window was measured")
    }

    /// Returns the processor time that the forwarding node has used, in nanoseconds.
    fn spent(&mut self) -> Result<u64> {
        let spent = self.forward.spent();
        // Ctrl-C ends the forwarding node, too.
        ensure!(!self.stop.requested(), "interrupted");
        spent
    }

    fn window(&mut self, payload: &Bytes, hz: u64, until: Instant) -> Result<Window> {
        let begin = Instant::now();
        ensure!(
            begin < until,
            "not done within {SECONDS_MAX} s: try again when the host is less busy"
        );
        let (before, arrived) = (self.spent()?, self.arrived.load(Ordering::Relaxed));
        let period = Duration::from_nanos(1_000_000_000 / hz);
        let mut next = begin;
        while Instant::now() < begin + WINDOW {
            self.publisher.put(payload.clone())?;
            next += period;
            if self.stop.wait_until(next) {
                bail!("interrupted");
            }
        }
        if self.stop.wait_until(Instant::now() + DRAIN) {
            bail!("interrupted");
        }
        let arrived = self.arrived.load(Ordering::Relaxed) - arrived;
        let spent = self.spent()?.saturating_sub(before);
        Ok(Window { arrived, spent })
    }
}

/// The samples that the middle node forwarded in one window, and the processor time spent.
struct Window {
    arrived: u64,
    spent: u64,
}

impl Window {
    /// Returns true if enough samples arrived for the window to count.
    fn is_whole(&self, hz: u64) -> bool {
        self.arrived * 1_000 >= hz * WINDOW_MILLIS / 1_000 * ARRIVES_PERMILLE
    }

    fn share_permille(&self) -> u64 {
        self.spent / (WINDOW_MILLIS * 1_000)
    }

    fn each(&self) -> Result<u64> {
        ensure!(self.arrived > 0, "no sample arrives: run paceline doctor for the cause");
        Ok(self.spent / self.arrived)
    }
}

/// A background load: one busy thread per processor. Each works on more memory than the nearest
/// caches contain.
struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..available_parallelism().map_or(1, usize::from)).map(|_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                let mut words = vec![1_u64; 1 << 18];
                while !stop.load(Ordering::Relaxed) {
                    for word in &mut words {
                        *word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7);
                    }
                    black_box(&mut words);
                }
            })
        });
        Self { threads: threads.collect(), stop }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
