//! Attempts to reach an address that run at the same time.
//!
//! If the first packet of an attempt is lost, it is sent again only after a second; on a path with a long delay an
//! attempt needs seconds. So a lost path that returns is found by the next attempt.

use super::super::OPEN_MAX;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

/// The interval between attempts. Users notice a delay of 250 ms.
const KNOCK_EVERY: Duration = Duration::from_millis(200);

/// Attempts in progress, or an error each.
pub(super) type Attempts<T> = JoinSet<Result<T, String>>;

/// Starts attempts every 200 ms, and returns the first success. Fails if all attempts have failed, or after
/// [`OPEN_MAX`]; then with the last error.
pub(super) async fn first<T: Send + 'static>(
    mut start: impl FnMut(&mut Attempts<T>),
) -> Result<T, String> {
    let mut attempts = JoinSet::new();
    let mut knock = interval(KNOCK_EVERY);
    let mut why = "no answer".to_owned();
    let all = async {
        loop {
            tokio::select! {
                _ = knock.tick() => start(&mut attempts),
                Some(attempt) = attempts.join_next(), if !attempts.is_empty() => {
                    match attempt.unwrap_or_else(|error| Err(error.to_string())) {
                        Ok(success) => return Some(success),
                        Err(error) => why = error,
                    }
                    if attempts.is_empty() {
                        return None;
                    }
                }
            }
        }
    };
    let success = timeout(OPEN_MAX, all).await.unwrap_or_default();
    success.ok_or(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work)
    }

    #[test]
    fn an_attempt_without_an_answer_delays_no_other() {
        let mut started = 0;
        let got = run(first(|attempts| {
            started += 1;
            let number = started;
            attempts.spawn(async move { if number < 3 { pending().await } else { Ok(number) } });
        }));
        assert_eq!(got, Ok(3));
    }

    #[test]
    fn failures_are_reported_at_once() {
        let failed = run(first::<()>(|attempts| {
            attempts.spawn(async { Err("refused".to_owned()) });
        }));
        assert_eq!(failed, Err("refused".to_owned()));
    }
}
