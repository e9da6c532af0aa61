//! What carries the packets of one link of a scenario: the kernel, or this process where packets are
//! to be late, lost or out of order.

use crate::impair::{DIRECTIONS, End, Link};
use crate::netns::{Namespace, ip};
use anyhow::Result;
use paceline_sim::impair::{Impairment, Loss};
use std::rc::Rc;

/// What an Ethernet frame has beside its packet. Capacities and the simulator count it, a TUN device
/// does not.
const ETHERNET_HEADER: u64 = 14;

/// Two interfaces and what lies between them.
pub(super) struct Road {
    ends: [Rc<Namespace>; DIRECTIONS],
    device: String,
    wire: Impairment,
    carrier: Carrier,
}

/// What carries packets.
enum Carrier {
    /// A pair of interfaces of the kernel, shaped if there is a rate.
    Kernel,
    /// A thread of this process.
    Emulator(Link),
}

/// True if packets do nothing but wait for the rate, as the kernel can make them.
pub(super) fn is_plain(wire: &Impairment) -> bool {
    wire.delay.is_zero()
        && wire.jitter.is_zero()
        && wire.loss == Loss::None
        && wire.reorder_ppm == 0
        && wire.duplicate_ppm == 0
}

impl Road {
    /// Joins two namespaces by the network `10.254.place.0/30`. `impaired` says whether the wire is ever
    /// more than a rate; `seed` then decides about its packets.
    pub(super) fn new(
        ends: [Rc<Namespace>; DIRECTIONS],
        place: usize,
        wire: Impairment,
        impaired: Option<u64>,
    ) -> Result<Self> {
        let device = format!("l{place}");
        let addresses = [1, 2].map(|side| format!("10.254.{place}.{side}"));
        let [near, far] = &addresses;
        let [a, b] = &ends;
        let carrier = match impaired {
            Some(seed) => {
                let near = End { namespace: a, device: &device, address: near };
                let far = End { namespace: b, device: &device, address: far };
                Carrier::Emulator(Link::new([near, far], [wire; DIRECTIONS], seed)?)
            }
            None => {
                let (from, to) = (a.name(), b.name());
                ip(&format!(
                    "link add {device} netns {from} type veth peer name {device} netns {to}"
                ))?;
                for (end, address) in ends.iter().zip(&addresses) {
                    end.ip(&format!("link set {device} gso_max_segs 1"))?;
                    end.ip(&format!("addr add {address}/30 dev {device}"))?;
                    end.ip(&format!("link set {device} up"))?;
                }
                Carrier::Kernel
            }
        };
        let road = Self { ends, device, wire, carrier };
        road.shape(&wire)?;
        Ok(road)
    }

    fn shape(&self, wire: &Impairment) -> Result<()> {
        let (Carrier::Kernel, Some(rate)) = (&self.carrier, wire.rate) else { return Ok(()) };
        self.ends
            .iter()
            .try_for_each(|end| end.shape(&self.device, rate.bits_per_s(), wire.queue_bytes))
    }

    /// Lets nothing pass, or everything again.
    pub(super) fn cut(&self, cut: bool) -> Result<()> {
        match &self.carrier {
            Carrier::Kernel => {
                let state = if cut { "down" } else { "up" };
                let [_, far] = &self.ends;
                far.ip(&format!("link set {} {state}", self.device))
            }
            Carrier::Emulator(link) => {
                link.set([Impairment { blackout: cut, ..self.wire }; DIRECTIONS]);
                Ok(())
            }
        }
    }

    /// Does something else to packets, or what it did in the beginning.
    pub(super) fn impair(&self, wire: Option<&Impairment>) -> Result<()> {
        let wire = wire.unwrap_or(&self.wire);
        match &self.carrier {
            Carrier::Kernel => {
                if self.wire.rate.is_some() {
                    self.ends.iter().try_for_each(|end| end.unshape(&self.device))?;
                }
                self.shape(wire)
            }
            Carrier::Emulator(link) => {
                link.set([*wire; DIRECTIONS]);
                Ok(())
            }
        }
    }

    /// What entered so far, each way, in bytes of whole Ethernet frames, and the packets of it that were
    /// lost, if anybody counts them.
    pub(super) fn carried(&self) -> Result<[Passed; DIRECTIONS]> {
        match &self.carrier {
            Carrier::Kernel => {
                let [a, b] = &self.ends;
                let passed =
                    |end: &Namespace| end.sent(&self.device).map(|sent| Passed::of(sent.bytes));
                Ok([passed(a)?, passed(b)?])
            }
            Carrier::Emulator(link) => Ok(link.traffic().map(|way| {
                let counters = way.counters;
                let bytes = counters.bytes + counters.packets * ETHERNET_HEADER;
                Passed { bytes, lost: Some(counters.dropped.total() + way.refused) }
            })),
        }
    }
}

/// What passed in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) bytes: u64,
    pub(super) lost: Option<u64>,
}

impl Passed {
    const fn of(bytes: u64) -> Self {
        Self { bytes, lost: None }
    }

    /// What passed after `before`.
    pub(super) fn since(self, before: Self) -> Self {
        let lost = self.lost.zip(before.lost).map(|(now, then)| now.saturating_sub(then));
        Self { bytes: self.bytes.saturating_sub(before.bytes), lost }
    }
}
