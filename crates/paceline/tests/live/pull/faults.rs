//! Pulls with failing nodes, disappearing readers, and timeouts.

use super::{all, fill, history, holding, meets, publish};
use crate::cable::Cable;
use crate::sums;
use crate::support::{SOON, free_endpoint, isolated, pair, wait_until};
use paceline::pull::{MissingReason, PullError};
use paceline::{Capacity, LinkConfig, RecvError};
use std::time::Duration;

fn slow(link: LinkConfig) -> LinkConfig {
    link.capacity(Capacity::from_bits_per_s(2_000_000).unwrap())
}

#[test]
fn a_holder_that_dies_during_a_pull_is_named() {
    let far = free_endpoint();
    let cable = Cable::new(&far);
    let robot = isolated("robot", [slow(LinkConfig::new("radio").listen(&far))]);
    let operator =
        isolated("operator", [slow(LinkConfig::new("radio").connect(&cable.endpoint()))]);
    let mut log = robot.publisher("log").history(history(100)).declare().unwrap();
    fill(&mut log, 100, 10_000);
    meets(&operator, 1);
    let mut pulled = operator.pull("log").newest(100).run().unwrap();
    let mut got = 0;
    for _ in &mut pulled {
        got += 1;
        if got == 10 {
            cable.cut();
        }
    }
    let summary = pulled.summary().unwrap();
    assert!((10..100).contains(&got), "{got}");
    assert_eq!(summary.missing.len(), 100 - got);
    let gone = MissingReason::HolderGone("robot".to_owned());
    assert!(summary.missing.iter().all(|missing| missing.reason == gone), "{summary:?}");
    sums::check(&[&robot]);
}

#[test]
fn a_reconnected_link_costs_time_but_no_sample() {
    let far = free_endpoint();
    let cable = Cable::new(&far);
    let robot = isolated("robot", [slow(LinkConfig::new("radio").listen(&far))]);
    let operator =
        isolated("operator", [slow(LinkConfig::new("radio").connect(&cable.endpoint()))]);
    let mut log = robot.publisher("log").history(history(60)).declare().unwrap();
    fill(&mut log, 60, 10_000);
    meets(&operator, 1);
    let mut pulled = operator.pull("log").newest(60).run().unwrap();
    let mut got = Vec::new();
    while let Some(sample) = pulled.next_timeout(SOON * 3).unwrap() {
        got.push(sample.seq);
        if got.len() == 10 {
            cable.cut();
            std::thread::sleep(Duration::from_millis(500));
            cable.restore();
        }
    }
    assert_eq!(got, (0..60).collect::<Vec<_>>(), "{:?}", pulled.summary());
    sums::check_after_cuts(&[&robot]);
}

#[test]
fn another_holder_takes_over() {
    let ends = [free_endpoint(), free_endpoint()];
    let cables = ends.each_ref().map(|end| Cable::new(end));
    let keepers = ["one", "two"].map(|name| {
        let end = if name == "one" { &ends[0] } else { &ends[1] };
        isolated(name, [slow(LinkConfig::new("radio").listen(end))])
    });
    let links = [("left", &cables[0]), ("right", &cables[1])];
    let links = links.map(|(name, cable)| slow(LinkConfig::new(name).connect(&cable.endpoint())));
    let operator = isolated("operator", links);
    let held = keepers.each_ref().map(|node| node.buffer("log").declare().unwrap());
    let mut log = operator.publisher("log").declare().unwrap();
    meets(&operator, 2);
    wait_until("both hold", || {
        log.put(vec![0; 10_000]).unwrap();
        std::thread::sleep(Duration::from_millis(60));
        held.iter().all(|held| held.len() >= 20)
    });
    let mut pulled = operator.pull("log").newest(20).run().unwrap();
    assert!(pulled.next().is_some());
    // Of two nodes at the same distance, the one with the lower identifier is asked.
    let first = usize::from(keepers[1].id() < keepers[0].id());
    cables[first].cut();
    let rest = (&mut pulled).count();
    let summary = pulled.summary().unwrap();
    assert_eq!((rest + 1, summary.missing.len()), (20, 0), "{summary:?}");
    let from: Vec<_> = summary.nodes.iter().map(|node| node.id).collect();
    assert!(from.contains(&keepers[1 - first].id()), "{summary:?}");
    sums::check(&[&operator]);
}

#[test]
fn a_timeout_reports_the_rest_as_missing() {
    let (robot, operator) = pair(slow);
    let mut log = holding(&robot, "log", 10);
    fill(&mut log, 10, 200_000);
    meets(&operator, 1);
    let short = Duration::from_secs(2);
    let pull = operator.pull("log").newest(10).timeout(short);
    let mut pulled = pull.run().unwrap();
    let got = (&mut pulled).count();
    let summary = pulled.summary().unwrap();
    assert!(got < 10 && summary.missing.len() == 10 - got, "{got}");
    assert!(summary.missing.iter().all(|missing| missing.reason == MissingReason::TimeIsOver));
    sums::check(&[&robot, &operator]);
}

#[test]
fn a_leaving_reader_ends_only_its_own_pull() {
    let (robot, operator) = pair(slow);
    let mut log = holding(&robot, "log", 40);
    fill(&mut log, 40, 50_000);
    meets(&operator, 1);
    let mut pulled = operator.pull("log").newest(40).run().unwrap();
    let nothing = pulled.next_timeout(Duration::ZERO);
    assert!(matches!(nothing, Err(RecvError::Timeout)), "{nothing:?}");
    assert!(pulled.next().is_some());
    drop(pulled);
    publish(&mut log, 40..41);
    let (got, _) = all(operator.pull("log"));
    assert_eq!(got[0].seq, 40, "the next pull does not wait for what nobody reads");
    log.put("gone").unwrap();
    drop(log);
    wait_until("a buffer goes with its publisher", || {
        matches!(operator.pull("log").run(), Err(PullError::NoBuffer(_)))
    });
    sums::check(&[&robot, &operator]);
    drop((robot, operator));
}

#[test]
fn asynchronous_code_pulls_too() {
    let (robot, operator) = pair(|link| link);
    let mut log = holding(&robot, "log", 10);
    publish(&mut log, 0..10);
    meets(&operator, 1);
    let (sender, receiver) = std::sync::mpsc::channel();
    let pulls = async move {
        let mut pulled = operator.pull("log").newest(5).run_async().await.unwrap();
        while let Some(sample) = pulled.next_async().await {
            sender.send(sample.seq).unwrap();
        }
    };
    block_on(pulls);
    assert_eq!(receiver.into_iter().collect::<Vec<_>>(), [5, 6, 7, 8, 9]);
}

/// A minimal async runtime that parks the thread.
fn block_on(future: impl Future<Output = ()>) {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    while future.as_mut().poll(&mut context).is_pending() {
        std::thread::park_timeout(SOON);
    }
}
