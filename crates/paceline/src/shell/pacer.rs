//! The pacer: one thread that wakes the subscriptions of a process at absolute times.
//!
//! It sleeps until shortly before the next time and then spins, because a sleeping thread wakes up late. The margin
//! follows the measured lateness, and is at most a sixth of the mean time between releases. With more than 10,000 releases
//! per second it does not spin, and those within 500 µs share a wake-up.

use super::clock;
use super::lock;
use super::realtime::{self, Role};
use paceline_sched::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::Thread;

/// The longest margin for spinning.
const MARGIN_MAX: Duration = Duration::from_micros(100);
/// The measured wake-ups from which the margin follows.
const WAKES: usize = 64;
/// Spinning takes at most one part in so many of the time.
const SPIN_SHARE: u64 = 6;
/// The mean time between releases before any is known.
const INTERVAL: Duration = Duration::from_millis(1);
/// With a shorter mean time between releases the thread does not spin, and sleeps for at least [`GRAIN`].
const SPIN_INTERVAL: Duration = Duration::from_micros(100);
const GRAIN: Duration = Duration::from_micros(500);
/// A sleep counts for one part in so many of the mean interval.
const INTERVAL_PART: u64 = 32;

/// A subscription that is delivered by time.
pub(crate) trait Wake: Send + Sync {
    /// Delivers everything whose time has come, and schedules the next wake-up.
    fn wake(&self);

    /// Ends after a panic of the callback.
    fn fail(&self);
}

struct Due {
    at: Instant,
    /// Spin for it.
    exact: bool,
    sink: Weak<dyn Wake>,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

/// The times of all subscriptions.
struct Pacer {
    heap: Mutex<BinaryHeap<Reverse<Due>>>,
    /// The time for which the thread sleeps or spins, in nanoseconds.
    target: AtomicU64,
    thread: OnceLock<Thread>,
    realtime: AtomicBool,
}

static PACER: OnceLock<Arc<Pacer>> = OnceLock::new();

/// Calls [`Wake::wake`] at `at`. With `exact`, the thread spins shortly before it.
pub(crate) fn wake_at(at: Instant, exact: bool, sink: &Weak<dyn Wake>) {
    let pacer = PACER.get_or_init(Pacer::start);
    lock(&pacer.heap).push(Reverse(Due { at, exact, sink: sink.clone() }));
    if at.as_nanos() < pacer.target.load(Ordering::Acquire)
        && let Some(thread) = pacer.thread.get()
    {
        thread.unpark();
    }
}

/// Lets the thread take a real-time priority: a node of this process has them.
pub(crate) fn use_realtime() {
    PACER.get_or_init(Pacer::start).realtime.store(true, Ordering::Relaxed);
}

/// The wake-ups of [`measure_wakeups`], and their distance.
const PROBES: usize = 15;
const PROBE_STEP: Duration = Duration::from_millis(1);
/// The longest wait for one of them.
const PROBE_PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// One measured wake-up.
struct Probe {
    at: Instant,
    late: Sender<Duration>,
}

impl Wake for Probe {
    fn wake(&self) {
        let _ = self.late.send(clock::now().since(self.at));
    }

    fn fail(&self) {}
}

/// Measures by how much the thread wakes up too late: returns the 90th percentile of 15 wake-ups. Blocks for some 15
/// ms. `None` if the thread does not run.
pub(crate) fn measure_wakeups() -> Option<Duration> {
    let mut lateness = Vec::with_capacity(PROBES);
    for _ in 0..PROBES {
        let (late, measured) = channel();
        let at = clock::now() + PROBE_STEP;
        let probe = Arc::new(Probe { at, late });
        let wake: Arc<dyn Wake> = probe;
        wake_at(at, true, &Arc::downgrade(&wake));
        lateness.push(measured.recv_timeout(PROBE_PATIENCE).ok()?);
    }
    lateness.sort_unstable();
    lateness.get(PROBES * 9 / 10).copied()
}

impl Pacer {
    fn start() -> Arc<Self> {
        let pacer = Arc::new(Self {
            heap: Mutex::default(),
            target: AtomicU64::new(u64::MAX),
            thread: OnceLock::new(),
            realtime: AtomicBool::new(false),
        });
        let paced = pacer.clone();
        let run = move || paced.run();
        match std::thread::Builder::new().name("paceline-pacer".to_owned()).spawn(run) {
            Ok(thread) => {
                let _ = pacer.thread.set(thread.thread().clone());
            }
            Err(error) => tracing::error!("no thread for delivery by time: {error}"),
        }
        pacer
    }

    fn run(&self) {
        // The priority of the thread that started this one does not count.
        realtime::leave();
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut sleeper = Sleeper::new(clock::now());
        let (mut raised, mut due) = (false, Vec::new());
        loop {
            if !raised && self.realtime.load(Ordering::Relaxed) {
                raised = true;
                if let Err(why) = realtime::enter(Role::Link) {
                    tracing::warn!("the pacer has no real-time priority: {why}");
                }
            }
            while self.take_due(clock::now(), &mut due) {
                sleeper.taken += due.len() as u64;
                due.drain(..).for_each(|sink| wake(&sink));
            }
            self.sleep(&mut sleeper);
        }
    }

    /// Moves the subscriptions whose time has come to `due`, in the order of their times. Returns false if there are none.
    ///
    /// One lock for all: with a real-time priority this thread interrupts those that add entries, and then waits for them.
    fn take_due(&self, now: Instant, due: &mut Vec<Weak<dyn Wake>>) -> bool {
        let mut heap = lock(&self.heap);
        while let Some(next) = heap.peek_mut().filter(|next| next.0.at <= now) {
            due.push(PeekMut::pop(next).0.sink);
        }
        !due.is_empty()
    }

    /// Sleeps until the next entry, or until an earlier one is added.
    fn sleep(&self, sleeper: &mut Sleeper) {
        let next = {
            let heap = lock(&self.heap);
            let next = heap.peek().map(|next| (next.0.at, next.0.exact));
            // An entry that is added after this sees the target.
            let target = next.map_or(u64::MAX, |(at, _)| at.as_nanos());
            self.target.store(target, Ordering::Release);
            next
        };
        let Some((at, exact)) = next else {
            std::thread::park();
            return;
        };
        // Every sleep counts for the mean interval, or others would stay coarse after the exact ones ended.
        let margin = sleeper.margin(at);
        let margin = if exact { margin } else { Duration::ZERO };
        let before = clock::now();
        let wakes = (at - margin).max(before + sleeper.grain());
        if wakes > before {
            std::thread::park_timeout(wakes.since(before).into());
        }
        let now = clock::now();
        if now < wakes {
            return;
        }
        if wakes > before {
            sleeper.note(now.since(wakes));
        }
        spin(at);
    }
}

/// Wakes one subscription. A panic of its callback ends it.
fn wake(sink: &Weak<dyn Wake>) {
    let Some(sink) = sink.upgrade() else { return };
    if catch_unwind(AssertUnwindSafe(|| sink.wake())).is_err() {
        tracing::error!("a callback panicked on the pacer's thread; its subscription has ended");
        sink.fail();
    }
}

/// The measured wake-ups, and the time spent with spinning.
struct Sleeper {
    lateness: [u64; WAKES],
    next: usize,
    margin: Duration,
    /// The mean time between releases.
    interval: Duration,
    /// The releases since the last sleep.
    taken: u64,
    last: Instant,
}

impl Sleeper {
    const fn new(now: Instant) -> Self {
        let lateness = [0; WAKES];
        Self { lateness, next: 0, margin: MARGIN_MAX, interval: INTERVAL, taken: 0, last: now }
    }

    /// Records the lateness of a wake-up. The margin is nearly the largest.
    fn note(&mut self, late: Duration) {
        if let Some(place) = self.lateness.get_mut(self.next) {
            *place = late.as_nanos();
        }
        self.next += 1;
        if self.next == WAKES {
            self.next = 0;
            let mut sorted = self.lateness;
            sorted.sort_unstable();
            let high = sorted.get(WAKES - 2).copied().unwrap_or_default();
            self.margin = Duration::from_nanos(high).min(MARGIN_MAX);
        }
    }

    /// Returns the shortest sleep: with many wake-ups, several releases share one.
    fn grain(&self) -> Duration {
        if self.interval < SPIN_INTERVAL { GRAIN } else { Duration::ZERO }
    }

    /// Returns the margin before `at`, and adds the time since the last one to the mean interval.
    fn margin(&mut self, at: Instant) -> Duration {
        let interval = at.since(self.last).mul_div(1, self.taken.max(1));
        self.taken = 0;
        self.last = self.last.max(at);
        let kept = self.interval.mul_div(INTERVAL_PART - 1, INTERVAL_PART);
        self.interval = kept.saturating_add(interval.mul_div(1, INTERVAL_PART));
        if self.interval < SPIN_INTERVAL {
            return Duration::ZERO;
        }
        self.margin.min(self.interval.mul_div(1, SPIN_SHARE))
    }
}

/// Spins until an instant.
fn spin(until: Instant) {
    while clock::now() < until {
        std::hint::spin_loop();
    }
}
