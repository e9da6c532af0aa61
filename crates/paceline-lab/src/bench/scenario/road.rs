//! The packet carrier of one link in a scenario: the kernel, or this process if packets are to be
//! delayed, lost or reordered.

use crate::impair::{DIRECTIONS, End, Link};
use crate::netns::{Namespace, ip};
use anyhow::Result;
use paceline_sim::impair::{Impairment, Loss};
use std::rc::Rc;

/// The header of an Ethernet frame in bytes. Capacities and the simulator include it, a TUN device
/// does not.
const ETHERNET_HEADER: u64 = 14;

/// Two interfaces and the connection between them.
pub(super) struct Road {
    ends: [Rc<Namespace>; DIRECTIONS],
    device: String,
    wire: Impairment,
    carrier: Carrier,
}

/// The component that carries the packets.
enum Carrier {
    /// A pair of kernel interfaces, shaped if there is a rate.
    Kernel,
    /// A thread of this process.
    Emulator(Link),
}

/// Returns true if packets only wait for the rate, which the kernel can emulate.
pub(super) fn is_plain(wire: &Impairment) -> bool {
    wire.delay.is_zero()
        && wire.jitter.is_zero()
        && wire.loss == Loss::None
        && wire.reorder_ppm == 0
        && wire.duplicate_ppm == 0
}

impl Road {
    /// Joins two namespaces by the network `10.254.place.0/30`. `impaired` is set if the wire ever
    /// does more than limit the rate; its value seeds the decisions about packets.
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

    /// Interrupts (`cut`) or restores all traffic.
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

    /// Changes the impairment; `None` restores the initial one.
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

    /// Returns the traffic so far in each direction: bytes of whole Ethernet frames, and lost
    /// packets if the carrier counts them.
    pub(super) fn carried(&self) -> Result<[Passed; DIRECTIONS]> {
        match &self.carrier {
            Carrier::Kernel => {
                let [a, b] = &self.ends;
                let passed =
                    |end: &Namespace| end.sent(&self.device).map(|sent| Passed::of(sent.bytes));
                Ok([passed(a)?, passed(b)?])
            }
            Carrier::Emulator(link) => Ok(link.traffic().map(|direction| {
                let counters = direction.counters;
                let bytes = counters.bytes + counters.packets * ETHERNET_HEADER;
                Passed { bytes, lost: Some(counters.dropped.total() + direction.refused) }
            })),
        }
    }
}

/// The traffic in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) bytes: u64,
    pub(super) lost: Option<u64>,
}

impl Passed {
    const fn of(bytes: u64) -> Self {
        Self { bytes, lost: None }
    }

    /// Returns the traffic after `before`.
    pub(super) fn since(self, before: Self) -> Self {
        let lost = self.lost.zip(before.lost).map(|(now, then)| now.saturating_sub(then));
        Self { bytes: self.bytes.saturating_sub(before.bytes), lost }
    }
}
