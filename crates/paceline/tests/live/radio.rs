//! A forwarder of datagrams between two nodes of a test that can be interrupted, lose datagrams, and change the
//! address at which the far end sees the near one.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Forwards datagrams from [`Self::endpoint`] to another endpoint, and the answers back.
pub(crate) struct Radio {
    endpoint: SocketAddr,
    inner: Arc<Inner>,
    thread: Option<JoinHandle<()>>,
}

struct Inner {
    far: SocketAddr,
    cut: AtomicBool,
    moves: AtomicBool,
    /// Each n-th datagram is lost; none if 0.
    lost: AtomicU32,
    over: AtomicBool,
}

impl Radio {
    /// Creates a radio to `far`, for example `quic/127.0.0.1:7600`.
    pub(crate) fn new(far: &str) -> Self {
        let far = far.trim_start_matches("quic/").parse().unwrap();
        let [cut, moves, over] = [(); 3].map(|()| AtomicBool::new(false));
        let inner = Arc::new(Inner { far, cut, moves, lost: AtomicU32::new(0), over });
        let front = UdpSocket::bind("127.0.0.1:0").unwrap();
        front.set_nonblocking(true).unwrap();
        let endpoint = front.local_addr().unwrap();
        let forwarding = inner.clone();
        let thread = std::thread::spawn(move || forwarding.forward(&front));
        Self { endpoint, inner, thread: Some(thread) }
    }

    /// Returns the endpoint of the near end.
    pub(crate) fn endpoint(&self) -> String {
        format!("quic/{}", self.endpoint)
    }

    /// Loses all datagrams.
    pub(crate) fn cut(&self) {
        self.inner.cut.store(true, Ordering::Release);
    }

    /// Forwards datagrams again.
    pub(crate) fn restore(&self) {
        self.inner.cut.store(false, Ordering::Release);
    }

    /// Loses each `n`-th datagram in each direction.
    pub(crate) fn lose(&self, n: u32) {
        self.inner.lost.store(n, Ordering::Release);
    }

    /// Changes the address of the near end.
    pub(crate) fn change_address(&self) {
        self.inner.moves.store(true, Ordering::Release);
    }
}

impl Drop for Radio {
    fn drop(&mut self) {
        self.inner.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Inner {
    fn forward(&self, front: &UdpSocket) {
        let mut backs: BTreeMap<SocketAddr, UdpSocket> = BTreeMap::new();
        let (mut datagram, mut count) = (vec![0; 65_536], 0_u32);
        let mut passes = || {
            count = count.wrapping_add(1);
            let lost = self.lost.load(Ordering::Acquire);
            !self.cut.load(Ordering::Acquire) && (lost == 0 || !count.is_multiple_of(lost))
        };
        while !self.over.load(Ordering::Acquire) {
            if self.moves.swap(false, Ordering::AcqRel) {
                backs.clear();
            }
            let mut idle = true;
            while let Ok((bytes, from)) = front.recv_from(&mut datagram) {
                idle = false;
                let back = backs.entry(from).or_insert_with(|| {
                    let back = UdpSocket::bind("127.0.0.1:0").unwrap();
                    back.set_nonblocking(true).unwrap();
                    back
                });
                if passes() {
                    let _ = back.send_to(&datagram[..bytes], self.far);
                }
            }
            for (client, back) in &backs {
                while let Ok(bytes) = back.recv(&mut datagram) {
                    idle = false;
                    if passes() {
                        let _ = front.send_to(&datagram[..bytes], client);
                    }
                }
            }
            if idle {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }
}
