//! The frames of an elementary stream, with the times of the packets in which they begin.

use super::cut::{Cut, Cutter};
use super::kind::StreamKind;
use crate::codec::{Codec, Units};
use crate::damage::Damage;
use crate::film::UNIT_MAX;
use crate::video::Class;
use std::collections::VecDeque;

/// The bytes behind the current frame from which on the buffer is moved to its beginning.
const MOVE_MIN: usize = 64 * 1024;
/// The most packets that wait for the end of a frame. Packets without bytes have no place of their own.
const MARKS_MAX: usize = 1_024;
/// The time of a picture if nothing states it: 25 per second.
const PERIOD: i64 = 3_600;

/// Cuts the payload of packets into frames.
#[derive(Debug)]
pub(super) struct Frames {
    cutter: Cutter,
    /// The classes of coded pictures.
    units: Option<Units>,
    buffer: Vec<u8>,
    /// The offset of the next byte in the buffer.
    at: usize,
    /// The offset of the buffer in the stream.
    base: u64,
    /// The times of packets that frames have not reached.
    marks: VecDeque<Mark>,
    clock: Clock,
    ended: bool,
}

/// The times of a packet, and the offset of its payload in the stream.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: u64,
    shown: i64,
    decode: i64,
}

/// The times of frames that begin in a packet behind another one.
#[derive(Debug, Default)]
struct Clock {
    /// The times of the last frame with times.
    base: Option<(i64, i64)>,
    /// The seconds since then, as a count of samples and their rate, or as a count of pictures.
    samples: i64,
    /// The ticks between the last two pictures with times, and the pictures since the last one.
    period: Option<i64>,
    pictures: i64,
}

/// A frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) shown: i64,
    pub(super) decode: i64,
    pub(super) key: bool,
    pub(super) bytes: Vec<u8>,
}

impl Frames {
    pub(super) fn new(kind: StreamKind) -> Self {
        let units =
            if let StreamKind::Video(codec) = kind { Some(Units::new(codec)) } else { None };
        Self {
            cutter: Cutter::new(kind),
            units,
            buffer: Vec::new(),
            at: 0,
            base: 0,
            marks: VecDeque::new(),
            clock: Clock::default(),
            ended: false,
        }
    }

    /// Appends the payload of a packet with its presentation and decoding time.
    pub(super) fn push(&mut self, payload: &[u8], times: Option<(i64, i64)>) {
        if self.at >= MOVE_MIN.min(self.buffer.len()) {
            self.buffer.drain(..self.at);
            self.base += self.at as u64;
            self.at = 0;
        }
        let at = self.base + self.buffer.len() as u64;
        if let Some((shown, decode)) = times.filter(|_| self.marks.len() < MARKS_MAX) {
            self.marks.push_back(Mark { at, shown, decode });
        }
        self.buffer.extend_from_slice(payload);
        self.ended = false;
        // The packets of some streams are their frames.
        self.cutter.note(self.buffer.len() - self.at);
    }

    /// Drops the frame that lost a part.
    pub(super) fn lose(&mut self) {
        self.base += self.buffer.len() as u64;
        self.buffer.clear();
        self.at = 0;
        self.marks.clear();
        self.cutter.reset();
    }

    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Returns the next frame whose end is known.
    pub(super) fn next(&mut self, damage: &mut Damage) -> Option<Frame> {
        loop {
            let bytes = self.buffer.get(self.at..).unwrap_or_default();
            let place = self.base + self.at as u64;
            match self.cutter.cut(bytes, self.ended) {
                Cut::More if bytes.len() > UNIT_MAX => {
                    let skipped = bytes.len();
                    damage.add(place, skipped as u64, || "a frame above the limit".to_owned());
                    self.at += skipped;
                    self.cutter.reset();
                }
                Cut::More => return None,
                Cut::Skip(count, reason) => {
                    damage.add(place, count as u64, || reason);
                    self.at += count;
                }
                Cut::Nothing(count) => self.at += count,
                Cut::Frame { head, length, samples } => {
                    let whole = bytes.get(head..head + length).unwrap_or_default().to_vec();
                    self.at += head + length;
                    return Some(self.timed(place, whole, samples));
                }
            }
        }
    }

    fn timed(&mut self, place: u64, bytes: Vec<u8>, samples: Option<(u32, u32)>) -> Frame {
        let mut mark = None;
        while self.marks.front().is_some_and(|mark| mark.at <= place) {
            mark = self.marks.pop_front();
        }
        let stated = mark.map(|mark| (mark.shown, mark.decode));
        let (shown, decode) = match samples {
            Some((count, rate)) => self.clock.sound(stated, count, rate),
            None => self.clock.picture(stated),
        };
        let class = self.units.as_mut().map(|units| units.classify(&bytes));
        let key = class.is_none_or(|class| matches!(class, Ok(Class::I)));
        Frame { shown, decode, key, bytes }
    }
}

impl Clock {
    fn sound(&mut self, stated: Option<(i64, i64)>, count: u32, rate: u32) -> (i64, i64) {
        if stated.is_some() {
            (self.base, self.samples) = (stated, 0);
        }
        let (shown, decode) = self.base.unwrap_or_default();
        let since = self.samples.saturating_mul(90_000) / i64::from(rate.max(1));
        self.samples = self.samples.saturating_add(count.into());
        (shown.saturating_add(since), decode.saturating_add(since))
    }

    fn picture(&mut self, stated: Option<(i64, i64)>) -> (i64, i64) {
        if let Some((shown, decode)) = stated {
            let step = self.base.map(|(_, before)| decode.saturating_sub(before));
            let step = step.map(|step| step / (self.pictures + 1));
            self.period = step.filter(|step| (1..90_000).contains(step)).or(self.period);
            (self.base, self.pictures) = (Some((shown, decode)), 0);
            return (shown, decode);
        }
        self.pictures += 1;
        let (shown, before) = self.base.unwrap_or_default();
        let step = self.period.unwrap_or(PERIOD).saturating_mul(self.pictures);
        (shown.saturating_add(step), before.saturating_add(step))
    }
}

/// Returns the content of a program stream's pictures, by their first bytes.
pub(super) fn pictures_of(payload: &[u8]) -> StreamKind {
    use crate::stream::{Container, Detected, detect};
    match detect(payload, true) {
        Detected::Container(Container::Video(codec @ (Codec::H264 | Codec::H265))) => {
            StreamKind::Video(codec)
        }
        Detected::Container(_) | Detected::Other | Detected::More => StreamKind::MpegVideo,
    }
}
