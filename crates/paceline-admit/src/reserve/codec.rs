//! The encoding of messages: numbers in LEB128, a length before every list, and a limit on each
//! list.

use super::message::{
    Accept, Admit, Deny, HopShare, Key, LABEL_MAX, NAMES_MAX, Name, NodeIndex, PATH_MAX, PERIODS,
    Reason, Refresh, ReserveMessage, Scaled, Share, Stamp, Wanted,
};
use crate::link::Trunk;
use crate::staircase::Staircase;
use crate::traffic::{Traffic, nanobits};
use crate::verdict::{LinkOffer, LinkRefusal, Resource};
use core::fmt;
use paceline_sched::police::Dual;
use paceline_sched::{Duration, LossTolerance};

/// Why bytes could not be decoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CodecError {
    /// The bytes end inside this field.
    Truncated(&'static str),
    /// This field has an invalid value.
    Invalid(&'static str),
    /// This number of bytes follows the message.
    Trailing(usize),
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated(field) => write!(f, "truncated inside {field}"),
            Self::Invalid(field) => write!(f, "invalid {field}"),
            Self::Trailing(bytes) => write!(f, "{bytes} bytes left over"),
        }
    }
}

impl core::error::Error for CodecError {}

type Result<T> = core::result::Result<T, CodecError>;

/// Appends the encoding of a message to `out`.
pub fn encode(message: &ReserveMessage, out: &mut Vec<u8>) {
    let mut to = Writer(out);
    match message {
        ReserveMessage::Admit(admit) => {
            to.byte(0).name(admit.name).list(&admit.path, |to, node| to.number(node.0));
            to.list(&admit.weights, |to, weight| to.number((*weight).into()));
            to.list(&admit.label, |to, byte| to.byte(*byte));
            to.number(admit.period.as_nanos()).number(admit.spent.as_nanos());
            to.optional(admit.forward.as_ref(), Writer::wanted);
            to.optional(admit.backward.as_ref(), Writer::wanted);
            to.optional(admit.scaled.as_ref(), |to, scaled| {
                to.number(scaled.at as u64).wanted(&scaled.wanted)
            });
        }
        ReserveMessage::Accept(accept) => {
            to.byte(1).name(accept.name).number(accept.slack.as_nanos());
            to.optional(accept.backward.as_ref(), |to, bunched| to.number(bunched.as_nanos()));
            to.list(&accept.hops, |to, hop| {
                to.number(hop.node.0).optional(hop.forward.as_ref(), Writer::share);
                to.optional(hop.backward.as_ref(), Writer::share)
            });
        }
        ReserveMessage::Deny(deny) => {
            to.byte(2).name(deny.name).number(deny.node.0).number(deny.retry.as_nanos());
            to.reason(&deny.reason);
        }
        ReserveMessage::Close(name) => _ = to.byte(3).name(*name),
        ReserveMessage::Closed(name) => _ = to.byte(4).name(*name),
        ReserveMessage::Refresh(refresh) => {
            to.byte(5).byte(refresh.back.into()).number(refresh.period.as_nanos());
            to.list(&refresh.names, |to, name| to.name(*name));
        }
    }
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn byte(&mut self, byte: u8) -> &mut Self {
        self.0.push(byte);
        self
    }

    fn number(&mut self, value: u64) -> &mut Self {
        self.wide(u128::from(value))
    }

    fn wide(&mut self, mut value: u128) -> &mut Self {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push((value & 0x7f) as u8);
        self
    }

    fn list<T>(
        &mut self,
        items: &[T],
        mut item: impl for<'a> FnMut(&'a mut Self, &T) -> &'a mut Self,
    ) -> &mut Self {
        self.number(items.len() as u64);
        for one in items {
            item(self, one);
        }
        self
    }

    fn optional<T>(
        &mut self,
        value: Option<&T>,
        write: impl for<'a> FnOnce(&'a mut Self, &T) -> &'a mut Self,
    ) -> &mut Self {
        match value {
            Some(value) => write(self.byte(1), value),
            None => self.byte(0),
        }
    }

    fn name(&mut self, name: Name) -> &mut Self {
        let Name { key, stamp } = name;
        self.number(key.origin.0).number(key.number).number(stamp.epoch).number(stamp.seq)
    }

    fn traffic(&mut self, traffic: &Traffic) -> &mut Self {
        let Dual { peak_burst, peak_rate, burst, rate } = traffic.dual();
        self.number(peak_burst).number(peak_rate).number(burst).number(rate);
        self.number(traffic.packet()).number(traffic.packets_per_s());
        self.byte(u8::from(traffic.varies()));
        self.optional(
            traffic.staircase().as_ref(),
            |to, Staircase { bytes, period, early, clock }| {
                to.number(*bytes).number(period.as_nanos()).number(early.as_nanos());
                to.number(clock.as_nanos())
            },
        )
    }

    fn loss(&mut self, loss: LossTolerance) -> &mut Self {
        self.number(loss.x().into()).number(loss.y().into())
    }

    fn wanted(&mut self, wanted: &Wanted) -> &mut Self {
        self.wide(wanted.trunk.0).traffic(&wanted.traffic).number(wanted.bunched.as_nanos());
        self.number(wanted.within.as_nanos());
        self.loss(wanted.loss)
            .optional(wanted.level.as_ref(), |to, level| to.number((*level).into()))
    }

    fn share(&mut self, share: &Share) -> &mut Self {
        self.number(share.rate).number(share.burst).number(share.bound.as_nanos())
    }

    fn reason(&mut self, reason: &Reason) -> &mut Self {
        match reason {
            Reason::Refused { forward, refusal } => {
                self.byte(if *forward { 0 } else { 1 });
                let code = match refusal.resource {
                    Resource::Rate => 0,
                    Resource::Burst => 1,
                    Resource::Packet => 2,
                    Resource::Buffer => 3,
                    Resource::Cpu => 4,
                    Resource::Delay => 5,
                    Resource::Due { .. } => 6,
                    Resource::Windows => 7,
                    Resource::Places => 8,
                    Resource::Guarantee => 9,
                    Resource::HostBuffer => 10,
                };
                self.byte(code);
                if let Resource::Due { within } = refusal.resource {
                    self.number(within.as_nanos());
                }
                self.number(refusal.needed).number(refusal.available);
                let LinkOffer { rate, burst, deadline, loss } = refusal.offer;
                self.optional(rate.as_ref(), |to, rate| to.number(*rate));
                self.optional(burst.as_ref(), |to, burst| to.number(*burst));
                self.optional(deadline.as_ref(), |to, at| to.number(at.as_nanos()));
                self.optional(loss.as_ref(), |to, loss| to.loss(*loss))
            }
            Reason::Timeout => self.byte(2),
            Reason::PeerLost => self.byte(3),
            Reason::Unknown => self.byte(4),
            Reason::Declined => self.byte(5),
            Reason::NoRoute => self.byte(6),
            Reason::Full => self.byte(7),
            Reason::Impossible => self.byte(8),
            Reason::Contradiction => self.byte(9),
        }
    }
}

/// Decodes one message, which must use all of `bytes`.
///
/// # Errors
/// [`CodecError`] with the name of the field. Every proper prefix of a message is an error.
pub fn decode(bytes: &[u8]) -> Result<ReserveMessage> {
    let mut from = Reader(bytes);
    let message = match from.byte("kind")? {
        0 => ReserveMessage::Admit(Box::new(Admit {
            name: from.name()?,
            path: from.list(PATH_MAX, "path", |from| from.number("path").map(NodeIndex))?,
            weights: from.list(PATH_MAX - 1, "weights", |from| from.number32("weights"))?,
            label: from.list(LABEL_MAX, "label", |from| from.byte("label"))?,
            period: from.period()?,
            spent: from.duration("spent")?,
            forward: from.optional("forward", Reader::wanted)?,
            backward: from.optional("backward", Reader::wanted)?,
            scaled: from.optional("scaled", Reader::scaled)?.map(Box::new),
        })),
        1 => ReserveMessage::Accept(Accept {
            name: from.name()?,
            slack: from.duration("slack")?,
            backward: from.optional("backward", |from| from.duration("backward"))?,
            hops: from.list(PATH_MAX, "hops", |from| {
                Ok(HopShare {
                    node: NodeIndex(from.number("hops")?),
                    forward: from.optional("forward", Reader::share)?,
                    backward: from.optional("backward", Reader::share)?,
                })
            })?,
        }),
        2 => ReserveMessage::Deny(Deny {
            name: from.name()?,
            node: NodeIndex(from.number("node")?),
            retry: from.duration("retry")?,
            reason: from.reason()?,
        }),
        3 => ReserveMessage::Close(from.name()?),
        4 => ReserveMessage::Closed(from.name()?),
        5 => ReserveMessage::Refresh(Refresh {
            back: from.flag("back")?,
            period: from.period()?,
            names: from.list(NAMES_MAX, "names", Reader::name)?,
        }),
        _ => return Err(CodecError::Invalid("kind")),
    };
    if from.0.is_empty() { Ok(message) } else { Err(CodecError::Trailing(from.0.len())) }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self, field: &'static str) -> Result<u8> {
        let (first, rest) = self.0.split_first().ok_or(CodecError::Truncated(field))?;
        self.0 = rest;
        Ok(*first)
    }

    fn wide(&mut self, field: &'static str) -> Result<u128> {
        let mut value: u128 = 0;
        for shift in (0..128).step_by(7) {
            let byte = self.byte(field)?;
            let bits = u128::from(byte & 0x7f);
            if (bits << shift) >> shift != bits || (byte == 0 && shift > 0) {
                return Err(CodecError::Invalid(field));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(CodecError::Invalid(field))
    }

    fn number(&mut self, field: &'static str) -> Result<u64> {
        u64::try_from(self.wide(field)?).map_err(|_| CodecError::Invalid(field))
    }

    fn number32(&mut self, field: &'static str) -> Result<u32> {
        u32::try_from(self.wide(field)?).map_err(|_| CodecError::Invalid(field))
    }

    fn flag(&mut self, field: &'static str) -> Result<bool> {
        match self.byte(field)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(CodecError::Invalid(field)),
        }
    }

    fn duration(&mut self, field: &'static str) -> Result<Duration> {
        self.number(field).map(Duration::from_nanos)
    }

    /// Reads the refresh period R. An out-of-range value would lead to a lifetime of zero or
    /// without limit.
    fn period(&mut self) -> Result<Duration> {
        let period = self.duration("period")?;
        let (shortest, longest) = PERIODS;
        if period < shortest || period > longest {
            return Err(CodecError::Invalid("period"));
        }
        Ok(period)
    }

    fn list<T>(
        &mut self,
        max: usize,
        field: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let length = usize::try_from(self.number(field)?).unwrap_or(usize::MAX);
        if length > max {
            return Err(CodecError::Invalid(field));
        }
        let mut items = Vec::with_capacity(length);
        for _ in 0..length {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn optional<T>(
        &mut self,
        field: &'static str,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<Option<T>> {
        if self.flag(field)? { read(self).map(Some) } else { Ok(None) }
    }

    fn name(&mut self) -> Result<Name> {
        let key = Key { origin: NodeIndex(self.number("origin")?), number: self.number("number")? };
        Ok(Name { key, stamp: Stamp { epoch: self.number("epoch")?, seq: self.number("seq")? } })
    }

    fn traffic(&mut self) -> Result<Traffic> {
        let dual = Dual {
            peak_burst: self.number("traffic")?,
            peak_rate: self.number("traffic")?,
            burst: self.number("traffic")?,
            rate: self.number("traffic")?,
        };
        let (packet, packets) = (self.number("traffic")?, self.number("traffic")?);
        let varies = match self.byte("traffic")? {
            0 => false,
            1 => true,
            _ => return Err(CodecError::Invalid("traffic")),
        };
        let staircase = self.optional("traffic", |from| {
            let (bytes, period) = (from.number("traffic")?, from.duration("traffic")?);
            let (early, clock) = (from.duration("traffic")?, from.duration("traffic")?);
            let valid = (1..=Traffic::BURST_MAX).contains(&bytes);
            if !valid || clock.is_zero() || clock > period {
                return Err(CodecError::Invalid("traffic"));
            }
            Ok(Staircase { bytes, period, early, clock })
        })?;
        let traffic = Traffic::new(dual, packet, packets);
        let traffic = traffic.map_err(|_| CodecError::Invalid("traffic"))?;
        // One below the curve would hide traffic.
        let carries = |it: &Staircase| {
            let rate = nanobits(it.bytes) / u128::from(it.period.as_nanos());
            it.bytes >= packet && rate.saturating_add(1) >= dual.rate.into()
        };
        Ok(traffic.varying(varies).with_staircase(staircase.filter(carries)))
    }

    fn loss(&mut self) -> Result<LossTolerance> {
        match (self.number32("loss")?, self.number32("loss")?) {
            (0, 0) => Ok(LossTolerance::EDF),
            (x, y) => LossTolerance::new(x, y).map_err(|_| CodecError::Invalid("loss")),
        }
    }

    fn wanted(&mut self) -> Result<Wanted> {
        Ok(Wanted {
            trunk: Trunk(self.wide("trunk")?),
            traffic: self.traffic()?,
            bunched: self.duration("bunched")?,
            within: self.duration("within")?,
            loss: self.loss()?,
            level: self.optional("level", |from| from.number32("level"))?,
        })
    }

    fn scaled(&mut self) -> Result<Scaled> {
        let at = usize::try_from(self.number("scaled")?).unwrap_or(usize::MAX);
        if at >= PATH_MAX {
            return Err(CodecError::Invalid("scaled"));
        }
        Ok(Scaled { at, wanted: self.wanted()? })
    }

    fn share(&mut self) -> Result<Share> {
        let (rate, burst) = (self.number("rate")?, self.number("burst")?);
        Ok(Share { rate, burst, bound: self.duration("bound")? })
    }

    fn reason(&mut self) -> Result<Reason> {
        Ok(match self.byte("reason")? {
            0 => Reason::Refused { forward: true, refusal: self.refusal()? },
            1 => Reason::Refused { forward: false, refusal: self.refusal()? },
            2 => Reason::Timeout,
            3 => Reason::PeerLost,
            4 => Reason::Unknown,
            5 => Reason::Declined,
            6 => Reason::NoRoute,
            7 => Reason::Full,
            8 => Reason::Impossible,
            9 => Reason::Contradiction,
            _ => return Err(CodecError::Invalid("reason")),
        })
    }

    fn refusal(&mut self) -> Result<LinkRefusal> {
        let resource = match self.byte("resource")? {
            0 => Resource::Rate,
            1 => Resource::Burst,
            2 => Resource::Packet,
            3 => Resource::Buffer,
            4 => Resource::Cpu,
            5 => Resource::Delay,
            6 => Resource::Due { within: self.duration("within")? },
            7 => Resource::Windows,
            8 => Resource::Places,
            9 => Resource::Guarantee,
            10 => Resource::HostBuffer,
            _ => return Err(CodecError::Invalid("resource")),
        };
        Ok(LinkRefusal {
            resource,
            needed: self.number("needed")?,
            available: self.number("available")?,
            offer: LinkOffer {
                rate: self.optional("offer", |from| from.number("offer"))?,
                burst: self.optional("offer", |from| from.number("offer"))?,
                deadline: self.optional("offer", |from| from.duration("offer"))?,
                loss: self.optional("offer", Self::loss)?,
            },
        })
    }
}

#[cfg(test)]
mod tests;
