//! Pull: samples that were published before, from the buffers that hold them.

use crate::error::{Contradiction, RecvError};
use crate::node::Node;
use crate::publisher::HERTZ_MAX;
use crate::shell::pull::{Pipe, Told, Wanted, start};
use crate::subscriber::{AUDIO_CHANNELS, AUDIO_RATES, Delivery, SIDE_MAX};
use paceline_proto::form::Audio;
use paceline_proto::pull::{Find, Selection, SelectionError};
use paceline_proto::{Form, NodeId, PublisherId, Rate, Size, Tag, TagError};
use std::fmt;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why nothing was pulled.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    /// The tag is not one.
    #[error(transparent)]
    Tag(#[from] TagError),
    /// The tag is one of the system's own.
    #[error("tag '{0}' begins with '@', as those of the system do: begin with another character")]
    Private(String),
    /// Two options exclude each other.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// The selection is none.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// "One in zero" samples.
    #[error("every 0: take 1 in n samples with n from 1 to 4294967295")]
    EveryZero,
    /// A rate below 0.001 Hz or above 1,000,000 Hz.
    #[error("rate {0} Hz: it must be from 0.001 to 1000000")]
    Rate(String),
    /// A picture size with a zero side, or one above 16384.
    #[error("size {width}x{height}: each side must be from 1 to 16384 pixels")]
    Size {
        /// The width asked for.
        width: u32,
        /// The height asked for.
        height: u32,
    },
    /// A sampling rate or a number of channels that no sound has.
    #[error(
        "audio {rate} Hz x {channels}: ask for 1000 to 384000 samples per second of 1 to 8 channels"
    )]
    Audio {
        /// Samples of each channel per second.
        rate: u32,
        /// Channels.
        channels: u8,
    },
    /// No time at all.
    #[error("timeout 0: give the longest time for the whole pull, above 0")]
    ZeroTimeout,
    /// Nobody holds the tag.
    #[error(
        "no buffer holds '{0}': publish it with a history (pub --history 100), or hold it at any node \
         (node --buffer '{0}=100', [[buffer]] in its configuration)"
    )]
    NoBuffer(Tag),
    /// There is no node of this name or id.
    #[error("no node '{asked}'; the nodes there are: {}", .there.join(", "))]
    NoNode {
        /// Who was asked for.
        asked: String,
        /// The names there are.
        there: Vec<String>,
    },
    /// Two nodes have this name.
    #[error("two nodes are named '{asked}': give the id of one, {} or {}", .ids[0], .ids[1])]
    TwoNodes {
        /// Who was asked for.
        asked: String,
        /// Two of those that are called so.
        ids: [NodeId; 2],
    },
    /// The node holds something else.
    #[error("node '{node}' does not hold '{tag}'; these do: {}", .holders.join(", "))]
    NotHeldBy {
        /// The node's name.
        node: String,
        /// The tag.
        tag: Tag,
        /// The names of the nodes that hold it.
        holders: Vec<String>,
    },
    /// None of what was selected is held: it expired, did not come yet, or never came.
    #[error("{0}")]
    Nothing(String),
    /// The holders did not answer in time.
    #[error("no answer of {}: it may be busy or far away; pull again with a longer timeout", .0.join(", "))]
    NoAnswer(Vec<String>),
    /// The holders refused.
    #[error("{0}")]
    Refused(String),
    /// A thread for it could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(String),
    /// The node was closed.
    #[error("the node is closed")]
    Closed,
}

impl PullError {
    /// True if what was asked could never be pulled, whoever holds what.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        match self {
            Self::Tag(_)
            | Self::Private(_)
            | Self::Contradiction(_)
            | Self::Selection(_)
            | Self::EveryZero
            | Self::Rate(_)
            | Self::Size { .. }
            | Self::Audio { .. }
            | Self::ZeroTimeout => true,
            Self::NoBuffer(_)
            | Self::NoNode { .. }
            | Self::TwoNodes { .. }
            | Self::NotHeldBy { .. }
            | Self::Nothing(_)
            | Self::NoAnswer(_)
            | Self::Refused(_)
            | Self::Thread(_)
            | Self::Closed => false,
        }
    }
}

/// Pulls samples that buffers hold.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = paceline::Node::open()?;
/// let mut pulled = node.pull("robot/camera")?.newest(10)?.size(160, 120)?.run()?;
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
    wanted: Wanted,
    timeout: Option<Duration>,
    /// The options that say which samples, at what rate, and what becomes of them.
    selected_by: Option<&'static str>,
    rate_by: Option<&'static str>,
    scaled_by: Option<&'static str>,
}

impl<'a> PullBuilder<'a> {
    pub(crate) const fn new(node: &'a Node, tag: Tag) -> Self {
        let selection = Selection::Newest(1);
        let find = Find { tag, publisher: None, selection, rate: Rate::All, after: None };
        let wanted = Wanted { find, form: Form::FULL, from: None, until: None };
        Self { node, wanted, timeout: None, selected_by: None, rate_by: None, scaled_by: None }
    }

    fn select(
        mut self,
        by: &'static str,
        selection: Result<Selection, SelectionError>,
    ) -> Result<Self, PullError> {
        Contradiction::refuse(&mut self.selected_by, by)?;
        self.wanted.find.selection = selection?;
        Ok(self)
    }

    /// The newest `n` samples of each publisher, from 1 to 65,536.
    ///
    /// # Errors
    /// [`PullError::Selection`].
    pub fn newest(self, n: u32) -> Result<Self, PullError> {
        self.select("newest", Selection::newest(n))
    }

    /// The `n`-th newest sample of each publisher alone, from 1, the newest, to 65,536.
    ///
    /// # Errors
    /// [`PullError::Selection`].
    pub fn nth(self, n: u32) -> Result<Self, PullError> {
        self.select("nth", Selection::nth(n))
    }

    /// Those whose sequence numbers are in a range, both ends included.
    ///
    /// # Errors
    /// [`PullError::Selection`] if the range ends before it begins.
    pub fn seq(self, seqs: RangeInclusive<u64>) -> Result<Self, PullError> {
        self.select("seq", Selection::seq(*seqs.start(), *seqs.end()))
    }

    /// Those that were captured in a range of time, both ends included, in nanoseconds since 1970 UTC by
    /// their publishers' clocks.
    ///
    /// # Errors
    /// [`PullError::Selection`] if the range ends before it begins.
    pub fn time(self, nanos: RangeInclusive<u64>) -> Result<Self, PullError> {
        self.select("time", Selection::time(*nanos.start(), *nanos.end()))
    }

    /// Only from the buffers of this node, by its name or id; from the nearest of all if not said.
    pub fn from(mut self, node: &str) -> Self {
        self.wanted.from = Some(node.to_owned());
        self
    }

    /// Only the samples of this publisher; of all of the tag if not said.
    pub const fn publisher(mut self, publisher: PublisherId) -> Self {
        self.wanted.find.publisher = Some(publisher);
        self
    }

    /// Of what is selected one sample in `n`. Video is thinned by leaving out pictures that no other needs;
    /// where that is not enough it is decoded and coded again where it is held.
    ///
    /// # Errors
    /// [`PullError::EveryZero`], and [`PullError::Contradiction`] with [`Self::max_hz`].
    pub fn every(mut self, n: u32) -> Result<Self, PullError> {
        Contradiction::refuse(&mut self.rate_by, "every")?;
        self.wanted.find.rate = Rate::Every(NonZeroU32::new(n).ok_or(PullError::EveryZero)?);
        Ok(self)
    }

    /// Of what is selected at most `hertz` samples for each second of capture time, evenly spread; of video
    /// as for [`Self::every`].
    ///
    /// # Errors
    /// [`PullError::Rate`] below 0.001 Hz and above 1,000,000 Hz, and [`PullError::Contradiction`] with [`Self::every`].
    pub fn max_hz(mut self, hertz: f64) -> Result<Self, PullError> {
        Contradiction::refuse(&mut self.rate_by, "max_hz")?;
        let refuse = || PullError::Rate(hertz.to_string());
        if !(hertz > 0.0 && hertz <= HERTZ_MAX) {
            return Err(refuse());
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked above"
        )]
        let millihertz = (hertz * 1_000.0).round() as u32;
        self.wanted.find.rate = Rate::Max(NonZeroU32::new(millihertz).ok_or_else(refuse)?);
        Ok(self)
    }

    /// Pictures of this size, scaled where they are held. Video is decoded and coded again.
    ///
    /// # Errors
    /// [`PullError::Size`], and [`PullError::Contradiction`] with [`Self::audio`].
    pub fn size(mut self, width: u32, height: u32) -> Result<Self, PullError> {
        Contradiction::refuse(&mut self.scaled_by, "size")?;
        if width == 0 || height == 0 || width > SIDE_MAX || height > SIDE_MAX {
            return Err(PullError::Size { width, height });
        }
        self.wanted.form.size = Some(Size { width, height });
        Ok(self)
    }

    /// Sound with `rate` samples per second of each of `channels` channels, scaled where it is held. What
    /// is no sound comes as it is; a block that is too short for one sample comes empty.
    ///
    /// # Errors
    /// [`PullError::Audio`] unless the rate is from 1,000 to 384,000 and there are 1 to 8 channels.
    pub fn audio(mut self, rate: u32, channels: u8) -> Result<Self, PullError> {
        Contradiction::refuse(&mut self.scaled_by, "audio")?;
        if !AUDIO_RATES.contains(&rate) || !AUDIO_CHANNELS.contains(&channels) {
            return Err(PullError::Audio { rate, channels });
        }
        self.wanted.form.audio = Some(Audio { rate, channels });
        Ok(self)
    }

    /// The longest time for the whole pull; what has not come by then is missing. Without one a pull
    /// ends when everything came, or when what is missing was asked for in vain.
    ///
    /// # Errors
    /// [`PullError::ZeroTimeout`].
    pub fn timeout(mut self, timeout: Duration) -> Result<Self, PullError> {
        if timeout.is_zero() {
            return Err(PullError::ZeroTimeout);
        }
        self.timeout = Some(timeout);
        Ok(self)
    }

    /// Asks those that hold the tag, and begins to fetch what they have of the selection.
    ///
    /// # Errors
    /// [`PullError`] says why there is nothing to fetch, and the mend.
    pub fn run(self) -> Result<Pulled, PullError> {
        let pulled = self.begin()?;
        let told = pulled.pipe.wait();
        pulled.begun(told)
    }

    /// As [`Self::run`], for asynchronous code on any runtime.
    ///
    /// # Errors
    /// [`PullError`] says why there is nothing to fetch, and the mend.
    pub async fn run_async(self) -> Result<Pulled, PullError> {
        let pulled = self.begin()?;
        let told = pulled.pipe.wait_async().await;
        pulled.begun(told)
    }

    fn begin(mut self) -> Result<Pulled, PullError> {
        self.wanted.until = self.timeout.map(|timeout| Instant::now() + timeout);
        let pipe = Arc::new(Pipe::default());
        start(self.node.commands().clone(), self.wanted, pipe.clone())
            .map_err(|error| PullError::Thread(error.to_string()))?;
        Ok(Pulled { pipe, found: 0, summary: None, _node: self.node.clone() })
    }
}

/// Samples on their way, in the order of publishers and sequence numbers. Dropping it ends the pull;
/// until then it keeps its node open.
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
    fn begun(mut self, told: Told) -> Result<Self, PullError> {
        match told {
            Told::Found(found) => {
                self.found = found;
                Ok(self)
            }
            Told::End(ended) => Err((*ended).err().unwrap_or(PullError::Closed)),
            Told::Sample(_) => Err(PullError::Closed),
        }
    }

    /// How many samples were found.
    #[must_use]
    pub const fn found(&self) -> u64 {
        self.found
    }

    fn take(&mut self, told: Told) -> Option<Delivery> {
        match told {
            Told::Sample(delivery) => Some(*delivery),
            Told::End(ended) => {
                self.summary = Some(ended.unwrap_or_default());
                None
            }
            Told::Found(_) => None,
        }
    }

    /// The next sample; none when all have come that will.
    pub async fn next_async(&mut self) -> Option<Delivery> {
        if self.summary.is_some() {
            return None;
        }
        let told = self.pipe.wait_async().await;
        self.take(told)
    }

    /// The next sample, waiting at most `timeout`; none when all have come that will.
    ///
    /// # Errors
    /// [`RecvError::Timeout`].
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Option<Delivery>, RecvError> {
        if self.summary.is_some() {
            return Ok(None);
        }
        let told = self.pipe.wait_until(Instant::now() + timeout).ok_or(RecvError::Timeout)?;
        Ok(self.take(told))
    }

    /// What became of the pull, once there is no next sample.
    #[must_use]
    pub const fn summary(&self) -> Option<&PullSummary> {
        self.summary.as_ref()
    }
}

impl Iterator for Pulled {
    type Item = Delivery;

    fn next(&mut self) -> Option<Delivery> {
        if self.summary.is_some() {
            return None;
        }
        let told = self.pipe.wait();
        self.take(told)
    }
}

impl Drop for Pulled {
    fn drop(&mut self) {
        self.pipe.close();
    }
}

/// What became of a pull.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PullSummary {
    /// Samples that were found.
    pub found: u64,
    /// Samples that came.
    pub delivered: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Samples that did not come, in the order of publishers and sequence numbers.
    pub missing: Vec<Missing>,
    /// Where those that came are from.
    pub nodes: Vec<PullNode>,
    /// Names of holders that did not answer: what only they hold was not found.
    pub silent: Vec<String>,
    /// There was more than one pull brings (65,536 samples): what is behind was not found.
    pub more: bool,
}

/// A node that samples were pulled from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PullNode {
    /// The node.
    pub id: NodeId,
    /// Its name.
    pub name: String,
    /// Samples that came from it.
    pub delivered: u64,
}

/// A sample that was found and did not come.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Missing {
    /// Its publisher.
    pub publisher: PublisherId,
    /// Its sequence number.
    pub seq: u64,
    /// Why.
    pub reason: MissingReason,
}

/// Why a sample that was found did not come.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum MissingReason {
    /// It went out of the buffer before it was fetched.
    Expired,
    /// The node that held it is gone, and no other holds it.
    HolderGone(String),
    /// The node that held it refused, and why.
    Refused(String),
    /// It cannot be made what was asked for, and why: it is damaged, or smaller than the size asked for.
    CannotScale(String),
    /// A picture that it needs did not come.
    Undecodable,
    /// It was sent and did not arrive.
    NotArrived {
        /// How often it was asked for.
        asked: u32,
    },
    /// The time for the pull was over.
    TimeIsOver,
}

impl fmt::Display for MissingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("it expired before it was fetched"),
            Self::HolderGone(node) => write!(f, "node '{node}', which held it, is gone"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::CannotScale(why) => write!(f, "it cannot be scaled: {why}"),
            Self::Undecodable => {
                f.write_str("it cannot be decoded: a picture that it needs did not come")
            }
            Self::NotArrived { asked } => {
                write!(f, "asked for {asked} times, it did not arrive: it was lost on the way")
            }
            Self::TimeIsOver => f.write_str("the time for the pull was over"),
        }
    }
}
