//! Finds a lost path again as soon as it is back.
//!
//! Zenoh makes one attempt to connect after the other. Where nothing comes through, an attempt's first packet is
//! lost, and the system sends it again only after a second; nor may an attempt be cut short, since on a
//! long way it takes seconds. So while a link has no neighbour, this thread knocks at its endpoints: several
//! times a second, each time by a connection of its own that waits for its answer beside the others.
//! The first to come about is closed again. It says that the path is there, and the link gets a new
//! session, which connects at once.

use super::transport::OPEN_MAX;
use std::mem::replace;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

/// How often it knocks. A user notices a quarter of a second.
const KNOCK_EVERY: Duration = Duration::from_millis(200);
/// How long a session that was just opened may take until there is a neighbour: it connects, and the two nodes
/// get to know each other, in five round trips.
const TRIES_FOR: Duration = Duration::from_secs(5);
/// How long a name may take to become an address.
const LOOK_UP_MAX: Duration = Duration::from_secs(2);

/// The thread of one link.
pub(crate) struct Redialer {
    lost: watch::Sender<bool>,
    thread: std::thread::JoinHandle<()>,
}

impl Redialer {
    /// Starts it, if there is an endpoint that takes TCP connections; it calls `reopen` when the link is to
    /// have a new session.
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

    /// The link has no neighbour any more, or it has one.
    pub(crate) fn tell(&self, lost: bool) {
        self.lost.send_if_modified(|was| replace(was, lost) != lost);
    }

    /// Ends it.
    pub(crate) fn close(self) {
        drop(self.lost);
        let _ = self.thread.join();
    }
}

/// Host and port of an endpoint that takes TCP connections.
fn place(endpoint: &str) -> Option<&str> {
    let (protocol, rest) = endpoint.split_once('/')?;
    let carried_by_tcp = matches!(protocol, "tcp" | "tls");
    carried_by_tcp.then(|| rest.split(['?', '#']).next().unwrap_or_default())
}

struct Finder {
    places: Vec<String>,
    /// Where they are, as far as that was known when there was a neighbour: what knows names may be
    /// beyond the path.
    addresses: Vec<SocketAddr>,
    lost: watch::Receiver<bool>,
}

impl Finder {
    /// Returns when a path that was lost is there again; `None` when the link is closed.
    async fn find(&mut self) -> Option<()> {
        if self.addresses.is_empty() {
            self.look_up().await;
        }
        // The session that was opened last tries by itself.
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

/// Returns as soon as one of these takes a connection.
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
    fn knocks_where_tcp_connections_are_taken() {
        assert_eq!(place("tcp/[::1]:7600#so_sndbuf=1"), Some("[::1]:7600"));
        assert_eq!(place("tls/robot:7600?rel=1"), Some("robot:7600"));
        for none in ["udp/robot:7600", "unixsock-stream//run/a.sock", "robot"] {
            assert_eq!(place(none), None, "{none}");
        }
        let none = Redialer::start("test", &["udp/robot:7600".to_owned()], || ());
        assert!(none.unwrap().is_none());
    }

    #[test]
    fn a_lost_path_that_is_back_is_told_of_and_one_that_is_there_is_not() {
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
    fn an_attempt_that_was_never_answered_holds_up_no_other() {
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

    /// A listener with as many connections as it takes, and these. The system answers no other: their first
    /// packets are as good as lost.
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
