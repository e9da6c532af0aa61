//! A relay of NTP packets with a delay in each direction, and losses.

use anyhow::Result;
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// What a relay does to packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) there: Duration,
    pub(super) back: Duration,
    /// Each n-th packet is lost; none if 0.
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
    let mut backs: BTreeMap<SocketAddr, UdpSocket> = BTreeMap::new();
    let count = Arc::new(AtomicU32::new(0));
    let mut packet = [0; 1_500];
    while !over.load(Ordering::Relaxed) {
        let Ok((bytes, client)) = front.recv_from(&mut packet) else { continue };
        if is_lost(&count, way) {
            continue;
        }
        let back = match backs.get(&client) {
            Some(back) => back,
            None => match open(front, (client, server), way, (over, &count)) {
                Ok(back) => backs.entry(client).or_insert(back),
                Err(_) => continue,
            },
        };
        std::thread::sleep(way.there);
        let _ = back.send(packet.get(..bytes).unwrap_or_default());
    }
}

/// Opens the socket of a client to the server, whose answers return on a thread of their own.
fn open(
    front: &UdpSocket,
    (client, server): (SocketAddr, SocketAddr),
    way: Way,
    (over, count): (&Arc<AtomicBool>, &Arc<AtomicU32>),
) -> std::io::Result<UdpSocket> {
    let back = UdpSocket::bind("0.0.0.0:0")?;
    back.connect(server)?;
    back.set_read_timeout(Some(Duration::from_millis(50)))?;
    let (front, answers) = (front.try_clone()?, back.try_clone()?);
    let (over, count) = (Arc::clone(over), Arc::clone(count));
    std::thread::spawn(move || {
        let mut packet = [0; 1_500];
        while !over.load(Ordering::Relaxed) {
            let Ok(bytes) = answers.recv(&mut packet) else { continue };
            if !is_lost(&count, way) {
                std::thread::sleep(way.back);
                let _ = front.send_to(packet.get(..bytes).unwrap_or_default(), client);
            }
        }
    });
    Ok(back)
}

fn is_lost(count: &AtomicU32, way: Way) -> bool {
    let packet = count.fetch_add(1, Ordering::Relaxed) + 1;
    way.lost > 0 && packet.is_multiple_of(way.lost)
}
