//! A thread pool with leader and followers, for work that a slow program may block. If the leader
//! is blocked, a follower takes over the watch, so the work for other programs continues.
//!
//! Zenoh blocks for up to five seconds on a program that does not read, and as long as necessary on
//! one that reads slowly. It does not announce that it will block. So the leader does each piece of
//! work itself, which costs no thread switch in the common case.

use crate::lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A leader is replaced after this time in one piece of work.
const BLOCKED_AFTER: Duration = Duration::from_millis(20);
/// The number of threads. All but one of them may be blocked; further work waits.
const THREADS_MAX: usize = 65;

/// A piece of work that may block.
pub(super) type Work = Box<dyn FnOnce() + Send>;

/// The source of work, watched by one thread at a time.
pub(super) trait Watch: Send + 'static {
    /// Returns the next piece of work, after a short wait.
    fn next(&mut self) -> Next;
    /// Ends the watch. Returns the remaining work, for which nothing waits.
    fn end(self) -> Vec<Work>;
}

pub(super) enum Next {
    Work(Work),
    Nothing,
    /// There will be no more work.
    Over,
}

/// The threads that share a watch. They release it when this is dropped.
pub(super) struct WorkerPool(Arc<dyn End>);

trait End: Send + Sync {
    fn end(&self);
}

impl WorkerPool {
    /// Starts the first thread. `name` is the name of all threads.
    pub(super) fn open<W: Watch>(name: String, watch: W) -> std::io::Result<Self> {
        let place = Place { laid: None, threads: 1, stands_by: false, over: false };
        let ended = AtomicBool::new(false);
        let turns = Turns { name, place: Mutex::new(place), changed: Condvar::new(), ended };
        let turns = Arc::new(turns);
        turns.spawn(Some(Box::new(watch)))?;
        Ok(Self(turns))
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.0.end();
    }
}

struct Turns<W> {
    name: String,
    place: Mutex<Place<W>>,
    changed: Condvar,
    ended: AtomicBool,
}

struct Place<W> {
    /// The watch while the leader works, and the time since when.
    laid: Option<(Box<W>, Instant)>,
    threads: usize,
    /// True if a follower is ready to take over.
    stands_by: bool,
    over: bool,
}

impl<W: Watch> End for Turns<W> {
    /// Waits until no thread watches any more. A blocked thread ends once its work returns.
    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.changed.notify_all();
        let over = self.changed.wait_while(lock(&self.place), |place| !place.over);
        drop(over.unwrap_or_else(PoisonError::into_inner));
    }
}

impl<W: Watch> Turns<W> {
    fn spawn(self: &Arc<Self>, watch: Option<Box<W>>) -> std::io::Result<()> {
        let turns = self.clone();
        let named = std::thread::Builder::new().name(self.name.clone());
        named.spawn(move || turns.run(watch)).map(drop)
    }

    fn run(self: &Arc<Self>, watch: Option<Box<W>>) {
        let mut watch = watch.or_else(|| self.stand_by());
        while let Some(current) = watch {
            self.have_relief();
            self.lead(current);
            watch = self.stand_by();
        }
        lock(&self.place).threads -= 1;
    }

    /// Ensures that a follower is ready, unless there are too many threads.
    fn have_relief(self: &Arc<Self>) {
        let mut place = lock(&self.place);
        if place.stands_by || place.threads >= THREADS_MAX {
            return;
        }
        place.threads += 1;
        drop(place);
        if let Err(error) = self.spawn(None) {
            lock(&self.place).threads -= 1;
            paceline::warn_limited!("{}: cannot start a standby thread: {error}", self.name);
        }
    }

    /// Watches and works, until another thread takes over the watch or it ends.
    fn lead(&self, mut watch: Box<W>) {
        loop {
            let next = if self.ended.load(Ordering::Relaxed) { Next::Over } else { watch.next() };
            let work = match next {
                Next::Work(work) => work,
                Next::Nothing => continue,
                Next::Over => return self.leave(*watch),
            };
            lock(&self.place).laid = Some((watch, Instant::now()));
            work();
            match lock(&self.place).laid.take() {
                Some((laid, _)) => watch = laid,
                None => return,
            }
        }
    }

    fn leave(&self, watch: W) {
        let left = watch.end();
        lock(&self.place).over = true;
        self.changed.notify_all();
        for work in left {
            work();
        }
    }

    /// Waits until the leader is blocked and takes over its watch. Returns `None` if another
    /// follower is already waiting, or at the end.
    fn stand_by(&self) -> Option<Box<W>> {
        let mut place = lock(&self.place);
        if place.stands_by {
            return None;
        }
        place.stands_by = true;
        let is_blocked = |place: &Place<W>| {
            place.laid.as_ref().is_some_and(|(_, since)| since.elapsed() >= BLOCKED_AFTER)
        };
        while !place.over && !is_blocked(&place) {
            place = self.wait(place);
        }
        place.stands_by = false;
        if place.over { None } else { place.laid.take().map(|(watch, _)| watch) }
    }

    fn wait<'a>(&self, place: MutexGuard<'a, Place<W>>) -> MutexGuard<'a, Place<W>> {
        let waited = self.changed.wait_timeout(place, BLOCKED_AFTER);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

    struct Orders {
        orders: Receiver<Work>,
        ended: SyncSender<()>,
        left: Vec<Work>,
    }

    impl Watch for Orders {
        fn next(&mut self) -> Next {
            match self.orders.recv_timeout(Duration::from_millis(1)) {
                Ok(work) => Next::Work(work),
                Err(RecvTimeoutError::Timeout) => Next::Nothing,
                Err(RecvTimeoutError::Disconnected) => Next::Over,
            }
        }

        fn end(self) -> Vec<Work> {
            self.ended.send(()).unwrap();
            self.left
        }
    }

    fn pool(left: Vec<Work>) -> (WorkerPool, SyncSender<Work>, Receiver<()>) {
        let ((order, orders), (ended, end)) = (sync_channel::<Work>(0), sync_channel(1));
        let pool = WorkerPool::open("pool".to_owned(), Orders { orders, ended, left }).unwrap();
        (pool, order, end)
    }

    #[test]
    fn a_blocked_job_delays_no_other() {
        let (pool, order, _end) = pool(Vec::new());
        let (free, blocker) = sync_channel::<()>(0);
        let blocker = Arc::new(Mutex::new(blocker));
        // All threads but one are blocked. Work that arrives afterwards is still done.
        for _ in 0..THREADS_MAX - 1 {
            let blocker = blocker.clone();
            order.send(Box::new(move || lock(&blocker).recv().unwrap())).unwrap();
        }
        let (sender, receiver) = sync_channel(1);
        for n in 0..100 {
            let sender = sender.clone();
            order.send(Box::new(move || sender.send(n).unwrap())).unwrap();
            assert_eq!(receiver.recv().unwrap(), n);
        }
        for _ in 0..THREADS_MAX - 1 {
            free.send(()).unwrap();
        }
        order.send(Box::new(move || sender.send(100).unwrap())).unwrap();
        assert_eq!(receiver.recv().unwrap(), 100);
        drop(pool);
    }

    #[test]
    fn closing_waits_for_the_watch_but_not_for_the_work() {
        let ((free, blocker), (sender, receiver)) = (sync_channel::<()>(0), sync_channel(1));
        let left: Work = Box::new(move || {
            blocker.recv().unwrap();
            sender.send("left").unwrap();
        });
        let (pool, order, end) = pool(vec![left]);
        let (go, going) = sync_channel::<()>(0);
        order.send(Box::new(move || going.recv().unwrap())).unwrap();
        drop(pool);
        assert_eq!(end.try_recv(), Ok(()), "the watch ended");
        free.send(()).unwrap();
        assert_eq!(receiver.recv(), Ok("left"));
        go.send(()).unwrap();
    }

    #[test]
    fn finished_jobs_can_be_dropped() {
        let (pool, order, end) = pool(Vec::new());
        drop(order);
        end.recv().unwrap();
        drop(pool);
    }
}
