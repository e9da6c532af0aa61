//! One peer's session: datagrams in, datagrams and events out.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use str0m::bwe::BweKind;
use str0m::media::{Direction, KeyframeRequestKind, MediaData, MediaKind, Mid};
use str0m::net::{Protocol, Receive};
use str0m::{Event, IceConnectionState, Input, Output, Rtc};

/// Most timeouts that pass within one call.
const TIMEOUTS_MAX: usize = 64;

/// A datagram for a peer.
#[derive(Debug)]
pub struct PeerDatagram {
    /// The address of the peer.
    pub to: SocketAddr,
    /// The datagram.
    pub bytes: Vec<u8>,
}

/// A change of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum PeerEvent {
    /// Packets can be sent.
    Connected,
    /// The checks of the peer have stopped. They may resume.
    Silent,
    /// The peer requests a key picture of a track.
    KeyRequest(Mid),
    /// The peer has ended the session, or it has failed.
    Ended(String),
}

/// The figures of a session, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PeerFigures {
    /// The estimated rate that the path to the peer can carry, in bit/s; `None` without reports of arrivals.
    pub estimate_bits_per_s: Option<u64>,
    /// The part of the packets that the peer lost, from 0 to 1.
    pub loss: Option<f32>,
    /// The time of a packet to the peer and back.
    pub round_trip: Option<Duration>,
    /// The packets that were sent.
    pub packets: u64,
    /// The packets that the peer requested again.
    pub nacks: u64,
}

/// A session, with its output.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) rtc: Rtc,
    local: SocketAddr,
    pub(super) datagrams: VecDeque<PeerDatagram>,
    pub(super) events: VecDeque<PeerEvent>,
    pub(super) figures: PeerFigures,
    /// The units of the peer.
    pub(super) media: VecDeque<MediaData>,
    /// The time of the next call of [`Self::wake`].
    due: Instant,
}

impl Peer {
    pub(super) fn new(rtc: Rtc, local: SocketAddr, now: Instant) -> Self {
        Self {
            rtc,
            local,
            datagrams: VecDeque::new(),
            events: VecDeque::new(),
            figures: PeerFigures::default(),
            media: VecDeque::new(),
            due: now,
        }
    }

    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// Takes a datagram of the peer. Others are ignored.
    pub(super) fn receive(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        let Ok(contents) = bytes.try_into() else { return };
        let receive =
            Receive { proto: Protocol::Udp, source: from, destination: self.local, contents };
        let input = Input::Receive(now, receive);
        if self.rtc.accepts(&input) {
            let done = self.rtc.handle_input(input);
            self.note(done);
            self.drain(now);
        }
    }

    /// Lets time pass.
    pub(super) fn wake(&mut self, now: Instant) {
        let done = self.rtc.handle_input(Input::Timeout(now));
        self.note(done);
        self.drain(now);
    }

    /// Requests a key picture.
    pub(super) fn request_key(&mut self, mid: Mid, now: Instant) {
        if let Some(mut writer) = self.rtc.writer(mid) {
            // A peer without the feedback sends key pictures by itself.
            let _ = writer.request_keyframe(None, KeyframeRequestKind::Pli);
            self.wake(now);
        }
    }

    /// Ends the session.
    pub(super) fn close(&mut self, now: Instant) {
        let done = self.rtc.close();
        self.note(done);
        self.drain(now);
    }

    fn note(&mut self, done: Result<(), str0m::RtcError>) {
        if let Err(error) = done {
            self.events.push_back(PeerEvent::Ended(error.to_string()));
        }
    }

    /// Collects the output.
    pub(super) fn drain(&mut self, now: Instant) {
        let mut passed = 0;
        loop {
            match self.rtc.poll_output() {
                Ok(Output::Timeout(due)) if due <= now && passed < TIMEOUTS_MAX => {
                    passed += 1;
                    let done = self.rtc.handle_input(Input::Timeout(now));
                    self.note(done);
                }
                Ok(Output::Timeout(due)) => {
                    self.due = due;
                    return;
                }
                Ok(Output::Transmit(out)) => {
                    self.figures.packets += 1;
                    let bytes = out.contents.into();
                    self.datagrams.push_back(PeerDatagram { to: out.destination, bytes });
                }
                Ok(Output::Event(event)) => self.take(event),
                Err(error) => {
                    self.events.push_back(PeerEvent::Ended(error.to_string()));
                    self.due = now + Duration::from_secs(1);
                    return;
                }
            }
        }
    }

    fn take(&mut self, event: Event) {
        let next = match event {
            Event::Connected => PeerEvent::Connected,
            Event::IceConnectionStateChange(IceConnectionState::Disconnected) => PeerEvent::Silent,
            Event::KeyframeRequest(request) => PeerEvent::KeyRequest(request.mid),
            Event::MediaData(data) => return self.media.push_back(data),
            Event::Closed => PeerEvent::Ended("the peer ended it".to_owned()),
            Event::EgressBitrateEstimate(BweKind::Twcc { estimate, .. }) => {
                self.figures.estimate_bits_per_s = Some(estimate.as_u64());
                return;
            }
            Event::PeerStats(stats) => {
                self.figures.loss = stats.egress_loss_fraction.or(self.figures.loss);
                self.figures.round_trip = stats.rtt.or(self.figures.round_trip);
                return;
            }
            Event::MediaEgressStats(stats) => {
                self.figures.nacks = self.figures.nacks.max(stats.nacks);
                self.figures.round_trip = stats.rtt.or(self.figures.round_trip);
                self.figures.loss = stats.loss.or(self.figures.loss);
                return;
            }
            Event::IceConnectionStateChange(_)
            | Event::MediaAdded(_)
            | Event::MediaChanged(_)
            | Event::ChannelOpen(..)
            | Event::ChannelData(_)
            | Event::ChannelClose(_)
            | Event::ChannelBufferedAmountLow(_)
            | Event::MediaIngressStats(_)
            | Event::EgressBitrateEstimate(_)
            | Event::StreamPaused(_)
            | Event::SenderFeedback(_)
            | Event::RtpPacket(_)
            | Event::AppSpecificFeedback(_)
            | Event::RawPacket(_)
            | _ => return,
        };
        self.events.push_back(next);
    }
}

/// Returns the media of an accepted offer, with their kinds and directions.
pub(super) fn media(rtc: &Rtc, mids: &[Mid]) -> Vec<(Mid, MediaKind, Direction)> {
    let known = mids.iter().filter_map(|mid| rtc.media(*mid));
    known.map(|media| (media.mid(), media.kind(), media.direction())).collect()
}
