//! The bytes that coded video may use: a leaky bucket in front of the encoder.

use paceline_proto::Envelope;
use paceline_sched::Instant;

/// The part of the burst that covers pictures larger than expected.
const SPARE_PART: u64 = 4;

/// Leaves out pictures before they are encoded, so that the coded video stays within an envelope. A picture cannot be
/// taken back once it is encoded: later ones refer to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    envelope: Envelope,
    /// The bytes that may be sent at `at`, times 10⁹; negative after pictures larger than expected.
    left: i128,
    at: Instant,
    /// The bytes of the last picture.
    last: u64,
}

const NANOS: i128 = 1_000_000_000;

impl Bucket {
    pub(super) fn new(envelope: Envelope) -> Self {
        Self { envelope, left: full(envelope), at: Instant::ZERO, last: 0 }
    }

    pub(super) const fn envelope(&self) -> Envelope {
        self.envelope
    }

    /// Returns true if a picture that was published at `at` may be encoded.
    pub(super) fn has_room(&mut self, at: Instant) -> bool {
        let passed = i128::from(at.since(self.at).as_nanos());
        let refilled = i128::from(self.envelope.bytes_per_s()) * passed;
        self.left = self.left.saturating_add(refilled).min(full(self.envelope));
        self.at = self.at.max(at);
        // A larger picture than the last one is covered by the spare part, unless it follows a key picture.
        let expected = self.last.min(self.envelope.burst() / 16);
        self.left >= i128::from(expected) * NANOS
    }

    /// Records an encoded picture.
    pub(super) fn take(&mut self, bytes: usize) {
        self.last = bytes as u64;
        self.left -= i128::from(self.last) * NANOS;
    }
}

fn full(envelope: Envelope) -> i128 {
    i128::from(envelope.burst() - envelope.burst() / SPARE_PART) * NANOS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pictures of at most a quarter of the burst never exceed the envelope.
    #[test]
    fn encoded_pictures_stay_within_the_envelope() {
        let mut random = 13_u64;
        let mut next = |most: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            (random >> 33) % most + 1
        };
        for _ in 0..300 {
            let bytes_per_s = 1_000 + next(50_000);
            let envelope = Envelope::declared(10_000, bytes_per_s);
            let mut bucket = Bucket::new(envelope);
            let (mut at, mut sent) = (1_000, Vec::<(u64, u64)>::new());
            for _ in 0..200 {
                at += next(200);
                let bytes = next(2_500);
                if bucket.has_room(Instant::from_millis(at)) {
                    bucket.take(usize::try_from(bytes).unwrap());
                    sent.push((at, bytes));
                }
            }
            assert!(sent.len() > 4, "{sent:?}");
            for first in 0..sent.len() {
                let mut sum = 0;
                for (at, bytes) in &sent[first..] {
                    sum += bytes;
                    let allowed = envelope.burst() + bytes_per_s * (at - sent[first].0) / 1_000;
                    assert!(sum <= allowed, "{sum} bytes of {allowed}");
                }
            }
        }
    }
}
