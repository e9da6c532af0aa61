//! The newest value of each tag of a subscription, as text, while a client displays them.

use super::look::Look;
use super::watched::{NoPicture, Watched, id};
use paceline::{Node, Sample};
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Duration;

/// The longest displayed text in characters; the rest is cut.
const TEXT_MAX: usize = 120;
/// The time without requests after which a subscription is no longer observed.
const UNWATCHED: Duration = Duration::from_secs(5);
/// The rate of each publisher at an observer.
const OBSERVED_HZ: f64 = 2.0;

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
pub(super) struct Watching(Watched<Look>);

impl Watching {
    /// Returns the newest value of each tag since the first request.
    pub(super) fn newest(&mut self, node: &Node, subscription: &str) -> Result<Values, NoPicture> {
        let id = id(subscription)?;
        self.forget_unwatched();
        let newest = self.0.get(id, || Look::open(node, id, OBSERVED_HZ))?.newest_of_tags(node);
        if newest.is_err() {
            self.0.remove(id);
        }
        Ok(Values { rows: newest?.iter().map(value).collect() })
    }

    /// Ends the observation of subscriptions without recent requests, and of those that have ended.
    pub(super) fn forget_unwatched(&mut self) {
        self.0.forget(UNWATCHED, Look::is_closed);
    }

    /// Returns the ids of the observers, which the page does not show.
    pub(super) fn observers(&self) -> BTreeSet<String> {
        self.0.all().filter_map(Look::observer).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::{Capacity, LinkConfig};
    use std::net::TcpListener;
    use std::time::Instant;

    fn until(what: &str, mut is_true: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(10);
        while !is_true() {
            assert!(Instant::now() < end, "{what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn over_a_link_with_a_capacity_an_observer_shares_the_stream_of_the_subscription() {
        let open = |name, link| Node::builder().name(name).isolated().link(link).open().unwrap();
        let address = || {
            let socket = TcpListener::bind("127.0.0.1:0").unwrap();
            format!("tcp/{}", socket.local_addr().unwrap())
        };
        let (free, thin) = (address(), address());
        let capacity = Capacity::from_bits_per_s(1_000_000).unwrap();
        let builder = Node::builder().name("page").isolated();
        let builder = builder.link(LinkConfig::new("free").listen(&free));
        let page =
            builder.link(LinkConfig::new("thin").listen(&thin).capacity(capacity)).open().unwrap();
        let near = open("near", LinkConfig::new("free").connect(&free));
        let subscription = near.subscriber("a/*").callback(|_| ()).unwrap();
        let id = subscription.id().to_string();
        let mut values = Watching::default();
        // Nobody publishes yet, so that no link is used.
        until("the subscription is known", || values.newest(&page, &id).is_ok());
        let mut inner = near.publisher("a/near").declare().unwrap();
        until("the near value arrives", || {
            inner.put("1").unwrap();
            values.newest(&page, &id).unwrap().rows.len() == 1
        });
        assert_eq!(values.observers().len(), 1);

        let far = open("far", LinkConfig::new("thin").connect(&thin).capacity(capacity));
        let mut outer = far.publisher("a/far").declare().unwrap();
        until("the far publisher is known", || values.newest(&page, &id).is_err());
        assert!(values.observers().is_empty(), "the observer has ended");
        until("both values arrive", || {
            outer.put("2").unwrap();
            inner.put("3").unwrap();
            std::thread::sleep(Duration::from_millis(20));
            values.newest(&page, &id).is_ok_and(|values| values.rows.len() == 2)
        });
        let streams = || {
            let status = far.status_of(&[far.id()], Duration::from_secs(5));
            status[0].links[0].streams.len()
        };
        until("the link's status shows the stream", || streams() > 0);
        assert_eq!(streams(), 1, "the link carries nothing for the page alone");

        // No stream of this subscription crosses the link, so an observer would need one of its own.
        let local = far.subscriber("a/far").callback(|_| ()).unwrap();
        let id = local.id().to_string();
        until("it is known", || !matches!(values.newest(&page, &id), Err(NoPicture::Unknown)));
        let error = values.newest(&page, &id).unwrap_err();
        assert!(matches!(&error, NoPicture::NotShown(why) if why.contains("link with a capacity")));
    }
}
