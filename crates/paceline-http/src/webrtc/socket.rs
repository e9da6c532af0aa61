//! The UDP socket of all sessions.

use super::registry::{Arrived, Registry};
use crate::datagrams::Segments;
use bytes::Bytes;
use paceline_edge::PeerDatagram;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;
use tokio::net::UdpSocket;

/// Longest datagram that is read. Packets of WebRTC fit Ethernet.
const DATAGRAM_BYTES: usize = 2_048;
/// Most datagrams that are read before the sessions run.
const BATCH: usize = 64;
/// The bytes that the system keeps in each direction.
const BUFFER_BYTES: usize = 2 << 20;

/// The socket.
pub(super) struct PeerSocket {
    socket: UdpSocket,
    segments: Segments,
}

impl PeerSocket {
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = std::net::UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        // As much as the system allows.
        let _ =
            nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::RcvBuf, &BUFFER_BYTES);
        let _ =
            nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::SndBuf, &BUFFER_BYTES);
        Ok(Self { socket: UdpSocket::from_std(socket)?, segments: Segments::new() })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Reads datagrams without end, and passes them on.
    pub(super) async fn read(&self, registry: &Registry) {
        let mut buffer = vec![0; DATAGRAM_BYTES];
        loop {
            if let Err(error) = self.socket.readable().await {
                return tracing::error!("WebRTC: {error}");
            }
            let at = Instant::now();
            for _ in 0..BATCH {
                // An error is one of an earlier datagram, such as an unreachable port.
                let Ok((length, from)) = self.socket.try_recv_from(&mut buffer) else { break };
                let bytes = Bytes::copy_from_slice(buffer.get(..length).unwrap_or_default());
                registry.deliver(Arrived { at, from, bytes });
            }
            tokio::task::yield_now().await;
        }
    }

    /// Sends the datagrams that wait. Returns true if the system has no room for the rest.
    pub(super) fn send(&self, waiting: &mut VecDeque<PeerDatagram>) -> bool {
        while let Some(to) = waiting.front().map(|first| first.to) {
            let same = waiting.iter().take_while(|datagram| datagram.to == to);
            let pieces: Vec<[&[u8]; 1]> = same.map(|datagram| [&datagram.bytes[..]]).collect();
            match self.segments.send(&self.socket, &pieces, to) {
                Ok(count) => drop(waiting.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                // It is lost, as on the path.
                Err(_) => drop(waiting.pop_front()),
            }
        }
        false
    }

    /// Waits for room.
    pub(super) async fn room(&self) {
        let _ = self.socket.writable().await;
    }
}
