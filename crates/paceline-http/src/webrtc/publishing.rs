//! A publisher's session: the pictures and sound of its peer become samples.

use super::Shared;
use super::registry::{Member, Pending};
use super::view::SessionView;
use super::viewing::{Begun, NotBegun, new_id};
use crate::feeds::{FeedFault, FeedFaultKind};
use paceline::{Encoding, Node, Publisher, PutOptions, Size, Tag, Timestamp};
use paceline_edge::{
    PeerDatagram, PeerEvent, PlayerTarget, PublishedUnit, PublisherPeer, TrackFormat, TrackKind,
    WebrtcOffer,
};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The longest time from the answer to the connection, and without a datagram of the peer.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);
const SIGN_WITHIN: Duration = Duration::from_secs(30);
/// The time between two looks at the figures.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Most datagrams of the peer before others run.
const BATCH: usize = 64;

/// The tag of a track, and its publisher once a unit has arrived.
struct Lane {
    tag: String,
    publisher: Option<(TrackFormat, Publisher)>,
    samples: u64,
}

/// A session.
struct Session {
    shared: Arc<Shared>,
    member: Member,
    peer: PublisherPeer,
    pictures: Option<Lane>,
    sound: Option<Lane>,
    waiting: VecDeque<PeerDatagram>,
    connected: bool,
    bytes: u64,
}

/// Begins a session whose pictures become samples of the tag of an address. Runs on the thread of the sessions.
pub(super) async fn publish(
    shared: Arc<Shared>,
    pending: Pending,
    target: PlayerTarget,
    (address, offer): (String, WebrtcOffer),
) -> Result<Begun, NotBegun> {
    let wrong = |why: String| FeedFault::new(FeedFaultKind::Request, why);
    if !target.query.is_empty() {
        let why =
            format!("'{}' is no option of a publisher: sound=TAG is the only one", target.query);
        return Err(wrong(why).into());
    }
    let sound = target.sound.as_ref().map(|(tag, _)| tag.clone());
    for tag in std::iter::once(&target.tag).chain(&sound) {
        Tag::new(tag).map_err(|error| wrong(format!("the address names no tag: {error}")))?;
    }
    let (peer, sdp) = PublisherPeer::accept(&shared.setup, offer, sound.is_some(), Instant::now())?;
    let lane = |tag: String| Lane { tag, publisher: None, samples: 0 };
    let (pictures, sound) = match peer.has_pictures() {
        true => (Some(lane(target.tag)), sound.map(lane)),
        false => (None, Some(lane(sound.unwrap_or(target.tag)))),
    };
    let id = new_id()?;
    tracing::info!("WebRTC: publisher {id} of {address}");
    let view = SessionView { id: id.clone(), address, ..SessionView::default() };
    let member = pending.enter(id.as_str().into(), peer.user(), view);
    let waiting = VecDeque::new();
    let session =
        Session { shared, member, peer, pictures, sound, waiting, connected: false, bytes: 0 };
    tokio::spawn(session.run());
    Ok(Begun { id, sdp })
}

impl Session {
    /// Serves the peer until either side ends the session.
    async fn run(mut self) {
        let began = Instant::now();
        let why = self.serve(began).await;
        self.peer.close(Instant::now());
        self.send();
        let lanes = self.pictures.iter().chain(&self.sound);
        let counts: Vec<String> =
            lanes.map(|lane| format!("{} samples of {}", lane.samples, lane.tag)).collect();
        let (id, counts, losses) = (&self.member.id, counts.join(", "), self.peer.losses());
        let losses = if losses.is_empty() { losses } else { format!("; {losses}") };
        tracing::info!("WebRTC: publisher {id} left: {why}; {counts}{losses}");
    }

    async fn serve(&mut self, began: Instant) -> String {
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut sign = began;
        loop {
            if let Err(why) = self.advance() {
                return why;
            }
            let full = self.send();
            let due = tokio::time::Instant::from_std(self.peer.due());
            tokio::select! {
                arrived = self.member.inbox.recv() => if let Some(arrived) = arrived {
                    sign = arrived.at;
                    self.peer.receive(arrived.at, arrived.from, &arrived.bytes);
                    for _ in 1..BATCH {
                        let Ok(next) = self.member.inbox.try_recv() else { break };
                        self.peer.receive(next.at, next.from, &next.bytes);
                    }
                },
                () = tokio::time::sleep_until(due) => self.peer.wake(Instant::now()),
                () = self.shared.socket.room(), if full => {}
                () = self.member.stop.notified() => return "it was closed".to_owned(),
                _ = look.tick() => {
                    self.look(began);
                    if !self.connected && began.elapsed() >= CONNECT_WITHIN {
                        return "it did not connect within 30 s; a firewall may block UDP".to_owned();
                    }
                    if sign.elapsed() >= SIGN_WITHIN {
                        return "nothing has arrived from it for 30 s".to_owned();
                    }
                }
            }
        }
    }

    /// Publishes the units that have arrived, and carries out the events.
    fn advance(&mut self) -> Result<(), String> {
        while let Some(unit) = self.peer.unit(Instant::now()) {
            let lane = match unit.format.kind() {
                TrackKind::Pictures => &mut self.pictures,
                TrackKind::Sound => &mut self.sound,
            };
            self.bytes += u64::try_from(unit.bytes.len()).unwrap_or_default();
            if let Some(lane) = lane {
                lane.put(self.shared.hub.node(), unit)?;
            }
        }
        while let Some(event) = self.peer.event() {
            match event {
                PeerEvent::Connected => self.connected = true,
                PeerEvent::Silent | PeerEvent::KeyRequest(_) => {}
                PeerEvent::Ended(why) => return Err(why),
            }
        }
        Ok(())
    }

    fn send(&mut self) -> bool {
        while let Some(datagram) = self.peer.datagram() {
            self.waiting.push_back(datagram);
        }
        self.shared.socket.send(&mut self.waiting)
    }

    fn look(&mut self, began: Instant) {
        let (figures, bytes) = (self.peer.figures(), std::mem::take(&mut self.bytes));
        let lanes = self.pictures.iter().chain(&self.sound);
        let mut view = self.member.view.lock().unwrap_or_else(PoisonError::into_inner);
        view.connected = self.connected;
        view.seconds = began.elapsed().as_secs();
        view.packets = figures.packets;
        view.bytes_per_s = bytes;
        view.round_trip_ms = figures.round_trip.map(|time| time.as_secs_f64() * 1e3);
        view.samples = lanes.map(|lane| lane.samples).sum();
        view.losses = self.peer.losses();
    }
}

impl Lane {
    /// Publishes a unit.
    fn put(&mut self, node: &Node, unit: PublishedUnit) -> Result<(), String> {
        let failed = |error: paceline::PublishError| format!("{}: {error}", self.tag);
        let publisher = match &mut self.publisher {
            Some((format, publisher)) if *format == unit.format => publisher,
            // Pictures begin with a key picture, which states the size.
            Some(_) | None => {
                let declared = declare(node, &self.tag, &unit).map_err(failed)?;
                &mut self.publisher.insert((unit.format, declared)).1
            }
        };
        let options = PutOptions { captured: Some(captured(node, &unit)), ..PutOptions::default() };
        publisher.put_with(unit.bytes, options).map_err(failed)?;
        self.samples += 1;
        Ok(())
    }
}

fn declare(
    node: &Node,
    tag: &str,
    unit: &PublishedUnit,
) -> Result<Publisher, paceline::PublishError> {
    let mut builder = node.publisher(tag).encoding(Encoding::new(&unit.format.encoding()));
    if let Some(codec) = unit.format.codec()
        && let Ok(Some(info)) = codec.info(&unit.bytes)
    {
        let paceline_media::Size { width, height } = info.size;
        builder = builder.picture_size(Size { width, height });
    }
    builder.declare()
}

/// Returns the capture time of a unit.
fn captured(node: &Node, unit: &PublishedUnit) -> Timestamp {
    let now = node.clock().now();
    let waited = u64::try_from(unit.arrived.elapsed().as_nanos()).unwrap_or_default();
    let nanos = now.nanos.saturating_sub(waited.saturating_add(unit.captured.before_ns));
    let bounds = paceline::time::TimeBounds {
        earliest: now.bounds.earliest.saturating_sub(unit.captured.bound_ns),
        latest: now.bounds.latest.saturating_add(unit.captured.bound_ns),
    };
    let error = paceline::time::ClockReading { bounds, ..now }.error_byte();
    Timestamp { nanos, error }
}
