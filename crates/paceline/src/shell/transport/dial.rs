//! Connecting to an endpoint, and again after the end of a connection.

use super::outbox::Sink;
use super::shared::{Opened, Shared};
use super::{Opening, cause};
use crate::address::explain;
use paceline_proto::address::Address;
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

/// The time without a connection after which a warning reports it.
///
/// Nodes start in any order, so an endpoint may begin to listen a moment later. An attempt that goes on, because nothing
/// answers or with a handshake of TLS or a proxy, may take longer.
const REPORT_AFTER: Duration = Duration::from_secs(3);
/// The intervals of further warnings: the first one, which doubles, and the longest.
const REPORT_AGAIN: Duration = Duration::from_secs(10);
const REPORT_AGAIN_MAX: Duration = Duration::from_secs(600);

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
        let opened = outage.attempt(way.connect(), report).await;
        let ended = match opened {
            Ok(opened) => {
                let opened_at = Instant::now();
                let connected = || {
                    if outage.take_reported() {
                        tracing::info!("link '{}': connected to {to}", shared.link);
                    }
                };
                let ended = shared.serve(opened, None, connected).await;
                // A connection that lasted has ended the outage, also if the other end closed it with a reason.
                if ended.is_ok() || opened_at.elapsed() >= REPORT_AFTER {
                    delay = RETRY_FIRST;
                    outage = Outage::new(Instant::now(), W::PENDING);
                }
                ended
            }
            Err(why) => Err(why),
        };
        if let Err(why) = ended {
            tracing::debug!("link '{}': an attempt to connect to {to} failed: {why}", shared.link);
            outage.fail(why, report);
        }
        sleep(delay).await;
        delay = (delay * 2).min(RETRY_MAX);
    }
}

/// The time since the last connection to an endpoint.
struct Outage {
    since: Instant,
    /// The time of the next report, and the interval until the one after it.
    report_at: Instant,
    report_again: Duration,
    /// A report was made, and no connection since.
    is_reported: bool,
    why: String,
}

impl Outage {
    fn new(since: Instant, why: &str) -> Self {
        Self {
            since,
            report_at: since + REPORT_AFTER,
            report_again: REPORT_AGAIN,
            is_reported: false,
            why: why.to_owned(),
        }
    }

    /// Returns true once after a report, so that the connection that follows it is logged.
    fn take_reported(&mut self) -> bool {
        std::mem::take(&mut self.is_reported)
    }

    /// Makes an attempt, and reports the outage when it is time while the attempt waits.
    async fn attempt<T>(
        &mut self,
        attempt: impl Future<Output = Result<T, String>>,
        report: impl Fn(&str),
    ) -> Result<T, String> {
        tokio::pin!(attempt);
        loop {
            tokio::select! {
                result = &mut attempt => return result,
                () = sleep_until(self.report_at) => {
                    self.poll_report(Instant::now()).iter().for_each(|line| report(line));
                }
            }
        }
    }

    /// Handles a failed attempt, and reports the outage if it is time.
    fn fail(&mut self, why: String, report: impl Fn(&str)) {
        self.why = why;
        self.poll_report(Instant::now()).iter().for_each(|line| report(line));
    }

    /// Returns the text of a report if it is time for one.
    fn poll_report(&mut self, now: Instant) -> Option<String> {
        if now < self.report_at {
            return None;
        }
        self.report_at = now + self.report_again;
        self.report_again = (self.report_again * 2).min(REPORT_AGAIN_MAX);
        self.is_reported = true;
        Some(format!("for {} s: {}", now.duration_since(self.since).as_secs(), self.why))
    }
}

/// A host and port, and its addresses.
pub(super) struct Place {
    address: Address,
    addresses: Vec<SocketAddr>,
}

impl Place {
    pub(super) const fn new(address: Address) -> Self {
        Self { address, addresses: Vec::new() }
    }

    /// Looks up the addresses. If that fails, the known ones stay: the name server may be behind the lost path.
    pub(super) async fn look_up(&mut self) -> Result<&[SocketAddr], String> {
        match timeout(LOOK_UP_MAX, lookup_host(self.address.place())).await {
            Ok(Ok(found)) => self.addresses = found.collect(),
            Ok(Err(error)) if self.addresses.is_empty() => {
                return Err(explain(&self.address, &error));
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

/// Attempts in progress, one per address in each round.
pub(super) struct Attempts<T> {
    tasks: JoinSet<(bool, Result<T, String>)>,
    is_first_round: bool,
    /// The attempts of the first round that are in progress. Those of later rounds may have begun just now.
    unanswered: usize,
}

impl<T: Send + 'static> Attempts<T> {
    fn new() -> Self {
        Self { tasks: JoinSet::new(), is_first_round: true, unanswered: 0 }
    }

    /// Starts an attempt.
    pub(super) fn spawn(
        &mut self,
        attempt: impl Future<Output = Result<T, String>> + Send + 'static,
    ) {
        let is_first = self.is_first_round;
        self.unanswered += usize::from(is_first);
        self.tasks.spawn(async move { (is_first, attempt.await) });
    }

    /// Returns the next result; `None` without attempts.
    async fn next(&mut self) -> Option<Result<T, String>> {
        let ended = self.tasks.join_next().await?;
        let (is_first, result) = ended.unwrap_or_else(|error| (false, Err(error.to_string())));
        self.unanswered -= usize::from(is_first);
        Some(result)
    }
}

/// Starts a round of attempts every 200 ms, more rarely on a slow link, and returns the first success. Fails with the last
/// error if all attempts have failed, or after [`Opening::max`]; then the cause is an attempt without an answer, if there is
/// one.
///
/// If the first packet of an attempt is lost, it is sent again only after a second; on a path with a long delay an
/// attempt needs seconds. So a lost path that returns is found by the next attempt.
pub(super) async fn first<T: Send + 'static>(
    opening: Opening,
    mut start: impl FnMut(&mut Attempts<T>),
) -> Result<T, String> {
    let mut attempts = Attempts::new();
    let mut knock = interval(opening.knock_every);
    let mut why = cause::NO_ANSWER.to_owned();
    let all = async {
        loop {
            tokio::select! {
                _ = knock.tick() => {
                    start(&mut attempts);
                    attempts.is_first_round = false;
                }
                Some(result) = attempts.next() => {
                    match result {
                        Ok(success) => return Some(success),
                        Err(error) => why = error,
                    }
                    if attempts.tasks.is_empty() {
                        return None;
                    }
                }
            }
        }
    };
    match timeout(opening.max, all).await {
        Ok(Some(success)) => Ok(success),
        Err(_) if attempts.unanswered > 0 => Err(cause::NO_ANSWER.to_owned()),
        Ok(None) | Err(_) => Err(why),
    }
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

    const fn brief() -> Opening {
        let (max, knock_every) = (Duration::from_millis(2_500), Duration::from_millis(200));
        Opening { max, knock_every, paced: false }
    }

    #[test]
    fn an_outage_is_reported_after_three_seconds_and_then_ever_more_rarely() {
        let begun = Instant::now();
        let mut outage = Outage::new(begun, cause::NO_ANSWER);
        let mut reports = |s| outage.poll_report(begun + Duration::from_secs(s));
        let reported: Vec<_> = (0..3_000).filter_map(|s| Some((s, reports(s)?))).collect();
        let times: Vec<_> = reported.iter().map(|(s, _)| *s).collect();
        assert_eq!(times, [3, 13, 33, 73, 153, 313, 633, 1_233, 1_833, 2_433]);
        assert_eq!(reported[1].1, format!("for 13 s: {}", cause::NO_ANSWER));
        assert!(outage.take_reported() && !outage.take_reported());
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
        let failed = run(outage.attempt(slow, report));
        assert_eq!(
            (failed, lines.into_inner()),
            (Err("second".to_owned()), vec!["for 3 s: first".to_owned()])
        );
    }

    #[test]
    fn a_failed_attempt_is_the_cause_of_the_next_report() {
        let begun = Instant::now();
        let mut outage = Outage::new(begun, "first");
        outage.fail("second".to_owned(), |line| panic!("{line}"));
        let report = outage.poll_report(begun + REPORT_AFTER);
        assert_eq!(report, Some("for 3 s: second".to_owned()));
    }

    #[test]
    fn an_attempt_without_an_answer_delays_no_other() {
        let mut started = 0;
        let got = run(first(brief(), |attempts| {
            started += 1;
            let number = started;
            attempts.spawn(async move { if number < 3 { pending().await } else { Ok(number) } });
        }));
        assert_eq!(got, Ok(3));
    }

    #[test]
    fn failures_are_reported_at_once() {
        let failed = run(first::<()>(brief(), |attempts| {
            attempts.spawn(async { Err("refused".to_owned()) });
        }));
        assert_eq!(failed, Err("refused".to_owned()));
    }

    #[test]
    fn an_address_without_an_answer_is_the_cause_after_the_others_have_failed() {
        let failed = run(first::<()>(brief(), |attempts| {
            attempts.spawn(async { Err("no route".to_owned()) });
            attempts.spawn(pending());
        }));
        assert_eq!(failed, Err(cause::NO_ANSWER.to_owned()));
    }

    #[test]
    fn a_slow_failure_is_the_cause_although_later_attempts_wait() {
        let failed = run(first::<()>(brief(), |attempts| {
            attempts.spawn(async {
                sleep(2 * brief().knock_every).await;
                Err("refused".to_owned())
            });
        }));
        assert_eq!(failed, Err("refused".to_owned()));
    }
}
