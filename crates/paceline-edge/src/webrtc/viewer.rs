//! A peer that receives the tracks of a request (WHEP).

use super::clock::ViewerClock;
use super::codecs::{missing, profile, suits, with_codec};
use super::offer::{OfferError, WebrtcOffer};
use super::peer::{Peer, PeerDatagram, PeerEvent, PeerFigures, media};
use super::setup::PeerSetup;
use crate::packetize::PAYLOAD_MAX;
use crate::timing::CatchUp;
use crate::track::{TrackFormat, TrackKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use str0m::Rtc;
use str0m::bwe::Bitrate;
use str0m::media::{Direction, MediaKind, MediaTime, Mid, Pt};
use str0m::rtp::{ExtensionValues, RtpWrite};

/// The bytes that wait in a session before it takes the next unit. The rest waits where whole pictures can be left out.
const QUEUE_BYTES: usize = 24 << 10;
/// The least rate in bit/s that a session probes for, and the factor of the rate of its units, so that key pictures leave quickly.
const PROBE_BITS: u64 = 3_000_000;
const PROBE_FACTOR: u64 = 3;

/// A unit for a viewer: a picture or a block of sound, cut into payloads that all viewers share.
#[derive(Clone, Copy, Debug)]
pub struct ViewerUnit<'a> {
    /// The payloads, each with its marker bit and its time after `time`.
    pub payloads: &'a [(Arc<[u8]>, bool, u32)],
    /// The presentation time in units of the clock rate.
    pub time: i64,
    /// The time since its capture.
    pub age: Duration,
    /// It is shown before a picture that precedes it (a B picture), and is left out.
    pub reordered: bool,
    /// It is the first one of those that are sent when the viewer joins, or again.
    pub start: Option<CatchUp>,
}

#[derive(Debug)]
struct Track {
    mid: Mid,
    payload_type: Pt,
    sequence: u64,
    offset: u32,
    clock: ViewerClock,
    pictures: bool,
}

/// The session of a viewer.
///
/// The caller passes each datagram of the peer to [`Self::receive`], calls [`Self::wake`] when [`Self::due`] has passed, and sends
/// the datagrams of [`Self::datagram`].
#[derive(Debug)]
pub struct ViewerPeer {
    peer: Peer,
    tracks: Vec<Track>,
    user: String,
    /// The B pictures that were left out.
    pub reordered: u64,
    /// The blocks of sound that do not fit a packet.
    pub large: u64,
}

/// A track of a request, for the answer.
#[derive(Clone, Copy, Debug)]
struct Wanted<'a> {
    format: TrackFormat,
    key: Option<&'a [u8]>,
    offset: u32,
}

impl ViewerPeer {
    /// Accepts an offer for tracks of these formats, each with a key picture if one is known, and a random number. Returns the
    /// session and its answer.
    ///
    /// # Errors
    /// [`OfferError`] if the offer lacks a track or its codec, or is no session description.
    pub fn accept(
        setup: &PeerSetup,
        offer: WebrtcOffer,
        tracks: &[(TrackFormat, Option<&[u8]>, u32)],
        now: Instant,
    ) -> Result<(Self, String), OfferError> {
        let local = setup.local().ok_or_else(|| OfferError::sdp("the server has no address"))?;
        let formats = tracks.iter().map(|(format, ..)| *format);
        let mut rtc = setup
            .open(&offer, now, |config| formats.fold(config.set_rtp_mode(true), with_codec))?;
        let answer = rtc.sdp_api().accept_offer(offer.sdp).map_err(OfferError::sdp)?;
        let mut peer = Peer::new(rtc, local, now);
        let media = media(&peer.rtc, &offer.mids);
        let mut found = Vec::new();
        for (format, key, offset) in tracks {
            let wanted = Wanted { format: *format, key: *key, offset: *offset };
            found.push(track(&peer.rtc, &media, wanted)?);
        }
        let user = peer.rtc.direct_api().local_ice_credentials().ufrag;
        peer.drain(now);
        Ok((Self { peer, tracks: found, user, reordered: 0, large: 0 }, answer.to_sdp_string()))
    }

    /// Returns the user fragment of this side, which the checks of the peer contain.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Returns the time at which [`Self::wake`] is due.
    #[must_use]
    pub const fn due(&self) -> Instant {
        self.peer.due()
    }

    /// Lets time pass.
    pub fn wake(&mut self, now: Instant) {
        self.peer.wake(now);
    }

    /// Takes a datagram of the peer. Others are ignored.
    pub fn receive(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.peer.receive(now, from, bytes);
    }

    /// Returns the next datagram for the peer.
    pub fn datagram(&mut self) -> Option<PeerDatagram> {
        self.peer.datagrams.pop_front()
    }

    /// Returns the next event.
    pub fn event(&mut self) -> Option<PeerEvent> {
        self.peer.events.pop_front()
    }

    /// Returns the number of a track that a key picture is requested of.
    #[must_use]
    pub fn track_of(&self, mid: Mid) -> Option<usize> {
        self.tracks.iter().position(|track| track.mid == mid)
    }

    /// Returns the figures of the session.
    #[must_use]
    pub const fn figures(&self) -> PeerFigures {
        self.peer.figures
    }

    /// Returns true if the next unit can be taken. The path to the peer may be slower than the units.
    pub fn has_room(&mut self) -> bool {
        let mut direct = self.peer.rtc.direct_api();
        let waiting = self.tracks.iter().filter(|track| track.pictures).map(|track| {
            let stream = direct.stream_tx_by_mid(track.mid, None);
            stream.and_then(|stream| Some(stream.queue_info()?.byte_size())).unwrap_or_default()
        });
        waiting.sum::<usize>() < QUEUE_BYTES
    }

    /// Notes the rate of the units in bit/s: congestion control probes for some more.
    pub fn expect(&mut self, bits_per_s: u64) {
        let wanted = bits_per_s.saturating_mul(PROBE_FACTOR).max(PROBE_BITS);
        self.peer.rtc.bwe().set_bitrate(Bitrate::bps(0), Bitrate::bps(wanted));
    }

    /// Sends a unit of a track. B pictures are left out: viewers do not reorder pictures.
    pub fn send(&mut self, number: usize, unit: ViewerUnit<'_>, now: Instant) {
        let Some(track) = self.tracks.get_mut(number) else { return };
        // A packet of Opus cannot be divided.
        if unit.payloads.iter().any(|(payload, ..)| payload.len() > PAYLOAD_MAX) {
            self.large += 1;
            return;
        }
        if unit.reordered {
            self.reordered += 1;
            return;
        }
        let time = track.clock.take(unit.time, unit.start);
        let [_, _, _, _, low @ ..] = time.to_be_bytes();
        let time = u32::from_be_bytes(low).wrapping_add(track.offset);
        let wallclock = now.checked_sub(unit.age).unwrap_or(now);
        // The viewer shows pictures at once instead of smoothing their arrival.
        let at_once = track.pictures.then_some(MediaTime::ZERO);
        let extensions = ExtensionValues {
            play_delay_min: at_once,
            play_delay_max: at_once,
            ..ExtensionValues::default()
        };
        for (payload, marker, after) in unit.payloads {
            let packet = RtpWrite::new(
                track.payload_type,
                track.sequence.into(),
                time.wrapping_add(*after),
                wallclock,
                payload.clone(),
            );
            let packet = packet.marker(*marker).nackable(track.pictures);
            let packet = packet.ext_vals(extensions.clone());
            track.sequence += 1;
            let mut direct = self.peer.rtc.direct_api();
            if let Some(stream) = direct.stream_tx_by_mid(track.mid, None) {
                stream.write_rtp(packet);
            }
        }
        self.peer.wake(now);
    }

    /// Ends the session.
    pub fn close(&mut self, now: Instant) {
        self.peer.close(now);
    }
}

/// Returns the track of a format: the first medium of its kind that the peer receives, with the best payload.
fn track(
    rtc: &Rtc,
    media: &[(Mid, MediaKind, Direction)],
    wanted: Wanted<'_>,
) -> Result<Track, OfferError> {
    let (kind, missing_kind) = match wanted.format.kind() {
        TrackKind::Pictures => (MediaKind::Video, ("video that it receives", "video")),
        TrackKind::Sound => (MediaKind::Audio, ("audio that it receives", "audio")),
    };
    let mut fitting = media.iter().filter(|(_, other, to)| *other == kind && to.is_sending());
    let (mid, ..) = fitting.next().ok_or(OfferError::Missing(missing_kind.0, missing_kind.1))?;
    let profile = wanted.key.filter(|_| wanted.format == TrackFormat::H264).and_then(profile);
    let offered = rtc.media(*mid).map(|media| media.remote_pts()).unwrap_or_default();
    let known = offered
        .iter()
        .filter_map(|pt| rtc.codec_config().params().iter().find(|params| params.pt() == *pt));
    // The first of equal ones, which the peer prefers.
    let best = known
        .filter_map(|params| Some((suits(params, wanted.format, profile)?, params.pt())))
        .fold(None, |best: Option<(u8, Pt)>, next| match best {
            Some(best) if best.0 >= next.0 => Some(best),
            Some(_) | None => Some(next),
        });
    let (_, payload_type) = best.ok_or_else(|| missing(wanted.format))?;
    let [_, _, high, low] = wanted.offset.to_be_bytes();
    Ok(Track {
        mid: *mid,
        payload_type,
        // The lower half of the numbers, so that the receiver needs no rollover counter at the beginning.
        sequence: u64::from(u16::from_be_bytes([high & 0x7f, low])),
        offset: wanted.offset,
        clock: ViewerClock::new(wanted.format.clock_rate()),
        pictures: wanted.format.kind() == TrackKind::Pictures,
    })
}
