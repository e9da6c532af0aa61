//! The bytes that coded video may use: a leaky bucket in front of the encoder.

use paceline_media::h264::Limit;
use paceline_proto::Envelope;
use paceline_sched::Instant;

/// The part of the burst that is left for samples that leave the scaler closer together than they were published.
const SPARE_PART: u64 = 4;
/// The same of a picture that may use a whole period, which is longer than a second.
const SPARE_PART_SLOW: u64 = 16;

/// The bytes that coded pictures may use, so that they stay within an envelope. A picture cannot be taken back once it
/// is encoded: later ones refer to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    envelope: Envelope,
    /// The bytes that may be sent at `at`, times 10⁹.
    left: i128,
    at: Instant,
}

const NANOS: i128 = 1_000_000_000;

impl Bucket {
    pub(super) fn new(envelope: Envelope) -> Self {
        Self { envelope, left: full(envelope), at: Instant::ZERO }
    }

    pub(super) const fn envelope(&self) -> Envelope {
        self.envelope
    }

    /// Returns the limit of a picture that was published at `at`.
    pub(super) fn limit(&mut self, at: Instant) -> Limit {
        let passed = i128::from(at.since(self.at).as_nanos());
        let refilled = i128::from(self.envelope.bytes_per_s()) * passed;
        self.left = self.left.saturating_add(refilled).min(full(self.envelope));
        self.at = self.at.max(at);
        let bytes = |left: i128| u64::try_from(left / NANOS).unwrap_or(0);
        Limit { now: bytes(self.left), full: bytes(full(self.envelope)) }
    }

    /// Records an encoded picture.
    pub(super) fn take(&mut self, bytes: usize) {
        self.left -= bytes as i128 * NANOS;
    }
}

fn full(envelope: Envelope) -> i128 {
    let (burst, bytes_per_s) = (envelope.burst(), envelope.bytes_per_s());
    let part = if burst > bytes_per_s { SPARE_PART_SLOW } else { SPARE_PART };
    i128::from(burst - burst / part) * NANOS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pictures within their limits never exceed the envelope.
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
                let bytes = next(9_000);
                if bytes <= bucket.limit(Instant::from_millis(at)).now {
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
