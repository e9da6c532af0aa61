//! The newest samples of a subscription, for the page.

use super::watched::NoPicture;
use paceline::contract::{Form, Retransmit};
use paceline::status::{SourceView, SubscriptionId, SubscriptionView};
use paceline::{Kind, Node, Pattern, Sample, SubscriberBuilder, Subscription, Tag, View};
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
    /// carry anything for it alone.
    Observer {
        id: SubscriptionId,
        pattern: Pattern,
        shared: Option<Form>,
        subscription: Subscription,
        newest: Arc<Mutex<BTreeMap<Tag, Sample>>>,
    },
}

impl Look {
    /// Opens a view of a subscription of this process, or an observer for one of another process. The observer takes samples
    /// at `hz`, or shares the stream of the subscription over links with a capacity, which then carry nothing more. Of video,
    /// it receives the pictures at which decoding can start.
    ///
    /// # Errors
    /// Returns [`NoPicture::Unknown`] without such a subscription, and [`NoPicture::NotShown`] if a link with a capacity would
    /// carry samples for the observer alone.
    pub(super) fn open(node: &Node, id: SubscriptionId, hz: f64) -> Result<Self, NoPicture> {
        if let Some(view) = node.view(id) {
            return Ok(Self::Own(view));
        }
        let mut all = node.subscriptions().into_iter();
        let SubscriptionView { pattern, form, .. } =
            all.find(|known| known.id == id).ok_or(NoPicture::Unknown)?;
        let Free { is_video, shared } = check_free(node, &pattern, id)?;
        let newest = Arc::<Mutex<BTreeMap<Tag, Sample>>>::default();
        let keep = newest.clone();
        let builder = node.subscriber(pattern.as_str());
        let builder = match shared {
            Some(form) => with_form(builder, form),
            None if is_video => builder,
            // As large as the subscriber receives them.
            None => match form.size {
                Some(size) => builder.max_hz(hz).size(size.width, size.height),
                None => builder.max_hz(hz),
            },
        };
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
        Ok(Self::Observer { id, pattern, shared, subscription, newest })
    }

    /// Returns the newest sample of each tag.
    ///
    /// # Errors
    /// Returns [`NoPicture::NotShown`] if a publisher has appeared behind a link with a capacity.
    pub(super) fn newest_of_tags(&self, node: &Node) -> Result<Vec<Sample>, NoPicture> {
        match self {
            Self::Own(view) => Ok(view.newest_of_tags()),
            Self::Observer { id, pattern, shared, newest, .. } => {
                if check_free(node, pattern, *id)?.shared != *shared {
                    return Err(NoPicture::NotShown("its path has changed: wait a moment".into()));
                }
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

/// The samples that an observer may take.
struct Free {
    /// Any publisher sends video.
    is_video: bool,
    /// The form of the observed subscription, if its stream crosses a link with a capacity: an observer shares it.
    shared: Option<Form>,
}

/// Checks that no link with a capacity would carry samples for an observer alone.
///
/// # Errors
/// Returns [`NoPicture::NotShown`] if one would.
fn check_free(node: &Node, pattern: &Pattern, id: SubscriptionId) -> Result<Free, NoPicture> {
    let sources = node.sources(pattern);
    let mut shared = None;
    for source in &sources {
        let taken = source.taken.iter().find(|taken| taken.subscription == id);
        // Pages that observe each other's observers would never end.
        if taken.is_some_and(|taken| taken.retransmit == Retransmit::None) {
            let why =
                "it takes no repairs, as the observers of pages do: open the page of its own node";
            return Err(NoPicture::NotShown(why.to_owned()));
        }
        let is_carried = |hop| taken.is_some_and(|taken| taken.hops.contains(hop));
        let mut limited = source.hops.iter().filter(|hop| hop.capacity.is_some()).peekable();
        if limited.peek().is_none() {
            continue;
        }
        let form = taken.map(|taken| taken.form);
        if !limited.all(is_carried) || shared.is_some_and(|other| Some(other) != form) {
            let why = "a link with a capacity would carry them for this page alone: open the page of its own node";
            return Err(NoPicture::NotShown(why.to_owned()));
        }
        shared = form;
    }
    let is_video = |source: &SourceView| Format::codec_of(source.encoding.as_str()).is_some();
    Ok(Free { is_video: sources.iter().any(is_video), shared })
}

/// Requests exactly this form, so that the observer gets a copy of its stream.
fn with_form(builder: SubscriberBuilder<'_>, form: Form) -> SubscriberBuilder<'_> {
    let mut builder = builder.rate(form.rate);
    if let Some(size) = form.size {
        builder = builder.size(size.width, size.height);
    }
    if let Some(audio) = form.audio {
        builder = builder.audio(audio.rate, audio.channels);
    }
    if let Some(quality) = form.quality {
        builder = builder.quality(quality.get());
    }
    match form.bitrate {
        Some(bitrate) => builder.bitrate(bitrate.get()),
        None => builder,
    }
}
