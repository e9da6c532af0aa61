//! The newest samples of a subscription, for the page.

use super::watched::NoPicture;
use paceline::contract::Retransmit;
use paceline::status::{SourceView, SubscriptionId};
use paceline::{Kind, Node, Pattern, Sample, Subscription, Tag, View};
use paceline_media::Format;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The most tags whose values an observer keeps.
const TAGS_MAX: usize = 64;

/// The newest samples of a subscription.
pub(super) enum Look {
    /// A subscription of this process.
    Own(View),
    /// One of another process: an observer with the same pattern. It exists only while no link with a capacity would
    /// carry anything for it.
    Observer {
        pattern: Pattern,
        subscription: Subscription,
        newest: Arc<Mutex<BTreeMap<Tag, Sample>>>,
    },
}

impl Look {
    /// Opens a view of a subscription of this process, or an observer at `hz` for one of another process. Of video, an
    /// observer receives the pictures at which decoding can start.
    ///
    /// # Errors
    /// Returns [`NoPicture::Unknown`] without such a subscription, and [`NoPicture::NotShown`] if samples come over a link
    /// with a capacity.
    pub(super) fn open(node: &Node, id: SubscriptionId, hz: f64) -> Result<Self, NoPicture> {
        if let Some(view) = node.view(id) {
            return Ok(Self::Own(view));
        }
        let mut all = node.subscriptions().into_iter();
        let pattern = all.find(|known| known.id == id).ok_or(NoPicture::Unknown)?.pattern;
        let is_video = check_free(node, &pattern)?;
        let newest = Arc::<Mutex<BTreeMap<Tag, Sample>>>::default();
        let keep = newest.clone();
        let builder = node.subscriber(pattern.as_str());
        let builder = if is_video { builder } else { builder.max_hz(hz) };
        let subscription = builder.retransmit(Retransmit::None).callback(move |sample| {
            if sample.kind.is_video() && sample.kind != Kind::VideoI {
                return;
            }
            let mut newest = keep.lock().unwrap_or_else(PoisonError::into_inner);
            if newest.len() < TAGS_MAX || newest.contains_key(&sample.tag) {
                newest.insert(sample.tag.clone(), sample);
            }
        });
        let subscription = subscription.map_err(|error| NoPicture::NotShown(error.to_string()))?;
        Ok(Self::Observer { pattern, subscription, newest })
    }

    /// Returns the newest sample of each tag.
    ///
    /// # Errors
    /// Returns [`NoPicture::NotShown`] if a publisher has appeared behind a link with a capacity.
    pub(super) fn newest_of_tags(&self, node: &Node) -> Result<Vec<Sample>, NoPicture> {
        match self {
            Self::Own(view) => Ok(view.newest_of_tags()),
            Self::Observer { pattern, newest, .. } => {
                check_free(node, pattern)?;
                let newest = newest.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(newest.values().cloned().collect())
            }
        }
    }

    /// Returns the newest sample: of video, the newest picture at which decoding can start.
    ///
    /// # Errors
    /// Returns [`NoPicture::NotShown`] if a publisher has appeared behind a link with a capacity.
    pub(super) fn newest(&self, node: &Node) -> Result<Option<Sample>, NoPicture> {
        if let Self::Own(view) = self {
            return Ok(view.newest_start().or_else(|| view.newest()));
        }
        Ok(self.newest_of_tags(node)?.into_iter().max_by_key(|sample| sample.captured))
    }

    /// Returns true if the subscription is known to have ended.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self, Self::Own(view) if view.is_closed())
    }

    /// Returns the id of the observer, which the page does not show.
    pub(super) fn observer(&self) -> Option<String> {
        match self {
            Self::Own(_) => None,
            Self::Observer { subscription, .. } => Some(subscription.id().to_string()),
        }
    }
}

/// Returns true if any publisher of this pattern sends video.
///
/// # Errors
/// Returns [`NoPicture::NotShown`] if samples come over a link with a capacity.
fn check_free(node: &Node, pattern: &Pattern) -> Result<bool, NoPicture> {
    let sources = node.sources(pattern);
    if sources.iter().all(|source| source.hops.iter().all(|hop| hop.capacity.is_none())) {
        let is_video = |source: &SourceView| Format::codec_of(source.encoding.as_str()).is_some();
        return Ok(sources.iter().any(is_video));
    }
    let why = "its samples come over a link with a capacity, which the page does not use: open the page of its own node";
    Err(NoPicture::NotShown(why.to_owned()))
}
