//! Interactors as threads, a scheduler that iterates periodically, and a receiver that counts.

use crate::turns::{Budget, Cost, Pace, Turns, Volume};
use anyhow::{Context as _, Result};
use paceline_sched::discipline::{
    Discipline, Eligibility, Head, Policy, Scheduler as _, ServiceClass, StreamIndex,
};
use paceline_sched::{Duration as Span, Instant as Moment};
use std::collections::VecDeque;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Equal interactors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interactors {
    pub(super) count: usize,
    /// The time between two messages of one.
    pub(super) interval: Duration,
    /// The bytes of a message; each is one packet.
    pub(super) bytes: usize,
}

/// The measurements of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// The rate at the receiver in Mbit/s, divided by the number of interactors.
    pub(super) mbits_each: f64,
    /// The share of the time that an interactor waits for the lock.
    pub(super) locked_percent: f64,
    /// The median time of an iteration without a packet.
    pub(super) empty_micros: f64,
}

/// The greatest number of messages of an interactor that wait; a newer one is dropped.
const QUEUE: usize = 8;

/// The state that interactors and scheduler share, guarded by one lock as in the paper.
struct Shared {
    turns: Turns,
    discipline: Discipline,
    queues: Vec<VecDeque<(Moment, Arc<[u8]>)>>,
    waiting: Volume,
}

impl Shared {
    fn enqueue(&mut self, stream: usize, message: &Arc<[u8]>, now: Moment) {
        let Some(queue) = self.queues.get_mut(stream).filter(|queue| queue.len() < QUEUE) else {
            return;
        };
        if queue.is_empty() {
            self.discipline.handle_head(index(stream), head(now, message.len()));
        }
        queue.push_back((now, Arc::clone(message)));
        let len = u64::try_from(message.len()).unwrap_or(u64::MAX);
        self.turns.handle_arrival(now, len);
        self.waiting = self.waiting.plus(Volume::packet(len));
    }

    /// Performs one iteration. Returns its packet.
    fn iterate(&mut self, now: Moment) -> Option<Arc<[u8]>> {
        let mut turn = self.turns.begin(now);
        let stream = self.discipline.pick(now)?;
        let queue = self.queues.get_mut(usize::try_from(stream.0).ok()?)?;
        let len = queue.front().map(|(_, message)| message.len())?;
        let bytes = u64::try_from(len).unwrap_or(u64::MAX);
        if !turn.take(bytes) {
            return None;
        }
        self.discipline.handle_served(stream, u32::try_from(len).unwrap_or(u32::MAX), now);
        let (_, message) = queue.pop_front()?;
        if let Some((arrived, next)) = queue.front() {
            self.discipline.handle_head(stream, head(*arrived, next.len()));
        }
        self.waiting = self.waiting.minus(Volume::packet(bytes));
        Some(message)
    }
}

fn index(stream: usize) -> StreamIndex {
    StreamIndex(u32::try_from(stream).unwrap_or(u32::MAX))
}

fn head(arrived: Moment, len: usize) -> Head {
    Head::whole(arrived, Span::ZERO, u32::try_from(len).unwrap_or(u32::MAX))
}

/// The clock of a run and its end.
#[derive(Clone)]
struct Run {
    began: Instant,
    ends: Arc<AtomicBool>,
    shared: Arc<Mutex<Shared>>,
}

impl Run {
    fn now(&self) -> Moment {
        Moment::ZERO + Span::from(self.began.elapsed())
    }

    fn sleep_until(&self, at: Moment) {
        let at = self.began + Duration::from_nanos(at.as_nanos());
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn ended(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }
}

/// Runs interactors and a scheduler with this period for a time.
pub(super) fn measure(
    interactors: Interactors,
    period: Duration,
    time: Duration,
) -> Result<Measured> {
    let budget = Budget { packets: 1, work: Span::ZERO };
    let turns = Turns::new(Pace::Periodic(period.into()), budget, Cost::default())?;
    let mut discipline = Discipline::new(Policy::default(), Eligibility::WorkConserving);
    for stream in 0..interactors.count {
        discipline.join(index(stream), ServiceClass::BestEffort);
    }
    let queues = (0..interactors.count).map(|_| VecDeque::new()).collect();
    let shared = Shared { turns, discipline, queues, waiting: Volume::default() };
    let run = Run {
        began: Instant::now(),
        ends: Arc::new(AtomicBool::new(false)),
        shared: Arc::new(Mutex::new(shared)),
    };
    let (sending, receiving) = UnixDatagram::pair()?;
    sending.set_write_timeout(Some(Duration::from_secs(1)))?;
    let receiver = receive(run.clone(), receiving)?;
    let scheduler = schedule(run.clone(), sending);
    let senders: Vec<_> =
        (0..interactors.count).map(|stream| send(run.clone(), interactors, stream)).collect();
    std::thread::sleep(time);
    run.ends.store(true, Ordering::Relaxed);
    let mut locked = Duration::ZERO;
    for sender in senders {
        locked += join(sender)?;
    }
    let empty = join(scheduler)??;
    let rate = join(receiver)?;
    let empty: Vec<_> = empty.iter().map(|empty| empty.as_secs_f64() * 1e6).collect();
    let count = crate::bench::stats::count(interactors.count);
    Ok(Measured {
        mbits_each: rate / count,
        locked_percent: locked.as_secs_f64() / count / time.as_secs_f64() * 100.0,
        empty_micros: crate::bench::stats::median(&empty),
    })
}

fn join<T>(thread: JoinHandle<T>) -> Result<T> {
    thread.join().ok().context("a thread of the measurement panicked")
}

/// Sends the messages of one interactor. Returns how long it waited for the lock.
fn send(run: Run, interactors: Interactors, stream: usize) -> JoinHandle<Duration> {
    std::thread::spawn(move || {
        let message: Arc<[u8]> = vec![7; interactors.bytes].into();
        let interval = Span::from(interactors.interval);
        let part = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let mut at = Moment::ZERO + interval.mul_div(part(stream), part(interactors.count));
        let mut locked = Duration::ZERO;
        while !run.ended() {
            run.sleep_until(at);
            let before = Instant::now();
            let mut shared = run.lock();
            locked += before.elapsed();
            shared.enqueue(stream, &message, run.now());
            drop(shared);
            at += interval;
        }
        locked
    })
}

/// Iterates periodically. Returns the times of iterations without a packet.
fn schedule(run: Run, socket: UnixDatagram) -> JoinHandle<Result<Vec<Duration>>> {
    std::thread::spawn(move || {
        let mut empty = Vec::new();
        while !run.ended() {
            let next = {
                let shared = run.lock();
                shared.turns.next_turn(run.now(), shared.waiting)
            };
            run.sleep_until(next.unwrap_or_else(|| run.now() + Span::from_millis(1)));
            let before = Instant::now();
            let packet = run.lock().iterate(run.now());
            match packet.map(|packet| socket.send(&packet)) {
                Some(Ok(_)) => {}
                // The receiver may end first.
                Some(Err(_)) if run.ended() => break,
                Some(Err(error)) => return Err(error.into()),
                None => empty.push(before.elapsed()),
            }
        }
        Ok(empty)
    })
}

/// Counts received bytes. Returns the rate between the first and the last arrival in Mbit/s.
fn receive(run: Run, socket: UnixDatagram) -> Result<JoinHandle<f64>> {
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    Ok(std::thread::spawn(move || {
        let mut buffer = vec![0; 70_000];
        let (mut first, mut last, mut bytes) = (None, Moment::ZERO, 0);
        while !run.ended() {
            let Ok(length) = socket.recv(&mut buffer) else { continue };
            last = run.now();
            if first.is_none() {
                first = Some(last);
            } else {
                bytes += length;
            }
        }
        let span = last.since(first.unwrap_or(last));
        crate::bench::stats::count(bytes) * 8.0 / Duration::from(span).as_secs_f64() / 1e6
    }))
}
