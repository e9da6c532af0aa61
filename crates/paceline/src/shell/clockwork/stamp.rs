//! Packets with the time of their arrival.
//!
//! A thread reads a packet tens of microseconds after it arrived, or milliseconds on a busy host. The kernel knows when
//! that was, so neither counts as delay.

use std::net::{SocketAddr, UdpSocket};

/// A packet that was received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// Its length in bytes.
    pub(super) length: usize,
    /// Its sender.
    pub(super) from: Option<SocketAddr>,
    /// The instant of the raw clock at which it had arrived, in nanoseconds.
    pub(super) raw: u64,
}

#[cfg(target_os = "linux")]
mod kernel {
    use super::Packet;
    use crate::shell::clock;
    use nix::cmsg_space;
    use nix::sys::socket::sockopt::ReceiveTimestampns;
    use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
    use nix::sys::time::TimeSpec;
    use std::io::IoSliceMut;
    use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
    use std::os::fd::AsRawFd as _;

    pub(in super::super) fn enable(socket: &UdpSocket) {
        // Without it, the time of reading counts.
        let _ = setsockopt(socket, ReceiveTimestampns, &true);
    }

    pub(in super::super) fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> Option<Packet> {
        let mut space = cmsg_space!(TimeSpec);
        let mut parts = [IoSliceMut::new(buffer)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let message =
            recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags);
        let message = message.ok()?;
        let stamps = message.cmsgs().ok().into_iter().flatten().filter_map(|one| {
            if let ControlMessageOwned::ScmTimestampns(time) = one { nanos(time) } else { None }
        });
        let stamp = stamps.last();
        let from = message.address.and_then(|address| {
            let v4 = address.as_sockaddr_in().map(|it| SocketAddr::V4(SocketAddrV4::from(*it)));
            v4.or_else(|| address.as_sockaddr_in6().map(|it| SocketAddrV6::from(*it).into()))
        });
        // The system clock first: an interruption between the two makes the arrival later, never earlier.
        let (wall, raw) = (clock::wall(), clock::raw());
        let age = stamp.map_or(0, |stamp| wall.saturating_sub(stamp));
        // A longer wait means that the system clock stepped.
        let age = if age > super::WAIT_MAX { 0 } else { age };
        Some(Packet { length: message.bytes, from, raw: raw.saturating_sub(age) })
    }

    fn nanos(time: TimeSpec) -> Option<u64> {
        let seconds = u64::try_from(time.tv_sec()).ok()?;
        Some(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec()).ok()?)
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use super::Packet;
    use crate::shell::clock;
    use std::net::UdpSocket;

    pub(in super::super) fn enable(_socket: &UdpSocket) {}

    pub(in super::super) fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> Option<Packet> {
        let (length, from) = socket.recv_from(buffer).ok()?;
        Some(Packet { length, from: Some(from), raw: clock::raw() })
    }
}

/// The longest wait of a packet for its reader, in nanoseconds.
#[cfg(target_os = "linux")]
const WAIT_MAX: u64 = 100_000_000;

/// Lets the kernel record the arrival of packets.
pub(super) fn enable(socket: &UdpSocket) {
    kernel::enable(socket);
}

/// Receives a packet, without waiting.
pub(super) fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> Option<Packet> {
    kernel::receive(socket, buffer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::clock;

    #[test]
    fn a_packet_has_arrived_after_it_was_sent_and_long_before_it_is_read() {
        let to = UdpSocket::bind("127.0.0.1:0").unwrap();
        enable(&to);
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut buffer = [0; 10];
        assert!(receive(&to, &mut buffer).is_none());
        // The kernel may record arrivals only some packets after it was enabled.
        for _ in 0..50 {
            let before = clock::raw();
            from.send_to(b"now", to.local_addr().unwrap()).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
            let packet = receive(&to, &mut buffer).unwrap();
            assert_eq!((packet.length, packet.from), (3, from.local_addr().ok()));
            let read = clock::raw();
            assert!((before..=read).contains(&packet.raw), "{before} {packet:?} {read}");
            if cfg!(not(target_os = "linux")) || read - packet.raw >= 19_000_000 {
                return;
            }
        }
        panic!("no arrival was recorded");
    }
}
