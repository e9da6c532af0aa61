//! Frames in datagrams: one, or two on paths that carry less than an Ethernet packet.

use bytes::{BufMut as _, Bytes, BytesMut};

const WHOLE: u8 = 0;
const FIRST: u8 = 1;
const SECOND: u8 = 2;

/// Writes the datagram of a frame in these pieces.
pub(super) fn put_whole<'p>(out: &mut BytesMut, pieces: impl Iterator<Item = &'p [u8]>) {
    out.put_u8(WHOLE);
    pieces.for_each(|piece| out.put_slice(piece));
}

/// Returns the same frame in two datagrams. `number` joins them.
pub(super) fn halves(whole: &[u8], number: u32) -> [Bytes; 2] {
    let frame = whole.get(1..).unwrap_or_default();
    let (first, second) = frame.split_at(frame.len() / 2);
    [(FIRST, first), (SECOND, second)].map(|(kind, half)| {
        let mut datagram = BytesMut::with_capacity(half.len() + 5);
        datagram.put_u8(kind);
        datagram.put_u32(number);
        datagram.put_slice(half);
        datagram.freeze()
    })
}

/// Joins the halves of frames. A frame is lost with either half.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    first: Option<(u32, Bytes)>,
}

impl Assembly {
    /// Returns the frame that `datagram` completes.
    pub(super) fn take(&mut self, mut datagram: Bytes) -> Option<Bytes> {
        match *datagram.first()? {
            WHOLE => Some(datagram.split_off(1)),
            kind @ (FIRST | SECOND) if datagram.len() >= 5 => {
                let half = datagram.split_off(5);
                let number = u32::from_be_bytes(datagram.get(1..5)?.try_into().ok()?);
                if kind == FIRST {
                    self.first = Some((number, half));
                    return None;
                }
                let (_, first) = self.first.take_if(|(first, _)| *first == number)?;
                Some([&first[..], &half].concat().into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(frame: &[u8]) -> Bytes {
        let mut datagram = BytesMut::new();
        put_whole(&mut datagram, frame.chunks(2));
        datagram.freeze()
    }

    #[test]
    fn frames_arrive_whole_or_not_at_all() {
        let mut assembly = Assembly::default();
        assert_eq!(assembly.take(of(b"frame")), Some(Bytes::from_static(b"frame")));
        let [first, second] = halves(&of(b"frames"), 7);
        assert_eq!(assembly.take(first.clone()), None);
        assert_eq!(assembly.take(second.clone()), Some(Bytes::from_static(b"frames")));
        assert_eq!(assembly.take(second.clone()), None, "its first half is used");
        assert_eq!(assembly.take(halves(&of(b"others"), 8)[0].clone()), None);
        assert_eq!(assembly.take(second), None, "of another frame");
        for damaged in [&b""[..], b"\x01", b"\x02\0\0\0", b"\x09frame"] {
            assert_eq!(assembly.take(Bytes::copy_from_slice(damaged)), None);
        }
    }
}
