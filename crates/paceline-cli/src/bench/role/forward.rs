//! A node that only forwards, and reports its processor time.

use super::{Message, tell};
use anyhow::Result;
use paceline::Node;
use rustix::time::{ClockId, clock_gettime};

pub(super) fn run() -> Result<()> {
    let node = Node::builder().name("forward").open()?;
    tell(&Message::Ready);
    for line in std::io::stdin().lines() {
        match line?.trim() {
            "spent" => tell(&Message::Spent { nanos: spent() }),
            "stop" => break,
            _ => {}
        }
    }
    node.close();
    Ok(())
}

/// Returns the processor time of this process in nanoseconds.
fn spent() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let part = |part: i64| u64::try_from(part).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}
