//! Monitoring of a node's threads: a panic ends the node with a message, and a stalled thread is
//! reported.

use super::clock;
use super::lock;
use super::realtime::{self, Role};
use super::stalls::Sleep;
use super::wake::Waker;
use crate::status::StalledThread;
use paceline_sched::{Duration, Instant};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// The delay of a thread's next iteration after which it counts as stalled.
const STILL_AFTER: Duration = Duration::from_secs(2);
/// The interval of the watchdog.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The heartbeat of one thread: the time by which its next iteration must have begun.
#[derive(Debug)]
pub(crate) struct Pulse {
    name: String,
    due: AtomicU64,
    sleep: Arc<Sleep>,
    still: AtomicBool,
}

impl Pulse {
    /// Records the start of an iteration.
    pub(crate) fn begin(&self, now: Instant) {
        self.due.store(now.as_nanos(), Ordering::Relaxed);
        self.sleep.end(now);
    }

    /// Records that the thread sleeps until `until` at the latest, or not at all if that has passed: its
    /// next iteration is then due from the begin of this one.
    pub(crate) fn rest(&self, until: Instant) {
        let begun = self.due.fetch_max(until.as_nanos(), Ordering::Relaxed);
        self.sleep.begin(if until.as_nanos() > begun { until } else { Instant::ZERO });
    }

    /// Returns the delay of the next iteration if the thread is stalled.
    fn still_for(&self, now: Instant) -> Option<Duration> {
        let late = now.since(Instant::from_nanos(self.due.load(Ordering::Relaxed)));
        (late > STILL_AFTER).then_some(late)
    }
}

type OnFault = Box<dyn Fn() + Send + Sync>;

/// The threads of one node.
#[derive(Default)]
pub(crate) struct Vitals {
    pulses: Mutex<Vec<Weak<Pulse>>>,
    fault: OnceLock<String>,
    on_fault: OnceLock<OnFault>,
    /// Its threads take real-time priorities.
    realtime: AtomicBool,
}

impl Vitals {
    /// Sets the function that ends the node after a panic.
    pub(crate) fn on_fault(&self, end: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_fault.set(Box::new(end));
    }

    /// Lets the threads that start from now on take real-time priorities, if that is permitted.
    pub(crate) fn set_realtime(&self) {
        match realtime::prepare() {
            Ok(()) => self.realtime.store(true, Ordering::Relaxed),
            Err(why) => tracing::warn!(
                "no real-time priorities: {why}; contracts share the processor with other programs. Raise the limit \
                 (LimitRTPRIO=20 in the unit, or ulimit -r 20); paceline doctor shows it"
            ),
        }
    }

    /// Returns true if the node's threads have real-time priorities.
    pub(crate) fn is_realtime(&self) -> bool {
        self.realtime.load(Ordering::Relaxed)
    }

    /// Gives the calling thread the priority of its work.
    pub(crate) fn enter(&self, role: Role) {
        if self.is_realtime()
            && let Err(why) = realtime::enter(role)
        {
            crate::warn_limited!("a thread has no real-time priority: {why}");
        }
    }

    /// Returns the heartbeat of a new thread, which is monitored until it is dropped.
    pub(crate) fn pulse(&self, name: &str) -> Arc<Pulse> {
        let (due, still) = (AtomicU64::new(Instant::FAR.as_nanos()), AtomicBool::new(false));
        let pulse =
            Arc::new(Pulse { name: name.to_owned(), due, sleep: Sleep::of_new_thread(), still });
        let mut pulses = lock(&self.pulses);
        pulses.retain(|pulse| pulse.strong_count() > 0);
        pulses.push(Arc::downgrade(&pulse));
        pulse
    }

    /// Runs `run`; if it panics, ends the node and returns `None`.
    pub(crate) fn guard<T>(&self, thread: &str, run: impl FnOnce() -> T) -> Option<T> {
        // Unwind safety does not matter: after a panic the node ends.
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(done) => Some(done),
            Err(panic) => {
                self.fail(thread, panic.as_ref());
                None
            }
        }
    }

    fn fail(&self, thread: &str, panic: &(dyn Any + Send)) {
        let what = panic.downcast_ref::<&str>().copied();
        let what = what.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let what = what.unwrap_or("no message");
        let fault = format!(
            "thread '{thread}' of this node panicked: {what}; the node has stopped: restart it, \
             and report this message with the preceding log"
        );
        if self.fault.set(fault.clone()).is_ok() {
            tracing::error!("{fault}");
        }
        if let Some(end) = self.on_fault.get() {
            end();
        }
    }

    /// Returns the message of the panic that ended the node.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault.get().map(String::as_str)
    }

    pub(crate) fn stalled(&self, now: Instant) -> Vec<StalledThread> {
        let pulses = lock(&self.pulses);
        let stalled = pulses.iter().filter_map(Weak::upgrade).filter_map(|pulse| {
            let still = pulse.still_for(now)?;
            Some(StalledThread { thread: pulse.name.clone(), still: still.into() })
        });
        stalled.collect()
    }

    /// Logs the threads that have stalled or recovered since the last look.
    fn look(&self, now: Instant) {
        for pulse in lock(&self.pulses).iter().filter_map(Weak::upgrade) {
            let still = pulse.still_for(now);
            if pulse.still.swap(still.is_some(), Ordering::Relaxed) == still.is_some() {
                continue;
            }
            match still {
                Some(late) => tracing::warn!(
                    "thread '{}' is stalled: its next iteration is {late} late; the host is \
                     overloaded, or this is a bug to report",
                    pulse.name
                ),
                None => tracing::warn!("thread '{}' runs again", pulse.name),
            }
        }
    }

    /// Starts the watchdog thread, which ends with the node.
    pub(crate) fn watch(self: &Arc<Self>) -> std::io::Result<Watchdog> {
        let (stop, weak) =
            (Arc::new((Waker::default(), AtomicBool::new(false))), Arc::downgrade(self));
        let stopped = stop.clone();
        let named = std::thread::Builder::new().name("paceline-watchdog".to_owned());
        let thread = named.spawn(move || {
            let (waker, over) = &*stopped;
            waker.adopt();
            let mut looked = clock::now();
            while !over.load(Ordering::Acquire)
                && let Some(vitals) = weak.upgrade()
            {
                let now = clock::now();
                // If the whole process was stopped, by a signal or a debugger, its threads are not
                // stalled.
                if now.since(looked) < STILL_AFTER {
                    vitals.look(now);
                }
                looked = now;
                drop(vitals);
                waker.sleep(now, now + LOOK_EVERY, || over.load(Ordering::Acquire));
            }
        })?;
        Ok(Watchdog { stop, thread })
    }
}

/// A handle of the watchdog thread.
pub(crate) struct Watchdog {
    stop: Arc<(Waker, AtomicBool)>,
    thread: std::thread::JoinHandle<()>,
}

impl Watchdog {
    /// Stops the thread.
    pub(crate) fn stop(self) {
        self.stop.1.store(true, Ordering::Release);
        self.stop.0.wake();
        let _ = self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn a_panic_names_the_thread_and_ends_the_node_once() {
        let vitals = Vitals::default();
        let ended = Arc::new(AtomicUsize::new(0));
        let counted = ended.clone();
        vitals.on_fault(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(vitals.guard("radio", || 7), Some(7));
        assert_eq!(vitals.fault(), None);
        let sum = |by: u64| u64::MAX.checked_add(by).expect("the sum fits");
        assert_eq!(vitals.guard("radio", || sum(1)), None);
        assert_eq!(vitals.guard("engine", || -> u64 { panic!("second") }), None);
        let fault = vitals.fault().unwrap();
        assert!(fault.contains("'radio'") && fault.contains("the sum fits"), "{fault}");
        assert_eq!(ended.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn only_a_busy_thread_counts_as_stalled() {
        let vitals = Vitals::default();
        let (radio, gone) = (vitals.pulse("radio"), vitals.pulse("gone"));
        let at = |millis: u64| Instant::from_millis(100_000 + millis);
        let stalled = |now| {
            let stalled = vitals.stalled(now);
            stalled.into_iter().map(|it| (it.thread, it.still.as_millis())).collect::<Vec<_>>()
        };
        assert_eq!(stalled(at(0)), [], "it has not begun");
        radio.begin(at(0));
        radio.rest(at(30_000));
        gone.begin(at(0));
        drop(gone);
        assert_eq!(stalled(at(32_000)), []);
        vitals.look(at(32_001));
        assert_eq!(stalled(at(32_001)), [("radio".to_owned(), 2_001)]);
        radio.begin(at(32_100));
        vitals.look(at(32_200));
        assert_eq!(stalled(at(32_200)), []);
        radio.rest(Instant::ZERO);
        assert_eq!(stalled(at(32_200)), [], "what was due long ago is done at once");
    }
}
