//! Sources that publish at their rate until the parent stops them.

use super::engine::{Publisher, Session};
use super::{send, wait_for_go, wait_for_stop};
use crate::bench::clock;
use crate::bench::protocol::{Content, Message, Place, Source};
use anyhow::{Context as _, Result, anyhow};
use bytes::Bytes;
use paceline_media::{Size, TestCard};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The number of pictures, which are drawn in advance and repeated. The measurement must not
/// include drawing.
const PICTURES: u64 = 60;
const QUALITY: u8 = 80;

/// The number of bytes at the end of each payload that encode its sequence number. Neither noise
/// nor JPEG decoders are affected.
pub(super) const TRAILER: usize = 8;

pub(super) fn run(place: &Place, sources: &[Source]) -> Result<()> {
    let session = Session::open(place)?;
    let mut pumps = Vec::new();
    for source in sources {
        pumps.push(Pump::new(&session, source)?);
    }
    send(&Message::Ready);
    wait_for_go()?;
    let stop = AtomicBool::new(false);
    let start = clock::now();
    let sent = thread::scope(|scope| {
        let threads: Vec<_> =
            pumps.into_iter().map(|pump| scope.spawn(|| pump.run(start, &stop))).collect();
        send(&Message::Started);
        wait_for_stop();
        stop.store(true, Ordering::Relaxed);
        let join = |thread: thread::ScopedJoinHandle<'_, Result<Vec<u64>>>| {
            thread.join().unwrap_or_else(|_| Err(anyhow!("a publishing thread panicked")))
        };
        threads.into_iter().map(join).collect::<Result<Vec<_>>>()
    })?;
    let (violations, drops) = session.link_report();
    send(&Message::Published { sent, violations, drops });
    session.close();
    Ok(())
}

struct Pump {
    publisher: Publisher,
    period: f64,
    payloads: Vec<Vec<u8>>,
}

impl Pump {
    fn new(session: &Session, source: &Source) -> Result<Self> {
        let payloads = payloads(source.content)?;
        Ok(Self { publisher: session.publisher(source)?, period: 1e9 / source.hz, payloads })
    }

    /// Publishes one sample per period and returns the publication times. Like a camera, it skips
    /// the periods that it missed.
    fn run(mut self, start: u64, stop: &AtomicBool) -> Result<Vec<u64>> {
        let mut sent = Vec::new();
        let mut tick = 0;
        while !stop.load(Ordering::Relaxed) {
            clock::sleep_until(start + nanos(tick, self.period));
            let seq = u64::try_from(sent.len())?;
            let payload = self.payload(seq);
            let now = clock::now();
            sent.push(now);
            self.publisher.put(payload)?;
            tick += 1;
            while start + nanos(tick + 1, self.period) <= clock::now() {
                tick += 1;
            }
        }
        Ok(sent)
    }

    fn payload(&self, seq: u64) -> Bytes {
        let turn = usize::try_from(seq).unwrap_or(0) % self.payloads.len().max(1);
        let mut payload = self.payloads.get(turn).cloned().unwrap_or_default();
        if let Some(trailer) = payload.last_chunk_mut::<TRAILER>() {
            *trailer = seq.to_le_bytes();
        }
        payload.into()
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time of a run")]
fn nanos(tick: u32, period: f64) -> u64 {
    (f64::from(tick) * period) as u64
}

fn payloads(content: Content) -> Result<Vec<Vec<u8>>> {
    let (width, height) = match content {
        Content::Noise(bytes) => return Ok(vec![noise(bytes)]),
        Content::Card { width, height } => (width, height),
    };
    let mut card = TestCard::new(Size::new(width, height)?)?;
    let draw = |frame: u64| {
        let mut picture = card.draw_jpeg(frame, frame * 33_333, QUALITY)?;
        picture.extend([0; TRAILER]);
        Ok(picture)
    };
    (0..PICTURES).map(draw).collect::<Result<Vec<_>>>().context("test card")
}

/// Returns the output of a xorshift generator.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    (0..bytes).map(|_| next()).collect()
}
