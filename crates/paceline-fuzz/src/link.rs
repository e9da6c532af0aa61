//! Histories of a `Link` and of the `Receiver`s at its other ends, held against models of both.
//!
//! | file | what |
//! |---|---|
//! | `lab.rs` | the real parts, time, the wire, and the steps that bytes stand for |
//! | `lab/check.rs` | what holds after every step, and at the end |
//! | `model.rs` | queues, arrival order, contracts and counters, as vectors and maps |
//! | `line.rs` | one stream of the model |
//! | `hop.rs` | a hop of the model: when it is up, what is still to be said to it |
//! | `far.rs` | the other end: a real receiver, and what it must find |
//! | `frame.rs` | what may be in a frame, and when one may leave |

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

/// What a history is about; its first bytes.
#[derive(Clone, Copy, Debug)]
struct Setup {
    policy: Policy,
    capacity: Option<Capacity>,
    hops: usize,
    /// Frames may be lost, and answers may be strange.
    lossy: bool,
    /// Each frame that arrives is answered at once: nothing ever waits for credit.
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

    /// Every stream takes part all the time, so that the order of service follows from the rules.
    const fn ordered(&self) -> bool {
        self.prompt && !self.lossy
    }

    /// Nothing depends on how long a frame takes, so each verdict on a deadline is known.
    const fn judged(&self) -> bool {
        self.capacity.is_none()
    }

    fn wire_time(&self, bytes: u64) -> Duration {
        // Rounded up to whole nanoseconds.
        self.capacity.map_or(Duration::ZERO, |capacity| {
            let nanos = (u128::from(bytes) * 1_000_000_000).div_ceil(capacity.bytes_per_s().into());
            Duration::from_nanos(u64::try_from(nanos).unwrap())
        })
    }

    /// A frame's most bytes: what the link carries in 2 ms, from 1,200 to 32,000.
    fn frame_bytes(&self) -> u64 {
        self.capacity.map_or(32_000, |c| (c.bytes_per_s() / 500).clamp(1_200, 32_000))
    }
}

/// The bytes are steps: samples, streams, control, time, and what the wire does.
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
