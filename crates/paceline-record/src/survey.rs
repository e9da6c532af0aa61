//! Summarizes a file in one pass.

use crate::body::Body;
use crate::reader::{Channel, Declarations, McapReader, Message, ReadError};
use crate::recording::{ARRIVAL, ATTACHMENTS, STEADY};
use crate::timeline::{Jumps, MessageTimes, Order, ReplayTimeline};
use paceline_media::Damage;
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::sync::Arc;

/// Clock differences above this, in nanoseconds, are reported.
const CLOCKS_APART: u64 = 1_000_000_000;

/// A channel with statistics of its messages. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The channel.
    pub channel: Arc<Channel>,
    /// The format of its messages.
    pub body: Body,
    /// The media type of its payloads.
    pub encoding: String,
    /// The number of messages.
    pub messages: u64,
    /// The number of payload bytes.
    pub bytes: u64,
    /// The length of the largest payload in bytes.
    pub bytes_max: u64,
    /// The earliest and the latest release time.
    pub times: (u64, u64),
    /// The smallest delay from publication to arrival. `None` if every message arrived before its
    /// publication time.
    pub least_lag: Option<u64>,
    /// The number of messages that do not conform to their schema.
    pub broken: u64,
}

impl Lane {
    /// Returns true for the event channel of a Paceline recording.
    #[must_use]
    pub fn is_events(&self) -> bool {
        self.channel.is_events()
    }

    /// Returns true for a channel of samples, as opposed to events or attachments.
    #[must_use]
    pub fn is_samples(&self) -> bool {
        self.channel.is_samples()
    }

    /// Returns the mean time between messages. `None` unless two messages have different times.
    #[must_use]
    pub fn period(&self) -> Option<u64> {
        let lasts = self.times.1.saturating_sub(self.times.0);
        lasts.checked_div(self.messages.saturating_sub(1)).filter(|period| *period > 0)
    }
}

impl Channel {
    /// Returns true for the event channel of a Paceline recording.
    #[must_use]
    pub fn is_events(&self) -> bool {
        self.metadata.get("paceline").is_some_and(|what| what == "events")
    }

    /// Returns true for a channel of samples, as opposed to events or attachments.
    #[must_use]
    pub fn is_samples(&self) -> bool {
        !self.is_events() && self.attached_to().is_none()
    }

    /// Returns true if no clock step changes the arrival times of its messages.
    #[must_use]
    pub fn has_steady_arrivals(&self) -> bool {
        self.metadata.get(ARRIVAL).is_some_and(|clock| clock == STEADY)
    }

    /// Returns the number of the sample channel to which a channel of attachments belongs. An
    /// attachment precedes its sample and has the same times and sequence number.
    #[must_use]
    pub fn attached_to(&self) -> Option<u16> {
        let attached = self.metadata.get("paceline").is_some_and(|what| what == ATTACHMENTS);
        self.metadata.get("of").filter(|_| attached)?.parse().ok()
    }
}

/// The release times of a file by one clock.
#[derive(Debug)]
struct Course {
    timeline: ReplayTimeline,
    /// The numbers of the channels of the messages that have no release time yet.
    undecided: VecDeque<u16>,
    /// The earliest and the latest release time of each channel.
    times: BTreeMap<u16, (u64, u64)>,
}

impl Course {
    fn new(timeline: ReplayTimeline) -> Self {
        Self { timeline, undecided: VecDeque::new(), times: BTreeMap::new() }
    }

    fn take(&mut self, message: &Message) {
        self.undecided.push_back(message.id);
        self.timeline.push(MessageTimes::of(message));
        self.release(false);
    }

    fn release(&mut self, ended: bool) {
        while let Some(at) = self.timeline.release(ended)
            && let Some(id) = self.undecided.pop_front()
        {
            let (first, last) = self.times.entry(id).or_insert((at, at));
            (*first, *last) = ((*first).min(at), (*last).max(at));
        }
    }
}

/// The summary of a file.
#[derive(Debug)]
pub struct Survey {
    order: Order,
    doubts: bool,
    /// The jumps of the file's times that a replay cuts.
    pub jumps: Jumps,
    /// The channels with messages, by number.
    pub lanes: BTreeMap<u16, Lane>,
    /// The number of messages of undeclared channels.
    pub strays: u64,
    /// The offset up to which the file is complete.
    pub whole: u64,
    /// The damaged places that were skipped.
    pub damage: Damage,
    /// The channels that the file declares, also behind their first messages.
    pub declared: Declarations,
    /// The reason why the file could not be read to its end.
    pub end: Option<ReadError>,
}

impl Survey {
    /// Reads a file to its end and passes each message to `look`.
    ///
    /// # Errors
    /// [`ReadError`] if not even the start of the file is readable.
    pub fn of<R: Read>(
        from: R,
        order: Order,
        look: impl FnMut(&Message),
    ) -> Result<Self, ReadError> {
        Ok(Self::read(McapReader::new(from)?, order, look))
    }

    /// Reads a file from its first message to its end and passes each message to `look`.
    pub fn read<R: Read>(
        mut reader: McapReader<R>,
        order: Order,
        mut look: impl FnMut(&Message),
    ) -> Self {
        let doubts = order == Order::Auto;
        let mut survey = Self {
            order,
            doubts,
            jumps: Jumps::default(),
            lanes: BTreeMap::new(),
            strays: 0,
            whole: 0,
            damage: Damage::default(),
            declared: Declarations::default(),
            end: None,
        };
        let orders = if doubts { &[Order::Published, Order::Came][..] } else { &[order] };
        let course = |order: &Order| Course::new(ReplayTimeline::doubting(*order, doubts));
        let mut courses: Vec<Course> = orders.iter().map(course).collect();
        loop {
            match reader.next_message() {
                Ok(Some(message)) => {
                    survey.take(&message);
                    courses.iter_mut().for_each(|course| course.take(&message));
                    look(&message);
                }
                Ok(None) => break,
                Err(error) => {
                    survey.end = Some(error);
                    break;
                }
            }
        }
        (survey.strays, survey.whole) = (reader.strays(), reader.whole());
        survey.damage = reader.damage().clone();
        survey.declared = reader.declarations().clone();
        survey.choose(courses);
        survey
    }

    /// Chooses the clock, and takes the release times by it.
    fn choose(&mut self, mut courses: Vec<Course>) {
        courses.iter_mut().for_each(|course| course.release(true));
        let misfits = |course: &Course| course.timeline.misfits();
        let better = match &courses[..] {
            [published, came] => {
                published.timeline.is_misled() && misfits(came) < misfits(published)
            }
            _ => false,
        };
        let arrival = better || self.clocks_apart().is_some();
        if self.order == Order::Auto {
            self.order = if arrival { Order::Came } else { Order::Published };
        }
        let place = usize::from(arrival).min(courses.len().saturating_sub(1));
        let Some(chosen) = courses.into_iter().nth(place) else { return };
        self.jumps = chosen.timeline.jumps().clone();
        for (id, lane) in &mut self.lanes {
            lane.times = chosen.times.get(id).copied().unwrap_or_default();
        }
    }

    /// Returns the clock that the release times follow.
    #[must_use]
    pub const fn order(&self) -> Order {
        self.order
    }

    /// Returns the timeline of this file, before its first message.
    #[must_use]
    pub fn timeline(&self) -> ReplayTimeline {
        ReplayTimeline::doubting(self.order, self.doubts)
    }

    /// Returns the format of the messages of a channel and the media type of their payloads, from its first message.
    fn format_of(message: &Message) -> (Body, String) {
        let Channel { message_encoding, schema, metadata, .. } = &*message.channel;
        let recorded = metadata.get("paceline").and_then(|_| metadata.get("encoding"));
        Body::read(message_encoding, schema, recorded.map(String::as_str), &message.data)
    }

    /// Returns the format of the messages of a channel, from its first message.
    pub(crate) fn body_of(message: &Message) -> Body {
        Self::format_of(message).0
    }

    fn take(&mut self, message: &Message) {
        let lane = self.lanes.entry(message.id).or_insert_with(|| {
            let (body, encoding) = Self::format_of(message);
            Lane {
                channel: Arc::clone(&message.channel),
                body,
                encoding,
                messages: 0,
                bytes: 0,
                bytes_max: 0,
                times: (0, 0),
                least_lag: None,
                broken: 0,
            }
        });
        lane.messages += 1;
        let lag = message.log_time.checked_sub(message.publish_time);
        lane.least_lag = match (lane.least_lag, lag) {
            (Some(least), Some(lag)) => Some(least.min(lag)),
            (least, lag) => least.or(lag),
        };
        match lane.body.payload(&message.data) {
            Ok(payload) => {
                lane.bytes += payload.len() as u64;
                lane.bytes_max = lane.bytes_max.max(payload.len() as u64);
            }
            Err(_) => lane.broken += 1,
        }
    }

    /// Returns the earliest and the latest release time over the channels that satisfy `wanted`.
    #[must_use]
    pub fn times(&self, wanted: impl Fn(&Lane) -> bool) -> Option<(u64, u64)> {
        let times = self.lanes.values().filter(|lane| wanted(lane)).map(|lane| lane.times);
        times.reduce(|(a, b), (c, d)| (a.min(c), b.max(d)))
    }

    /// Returns the apparent difference of the publishers' clocks if it exceeds 1 s. It is estimated
    /// from the smallest delay from publication to arrival of each channel.
    #[must_use]
    pub fn clocks_apart(&self) -> Option<u64> {
        let lanes = || self.lanes.values().filter(|lane| lane.is_samples());
        let early = lanes().any(|lane| lane.least_lag.is_none());
        let lags = || lanes().filter_map(|lane| lane.least_lag);
        let apart = lags().max()?.saturating_sub(if early { 0 } else { lags().min()? });
        (apart > CLOCKS_APART).then_some(apart)
    }
}
