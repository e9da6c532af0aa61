//! A TCP forwarder between two nodes of a test that can interrupt the connection.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The limit of connection ends per cable. Connections beyond it are closed.
const ENDS_MAX: usize = 128;
/// The size of the forwarding buffer, in bytes.
const CHUNK: usize = 64 << 10;
/// The same while the rate is limited.
const SLOW_CHUNK: usize = 1 << 10;

/// Forwards TCP connections from [`Self::endpoint`] to another endpoint.
///
/// While it is cut, connections stay open but all bytes are lost in both directions, and new
/// connections are accepted without being forwarded. Neither side is notified. `restore` closes
/// every connection that lost bytes or was not forwarded, because a TCP stream with a gap is
/// useless. New connections then work.
pub(crate) struct Cable {
    endpoint: SocketAddr,
    inner: Arc<Inner>,
    acceptor: Option<JoinHandle<()>>,
}

struct Inner {
    far: String,
    cut: AtomicBool,
    /// The rate in bits per second; 0 without a limit.
    limit: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    over: bool,
    ends: Vec<TcpStream>,
    pumps: Vec<JoinHandle<()>>,
}

impl Cable {
    /// Creates a cable to `far`, for example `tcp/127.0.0.1:7600`.
    pub(crate) fn new(far: &str) -> Self {
        let far = far.trim_start_matches("tcp/").to_owned();
        let (cut, state) = (AtomicBool::new(false), Mutex::default());
        let inner = Arc::new(Inner { far, cut, limit: AtomicU64::new(0), state });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = listener.local_addr().unwrap();
        let accepting = inner.clone();
        let acceptor = std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if !Inner::accept(&accepting, near) {
                    break;
                }
            }
        });
        Self { endpoint, inner, acceptor: Some(acceptor) }
    }

    /// Returns the endpoint of the near end.
    pub(crate) fn endpoint(&self) -> String {
        format!("tcp/{}", self.endpoint)
    }

    /// Stops forwarding.
    pub(crate) fn cut(&self) {
        self.inner.cut.store(true, Ordering::Release);
    }

    /// Forwards at most this rate in each direction from now on, in bits per second; 0 removes the limit.
    pub(crate) fn limit(&self, bits_per_s: u64) {
        self.inner.limit.store(bits_per_s, Ordering::Release);
    }

    /// Forwards new connections again.
    pub(crate) fn restore(&self) {
        let mut state = self.inner.lock();
        state.hang_up();
        self.inner.cut.store(false, Ordering::Release);
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        let pumps = {
            let mut state = self.inner.lock();
            state.over = true;
            state.hang_up();
            std::mem::take(&mut state.pumps)
        };
        // Wake the accepting thread.
        let _ = TcpStream::connect(self.endpoint);
        for thread in pumps.into_iter().chain(self.acceptor.take()) {
            let _ = thread.join();
        }
    }
}

impl State {
    fn hang_up(&mut self) {
        for end in self.ends.drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts a connection; returns false if the cable has ended.
    fn accept(inner: &Arc<Self>, near: TcpStream) -> bool {
        let mut state = inner.lock();
        if state.over {
            return false;
        }
        if state.ends.len() >= ENDS_MAX {
            return true;
        }
        if inner.cut.load(Ordering::Acquire) {
            state.ends.push(near);
            return true;
        }
        // Nothing listens at the far end yet. Closing the connection lets the caller retry.
        let Ok(far) = TcpStream::connect(&inner.far) else { return true };
        for (from, to) in [(&near, &far), (&far, &near)] {
            from.set_nodelay(true).unwrap();
            state.ends.push(from.try_clone().unwrap());
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let pumping = inner.clone();
            state.pumps.push(std::thread::spawn(move || pumping.pump(from, to)));
        }
        true
    }

    fn pump(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut chunk = vec![0; CHUNK];
        loop {
            let limit = self.limit.load(Ordering::Acquire);
            let most = if limit > 0 { SLOW_CHUNK } else { CHUNK };
            let Ok(count @ 1..) = from.read(chunk.get_mut(..most).unwrap_or_default()) else {
                break;
            };
            if limit > 0 {
                let bits = u32::try_from(count).unwrap_or(u32::MAX).saturating_mul(8);
                std::thread::sleep(
                    Duration::from_secs(1) * bits / u32::try_from(limit).unwrap_or(u32::MAX),
                );
            }
            let passes = !self.cut.load(Ordering::Acquire);
            if passes && to.write_all(chunk.get(..count).unwrap_or_default()).is_err() {
                break;
            }
        }
        // While the cable is cut, the other end must not notice a closed connection.
        if !self.cut.load(Ordering::Acquire) {
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
        }
    }
}
