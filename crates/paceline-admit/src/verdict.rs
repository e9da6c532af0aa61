//! The answer of a link: granted with a bound, or refused with the number that did not fit and an offer.

use crate::traffic::Traffic;
use core::fmt;
use paceline_sched::{Duration, LossTolerance};

/// What a link says to a demand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It is promised, or would be.
    Granted(Grant),
    /// It is not, and nothing is held.
    Refused(Refusal),
}

/// A promise of one link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Grant {
    /// What is promised: whatever else is admitted later, no packet stays longer.
    pub bound: Duration,
    /// The bound that follows from what is held now; not above `bound`.
    pub now: Duration,
    /// What leaves, and the next hop has to expect.
    pub output: Traffic,
}

/// Why a demand was refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// What there was not enough of.
    pub resource: Resource,
    /// How much was needed, all streams together, in the unit of the resource.
    pub needed: u64,
    /// How much of it there is, in the same unit.
    pub available: u64,
    /// What would be admitted now.
    pub offer: Offer,
}

/// What there may be too little of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Resource {
    /// The link's rate in the long run, in bits per second.
    Rate,
    /// Bytes that may come at once.
    Burst,
    /// Bytes of one packet.
    Packet,
    /// Room in queues, in bytes.
    Buffer,
    /// The host's processor, in nanoseconds per second.
    Cpu,
    /// Time: the link's bound would be longer than a deadline of the stream or of one that is held, in
    /// nanoseconds.
    Delay,
    /// What is due at the same time: bytes within this time after a common beginning.
    Due {
        /// That time.
        within: Duration,
    },
    /// Windows: services owed in each period of streams that share one, in thousandths.
    Windows,
    /// Places for streams, or for holders of one stream.
    Places,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate => f.write_str("rate in bit/s"),
            Self::Burst => f.write_str("bytes at once"),
            Self::Packet => f.write_str("bytes of a packet"),
            Self::Buffer => f.write_str("buffer in bytes"),
            Self::Cpu => f.write_str("processor in ns/s"),
            Self::Delay => f.write_str("delay in ns"),
            Self::Due { within } => write!(f, "bytes due within {within}"),
            Self::Windows => f.write_str("services owed a period in thousandths"),
            Self::Places => f.write_str("places for streams"),
        }
    }
}

/// What would be admitted in place of a demand, each alone; `None` where no value of it would help.
///
/// Found by halving to a 1024th of what was asked for; what is offered was tested itself.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Offer {
    /// The same samples, fewer of them: so many bits per second.
    pub rate: Option<u64>,
    /// Smaller samples at the same pace: bursts and packets of so many bytes, and the rate in proportion.
    pub burst: Option<u64>,
    /// The same with this deadline.
    pub deadline: Option<Duration>,
    /// The same with this loss tolerance, where windows count.
    pub loss: Option<LossTolerance>,
}

impl fmt::Display for Offer {
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
        if any { Ok(()) } else { f.write_str("nothing of it fits now; ask again later") }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, needed, available, offer } = self;
        write!(f, "{resource}: {needed} needed, {available} available; {offer}")
    }
}
