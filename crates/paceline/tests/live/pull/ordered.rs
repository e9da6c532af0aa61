//! Buffers that a puller orders at a named node.

use super::meets;
use crate::support::{SOON, free_endpoint, isolated, wait_until};
use paceline::LinkConfig;
use paceline::pull::PullError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Sets a flag at its end, also if an assertion fails.
struct AtEnd<'a>(&'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_puller_orders_a_buffer_at_a_node_between_and_pulls_from_it() {
    let (near, far) = (free_endpoint(), free_endpoint());
    let robot = isolated("robot", [LinkConfig::new("near").listen(&near)]);
    let _gate = isolated(
        "gate",
        [LinkConfig::new("near").connect(&near), LinkConfig::new("far").listen(&far)],
    );
    let operator = isolated("operator", [LinkConfig::new("far").connect(&far)]);
    meets(&operator, 2);
    let mut log = robot.publisher("log").declare().unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = AtEnd(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                log.put("line").unwrap();
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let pull = || operator.pull("log").timeout(SOON * 3);
        let mut pulled = pull().hold_at("gate", 50).newest(10).run().unwrap();
        let seqs: Vec<u64> = (&mut pulled).map(|sample| sample.seq).collect();
        assert_eq!(seqs.len(), 10, "{seqs:?} {:?}", pulled.summary());
        assert!(seqs.windows(2).all(|pair| pair[1] == pair[0] + 1), "{seqs:?}");
        assert_eq!(pulled.summary().unwrap().nodes[0].name, "gate");
        let buffers = |expected: usize| {
            let status = operator.status(SOON).into_iter().find(|node| node.name == "gate");
            status.is_some_and(|gate| gate.buffers.len() == expected)
        };
        wait_until("the buffer is shown", || buffers(1));
        // The order is renewed, and others pull from the same buffer.
        assert_eq!(pull().hold_at("gate", 50).run().unwrap().count(), 1);
        assert_eq!(robot.pull("log").from("gate").newest(5).run().unwrap().count(), 5);
        assert!(buffers(1));
        let error = |pull: paceline::pull::PullBuilder<'_>| pull.run().map(drop).unwrap_err();
        let found = error(pull().hold_at("gate", 10_001));
        let text = found.to_string();
        assert!(matches!(found, PullError::Refused(_)), "{text}");
        assert!(text.contains("node gate: an ordered buffer of 10001 samples: must be"), "{text}");
        let found = error(pull().hold_at("gale", 10));
        assert!(found.to_string().contains("no node 'gale'; known nodes: "), "{found}");
        let found = error(pull().hold_at("gate", 10).from("gate"));
        assert!(found.is_usage(), "{found}");
    });
    let empty = operator.pull("nothing").hold_at("gate", 1).timeout(Duration::from_secs(1)).run();
    let why = empty.map(drop).unwrap_err().to_string();
    assert!(why.contains("the buffers of 'nothing' are empty"), "{why}");
}
