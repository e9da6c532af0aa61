//! Refusals: the figure that did not fit, and the best alternative.

use crate::classes::Unguaranteed;
use crate::form::{Size, Unscalable};
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::rights::{Lack, Right};
use core::fmt;
use core::num::{NonZeroU32, NonZeroU64};
use paceline_sched::{Capacity, Duration, LossTolerance};

/// The refusal of one publisher's stream to a subscription.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// The subscription; with index `u32::MAX`, every subscription to the publisher.
    pub subscription: SubscriptionId,
    /// The publisher; with index `u32::MAX`, every publisher that the subscription matches.
    pub publisher: PublisherId,
    /// The refused request ([`SubscriptionSpec::revision`](crate::control::SubscriptionSpec::revision)).
    pub revision: u64,
    /// The refusing node: the first of the path whose link cannot carry the stream.
    pub node: NodeId,
    /// The node's name, a label only.
    pub node_name: String,
    /// The link of that node that cannot carry the stream; empty if no link is the reason. For
    /// [`RefusalReason::Rights`], the name of the node without the right.
    pub link: String,
    /// The class of that link; empty if the link has no classes. For [`RefusalReason::Medium`], the name of the medium.
    pub class: String,
    /// The bytes per second that the stream needs on the link in addition to existing promises. For
    /// [`RefusalReason::Deadlines`], the rate that all streams together need while the most bytes are due.
    pub needed_bytes_per_s: u64,
    /// The bytes per second left by the streams admitted before; for [`RefusalReason::Deadlines`], the rate
    /// that the link carries.
    pub available_bytes_per_s: u64,
    /// The reason.
    pub reason: RefusalReason,
    /// The contract that would have been granted at the time of the refusal.
    pub offer: Offer,
    /// True if the second path of [`SubscriptionSpec::spare`](crate::control::SubscriptionSpec::spare) is refused. A stream that has
    /// started continues on the first path.
    pub spare: bool,
}

/// Alternatives to a refused contract, each sufficient by itself; `None` if no value would help. Every node of the path has
/// tested each of them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Offer {
    /// The same samples at no more than this rate, in millihertz.
    pub max_millihertz: Option<u64>,
    /// The same samples as pictures of at most this size.
    pub size: Option<Size>,
    /// True if the rate and the size are one alternative: they serve better together, or suffice only together.
    pub together: bool,
    /// The same samples coded with at most this number of bits per second.
    pub bitrate: Option<NonZeroU32>,
    /// Samples of at most this number of bytes, at the same rate. Only the publisher can send smaller ones.
    pub bytes: Option<u64>,
    /// The same samples within this delay bound.
    pub within: Option<Duration>,
    /// The same samples with this loss tolerance.
    pub loss: Option<LossTolerance>,
}

/// The reason for a refusal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RefusalReason {
    /// The link lacks capacity in addition to the streams admitted before.
    Capacity,
    /// The link has the capacity but cannot meet the deadlines: samples of this stream and of those admitted
    /// before may be due together.
    Deadlines {
        /// The time after an instant at which all streams may start together.
        within: Duration,
        /// The bytes due within that time, including one frame that may already be on the link.
        due: u64,
        /// The bytes that the link carries within that time.
        carried: u64,
    },
    /// The link's discipline would let a sample wait for longer than its part of the delay bound: a sample of
    /// this stream, or of one admitted before.
    Delay {
        /// The longest delay at the link.
        takes: Duration,
        /// The longest delay allowed.
        within: Duration,
    },
    /// The node's processor lacks time for this stream in addition to those admitted before. Both figures are
    /// in nanoseconds per second.
    Processor {
        /// The processor time needed.
        needed: u64,
        /// The processor time available.
        available: u64,
    },
    /// The class of the stream on the link guarantees nothing to contracts.
    NoGuarantee {
        /// The reason.
        why: Unguaranteed,
    },
    /// The buffer of the link lacks space for this stream in addition to those admitted before. Both figures
    /// are in bytes on the wire.
    Buffer {
        /// The most bytes that all streams together could have queued.
        needed: u64,
        /// The size of the buffer.
        available: u64,
    },
    /// The buffer of the node, for all its links and subscribers together, lacks space for this stream in addition to
    /// those admitted before. Both figures are in bytes on the wire.
    HostBuffer {
        /// The most bytes that all streams together could have queued on the node.
        needed: u64,
        /// The size of the buffer.
        available: u64,
    },
    /// The links of the shared medium of the link need more than the medium has. Both figures are in bits per second.
    Medium {
        /// The least rate that the contracts of all links and this one need.
        needed: u64,
        /// The sum of the rates that all links may have.
        available: u64,
    },
    /// The node did not answer repeated requests on the path, or gave no reliable answer.
    NoAnswer,
    /// The requested size exceeds the source's. Pictures can only be scaled down.
    SizeAboveSource {
        /// The requested size.
        asked: Size,
        /// The size of the publisher's pictures.
        source: Size,
    },
    /// The publisher's video cannot be decoded, and so not be scaled.
    Unscalable {
        /// The requested size.
        asked: Size,
        /// The reason.
        why: Unscalable,
    },
    /// The coder of the requested form exceeds the requested bit rate for some samples even at its lowest setting, so
    /// no contract could be kept.
    BitRate {
        /// The requested bit rate, in bits per second.
        asked: u64,
        /// The lowest bit rate that the coder keeps whatever the samples show.
        least: u64,
    },
    /// The publisher's video cannot be decoded, and leaving out pictures that no other needs does not reach the requested
    /// rate. An offered rate is that of its key pictures.
    Unthinnable {
        /// The reason why it cannot be decoded.
        why: Unscalable,
        /// The key and reference pictures in each thousand pictures, in the densest part.
        references: u16,
        /// The rate of its key pictures in millihertz, which is offered; `None` for a video of one group.
        keys: Option<NonZeroU64>,
    },
    /// The policy of the refusing node does not grant it.
    Rights {
        /// The node whose rights do not suffice: the subscription's, the publisher's, or one that relays for
        /// them.
        of: NodeId,
        /// The missing right, or the exceeded limit.
        lack: Lack,
    },
    /// The opposite stream of [`SubscriptionSpec::with`](crate::control::SubscriptionSpec::with) gets no contract, so this one
    /// gets none either. The refusal's `link` is the tag of that stream.
    Opposite {
        /// True if there is no such stream; false if it was refused.
        missing: bool,
    },
    /// The link of the path at the refusing node is not encrypted, and the subscription requires it.
    Unencrypted,
    /// No path leads through the requested proxy, whose name is the refusal's `link`.
    NoProxy {
        /// True if a reachable node has this name, but every path through it visits a node twice or has more than
        /// [`HOPS_MAX`](crate::control::HOPS_MAX) hops; false if no reachable node has it.
        apart: bool,
    },
    /// There is no second path for a spare. If every path crosses one link, the refusal's `node` and `link` are the first
    /// such link; otherwise `node` is the publisher's and `link` is empty.
    NoSecondPath {
        /// True if there is such a link; false if each link of the first path can be avoided, but not all of them.
        shared: bool,
    },
    /// There are two paths for a contract with a spare, but none next to the shortest one, and samples of another
    /// subscription to the publisher arrive at a node of the longer first path over another hop. The refusal's `node` is
    /// that of the other subscription, and its `link` is empty.
    SpareMeets {
        /// The other subscription.
        other: SubscriptionId,
    },
    /// The publisher's node, which refuses, cannot announce another contract with a spare: its marks for contracts with a
    /// spare, idle ones and opposite ones are all in use.
    TooManySpares,
}

/// The index of a subscription or publisher that stands for all of them in a refusal.
pub(crate) const ANY: u32 = u32::MAX;

impl Refusal {
    /// Returns true if the refusal stands for every publisher that the subscription matches.
    #[must_use]
    pub const fn is_for_all(&self) -> bool {
        self.publisher.index == ANY
    }

    /// Returns true if the path would carry the stream without a contract.
    pub(in crate::control) const fn is_of_contract(&self) -> bool {
        match self.reason {
            RefusalReason::Capacity
            | RefusalReason::Deadlines { .. }
            | RefusalReason::Delay { .. }
            | RefusalReason::Processor { .. }
            | RefusalReason::NoGuarantee { .. }
            | RefusalReason::Buffer { .. }
            | RefusalReason::HostBuffer { .. }
            | RefusalReason::Medium { .. }
            | RefusalReason::NoAnswer
            | RefusalReason::BitRate { .. }
            | RefusalReason::Opposite { .. }
            | RefusalReason::NoSecondPath { .. }
            | RefusalReason::SpareMeets { .. }
            | RefusalReason::TooManySpares => true,
            RefusalReason::SizeAboveSource { .. }
            | RefusalReason::Unscalable { .. }
            | RefusalReason::Unthinnable { .. }
            | RefusalReason::Rights { .. }
            | RefusalReason::NoProxy { .. }
            | RefusalReason::Unencrypted => false,
        }
    }

    /// Returns true if an offer may help: not where a right is missing.
    pub(in crate::control) const fn lacks_room(&self) -> bool {
        !matches!(self.reason, RefusalReason::Rights { .. } | RefusalReason::Unencrypted)
    }

    /// Returns true if a link or node lacks something that smaller contracts would leave.
    pub(in crate::control) const fn lacks_resource(&self) -> bool {
        matches!(
            self.reason,
            RefusalReason::Capacity
                | RefusalReason::Deadlines { .. }
                | RefusalReason::Delay { .. }
                | RefusalReason::Processor { .. }
                | RefusalReason::Buffer { .. }
                | RefusalReason::HostBuffer { .. }
                | RefusalReason::Medium { .. }
        )
    }

    /// Returns true if the opposite contract is the reason.
    pub(in crate::control) const fn is_opposite(&self) -> bool {
        matches!(self.reason, RefusalReason::Opposite { .. })
    }

    /// Returns whether the refusal concerns the publisher, and whether it concerns the subscription.
    pub(in crate::control) fn concerned_ends(&self) -> [bool; 2] {
        let RefusalReason::Rights { lack, .. } = self.reason else { return [true, true] };
        let right = lack.right();
        [right != Right::Subscribe, right != Right::Publish]
    }
}

/// Formats bytes per second as a bit rate.
struct BitRate(u64);

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Capacity::from_bytes_per_s(self.0) {
            Ok(capacity) => capacity.fmt(f),
            Err(_) => f.write_str("0 bit/s"),
        }
    }
}

impl Refusal {
    fn fmt_proxy(&self, f: &mut fmt::Formatter<'_>, apart: bool) -> fmt::Result {
        let name = &self.link;
        if apart {
            write!(
                f,
                "every path through '{name}' visits a node twice, or is too long: name a node between publisher \
                 and subscriber, or use --proxy auto"
            )
        } else {
            write!(
                f,
                "no reachable node is named '{name}': use --proxy node:NAME with a name that paceline ls shows, \
                 or --proxy auto"
            )
        }
    }

    fn fmt_no_second_path(&self, f: &mut fmt::Formatter<'_>, shared: bool) -> fmt::Result {
        if shared {
            write!(f, "every path crosses link '{}' of '{}'", self.link, self.node_name)?;
        } else {
            f.write_str("no path avoids all links of the first one")?;
        }
        f.write_str("; add a link for a second path, or request the contract without a spare")
    }

    fn fmt_spare_meets(&self, f: &mut fmt::Formatter<'_>, other: SubscriptionId) -> fmt::Result {
        write!(
            f,
            "a node on the two paths would get each sample twice, also for subscription {other} of '{}': end that \
             subscription, add a link for a second path, or request the contract without a spare",
            self.node_name
        )
    }

    fn fmt_too_many_spares(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' cannot announce more contracts with a spare, idle or opposite ones: end one of them, or request \
             the contract without a spare",
            self.node_name
        )
    }

    fn fmt_processor(
        &self,
        f: &mut fmt::Formatter<'_>,
        needed: u64,
        available: u64,
    ) -> fmt::Result {
        write!(
            f,
            "the processor of '{}' can't carry it: with existing contracts it would take {} of each second, of at most \
             {}; {}",
            self.node_name,
            Duration::from_nanos(needed),
            Duration::from_nanos(available),
            self.offer,
        )
    }

    fn fmt_buffer(&self, f: &mut fmt::Formatter<'_>, needed: u64, available: u64) -> fmt::Result {
        write!(
            f,
            "the buffer of link '{}' of '{}' is too small: with existing contracts up to {needed} bytes \
             could wait there, of at most {available}; {}, or raise the link's buffer",
            self.link, self.node_name, self.offer,
        )
    }

    fn fmt_host_buffer(
        &self,
        f: &mut fmt::Formatter<'_>,
        needed: u64,
        available: u64,
    ) -> fmt::Result {
        write!(
            f,
            "the host buffer of '{}' is too small: with existing contracts up to {needed} bytes could wait \
             on its links and for its subscribers, of at most {available}; {}, or raise its host_buffer",
            self.node_name, self.offer,
        )
    }

    fn fmt_medium(&self, f: &mut fmt::Formatter<'_>, needed: u64, available: u64) -> fmt::Result {
        let (needed, available) = (BitRate(needed.div_ceil(8)), BitRate(available / 8));
        write!(
            f,
            "the medium '{}' of link '{}' of '{}' can't carry it: with existing contracts its links would need \
             {needed}, of at most {available}; {}",
            self.class, self.link, self.node_name, self.offer,
        )
    }

    fn fmt_opposite(&self, f: &mut fmt::Formatter<'_>, missing: bool) -> fmt::Result {
        let (tag, node) = (&self.link, &self.node_name);
        if missing {
            write!(
                f,
                "there is no contract of '{tag}' to tie it to: publish it on the subscriber's host, and subscribe \
                 to it with a delay bound on the publisher's host"
            )
        } else {
            write!(
                f,
                "'{node}' refuses the contract of '{tag}', and both are granted or neither; its refusal names \
                 the reason"
            )
        }
    }
}

impl Refusal {
    /// Formats what the refusing node lacks, without the offer.
    pub(in crate::control) fn fmt_shortage(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let RefusalReason::SizeAboveSource { source, .. } = self.reason {
            return write!(f, "the pictures of '{}' have {source}", self.node_name);
        }
        if self.link.is_empty() {
            return write!(f, "'{}' can't carry more", self.node_name);
        }
        write!(f, "link '{}' of '{}' ", self.link, self.node_name)?;
        let (needed, available) = (self.needed_bytes_per_s, self.available_bytes_per_s);
        if needed > available {
            return write!(f, "has {} left of the {} needed", BitRate(available), BitRate(needed));
        }
        f.write_str("can't carry more in time")
    }
}

fn fmt_bit_rate(f: &mut fmt::Formatter<'_>, asked: u64, least: u64) -> fmt::Result {
    write!(
        f,
        "{} is too little for this size and rate: some samples need {} even at the lowest quality; try \
         --bitrate {}kbit, a smaller --size or a lower --max-hz",
        BitRate(asked / 8),
        BitRate(least.div_ceil(8)),
        least.div_ceil(1_000)
    )
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.spare {
            f.write_str("no spare: ")?;
        }
        let link = format!("link '{}' of '{}'", self.link, self.node_name);
        let on = match self.class.as_str() {
            "" => link,
            class => format!("class '{class}' of {link}"),
        };
        match self.reason {
            RefusalReason::Capacity => write!(
                f,
                "{on} can't carry it: it needs {} and {} are left; {}",
                BitRate(self.needed_bytes_per_s),
                BitRate(self.available_bytes_per_s),
                self.offer,
            ),
            RefusalReason::Deadlines { within, due, carried } => write!(
                f,
                "{on} can't carry it in time: up to {due} bytes would be due within {within}, but \
                 it carries only {carried}; {}",
                self.offer,
            ),
            RefusalReason::Delay { takes, within } => write!(
                f,
                "{on} can't carry it in time: a sample could take {takes} there, of at most {within}; {}",
                self.offer,
            ),
            RefusalReason::Processor { needed, available } => {
                self.fmt_processor(f, needed, available)
            }
            RefusalReason::Buffer { needed, available } => self.fmt_buffer(f, needed, available),
            RefusalReason::HostBuffer { needed, available } => {
                self.fmt_host_buffer(f, needed, available)
            }
            RefusalReason::Medium { needed, available } => self.fmt_medium(f, needed, available),
            RefusalReason::NoGuarantee { why } => write!(f, "{on} {why}"),
            RefusalReason::NoAnswer => write!(
                f,
                "'{}' did not answer the request for the path; trying again",
                self.node_name
            ),
            RefusalReason::SizeAboveSource { asked, source } => write!(
                f,
                "size {asked} is above the publisher's {source}: ask for {source} or a smaller size"
            ),
            RefusalReason::Unscalable { asked, why } => fmt_unscalable(f, asked, why),
            RefusalReason::BitRate { asked, least } => fmt_bit_rate(f, asked, least),
            RefusalReason::Unthinnable { why, references, .. } => {
                fmt_unthinnable(f, why, references, self.offer)
            }
            RefusalReason::Rights { lack, .. } => write!(
                f,
                "the policy of '{}' does not allow it: {lack} for '{}'; a rule there must grant it",
                self.node_name, self.link
            ),
            RefusalReason::Opposite { missing } => self.fmt_opposite(f, missing),
            RefusalReason::NoProxy { apart } => self.fmt_proxy(f, apart),
            RefusalReason::NoSecondPath { shared } => self.fmt_no_second_path(f, shared),
            RefusalReason::SpareMeets { other } => self.fmt_spare_meets(f, other),
            RefusalReason::TooManySpares => self.fmt_too_many_spares(f),
            RefusalReason::Unencrypted => write!(
                f,
                "{on} is not encrypted: give it a quic/ or tls/ endpoint, or ask without the requirement"
            ),
        }
    }
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = self.flags();
        // A smaller form is better than a change of the publisher.
        let bytes = self.bytes.filter(|_| self.size.is_none() && self.bitrate.is_none());
        let bytes = bytes.map(|bytes| format!("publish samples of at most {bytes} bytes"));
        match (flags.is_empty(), bytes) {
            (true, None) => {
                f.write_str("nothing of it fits now: try again later, or without a contract")
            }
            (true, Some(bytes)) => f.write_str(&bytes),
            (false, bytes) => {
                let bytes = bytes.map(|bytes| format!(", or {bytes}")).unwrap_or_default();
                write!(f, "try {}{bytes}", flags.join(", or "))
            }
        }
    }
}

impl Offer {
    /// Returns the alternatives as flags of `paceline sub`, such as `--max-hz 12.5`. Each element suffices by itself.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        let hertz = self.max_millihertz.map(|rate| {
            // The offered rate was tested; from 1 Hz it has whole tenths.
            match (rate / 1_000, rate % 1_000 / 100) {
                (0, _) => format!("--max-hz 0.{rate:03}"),
                (whole, 0) => format!("--max-hz {whole}"),
                (whole, tenths) => format!("--max-hz {whole}.{tenths}"),
            }
        });
        let size = self.size.map(|size| format!("--size {size}"));
        let (hertz, size) = match (hertz, size) {
            (Some(hertz), Some(size)) if self.together => (None, Some(format!("{size} {hertz}"))),
            alone => alone,
        };
        let bitrate = self.bitrate.map(|bits| format!("--bitrate {}kbit", bits.get() / 1_000));
        let within = self
            .within
            .map(|within| format!("--within {}ms", within.as_nanos().div_ceil(1_000_000)));
        let loss = self.loss.map(|loss| format!("--loss {}/{}", loss.x(), loss.y()));
        [hertz, size, bitrate, within, loss].into_iter().flatten().collect()
    }
}

/// Writes the reason why pictures of a video cannot be left out.
fn fmt_unthinnable(
    f: &mut fmt::Formatter<'_>,
    why: Unscalable,
    references: u16,
    offer: Offer,
) -> fmt::Result {
    let percent = references.div_ceil(10);
    write!(
        f,
        "this video cannot be thinned to this rate: others need {percent} % of its pictures, and {why}; ask for every \
         picture, or for at least {percent} % of them"
    )?;
    match offer.flags().first() {
        Some(keys) => write!(f, ", or {keys} for key pictures alone"),
        None => Ok(()),
    }
}

/// Writes the reason why pictures of a publisher have no other size.
fn fmt_unscalable(f: &mut fmt::Formatter<'_>, asked: Size, why: Unscalable) -> fmt::Result {
    match why {
        Unscalable::Sides => {
            write!(f, "this video cannot be coded at {asked}: {why}; ask for such a size")
        }
        Unscalable::Pixels => write!(
            f,
            "these pictures cannot be scaled to {asked}: {why}; ask for them without a size (rates work), or publish \
             rgb8, bgr8, mono8, mono16, rgba8, yuv422, JPEG or PNG"
        ),
        Unscalable::Failed => write!(
            f,
            "these pictures cannot be scaled to {asked}: {why}; ask for them without a size (rates work), and check \
             whether they are damaged"
        ),
        Unscalable::Interlaced
        | Unscalable::Chroma
        | Unscalable::Depth
        | Unscalable::Profile
        | Unscalable::Codec => write!(
            f,
            "this video cannot be scaled to {asked}: {why}; ask for it without a size (rates work), or publish \
             progressive 8-bit 4:2:0 H.264"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_exceeded_limit_and_an_offer() {
        let mut refusal = Refusal {
            subscription: SubscriptionId { node: NodeId(1), index: 0 },
            publisher: PublisherId { node: NodeId(2), index: 0 },
            revision: 0,
            node: NodeId(3),
            node_name: "ship".into(),
            link: "radio0".into(),
            class: String::new(),
            needed_bytes_per_s: 400_000,
            available_bytes_per_s: 0,
            reason: RefusalReason::Capacity,
            offer: Offer::default(),
            spare: false,
        };
        assert_eq!(
            refusal.to_string(),
            "link 'radio0' of 'ship' can't carry it: it needs 3.20 Mbit/s and 0 bit/s are left; \
             nothing of it fits now: try again later, or without a contract"
        );
        let within = Duration::from_millis(40);
        refusal.reason = RefusalReason::Deadlines { within, due: 12_000, carried: 9_500 };
        refusal.offer.max_millihertz = Some(12_590);
        refusal.offer.within = Some(Duration::from_millis(210));
        assert_eq!(
            refusal.to_string(),
            "link 'radio0' of 'ship' can't carry it in time: up to 12000 bytes would be due within \
             40 ms, but it carries only 9500; try --max-hz 12.5, or --within 210ms"
        );
        let takes = Duration::from_millis(55);
        refusal.reason = RefusalReason::Delay { takes, within };
        refusal.offer = Offer { loss: LossTolerance::new(1, 5).ok(), ..Offer::default() };
        assert_eq!(
            refusal.to_string(),
            "link 'radio0' of 'ship' can't carry it in time: a sample could take 55 ms there, of \
             at most 40 ms; try --loss 1/5"
        );
        refusal.reason = RefusalReason::Processor { needed: 520_000_000, available: 500_000_000 };
        assert_eq!(
            refusal.to_string(),
            "the processor of 'ship' can't carry it: with existing contracts it would take 520 ms \
             of each second, of at most 500 ms; try --loss 1/5"
        );
        refusal.class = "field-radio".into();
        refusal.reason = RefusalReason::Medium { needed: 2_300_000, available: 1_875_000 };
        assert_eq!(
            refusal.to_string(),
            "the medium 'field-radio' of link 'radio0' of 'ship' can't carry it: with existing contracts its links \
             would need 2.30 Mbit/s, of at most 1.87 Mbit/s; try --loss 1/5"
        );
        refusal.reason = RefusalReason::SizeAboveSource {
            asked: Size { width: 640, height: 480 },
            source: Size { width: 320, height: 240 },
        };
        assert_eq!(
            refusal.to_string(),
            "size 640x480 is above the publisher's 320x240: ask for 320x240 or a smaller size"
        );
    }
}
