//! A peer whose tracks become samples (WHIP).

use super::codecs::{missing, with_codec};
use super::offer::{OfferError, WebrtcOffer};
use super::peer::{Peer, PeerDatagram, PeerEvent, PeerFigures, media};
use super::setup::PeerSetup;
use crate::clock::{CaptureClock, Captured};
use crate::fault::{Losses, UnitFault};
use crate::gate::Gate;
use crate::track::{TrackFormat, TrackKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use str0m::Rtc;
use str0m::format::{Codec, PayloadParams};
use str0m::media::{Frequency, MediaData, MediaKind, Mid};

/// The shortest time between two requests for a key picture after a loss.
const REPAIR_EVERY: Duration = Duration::from_millis(300);
/// The time between two key pictures: browsers send them only on request, and a late subscriber decodes from one on.
const KEY_EVERY: Duration = Duration::from_secs(2);
/// The part of the bound of capture times that is the path: half of the longest round trip that a browser would use for a call.
const PATH_NS: u64 = 200_000_000;

/// A picture or a block of sound of a publisher.
#[derive(Clone, Debug)]
pub struct PublishedUnit {
    /// Its format, which may change.
    pub format: TrackFormat,
    /// The picture in Annex B, or the block.
    pub bytes: Vec<u8>,
    /// The arrival of its first packet.
    pub arrived: Instant,
    /// The time of its capture before the arrival.
    pub captured: Captured,
    /// It needs no earlier unit.
    pub key: bool,
}

#[derive(Debug)]
struct Track {
    mid: Mid,
    number: usize,
    rate: u32,
    gate: Option<(Codec, Gate)>,
    /// The last request for a key picture.
    asked: Option<Instant>,
    losses: Losses,
}

/// The session of a publisher, driven as a [`ViewerPeer`](super::ViewerPeer).
#[derive(Debug)]
pub struct PublisherPeer {
    peer: Peer,
    user: String,
    pictures: Option<Track>,
    sound: Option<Track>,
    clock: CaptureClock,
    begun: Instant,
}

impl PublisherPeer {
    /// Accepts an offer with pictures, or with sound alone. Sound next to pictures is accepted with `wants_sound`.
    ///
    /// # Errors
    /// [`OfferError`] for an offer without tracks, without H.264, H.265, Opus or G.711, or that is no session description.
    pub fn accept(
        setup: &PeerSetup,
        offer: WebrtcOffer,
        wants_sound: bool,
        now: Instant,
    ) -> Result<(Self, String), OfferError> {
        let local = setup.local().ok_or_else(|| OfferError::sdp("the server has no address"))?;
        let has_video = offer.has_video;
        let mut formats = vec![TrackFormat::H264, TrackFormat::H265];
        if wants_sound || !has_video {
            formats.push(TrackFormat::Opus { channels: 2 });
            formats.push(TrackFormat::Pcmu { rate: 8_000, channels: 1 });
            formats.push(TrackFormat::Pcma { rate: 8_000, channels: 1 });
        }
        let mut rtc =
            setup.open(&offer, now, |config| formats.into_iter().fold(config, with_codec))?;
        let answer = rtc.sdp_api().accept_offer(offer.sdp).map_err(OfferError::sdp)?;
        let mut peer = Peer::new(rtc, local, now);
        let media = media(&peer.rtc, &offer.mids);
        let find = |kind| {
            let mut all = media.iter().filter(|(_, other, to)| *other == kind && to.is_receiving());
            all.next().map(|(mid, ..)| *mid)
        };
        let (video, audio) = (find(MediaKind::Video), find(MediaKind::Audio));
        if video.is_none() && audio.is_none() {
            return Err(OfferError::NoTracks);
        }
        let named = |mid: Mid, format| {
            if has_codec(&peer.rtc, mid) { Ok(mid) } else { Err(missing(format)) }
        };
        let video = video.map(|mid| named(mid, TrackFormat::H264)).transpose()?;
        let audio = audio.filter(|_| wants_sound || !has_video);
        let audio = audio.map(|mid| named(mid, TrackFormat::Opus { channels: 2 })).transpose()?;
        if wants_sound && audio.is_none() {
            return Err(OfferError::Missing("audio that it sends", "audio"));
        }
        let pictures = video.map(|mid| Track::new(mid, 0, 90_000, TrackKind::Pictures));
        let sound = audio.map(|mid| Track::new(mid, 1, 48_000, TrackKind::Sound));
        let user = peer.rtc.direct_api().local_ice_credentials().ufrag;
        peer.drain(now);
        let clock = CaptureClock::new(&[90_000, 48_000], PATH_NS);
        Ok((Self { peer, user, pictures, sound, clock, begun: now }, answer.to_sdp_string()))
    }

    /// Returns true if the peer sends pictures.
    #[must_use]
    pub const fn has_pictures(&self) -> bool {
        self.pictures.is_some()
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

    /// Returns the figures of the session.
    #[must_use]
    pub const fn figures(&self) -> PeerFigures {
        self.peer.figures
    }

    /// Returns the pictures and blocks that were left out, by reason.
    #[must_use]
    pub fn losses(&self) -> String {
        let tracks = self.pictures.iter().chain(&self.sound);
        let texts = tracks.filter(|track| track.losses.total() > 0);
        texts.map(|track| track.losses.to_string()).collect::<Vec<_>>().join("; ")
    }

    /// Returns the next picture or block. Requests a key picture after a loss, and each 2 s.
    pub fn unit(&mut self, now: Instant) -> Option<PublishedUnit> {
        while let Some(data) = self.peer.media.pop_front() {
            let tracks = [&mut self.pictures, &mut self.sound];
            let mut own = tracks.into_iter().flatten().filter(|track| track.mid == data.mid);
            let Some(track) = own.next() else { continue };
            let unit = track.take(&data, (&mut self.clock, self.begun));
            let due = match &unit {
                Ok(Some(unit)) if unit.key => {
                    track.asked = Some(now);
                    None
                }
                Ok(_) => Some(KEY_EVERY),
                Err(fault) => {
                    track.losses.add(*fault);
                    Some(REPAIR_EVERY)
                }
            };
            let is_due =
                |every| track.asked.is_none_or(|at| now.saturating_duration_since(at) >= every);
            if track.gate.is_some() && due.is_some_and(is_due) {
                track.asked = Some(now);
                self.peer.request_key(track.mid, now);
            }
            if let Ok(Some(unit)) = unit {
                return Some(unit);
            }
        }
        None
    }

    /// Ends the session.
    pub fn close(&mut self, now: Instant) {
        self.peer.close(now);
    }
}

impl Track {
    fn new(mid: Mid, number: usize, rate: u32, kind: TrackKind) -> Self {
        Self { mid, number, rate, gate: None, asked: None, losses: Losses::of(kind) }
    }

    /// Returns the unit of some media, if it can be decoded.
    fn take(
        &mut self,
        data: &MediaData,
        (clock, begun): (&mut CaptureClock, Instant),
    ) -> Result<Option<PublishedUnit>, UnitFault> {
        let Some(format) = format_of(&data.params) else { return Ok(None) };
        let (mut bytes, mut key) = (data.data.to_vec(), false);
        if let Some(codec) = format.codec() {
            let named = data.params.spec().codec;
            if self.gate.as_ref().is_none_or(|(known, _)| *known != named) {
                self.gate = Some((named, Gate::new(codec, &[])));
            }
            let Some((_, gate)) = &mut self.gate else { return Ok(None) };
            if !data.contiguous {
                gate.lose();
            }
            bytes = gate.take(&bytes)?;
            key = data.is_keyframe();
        }
        let frequency = Frequency::new(self.rate).unwrap_or(Frequency::NINETY_KHZ);
        let time = i64::try_from(data.time.rebase(frequency).numer()).unwrap_or(i64::MAX);
        let now = data.network_time.saturating_duration_since(begun).as_nanos();
        let captured = clock.capture(self.number, time, u64::try_from(now).unwrap_or(u64::MAX));
        Ok(Some(PublishedUnit { format, bytes, arrived: data.network_time, captured, key }))
    }
}

/// Returns true if a medium has a codec in common.
fn has_codec(rtc: &Rtc, mid: Mid) -> bool {
    rtc.media(mid).is_some_and(|media| !media.remote_pts().is_empty())
}

/// Returns the format of received media.
fn format_of(params: &PayloadParams) -> Option<TrackFormat> {
    match params.spec().codec {
        Codec::H264 => Some(TrackFormat::H264),
        Codec::H265 => Some(TrackFormat::H265),
        Codec::Opus => Some(TrackFormat::Opus { channels: 2 }),
        Codec::PCMU => Some(TrackFormat::Pcmu { rate: 8_000, channels: 1 }),
        Codec::PCMA => Some(TrackFormat::Pcma { rate: 8_000, channels: 1 }),
        Codec::G722
        | Codec::CN
        | Codec::AmrWb
        | Codec::H266
        | Codec::Vp8
        | Codec::Vp9
        | Codec::Tele
        | _ => None,
    }
}
