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
