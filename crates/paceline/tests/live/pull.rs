//! Pulls from buffers at publishers, at subscribers and at other nodes.

mod faults;
mod links;
mod ordered;
mod scaled;
mod selections;

use crate::support::{SOON, wait_until};
use paceline::pull::{History, PullBuilder, PullSummary};
use paceline::{Node, PublishError, Publisher, Sample};

/// Returns the limits of a buffer with this number of samples.
fn history(samples: usize) -> History {
    History::new().samples(samples)
}

/// Declares a publisher on `tag` with a buffer of `samples`.
fn holding(node: &Node, tag: &str, samples: usize) -> Publisher {
    node.publisher(tag).history(history(samples)).declare().unwrap()
}

/// Publishes the numbers of a range as text.
fn publish(publisher: &mut Publisher, numbers: std::ops::Range<u64>) {
    for n in numbers {
        publisher.put(n.to_string()).unwrap();
    }
}

/// Publishes `count` samples of `bytes` bytes, each filled with its number.
fn fill(publisher: &mut Publisher, count: u8, bytes: usize) {
    for n in 0..count {
        publisher.put(vec![n; bytes]).unwrap();
    }
}

/// Returns all samples of a pull and its summary.
fn all(pull: PullBuilder<'_>) -> (Vec<Sample>, PullSummary) {
    let mut pulled = pull.timeout(SOON * 3).run().unwrap();
    let got: Vec<_> = (&mut pulled).collect();
    let summary = pulled.summary().unwrap().clone();
    assert_eq!(summary.delivered, got.len() as u64);
    assert_eq!(summary.found, summary.delivered + summary.missing.len() as u64, "{summary:?}");
    (got, summary)
}

/// Returns the sequence numbers of all samples of a pull; none may be missing.
fn seqs(pull: PullBuilder<'_>) -> Vec<u64> {
    let (got, summary) = all(pull);
    assert_eq!(summary.missing, [], "{summary:?}");
    got.iter().map(|sample| sample.seq).collect()
}

/// Waits until `node` knows `count` others.
fn meets(node: &Node, count: usize) {
    wait_until("the nodes know each other", || node.nodes().len() == count + 1);
}

#[test]
fn system_tags_are_reserved() {
    let node = Node::builder().isolated().open().unwrap();
    let refused = node.publisher("@pull/a").declare().map(drop).unwrap_err();
    assert!(matches!(refused, PublishError::Private(_)), "{refused}");
    for error in [
        refused.to_string(),
        node.subscriber("@pull/**").declare().map(drop).unwrap_err().to_string(),
        node.buffer("@pull/**").declare().map(drop).unwrap_err().to_string(),
        node.pull("@pull/a").run().unwrap_err().to_string(),
    ] {
        assert!(error.contains("'@pull/") && error.contains("another first character"), "{error}");
    }
}
