//! Connecting to an endpoint, and again after the end of a connection.

use super::OPEN_MAX;
use super::outbox::Sink;
use super::shared::{Opened, Shared};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::net::lookup_host;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};

/// The delays between attempts: the first, and the longest.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_millis(400);
/// The timeout of a name lookup.
const LOOK_UP_MAX: Duration = Duration::from_secs(2);
/// The interval between attempts that run at the same time. Users notice a delay of 250 ms.
const KNOCK_EVERY: Duration = Duration::from_millis(200);

/// The way to one endpoint.
pub(super) trait Connect: Send + 'static {
    type Reader: AsyncRead + Unpin + Send;
    type Writer: Sink;

    fn connect(
        &mut self,
    ) -> impl Future<Output = Result<Opened<Self::Reader, Self::Writer>, String>> + Send;
}

/// Keeps a connection to the endpoint `to` until the runtime ends.
pub(super) async fn dial(shared: Arc<Shared>, to: String, mut way: impl Connect) {
    let mut delay = RETRY_FIRST;
    loop {
        match way.connect().await {
            Ok(opened) => {
                if shared.serve(opened, None).await {
                    delay = RETRY_FIRST;
                }
            }
            Err(why) => {
                crate::warn_limited!("link '{}': cannot connect to {to}: {why}", shared.link);
            }
        }
        sleep(delay).await;
        delay = (delay * 2).min(RETRY_MAX);
    }
}

/// A host and port, and its addresses.
pub(super) struct Place {
    name: String,
    addresses: Vec<SocketAddr>,
}

impl Place {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), addresses: Vec::new() }
    }

    /// Looks up the addresses. If that fails, the known ones stay: the name server may be behind the lost path.
    pub(super) async fn look_up(&mut self) -> Result<&[SocketAddr], String> {
        match timeout(LOOK_UP_MAX, lookup_host(&self.name)).await {
            Ok(Ok(found)) => self.addresses = found.collect(),
            Ok(Err(error)) if self.addresses.is_empty() => return Err(error.to_string()),
            Err(_) if self.addresses.is_empty() => {
                return Err("the name server is silent".to_owned());
            }
            Ok(Err(_)) | Err(_) => {}
        }
        if self.addresses.is_empty() {
            return Err("the name has no address".to_owned());
        }
        Ok(&self.addresses)
    }
}

/// Attempts in progress, or an error each.
pub(super) type Attempts<T> = JoinSet<Result<T, String>>;

/// Starts attempts every 200 ms, and returns the first success. Fails if all attempts have failed, or after
/// [`OPEN_MAX`]; then with the last error.
///
/// If the first packet of an attempt is lost, it is sent again only after a second; on a path with a long delay an
/// attempt needs seconds. So a lost path that returns is found by the next attempt.
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
