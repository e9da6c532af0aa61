//! The order of RTP packets that arrive over UDP.

use std::collections::{BTreeMap, VecDeque};

/// Most packets that wait for a missing one.
const WAITING_MAX: usize = 64;
/// Most bytes that wait.
const WAITING_BYTES_MAX: usize = 256 * 1024;
/// The longest wait for a missing packet, in nanoseconds.
const WAIT_NS: u64 = 30_000_000;
/// A step ahead of the sequence number above which the sender may have begun anew.
const AHEAD_MAX: u16 = 1_000;
/// A step back above which the sender may have begun anew (RFC 3550, A.1).
const BEHIND_MAX: u16 = 100;

/// A packet in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedPacket {
    /// The RTP time, without wrapping.
    pub time: i64,
    /// The marker bit.
    pub marker: bool,
    /// The number of packets that are missing before it; 1 at least if the sender began anew.
    pub lost: u32,
    /// The payload.
    pub payload: Vec<u8>,
    /// The time of its arrival in nanoseconds.
    pub arrived: u64,
}

/// A packet as it arrived.
#[derive(Clone, Debug)]
pub struct ArrivedPacket {
    /// The sequence number.
    pub sequence: u16,
    /// The RTP time.
    pub time: u32,
    /// The identity of the sender.
    pub ssrc: u32,
    /// The marker bit.
    pub marker: bool,
    /// The payload.
    pub payload: Vec<u8>,
    /// The time of its arrival in nanoseconds of any steady clock.
    pub arrived: u64,
}

/// Puts the packets of one track into the order of their sequence numbers.
///
/// A gap waits for at most 30 ms and 64 packets. Packets that arrive later or twice are left out; the gap was counted.
///
/// Another sender, or a sequence number more than 100 behind or 1,000 ahead, is believed at two packets in sequence (RFC 3550, A.1),
/// between which none of the known sender arrives. A sender that begins anew less than 100 behind is known by packets that differ
/// from the earlier ones of their numbers.
///
/// ```
/// use paceline_edge::{ArrivedPacket, PacketOrder};
///
/// let mut order = PacketOrder::default();
/// let packet = |sequence| ArrivedPacket {
///     sequence, time: 7, ssrc: 1, marker: false, payload: vec![0], arrived: 0,
/// };
/// for sequence in [65_535, 1, 0] {
///     order.push(packet(sequence));
/// }
/// let lost: Vec<u32> = std::iter::from_fn(|| order.poll(0)).map(|packet| packet.lost).collect();
/// assert_eq!(lost, [0, 0, 0]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct PacketOrder {
    sender: Option<Sender>,
    /// By the extended sequence number.
    waiting: BTreeMap<i64, OrderedPacket>,
    bytes: usize,
    /// A packet that may be the first of another sender.
    suspect: Option<ArrivedPacket>,
    /// The latest packets that were returned, by their numbers.
    returned: VecDeque<(i64, Fingerprint)>,
    discarded: u64,
}

/// What distinguishes packets of one sequence number: the RTP time, the marker, and the length.
type Fingerprint = (u32, bool, usize);

#[derive(Clone, Copy, Debug)]
struct Sender {
    ssrc: u32,
    /// The extended sequence number of the next packet.
    next: i64,
    /// The RTP time of the newest packet, without wrapping.
    time: i64,
    /// The packets that are missing because it began anew.
    anew: u32,
}

impl PacketOrder {
    /// Takes a packet. Call [`Self::poll`] until it returns `None` afterwards.
    pub fn push(&mut self, packet: ArrivedPacket) {
        let Some(sender) = self.sender else {
            self.begin(&packet, 0);
            return self.add(packet);
        };
        if self.belongs(&sender, &packet) {
            self.discarded += u64::from(self.suspect.take().is_some());
            return self.add(packet);
        }
        match self.suspect.take() {
            Some(first) if follows(&first, &packet) => {
                let waiting = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
                self.begin(&first, waiting.max(1));
                self.add(first);
                self.add(packet);
            }
            other => {
                self.discarded += u64::from(other.is_some());
                self.suspect = Some(packet);
            }
        }
    }

    /// Returns the number of packets that were left out: those that came too late or twice, and those of other senders.
    #[must_use]
    pub const fn discarded(&self) -> u64 {
        self.discarded
    }

    /// Returns whether a packet is one of the sender, whether or not it is late.
    fn belongs(&self, sender: &Sender, packet: &ArrivedPacket) -> bool {
        let step = packet.sequence.wrapping_sub(low(sender.next)).cast_signed();
        let near = step <= AHEAD_MAX.cast_signed() && step >= -BEHIND_MAX.cast_signed();
        let place = sender.next.saturating_add(i64::from(step));
        let again = || {
            let at = self.returned.binary_search_by_key(&place, |(known, _)| *known).ok();
            let earlier = at.and_then(|at| self.returned.get(at));
            earlier.is_none_or(|(_, earlier)| *earlier == fingerprint(packet))
        };
        sender.ssrc == packet.ssrc && near && (step >= 0 || again())
    }

    /// Begins with the first packet of a sender.
    fn begin(&mut self, first: &ArrivedPacket, anew: u32) {
        self.waiting.clear();
        self.returned.clear();
        self.bytes = 0;
        let (next, time) = (i64::from(first.sequence), i64::from(first.time));
        self.sender = Some(Sender { ssrc: first.ssrc, next, time, anew });
    }

    /// Adds a packet of the sender.
    fn add(&mut self, packet: ArrivedPacket) {
        let ArrivedPacket { sequence, time, marker, payload, arrived, .. } = packet;
        let Some(sender) = &mut self.sender else { return };
        let step = sequence.wrapping_sub(low(sender.next)).cast_signed();
        let place = sender.next.saturating_add(i64::from(step));
        sender.time = extended(sender.time, time);
        if step < 0 || self.waiting.contains_key(&place) {
            self.discarded += 1;
            return;
        }
        self.bytes += payload.len();
        let packet = OrderedPacket { time: sender.time, marker, lost: 0, payload, arrived };
        self.waiting.insert(place, packet);
    }

    /// Returns the next packet in order at `now`.
    pub fn poll(&mut self, now: u64) -> Option<OrderedPacket> {
        let sender = self.sender.as_mut()?;
        let (place, first) = self.waiting.first_key_value()?;
        let missing = place.saturating_sub(sender.next);
        // Packets may wait for an earlier one although the oldest of them is not the first in order.
        let oldest = self.waiting.values().map(|packet| packet.arrived).min();
        let waited = now.saturating_sub(oldest.unwrap_or(first.arrived));
        let full = self.waiting.len() > WAITING_MAX || self.bytes > WAITING_BYTES_MAX;
        if missing > 0 && waited < WAIT_NS && !full {
            return None;
        }
        let (place, mut packet) = self.waiting.pop_first()?;
        self.bytes -= packet.payload.len();
        sender.next = place.saturating_add(1);
        let anew = std::mem::take(&mut sender.anew);
        packet.lost = u32::try_from(missing).unwrap_or(u32::MAX).max(anew);
        if self.returned.len() == usize::from(BEHIND_MAX) {
            self.returned.pop_front();
        }
        let time = low_32(packet.time);
        self.returned.push_back((place, (time, packet.marker, packet.payload.len())));
        Some(packet)
    }

    /// Returns an RTP time of the same sender without wrapping; `None` before its first packet.
    #[must_use]
    pub fn extend(&self, ssrc: u32, time: u32) -> Option<i64> {
        let sender = self.sender.filter(|sender| sender.ssrc == ssrc)?;
        Some(extended(sender.time, time))
    }
}

/// Returns the lower half of an extended sequence number.
fn low(sequence: i64) -> u16 {
    let [.., high, low] = sequence.to_be_bytes();
    u16::from_be_bytes([high, low])
}

/// Returns whether a packet is the next one of the same sender.
const fn follows(first: &ArrivedPacket, packet: &ArrivedPacket) -> bool {
    first.ssrc == packet.ssrc && first.sequence.wrapping_add(1) == packet.sequence
}

const fn fingerprint(packet: &ArrivedPacket) -> Fingerprint {
    (packet.time, packet.marker, packet.payload.len())
}

/// Returns the lower half of an RTP time without wrapping.
fn low_32(time: i64) -> u32 {
    let [_, _, _, _, a, b, c, d] = time.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// Returns `time` without wrapping, next to `near`.
fn extended(near: i64, time: u32) -> i64 {
    let step = time.wrapping_sub(low_32(near)).cast_signed();
    near.saturating_add(i64::from(step))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(sequence: u16, ssrc: u32, arrived: u64) -> ArrivedPacket {
        let (time, payload) = (u32::from(sequence) * 10, sequence.to_be_bytes().to_vec());
        ArrivedPacket { sequence, time, ssrc, marker: false, payload, arrived }
    }

    fn drain(order: &mut PacketOrder, now: u64) -> Vec<(u16, u32)> {
        let packets = std::iter::from_fn(|| order.poll(now));
        packets.map(|it| (u16::from_be_bytes([it.payload[0], it.payload[1]]), it.lost)).collect()
    }

    #[test]
    fn a_gap_waits_for_a_moment_and_is_then_counted() {
        let mut order = PacketOrder::default();
        order.push(packet(5, 1, 0));
        assert_eq!(drain(&mut order, 0), [(5, 0)]);
        order.push(packet(8, 1, 100));
        assert_eq!(drain(&mut order, 200), []);
        order.push(packet(7, 1, 300));
        assert_eq!(drain(&mut order, 100 + WAIT_NS), [(7, 1), (8, 0)]);
        // Too late, and twice.
        order.push(packet(6, 1, 400));
        order.push(packet(8, 1, 400));
        assert_eq!(drain(&mut order, u64::MAX), []);
    }

    #[test]
    fn a_sender_that_begins_anew_is_a_loss() {
        let mut order = PacketOrder::default();
        order.push(packet(5, 1, 0));
        drain(&mut order, 0);
        // Behind by more than packets overtake each other, far ahead, and another sender.
        for (first, ssrc) in [(65_300, 1), (30_000, 1), (30_002, 2)] {
            order.push(packet(first, ssrc, 0));
            assert_eq!(drain(&mut order, 0), [], "one packet is no sender");
            order.push(packet(first + 1, ssrc, 0));
            assert_eq!(drain(&mut order, 0), [(first, 1), (first + 1, 0)]);
        }
        assert_eq!((order.extend(1, 0), order.extend(2, 300_031)), (None, Some(300_031)));
        assert_eq!(order.discarded(), 0);
    }

    #[test]
    fn a_sender_that_begins_anew_slightly_behind_is_a_loss() {
        let mut order = PacketOrder::default();
        for sequence in 0..50 {
            order.push(packet(sequence, 1, 0));
        }
        assert_eq!(drain(&mut order, 0).len(), 50);
        let anew = |sequence| ArrivedPacket { time: 9_000, ..packet(sequence, 1, 0) };
        order.push(anew(20));
        order.push(anew(21));
        assert_eq!(drain(&mut order, 0), [(20, 1), (21, 0)]);
        // Packets that arrive twice are none of a new sender.
        order.push(anew(20));
        order.push(anew(21));
        order.push(anew(22));
        assert_eq!((drain(&mut order, 0), order.discarded()), (vec![(22, 0)], 2));
    }

    #[test]
    fn stray_packets_do_not_take_over() {
        let mut order = PacketOrder::default();
        let mut found = Vec::new();
        for sequence in 0..200 {
            order.push(packet(sequence, 1, 0));
            order.push(packet(sequence + 9, 2, 0));
            order.push(packet(sequence.wrapping_sub(500), 1, 0));
            found.extend(drain(&mut order, 0));
        }
        assert_eq!(found, (0..200).map(|sequence| (sequence, 0)).collect::<Vec<_>>());
        assert_eq!(order.discarded(), 399, "the last one may be of a new sender");
        // Packets that wait when another sender takes over are lost.
        for sequence in [202, 203, 204] {
            order.push(packet(sequence, 1, 0));
        }
        order.push(packet(7, 3, 0));
        order.push(packet(8, 3, 0));
        assert_eq!(drain(&mut order, 0), [(7, 3), (8, 0)]);
    }

    #[test]
    fn waiting_packets_are_bounded() {
        let mut order = PacketOrder::default();
        order.push(packet(0, 1, 0));
        drain(&mut order, 0);
        for sequence in 2..900 {
            order.push(packet(sequence, 1, 0));
            drain(&mut order, 0);
            assert!(order.waiting.len() <= WAITING_MAX + 1);
        }
    }

    proptest! {
        #[test]
        fn packets_arrive_once_in_order_and_gaps_are_counted(
            first in any::<u16>(), lost in proptest::collection::btree_set(1_u16..200, 0..40),
            moved in proptest::collection::vec((0_usize..200, 0_usize..8), 0..40),
        ) {
            let mut sent: Vec<u16> = (0..200).filter(|place| !lost.contains(place)).collect();
            for (from, by) in moved {
                let to = (from + by).min(sent.len() - 1);
                if from >= 1 && from < sent.len() {
                    sent[from..=to].rotate_left(1);
                }
            }
            let mut order = PacketOrder::default();
            let mut found = Vec::new();
            for place in sent {
                order.push(packet(first.wrapping_add(place), 1, 0));
                found.extend(drain(&mut order, 0));
            }
            found.extend(drain(&mut order, u64::MAX));
            let mut expected = 0_u32;
            for (sequence, missing) in found {
                let place = u32::from(sequence.wrapping_sub(first));
                prop_assert_eq!(place, expected + missing, "the gap is counted");
                expected = place + 1;
            }
        }
    }
}
