//! Pull: past samples, stored in buffers and fetched on demand.
//!
//! A publisher, a subscriber or [`Node::buffer`] stores samples within the limits of a [`History`].
//! [`Node::pull`] fetches them from any node.
//!
//! ```no_run
//! use paceline::pull::History;
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = paceline::Node::open()?;
//! let mut log = node.publisher("robot/log").history(History::new().samples(100)).declare()?;
//! log.put("started")?;
//! for sample in node.pull("robot/log").newest(10).timeout(Duration::from_secs(2)).run()? {
//!     println!("{} {} bytes", sample.seq, sample.payload.len());
//! }
//! # Ok(())
//! # }
//! ```

use crate::Sample;
pub use crate::buffer::{Buffer, BufferBuilder};
use crate::error::{Contradiction, RecvError, set};
pub use crate::history::History;
use crate::limits::{AUDIO_CHANNELS, AUDIO_RATES, SIDE_MAX, millihertz};
use crate::node::Node;
use crate::shell::pull::{Pipe, PullEvent, Wanted, start};
pub use crate::summary::{Missing, MissingReason, PullError, PullNode, PullSummary};
use paceline_proto::form::Audio;
use paceline_proto::pull::{Find, Selection};
#[doc(inline)]
pub use paceline_proto::pull::{Limits, LimitsError, SelectionError};
use paceline_proto::{Form, PublisherId, Rate, Size, Tag};
use std::fmt;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of samples of an ordered buffer ([`PullBuilder::hold_at`]) on the command line and in Python, unless
/// specified.
pub const ORDERED_SAMPLES: u32 = 100;

/// Configures and starts a pull from pull buffers. Created by [`Node::pull`].
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = paceline::Node::open()?;
/// let mut pulled = node.pull("robot/camera").newest(10).size(160, 120).run()?;
/// for sample in &mut pulled {
///     println!("{} {} {}", sample.publisher, sample.seq, sample.payload.len());
/// }
/// println!("{:?}", pulled.summary());
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is pulled before run()"]
pub struct PullBuilder<'a> {
    node: &'a Node,
    /// The settings, or the first wrong value.
    draft: Result<Draft, PullError>,
}

/// The settings of a pull.
struct Draft {
    wanted: Wanted,
    timeout: Option<Duration>,
    /// The options that selected samples and scaling.
    selected_by: Option<&'static str>,
    scaled_by: Option<&'static str>,
    /// The option that named the node.
    from_by: Option<&'static str>,
}

impl Draft {
    const fn new(tag: Tag) -> Self {
        let selection = Selection::Newest(1);
        let find = Find { tag, publisher: None, selection, rate: Rate::ALL, after: None };
        let wanted =
            Wanted { find, form: Form::FULL, from: None, order: None, until: None, at_once: false };
        Self { wanted, timeout: None, selected_by: None, scaled_by: None, from_by: None }
    }

    fn every(&mut self, n: u32) -> Result<(), PullError> {
        self.wanted.find.rate.every = NonZeroU32::new(n).ok_or(PullError::EveryZero)?;
        Ok(())
    }

    fn max_hz(&mut self, hertz: f64) -> Result<(), PullError> {
        let refuse = || PullError::Rate(hertz.to_string());
        let limit = millihertz(hertz).ok_or_else(refuse)?;
        self.wanted.find.rate.max_millihertz = Some(limit);
        Ok(())
    }

    fn size(&mut self, width: u32, height: u32) -> Result<(), PullError> {
        Contradiction::refuse(&mut self.scaled_by, "size")?;
        if width == 0 || height == 0 || width > SIDE_MAX || height > SIDE_MAX {
            return Err(PullError::Size { width, height });
        }
        self.wanted.form.size = Some(Size { width, height });
        Ok(())
    }

    fn audio(&mut self, rate: u32, channels: u8) -> Result<(), PullError> {
        Contradiction::refuse(&mut self.scaled_by, "audio")?;
        if !AUDIO_RATES.contains(&rate) || !AUDIO_CHANNELS.contains(&channels) {
            return Err(PullError::Audio { rate, channels });
        }
        self.wanted.form.audio = Some(Audio { rate, channels });
        Ok(())
    }
}

/// Refuses an invalid tag, and one of the system's.
fn public_tag(tag: &str) -> Result<Tag, PullError> {
    let tag = Tag::new(tag)?;
    if tag.is_private() {
        return Err(PullError::Private(tag.to_string()));
    }
    Ok(tag)
}

impl Node {
    /// Returns a builder that pulls past samples of `tag` from pull buffers. By default it pulls
    /// the newest sample of each publisher.
    ///
    /// [`PullBuilder::run`] reports an invalid tag, and one that begins with `@`.
    pub fn pull(&self, tag: &str) -> PullBuilder<'_> {
        PullBuilder::new(self, tag)
    }
}

impl<'a> PullBuilder<'a> {
    pub(crate) fn new(node: &'a Node, tag: &str) -> Self {
        Self { node, draft: public_tag(tag).map(Draft::new) }
    }

    fn set(mut self, setting: impl FnOnce(&mut Draft) -> Result<(), PullError>) -> Self {
        set(&mut self.draft, setting);
        self
    }

    fn select(self, by: &'static str, selection: Result<Selection, SelectionError>) -> Self {
        self.set(|draft| {
            Contradiction::refuse(&mut draft.selected_by, by)?;
            draft.wanted.find.selection = selection?;
            Ok(())
        })
    }

    /// Selects the newest `n` samples of each publisher, from 1 to 65,536. Defaults to 1.
    ///
    /// A pull has one selection: this one, [`Self::nth`], [`Self::seq`] or [`Self::time`].
    pub fn newest(self, n: u32) -> Self {
        self.select("newest", Selection::newest(n))
    }

    /// Selects only the `n`-th newest sample of each publisher, from 1 (the newest) to 65,536.
    pub fn nth(self, n: u32) -> Self {
        self.select("nth", Selection::nth(n))
    }

    /// Selects a range of sequence numbers, both ends included. It must not end before it begins.
    pub fn seq(self, seqs: RangeInclusive<u64>) -> Self {
        self.select("seq", Selection::seq(*seqs.start(), *seqs.end()))
    }

    /// Selects a range of capture times, both ends included, in nanoseconds since 1970 UTC by the
    /// publishers' clocks. It must not end before it begins.
    pub fn time(self, nanos: RangeInclusive<u64>) -> Self {
        self.select("time", Selection::time(*nanos.start(), *nanos.end()))
    }

    /// Pulls only from the buffers of this node, given by name or identifier. By default the
    /// nearest node with a buffer provides the samples.
    pub fn from(self, node: &str) -> Self {
        self.set(|draft| {
            Contradiction::refuse(&mut draft.from_by, "from")?;
            draft.wanted.from = Some(node.to_owned());
            Ok(())
        })
    }

    /// Orders a buffer of the newest `samples` samples at this node, given by name or identifier, and
    /// pulls only from that node. The pull waits until the buffer has the selected newest samples, for
    /// at most 10 s and half of [`Self::timeout`].
    ///
    /// The node keeps 1 to 10,000 samples and at most 64 MiB. Order more samples than you pull: the oldest
    /// ones leave the buffer while the first answers are on their way, and are then
    /// [missing](crate::pull::PullSummary::missing). The buffer ends one minute after the last
    /// pull of its tag from that node; an order with the same number of samples renews it. Use this or
    /// [`Self::from`].
    pub fn hold_at(self, node: &str, samples: u32) -> Self {
        self.set(|draft| {
            Contradiction::refuse(&mut draft.from_by, "hold_at")?;
            (draft.wanted.from, draft.wanted.order) = (Some(node.to_owned()), Some(samples));
            Ok(())
        })
    }

    /// Pulls only samples of this publisher. Defaults to all publishers of the tag.
    pub fn publisher(self, publisher: PublisherId) -> Self {
        self.set(|draft| {
            draft.wanted.find.publisher = Some(publisher);
            Ok(())
        })
    }

    /// Takes one in `n` of the selected samples, from 1 to 4,294,967,295. Defaults to all of them.
    ///
    /// Video is thinned by leaving out pictures that no other picture needs. If that is not enough,
    /// the node with the buffer decodes and re-encodes it.
    ///
    /// With [`Self::max_hz`] both limits hold.
    pub fn every(self, n: u32) -> Self {
        self.set(|draft| draft.every(n))
    }

    /// Takes at most `hertz` of the selected samples per second of capture time, evenly spaced, from
    /// 0.001 to 1,000,000. Defaults to all of them. Video is thinned as by [`Self::every`].
    ///
    /// With [`Self::every`] both limits hold: the samples that remain after one in n are limited.
    pub fn max_hz(self, hertz: f64) -> Self {
        self.set(|draft| draft.max_hz(hertz))
    }

    /// Scales pictures to `width` by `height` pixels, each from 1 to 16,384, at the node with the
    /// buffer. Video is decoded and re-encoded. Defaults to the stored size.
    ///
    /// A pull scales pictures or sound: use this or [`Self::audio`].
    pub fn size(self, width: u32, height: u32) -> Self {
        self.set(|draft| draft.size(width, height))
    }

    /// Converts sound, at the node with the buffer, to `rate` samples per second, from 1,000 to
    /// 384,000, in each of `channels` channels, from 1 to 8. Defaults to sound as stored.
    ///
    /// Other samples are delivered unchanged. A block that is too short for one sample is delivered
    /// empty. A pull scales pictures or sound: use this or [`Self::size`].
    pub fn audio(self, rate: u32, channels: u8) -> Self {
        self.set(|draft| draft.audio(rate, channels))
    }

    /// Sets the longest duration of the whole pull, above 0; samples that have not arrived by then
    /// are missing.
    ///
    /// By default a pull ends when every sample has arrived, or when the retries for missing
    /// samples are used up.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set(|draft| {
            if timeout.is_zero() {
                return Err(PullError::ZeroTimeout);
            }
            draft.timeout = Some(timeout);
            Ok(())
        })
    }

    /// Returns an error at once if no node has a buffer of the tag and the registry of this node is
    /// [complete](Node::is_complete). By default a pull waits up to 2 s for a buffer that was opened a moment ago.
    pub fn at_once(self) -> Self {
        self.set(|draft| {
            draft.wanted.at_once = true;
            Ok(())
        })
    }

    /// Checks the settings as [`Self::run`] does, without pulling anything.
    ///
    /// # Errors
    /// The first wrong value, for which [`PullError::is_usage`] returns true.
    pub fn check(&self) -> Result<(), PullError> {
        self.draft.as_ref().map(drop).map_err(Clone::clone)
    }

    /// Asks the nodes with buffers for the selection and starts to fetch it. Blocks until they have
    /// answered.
    ///
    /// # Errors
    /// Returns the first wrong value of the builder, with the allowed range;
    /// [`PullError::is_usage`] is true for these errors. Otherwise returns a [`PullError`] that names
    /// the reason why there is nothing to fetch, and a remedy.
    pub fn run(self) -> Result<Pulled, PullError> {
        let pulled = self.begin()?;
        let event = pulled.pipe.wait();
        pulled.begun(event)
    }

    /// Starts a pull. The asynchronous form of [`Self::run`]; works on any runtime.
    ///
    /// # Errors
    /// The errors of [`Self::run`].
    pub async fn run_async(self) -> Result<Pulled, PullError> {
        let pulled = self.begin()?;
        let event = pulled.pipe.wait_async().await;
        pulled.begun(event)
    }

    fn begin(self) -> Result<Pulled, PullError> {
        let Draft { mut wanted, timeout, .. } = self.draft?;
        wanted.until = timeout.map(|timeout| Instant::now() + timeout);
        let pipe = Arc::new(Pipe::default());
        start(self.node.commands().clone(), wanted, pipe.clone())
            .map_err(|error| PullError::Thread(error.to_string()))?;
        Ok(Pulled { pipe, found: 0, summary: None, _node: self.node.clone() })
    }
}

/// An iterator over pulled samples, in the order of publishers and sequence numbers.
///
/// Dropping it ends the pull. Until then it keeps its node open.
pub struct Pulled {
    pipe: Arc<Pipe>,
    found: u64,
    summary: Option<PullSummary>,
    _node: Node,
}

impl fmt::Debug for Pulled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, summary, .. } = self;
        f.debug_struct("Pulled").field("found", found).field("summary", summary).finish()
    }
}

impl Pulled {
    fn begun(mut self, event: PullEvent) -> Result<Self, PullError> {
        match event {
            PullEvent::Found(found) => {
                self.found = found;
                Ok(self)
            }
            PullEvent::End(ended) => Err((*ended).err().unwrap_or(PullError::Closed)),
            PullEvent::Sample(_) => Err(PullError::Closed),
        }
    }

    /// Returns the number of samples that the buffers found.
    #[must_use]
    pub const fn found(&self) -> u64 {
        self.found
    }

    fn take(&mut self, event: PullEvent) -> Option<Sample> {
        match event {
            PullEvent::Sample(delivery) => Some(*delivery),
            PullEvent::End(ended) => {
                self.summary = Some(ended.unwrap_or_default());
                None
            }
            PullEvent::Found(_) => None,
        }
    }

    /// Waits for the next sample; returns `None` at the end of the pull.
    pub async fn next_async(&mut self) -> Option<Sample> {
        if self.summary.is_some() {
            return None;
        }
        let event = self.pipe.wait_async().await;
        self.take(event)
    }

    /// Blocks for at most `timeout` for the next sample; returns `None` at the end of the pull.
    ///
    /// # Errors
    /// [`RecvError::Timeout`] if no sample arrives in time.
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Option<Sample>, RecvError> {
        if self.summary.is_some() {
            return Ok(None);
        }
        let event = self.pipe.wait_until(Instant::now() + timeout).ok_or(RecvError::Timeout)?;
        Ok(self.take(event))
    }

    /// Returns the summary of the pull; `None` before its end.
    #[must_use]
    pub const fn summary(&self) -> Option<&PullSummary> {
        self.summary.as_ref()
    }
}

impl Iterator for Pulled {
    type Item = Sample;

    fn next(&mut self) -> Option<Sample> {
        if self.summary.is_some() {
            return None;
        }
        let event = self.pipe.wait();
        self.take(event)
    }
}

impl Drop for Pulled {
    fn drop(&mut self) {
        self.pipe.close();
    }
}
