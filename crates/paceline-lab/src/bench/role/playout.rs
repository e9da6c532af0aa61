//! A receiver of a synchronised group.

use super::{send, wait_for_go, wait_for_stop};
use crate::bench::clock;
use crate::bench::protocol::{Message, Playout};
use anyhow::{Context as _, Result};
use paceline::time::{ClockConfig, ClockStatus};
use paceline::{LinkConfig, Node, Sample};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The time for the first synchronisation.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) fn run(task: &Playout) -> Result<()> {
    let second = Duration::from_secs(1);
    let config = ClockConfig::new().server(&task.server).poll(second, second);
    let link = LinkConfig::new("up").connect(&task.connect).insecure();
    let node = Node::builder().isolated().clock(config).link(link).realtime(task.realtime);
    let node = node.open()?;
    let own = node.clock();
    let begun = Instant::now();
    while own.status() != ClockStatus::Synchronised {
        anyhow::ensure!(begun.elapsed() < PATIENCE, "the clock is not synchronised");
        std::thread::sleep(Duration::from_millis(5));
    }
    let (got, seen) = channel();
    let deliver = move |sample: Sample| {
        let at = clock::now();
        let _ = got.send((sample.captured.nanos, at, own.now().error()));
    };
    let delay = Duration::from_millis(task.delay_ms);
    let member = node.subscriber("stage").sync_group("stage", delay).callback(deliver)?;
    send(&Message::Ready);
    wait_for_go()?;
    while seen.try_recv().is_ok() {}
    wait_for_stop();
    let report = member.sync_report().context("there is no group")?;
    let wakeup = u64::try_from(report.wakeup.as_nanos()).unwrap_or(u64::MAX);
    send(&Message::Playout { released: seen.try_iter().collect(), late: report.late, wakeup });
    drop(member);
    node.close();
    Ok(())
}
