//! Both ends of a promise hear at once of what becomes of it.

use super::net::{Net, Told, all, camera, id, link, promised};
use core::mem;
use paceline_sched::Duration;

const THIN: u64 = 400_000;

/// What the ends at `nodes` were told since they were last asked; it has to be the same at all of them.
fn told<const N: usize>(net: &mut Net, nodes: [usize; N]) -> Vec<Told> {
    let mut all = nodes.map(|node| mem::take(&mut net.seen[node].told)).into_iter();
    let first = all.next().unwrap();
    assert!(all.all(|other| other == first), "the ends were told other things");
    first
}

fn granted<const N: usize>(nodes: [usize; N]) -> Told {
    Told::Granted(nodes.map(id).to_vec())
}

/// A diamond: two ways from node 0 to node 3.
fn diamond() -> Net {
    let mut net = Net::new(4);
    for (one, other) in [(0, 1), (1, 3), (0, 2), (2, 3)] {
        let name = format!("link{one}{other}");
        net.join_over(one, other, link(&name, Some(THIN)), link(&name, Some(THIN)));
    }
    net.settle();
    net
}

#[test]
fn both_ends_hear_of_a_grant_another_path_its_loss_and_its_end() {
    let mut net = diamond();
    let left = net.publish(0, camera("left"));
    net.settle();
    assert_eq!(told(&mut net, [0, 1, 2, 3]), []);
    let user = net.subscribe(3, promised("left"));
    net.settle();
    assert_eq!(told(&mut net, [0, 3]), [granted([0, 1])]);
    assert_eq!(told(&mut net, [1, 2]), [], "who hands on is no end");
    net.part(0, 1);
    net.run(Duration::from_secs(1));
    // The publisher's node saw the hop go before it could ask for the other way.
    assert_eq!(told(&mut net, [0, 3]), [Told::Over, granted([0, 2])]);
    net.part(0, 2);
    net.run(Duration::from_secs(1));
    assert_eq!(told(&mut net, [0, 3]), [Told::Over], "there is no way");
    net.join_over(0, 2, link("link02", Some(THIN)), link("link02", Some(THIN)));
    net.run(Duration::from_secs(1));
    assert_eq!(told(&mut net, [0, 3]), [granted([0, 2])]);
    // A better way is taken beside the one that there is: no promise is lost.
    net.join_over(0, 3, link("short", Some(THIN)), link("short", Some(THIN)));
    net.run(Duration::from_secs(1));
    assert_eq!(told(&mut net, [0, 3]), [granted([0])]);
    // Best effort needs no promise.
    net.nodes[3].update_subscription(net.now, user, all("left"));
    net.drain(3);
    net.run(Duration::from_secs(1));
    assert_eq!(told(&mut net, [0, 3]), [Told::Over]);
    assert_eq!(net.heard(user), [left]);
    net.run(Duration::from_secs(60));
    assert_eq!(told(&mut net, [0, 1, 2, 3]), [], "nothing changes, nothing is told");
}

#[test]
fn both_ends_hear_of_a_refusal_and_of_who_leaves() {
    let mut net = Net::new(3);
    net.join_over(0, 1, link("wide", Some(THIN * 9)), link("wide", Some(THIN * 9)));
    net.join_over(1, 2, link("thin", Some(THIN)), link("thin", Some(THIN)));
    net.settle();
    for tag in ["left", "right"] {
        net.publish(0, camera(tag));
    }
    let first = net.subscribe(2, promised("left"));
    net.settle();
    assert_eq!(told(&mut net, [0, 2]), [granted([0, 1])]);
    let second = net.subscribe(2, promised("right"));
    net.settle();
    assert_eq!(told(&mut net, [0, 2]), [Told::Refused(id(1))]);
    net.unsubscribe(first);
    net.run(Duration::from_secs(6));
    assert_eq!(told(&mut net, [0, 2]), [Told::Over, granted([0, 1])], "there is room now");
    let first = net.subscribe(2, promised("left"));
    net.settle();
    assert_eq!(told(&mut net, [0, 2]), [Told::Refused(id(1))]);
    // Who goes while it is refused is told of as well.
    net.unsubscribe(first);
    net.settle();
    assert_eq!(told(&mut net, [0, 2]), [Told::Over]);
    net.unsubscribe(second);
    net.settle();
    assert_eq!(told(&mut net, [0, 2]), [Told::Over]);
    assert_eq!(told(&mut net, [1]), []);
}
