//! The calls of Zenoh for one query.
//!
//! Zenoh calls back once for each matching queryable, one after the other on one thread. All calls for one query share
//! its key in memory. A query may end before the last of its calls, so the waiting queries do not show every repetition.

use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// The longest time between the first and the last call for a query.
const CALLS_WITHIN: Duration = Duration::from_millis(50);
/// The limit of threads whose last query is known.
const THREADS_MAX: usize = 64;

/// The calls so far for the last query of a thread.
struct Calls {
    thread: ThreadId,
    /// The address of the query's key, and the key.
    place: usize,
    key: String,
    began: Instant,
    /// The keys of the queryables that were called.
    called: Vec<String>,
}

/// The last query of each of Zenoh's threads.
#[derive(Default)]
pub(super) struct Dispatches(Vec<Calls>);

impl Dispatches {
    /// Records a call of the queryable `queryable` on `thread`, for the query with `key` at the address `place`. Returns
    /// true if it repeats a call for another queryable. A second call of the same queryable is a new query.
    pub(super) fn repeats(
        &mut self,
        now: Instant,
        thread: ThreadId,
        (place, key): (usize, &str),
        queryable: &str,
    ) -> bool {
        let known = self.0.iter_mut().find(|calls| calls.thread == thread);
        let same = known.filter(|calls| {
            let recent = now.saturating_duration_since(calls.began) < CALLS_WITHIN;
            recent && calls.place == place && calls.key == key
        });
        if let Some(calls) = same.filter(|calls| !calls.called.iter().any(|it| it == queryable)) {
            calls.called.push(queryable.to_owned());
            return true;
        }
        self.0.retain(|calls| calls.thread != thread);
        if self.0.len() >= THREADS_MAX {
            self.0.remove(0);
        }
        let (key, called) = (key.to_owned(), vec![queryable.to_owned()]);
        self.0.push(Calls { thread, place, key, began: now, called });
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_query_calls_each_queryable_once() {
        let (mut all, now, thread) =
            (Dispatches::default(), Instant::now(), std::thread::current().id());
        let query = (7, "robot/name");
        assert!(!all.repeats(now, thread, query, "robot/*"));
        assert!(all.repeats(now, thread, query, "robot/name"));
        // The next query may have the same address.
        assert!(!all.repeats(now, thread, query, "robot/*"));
        assert!(all.repeats(now, thread, query, "robot/name"));
        assert!(!all.repeats(now, thread, (8, "robot/name"), "robot/*"));
        assert!(!all.repeats(now, thread, (8, "robot/mode"), "robot/name"));
        let later = now + CALLS_WITHIN;
        assert!(!all.repeats(later, thread, (8, "robot/mode"), "robot/*"));
        let other = std::thread::spawn(|| std::thread::current().id()).join().unwrap();
        assert!(!all.repeats(later, other, (8, "robot/mode"), "robot/mode"));
    }
}
