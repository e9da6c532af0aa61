//! Writing to the connection of a player: answers, reports and packets, without a copy of payloads.

use super::sending::Departure;
use paceline_edge::RTP_HEADER_BYTES;
use std::io::{self, IoSlice};
use tokio::net::TcpStream;

/// The bytes before a packet in the connection (RFC 2326, 10.12).
const FRAME_BYTES: usize = 4;
/// The bytes before a payload.
const HEAD_BYTES: usize = FRAME_BYTES + RTP_HEADER_BYTES;
/// Most packets of one call.
const BATCH: usize = 256;

/// The bytes that wait for the connection of a player.
#[derive(Default)]
pub(super) struct Output {
    /// Answers and reports, which are written between units.
    control: Vec<u8>,
    unit: Option<Departure>,
    heads: Vec<[u8; HEAD_BYTES]>,
    /// The first packet of the unit that is not written, and its bytes that are.
    packet: usize,
    written: usize,
}

impl Output {
    /// Adds an answer.
    pub(super) fn answer(&mut self, bytes: &[u8]) {
        self.control.extend_from_slice(bytes);
    }

    /// Adds a packet on a channel.
    pub(super) fn packet(&mut self, channel: u8, bytes: &[u8]) {
        let Ok(length) = u16::try_from(bytes.len()) else { return };
        let [a, b] = length.to_be_bytes();
        self.control.extend_from_slice(&[b'$', channel, a, b]);
        self.control.extend_from_slice(bytes);
    }

    /// Begins to write a unit; [`Self::is_free`] must be true.
    pub(super) fn depart(&mut self, channel: u8, unit: Departure) {
        self.heads.clear();
        let mut number = 0;
        while let Some((header, part)) = unit.packet(number) {
            let length = RTP_HEADER_BYTES + part.payload.len();
            let [a, b] = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
            let mut head = [0; HEAD_BYTES];
            let (frame, rest) = head.split_at_mut(FRAME_BYTES);
            frame.copy_from_slice(&[b'$', channel, a, b]);
            rest.copy_from_slice(&header);
            self.heads.push(head);
            number += 1;
        }
        (self.packet, self.written) = (0, 0);
        self.unit = Some(unit);
    }

    /// Returns true if no unit is being written.
    pub(super) const fn is_free(&self) -> bool {
        self.unit.is_none()
    }

    /// Returns the bytes of answers and reports that wait.
    pub(super) const fn waiting(&self) -> usize {
        self.control.len()
    }

    /// Writes as much as the connection takes. Returns true if something waits.
    ///
    /// # Errors
    /// The error of the connection.
    pub(super) fn write(&mut self, stream: &TcpStream) -> io::Result<bool> {
        loop {
            let wrote = match &self.unit {
                Some(unit) => stream.try_write_vectored(&self.slices(unit)),
                None if self.control.is_empty() => return Ok(false),
                None => stream.try_write(&self.control),
            };
            match wrote {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) if self.unit.is_none() => drop(self.control.drain(..count)),
                Ok(count) => self.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the next bytes of the unit.
    fn slices<'a>(&'a self, unit: &'a Departure) -> Vec<IoSlice<'a>> {
        let rest = self.heads.iter().zip(&unit.unit.parts).skip(self.packet).take(BATCH);
        let mut slices = Vec::with_capacity(2 * BATCH.min(self.heads.len() - self.packet));
        let mut skip = self.written;
        for (head, part) in rest {
            for bytes in [&head[..], &part.payload] {
                let skipped = skip.min(bytes.len());
                skip -= skipped;
                let bytes = bytes.get(skipped..).unwrap_or_default();
                if !bytes.is_empty() {
                    slices.push(IoSlice::new(bytes));
                }
            }
        }
        slices
    }

    fn advance(&mut self, count: usize) {
        let Some(unit) = &self.unit else { return };
        self.written += count;
        while let Some(part) = unit.unit.parts.get(self.packet) {
            let length = HEAD_BYTES + part.payload.len();
            if self.written < length {
                return;
            }
            self.written -= length;
            self.packet += 1;
        }
        self.unit = None;
    }
}
