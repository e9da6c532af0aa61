use super::*;
use crate::ids::ObjectIndex;

#[test]
fn a_million_objects_of_one_owner_leave_room_for_those_of_others() {
    let mut replicas = Replicas::new(20_000);
    let update = |number: u32| UpdateRecord {
        object: ObjectIndex(number),
        introduction: Some(Introduction { path: format!("many/{number}"), schema: 1, epoch: 0 }),
        fate: None,
        age: 0,
        groups: Vec::new(),
    };
    let fragment = |owner, updates| Fragment {
        owner: PeerId(owner),
        run: 0,
        number: 0,
        position: 0,
        count: 1,
        sent: 1,
        error: 0,
        updates,
    };
    for first in (0..1_000_000).step_by(1_000) {
        let updates = (first..first + 1_000).map(update).collect();
        replicas.apply(&fragment(1, updates), Instant::from_millis(1));
    }
    assert_eq!((replicas.len(), replicas.counts().too_many), (20_000, 980_000));
    let mut other = update(0);
    other.introduction = Some(Introduction { path: "few/1".to_owned(), schema: 1, epoch: 0 });
    replicas.apply(&fragment(2, vec![other]), Instant::from_millis(2));
    assert!(replicas.get("few/1").is_some());
}
