//! A viewer's session: units of its feeds out, datagrams of its peer in.

use super::Shared;
use super::registry::{Arrived, Member};
use crate::feeds::{FeedLease, LeftOut, Outlet, UnitRole};
use paceline_edge::{KeyRepair, PeerDatagram, PeerEvent, TrackFormat, ViewerPeer, ViewerUnit};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The longest time from the answer to the connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);
/// The longest time without a datagram of the peer. Its checks arrive every few seconds.
const SIGN_WITHIN: Duration = Duration::from_secs(30);
/// The time between two looks at the figures.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Most datagrams of the peer, and most units, before others run.
const BATCH: usize = 64;

/// The reason why some pictures with B pictures are not shown.
pub(super) const REORDERED: &str = "others need its B pictures (B pyramid), which browsers do not reorder; publish without B pictures \
     or with -x264-params b-pyramid=none, or request a size";

/// A track of a session.
pub(super) struct SessionTrack {
    pub(super) lease: FeedLease,
    pub(super) format: TrackFormat,
    repair: KeyRepair,
}

impl SessionTrack {
    pub(super) fn new(lease: FeedLease, format: TrackFormat) -> Self {
        Self { lease, format, repair: KeyRepair::default() }
    }
}

/// A session.
pub(super) struct Session {
    pub(super) shared: Arc<Shared>,
    pub(super) member: Member,
    pub(super) peer: ViewerPeer,
    pub(super) tracks: Vec<SessionTrack>,
    pub(super) state: SessionState,
}

/// The changing part of a session.
#[derive(Default)]
pub(super) struct SessionState {
    outlet: Arc<Outlet>,
    waiting: VecDeque<PeerDatagram>,
    connected: bool,
    /// The pictures cannot be shown without reordering.
    unfit: bool,
    /// The bytes since the last look.
    bytes: u64,
    said: LeftOut,
}

impl Session {
    /// Serves the peer until either side ends the session.
    pub(super) async fn run(mut self) {
        let began = Instant::now();
        let why = self.serve(began).await;
        for track in &self.tracks {
            track.lease.feed.leave(&self.state.outlet);
        }
        self.peer.close(Instant::now());
        self.collect();
        self.shared.socket.send(&mut self.state.waiting);
        self.look(began);
        let (id, left_out) = (&self.member.id, self.state.outlet.left_out());
        let packets = self.peer.figures().packets;
        tracing::info!("WebRTC: viewer {id} left: {why}; {packets} packets; left out: {left_out}");
    }

    async fn serve(&mut self, began: Instant) -> String {
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut sign = began;
        loop {
            let full = self.advance();
            if let Some(why) = self.take_events() {
                return why;
            }
            if self.state.unfit {
                return REORDERED.to_owned();
            }
            if let Some(why) = self.state.outlet.ended() {
                return why;
            }
            let has_room = !full && self.peer.has_room();
            let due = tokio::time::Instant::from_std(self.peer.due());
            tokio::select! {
                arrived = self.member.inbox.recv() => if let Some(arrived) = arrived {
                    sign = arrived.at;
                    self.receive(&arrived);
                },
                () = self.state.outlet.changed(), if has_room && self.state.connected => {}
                () = tokio::time::sleep_until(due) => self.peer.wake(Instant::now()),
                () = self.shared.socket.room(), if full => {}
                () = self.member.stop.notified() => return "it was closed".to_owned(),
                _ = look.tick() => {
                    self.look(began);
                    if !self.state.connected && began.elapsed() >= CONNECT_WITHIN {
                        return "it did not connect within 30 s; a firewall may block UDP".to_owned();
                    }
                    if sign.elapsed() >= SIGN_WITHIN {
                        return "nothing has arrived from it for 30 s".to_owned();
                    }
                }
            }
        }
    }

    /// Takes a datagram, and those that wait behind it.
    fn receive(&mut self, first: &Arrived) {
        self.peer.receive(first.at, first.from, &first.bytes);
        for _ in 1..BATCH {
            let Ok(next) = self.member.inbox.try_recv() else { return };
            self.peer.receive(next.at, next.from, &next.bytes);
        }
    }

    /// Takes the units that wait as far as there is room, and sends. Returns true if the socket is full.
    fn advance(&mut self) -> bool {
        self.collect();
        for _ in 0..BATCH {
            if !self.state.waiting.is_empty() && self.shared.socket.send(&mut self.state.waiting) {
                return true;
            }
            if !self.state.connected || !self.peer.has_room() {
                return false;
            }
            let Some(next) = self.state.outlet.take() else { return false };
            let unit = next.unit;
            let Some(track) = self.tracks.get(usize::from(next.track)) else { continue };
            if unit.reordered && unit.role == UnitRole::Delta {
                self.state.unfit = true;
                return false;
            }
            self.state.bytes += u64::try_from(unit.bytes).unwrap_or_default();
            let unit = ViewerUnit {
                payloads: unit.shared(),
                time: unit.time,
                age: age(&self.shared, unit.time.saturating_add(unit.skew), track.format),
                reordered: unit.reordered,
                start: next.start,
            };
            self.peer.send(usize::from(next.track), unit, Instant::now());
            self.collect();
        }
        self.shared.socket.send(&mut self.state.waiting)
    }

    fn collect(&mut self) {
        while let Some(datagram) = self.peer.datagram() {
            self.state.waiting.push_back(datagram);
        }
    }

    /// Carries out the events. Returns the reason if the session has ended.
    fn take_events(&mut self) -> Option<String> {
        while let Some(event) = self.peer.event() {
            match event {
                PeerEvent::Connected => {
                    self.state.connected = true;
                    for (number, track) in (0_u8..).zip(&self.tracks) {
                        track.lease.feed.join(&self.state.outlet, number);
                    }
                }
                PeerEvent::KeyRequest(mid) => {
                    let number = self.peer.track_of(mid).unwrap_or_default();
                    let Some(track) = self.tracks.get_mut(number) else { continue };
                    // The pictures since the key picture are sent again.
                    if track.repair.request(Instant::now()) {
                        let number = u8::try_from(number).unwrap_or_default();
                        track.lease.feed.join(&self.state.outlet, number);
                    }
                }
                PeerEvent::Silent => {}
                PeerEvent::Ended(why) => return Some(why),
            }
        }
        None
    }

    /// Publishes the figures, and reports pictures that are left out.
    fn look(&mut self, began: Instant) {
        let (figures, left_out) = (self.peer.figures(), self.state.outlet.left_out());
        let bytes = std::mem::take(&mut self.state.bytes);
        self.peer.expect(bytes.saturating_mul(8));
        let repairs = self.tracks.iter().map(|track| track.repair);
        let (requests, answers) = repairs.fold((0, 0), |(requests, answers), repair| {
            (requests + repair.requests, answers + repair.answers)
        });
        {
            let mut view = self.member.view.lock().unwrap_or_else(PoisonError::into_inner);
            view.connected = self.state.connected;
            view.seconds = began.elapsed().as_secs();
            view.packets = figures.packets;
            view.bytes_per_s = bytes;
            view.estimate_bits_per_s = figures.estimate_bits_per_s;
            view.loss = figures.loss;
            view.round_trip_ms = figures.round_trip.map(|time| time.as_secs_f64() * 1e3);
            view.packets_sent_again = figures.nacks;
            (view.key_requests, view.key_answers) = (requests, answers);
            view.left_out_slow = left_out.slow;
            view.left_out_needs = left_out.needs;
            view.left_out_sound = left_out.sound;
            view.left_out_reordered = self.peer.reordered;
            view.left_out_large = self.peer.large;
        }
        if left_out.total() > self.state.said.total() {
            self.state.said = left_out;
            let id = &self.member.id;
            paceline::warn_limited!("WebRTC: viewer {id}: left out so far: {left_out}");
        }
    }
}

/// Returns the time since the capture of a unit.
fn age(shared: &Shared, time: i64, format: TrackFormat) -> Duration {
    let nanos = i128::from(time) * 1_000_000_000 / i128::from(format.clock_rate().max(1));
    let age = i128::from(shared.hub.now()) - nanos;
    Duration::from_nanos(u64::try_from(age).unwrap_or_default())
}
