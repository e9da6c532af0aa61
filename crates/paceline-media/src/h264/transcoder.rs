//! Decoding of a stream, scaling of the wanted pictures and encoding of the results.

use std::collections::BTreeMap;
use std::fmt;

use super::CODEC;
use super::Class;
use super::blank;
use super::classify::PictureOrder;
use super::coder::{Coder, check_target};
use super::limit::Want;
use super::params::{Params, Sps};
use super::picture::Picture;
use super::scan::{Scan, scan};
use super::sets::ParameterSets;
use super::source::Source;
use crate::error::MediaError;
use crate::size::Size;

/// The result of a unit that was pushed into a [`Transcoder`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The picture was presented and wanted; this is its new unit.
    Coded {
        /// The class of the new unit: [`Class::I`] or [`Class::P`].
        class: Class,
        /// The unit in Annex B; an I unit contains its parameter sets.
        bytes: Vec<u8>,
    },
    /// The picture was presented but not wanted, and was neither scaled nor encoded.
    Passed,
    /// The picture was presented and wanted, but its limit has no room, not even for one colour.
    OverLimit,
    /// The unit could not be decoded, or its picture could not be encoded.
    Failed(MediaError),
}

/// Decodes H.264, scales wanted pictures down and encodes them again, in one thread.
///
/// Decodes progressive Baseline, Main and High profile with 8-bit 4:2:0 samples. Encodes Baseline
/// profile. An I picture is encoded first, after a change of size, on request, and at least once in each
/// 2 seconds of encoded pictures; all others are P pictures. An I unit contains its parameter sets.
///
/// By default the rate control aims at 1,000 bits and 0.1 bit per pixel, so 320x180 at 5 pictures per second takes about
/// 34 kbit/s. It encodes every wanted picture, so pictures with much motion may take more, unless they have a [`Limit`](super::Limit).
/// Then they get less and less detail, as needed.
///
/// Each pushed unit has exactly one [`Event`], immediately or later, in presentation order: the decoder
/// may buffer up to 16 pictures. Damaged units fail. The units after them up to the next I unit fail
/// too, because they depend on them.
///
/// ```
/// use paceline_media::h264::{Class, Event, Transcoder, Want};
///
/// let mut transcoder = Transcoder::new(Some("320x180".parse()?), 5.0)?;
/// let mut events = Vec::new();
/// transcoder.push(b"no unit", Class::P, &mut |_| Want::Yes, &mut |event| events.push(event));
/// assert!(matches!(events[..], [Event::Failed(_)]));
/// # Ok::<(), paceline_media::MediaError>(())
/// ```
pub struct Transcoder {
    to: Option<Size>,
    params: Params,
    sets: ParameterSets,
    /// The decoder, or the reason why units fail until the next I unit.
    source: Result<Source, MediaError>,
    /// The decoder began with a blank picture before a key picture that is not IDR.
    open: bool,
    /// The reference pictures until all pictures are correct, after a begin in a gradual refresh.
    refresh: u32,
    /// The size of the preceding pictures, to detect a change.
    size: Option<Size>,
    /// Decoded units whose pictures have not been presented yet.
    owed: Owed,
    order: PictureOrder,
    /// Pictures presented so far.
    shown: u64,
    coder: Coder,
}

impl fmt::Debug for Transcoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transcoder")
            .field("to", &self.to)
            .field("size", &self.size)
            .field("owed", &self.owed.units.len())
            .field("shown", &self.shown)
            .finish_non_exhaustive()
    }
}

impl Transcoder {
    /// Returns a transcoder to pictures of size `to` (the source's if `None`).
    ///
    /// `hz` is the expected number of encoded pictures per second: above 0, at most 1000. Rates outside
    /// 1 to 60 use the bits per picture of the nearest rate in that range.
    ///
    /// # Errors
    /// [`MediaError::H264Rate`] for a rate out of range. [`MediaError::H264Encode`] for a size that
    /// cannot be encoded: sides must be even, at least 16, at most 3840x2160 or 2160x3840.
    pub fn new(to: Option<Size>, hz: f64) -> Result<Self, MediaError> {
        to.map_or(Ok(()), check_target)?;
        Ok(Self {
            to,
            params: Params::default(),
            sets: ParameterSets::new(),
            source: Err(MediaError::H264Decode {
                reason: "no I unit has arrived yet".to_owned(),
                fix: "wait for the next I unit (IDR)",
            }),
            open: false,
            refresh: 0,
            size: None,
            owed: Owed::default(),
            order: PictureOrder::default(),
            shown: 0,
            coder: Coder::new(hz)?,
        })
    }

    /// Sets the target of the rate control, in bits per second; `None` for the default of the size. The first picture
    /// after a change is an I picture.
    pub fn set_bitrate(&mut self, bits_per_s: Option<u32>) {
        self.coder.set_bits(bits_per_s);
    }

    /// Requests that the next encoded picture is an I picture.
    pub fn request_key(&mut self) {
        self.coder.request_key();
    }

    /// Decodes one unit, in decoding order.
    ///
    /// `class` is the class of the unit, also if the unit is damaged: after a damaged [`Class::B`] unit
    /// the following units are still decoded.
    ///
    /// Calls `wanted(n)` once for each picture, in presentation order. `n` counts from 0 over the
    /// transcoder's life, without units that fail. The first pictures fail after a begin in a gradual refresh, until
    /// it is complete. Calls `event` with the results of this and
    /// of earlier units. Before an IDR unit, all earlier units have their events.
    pub fn push(
        &mut self,
        unit: &[u8],
        class: Class,
        wanted: &mut dyn FnMut(u64) -> Want,
        event: &mut dyn FnMut(Event),
    ) {
        let picture = match self.scan(unit) {
            Ok(scan) => scan.picture,
            Err(error) => {
                // No unit depends on a B unit, so the following ones can still be decoded.
                if !matches!(class, Class::B | Class::Leading) {
                    self.lose(damaged(), wanted, event);
                }
                return event(Event::Failed(error));
            }
        };
        let unit = self.sets.complete(unit, class);
        let key = class == Class::I;
        self.take(&unit, (&picture, key), Unit::Wanted, wanted, event);
    }

    /// Decodes a unit only as a reference of later ones, for instance one that the receiver got unchanged
    /// before [`Self::push`] replaces the stream. It has no event, and its picture is not encoded, even if
    /// the decoder presents it later. `wanted` and `event` are for units that were pushed before.
    pub fn catch_up(
        &mut self,
        unit: &[u8],
        class: Class,
        wanted: &mut dyn FnMut(u64) -> Want,
        event: &mut dyn FnMut(Event),
    ) {
        let Ok(Scan { picture, .. }) = self.scan(unit) else { return };
        let unit = self.sets.complete(unit, class);
        let key = class == Class::I;
        self.take(&unit, (&picture, key), Unit::Received, wanted, event);
    }

    fn take(
        &mut self,
        unit: &[u8],
        (picture, key): (&Picture, bool),
        kind: Unit,
        wanted: &mut dyn FnMut(u64) -> Want,
        event: &mut dyn FnMut(Event),
    ) {
        let sps = picture.pps.and_then(|pps| self.params.of(pps)).map(|(sps, _)| *sps);
        if picture.idr {
            self.flush(wanted, event);
            self.begin(sps);
        } else if self.changed(sps) {
            self.lose(changed(), wanted, event);
        }
        if picture.idr {
            self.refresh = 0;
        } else if picture.reference {
            self.refresh = self.refresh.saturating_sub(1);
        }
        if key && !picture.idr && self.source.is_err() {
            self.begin_open(sps, picture);
            self.refresh = picture.recovery.unwrap_or(0);
        }
        let kind = if self.refresh > 0 && kind == Unit::Wanted { Unit::Incomplete } else { kind };
        let order = self.order.of(picture);
        if self.open {
            self.decode(&blank::permit_gaps(unit), (order, kind), wanted, event);
        } else {
            self.decode(unit, (order, kind), wanted, event);
        }
    }

    /// Prepares the decoder for a key picture that is not IDR.
    fn begin_open(&mut self, sps: Option<Sps>, picture: &Picture) {
        let Some((sps, slice)) = sps.zip(picture.slice) else { return };
        let Some(units) = blank::before(&self.sets.all_of(sps.id), &sps, &slice) else { return };
        self.begin(Some(sps));
        self.open = true;
        for unit in units {
            let Ok(Scan { picture, .. }) = self.scan(&unit) else { return };
            let order = self.order.of(&picture);
            self.decode(&unit, (order, Unit::Received), &mut |_| Want::No, &mut |_| ());
        }
    }

    /// Reports the events of all units pushed so far, at the end of a stream.
    ///
    /// The next unit pushed should be an I unit.
    pub fn flush(&mut self, wanted: &mut dyn FnMut(u64) -> Want, event: &mut dyn FnMut(Event)) {
        let Self { source, coder, to, .. } = self;
        if let Ok(source) = source {
            for picture in source.rest() {
                let counts = (&mut self.owed, &mut self.shown);
                present(&picture, *to, coder, counts, wanted, event);
            }
        }
        let owed = std::mem::take(&mut self.owed.units);
        if !owed.is_empty() {
            // The decoder may still wait for the rest of a picture.
            self.source = Err(damaged());
        }
        for _ in owed.values().filter(|unit| **unit != Unit::Received) {
            event(Event::Failed(swallowed()));
        }
    }

    /// Checks that `unit` is exactly one access unit.
    fn scan(&mut self, unit: &[u8]) -> Result<Scan, MediaError> {
        match scan(unit, 0, &mut self.params)? {
            Some(found) if found.end == unit.len() => Ok(found),
            Some(found) => Err(MediaError::VideoStream {
                codec: CODEC,
                at: found.end,
                reason: "a second picture begins in one access unit".to_owned(),
                fix: "cut the stream with h264::split and push unit by unit",
            }),
            None => Err(super::scan::no_slice(unit, 0)),
        }
    }

    /// Prepares the decoder for an I unit with this SPS.
    fn begin(&mut self, sps: Option<Sps>) {
        let bytes = sps.and_then(|sps| self.sets.sps(sps.id));
        let was_open = std::mem::take(&mut self.open);
        if let Ok(source) = &self.source
            && source.is_fit_for(bytes)
            && !was_open
        {
            return;
        }
        self.source = match (sps, bytes) {
            (Some(sps), Some(bytes)) => self.open(&sps, bytes),
            _ => Err(MediaError::H264Decode {
                reason: "its SPS or PPS is missing or cannot be read".to_owned(),
                fix: "have the sender put parameter sets before each I unit",
            }),
        };
        self.coder.set_colour(sps.and_then(|sps| sps.colour));
        let size = self.source.as_ref().map(|source| source.size).ok();
        if size.is_some() && self.size != size {
            self.size = size;
            self.coder.request_key();
        }
    }

    fn open(&self, sps: &Sps, bytes: &[u8]) -> Result<Source, MediaError> {
        let size = sps.info().size;
        match self.to {
            Some(asked) if !asked.fits(size) => {
                Err(MediaError::SizeAboveSource { asked, source_size: size })
            }
            Some(_) => Source::open(sps, bytes),
            None => check_target(size).and_then(|()| Source::open(sps, bytes)),
        }
    }

    /// Returns true if a unit that is not I has another SPS than the decoder.
    ///
    /// The decoder must not receive it: it would lose its buffered pictures.
    fn changed(&self, sps: Option<Sps>) -> bool {
        let bytes = sps.and_then(|sps| self.sets.sps(sps.id));
        self.source.as_ref().is_ok_and(|source| bytes.is_some() && !source.is_of(bytes))
    }

    /// Drops the decoder until the next I unit.
    fn lose(
        &mut self,
        reason: MediaError,
        wanted: &mut dyn FnMut(u64) -> Want,
        event: &mut dyn FnMut(Event),
    ) {
        self.flush(wanted, event);
        if self.source.is_ok() {
            self.source = Err(reason);
        }
    }

    fn decode(
        &mut self,
        unit: &[u8],
        (order, kind): (Option<i64>, Unit),
        wanted: &mut dyn FnMut(u64) -> Want,
        event: &mut dyn FnMut(Event),
    ) {
        let Self { source, coder, to, owed, shown, .. } = self;
        let source = match source {
            Ok(source) => source,
            Err(error) => {
                let error = error.clone();
                if kind != Unit::Received {
                    event(Event::Failed(error));
                }
                return;
            }
        };
        match source.decode(unit) {
            Ok(picture) => {
                owed.add(order, kind);
                if let Some(picture) = picture {
                    present(&picture, *to, coder, (owed, shown), wanted, event);
                }
                if source.lost(owed.units.len() as u64) {
                    self.lose(damaged(), wanted, event);
                }
            }
            Err(error) => {
                self.lose(damaged(), wanted, event);
                if kind != Unit::Received {
                    event(Event::Failed(error));
                }
            }
        }
    }
}

/// Whether a unit has an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// It was pushed.
    Wanted,
    /// It was pushed, but its picture is not correct: the decoder began in a gradual refresh.
    Incomplete,
    /// The receiver already has it.
    Received,
}

/// The decoded units whose pictures were not presented, by picture order and number.
#[derive(Default)]
struct Owed {
    units: BTreeMap<(i64, u64), Unit>,
    added: u64,
}

impl Owed {
    /// Adds a unit; without an `order`, pictures are presented as they are decoded.
    fn add(&mut self, order: Option<i64>, unit: Unit) {
        self.added += 1;
        let number = self.added;
        let order = order.unwrap_or_else(|| i64::try_from(number).unwrap_or(i64::MAX));
        self.units.insert((order, number), unit);
    }
}

/// Returns the reason why units fail after a failed one.
fn damaged() -> MediaError {
    let fix = "wait for the next I unit";
    MediaError::H264Decode { reason: "an earlier unit was damaged".to_owned(), fix }
}

fn changed() -> MediaError {
    MediaError::H264Decode {
        reason: "the SPS changes at a unit that is not I".to_owned(),
        fix: "have the sender change parameter sets at I units only",
    }
}

fn incomplete() -> MediaError {
    MediaError::H264Decode {
        reason: "the stream began in a gradual refresh, which is not complete".to_owned(),
        fix: "wait for the next pictures",
    }
}

fn swallowed() -> MediaError {
    let fix = "wait for the next I unit";
    MediaError::H264Decode { reason: "the decoder gave no picture for it".to_owned(), fix }
}

/// Counts a picture, and encodes it if it is wanted.
fn present(
    picture: &openh264::decoder::DecodedYUV<'_>,
    to: Option<Size>,
    coder: &mut Coder,
    (owed, shown): (&mut Owed, &mut u64),
    wanted: &mut dyn FnMut(u64) -> Want,
    event: &mut dyn FnMut(Event),
) {
    match owed.units.pop_first() {
        // The unit was already reported as failed, or has no event.
        None | Some((_, Unit::Received)) => return,
        Some((_, Unit::Incomplete)) => return event(Event::Failed(incomplete())),
        Some((_, Unit::Wanted)) => {}
    }
    let number = *shown;
    *shown += 1;
    let limit = match wanted(number) {
        Want::No => return event(Event::Passed),
        Want::Yes => None,
        Want::Within(limit) => Some(limit),
    };
    event(match coder.code(picture, to, limit) {
        Ok(Some((class, bytes))) => Event::Coded { class, bytes },
        Ok(None) => Event::OverLimit,
        Err(error) => Event::Failed(error),
    });
}
