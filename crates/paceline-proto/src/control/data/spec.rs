//! Declarations of publishers, requests of subscriptions, and hops.

use super::elastic::{Elastic, IMPORTANCE_DEFAULT, step_below};
use super::refusal::{Refusal, RefusalReason};
use crate::envelope::Envelope;
use crate::form::{Form, Proxy, Rate, ScaledForm, Size, Unscalable};
use crate::retransmit::Retransmit;
use crate::sample::{Encoding, Kind};
use crate::tag::{Pattern, Tag};
use crate::video::Structure;
use core::num::NonZeroU32;
use paceline_sched::{Capacity, Duration, Late, LossTolerance};

/// A publisher's declaration of its samples.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PublisherSpec {
    /// The tag that it publishes on.
    pub tag: Tag,
    /// The kind of its samples.
    pub kind: Kind,
    /// The media type of its samples.
    pub encoding: Encoding,
    /// The time between two samples, if known.
    pub period: Option<Duration>,
    /// The treatment of a sample that can no longer arrive in time.
    pub late: Late,
    /// The loss tolerance of subscriptions with a delay bound that specify none. Defaults to no loss.
    pub loss: Option<LossTolerance>,
    /// The delay bound of subscriptions that request no contract: the publisher requests one for them, with `loss`.
    /// By default they get best effort.
    pub within: Option<Duration>,
    /// The size of its pictures, if it publishes pictures of a known size.
    pub size: Option<Size>,
    /// The largest payload of a sample in bytes, declared or observed.
    pub bytes_max: Option<u64>,
    /// The traffic over longer times; `None` if it may be the largest sample in each period.
    pub envelope: Option<Envelope>,
    /// True if the publisher waits for queue space before it publishes; none of its samples expires.
    pub waits: bool,
    /// True if a subscriber that joins late receives the newest sample at once. Its node fetches it from the pull
    /// buffer of the publisher's node.
    pub latch: bool,
    /// The reason why its pictures cannot be scaled, if they cannot.
    pub unscalable: Option<Unscalable>,
    /// The longest time between two key pictures of its video so far, rounded up to 100 ms; `None` before the
    /// second one. A subscriber that cannot join in between waits at most this long for its first picture.
    pub key_interval: Option<Duration>,
    /// The pictures that its video needs, once a part of it has shown them.
    pub structure: Option<Structure>,
    /// What its node measured of forms that it scales, in order of form; at most [`ScaledForm::FORMS_MAX`].
    pub scaled: Vec<ScaledForm>,
}

/// The default for the longest wait of a best-effort sample at each link before its first byte is sent. It
/// exceeds the silence after which a hop counts as down, so a pause that the hop survives expires no samples.
pub const BEST_EFFORT_WAIT_MAX: Duration = Duration::from_secs(2);

/// The media types of the messages of ROS 2 that contain a picture.
const ROS_IMAGE: &str = "application/cdr;sensor_msgs/msg/Image";
const ROS_COMPRESSED_IMAGE: &str = "application/cdr;sensor_msgs/msg/CompressedImage";
/// The highest bit rate of Opus.
const OPUS_BITS_MAX: NonZeroU32 = NonZeroU32::new(510_000).unwrap();

impl PublisherSpec {
    /// Returns a declaration of data on `tag`, of unknown rate and size. Late samples are dropped.
    #[must_use]
    pub const fn new(tag: Tag) -> Self {
        Self {
            tag,
            kind: Kind::Data,
            encoding: Encoding::Bytes,
            period: None,
            late: Late::Drop,
            loss: None,
            within: None,
            size: None,
            bytes_max: None,
            envelope: None,
            waits: false,
            latch: false,
            unscalable: None,
            key_interval: None,
            structure: None,
            scaled: Vec::new(),
        }
    }

    /// Returns the longest wait of its best-effort samples at a link; `None` if unlimited.
    ///
    /// The wait is unlimited for a publisher that sends late samples or waits for queue space, and for
    /// private tags. It is also unlimited for pictures and states, which wait until a newer one replaces
    /// them.
    #[must_use]
    pub fn max_wait(&self) -> Option<Duration> {
        let waits = self.waits || self.late == Late::Send;
        let expires = !waits && !self.kind.is_replaced() && !self.tag.is_private();
        expires.then_some(BEST_EFFORT_WAIT_MAX)
    }

    /// Returns the form of this publisher's samples for a subscription that requests `asked`. Parts of the
    /// request that change nothing are left out, so that equal streams are shared.
    ///
    /// A size has no effect on samples other than pictures, because a pattern may match both. A bit rate is that of the
    /// coder, or leaves out whole samples of data, states and pictures that are not coded again.
    #[must_use]
    pub fn form_of(&self, asked: Form) -> Form {
        let size =
            asked.size.filter(|_| self.has_pictures()).filter(|size| self.size != Some(*size));
        let audio = asked.audio.filter(|_| self.has_sound());
        let coded = self.is_jpeg() || self.kind.is_video() || self.is_pcm();
        // A pattern may request the bit rate of video, which is more than sound can use.
        let most = if self.is_pcm() { OPUS_BITS_MAX } else { NonZeroU32::MAX };
        let bitrate = asked.bitrate.filter(|_| coded).map(|bits| bits.min(most));
        let quality = asked.quality.filter(|_| self.is_jpeg());
        let plain = !coded && !self.has_sound() && size.is_none();
        let rate = Rate { bits_per_s: asked.bitrate.filter(|_| plain), ..asked.rate };
        Form { rate, size, audio, bitrate, quality, via: None }
    }

    /// Returns the delay bound of its samples for a subscription: the requested one, or its own for a subscription that
    /// requests no contract.
    #[must_use]
    pub fn bound_for(&self, request: &SubscriptionSpec) -> Option<Duration> {
        request.within.or(self.within.filter(|_| !request.wants_contract()))
    }

    /// Returns the loss tolerance of its samples for a subscription with a contract; `None` for best effort.
    ///
    /// A subscription with only a delay bound gets the tolerance that the publisher declared, or no loss. Another
    /// subscription's tolerance must not weaken that.
    #[must_use]
    pub fn tolerance_for(&self, request: &SubscriptionSpec) -> Option<LossTolerance> {
        let declared = self.loss.unwrap_or(LossTolerance::NONE);
        request.loss.or_else(|| self.bound_for(request).map(|_| declared))
    }

    /// Returns true if its pictures can be made smaller.
    pub(in crate::control) fn has_scalable_pictures(&self) -> bool {
        let picture = self.is_jpeg() || self.encoding.as_str() == "image/png" || self.is_raw();
        let scalable = self.unscalable.is_none() && (picture || self.kind.is_video());
        self.size.is_some() && scalable
    }

    /// Returns true if its pictures are JPEG, whose bytes the quality determines. Those in messages of ROS 2 usually are.
    pub(in crate::control) fn is_jpeg(&self) -> bool {
        self.encoding == Encoding::Jpeg || self.is_ros_compressed()
    }

    /// Returns true if its samples are messages of ROS 2 with a compressed picture.
    pub(in crate::control) fn is_ros_compressed(&self) -> bool {
        self.encoding.as_str() == ROS_COMPRESSED_IMAGE
    }

    /// Returns true if its samples are messages of ROS 2 with a picture that is not compressed.
    pub(in crate::control) fn is_ros(&self) -> bool {
        self.encoding.as_str() == ROS_IMAGE
    }

    /// Returns true if its pictures are not compressed.
    pub(in crate::control) fn is_raw(&self) -> bool {
        self.encoding.as_str().starts_with("video/raw") || self.is_ros()
    }

    /// Returns true if its samples are sound that is not compressed: PCM, µ-law or A-law.
    #[must_use]
    pub fn is_pcm(&self) -> bool {
        self.encoding.as_str().starts_with("audio/pcm")
    }

    pub(in crate::control) fn has_sound(&self) -> bool {
        self.kind == Kind::Audio || self.encoding.as_str().starts_with("audio/")
    }

    /// Returns true if the kind, size or encoding says that its samples are pictures.
    fn has_pictures(&self) -> bool {
        let encoding = self.encoding.as_str();
        self.kind == Kind::Picture
            || self.kind.is_video()
            || self.size.is_some()
            || encoding.starts_with("image/")
            || encoding.starts_with("video/")
    }
}

/// A subscription's request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SubscriptionSpec {
    /// The requested tags.
    pub pattern: Pattern,
    /// The requested rate and size; of an elastic contract, the current step.
    pub form: Form,
    /// The delay bound Δ, from publish to delivery.
    pub within: Option<Duration>,
    /// The number of samples of each window that may miss the delay bound.
    pub loss: Option<LossTolerance>,
    /// The place of the scaling.
    pub proxy: Proxy,
    /// True if its samples are kept in a pull buffer on this node, from which any node may pull.
    pub holds: bool,
    /// True if it requests only the publishers of its own node.
    pub local: bool,
    /// The treatment of loss on links that lose frames.
    pub retransmit: Retransmit,
    /// The number of this request: 0 for the initial one, and higher after each change. Answers repeat the
    /// number, so an answer to an older request is never taken for one to a newer request.
    pub revision: u64,
    /// True if a refusal of this request also ends the stream of the previous request. By default that stream
    /// stays.
    pub or_stop: bool,
    /// True if it accepts only paths on which every hop is encrypted.
    pub encrypted: bool,
    /// The priority level of its contract on links with static priorities; the lowest is served first. By default
    /// the part of the delay bound on the link in microseconds.
    pub level: Option<u32>,
    /// The time without a published sample after which the reservation is released, from [`IDLE_MIN`]. The next
    /// sample requests it again. By default an unused reservation stays.
    pub idle: Option<Duration>,
    /// The tag of an opposite stream, published on the subscription's host and subscribed to with a contract on the
    /// publisher's host. Both contracts are granted, or neither.
    pub with: Option<Tag>,
    /// True if it uses only samples whose age is proved: the nodes of the network exchange stamps.
    pub proves: bool,
    /// True if it requests a second reservation for the samples of each publisher, on a path without the links of the
    /// first one. The samples are sent on the second path as soon as the first one fails.
    pub spare: bool,
    /// The importance of its contract, up to [`IMPORTANCE_MAX`](crate::control::IMPORTANCE_MAX). More important contracts keep
    /// their place when the capacity of a link falls, and elastic contracts are reduced for them.
    pub importance: u8,
    /// The reductions that an elastic contract accepts. Its `form` is one of the steps.
    pub elastic: Option<Box<Elastic>>,
}

/// The shortest idle time of a reservation. Publishers' nodes report use a few times per second.
pub const IDLE_MIN: Duration = Duration::from_secs(1);

impl SubscriptionSpec {
    /// Returns a request for all matching samples, pushed with best effort.
    #[must_use]
    pub const fn all_of(pattern: Pattern) -> Self {
        Self {
            pattern,
            form: Form::FULL,
            within: None,
            loss: None,
            proxy: Proxy::Publisher,
            holds: false,
            local: false,
            retransmit: Retransmit::Selective,
            revision: 0,
            or_stop: false,
            encrypted: false,
            level: None,
            idle: None,
            with: None,
            proves: false,
            spare: false,
            importance: IMPORTANCE_DEFAULT,
            elastic: None,
        }
    }

    /// Returns true if both request the same, apart from the request numbers.
    #[must_use]
    pub fn asks_the_same(&self, other: &Self) -> bool {
        *self == Self { revision: self.revision, or_stop: self.or_stop, ..other.clone() }
    }

    /// Returns true if it requests a contract; other subscriptions get best effort.
    #[must_use]
    pub const fn wants_contract(&self) -> bool {
        self.within.is_some() || self.loss.is_some()
    }

    /// Returns the steps of an elastic contract and the number of the current one; `None` if it is not elastic.
    #[must_use]
    pub fn steps(&self) -> Option<(Vec<Form>, usize)> {
        let elastic = self.elastic.as_ref().filter(|_| self.wants_contract())?;
        Some((elastic.steps(), elastic.step_of(self.form)?))
    }

    /// Returns the request at the next step that an elastic contract takes after `refusal`; `None` if it is not elastic, at
    /// its last step, or refused for another reason than lack of room and a size above the publisher's.
    #[must_use]
    pub fn reduced(&self, refusal: &Refusal) -> Option<Self> {
        let (steps, _) = self.steps()?;
        let form = *steps.get(self.step_after(refusal)?)?;
        Some(Self { form, ..self.clone() })
    }

    /// Returns the number of the step that an elastic contract takes after `refusal`.
    pub(in crate::control) fn step_after(&self, refusal: &Refusal) -> Option<usize> {
        let (steps, now) = self.steps()?;
        if let RefusalReason::SizeAboveSource { source, .. } = refusal.reason {
            let fits = |step: &Form| step.size.is_none_or(|size| size.fits_in(source));
            return steps.iter().skip(now).position(fits).map(|at| now + at);
        }
        refusal.lacks_resource().then(|| step_below(&steps, now, &refusal.offer))?
    }

    /// Returns true if it requests a spare. A path through a proxy between the ends has none, nor has a contract that is
    /// tied to an opposite one or released while idle.
    pub(in crate::control) fn wants_spare(&self) -> bool {
        let at_end = matches!(self.proxy, Proxy::Publisher | Proxy::Subscriber);
        self.spare && self.wants_contract() && at_end && self.with.is_none() && self.idle.is_none()
    }
}

/// The name of the link between the processes of a host.
pub const HOST_LINK: &str = "host";

/// The hop to a neighbour.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HopInfo {
    /// The name of its link. Hops with the same link name share the link's capacity.
    pub link_name: String,
    /// The capacity of the link. A link without one has no limit.
    pub capacity: Option<Capacity>,
    /// True if the neighbour lacks the right to relay: no path leads through it.
    pub leaf: bool,
    /// True if frames on the hop are encrypted, or do not leave the host.
    pub encrypted: bool,
    /// True if the neighbour is a process of the same host and user. It has the rights of this node.
    pub own: bool,
    /// True if the threads that send on the hop have real-time priorities.
    pub realtime: bool,
    /// True if probes of the link's multicast groups reach the neighbour. A form that several such neighbours of one link
    /// receive is sent once.
    pub multicast: bool,
}

impl HopInfo {
    /// Returns an unencrypted hop without real-time priorities over the link `link_name` to a neighbour that may relay.
    #[must_use]
    pub const fn new(link_name: String, capacity: Option<Capacity>) -> Self {
        Self {
            link_name,
            capacity,
            leaf: false,
            encrypted: false,
            own: false,
            realtime: false,
            multicast: false,
        }
    }
}
