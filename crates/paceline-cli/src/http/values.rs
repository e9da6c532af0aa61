//! The newest value of each tag of a subscription, as text, while a client displays them.

use super::pictures::{NoPicture, id};
use paceline::status::SubscriptionId;
use paceline::{Node, Sample, View};
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::{Duration, Instant};

/// The longest displayed text in characters; the rest is cut.
const TEXT_MAX: usize = 120;
/// The time without requests after which a subscription is no longer observed.
const UNWATCHED: Duration = Duration::from_secs(5);
/// The largest number of subscriptions observed at a time.
const WATCHED_MAX: usize = 16;

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

/// The observed subscriptions.
#[derive(Default)]
pub(super) struct Watching(BTreeMap<SubscriptionId, (View, Instant)>);

impl Watching {
    /// Returns the newest value of each tag since the first request.
    pub(super) fn newest(&mut self, node: &Node, subscription: &str) -> Result<Values, NoPicture> {
        let id = id(subscription).ok_or(NoPicture::Unknown)?;
        let now = Instant::now();
        self.0.retain(|_, (view, asked)| !view.is_closed() && now < *asked + UNWATCHED);
        if !self.0.contains_key(&id) && self.0.len() >= WATCHED_MAX {
            return Err(NoPicture::Busy);
        }
        let (view, asked) = match self.0.entry(id) {
            Entry::Occupied(place) => place.into_mut(),
            Entry::Vacant(place) => place.insert((node.view(id).ok_or(NoPicture::Unknown)?, now)),
        };
        *asked = now;
        Ok(Values { rows: view.newest_of_tags().iter().map(value).collect() })
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
