//! Fuzz body for browsers: their binary messages, and frames written for them.

use bytes::Bytes;
use paceline_edge::browser::frame::{InMessage, micros, read, write};
use paceline_sched::{Duration, Instant};

/// The most bytes by which a message exceeds its frame: the longer heads of its parts, each of which stands for at least four bytes.
const LONGER: usize = 16;
/// The longest time that a message can state: a hundred years.
const LONGEST: Duration = Duration::from_secs(3_200_000_000);

/// Reads the bytes as a message of a browser, and writes them as a message to one, if they are a frame.
pub fn browser(data: &[u8]) {
    let now = Instant::from_millis(1_000_000);
    match read(now, Bytes::copy_from_slice(data)) {
        Some(InMessage::Ack(numbers)) => {
            assert!(numbers.len() <= 4_096 && data.len() == 3 + 4 * numbers.len());
        }
        Some(InMessage::Sample(sample)) => {
            assert!(sample.payload.len() < data.len(), "the head is no payload");
            for time in [sample.age, sample.bound, sample.captured] {
                assert!(time <= LONGEST, "{time}");
            }
            assert!(sample.age.as_micros() as f64 <= micros(now) + LONGEST.as_micros() as f64);
        }
        None => {}
    }
    if let Ok(message) = write(now, 7, &Bytes::copy_from_slice(data)) {
        assert_eq!(message.bytes.first_chunk(), Some(&7_u32.to_le_bytes()));
        let bytes = message.bytes.len();
        assert!(
            bytes >= data.len() && bytes <= 12 + data.len() * LONGER,
            "{bytes} of {}",
            data.len()
        );
    }
}
