//! Changes to another path, and the state that remains on the old one.

use super::world::{World, forward, millis, wanted};
use super::*;

#[test]
fn a_path_change_closed_before_its_answer_leaves_nothing_on_either_path() {
    for delivered in 0..6 {
        let mut world = World::row(4);
        let key = world.request(1, &forward(&[1, 0], 4)).unwrap();
        world.deliver_all();
        assert_eq!(world.held(), [0, 4, 0, 0]);
        world.change(1, key, &forward(&[1, 2, 3], 4)).unwrap();
        for _ in 0..delivered.min(world.flight.len()) {
            world.deliver(0);
        }
        assert!(world.close(1, key));
        world.deliver_all();
        assert!(world.holds_nothing(), "after {delivered} messages: {:?}", world.held());
    }
}

#[test]
fn a_change_to_another_stream_needs_no_room_for_both() {
    let mut world = World::row(3);
    let ask = |trunk, mbit| {
        let mut request = forward(&[0, 1, 2], mbit);
        request.forward = Some(wanted(trunk, mbit));
        request
    };
    let key = world.request(0, &ask(1 << 40, 8)).unwrap();
    world.deliver_all();
    assert_eq!(world.held(), [8, 8, 0]);
    for (trunk, mbit) in [(2, 3), (3, 9), (4, 9), (5, 1)] {
        let before = world.held();
        world.change(0, key, &ask(trunk << 40, mbit)).unwrap();
        assert_eq!(world.held()[0], before[0].max(mbit), "the larger of both during the request");
        assert_eq!(
            world.nodes[0].link(LinkId(1)).unwrap().ledger().installed.rate,
            before[0] * 1_000_000
        );
        world.deliver_all();
        assert_eq!(world.held(), [mbit, mbit, 0]);
    }
    // Refused at a later node: the installed reservation is charged as before.
    let other = world.request(1, &forward(&[1, 2], 4)).unwrap();
    world.deliver_all();
    world.change(0, key, &ask(6 << 40, 7)).unwrap();
    world.deliver_all();
    assert!(matches!(world.answer_of(0, key), Some(PathAnswer::Denied { node: NodeIndex(1), .. })));
    assert_eq!(world.held(), [1, 5, 0]);
    // A trunk that another reservation shares is not replaced: both have to fit.
    let sharer = world.request(0, &ask(5 << 40, 1)).unwrap();
    world.deliver_all();
    world.change(0, key, &ask(7 << 40, 2)).unwrap();
    assert_eq!(world.held()[0], 3);
    world.deliver_all();
    for (at, key) in [(0, key), (1, other), (0, sharer)] {
        world.close(at, key);
    }
    world.deliver_all();
    assert!(world.holds_nothing());
}

#[test]
fn every_closed_path_is_notified_again_until_it_answers() {
    let mut world = World::row(4);
    let key = world.request(1, &forward(&[1, 0], 4)).unwrap();
    world.deliver_all();
    world.change(1, key, &forward(&[1, 2, 3], 4)).unwrap();
    world.deliver(0);
    world.close(1, key);
    world.flight.clear();
    world.run(Timing::default().retry.mul_div(4, 1));
    assert!(world.holds_nothing(), "{:?}", world.held());
    world.check_empty_after(millis(600_000));
}
