//! Nodes without servers of their own, which follow the clocks of their neighbours.

use super::check;
use crate::support::{free_endpoint, isolated, wait_until};
use paceline::time::{ClockConfig, ClockStatus, SourceKind, SourcePart, SourceReport};
use paceline::{LinkConfig, Node};
use std::time::Duration;

#[test]
fn nodes_follow_their_neighbours_and_never_each_other_in_a_circle() {
    let ends = [free_endpoint(), free_endpoint()];
    let listen = |end: &str| LinkConfig::new("down").listen(end);
    let connect = |end: &str| LinkConfig::new("up").connect(end);
    let with = |name: &str, clock| Node::builder().isolated().name(name).clock(clock);
    let system = ClockConfig::new().system(Duration::from_micros(50));
    let root = with("root", system).link(listen(&ends[0])).open().unwrap();
    let all = ClockConfig::new().neighbours(true);
    let middle = with("middle", all).link(connect(&ends[0])).link(listen(&ends[1]));
    let middle = middle.open().unwrap();
    let leaf = isolated("leaf", [connect(&ends[1])]);
    let none = ClockConfig::new().neighbours(false);
    let alone = with("alone", none).link(connect(&ends[0])).open().unwrap();
    for (node, stratum) in [(&middle, 11), (&leaf, 12)] {
        wait_until("it is synchronised", || node.clock().status() == ClockStatus::Synchronised);
        let widest = check(node, 0, 500);
        assert!((50_000..500_000_000).contains(&widest), "{widest}");
        wait_until("its report says so", || node.clock().report().stratum == Some(stratum));
    }
    let part = |node: &Node, name: &str| {
        let sources = node.clock().report().sources;
        let is_it = |one: &SourceReport| one.kind == SourceKind::Neighbour && one.address == name;
        sources.into_iter().find(is_it).map(|one| one.selection)
    };
    assert_eq!(part(&leaf, "middle"), Some(SourcePart::Selected));
    assert_eq!(part(&middle, "root"), Some(SourcePart::Selected));
    // The leaf has its time from the middle.
    wait_until("the middle does not use it", || {
        part(&middle, "leaf") == Some(SourcePart::Unsynchronised)
    });
    assert_eq!(part(&root, "middle"), None);
    assert_eq!(alone.clock().status(), ClockStatus::Unsynchronised);

    root.close();
    wait_until("nobody answers", || middle.clock().status() == ClockStatus::Holdover);
    wait_until("the report no longer has it", || part(&middle, "root").is_none());
    check(&middle, 0, 100);
    check(&leaf, 0, 100);
}
