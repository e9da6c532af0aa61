//! Which queryables of plain programs others may ask: what Zenoh's own administration knows of them, told
//! as text when it changes and now and then for whoever comes late.

use super::Common;
use paceline::{DropReason, Encoding, Kind, Publisher};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use zenoh::Wait;
use zenoh::key_expr::OwnedKeyExpr;
use zenoh::query::QueryTarget;
use zenoh::sample::Locality;

/// What a sample of them is.
const ENCODING: &str = "text/plain;queryables";
/// Queryables that are told of a rule.
pub(super) const OFFERS_MAX: usize = 4_096;
/// Zenoh tells of no change of them: they are looked at again and again, but not so often that it takes more
/// than one part in so many of a processor.
const SCAN_EVERY: Duration = Duration::from_millis(50);
const SCAN_PART: u32 = 50;
/// How often all are told to whoever came late, or lost a sample.
const REPEAT: Duration = Duration::from_secs(10);

/// A key in the order of its text: Zenoh gives keys none.
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

/// Keys that can be asked, and whether all that there is of one is had by asking one of them.
pub(super) type Keys = BTreeMap<Key, bool>;

/// Tells others what they may ask; ends when dropped.
pub(super) struct Offers {
    end: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Offers {
    pub(super) fn open(common: Common) -> zenoh::Result<Self> {
        let publisher = common.node.publisher(&common.offers_tag())?.kind(Kind::State);
        let publisher = publisher.encoding(Encoding::new(ENCODING)).declare()?;
        let (end, ended) = sync_channel(0);
        let named = std::thread::Builder::new().name(format!("paceline-offer-{}", common.number));
        let thread = named.spawn(move || run(&common, publisher, &ended))?;
        Ok(Self { end: Some(end), thread: Some(thread) })
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

fn run(common: &Common, mut publisher: Publisher, ended: &Receiver<()>) {
    let (mut keys, mut matching, mut told, mut pause) =
        (Keys::new(), false, Instant::now(), Duration::ZERO);
    while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let began = Instant::now();
        let newly = publisher.matching() && !matching;
        matching = publisher.matching();
        let again = told.elapsed() > REPEAT;
        // What can be asked is nobody's business while nobody asks.
        let found = if matching { scan(common, &keys, again) } else { Keys::new() };
        if newly || again || found != keys {
            (keys, told) = (found, began);
            if let Err(error) = publisher.put(write(&keys).into_bytes()) {
                tracing::debug!("{}: {error}", publisher.tag());
            }
        }
        pause = SCAN_EVERY.max(began.elapsed() * SCAN_PART);
    }
}

/// The queryables that there are now. Of those that are `known` already it is asked `again` what they are.
fn scan(common: &Common, known: &Keys, again: bool) -> Keys {
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
        // What answers more than the rule carries is asked for no more than that.
        found.extend(key.and_then(|key| common.rule.key.narrowed(&key)).map(Key));
    }
    if found.len() > OFFERS_MAX {
        let over = found.len() - OFFERS_MAX;
        common.node.note_dropped(DropReason::NotImported, over.try_into().unwrap_or(u64::MAX));
        common.say(|| {
            format!("{over} queryables beyond {OFFERS_MAX} cannot be asked from elsewhere")
        });
    }
    let complete = |key: &Key| match known.get(key) {
        Some(complete) if !again => *complete,
        _ => is_complete(common, &key.0),
    };
    found.into_iter().take(OFFERS_MAX).map(|key| (key.clone(), complete(&key))).collect()
}

/// True if one of the queryables behind `key` says that it has all that there is.
fn is_complete(common: &Common, key: &OwnedKeyExpr) -> bool {
    let querier = common.session.declare_querier(key.clone()).target(QueryTarget::AllComplete);
    let status = querier
        .allowed_destination(Locality::Remote)
        .wait()
        .and_then(|querier| querier.matching_status().wait());
    status.is_ok_and(|status| status.matching())
}

/// True if any other than `own` is among the ids of Zenoh that hold a queryable: `{"routers":["…"],…}`.
fn is_of_others(sources: &str, own: &str) -> bool {
    let is_id = |part: &&str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit()) && *part != own
    };
    sources.split('"').any(|part| is_id(&part))
}

/// A line for each key: what it is, a blank, and the key, which has none.
fn write(keys: &Keys) -> String {
    let line = |(key, complete): (&Key, &bool)| {
        let key = key.0.as_str();
        format!("{} {key}\n", if *complete { "complete" } else { "partial" })
    };
    keys.iter().map(line).collect()
}

/// What another node wrote; lines that are none are left out.
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
    fn what_is_told_is_read() {
        let key = |text: &str| Key(OwnedKeyExpr::try_from(text).unwrap());
        let keys = Keys::from([(key("a/*"), false), (key("0/add/x::Y_/RIHS01_ab"), true)]);
        assert_eq!(read(write(&keys).as_bytes()), keys);
        assert_eq!(read(b"complete\npartial a//b\nwhole a\npartial ok\n\xc3"), Keys::new());
        let odd = read(b"complete\npartial a//b\nwhole a\npartial ok\n");
        assert_eq!(odd, Keys::from([(key("ok"), false)]));
    }

    #[test]
    fn what_this_node_declares_is_not_of_others() {
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
