//! The answer of an admission test: a grant with a bound, or a refusal with the exceeded limit and
//! an offer.

use crate::traffic::Traffic;
use core::fmt;
use paceline_sched::{Duration, LossTolerance};

/// The answer of an admission test.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AdmissionResult {
    /// The demand is admitted, or would be.
    Granted(LinkGrant),
    /// The demand is refused, and nothing is reserved.
    Refused(LinkRefusal),
}

/// A grant of one link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LinkGrant {
    /// The guaranteed delay bound, valid whatever is admitted later.
    pub bound: Duration,
    /// The delay bound that follows from the current reservations, at most `bound`.
    pub now: Duration,
    /// The output traffic, which arrives at the next hop.
    pub output: Traffic,
}

/// A refusal with its reason.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LinkRefusal {
    /// The resource that does not suffice.
    pub resource: Resource,
    /// The amount that all streams together need, in the unit of the resource.
    pub needed: u64,
    /// The available amount, in the same unit.
    pub available: u64,
    /// The contracts that would be admitted now.
    pub offer: LinkOffer,
}

/// A resource of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Resource {
    /// The sustained rate, in bits per second.
    Rate,
    /// The burst, in bytes.
    Burst,
    /// The packet length, in bytes.
    Packet,
    /// Queue space, in bytes.
    Buffer,
    /// Queue space of all links of the node together, in bytes.
    HostBuffer,
    /// Processor time, in nanoseconds per second.
    Cpu,
    /// Delay, in nanoseconds: the delay bound would exceed a deadline of this or of another stream.
    Delay,
    /// Bytes that are due at the same time, within this time after a simultaneous start.
    Due {
        /// The time.
        within: Duration,
    },
    /// Windows: services owed per period of streams with a common period, in thousandths.
    Windows,
    /// The number of streams, or of reservations on one stream.
    Places,
    /// A guaranteed rate, in bits per second: the class of the stream guarantees nothing.
    Guarantee,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate => f.write_str("rate in bit/s"),
            Self::Burst => f.write_str("bytes at once"),
            Self::Packet => f.write_str("bytes of a packet"),
            Self::Buffer => f.write_str("buffer in bytes"),
            Self::HostBuffer => f.write_str("buffer of the host in bytes"),
            Self::Cpu => f.write_str("processor in ns/s"),
            Self::Delay => f.write_str("delay in ns"),
            Self::Due { within } => write!(f, "bytes due within {within}"),
            Self::Windows => f.write_str("services owed per period, in thousandths"),
            Self::Places => f.write_str("stream slots"),
            Self::Guarantee => f.write_str("guaranteed rate in bit/s"),
        }
    }
}

/// The contracts that would be admitted instead of a demand. Each suffices alone; `None` if no
/// value of this dimension suffices.
///
/// Values are found by bisection to 1/1024 of the demand. Each offered value has itself been
/// tested.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LinkOffer {
    /// A lower rate with samples of the same size, in bits per second.
    pub rate: Option<u64>,
    /// Smaller samples at the same frequency: bursts and packets of this number of bytes, and the
    /// rate in proportion.
    pub burst: Option<u64>,
    /// A longer deadline.
    pub deadline: Option<Duration>,
    /// A larger loss tolerance, if the rule counts windows.
    pub loss: Option<LossTolerance>,
}

impl fmt::Display for LinkOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut any = false;
        let mut part = |f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>| {
            let before = if any { " or " } else { "ask for " };
            any = true;
            write!(f, "{before}{text}")
        };
        if let Some(rate) = self.rate {
            part(f, format_args!("{rate} bit/s"))?;
        }
        if let Some(burst) = self.burst {
            part(f, format_args!("samples of {burst} bytes"))?;
        }
        if let Some(deadline) = self.deadline {
            part(f, format_args!("a delay of {deadline}"))?;
        }
        if let Some(loss) = self.loss {
            part(f, format_args!("a loss tolerance of {loss}"))?;
        }
        if any { Ok(()) } else { f.write_str("nothing of it fits now; try again later") }
    }
}

impl fmt::Display for LinkRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, needed, available, offer } = self;
        write!(f, "{resource}: {needed} needed, {available} available; {offer}")
    }
}
