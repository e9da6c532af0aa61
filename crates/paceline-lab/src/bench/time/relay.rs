//! A relay of NTP packets with a delay in each direction, and losses.

use anyhow::Result;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What a relay does to packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) there: Duration,
    pub(super) back: Duration,
    /// Each n-th packet of a client is lost in each direction; none if 0.
    pub(super) lost: u32,
}

/// A relay of NTP packets, which ends when it is dropped.
pub(super) struct Relay {
    over: Arc<AtomicBool>,
}

impl Relay {
    /// Starts a relay from `front` to `server`. Packets that are closer than the delays wait for each other.
    pub(super) fn start(front: &str, server: &str, way: Way) -> Result<Self> {
        let front = UdpSocket::bind(front)?;
        front.set_read_timeout(Some(Duration::from_millis(50)))?;
        let server: SocketAddr = server.parse()?;
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        std::thread::spawn(move || forward(&front, server, way, &ended));
        Ok(Self { over })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn forward(front: &UdpSocket, server: SocketAddr, way: Way, over: &Arc<AtomicBool>) {
    let mut backs: BTreeMap<SocketAddr, (UdpSocket, Losses)> = BTreeMap::new();
    let mut packet = [0; 1_500];
    while !over.load(Ordering::Relaxed) {
        let Ok((bytes, client)) = front.recv_from(&mut packet) else { continue };
        let (back, losses) = match backs.entry(client) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => match open(front, (client, server), way, over) {
                Ok(back) => new.insert((back, Losses::new(way.lost))),
                Err(_) => continue,
            },
        };
        if losses.passes() {
            std::thread::sleep(way.there);
            let _ = back.send(packet.get(..bytes).unwrap_or_default());
        }
    }
}

/// Opens the socket of a client to the server, whose answers return on a thread of their own.
fn open(
    front: &UdpSocket,
    (client, server): (SocketAddr, SocketAddr),
    way: Way,
    over: &Arc<AtomicBool>,
) -> std::io::Result<UdpSocket> {
    let back = UdpSocket::bind("0.0.0.0:0")?;
    back.connect(server)?;
    back.set_read_timeout(Some(Duration::from_millis(50)))?;
    let (front, answers, over) = (front.try_clone()?, back.try_clone()?, Arc::clone(over));
    std::thread::spawn(move || {
        let (mut packet, mut losses) = ([0; 1_500], Losses::new(way.lost));
        while !over.load(Ordering::Relaxed) {
            let Ok(bytes) = answers.recv(&mut packet) else { continue };
            if losses.passes() {
                std::thread::sleep(way.back);
                let _ = front.send_to(packet.get(..bytes).unwrap_or_default(), client);
            }
        }
    });
    Ok(back)
}

/// The losses of one client in one direction.
struct Losses {
    every: u32,
    count: u32,
}

impl Losses {
    const fn new(every: u32) -> Self {
        Self { every, count: 0 }
    }

    /// Returns whether the next packet passes.
    const fn passes(&mut self) -> bool {
        self.count += 1;
        self.every == 0 || !self.count.is_multiple_of(self.every)
    }
}
