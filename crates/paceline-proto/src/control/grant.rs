//! The answer yes: what a path promises, and what each node of it holds for that.

use super::Control;
use super::booking::Booking;
use super::registry::PairKey;
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use core::fmt;
use paceline_admit::reserve::Wanted;
use paceline_sched::{Capacity, Duration};

/// What is promised of one publisher's samples to one subscription, as long as it is held.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Grant {
    /// Who gets them.
    pub subscription: SubscriptionId,
    /// Whose they are.
    pub publisher: PublisherId,
    /// The longest that the links of the path take together. What was asked for is longer: the rest is
    /// for what no scheduler sees.
    pub bound: Duration,
    /// The delay bound that was asked for, if one was.
    pub within: Option<Duration>,
    /// The nodes of the path with the link that each of them uses, the publisher's first; the
    /// subscription's is not among them.
    pub hops: Vec<GrantedHop>,
}

/// What one node of a path holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GrantedHop {
    /// The node.
    pub node: NodeId,
    /// What people call it, a label only.
    pub node_name: String,
    /// Its link to the next one.
    pub link: String,
    /// What the link carries. Without one nothing is promised on the link: nobody knows whether it carries what
    /// is held there, and its part of the delay is only what was counted with.
    pub capacity: Option<Capacity>,
    /// Bytes per second, headers counted; less what a loss tolerance lets out.
    pub bytes_per_s: u64,
    /// Bytes at once.
    pub burst: u64,
    /// Its part of the delay.
    pub bound: Duration,
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "within {} over", self.bound)?;
        for hop in &self.hops {
            write!(f, " {} -{}->", hop.node_name, hop.link)?;
        }
        f.write_str(" here")?;
        let unknown = self.hops.iter().filter(|hop| hop.capacity.is_none());
        for (count, hop) in unknown.enumerate() {
            let before = if count == 0 { ", with nothing promised on" } else { " and" };
            write!(f, "{before} '{}' of '{}'", hop.link, hop.node_name)?;
            if count == 0 {
                f.write_str(" (no capacity)")?;
            }
        }
        Ok(())
    }
}

/// What promises take of a host's processors, in nanoseconds of one processor per second.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ProcessorUse {
    /// What is held for them, on all links together.
    pub held: u64,
    /// The most that may be.
    pub most: u64,
}

impl Control {
    /// What promises take of this host's processors; none if nobody measured what samples cost it.
    #[must_use]
    pub fn processor_use(&self) -> Option<ProcessorUse> {
        let most = self.admission.links.processor?.nanos_per_s;
        Some(ProcessorUse { held: self.admission.reservations.processor_held(), most })
    }

    /// What is promised on paths that lead through this node, or begin or end here, in the order of
    /// subscriptions and publishers.
    pub fn grants(&self) -> impl Iterator<Item = Grant> + '_ {
        self.admission.bookings().map(|booking| self.grant(booking))
    }

    fn grant(&self, booking: &Booking) -> Grant {
        let Booking { pair, request, path, wanted, bounds, .. } = booking;
        self.grant_of(*pair, request.within, path, wanted, bounds)
    }

    /// What it is if all of `path` holds `wanted`, each hop with its part of the delay.
    pub(super) fn grant_of(
        &self,
        (subscription, publisher): PairKey,
        within: Option<Duration>,
        path: &[NodeId],
        wanted: &Wanted,
        bounds: &[Duration],
    ) -> Grant {
        let nodes = path.split_last().map_or(&[][..], |(_, nodes)| nodes);
        let parts = bounds.iter().copied().chain(core::iter::repeat(Duration::ZERO));
        let hops =
            nodes.iter().zip(path.iter().skip(1)).zip(parts).map(|((&node, next), bound)| {
                let record = self.registry.record(node);
                let hop = record.and_then(|record| record.neighbours.get(next));
                GrantedHop {
                    node,
                    node_name: record.map(|record| record.name.clone()).unwrap_or_default(),
                    link: hop.map(|hop| hop.link_name.clone()).unwrap_or_default(),
                    capacity: hop.and_then(|hop| hop.capacity),
                    bytes_per_s: wanted.traffic.rate().div_ceil(8),
                    burst: wanted.traffic.burst(),
                    bound,
                }
            });
        Grant { subscription, publisher, bound: wanted.within, within, hops: hops.collect() }
    }

    /// What is promised to subscriptions of this node, and of its publishers.
    pub(super) fn granted_here(&self) -> impl Iterator<Item = (PairKey, Grant)> + '_ {
        let ends = |(subscription, publisher): PairKey| [subscription.node, publisher.node];
        let here = move |booking: &&Booking| ends(booking.pair).contains(&self.me);
        self.admission.bookings().filter(here).map(|booking| (booking.pair, self.grant(booking)))
    }
}
