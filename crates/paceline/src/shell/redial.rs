//! Fast reconnection after a lost path returns.
//!
//! Zenoh makes one connection attempt at a time. If packets are lost, the system retransmits an
//! attempt's first packet only after a second. An attempt cannot be cut short either, because on a
//! path with a long delay it takes seconds.
//!
//! While a link has no neighbour, this thread therefore probes its endpoints several times per
//! second. Each probe is a TCP connection of its own that waits for its answer in parallel with the
//! others. The first that succeeds is closed again: the path works, and the link opens a new
//! session, which connects at once.

use super::transport::OPEN_MAX;
use std::mem::replace;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

/// The interval between probes. Users notice a delay of 250 ms.
const KNOCK_EVERY: Duration = Duration::from_millis(200);
/// The longest time from a new session to a neighbour: connecting and greeting take five round
/// trips.
const TRIES_FOR: Duration = Duration::from_secs(5);
/// The timeout of a name lookup.
const LOOK_UP_MAX: Duration = Duration::from_secs(2);

/// A handle of the thread of one link.
pub(crate) struct Redialer {
    lost: watch::Sender<bool>,
    thread: std::thread::JoinHandle<()>,
}

impl Redialer {
    /// Starts the thread if an endpoint accepts TCP connections; it calls `reopen` when the path
    /// works again.
    pub(crate) fn start(
        link: &str,
        endpoints: &[String],
        mut reopen: impl FnMut() + Send + 'static,
    ) -> std::io::Result<Option<Self>> {
        let places: Vec<_> =
            endpoints.iter().filter_map(|endpoint| place(endpoint)).map(str::to_owned).collect();
        if places.is_empty() {
            return Ok(None);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (lost, news) = watch::channel(true);
        let mut finder = Finder { places, addresses: Vec::new(), lost: news };
        let thread = std::thread::Builder::new().name(format!("paceline-{link}-dial"));
        let thread = thread.spawn(move || {
            while runtime.block_on(finder.find()).is_some() {
                reopen();
            }
        })?;
        Ok(Some(Self { lost, thread }))
    }

    /// Reports whether the link has lost its last neighbour.
    pub(crate) fn tell(&self, lost: bool) {
        self.lost.send_if_modified(|was| replace(was, lost) != lost);
    }

    /// Ends the thread.
    pub(crate) fn close(self) {
        drop(self.lost);
        let _ = self.thread.join();
    }
}

/// Returns host and port of an endpoint that accepts TCP connections.
fn place(endpoint: &str) -> Option<&str> {
    let (protocol, rest) = endpoint.split_once('/')?;
    let carried_by_tcp = matches!(protocol, "tcp" | "tls");
    carried_by_tcp.then(|| rest.split(['?', '#']).next().unwrap_or_default())
}

struct Finder {
    places: Vec<String>,
    /// The addresses as last resolved with a neighbour present: the name server may be behind the
    /// lost path.
    addresses: Vec<SocketAddr>,
    lost: watch::Receiver<bool>,
}

impl Finder {
    /// Returns when a lost path works again; `None` if the link is closed.
    async fn find(&mut self) -> Option<()> {
        if self.addresses.is_empty() {
            self.look_up().await;
        }
        // A new session connects by itself.
        if let Ok(heard) = timeout(TRIES_FOR, self.lost.wait_for(|lost| !lost)).await {
            heard.ok()?;
        }
        loop {
            if !*self.lost.borrow() {
                self.look_up().await;
            }
            self.lost.wait_for(|lost| *lost).await.ok()?;
            tokio::select! {
                () = answered(&self.addresses) => return Some(()),
                found = self.lost.wait_for(|lost| !lost) => drop(found.ok()?),
            }
        }
    }

    async fn look_up(&mut self) {
        let mut addresses = Vec::new();
        for place in &self.places {
            match timeout(LOOK_UP_MAX, lookup_host(place.as_str())).await {
                Ok(Ok(found)) => addresses.extend(found),
                Ok(Err(_)) | Err(_) => tracing::debug!("where {place} is was not found"),
            }
        }
        if !addresses.is_empty() {
            self.addresses = addresses;
        }
    }
}

/// Returns when one of these addresses accepts a connection.
async fn answered(addresses: &[SocketAddr]) {
    let mut attempts = JoinSet::new();
    let mut knock = interval(KNOCK_EVERY);
    loop {
        tokio::select! {
            _ = knock.tick() => addresses.iter().for_each(|address| {
                attempts.spawn(timeout(OPEN_MAX, TcpStream::connect(*address)));
            }),
            Some(attempt) = attempts.join_next(), if !attempts.is_empty() => {
                if let Ok(Ok(Ok(_))) = attempt {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

    fn redialer(endpoint: &str) -> (Redialer, Receiver<()>) {
        let (told, reopened) = channel();
        let started = Redialer::start("test", &[endpoint.to_owned()], move || {
            let _ = told.send(());
        });
        (started.unwrap().unwrap(), reopened)
    }

    #[test]
    fn probes_a_listening_tcp_port() {
        assert_eq!(place("tcp/[::1]:7600#so_sndbuf=1"), Some("[::1]:7600"));
        assert_eq!(place("tls/robot:7600?rel=1"), Some("robot:7600"));
        for none in ["udp/robot:7600", "unixsock-stream//run/a.sock", "robot"] {
            assert_eq!(place(none), None, "{none}");
        }
        let none = Redialer::start("test", &["udp/robot:7600".to_owned()], || ());
        assert!(none.unwrap().is_none());
    }

    #[test]
    fn only_a_recovered_path_is_reported() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (redialer, reopened) = redialer(&format!("tcp/{address}"));
        redialer.tell(false);
        let quiet = reopened.recv_timeout(2 * KNOCK_EVERY);
        assert_eq!(quiet, Err(RecvTimeoutError::Timeout), "there is a neighbour");
        drop(listener);
        redialer.tell(true);
        let quiet = reopened.recv_timeout(2 * KNOCK_EVERY);
        assert_eq!(quiet, Err(RecvTimeoutError::Timeout), "nobody answers");
        let _listener = TcpListener::bind(address).unwrap();
        reopened.recv_timeout(Duration::from_secs(60)).unwrap();
        redialer.close();
        assert_eq!(reopened.recv(), Err(std::sync::mpsc::RecvError));
    }

    #[test]
    fn an_unanswered_attempt_delays_no_other() {
        let (listener, waiting) = full_listener();
        let address = listener.local_addr().unwrap();
        let (redialer, reopened) = redialer(&format!("tcp/{address}"));
        redialer.tell(false);
        redialer.tell(true);
        let quiet = reopened.recv_timeout(3 * KNOCK_EVERY);
        assert_eq!(quiet, Err(RecvTimeoutError::Timeout), "nobody answers");
        let accepted: Vec<_> = waiting.iter().map(|_| listener.accept().unwrap()).collect();
        reopened.recv_timeout(Duration::from_secs(60)).unwrap();
        redialer.close();
        drop(accepted);
    }

    /// Returns a listener with a full backlog, and its connections. The system drops the first
    /// packet of any other connection.
    fn full_listener() -> (TcpListener, Vec<std::net::TcpStream>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let listener = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
            socket.listen(1).unwrap().into_std().unwrap()
        });
        listener.set_nonblocking(false).unwrap();
        let address = listener.local_addr().unwrap();
        let connect = || std::net::TcpStream::connect_timeout(&address, Duration::from_millis(300));
        let waiting = std::iter::from_fn(|| connect().ok()).collect();
        (listener, waiting)
    }
}
