//! The order of RTP packets that arrive over UDP.

use std::collections::BTreeMap;

/// Most packets that wait for a missing one.
const WAITING_MAX: usize = 64;
/// Most bytes that wait.
const WAITING_BYTES_MAX: usize = 256 * 1024;
/// The longest wait for a missing packet, in nanoseconds.
const WAIT_NS: u64 = 30_000_000;
/// A difference of sequence numbers above which the sender began anew.
const JUMP_MAX: u16 = 1_000;

/// A packet in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedPacket {
    /// The RTP time, without wrapping.
    pub time: i64,
    /// The marker bit.
    pub marker: bool,
    /// The number of packets that are missing before it; 1 if the sender began anew.
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
}

#[derive(Clone, Copy, Debug)]
struct Sender {
    ssrc: u32,
    /// The extended sequence number of the next packet.
    next: i64,
    /// The RTP time of the newest packet, without wrapping.
    time: i64,
    /// It began anew, so packets may be missing.
    anew: bool,
}

impl PacketOrder {
    /// Takes a packet. Call [`Self::poll`] until it returns `None` afterwards.
    pub fn push(&mut self, packet: ArrivedPacket) {
        let ArrivedPacket { sequence, time, ssrc, marker, payload, arrived } = packet;
        let known = self.sender.filter(|sender| {
            let ahead = sequence.wrapping_sub(low(sender.next));
            sender.ssrc == ssrc && (ahead <= JUMP_MAX || ahead >= u16::MAX - JUMP_MAX)
        });
        let mut sender = known.unwrap_or_else(|| {
            self.waiting.clear();
            self.bytes = 0;
            let anew = self.sender.is_some();
            Sender { ssrc, next: i64::from(sequence), time: i64::from(time), anew }
        });
        let step = sequence.wrapping_sub(low(sender.next)).cast_signed();
        let place = sender.next.saturating_add(i64::from(step));
        sender.time = extended(sender.time, time);
        self.sender = Some(sender);
        if step < 0 || self.waiting.contains_key(&place) {
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
        let anew = u32::from(std::mem::take(&mut sender.anew));
        packet.lost = u32::try_from(missing).unwrap_or(u32::MAX).max(anew);
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

/// Returns `time` without wrapping, next to `near`.
fn extended(near: i64, time: u32) -> i64 {
    let [_, _, _, _, a, b, c, d] = near.to_be_bytes();
    let step = time.wrapping_sub(u32::from_be_bytes([a, b, c, d])).cast_signed();
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
        order.push(packet(30_000, 1, 0));
        assert_eq!(drain(&mut order, 0), [(30_000, 1)]);
        order.push(packet(30_001, 2, 0));
        assert_eq!(drain(&mut order, 0), [(30_001, 1)]);
        assert_eq!((order.extend(1, 0), order.extend(2, 300_011)), (None, Some(300_011)));
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
