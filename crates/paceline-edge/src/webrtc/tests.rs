//! Sessions with a peer of str0m's own, in virtual time over a virtual path.

use super::{
    OfferError, PeerEvent, PeerSetup, PublisherPeer, ViewerPeer, ViewerUnit, WebrtcOffer, stun_user,
};
use crate::track::TrackFormat;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use str0m::change::SdpAnswer;
use str0m::media::{Direction, KeyframeRequestKind, MediaKind, Mid};
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, Input, Output, Rtc, RtcConfig};

const SERVER: &str = "192.0.2.1:8471";
const CLIENT: &str = "192.0.2.2:5000";
const STEP: Duration = Duration::from_millis(1);
/// The delay of the path in steps.
const DELAY: usize = 10;

/// Returns an origin of time, which passes by steps.
#[expect(clippy::disallowed_methods, reason = "an Instant has no other origin")]
pub(super) fn begin() -> Instant {
    Instant::now()
}

fn at(address: &str) -> SocketAddr {
    address.parse().unwrap()
}

fn setup() -> PeerSetup {
    PeerSetup::new(vec![at(SERVER)]).unwrap()
}

/// A browser: it offers to receive a video.
struct Browser {
    rtc: Rtc,
    mid: Mid,
    received: Vec<(u16, u32, bool)>,
}

/// A viewer's session and its browser, with a path that loses each `lossy`-th packet of the server and has a rate.
struct World {
    now: Instant,
    server: ViewerPeer,
    browser: Browser,
    to_browser: VecDeque<(usize, Vec<u8>)>,
    to_server: VecDeque<(usize, Vec<u8>)>,
    step: usize,
    lossy: usize,
    bytes_per_step: usize,
    backlog: usize,
    sent: usize,
    events: Vec<PeerEvent>,
}

fn offer(now: Instant) -> (Rtc, Mid, String, str0m::change::SdpPendingOffer) {
    let mut rtc = RtcConfig::new()
        .set_crypto_provider(Arc::new(str0m::crypto::from_feature_flags()))
        .set_rtp_mode(true)
        .build(now);
    rtc.add_local_candidate(Candidate::host(at(CLIENT), "udp").unwrap());
    let mut api = rtc.sdp_api();
    let mid = api.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
    let (offer, pending) = api.apply().unwrap();
    (rtc, mid, offer.to_sdp_string(), pending)
}

impl World {
    fn new(lossy: usize, bytes_per_step: usize) -> Self {
        let now = begin();
        let (mut rtc, mid, text, pending) = offer(now);
        let tracks = [(TrackFormat::H264, None, u32::MAX - 1_000)];
        let offer = WebrtcOffer::parse(&text).unwrap();
        let (server, answer) = ViewerPeer::accept(&setup(), offer, &tracks, now).unwrap();
        assert!(answer.contains("a=ice-lite") && answer.contains("H264"), "{answer}");
        let answer = SdpAnswer::from_sdp_string(&answer).unwrap();
        rtc.sdp_api().accept_answer(pending, answer).unwrap();
        Self {
            now,
            server,
            browser: Browser { rtc, mid, received: Vec::new() },
            to_browser: VecDeque::new(),
            to_server: VecDeque::new(),
            step: 0,
            lossy,
            bytes_per_step,
            backlog: 0,
            sent: 0,
            events: Vec::new(),
        }
    }

    /// Lets 1 ms pass.
    fn step(&mut self) {
        self.step += 1;
        self.now += STEP;
        if self.server.due() <= self.now {
            self.server.wake(self.now);
        }
        while let Some(datagram) = self.server.datagram() {
            assert_eq!(datagram.to, at(CLIENT));
            self.sent += 1;
            self.backlog += datagram.bytes.len();
            if self.lossy == 0 || !self.sent.is_multiple_of(self.lossy) {
                let waits = self.backlog / self.bytes_per_step;
                self.to_browser.push_back((self.step + DELAY + waits, datagram.bytes));
            }
        }
        self.backlog = self.backlog.saturating_sub(self.bytes_per_step);
        while self.to_server.front().is_some_and(|(due, _)| *due <= self.step) {
            let (_, bytes) = self.to_server.pop_front().unwrap();
            self.server.receive(self.now, at(CLIENT), &bytes);
        }
        while let Some(event) = self.server.event() {
            self.events.push(event);
        }
        while self.to_browser.front().is_some_and(|(due, _)| *due <= self.step) {
            let (_, bytes) = self.to_browser.pop_front().unwrap();
            let receive = Receive {
                proto: Protocol::Udp,
                source: at(SERVER),
                destination: at(CLIENT),
                contents: bytes.as_slice().try_into().unwrap(),
            };
            self.browser.rtc.handle_input(Input::Receive(self.now, receive)).unwrap();
            self.poll();
        }
        self.browser.rtc.handle_input(Input::Timeout(self.now)).unwrap();
        self.poll();
    }

    fn poll(&mut self) {
        loop {
            match self.browser.rtc.poll_output().unwrap() {
                Output::Timeout(_) => return,
                Output::Transmit(out) => {
                    self.to_server.push_back((self.step + DELAY, out.contents.to_vec()));
                }
                Output::Event(Event::RtpPacket(packet)) => {
                    let header = packet.header;
                    let got = (header.sequence_number, header.timestamp, header.marker);
                    self.browser.received.push(got);
                }
                Output::Event(_) => {}
            }
        }
    }

    fn connect(&mut self) {
        for _ in 0..5_000 {
            self.step();
            if self.events.contains(&PeerEvent::Connected) {
                return;
            }
        }
        panic!("not connected: {:?}", self.events);
    }

    /// Sends a picture of `packets` packets.
    fn picture(&mut self, number: i64, packets: usize) {
        let payloads: Vec<(Arc<[u8]>, bool, u32)> =
            (1..=packets).map(|at| (Arc::from(vec![7; 1_200]), at == packets, 0)).collect();
        let unit = ViewerUnit {
            payloads: &payloads,
            time: number * 3_000,
            age: Duration::from_millis(5),
            reordered: false,
            start: None,
        };
        self.server.send(0, unit, self.now);
    }
}

#[test]
fn pictures_arrive_whole_and_in_order_over_a_path_with_losses() {
    for lossy in [0, 13] {
        let mut world = World::new(lossy, 100_000);
        world.connect();
        for number in 0..60 {
            world.picture(number, 3);
            (0..33).for_each(|_| world.step());
        }
        (0..500).for_each(|_| world.step());
        let mut got = world.browser.received.clone();
        // Their numbers and times pass 2^16 and 2^32.
        let (first, base) = (got[0].0, got[0].1);
        got.sort_by_key(|(number, ..)| number.wrapping_sub(first));
        got.dedup_by_key(|(number, ..)| *number);
        assert_eq!(got.len(), 180, "loss of 1 in {lossy}");
        for (place, (number, time, marker)) in got.iter().enumerate() {
            assert_eq!(usize::from(number.wrapping_sub(first)), place);
            assert_eq!(usize::try_from(time.wrapping_sub(base)).unwrap(), place / 3 * 3_000);
            assert_eq!(*marker, place % 3 == 2);
        }
        let figures = world.server.figures();
        assert!(figures.estimate_bits_per_s.is_some_and(|bits| bits > 500_000), "{figures:?}");
        assert!(figures.round_trip.is_some(), "{figures:?}");
        assert_eq!(figures.nacks > 0, lossy > 0, "{figures:?}");
    }
}

#[test]
fn a_slow_path_takes_no_more_units_and_lowers_the_estimate() {
    // 0.8 Mbit/s, and pictures of 3.5 Mbit/s.
    let mut world = World::new(0, 100);
    world.connect();
    let (mut sent, mut full, mut lowest) = (0, 0, u64::MAX);
    for number in 0..300 {
        if world.server.has_room() {
            world.picture(number, 12);
            sent += 1;
        } else {
            full += 1;
        }
        (0..33).for_each(|_| world.step());
        let estimate = world.server.figures().estimate_bits_per_s.unwrap_or(u64::MAX);
        lowest = lowest.min(estimate);
    }
    assert!(full > 100, "{sent} sent, {full} left out");
    assert!(lowest < 1_000_000, "{lowest} bit/s");
}

#[test]
fn a_request_for_a_key_picture_names_the_track() {
    let mut world = World::new(0, 100_000);
    world.connect();
    world.picture(0, 2);
    (0..100).for_each(|_| world.step());
    let mid = world.browser.mid;
    let mut direct = world.browser.rtc.direct_api();
    direct.stream_rx_by_mid(mid, None).unwrap().request_keyframe(KeyframeRequestKind::Pli);
    world.poll();
    (0..100).for_each(|_| world.step());
    let asked = world.events.iter().find_map(|event| match event {
        PeerEvent::KeyRequest(mid) => Some(*mid),
        PeerEvent::Connected | PeerEvent::Silent | PeerEvent::Ended(_) => None,
    });
    assert_eq!(asked.and_then(|mid| world.server.track_of(mid)), Some(0));
}

#[test]
fn offers_without_the_tracks_are_refused_with_the_reason() {
    let now = begin();
    let (.., text, _) = offer(now);
    let accept = |text: &str, format| {
        let offer = WebrtcOffer::parse(text)?;
        ViewerPeer::accept(&setup(), offer, &[(format, None, 7)], now).map(|(_, answer)| answer)
    };
    assert!(accept(&text, TrackFormat::H264).is_ok());
    let sound = accept(&text, TrackFormat::Opus { channels: 2 }).unwrap_err();
    assert!(matches!(sound, OfferError::Missing(..)), "{sound}");
    let other = accept(&text.replace("H264", "H999"), TrackFormat::H264).unwrap_err();
    assert!(matches!(other, OfferError::Codec { .. }), "{other}");
    let candidates = "a=candidate:1 1 udp 1 10.0.0.1 5000 typ host\r\n".repeat(1_000);
    let answer = accept(&format!("{text}{candidates}"), TrackFormat::H264).unwrap();
    assert!(!answer.contains("10.0.0.1"));
    assert!(matches!(
        WebrtcOffer::parse(&"m=video 9 x 1\r\n".repeat(9)),
        Err(OfferError::Media(9))
    ));
    assert!(matches!(WebrtcOffer::parse(&"a".repeat(70_000)), Err(OfferError::Long(70_000))));
    // It sends nothing.
    let published = PublisherPeer::accept(&setup(), WebrtcOffer::parse(&text).unwrap(), false, now);
    assert_eq!(published.err(), Some(OfferError::NoTracks));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_offer_is_answered(cut in 0_usize..4_000, from in 0_usize..4_000, with in "\\PC{0,20}", twice in any::<bool>()) {
        let now = begin();
        let (.., text, _) = offer(now);
        let mut bytes: Vec<char> = text.chars().collect();
        bytes.truncate(cut.max(1));
        let place = from % bytes.len();
        bytes.splice(place..place, with.chars());
        let mut text: String = bytes.into_iter().collect();
        if twice {
            text = text.repeat(2);
        }
        for publishes in [false, true] {
            let Ok(offer) = WebrtcOffer::parse(&text) else { continue };
            if publishes {
                let _ = PublisherPeer::accept(&setup(), offer, true, now);
            } else {
                let _ = ViewerPeer::accept(&setup(), offer, &[(TrackFormat::H264, None, 7)], now);
            }
        }
    }

    #[test]
    fn any_datagrams_are_taken(datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..50)) {
        let mut world = World::new(0, 100_000);
        for bytes in &datagrams {
            let _ = stun_user(bytes);
            world.server.receive(world.now, at(CLIENT), bytes);
        }
        world.connect();
        for bytes in &datagrams {
            world.server.receive(world.now, at(CLIENT), bytes);
        }
        world.picture(0, 2);
        (0..50).for_each(|_| world.step());
        prop_assert_eq!(world.browser.received.len(), 2);
    }
}
