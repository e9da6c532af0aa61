//! Announces the queryables of plain programs to other nodes. Zenoh's admin space lists them. The
//! announcement is a text sample, published on each change and periodically for late joiners.

use super::Common;
use crate::{history, lock};
use paceline::status::DropReason;
use paceline::{Encoding, Kind, Publisher};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use zenoh::Wait;
use zenoh::key_expr::OwnedKeyExpr;
use zenoh::pubsub::Subscriber;
use zenoh::query::QueryTarget;
use zenoh::sample::{Locality, Sample, SampleKind};

/// The media type of an announcement.
const ENCODING: &str = "text/plain;queryables";
/// The number of queryables announced per rule.
pub(super) const OFFERS_MAX: usize = 4_096;
/// The shortest interval between scans. Zenoh does not report changes, so the admin space is
/// polled. A scan of duration d is followed by a pause of at least 50 d, so scans use at most 2 %
/// of a processor.
const SCAN_EVERY: Duration = Duration::from_millis(50);
const SCAN_PART: u32 = 50;
/// The interval at which all are announced again, for late joiners and after losses.
const REPEAT: Duration = Duration::from_secs(10);

/// A key ordered by its text. Zenoh's key type has no order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Key(pub(super) OwnedKeyExpr);

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.as_str().cmp(other.0.as_str())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Queryable keys, each with whether one complete queryable covers it.
pub(super) type Keys = BTreeMap<Key, bool>;

/// The histories of AdvancedPublishers here, by their tokens. The admin space does not list their queryables.
type Histories = Arc<Mutex<BTreeSet<Key>>>;

/// Announces queryables to other nodes. Stops when dropped.
pub(super) struct Offers {
    _watch: Subscriber<()>,
    end: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Offers {
    pub(super) fn open(common: Common) -> zenoh::Result<Self> {
        let publisher = common.node.publisher(&common.offers_tag()).kind(Kind::State);
        let publisher = publisher.encoding(Encoding::new(ENCODING)).declare()?;
        let histories = Histories::default();
        let watch = watch(&common, histories.clone())?;
        let (end, ended) = sync_channel(0);
        let named = std::thread::Builder::new().name(format!("paceline-offer-{}", common.number));
        let thread = named.spawn(move || run(&common, &histories, publisher, &ended))?;
        Ok(Self { _watch: watch, end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Offers {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Follows the tokens of the AdvancedPublishers of programs here.
fn watch(common: &Common, histories: Histories) -> zenoh::Result<Subscriber<()>> {
    let (own, node) = (common.own_tokens.clone(), common.node.clone());
    let tokens = common.session.liveliness();
    let watch = tokens.declare_subscriber(history::of_all(&common.rule.key)).history(true);
    let follow = move |sample: Sample| {
        let key = Key(sample.key_expr().clone().into());
        let mut histories = lock(&histories);
        match sample.kind() {
            SampleKind::Delete => drop(histories.remove(&key)),
            SampleKind::Put if lock(&own).contains(key.0.as_str()) => {}
            SampleKind::Put if histories.len() >= OFFERS_MAX && !histories.contains(&key) => {
                node.note_dropped(DropReason::NotImported, 1);
            }
            SampleKind::Put => drop(histories.insert(key)),
        }
    };
    watch.callback(follow).wait()
}

fn run(common: &Common, histories: &Histories, mut publisher: Publisher, ended: &Receiver<()>) {
    let (mut keys, mut matching, mut announced, mut pause) =
        (Keys::new(), false, Instant::now(), Duration::ZERO);
    while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let began = Instant::now();
        let newly = publisher.matching() && !matching;
        matching = publisher.matching();
        let again = announced.elapsed() > REPEAT;
        // Skip the scan while no other node subscribes.
        let found = if matching { scan(common, histories, &keys, again) } else { Keys::new() };
        if newly || again || found != keys {
            (keys, announced) = (found, began);
            if let Err(error) = publisher.put(write(&keys).into_bytes()) {
                tracing::debug!("{}: {error}", publisher.tag());
            }
        }
        pause = SCAN_EVERY.max(began.elapsed() * SCAN_PART);
    }
}

/// Returns the current queryables. The completeness of `known` ones is checked only if `again` is
/// true.
fn scan(common: &Common, histories: &Histories, known: &Keys, again: bool) -> Keys {
    let own = common.session.zid().to_string();
    let prefix = format!("@/{own}/router/queryable/");
    let selector = format!("{prefix}{}", common.rule.key.as_str());
    let Ok(replies) = common.session.get(selector).wait() else { return Keys::new() };
    let mut found = BTreeSet::new();
    for reply in replies {
        let Ok(sample) = reply.result() else { continue };
        let sources = sample.payload().to_bytes();
        if !is_of_others(&String::from_utf8_lossy(&sources), &own) {
            continue;
        }
        let key = sample.key_expr().as_str().strip_prefix(&prefix);
        let key = key.and_then(|key| OwnedKeyExpr::try_from(key).ok());
        // Queries beyond the keys of the rule are not forwarded.
        found.extend(key.and_then(|key| common.rule.key.narrowed(&key)).map(Key));
    }
    found.extend(lock(histories).iter().cloned());
    if found.len() > OFFERS_MAX {
        let over = found.len() - OFFERS_MAX;
        common.node.note_dropped(DropReason::NotImported, over.try_into().unwrap_or(u64::MAX));
        common.warn(|| {
            format!("{over} queryables beyond {OFFERS_MAX} cannot be queried from other nodes")
        });
    }
    let complete = |key: &Key| match known.get(key) {
        _ if history::is_history(&key.0) => false,
        Some(complete) if !again => *complete,
        _ => is_complete(common, &key.0),
    };
    found.into_iter().take(OFFERS_MAX).map(|key| (key.clone(), complete(&key))).collect()
}

/// Returns true if one of the queryables for `key` is complete.
fn is_complete(common: &Common, key: &OwnedKeyExpr) -> bool {
    let querier = common.session.declare_querier(key.clone()).target(QueryTarget::AllComplete);
    let status = querier
        .allowed_destination(Locality::Remote)
        .wait()
        .and_then(|querier| querier.matching_status().wait());
    status.is_ok_and(|status| status.matching())
}

/// Returns true if a Zenoh id other than `own` declares the queryable. `sources` has the form
/// `{"routers":["…"],…}`.
fn is_of_others(sources: &str, own: &str) -> bool {
    let is_id = |part: &&str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit()) && *part != own
    };
    sources.split('"').any(|part| is_id(&part))
}

/// Formats one line per key: the completeness, a space, and the key, which contains no space.
fn write(keys: &Keys) -> String {
    let line = |(key, complete): (&Key, &bool)| {
        let key = key.0.as_str();
        format!("{} {key}\n", if *complete { "complete" } else { "partial" })
    };
    keys.iter().map(line).collect()
}

/// Parses an announcement of another node. Skips invalid lines.
pub(super) fn read(payload: &[u8]) -> Keys {
    let text = std::str::from_utf8(payload).unwrap_or_default();
    let line = |line: &str| {
        let (what, key) = line.split_once(' ')?;
        let complete = match what {
            "complete" => true,
            "partial" => false,
            _ => return None,
        };
        Some((Key(OwnedKeyExpr::try_from(key).ok()?), complete))
    };
    text.lines().filter_map(line).take(OFFERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announced_offers_round_trip() {
        let key = |text: &str| Key(OwnedKeyExpr::try_from(text).unwrap());
        let keys = Keys::from([(key("a/*"), false), (key("0/add/x::Y_/RIHS01_ab"), true)]);
        assert_eq!(read(write(&keys).as_bytes()), keys);
        assert_eq!(read(b"complete\npartial a//b\nwhole a\npartial ok\n\xc3"), Keys::new());
        let odd = read(b"complete\npartial a//b\nwhole a\npartial ok\n");
        assert_eq!(odd, Keys::from([(key("ok"), false)]));
    }

    #[test]
    fn own_declarations_are_not_attributed_to_others() {
        let own = "0123abcd";
        for (sources, others) in [
            (r#"{"routers":["0123abcd"],"peers":[],"clients":["0123abcd"]}"#, false),
            (r#"{"routers":["0123abcd"],"peers":[],"clients":["0123abcd","77ff"]}"#, true),
            (r#"{"routers":[],"peers":["9"],"clients":[]}"#, true),
            ("{}", false),
        ] {
            assert_eq!(is_of_others(sources, own), others, "{sources}");
        }
    }
}
