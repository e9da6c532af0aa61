//! The budget of a link: the bytes that a sample is charged, the shares of repairs and control, and the
//! traffic that may block a sample.
//!
//! Admission ([`crate::control`]) promises these figures, and the link ([`crate::link`]) keeps them.

use crate::carrier::{Carrier, WIRE_OVERHEAD};
use paceline_sched::{Capacity, Duration, Policy};

/// Control may use the fraction 1/`CONTROL_SHARE` of the capacity.
pub(crate) const CONTROL_SHARE: u64 = 20;
/// The size of a piece of control ahead of contracted samples, as the fraction 1/`PIECE_PART` of a frame.
const PIECE_PART: u64 = 4;
/// The minimum size of such a piece, in bytes.
const PIECE_BYTES_MIN: u64 = 300;
/// The share of the capacity that repairs may use ahead of samples with a deadline, as the fraction
/// 1/`REPAIR_SHARE`. The same share applies to best-effort repairs ahead of other best effort.
pub(crate) const REPAIR_SHARE: u64 = 10;
/// The burst of that share: the credit of this time, plus one frame.
pub(crate) const REPAIR_BURST: Duration = Duration::from_millis(50);
/// The time on the wire of the frames that leave together on a fast link.
pub(crate) const BURST: Duration = Duration::from_micros(500);
/// A link is fast if so many of its frames fit into [`BURST`].
const BURST_FRAMES: u64 = 2;
/// The payload bytes of a segment.
pub(crate) const SEGMENT_BYTES: u64 = 1_090;
/// The bytes of a segment's headers on the wire.
pub(crate) const SEGMENT_OVERHEAD: u64 = 110;

/// The share of the capacity that admission reserves for repairs.
///
/// It is a tenth, which repairs may use ahead of samples with a deadline. On a measured link over a carrier that may lose frames, it
/// follows the loss of the last seconds, from 6 % to a tenth.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct RepairShare(u64);

impl RepairShare {
    /// 6 %: losses of up to 5 % are repaired before they have been counted.
    pub const LEAST: Self = Self(60);
    /// A tenth, the default.
    pub const MOST: Self = Self(100);

    /// Returns a share in thousandths of the capacity, within the least and the greatest one.
    #[must_use]
    pub fn new(per_mille: u64) -> Self {
        Self(per_mille.clamp(Self::LEAST.0, Self::MOST.0))
    }

    /// Returns the share in thousandths of the capacity.
    #[must_use]
    pub const fn per_mille(self) -> u64 {
        self.0
    }
}

impl Default for RepairShare {
    fn default() -> Self {
        Self::MOST
    }
}

/// Returns the bytes charged on a link for `payload` bytes of a sample, including segment headers.
pub(crate) fn counted(payload: u128) -> u128 {
    let segments = payload.div_ceil(u128::from(SEGMENT_BYTES)).max(1);
    payload.saturating_add(segments * u128::from(SEGMENT_OVERHEAD))
}

/// Returns the most payload bytes of a sample that are charged at most `wire` bytes by [`counted`].
pub(crate) fn uncounted(wire: u64) -> usize {
    let segments = wire.div_ceil(SEGMENT_BYTES + SEGMENT_OVERHEAD).max(1);
    usize::try_from(wire.saturating_sub(segments * SEGMENT_OVERHEAD)).unwrap_or(usize::MAX)
}

/// Returns the part of a link's capacity for streams. 5 % is reserved for control, and repairs have their own
/// share.
pub(crate) fn for_streams(capacity: Capacity, carrier: Carrier, share: RepairShare) -> Capacity {
    let repairs = match carrier {
        Carrier::Ordered | Carrier::Local => 0,
        Carrier::Datagrams => repairs_of(capacity, share),
    };
    let bits = capacity.bits_per_s();
    Capacity::from_bits_per_s(bits.saturating_sub(bits.div_ceil(CONTROL_SHARE) + repairs))
        .unwrap_or(capacity)
}

/// Returns the reservation for repairs on a link of `capacity` that retransmits, in bits per second on the wire.
fn repairs_of(capacity: Capacity, share: RepairShare) -> u64 {
    let bits = capacity.bits_per_s();
    let part = (u128::from(bits) * u128::from(share.per_mille())).div_ceil(1_000);
    u64::try_from(part).unwrap_or(bits)
}

/// Returns the burst of bytes on the wire that repairs may send ahead of others, whatever their reservation is.
fn repair_burst(capacity: Capacity) -> u64 {
    let bytes = capacity.bytes_in(REPAIR_BURST).div_ceil(REPAIR_SHARE);
    bytes + Carrier::Datagrams.frame_on_wire(capacity)
}

/// Returns the size on the wire of a piece of control ahead of contracted samples, where a frame occupies
/// `frame` bytes.
pub(crate) const fn piece_on_wire(frame: u64) -> u64 {
    let part = frame / PIECE_PART;
    let least = PIECE_BYTES_MIN + WIRE_OVERHEAD;
    if part > least { part } else { least }
}

/// Returns whether several frames that occupy `frame` bytes fit into [`BURST`].
pub(crate) fn is_fast(capacity: Capacity, frame: u64) -> bool {
    capacity.time_for(frame * BURST_FRAMES) <= BURST
}

/// Returns the bytes on the wire that may precede a sample, however early its deadline. These are the frames that leave
/// together, since transmission is not preempted, a burst of repairs, and one piece of control where the discipline does
/// not serve by deadlines.
pub(crate) fn in_the_way(policy: Policy, capacity: Capacity, carrier: Carrier) -> u64 {
    let frame = carrier.frame_on_wire(capacity);
    let together =
        if is_fast(capacity, frame) { capacity.bytes_in(BURST).max(frame) } else { frame };
    let repairs = match carrier {
        Carrier::Ordered | Carrier::Local => 0,
        Carrier::Datagrams => repair_burst(capacity),
    };
    let control = match policy {
        Policy::Edf | Policy::DelayEdd | Policy::Vds | Policy::Dwcs { .. } => 0,
        Policy::Fifo
        | Policy::StaticPriority
        | Policy::Rcsp
        | Policy::StopAndGo
        | Policy::Rpq
        | Policy::Drr
        | Policy::Wf2qPlus
        | Policy::Hfsc => piece_on_wire(frame),
    };
    together + repairs + control
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contracts_get_the_rest_of_control_and_repairs() {
        let capacity = Capacity::from_bits_per_s(10_000_000).unwrap();
        let of = |carrier, share| for_streams(capacity, carrier, share).bits_per_s();
        assert_eq!(of(Carrier::Datagrams, RepairShare::MOST), 8_500_000);
        assert_eq!(of(Carrier::Datagrams, RepairShare::LEAST), 8_900_000);
        assert_eq!(of(Carrier::Ordered, RepairShare::MOST), 9_500_000);
        assert_eq!(RepairShare::new(0), RepairShare::LEAST);
        assert_eq!(RepairShare::new(u64::MAX), RepairShare::default());
    }

    #[test]
    fn counted_bytes_give_the_sample_length() {
        for bytes in [0, 1, 64, 1_089, 1_090, 1_091, 2_180, 2_181, 10_900, 50_000, 1 << 26] {
            let wire = u64::try_from(counted(bytes)).unwrap();
            assert_eq!(uncounted(wire) as u128, bytes);
        }
        assert_eq!((uncounted(0), uncounted(u64::MAX) > 1 << 40), (0, true));
    }
}
