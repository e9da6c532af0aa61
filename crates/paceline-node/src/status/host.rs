//! How long the threads of a process wait for a processor.

use serde::{Deserialize, Serialize};

/// The time for which the threads of a node's process were ready to run and waited for a processor.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "ProcessorWait"))]
pub struct ProcessorWait {
    /// Waiting time of the thread that waited longest, in microseconds per second, over the last second or more.
    pub longest_us_per_s: u64,
}

impl ProcessorWait {
    /// Returns true if a thread waited for more than a tenth of the time.
    #[must_use]
    pub const fn is_much(&self) -> bool {
        self.longest_us_per_s > 100_000
    }

    /// Returns the cause of late samples on the node `name`, and what helps.
    #[must_use]
    pub fn in_words(&self, name: &str) -> String {
        let millis = self.longest_us_per_s / 1_000;
        format!(
            "the processor of '{name}' is busy: a thread waited {millis} ms per second for it; try realtime = true, fewer scaled \
             forms or less other load"
        )
    }
}
