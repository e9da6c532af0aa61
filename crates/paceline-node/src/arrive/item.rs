//! Samples and loss reports that arrive, and the driver's side of their delivery.

use bytes::Bytes;
use paceline_proto::ingress::{Ingress, Output, OutputKey};
use paceline_proto::plan::SourceKey;
use paceline_proto::receive::Lost;
use paceline_proto::{DropReason, PublisherId, RawSample};
use paceline_sched::Instant;

/// Shorter samples are copied, so that they do not keep the frames of others in memory.
const COPIED_BYTES_MAX: usize = 64 << 10;

/// A sample or a loss report that has arrived from a neighbour.
#[derive(Clone, Debug)]
pub enum ArrivedItem {
    /// A whole sample.
    Sample(RawSample),
    /// Samples that will not arrive.
    Lost(Lost),
}

/// The ports of a driver, and its counters: the shell has rings and threads behind them, the simulator plain queues.
pub trait Outputs<P> {
    /// Delivers a sample to the outputs of its stream.
    fn offer(&mut self, now: Instant, ingress: &mut Ingress<P>, sample: RawSample);

    /// Counts samples that an output does not get.
    fn count(&mut self, output: &mut Output<P>, reason: DropReason, samples: u64);

    /// Counts samples that have no output on this node.
    fn count_unrouted(&mut self, publisher: PublisherId, reason: DropReason, samples: u64);
}

impl ArrivedItem {
    /// Returns the bytes of its payload.
    pub(super) fn bytes(&self) -> usize {
        if let Self::Sample(sample) = self { sample.payload.len() } else { 0 }
    }

    /// Returns the number of samples that it stands for.
    pub(super) const fn samples(&self) -> u64 {
        match self {
            Self::Sample(_) => 1,
            Self::Lost(lost) => lost.samples,
        }
    }

    /// Returns the item without memory of the frame in which it has arrived.
    pub(super) fn unshared(self) -> Self {
        match self {
            Self::Sample(sample) if sample.payload.len() < COPIED_BYTES_MAX => {
                let payload = Bytes::copy_from_slice(&sample.payload);
                Self::Sample(RawSample { payload, ..sample })
            }
            Self::Sample(_) | Self::Lost(_) => self,
        }
    }

    /// Counts the item as dropped at the node.
    pub(super) fn count<P>(&self, key: SourceKey, driver: &mut impl Outputs<P>) {
        let (reason, samples) = match self {
            Self::Sample(_) => (DropReason::NoRoute, 1),
            Self::Lost(lost) => (lost.reason, lost.samples),
        };
        driver.count_unrouted(key.publisher, reason, samples);
    }

    /// Delivers the item to the outputs of its stream, but a loss only to outputs outside `except`.
    pub(super) fn offer<P>(
        self,
        ingress: &mut Ingress<P>,
        now: Instant,
        except: &[OutputKey],
        driver: &mut impl Outputs<P>,
    ) {
        match self {
            Self::Sample(sample) => driver.offer(now, ingress, sample),
            Self::Lost(lost) => {
                ingress.handle_lost(lost.kind());
                let outputs = ingress.outputs_mut().iter_mut();
                let outputs =
                    outputs.filter(|output| output.loses(&lost) && !except.contains(&output.key));
                outputs.for_each(|output| driver.count(output, lost.reason, lost.samples));
            }
        }
    }
}
