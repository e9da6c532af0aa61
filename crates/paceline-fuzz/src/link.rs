//! Compares histories of a `Link` and of the `Receiver`s at its other ends with models of both.
//!
//! | file | content |
//! |---|---|
//! | `lab.rs` | the real parts, time, the wire, and the steps encoded by the bytes |
//! | `lab/check.rs` | the invariants after every step and at the end |
//! | `model.rs` | queues, arrival order, contracts and counters, as vectors and maps |
//! | `line.rs` | one stream of the model |
//! | `hop.rs` | a hop of the model: its state, and the notices still to send to it |
//! | `far.rs` | the other end: a real receiver, and the events that it must report |
//! | `frame.rs` | the permitted content of a frame, and the earliest time to send one |

mod far;
mod frame;
mod hop;
mod lab;
mod line;
mod model;

use crate::input::Input;
use lab::Lab;
use paceline_sched::{Capacity, Duration, Policy};

const STEPS_MAX: usize = 600;

/// The configuration of a history, read from its first bytes.
#[derive(Clone, Copy, Debug)]
struct Setup {
    policy: Policy,
    capacity: Option<Capacity>,
    hops: usize,
    /// Frames may be lost, and answers may be invalid.
    lossy: bool,
    /// Each arriving frame is acknowledged at once, so nothing ever waits for credit.
    prompt: bool,
    contracts: bool,
}

impl Setup {
    fn read(input: &mut Input<'_>) -> Self {
        let flags = input.byte();
        let capacities = [None, None, Some(2_000_000), Some(20_000_000), Some(400_000_000)];
        let bits = input.one_of(&capacities);
        Self {
            policy: [Policy::Fifo, Policy::Fifo, Policy::DWCS, Policy::Vds][usize::from(flags & 3)],
            capacity: bits.and_then(|bits| Capacity::from_bits_per_s(bits).ok()),
            hops: 1 + usize::from(flags >> 2 & 1),
            lossy: flags >> 3 & 1 == 1,
            prompt: flags >> 4 & 3 != 0,
            contracts: flags >> 6 & 1 == 1,
        }
    }

    /// Returns true if no stream is ever suspended, so that the rules alone determine the order of service.
    const fn ordered(&self) -> bool {
        self.prompt && !self.lossy
    }

    /// Returns true if transmission takes no time, so that the model knows the result of every deadline.
    const fn knows_deadlines(&self) -> bool {
        self.capacity.is_none()
    }

    fn wire_time(&self, bytes: u64) -> Duration {
        // Rounded up to whole nanoseconds.
        self.capacity.map_or(Duration::ZERO, |capacity| {
            let nanos = (u128::from(bytes) * 1_000_000_000).div_ceil(capacity.bytes_per_s().into());
            Duration::from_nanos(u64::try_from(nanos).unwrap())
        })
    }

    /// Returns the largest frame size in bytes: 2 ms of the link's capacity, from 1,200 to 32,000.
    fn frame_bytes(&self) -> u64 {
        self.capacity.map_or(32_000, |c| (c.bytes_per_s() / 500).clamp(1_200, 32_000))
    }
}

/// Runs `data` as a sequence of steps: samples, streams, control, time, and losses on the wire.
pub fn link(data: &[u8]) {
    let mut input = Input::new(data);
    let mut lab = Lab::new(Setup::read(&mut input));
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        lab.step(&mut input);
        lab.check();
    }
    lab.finish();
}
