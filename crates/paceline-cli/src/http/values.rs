//! The newest value of each tag of a subscription, as text, while a client displays them.

use super::pictures::{NoPicture, id};
use paceline::contract::Retransmit;
use paceline::status::SubscriptionId;
use paceline::{Node, Sample, Subscription, Tag, View};
use serde::Serialize;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest displayed text in characters; the rest is cut.
const TEXT_MAX: usize = 120;
/// The time without requests after which a subscription is no longer observed.
const UNWATCHED: Duration = Duration::from_secs(5);
/// The largest number of subscriptions observed at a time.
const WATCHED_MAX: usize = 16;

/// The rate of each publisher at an observer.
const OBSERVED_HZ: f64 = 2.0;
/// The most tags whose values an observer keeps.
const TAGS_MAX: usize = 64;

/// The newest value of a tag.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Value {
    tag: String,
    seq: u64,
    encoding: String,
    bytes: usize,
    /// The payload if it is text or JSON, at most 120 characters; null otherwise.
    text: Option<String>,
}

/// The answer of `/api/v1/values/SUBSCRIPTION`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Values {
    /// At most 64 tags, in alphabetical order.
    rows: Vec<Value>,
}

/// The newest samples of a subscription.
enum Look {
    /// A subscription of this process.
    Own(View),
    /// One of another process: an observer with the same pattern. It exists only if no link with a capacity would carry
    /// anything for it.
    Observer(Subscription, Arc<Mutex<BTreeMap<Tag, Sample>>>),
}

impl Look {
    fn open(node: &Node, id: SubscriptionId) -> Result<Self, NoPicture> {
        if let Some(view) = node.view(id) {
            return Ok(Self::Own(view));
        }
        let all = node.subscriptions();
        let known = all.iter().find(|known| known.id == id).ok_or(NoPicture::Unknown)?;
        let sources = node.sources(&known.pattern);
        if !sources.iter().all(|source| source.hops.iter().all(|hop| hop.capacity.is_none())) {
            let why = "its samples come over a link with a capacity, which the page does not use: open the page of its \
                       own node";
            return Err(NoPicture::NotShown(why.to_owned()));
        }
        let newest = Arc::<Mutex<BTreeMap<Tag, Sample>>>::default();
        let keep = newest.clone();
        let builder = node.subscriber(known.pattern.as_str()).max_hz(OBSERVED_HZ);
        let observer = builder.retransmit(Retransmit::None).callback(move |sample| {
            let mut newest = keep.lock().unwrap_or_else(PoisonError::into_inner);
            if newest.len() < TAGS_MAX || newest.contains_key(&sample.tag) {
                newest.insert(sample.tag.clone(), sample);
            }
        });
        let observer = observer.map_err(|error| NoPicture::NotShown(error.to_string()))?;
        Ok(Self::Observer(observer, newest))
    }

    fn newest(&self) -> Vec<Sample> {
        match self {
            Self::Own(view) => view.newest_of_tags(),
            Self::Observer(_, newest) => {
                let newest = newest.lock().unwrap_or_else(PoisonError::into_inner);
                newest.values().cloned().collect()
            }
        }
    }
}

/// The observed subscriptions.
#[derive(Default)]
pub(super) struct Watching(BTreeMap<SubscriptionId, (Look, Instant)>);

impl Watching {
    /// Returns the newest value of each tag since the first request.
    pub(super) fn newest(&mut self, node: &Node, subscription: &str) -> Result<Values, NoPicture> {
        let id = id(subscription).ok_or(NoPicture::Unknown)?;
        self.forget_unwatched();
        if !self.0.contains_key(&id) && self.0.len() >= WATCHED_MAX {
            return Err(NoPicture::Busy);
        }
        let now = Instant::now();
        let (look, asked) = match self.0.entry(id) {
            Entry::Occupied(place) => place.into_mut(),
            Entry::Vacant(place) => place.insert((Look::open(node, id)?, now)),
        };
        *asked = now;
        Ok(Values { rows: look.newest().iter().map(value).collect() })
    }

    /// Ends the observation of subscriptions without recent requests, and of those that have ended.
    pub(super) fn forget_unwatched(&mut self) {
        self.0.retain(|_, (look, asked)| {
            let ended = matches!(look, Look::Own(view) if view.is_closed());
            !ended && asked.elapsed() < UNWATCHED
        });
    }

    /// Returns the ids of the observers, which the page does not show.
    pub(super) fn observers(&self) -> BTreeSet<String> {
        let ids = self.0.values().filter_map(|(look, _)| match look {
            Look::Own(_) => None,
            Look::Observer(observer, _) => Some(observer.id().to_string()),
        });
        ids.collect()
    }
}

fn value(sample: &Sample) -> Value {
    let name = sample.encoding.as_str();
    let is_text = name.starts_with("text/") || name.starts_with("application/json");
    let text = std::str::from_utf8(&sample.payload).ok().filter(|_| is_text);
    Value {
        tag: sample.tag.to_string(),
        seq: sample.seq,
        encoding: name.to_owned(),
        bytes: sample.payload.len(),
        text: text.map(|text| text.chars().take(TEXT_MAX).collect()),
    }
}
