//! The samples of one request: one subscription, cut into packets once, for all players with the same address.

use super::outlet::Outlet;
use super::stage::{FeedStage, PathAnswer};
use super::tally::{self, TrackTally};
use super::unit::{MediaUnit, UnitRole};
use crate::request::ViewerRequest;
use paceline::status::{PlayersStatus, PublisherId};
use paceline::{Kind, Node, Sample, Subscriber, SubscriberEvent};
use paceline_edge::{CatchUp, Packetizer, PictureClock, SoundClock, TrackFormat, ticks};
use paceline_media::codec::{Codec, Units};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The samples that wait for the feed. A group of pictures for late subscribers arrives in quick succession.
const QUEUE: usize = 512;
/// The time between two looks at the players.
const TICK: Duration = Duration::from_secs(1);
/// The time without players after which the subscription ends.
const LINGER: Duration = Duration::from_secs(5);
/// The time without a sample after which players may follow another publisher of the tag.
const SILENT: Duration = Duration::from_secs(2);
/// Most pictures and bytes since the newest key picture that are kept for players that join later.
const GROUP_UNITS_MAX: usize = 600;
const GROUP_BYTES_MAX: usize = 6 << 20;

/// What distinguishes feeds: a tag, and the options in words.
pub(crate) type FeedKey = (String, ViewerRequest);

/// A feed, shared by its players.
pub(crate) struct Feed {
    stage: watch::Sender<FeedStage>,
    players: Mutex<Players>,
}

/// A player of a feed.
struct Member {
    outlet: Weak<Outlet>,
    track: u8,
    /// Its counters when it joined.
    since: TrackTally,
}

/// The players, and the pictures that the next one receives first.
#[derive(Default)]
struct Players {
    outlets: Vec<Member>,
    /// The counters of players that have left.
    past: PlayersStatus,
    group: VecDeque<Arc<MediaUnit>>,
    bytes: usize,
    /// The group is too large to be kept.
    cut: bool,
    rate: u32,
    /// The time of the newest unit.
    newest: Option<i64>,
}

impl Feed {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            stage: watch::Sender::new(FeedStage::default()),
            players: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Players> {
        self.players.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state of the feed once `is_enough`, or after `patience`.
    pub(crate) async fn wait(
        &self,
        patience: Duration,
        is_enough: impl FnMut(&FeedStage) -> bool,
    ) -> FeedStage {
        let mut stage = self.stage.subscribe();
        let _ = tokio::time::timeout(patience, stage.wait_for(is_enough)).await;
        stage.borrow().clone()
    }

    /// Adds a player, which receives the pictures since the newest key picture first, or sends these to one that has lost them.
    pub(crate) fn join(&self, outlet: &Arc<Outlet>, track: u8) {
        let mut players = self.lock();
        let group: Vec<Arc<MediaUnit>> = players.group.iter().cloned().collect();
        let times = group.iter().map(|unit| unit.time);
        let (oldest, newest) = (times.clone().min(), times.max());
        let rate = players.rate;
        let catch_up = oldest
            .zip(newest)
            .map(|(oldest, newest)| CatchUp::new(oldest, newest, group.len(), rate));
        let since = outlet.tally(track);
        outlet.open(track, &group, catch_up.unwrap_or_default(), Instant::now());
        let new = Arc::downgrade(outlet);
        players.outlets.retain(|known| known.outlet.strong_count() > 0);
        // One that gets the group again stays the same player.
        let same = |known: &Member| known.outlet.ptr_eq(&new) && known.track == track;
        if !players.outlets.iter().any(same) {
            players.outlets.push(Member { outlet: new, track, since });
        }
        if let Some(why) = &self.stage.borrow().ended {
            outlet.end(why);
        }
    }

    /// Removes a player.
    pub(crate) fn leave(&self, outlet: &Arc<Outlet>) {
        let gone = Arc::downgrade(outlet);
        let mut players = self.lock();
        let Players { outlets, past, .. } = &mut *players;
        outlets.retain(|known| {
            let leaves = known.outlet.ptr_eq(&gone);
            if leaves {
                tally::add_counts(past, &outlet.tally(known.track), &known.since);
            }
            !leaves
        });
    }

    /// Returns the reception of the players.
    fn reception(&self) -> PlayersStatus {
        let players = self.lock();
        let mut sum = players.past;
        for known in &players.outlets {
            let Some(outlet) = known.outlet.upgrade() else { continue };
            let tally = outlet.tally(known.track);
            tally::add_counts(&mut sum, &tally, &known.since);
            tally::add_present(&mut sum, &tally);
        }
        sum
    }

    /// Returns the time of the first unit that a player receives when it joins now, in units of the clock rate.
    pub(crate) fn first_time(&self) -> Option<i64> {
        let players = self.lock();
        let times = players.group.iter().map(|unit| unit.time);
        let (oldest, newest) = (times.clone().min()?, times.max()?);
        let catch_up = CatchUp::new(oldest, newest, players.group.len(), players.rate);
        players.group.front().map(|unit| catch_up.time(unit.time))
    }

    pub(crate) fn end(&self, why: &str) {
        self.stage.send_modify(|stage| {
            stage.ended.get_or_insert_with(|| why.to_owned());
        });
        for known in &self.lock().outlets {
            if let Some(outlet) = known.outlet.upgrade() {
                outlet.end(why);
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.stage.borrow().ended.is_some()
    }

    /// Sends a unit to all players.
    fn send(&self, unit: &Arc<MediaUnit>) {
        let mut players = self.lock();
        let now = Instant::now();
        players.keep(unit);
        for Member { outlet, track, .. } in &players.outlets {
            if let Some(outlet) = outlet.upgrade() {
                outlet.push(*track, unit, now);
            }
        }
    }

    /// Notes that a unit cannot be sent: pictures that need it are left out.
    fn lose(&self) {
        let mut players = self.lock();
        players.group.clear();
        (players.bytes, players.cut) = (0, true);
        for Member { outlet, track, .. } in &players.outlets {
            if let Some(outlet) = outlet.upgrade() {
                outlet.lose(*track);
            }
        }
    }
}

impl Players {
    /// Keeps a picture for players that join later.
    fn keep(&mut self, unit: &Arc<MediaUnit>) {
        self.newest = Some(unit.time);
        match unit.role {
            // No other needs it.
            UnitRole::Sound | UnitRole::Spare | UnitRole::Leading => return,
            UnitRole::Key => {
                self.group.clear();
                (self.bytes, self.cut) = (0, false);
            }
            UnitRole::Delta => {}
        }
        self.bytes += unit.bytes;
        if self.group.len() >= GROUP_UNITS_MAX || self.bytes > GROUP_BYTES_MAX {
            self.group.clear();
            self.cut = true;
        }
        if !self.cut {
            self.group.push_back(unit.clone());
        }
    }
}

/// The subscription of a feed, and its state.
pub(crate) struct FeedReader {
    subscriber: Subscriber,
    feed: Arc<Feed>,
    tag: String,
    /// The publisher that the players follow, its last sequence number, and the time of its last sample.
    publisher: Option<(PublisherId, u64, Instant)>,
    track: Option<FeedTrack>,
    others: u64,
    unfit: u64,
}

/// The format of a feed, and its clocks.
struct FeedTrack {
    format: TrackFormat,
    packetizer: Packetizer,
    units: Option<Units>,
    pictures: PictureClock,
    sound: SoundClock,
    /// The highest place in presentation order since a key picture.
    top: Option<i64>,
}

impl FeedReader {
    /// Subscribes. May block for a moment.
    ///
    /// # Errors
    /// Returns the reason if the request is invalid.
    pub(crate) fn open(node: &Node, key: &FeedKey, feed: Arc<Feed>) -> Result<Self, String> {
        let (tag, request) = key;
        let builder = request.apply(node.subscriber(tag)).queue(QUEUE);
        let (_, within, loss) = builder.request().map_err(|error| error.to_string())?;
        let subscriber = builder.declare().map_err(|error| error.to_string())?;
        feed.stage.send_modify(|stage| stage.contract = within.is_some() || loss.is_some());
        let (publisher, track) = (None, None);
        Ok(Self { subscriber, feed, tag: tag.clone(), publisher, track, others: 0, unfit: 0 })
    }

    /// Sends samples to the players until none has been there for some seconds. `is_used` states whether somebody uses the feed.
    pub(crate) async fn run(mut self, is_used: impl Fn() -> bool) {
        let mut look = tokio::time::interval(TICK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut used = Instant::now();
        loop {
            let arrival = self.subscriber.arrival();
            while let Some(event) = self.subscriber.try_event() {
                self.note(&event);
            }
            while let Some(sample) = self.subscriber.try_recv() {
                self.take(&sample);
            }
            if self.subscriber.is_closed() {
                self.feed.end("the node has stopped");
            }
            if self.feed.has_ended() {
                return;
            }
            tokio::select! {
                () = arrival => {}
                now = look.tick() => {
                    self.subscriber.set_players(self.feed.reception());
                    if is_used() {
                        used = now;
                    } else if now - used >= LINGER {
                        return;
                    }
                }
            }
        }
    }

    /// Notes an answer of the path.
    fn note(&self, event: &SubscriberEvent) {
        let answer = match event {
            SubscriberEvent::Granted(grant) => PathAnswer::Granted(format!("granted: {grant}")),
            SubscriberEvent::Refused(_, refusal) => {
                PathAnswer::Refused { why: refusal.to_string(), offers: refusal.offer.flags() }
            }
            SubscriberEvent::BestEffort(_, why) => PathAnswer::BestEffort {
                why: why.to_string(),
                is_last: *why != paceline::contract::BestEffort::SizeUnknown,
            },
            SubscriberEvent::Withdrawn(_) => PathAnswer::None,
            SubscriberEvent::Publishers(_)
            | SubscriberEvent::NoSpare(_)
            | SubscriberEvent::Excess { .. }
            | SubscriberEvent::Changed { .. }
            | SubscriberEvent::Adapted { .. }
            | SubscriberEvent::Warned(..)
            | SubscriberEvent::ChangeRefused { .. }
            | SubscriberEvent::Silent(_)
            | SubscriberEvent::Resumed(_)
            | _ => return,
        };
        self.feed.stage.send_modify(|stage| stage.answer = answer);
    }

    fn take(&mut self, sample: &Sample) {
        let now = Instant::now();
        let gap = match self.publisher {
            Some((known, _, at)) if known != sample.publisher && now - at < SILENT => {
                self.others += 1;
                if self.others == 1 {
                    tracing::warn!(
                        "{} has several publishers: players get the samples of {known}",
                        self.tag
                    );
                }
                return;
            }
            Some((known, seq, _)) if known == sample.publisher => sample.seq != seq.wrapping_add(1),
            Some(_) => {
                // Its pictures do not refer to earlier ones.
                self.track = None;
                self.feed.lose();
                true
            }
            None => true,
        };
        self.publisher = Some((sample.publisher, sample.seq, now));
        let encoding = sample.encoding.as_str();
        let format = match TrackFormat::served(encoding, Some(&sample.payload)) {
            Ok(Some(format)) => format,
            Ok(None) => return,
            Err(error) => return self.feed.end(&error.to_string()),
        };
        let before = self.feed.stage.borrow().format;
        if before.is_some_and(|before| before != format) {
            return self
                .feed
                .end(&format!("its samples are {encoding} now; open the address again"));
        }
        self.begin(format);
        self.send(sample, gap);
    }

    fn begin(&mut self, format: TrackFormat) {
        if self.track.is_some() {
            return;
        }
        let rate = format.clock_rate();
        self.feed.lock().rate = rate;
        self.track = Some(FeedTrack {
            format,
            packetizer: Packetizer::new(format),
            units: format.codec().map(Units::new),
            pictures: PictureClock::new(None, format.codec().unwrap_or(Codec::H264)),
            sound: SoundClock::new(rate),
            top: None,
        });
    }

    fn send(&mut self, sample: &Sample, gap: bool) {
        let Some(track) = &mut self.track else { return };
        match track.cut(sample, gap) {
            Ok(unit) => {
                let unit = Arc::new(unit);
                self.feed.stage.send_if_modified(|stage| {
                    let new = stage.format.is_none();
                    stage.format = Some(track.format);
                    stage.reorders |= unit.reordered && unit.role == UnitRole::Delta;
                    if track.units.is_some() && unit.role == UnitRole::Key {
                        stage.key = Some(sample.payload.clone());
                    }
                    new
                });
                self.feed.send(&unit);
            }
            Err(error) => {
                self.unfit += 1;
                let (tag, seq, unfit) = (&self.tag, sample.seq, self.unfit);
                paceline::warn_limited!(
                    "{tag}: sample {seq} is left out for players ({unfit} so far): {error}"
                );
                if track.format == TrackFormat::Jpeg && unfit == 1 {
                    self.feed.stage.send_modify(|stage| stage.unfit = Some(error.to_string()));
                }
                self.feed.lose();
            }
        }
    }
}

impl FeedTrack {
    fn cut(&mut self, sample: &Sample, gap: bool) -> Result<MediaUnit, String> {
        let captured = i64::try_from(sample.captured.nanos).unwrap_or(i64::MAX);
        let rate = self.format.clock_rate();
        let role = match sample.kind {
            Kind::VideoI => UnitRole::Key,
            Kind::VideoP => UnitRole::Delta,
            Kind::VideoB => UnitRole::Spare,
            Kind::VideoLeading => UnitRole::Leading,
            Kind::Data | Kind::State | Kind::Picture | Kind::Audio => match self.format.kind() {
                paceline_edge::TrackKind::Pictures => UnitRole::Key,
                paceline_edge::TrackKind::Sound => UnitRole::Sound,
            },
        };
        let order = match &mut self.units {
            Some(units) => {
                units.classify(&sample.payload).map_err(|error| error.to_string())?;
                units.order()
            }
            None => None,
        };
        let parts = self.packetizer.cut(&sample.payload).map_err(|error| error.to_string())?;
        let (time, skew) = if role.is_picture() {
            (ticks(self.pictures.take(captured, order, role == UnitRole::Key), rate), 0)
        } else {
            let duration = self.format.duration(&sample.payload);
            let time = self.sound.take(captured, duration, gap);
            (time, self.sound.skew())
        };
        let mut unit = MediaUnit::new(parts, (time, skew), role);
        unit.reordered = self.reorders(order, role == UnitRole::Key);
        Ok(unit)
    }

    /// Returns true for a picture that is shown before one that precedes it.
    fn reorders(&mut self, order: Option<i64>, key: bool) -> bool {
        let top = self.top.filter(|_| !key);
        self.top = top.max(order);
        order.zip(top).is_some_and(|(order, top)| order < top)
    }
}
