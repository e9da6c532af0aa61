//! Reads the records of a byte stream. Their format is described in [`super::outbox`].

use super::outbox::{CLOSE, MESSAGE, REASON_BYTES_MAX};
use bytes::{Buf as _, Bytes, BytesMut};
use paceline_proto::text::escape;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The room for one read.
const READ_BYTES: usize = 64 << 10;
/// Shorter frames are copied, so that a stored sample does not keep a whole buffer in memory.
const COPIED_BYTES_MAX: usize = 4_096;

/// A record of a byte stream.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Record {
    Frame(Bytes),
    Alive,
    /// A message about multicast groups.
    Message(Bytes),
    /// The other end closes the connection for this reason.
    Close(String),
}

/// The records of one stream.
#[derive(Debug)]
pub(super) struct Inbox<R> {
    reader: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> Inbox<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, buffer: BytesMut::new() }
    }

    /// Waits for more bytes; returns false at the end of the stream. Nothing is lost if the caller stops waiting.
    pub(super) async fn fill(&mut self) -> io::Result<bool> {
        self.buffer.reserve(READ_BYTES);
        Ok(self.reader.read_buf(&mut self.buffer).await? > 0)
    }

    /// Returns the next record that has arrived whole.
    pub(super) fn next(&mut self) -> Option<Record> {
        let length = u16_at(&self.buffer, 0)?;
        if length == CLOSE {
            let reason = usize::from(u16_at(&self.buffer, 2)?).min(REASON_BYTES_MAX);
            let reason = String::from_utf8_lossy(self.buffer.get(4..4 + reason)?);
            let reason = escape(&reason).to_string();
            self.buffer.clear();
            return Some(Record::Close(reason));
        }
        if length == MESSAGE {
            let end = 4 + usize::from(u16_at(&self.buffer, 2)?);
            let message = Bytes::copy_from_slice(self.buffer.get(4..end)?);
            self.buffer.advance(end);
            return Some(Record::Message(message));
        }
        let bytes = usize::from(length);
        if self.buffer.len() < 2 + bytes {
            return None;
        }
        self.buffer.advance(2);
        if bytes == 0 {
            return Some(Record::Alive);
        }
        let frame = self.buffer.split_to(bytes);
        Some(Record::Frame(if bytes <= COPIED_BYTES_MAX {
            Bytes::copy_from_slice(&frame)
        } else {
            frame.freeze()
        }))
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::Sent;
    use super::super::liveness::Liveness;
    use super::super::outbox::Outbox;
    use super::*;
    use paceline_proto::ProbeInterval;

    fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work)
    }

    fn put(outbox: &Outbox, frame: &[u8]) -> Sent {
        outbox.put(frame.len(), frame.chunks(1_000))
    }

    #[test]
    fn records_arrive_as_sent_in_any_pieces() {
        run(async {
            for room in [1, 3, 7, 70_000] {
                let (near, far) = tokio::io::duplex(room);
                let (_, writer) = tokio::io::split(near);
                let outbox = Outbox::default();
                let frames: Vec<Vec<u8>> =
                    [1, 2, 4_096, 4_097, 65_533].map(|bytes| vec![7; bytes]).into();
                for frame in &frames {
                    assert_eq!(put(&outbox, frame), Sent::Taken);
                }
                for refused in [0, 65_534, 65_535, 100_000] {
                    assert_eq!(put(&outbox, &vec![0; refused]), Sent::Down, "{refused}");
                }
                assert_eq!(outbox.put_message(b"group"), Sent::Taken);
                outbox.close("done");
                assert_eq!(put(&outbox, b"late"), Sent::Down);
                let liveness = Liveness::new(ProbeInterval::LONGEST, true);
                let write = outbox.write_to(writer, &liveness);
                let read = async {
                    let (mut inbox, mut got) = (Inbox::new(far), Vec::new());
                    while inbox.fill().await.unwrap() {
                        got.extend(std::iter::from_fn(|| inbox.next()));
                    }
                    got
                };
                let (written, got) = tokio::join!(write, read);
                written.unwrap();
                let mut expected: Vec<_> =
                    frames.into_iter().map(|frame| Record::Frame(frame.into())).collect();
                expected.push(Record::Message(Bytes::from_static(b"group")));
                expected.push(Record::Close("done".to_owned()));
                assert_eq!(got, expected);
            }
        });
    }

    #[test]
    fn a_quiet_stream_shows_that_it_is_alive() {
        run(async {
            let (near, far) = tokio::io::duplex(100);
            let (_, writer) = tokio::io::split(near);
            let outbox = Outbox::default();
            let liveness = Liveness::new(ProbeInterval::SHORTEST, true);
            let write = outbox.write_to(writer, &liveness);
            let read = async {
                let mut inbox = Inbox::new(far);
                assert!(inbox.fill().await.unwrap());
                assert_eq!(inbox.next(), Some(Record::Alive));
                outbox.close("");
                while inbox.fill().await.unwrap() {}
            };
            tokio::join!(write, read).0.unwrap();
        });
    }

    #[test]
    fn the_outbox_is_bounded() {
        let outbox = Outbox::default();
        let taken = (0..10_000).filter(|_| put(&outbox, &[0; 1_000]) == Sent::Taken).count();
        assert!((4_000..4_300).contains(&taken), "{taken}");
    }
}
