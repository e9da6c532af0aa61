//! Connecting to an endpoint, and again after the end of a connection.

use super::outbox::Sink;
use super::shared::{Opened, Shared};
use super::{OPEN_MAX, cause};
use paceline_proto::control::HOST_LINK;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::net::lookup_host;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, sleep_until, timeout};

/// The delays between attempts: the first, and the longest.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_millis(400);
/// The timeout of a name lookup.
const LOOK_UP_MAX: Duration = Duration::from_secs(2);
/// The interval between attempts that run at the same time. Users notice a delay of 250 ms.
const KNOCK_EVERY: Duration = Duration::from_millis(200);

/// The time without a connection after which a warning reports it, and the interval of further warnings.
///
/// Nodes start in any order, so an endpoint may begin to listen a moment later. An attempt without an answer has
/// ended by then ([`OPEN_MAX`]), so that the warning has a cause.
const REPORT_AFTER: Duration = Duration::from_secs(3);
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// The way to one endpoint.
pub(super) trait Connect: Send + 'static {
    type Reader: AsyncRead + Unpin + Send;
    type Writer: Sink;

    /// The cause to report while the first attempt has not ended.
    const PENDING: &'static str = cause::NO_ANSWER;

    fn connect(
        &mut self,
    ) -> impl Future<Output = Result<Opened<Self::Reader, Self::Writer>, String>> + Send;
}

/// Keeps a connection to the endpoint `to` until the runtime ends.
pub(super) async fn dial<W: Connect>(shared: Arc<Shared>, to: String, mut way: W) {
    let mut delay = RETRY_FIRST;
    let mut outage = Outage::new(Instant::now(), W::PENDING);
    let report = |line: &str| {
        // A host may have no node: then commands wait for one.
        if shared.link != HOST_LINK {
            tracing::warn!("link '{}': no connection to {to} {line}", shared.link);
        }
    };
    loop {
        if let Some(opened) = outage.attempt(way.connect(), report).await {
            if outage.is_reported() {
                tracing::info!("link '{}': connected to {to}", shared.link);
            }
            if shared.serve(opened, None).await {
                delay = RETRY_FIRST;
            }
            outage = Outage::new(Instant::now(), W::PENDING);
        }
        sleep(delay).await;
        delay = (delay * 2).min(RETRY_MAX);
    }
}

/// The time since the last connection to an endpoint.
struct Outage {
    since: Instant,
    /// The time of the next report.
    report_at: Instant,
    why: String,
}

impl Outage {
    fn new(since: Instant, why: &str) -> Self {
        Self { since, report_at: since + REPORT_AFTER, why: why.to_owned() }
    }

    fn is_reported(&self) -> bool {
        self.report_at > self.since + REPORT_AFTER
    }

    /// Makes an attempt, and reports the outage when it is time, also while the attempt waits. Returns `None` if the
    /// attempt fails.
    async fn attempt<T>(
        &mut self,
        attempt: impl Future<Output = Result<T, String>>,
        report: impl Fn(&str),
    ) -> Option<T> {
        tokio::pin!(attempt);
        loop {
            tokio::select! {
                result = &mut attempt => match result {
                    Ok(opened) => return Some(opened),
                    Err(why) => {
                        self.why = why;
                        self.poll_report(Instant::now()).iter().for_each(|line| report(line));
                        return None;
                    }
                },
                () = sleep_until(self.report_at) => {
                    self.poll_report(Instant::now()).iter().for_each(|line| report(line));
                }
            }
        }
    }

    /// Returns the text of a report if it is time for one.
    fn poll_report(&mut self, now: Instant) -> Option<String> {
        if now < self.report_at {
            return None;
        }
        self.report_at = now + REPORT_EVERY;
        Some(format!("for {} s: {}", now.duration_since(self.since).as_secs(), self.why))
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
            Ok(Err(error)) if self.addresses.is_empty() => {
                return Err(format!("{error}; check the name, or use an IP address"));
            }
            Err(_) if self.addresses.is_empty() => {
                return Err("the name server is silent; check it, or use an IP address".to_owned());
            }
            Ok(Err(_)) | Err(_) => {}
        }
        if self.addresses.is_empty() {
            return Err("the name has no address; check it, or use an IP address".to_owned());
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
    let mut why = cause::NO_ANSWER.to_owned();
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
    use std::cell::RefCell;
    use std::future::pending;

    fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work)
    }

    #[test]
    fn an_outage_is_reported_after_three_seconds_and_then_every_ten() {
        let begun = Instant::now();
        let mut outage = Outage::new(begun, cause::NO_ANSWER);
        let mut reports = |ms| outage.poll_report(begun + Duration::from_millis(ms));
        assert!((0..3_000).all(|ms| reports(ms).is_none()));
        assert_eq!(reports(3_400), Some(format!("for 3 s: {}", cause::NO_ANSWER)));
        assert!((3_401..13_400).all(|ms| reports(ms).is_none()));
        assert!(reports(13_400).is_some_and(|line| line.starts_with("for 13 s: ")));
        assert!(outage.is_reported() && !Outage::new(begun, "").is_reported());
    }

    #[test]
    fn an_outage_is_reported_while_an_attempt_waits() {
        let begun = Instant::now().checked_sub(REPORT_AFTER).unwrap();
        let mut outage = Outage::new(begun, "first");
        let lines = RefCell::new(Vec::new());
        let report = |line: &str| lines.borrow_mut().push(line.to_owned());
        let slow = async {
            sleep(Duration::from_millis(10)).await;
            Err::<(), _>("second".to_owned())
        };
        let got = run(outage.attempt(slow, report));
        assert_eq!((got, outage.why.as_str()), (None, "second"));
        assert_eq!(lines.into_inner(), ["for 3 s: first"]);
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
