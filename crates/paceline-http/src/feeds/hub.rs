//! The feeds of a server: one for all receivers with the same request.

use super::fault::{FeedFault, FeedFaultKind};
use super::feed::{Feed, FeedKey, FeedReader};
use super::stage::FeedStage;
use crate::request::ViewerRequest;
use paceline::{Node, Pattern, Tag};
use paceline_edge::{ServeError, TrackFormat};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most feeds.
const FEEDS_MAX: usize = 64;
/// The longest wait for the answer of a path.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_millis(2_500);
/// The longest wait for the first sample, for a description with its parameters.
const SAMPLE_WITHIN: Duration = Duration::from_millis(1_500);
/// The longest wait for a publisher to become known, and the distance of two looks.
const PUBLISHER_WITHIN: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Most tags in an error.
const NAMED_MAX: usize = 8;

/// A use of a feed: it lasts while one of them exists.
#[derive(Clone)]
pub(crate) struct FeedLease {
    pub(crate) feed: Arc<Feed>,
    _used: Arc<()>,
}

struct OpenFeed {
    feed: Arc<Feed>,
    used: Arc<()>,
}

/// The feeds of a node.
pub(crate) struct Hub {
    node: Node,
    feeds: Mutex<BTreeMap<(String, String), OpenFeed>>,
}

/// A tag that is requested, with its options as of an address: `max_hz=10&size=320x240`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct FeedWish {
    pub(crate) tag: String,
    pub(crate) query: String,
}

/// The samples that a receiver accepts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Accepted {
    /// The format, if the media type states it.
    pub(crate) format: Option<TrackFormat>,
    /// The option by which the subscription codes samples that the receiver cannot read as published, unless the request has one.
    pub(crate) option: Option<&'static str>,
}

/// The tracks of a request.
pub(crate) struct Found {
    pub(crate) leases: Vec<FeedLease>,
    pub(crate) stages: Vec<FeedStage>,
    pub(crate) formats: Vec<TrackFormat>,
    pub(crate) rates: Vec<Option<f64>>,
}

/// A source of a tag.
struct Source {
    encoding: String,
    hz: Option<f64>,
}

impl Hub {
    pub(crate) fn new(node: Node) -> Arc<Self> {
        Arc::new(Self { node, feeds: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, String), OpenFeed>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) const fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the time of the node's clock in nanoseconds since 1970 UTC.
    pub(crate) fn now(&self) -> u64 {
        self.node.clock().now().nanos
    }

    /// Opens the feeds of a request, and waits for their formats. `accept` checks a media type before a subscription, which would
    /// not help.
    ///
    /// # Errors
    /// Returns the reason why the request is not served.
    pub(crate) async fn find(
        self: &Arc<Self>,
        wishes: &[FeedWish],
        accept: impl Fn(&str) -> Result<Accepted, ServeError>,
    ) -> Result<Found, FeedFault> {
        let mut found = Found {
            leases: Vec::new(),
            stages: Vec::new(),
            formats: Vec::new(),
            rates: Vec::new(),
        };
        for FeedWish { tag, query } in wishes {
            let of_query = |query: &str| {
                let request = ViewerRequest::from_query(query);
                request.map_err(|why| FeedFault::new(FeedFaultKind::Request, why))
            };
            let mut request = of_query(query)?;
            let source = self.source(tag).await?;
            let early = accept(&source.encoding);
            let early = early.or_else(|error| match error {
                ServeError::Encoding { .. } | ServeError::Browser { .. } => {
                    Err(unreadable(tag, &error.to_string()))
                }
                ServeError::Sample(..) => Ok(Accepted::default()),
            })?;
            if let Some(option) = early.option.filter(|_| !query.contains("bitrate=")) {
                request = of_query(&format!("{query}&{option}"))?;
            }
            let lease = self.open((tag.clone(), request))?;
            let stage = lease.feed.wait(SAMPLE_WITHIN, FeedStage::is_described).await;
            let format = match (stage.format, &stage.ended, &stage.unfit) {
                (_, Some(why), _) => return Err(FeedFault::of(tag, FeedFaultKind::Missing, why)),
                (Some(format), ..) => format,
                (None, None, Some(why)) => return Err(unreadable(tag, why)),
                (None, None, None) => {
                    match early.format.filter(|_| !source.encoding.starts_with("audio/")) {
                        Some(format) => format,
                        None => unknown(&lease, tag).await?,
                    }
                }
            };
            found.leases.push(lease);
            found.stages.push(stage);
            found.formats.push(format);
            found.rates.push(source.hz);
        }
        Ok(found)
    }

    /// Returns the feed of a request; opens it if necessary.
    fn open(self: &Arc<Self>, key: FeedKey) -> Result<FeedLease, FeedFault> {
        let name = (key.0.clone(), key.1.words().to_owned());
        let mut feeds = self.lock();
        if let Some(OpenFeed { feed, used }) = feeds.get(&name) {
            return Ok(FeedLease { feed: feed.clone(), _used: used.clone() });
        }
        if feeds.len() >= FEEDS_MAX {
            let why = format!(
                "{FEEDS_MAX} different requests are served, which is the limit; open one of these, or wait"
            );
            return Err(FeedFault::new(FeedFaultKind::Unavailable, why));
        }
        let (feed, used) = (Feed::new(), Arc::new(()));
        feeds.insert(name.clone(), OpenFeed { feed: feed.clone(), used: used.clone() });
        drop(feeds);
        let lease = FeedLease { feed: feed.clone(), _used: used.clone() };
        tokio::spawn(self.clone().serve(name, key, feed, used));
        Ok(lease)
    }

    async fn serve(
        self: Arc<Self>,
        name: (String, String),
        key: FeedKey,
        feed: Arc<Feed>,
        used: Arc<()>,
    ) {
        let (node, of) = (self.node.clone(), feed.clone());
        let opened = tokio::task::spawn_blocking(move || FeedReader::open(&node, &key, of)).await;
        match opened {
            Ok(Ok(reader)) => {
                // The map and this task use it, too.
                reader.run(|| Arc::strong_count(&used) > 2).await;
            }
            Ok(Err(why)) => feed.end(&why),
            Err(error) => feed.end(&error.to_string()),
        }
        let mut feeds = self.lock();
        if feeds.get(&name).is_some_and(|known| Arc::ptr_eq(&known.feed, &feed)) {
            feeds.remove(&name);
        }
    }

    /// Returns the publisher of a tag.
    async fn source(&self, tag: &str) -> Result<Source, FeedFault> {
        let name = Tag::new(tag);
        let name = name.map_err(|error| {
            FeedFault::new(FeedFaultKind::Missing, format!("the address names no tag: {error}"))
        })?;
        let until = tokio::time::Instant::now() + PUBLISHER_WITHIN;
        loop {
            let (node, tag) = (self.node.clone(), name.clone());
            let found = tokio::task::spawn_blocking(move || {
                let sources = Pattern::new(tag.as_str()).map(|only| node.sources(&only));
                sources.unwrap_or_default().into_iter().next()
            });
            if let Ok(Some(source)) = found.await {
                let period = source.period.map(|period| period.as_secs_f64());
                let hz = period.filter(|period| *period > 0.0).map(|period| 1.0 / period);
                return Ok(Source { encoding: source.encoding.to_string(), hz });
            }
            if tokio::time::Instant::now() >= until {
                return Err(self.nobody(tag_of(&name)).await);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Returns the refusal for a tag without a publisher.
    async fn nobody(&self, tag: &str) -> FeedFault {
        let node = self.node.clone();
        let all = tokio::task::spawn_blocking(move || {
            Pattern::new("**").map(|all| node.sources(&all)).unwrap_or_default()
        });
        let mut tags: Vec<String> = all
            .await
            .unwrap_or_default()
            .into_iter()
            .map(|source| source.tag.to_string())
            .collect();
        tags.sort_unstable();
        tags.dedup();
        let more = if tags.len() > NAMED_MAX { ", …" } else { "" };
        tags.truncate(NAMED_MAX);
        let there = match tags.as_slice() {
            [] => "no tag is published".to_owned(),
            tags => format!("published: {}{more}", tags.join(", ")),
        };
        FeedFault::of(tag, FeedFaultKind::Missing, &format!("nobody publishes it; {there}"))
    }
}

fn tag_of(tag: &Tag) -> &str {
    tag.as_str()
}

/// Returns the format of samples of which none has arrived yet.
async fn unknown(lease: &FeedLease, tag: &str) -> Result<TrackFormat, FeedFault> {
    let stage = lease.feed.wait(ANSWER_WITHIN, FeedStage::is_described).await;
    if let Some(refusal) = FeedFault::refused(&stage) {
        return Err(refusal);
    }
    stage.format.ok_or_else(|| {
        let why = "no sample has arrived yet; try again";
        FeedFault::of(tag, FeedFaultKind::Unavailable, why)
    })
}

fn unreadable(tag: &str, why: &str) -> FeedFault {
    FeedFault::of(tag, FeedFaultKind::Format, why)
}
