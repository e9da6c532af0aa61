//! Consistency of the values in one status.

use crate::sums;
use crate::support::{SOON, at_rate, free_endpoint, isolated, wait_until};
use paceline::status::{LinkStatus, NodeStatus};
use paceline::{Capacity, Late, LinkConfig, Node};
use std::time::Duration;

fn own(node: &Node) -> NodeStatus {
    node.status(SOON).into_iter().find(|status| status.id == node.id()).unwrap()
}

fn link(node: &Node) -> LinkStatus {
    own(node).links.into_iter().find(|link| link.name == "hub").unwrap()
}

#[test]
fn figures_of_a_slow_reader_are_consistent() {
    let node = isolated("slow", []);
    let mut pose = node.publisher("pose").declare().unwrap();
    let _unread = node.subscriber("pose").queue(2).declare().unwrap();
    wait_until("it is heard", || pose.matching());
    let mut seen = 0;
    // Run for two windows of 1 s, in which all but two samples are dropped unread.
    at_rate(100, 300, |_| {
        pose.put(vec![7; 64]).unwrap();
        let status = own(&node);
        let row = &status.subscriptions[0];
        assert!(row.age_mean.is_none_or(|mean| mean <= row.age_max), "{row:?}");
        seen += u32::from(row.age_mean.is_some());
    });
    assert!(seen > 0, "no age was ever reported");
    let row = own(&node).subscriptions.remove(0);
    assert_eq!((row.delivered, row.bytes, row.dropped.total()), (2, 2 * 64, 298));
    wait_until("no samples arrive, so no recent ages are reported", || {
        let row = own(&node).subscriptions.remove(0);
        row.age_mean.is_none() && row.age_max.is_zero()
    });
    sums::check(&[&node]);
}

#[test]
fn samples_that_the_program_reads_late_are_late_in_every_report() {
    let node = isolated("slow", []);
    let within = Duration::from_millis(50);
    let mut pose = node.publisher("pose").late(Late::Send).declare().unwrap();
    let mut slow = node.subscriber("pose").within(within).declare().unwrap();
    wait_until("it is heard", || pose.matching());
    for _ in 0..5 {
        pose.put(vec![7; 64]).unwrap();
    }
    assert_eq!(own(&node).subscriptions[0].late, 0, "it may still read in time");
    // The program does something else, or is not scheduled.
    std::thread::sleep(2 * within);
    let read: Vec<_> = std::iter::from_fn(|| slow.try_recv()).collect();
    assert!(read.len() == 5 && read.iter().all(|sample| sample.late), "{read:?}");
    let feedback = pose.feedback(SOON);
    let measured = feedback[0].measured.unwrap();
    assert_eq!((measured.late, measured.overdue), (5, 5), "{measured:?}");
    assert!(measured.age_sum >= 10 * within, "{measured:?}");
    let mut oldest = measured.age_max;
    wait_until("the ages at the reading are reported", || {
        let row = own(&node).subscriptions.remove(0);
        assert_eq!((row.late, row.overdue, row.delivered), (5, 5, 5), "{row:?}");
        oldest = oldest.max(row.age_max);
        oldest >= 2 * within
    });
}

#[test]
fn traffic_per_neighbour_adds_up_to_the_traffic_of_the_link() {
    let (bits, endpoint) = (2_000_000, free_endpoint());
    let capacity = Capacity::from_bits_per_s(bits).unwrap();
    let shape = |link: LinkConfig| link.capacity(capacity);
    let hub = isolated("hub", [shape(LinkConfig::new("hub").listen(&endpoint))]);
    let far = |name| isolated(name, [shape(LinkConfig::new("hub").connect(&endpoint))]);
    let (near, idle) = (far("near"), far("idle"));
    let mut bulk = hub.publisher("bulk").declare().unwrap();
    let mut taken = near.subscriber("bulk").declare().unwrap();
    wait_until("both are there, one takes it", || {
        bulk.matching() && link(&hub).neighbours.len() == 2
    });
    let first = link(&hub);
    // Three times the capacity of the link.
    at_rate(100, 200, |_| {
        bulk.put(vec![7; 7_500]).unwrap();
    });
    taken.recv_timeout(SOON).unwrap();
    let last = link(&hub);
    let to = |link: &LinkStatus, node: &Node| {
        link.neighbours.iter().find(|to| to.id == node.id()).unwrap().wire_bytes
    };
    assert_eq!(to(&last, &near) + to(&last, &idle), last.wire_bytes);
    let (busy, quiet) =
        (to(&last, &near) - to(&first, &near), to(&last, &idle) - to(&first, &idle));
    assert!(busy > 20 * quiet, "{busy} to the subscriber of all, {quiet} to the other");
    // The bytes and the time of the link belong together: their rate never exceeds the capacity.
    let seconds = (last.at - first.at).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let rate = (last.wire_bytes - first.wire_bytes) as f64 * 8.0 / seconds;
    assert!(seconds > 1.0 && rate < 2_100_000.0, "{rate} bit/s over {seconds} s");
    sums::check(&[&hub]);
}
