//! Grants: the promise of a path, and the reservation on each of its nodes.

use super::codec::{put_pair, read_pair};
use super::ids::HOPS_MAX;
use super::ids::NAME_BYTES_MAX;
use super::spec::HOST_LINK;
use crate::form::Form;
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::wire::segment::{read_form, write_form};
use crate::wire::{Reader, WireError, Writer};
use core::fmt;
use paceline_sched::{Capacity, Duration};

/// The promise for one publisher's samples to one subscription, valid while it is reserved.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Grant {
    /// The subscription.
    pub subscription: SubscriptionId,
    /// The publisher.
    pub publisher: PublisherId,
    /// The granted request ([`SubscriptionSpec::revision`](crate::control::SubscriptionSpec::revision)).
    pub revision: u64,
    /// The granted rate and size of the publisher's samples.
    pub form: Form,
    /// The longest total delay on the links of the path. It is shorter than the requested bound; the rest
    /// covers delays outside the schedulers.
    pub bound: Duration,
    /// The delay bound that the subscription requested, or the publisher for it.
    pub within: Option<Duration>,
    /// True if the reserved traffic was learned from the publisher's samples of the last minute and not declared.
    /// Samples beyond it may be late until more is reserved.
    pub learned: bool,
    /// The nodes of the path with their links, from the publisher's node to the last before the subscriber's. Empty on a
    /// node that only the spare's path leads through.
    pub hops: Vec<GrantedHop>,
    /// The nodes of the spare's path with their links ([`SubscriptionSpec::spare`](crate::control::SubscriptionSpec::spare)); empty
    /// without a spare, and on a node that only the first path leads through.
    pub spare: Vec<GrantedHop>,
}

/// The reservation of one node of a path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GrantedHop {
    /// The node.
    pub node: NodeId,
    /// The node's name, a label only.
    pub node_name: String,
    /// The node's link to the next one.
    pub link: String,
    /// The capacity of the link. `None` means that nothing is promised on the link: its capacity is unknown,
    /// and its part of the delay is only an assumption.
    pub capacity: Option<Capacity>,
    /// Reserved bytes per second, including headers.
    pub bytes_per_s: u64,
    /// Reserved burst in bytes.
    pub burst: u64,
    /// The hop's part of the delay.
    pub bound: Duration,
    /// True if the processors are reserved at both ends of the hop: the threads of this node and of the next one have
    /// real-time priorities. Otherwise busy programs on their hosts may delay samples beyond the bound.
    pub realtime: bool,
}

impl Grant {
    /// Encodes the grant for [`Self::read`].
    pub fn write(&self, out: &mut Vec<u8>) {
        put_pair(out, self.subscription, self.publisher);
        out.put_varint(self.revision);
        write_form(&self.form, out);
        out.put_varint(self.bound.as_nanos());
        out.put_flag(self.within.is_some());
        self.within.iter().for_each(|within| out.put_varint(within.as_nanos()));
        out.put_flag(self.learned);
        for hops in [&self.hops, &self.spare] {
            let hops = hops.get(..HOPS_MAX).unwrap_or(hops);
            out.put_varint(hops.len() as u64);
            hops.iter().for_each(|hop| hop.write(out));
        }
    }

    /// Decodes a grant that [`Self::write`] encoded.
    ///
    /// # Errors
    /// Returns [`WireError`] if the bytes are no grant.
    pub fn read(reader: &mut Reader) -> Result<Self, WireError> {
        let (subscription, publisher) = read_pair(reader)?;
        let revision = reader.varint("revision")?;
        let form = read_form(reader)?;
        let bound = Duration::from_nanos(reader.varint("bound")?);
        let within = match reader.flag("delay bound")? {
            true => Some(Duration::from_nanos(reader.varint("delay bound")?)),
            false => None,
        };
        let learned = reader.flag("learned traffic")?;
        let (hops, spare) = (GrantedHop::read_path(reader)?, GrantedHop::read_path(reader)?);
        Ok(Self { subscription, publisher, revision, form, bound, within, learned, hops, spare })
    }
}

impl GrantedHop {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u64(self.node.0);
        out.put_text(&self.node_name);
        out.put_text(&self.link);
        out.put_varint(self.capacity.map_or(0, Capacity::bits_per_s));
        out.put_varint(self.bytes_per_s);
        out.put_varint(self.burst);
        out.put_varint(self.bound.as_nanos());
        out.put_flag(self.realtime);
    }

    fn read_path(reader: &mut Reader) -> Result<Vec<Self>, WireError> {
        let count = reader.len(HOPS_MAX, "hops")?;
        (0..count).map(|_| Self::read(reader)).collect()
    }

    fn read(reader: &mut Reader) -> Result<Self, WireError> {
        let (node, node_name) = (reader.u64("node")?, reader.text(NAME_BYTES_MAX, "node name")?);
        let link = reader.text(NAME_BYTES_MAX, "link name")?;
        let capacity = match reader.varint("capacity")? {
            0 => None,
            bits => {
                Some(Capacity::from_bits_per_s(bits).map_err(|_| WireError::Invalid("capacity"))?)
            }
        };
        Ok(Self {
            node: NodeId(node),
            node_name,
            link,
            capacity,
            bytes_per_s: reader.varint("bytes per second")?,
            burst: reader.varint("burst")?,
            bound: Duration::from_nanos(reader.varint("bound")?),
            realtime: reader.flag("real-time priorities")?,
        })
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "within {}", self.bound)?;
        let limited = self.hops.iter().filter_map(|hop| Some((hop, hop.capacity?)));
        for (count, (hop, capacity)) in limited.enumerate() {
            let before = if count == 0 { "over" } else { "and" };
            write!(f, " {before} {} of {} ({capacity})", hop.link, hop.node_name)?;
        }
        // A process of the same host is reached over memory, which nothing limits.
        let open = self.hops.iter().filter(|hop| hop.capacity.is_none() && hop.link != HOST_LINK);
        for (count, hop) in open.enumerate() {
            let before = if count == 0 { ", without a guarantee on" } else { " and" };
            write!(f, "{before} {} of {}", hop.link, hop.node_name)?;
            if count == 0 {
                f.write_str(" (no capacity)")?;
            }
        }
        let spare = self.spare.iter().filter(|hop| hop.link != HOST_LINK);
        for (count, hop) in spare.enumerate() {
            let before = if count == 0 { ", with a spare over" } else { " and" };
            write!(f, "{before} {} of {}", hop.link, hop.node_name)?;
        }
        if !self.hops.is_empty() && self.hops.iter().all(|hop| hop.realtime) {
            f.write_str(", the processors reserved")?;
        }
        if let Some(hop) = self.hops.first().filter(|_| self.learned) {
            let GrantedHop { bytes_per_s, burst, .. } = hop;
            let kilobits = bytes_per_s.saturating_mul(8).div_ceil(1_000);
            write!(
                f,
                ", for traffic as in the last minute: {kilobits} kbit/s and {burst} bytes at once"
            )?;
        }
        Ok(())
    }
}

/// A host's processor time for promises, in nanoseconds of one processor per second.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ProcessorUse {
    /// The processor time reserved on all links together.
    pub held: u64,
    /// The processor time available for promises.
    pub most: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Rate;
    use bytes::Bytes;
    use core::num::NonZeroU32;

    #[test]
    fn a_grant_round_trips_and_every_truncation_is_an_error() {
        let hop = |capacity: Option<u64>| GrantedHop {
            node: NodeId(7),
            node_name: "robot".into(),
            link: "radio".into(),
            capacity: capacity.map(|bits| Capacity::from_bits_per_s(bits).unwrap()),
            bytes_per_s: 300_000,
            burst: 13_140,
            bound: Duration::from_millis(98),
            realtime: capacity.is_none(),
        };
        let grant = Grant {
            subscription: SubscriptionId { node: NodeId(9), index: 3 },
            publisher: PublisherId { node: NodeId(7), index: 1 },
            revision: 300,
            form: Form { rate: Rate::max(NonZeroU32::MIN), ..Form::FULL },
            bound: Duration::from_millis(196),
            within: Some(Duration::from_millis(200)),
            learned: true,
            hops: vec![hop(Some(1_000_000)), hop(None)],
            spare: vec![hop(None)],
        };
        let mut out = Vec::new();
        grant.write(&mut out);
        for cut in 0..out.len() {
            let mut reader = Reader::new(Bytes::copy_from_slice(&out[..cut]));
            assert!(Grant::read(&mut reader).is_err(), "{cut} of {} bytes", out.len());
        }
        let mut reader = Reader::new(out.into());
        assert_eq!(Grant::read(&mut reader), Ok(grant));
        assert!(reader.finish().is_ok());
    }

    #[test]
    fn the_text_names_links_that_limit_the_stream() {
        let hop = |link: &str, capacity: Option<u64>| GrantedHop {
            node: NodeId(7),
            node_name: "robot".into(),
            link: link.into(),
            capacity: capacity.map(|bits| Capacity::from_bits_per_s(bits).unwrap()),
            bytes_per_s: 300_000,
            burst: 13_140,
            bound: Duration::from_millis(98),
            realtime: false,
        };
        let with_spare = |hops, spare| {
            let (subscription, publisher) = (
                SubscriptionId { node: NodeId(9), index: 3 },
                PublisherId { node: NodeId(7), index: 1 },
            );
            let bound = Duration::from_millis(98);
            let (revision, within, learned) = (0, None, false);
            let form = Form::FULL;
            Grant { subscription, publisher, revision, form, bound, within, learned, hops, spare }
                .to_string()
        };
        let text = |hops| with_spare(hops, Vec::new());
        let radio = hop("radio", Some(2_000_000));
        let text_of_radio = "within 98 ms over radio of robot (2 Mbit/s)";
        assert_eq!(text(vec![hop(HOST_LINK, None), radio.clone()]), text_of_radio);
        assert_eq!(
            with_spare(vec![radio.clone()], vec![hop("lan", None), hop("sat", Some(1_000_000))]),
            "within 98 ms over radio of robot (2 Mbit/s), with a spare over lan of robot and sat of robot"
        );
        assert_eq!(
            text(vec![radio, hop("lan", None), hop("sat", Some(1_000_000))]),
            "within 98 ms over radio of robot (2 Mbit/s) and sat of robot (1 Mbit/s), without a guarantee on lan of \
             robot (no capacity)"
        );
    }
}
