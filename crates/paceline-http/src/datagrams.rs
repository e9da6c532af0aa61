//! Datagrams of one receiver, sent with few calls: the system cuts several of them from one.

use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Most datagrams and bytes of one call. Linux takes 128 datagrams, and 65,507 bytes.
const SEGMENTS_MAX: usize = 64;
const CALL_BYTES_MAX: usize = 65_000;

/// Sends datagrams, each given as `N` pieces.
#[derive(Debug)]
pub(crate) struct Segments {
    /// The system cuts several datagrams from one call.
    together: AtomicBool,
}

fn size<const N: usize>(pieces: &[&[u8]; N]) -> usize {
    pieces.iter().map(|piece| piece.len()).sum()
}

/// Returns the first datagrams, which the system can cut from one call: all but the last have the same size.
fn run<'a, 'b, const N: usize>(datagrams: &'b [[&'a [u8]; N]]) -> &'b [[&'a [u8]; N]] {
    let first = datagrams.first().map_or(0, size);
    let most = (CALL_BYTES_MAX / first.max(1)).clamp(1, SEGMENTS_MAX);
    let same = datagrams.iter().take(most).take_while(|pieces| size(pieces) == first).count();
    let smaller = datagrams.get(same).is_some_and(|pieces| size(pieces) < first);
    datagrams.get(..if same < most && smaller { same + 1 } else { same }).unwrap_or_default()
}

impl Segments {
    pub(crate) const fn new() -> Self {
        Self { together: AtomicBool::new(true) }
    }

    /// Sends the first of `datagrams` in one call, and returns their number: all of one size, and one that is smaller.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is no room, or the error of the system.
    pub(crate) fn send<const N: usize>(
        &self,
        socket: &UdpSocket,
        datagrams: &[[&[u8]; N]],
        to: SocketAddr,
    ) -> io::Result<usize> {
        let together = self.together.load(Ordering::Relaxed);
        let run = if together { run(datagrams) } else { datagrams.get(..1).unwrap_or_default() };
        let Some(first) = run.first() else { return Ok(0) };
        let slices: Vec<IoSlice<'_>> =
            run.iter().flatten().map(|piece| IoSlice::new(piece)).collect();
        let size = u16::try_from(size(first)).unwrap_or(u16::MAX);
        let segments = [ControlMessage::UdpGsoSegments(&size)];
        let control = segments.get(..usize::from(run.len() > 1)).unwrap_or_default();
        let address = SockaddrStorage::from(to);
        let sent = socket.try_io(Interest::WRITABLE, || {
            let flags = MsgFlags::MSG_DONTWAIT;
            let sent = sendmsg(socket.as_raw_fd(), &slices, control, flags, Some(&address));
            sent.map_err(io::Error::from)
        });
        match sent {
            Err(error) if run.len() > 1 && error.kind() != io::ErrorKind::WouldBlock => {
                // A system or a path without segmentation.
                tracing::debug!("datagrams are sent one by one: {error}");
                self.together.store(false, Ordering::Relaxed);
                Ok(0)
            }
            sent => sent.map(|_| run.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_of_one_size_and_a_smaller_one_are_sent_together() {
        let bytes = [0; 2_000];
        let runs = |sizes: &[usize]| {
            let datagrams: Vec<[&[u8]; 2]> =
                sizes.iter().map(|size| [&bytes[..12], &bytes[..*size]]).collect();
            let mut rest = datagrams.as_slice();
            let next = std::iter::from_fn(|| {
                let count = run(rest).len();
                rest = &rest[count..];
                (count > 0).then_some(count)
            });
            next.collect::<Vec<_>>()
        };
        assert_eq!(runs(&[10, 1_380, 1_380, 1_380, 7, 9]), [1, 4, 1]);
        assert_eq!(runs(&[5, 5, 6, 6]), [2, 2]);
        assert_eq!(runs(&[1_380; 100]), [46, 46, 8]);
        assert_eq!(runs(&[100; 130]), [64, 64, 2]);
        assert!(runs(&[]).is_empty());
    }
}
