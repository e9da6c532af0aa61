use super::*;
use crate::ids::ObjectIndex;
use crate::packet::{Introduction, Ownership};
use crate::schema::Schema;

fn fragment(owner: u128, sent: u64, updates: Vec<UpdateRecord>) -> Fragment {
    let (run, number, position, count) = (0, 0, 0, 1);
    Fragment { owner: PeerId(owner), run, number, position, count, sent, error: 0, updates }
}

fn introduction(number: u32, path: &str, ownership: Ownership) -> UpdateRecord {
    UpdateRecord {
        object: ObjectIndex(number),
        introduction: Some(Introduction { path: path.to_owned(), schema: 1, ownership }),
        fate: None,
        age: 0,
        groups: Vec::new(),
    }
}

fn fate(number: u32, fate: Fate) -> UpdateRecord {
    let update = introduction(number, "", Ownership::default());
    UpdateRecord { introduction: None, fate: Some(fate), ..update }
}

/// Replicas with the time stamps of their messages.
struct Seen {
    replicas: Replicas,
    stamp: u64,
}

impl Seen {
    fn new() -> Self {
        Self { replicas: Replicas::new(20_000, 1 << 30), stamp: 0 }
    }

    fn receive(&mut self, owner: u128, update: UpdateRecord) {
        self.stamp += 1;
        let here = Instant::from_millis(self.stamp);
        self.replicas.apply(&fragment(owner, self.stamp, vec![update]), here);
    }

    fn owner(&self) -> Option<u128> {
        self.replicas.get("car/1").map(|replica| replica.owner().0)
    }
}

#[test]
fn a_million_objects_of_one_owner_leave_room_for_those_of_others() {
    let mut replicas = Replicas::new(20_000, 1 << 30);
    let update =
        |number: u32| introduction(number, &format!("many/{number}"), Ownership::default());
    for first in (0..1_000_000).step_by(1_000) {
        let updates = (first..first + 1_000).map(update).collect();
        replicas.apply(&fragment(1, 1, updates), Instant::from_millis(1));
    }
    assert_eq!((replicas.len(), replicas.counts().too_many), (20_000, 980_000));
    let other = introduction(0, "few/1", Ownership::default());
    replicas.apply(&fragment(2, 1, vec![other]), Instant::from_millis(2));
    assert!(replicas.get("few/1").is_some());
}

#[test]
fn a_new_owner_counts_whatever_arrives_first() {
    let keeps = |epoch| Ownership { epoch, yields: false };
    for moved_first in [true, false] {
        let mut seen = Seen::new();
        seen.receive(1, introduction(0, "car/1", keeps(4)));
        seen.receive(9, introduction(0, "car/1", keeps(1_000)));
        if moved_first {
            seen.receive(1, fate(0, Fate::Moved(PeerId(2))));
            // The new owner is late, so the rival counts until then.
            seen.replicas.expire(Instant::from_millis(60_000));
            seen.replicas.promote();
            assert_eq!(seen.owner(), Some(9));
            seen.receive(2, introduction(0, "car/1", keeps(5)));
        } else {
            seen.receive(2, introduction(0, "car/1", keeps(5)));
            assert_eq!(seen.owner(), Some(1));
            seen.receive(1, fate(0, Fate::Moved(PeerId(2))));
            let replica = seen.replicas.get("car/1").expect("it stays");
            assert_eq!(replica.object(), Some(ObjectIndex(0)), "it follows at once");
        }
        seen.replicas.expire(Instant::from_millis(120_000));
        seen.replicas.promote();
        assert_eq!(seen.owner(), Some(2), "moved first: {moved_first}");
    }
}

#[test]
fn only_its_owner_ends_an_object() {
    let mut seen = Seen::new();
    let epoch = |epoch| Ownership { epoch, yields: true };
    seen.receive(1, introduction(0, "car/1", epoch(0)));
    // It introduces two objects of one path, which become rivals, and ends each of them.
    seen.receive(2, introduction(0, "car/1", epoch(0)));
    seen.receive(2, introduction(1, "car/1", epoch(0)));
    seen.replicas.adopt("none");
    for number in 0..2 {
        seen.receive(2, fate(number, Fate::Deleted));
    }
    assert_eq!(seen.owner(), Some(1));
    // After the observer's interest has ended and begun again, only objects that are introduced again end.
    seen.receive(2, introduction(2, "car/1", epoch(1)));
    seen.receive(3, introduction(0, "car/1", epoch(2)));
    assert_eq!(seen.owner(), Some(3));
    seen.replicas.rivals.clear();
    seen.receive(2, fate(2, Fate::Deleted));
    assert_eq!(seen.owner(), Some(3));
}

#[test]
fn rivals_end_with_their_owner_and_learn_its_schema() {
    let keeps = Ownership { epoch: 0, yields: false };
    let mut seen = Seen::new();
    let schema = Schema::parse("car/1 look{paint:text}").expect("valid");
    let of = |number, ownership| {
        let mut update = introduction(number, "car/1", ownership);
        if let Some(introduction) = &mut update.introduction {
            introduction.schema = schema.fingerprint();
        }
        update
    };
    for owner in 1..4 {
        seen.receive(owner, of(7, keeps));
        assert_eq!(seen.replicas.owners[&PeerId(owner)].unknown.len(), 1);
    }
    seen.replicas.describe(PeerId(2), vec![schema.clone()]);
    assert!(seen.replicas.owners[&PeerId(2)].unknown.is_empty());
    seen.replicas.restart(PeerId(3));
    assert_eq!(seen.replicas.rivals.get("car/1").map(BTreeMap::len), Some(1));
    seen.replicas.leave(PeerId(1), false);
    let _events = seen.replicas.events();
    assert_eq!((seen.owner(), seen.replicas.rivals.len()), (Some(2), 0));
    assert!(seen.replicas.get("car/1").is_some_and(|replica| replica.schema().is_some()));
}
