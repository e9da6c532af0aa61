//! The keys and addresses of groups.

use super::*;

#[test]
fn a_group_has_another_key_when_a_member_has_left_or_lost_its_connection() {
    let range: MulticastRange = "239.77.0.0/24:7400".parse().unwrap();
    let stream = (PublisherId { node: NodeId(9), index: 0 }, Form::FULL);
    let mut state = State::default();
    let mut key_of = |nodes: &[u64], parted: Option<u64>| {
        parted.into_iter().for_each(|node| state.forget_joined(NodeId(node)));
        let nodes = nodes.iter().map(|node| NodeId(*node)).collect();
        state.want([(stream, nodes)].into_iter().collect(), range);
        let group = state.groups.get(&stream).unwrap();
        (group.id, *group.key.bytes())
    };
    let all = key_of(&[1, 2, 3, 4], None);
    assert_eq!(key_of(&[1, 2, 3, 4], None), all);
    assert_eq!(key_of(&[1, 2, 3, 4, 5], None), all, "one that joins gets the key");
    let without = key_of(&[1, 2, 3, 4], Some(5));
    assert!(without.0 != all.0 && without.1 != all.1, "its connection has ended");
    let rest = key_of(&[1, 2, 3], None);
    assert!(rest.0 != without.0 && rest.1 != without.1, "it has unsubscribed");
}

#[test]
fn a_range_without_a_free_address_makes_no_further_group() {
    let range: MulticastRange = "239.77.0.0/31:7400".parse().unwrap();
    let mut state = State { first_place: 12_345, ..State::default() };
    let stream = |index| (PublisherId { node: NodeId(9), index }, Form::FULL);
    let nodes: BTreeSet<NodeId> = [NodeId(1), NodeId(2)].into();
    state.want([0, 1].map(|index| (stream(index), nodes.clone())).into(), range);
    assert_eq!(state.groups.values().map(|group| group.place).collect::<Vec<_>>(), [1]);
}

#[test]
fn the_former_group_serves_the_others_until_all_have_joined_the_next() {
    let range: MulticastRange = "239.77.0.0/24:7400".parse().unwrap();
    let stream = (PublisherId { node: NodeId(9), index: 0 }, Form::FULL);
    let mut state = State::default();
    let want = |state: &mut State, nodes: &[u64]| {
        let nodes = nodes.iter().map(|node| NodeId(*node)).collect();
        state.want([(stream, nodes)].into(), range);
    };
    let join = |state: &mut State, nodes: &[u64]| {
        let members = &mut state.groups.get_mut(&stream).unwrap().members;
        nodes.iter().for_each(|node| *members.get_mut(&NodeId(*node)).unwrap() = true);
        state.end_former()
    };
    let joined =
        |state: &State| -> Vec<u64> { state.joined()[&stream].iter().map(|node| node.0).collect() };
    want(&mut state, &[1, 2, 3, 4]);
    join(&mut state, &[1, 2, 3, 4]);
    let first = state.groups[&stream].id;
    want(&mut state, &[1, 2, 3]);
    assert_eq!(
        state.invitations().collect::<Vec<_>>(),
        [1, 2, 3].map(|node| (NodeId(node), state.groups[&stream].join())),
        "an invitation can be refused or lost"
    );
    assert_eq!(joined(&state), [1, 2, 3], "the former group goes on without the member that left");
    assert!(!join(&mut state, &[1, 2]) && state.former[&stream].group.id == first);
    // Another one leaves meanwhile, and has the key of the next group.
    state.forget_joined(NodeId(3));
    want(&mut state, &[1, 2]);
    assert_eq!((joined(&state), state.former[&stream].group.id), (vec![1, 2], first));
    assert!(join(&mut state, &[1, 2]) && state.former.is_empty());
    assert_eq!(joined(&state), [1, 2]);
    // A member that never joins delays the end for less than a second.
    want(&mut state, &[1]);
    let ends = (1..).find(|_| {
        state.ticks += 1;
        state.end_former()
    });
    assert!(ends.is_some_and(|ticks| PROBE_EVERY * ticks < std::time::Duration::from_secs(1)));
    assert!(joined(&state).is_empty());
}
