//! The load of a run: the times and sizes of its samples, its request, and the paths of its contracts.

use crate::event::{Asked, RecordedEvent, RecordedHop};
use crate::reader::{McapReader, Message, ReadError};
use crate::survey::Survey;
use crate::timeline::Order;
use std::collections::BTreeMap;
use std::io::Read;

/// The most missing samples between two recorded ones that are filled in.
const GAP_MAX: u32 = 10_000;

/// The samples of one publisher, as they were published.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedStream {
    /// The tag.
    pub tag: String,
    /// The name of the publisher's node; empty if the file does not contain it.
    pub node: String,
    /// The kind of the samples, such as `picture`.
    pub kind: String,
    /// The declared period in microseconds.
    pub period_us: Option<u64>,
    /// The capture time in nanoseconds since 1970 and the payload bytes of each sample, in the order of their times. Samples
    /// that did not arrive are filled in between their neighbours, with the size of the one before, if every sample was requested.
    pub samples: Vec<(u64, u64)>,
    /// The number of samples that were filled in.
    pub filled: u64,
    /// The path of the contract, from the publisher's node to the recorder. Without a contract, the first path with the most known
    /// capacities; empty in recordings of earlier versions.
    pub hops: Vec<RecordedHop>,
    /// The later paths, each with its time in nanoseconds since 1970: the capacity of a measured link changes over time.
    pub later_hops: Vec<(u64, Vec<RecordedHop>)>,
}

/// The load of a whole recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedRun {
    /// The name of the recording node.
    pub recorder: Option<String>,
    /// The request; the last one if it changed.
    pub asked: Option<Asked>,
    /// The streams, ordered by tag and publisher.
    pub streams: Vec<RecordedStream>,
}

/// A sample of a lane: its sequence number, its time, and its encoded message.
type Put = (u32, u64, u64);
/// The paths of the streams by tag and publisher: that of the contract or the first known one, and the later ones.
type Paths = BTreeMap<(String, String), (Vec<RecordedHop>, Vec<(u64, Vec<RecordedHop>)>)>;

impl RecordedRun {
    /// Reads a file to its end.
    ///
    /// # Errors
    /// [`ReadError`] if not even the start of the file is readable.
    pub fn of<R: Read>(from: R) -> Result<Self, ReadError> {
        let mut run = Self::default();
        let mut paths = Paths::new();
        let mut puts: BTreeMap<u16, Vec<Put>> = BTreeMap::new();
        let mut bodies = BTreeMap::new();
        let look = |message: &Message| {
            if message.channel.is_events() {
                if let Ok(event) = serde_json::from_slice(&message.data) {
                    run.take(message.log_time, event, &mut paths);
                }
            } else if message.channel.is_samples() {
                let body = bodies.entry(message.id).or_insert_with(|| Survey::body_of(message));
                // A message that does not fit its schema was still sent.
                let bytes = body.payload(&message.data).map_or(message.data.len(), <[u8]>::len);
                let put = (message.sequence, message.publish_time, bytes as u64);
                puts.entry(message.id).or_default().push(put);
            }
        };
        let survey = Survey::read(McapReader::new(from)?, Order::Came, look);
        let is_whole = run.asked.as_ref().is_none_or(|asked| {
            asked.every.is_none_or(|every| every == 1) && asked.max_hz.is_none()
        });
        let mut streams: BTreeMap<(String, String), RecordedStream> = BTreeMap::new();
        for (id, lane) in &survey.lanes {
            let Some(puts) = puts.remove(id) else { continue };
            let about = |name: &str| lane.channel.metadata.get(name).cloned().unwrap_or_default();
            let key = (lane.channel.topic.clone(), about("publisher"));
            let (hops, later_hops) = paths.get(&key).cloned().unwrap_or_default();
            let stream = streams.entry(key.clone()).or_insert_with(|| RecordedStream {
                tag: key.0.clone(),
                node: about("node"),
                kind: about("kind"),
                period_us: about("period_us").parse().ok(),
                hops,
                later_hops,
                ..RecordedStream::default()
            });
            stream.add(puts, is_whole);
        }
        run.streams = streams.into_values().collect();
        run.streams.iter_mut().for_each(|stream| stream.samples.sort_unstable());
        Ok(run)
    }

    fn take(&mut self, at: u64, event: RecordedEvent, paths: &mut Paths) {
        match event {
            RecordedEvent::Begin { name, asked, .. } => {
                (self.recorder, self.asked) = (Some(name), Some(asked));
            }
            RecordedEvent::Changed { asked, .. } => self.asked = Some(asked),
            RecordedEvent::Granted { tag, publisher, hops, .. } => {
                paths.entry((tag, publisher)).or_default().0 = hops;
            }
            // A contract has its own, with the capacities at its grant.
            RecordedEvent::Path { tag, publisher, hops } => {
                let (path, later) = paths.entry((tag, publisher)).or_default();
                later.push((at, hops.clone()));
                // A measured capacity is unknown at first.
                if path.is_empty() || capacities(&hops) > capacities(path) {
                    *path = hops;
                }
            }
            RecordedEvent::Refused { .. }
            | RecordedEvent::Delivered(_)
            | RecordedEvent::Dropped { .. }
            | RecordedEvent::Link { .. }
            | RecordedEvent::End { .. }
            | RecordedEvent::Decisions(_)
            | RecordedEvent::Silent { .. }
            | RecordedEvent::Resumed { .. }
            | RecordedEvent::Joined { .. }
            | RecordedEvent::Left { .. }
            | RecordedEvent::Gap { .. } => {}
        }
    }
}

/// Returns the number of links whose capacity is known.
fn capacities(hops: &[RecordedHop]) -> usize {
    hops.iter().filter(|hop| hop.capacity_bits_per_s.is_some()).count()
}

impl RecordedStream {
    /// Adds the samples of a channel; `is_whole` is true if every sample was requested.
    fn add(&mut self, mut puts: Vec<Put>, is_whole: bool) {
        puts.sort_unstable_by_key(|(_, at, _)| *at);
        let mut before: Option<Put> = None;
        for put in puts {
            if let Some((seq, at, bytes)) = before.filter(|_| is_whole) {
                let missing = put.0.wrapping_sub(seq).saturating_sub(1);
                let missing = if missing < GAP_MAX { u64::from(missing) } else { 0 };
                let step = put.1.saturating_sub(at) / (missing + 1);
                self.samples.extend((1..=missing).map(|n| (at + step * n, bytes)));
                self.filled += missing;
            }
            self.samples.push((put.1, put.2));
            before = Some(put);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_samples_are_filled_in_where_all_were_requested() {
        let puts = vec![(7, 1_000, 50), (8, 2_000, 60), (11, 5_000, 70), (3, 6_000, 80)];
        let mut stream = RecordedStream::default();
        stream.add(puts.clone(), true);
        // The last one belongs to a publisher that has begun again.
        let expected =
            [(1_000, 50), (2_000, 60), (3_000, 60), (4_000, 60), (5_000, 70), (6_000, 80)];
        assert_eq!((stream.samples.as_slice(), stream.filled), (&expected[..], 2));
        let mut thinned = RecordedStream::default();
        thinned.add(puts, false);
        assert_eq!((thinned.samples.len(), thinned.filled), (4, 0));
    }
    #[test]
    fn a_stream_has_the_path_of_its_contract_or_else_the_first_known_one() {
        let (tag, publisher) = ("robot/arm".to_owned(), "7.1".to_owned());
        let hops =
            |bits| vec![RecordedHop { capacity_bits_per_s: Some(bits), ..RecordedHop::default() }];
        let path = |bits| {
            let (tag, publisher) = (tag.clone(), publisher.clone());
            RecordedEvent::Path { tag, publisher, hops: hops(bits) }
        };
        let granted = RecordedEvent::Granted {
            tag: tag.clone(),
            publisher: publisher.clone(),
            within_us: None,
            bound_us: 0,
            hops: hops(3),
        };
        let (mut run, mut paths) = (RecordedRun::default(), BTreeMap::new());
        let key = (tag.clone(), publisher.clone());
        let unknown = RecordedEvent::Path {
            tag: tag.clone(),
            publisher: publisher.clone(),
            hops: vec![RecordedHop::default()],
        };
        run.take(5, unknown, &mut paths);
        for (event, bits) in [(path(1), 1), (path(2), 1), (granted, 3), (path(4), 3)] {
            run.take(7, event, &mut paths);
            assert_eq!(paths[&key].0, hops(bits));
        }
        let later: Vec<_> =
            paths[&key].1.iter().map(|(at, hops)| (*at, hops[0].capacity_bits_per_s)).collect();
        assert_eq!(later, [(5, None), (7, Some(1)), (7, Some(2)), (7, Some(4))]);
    }
}
