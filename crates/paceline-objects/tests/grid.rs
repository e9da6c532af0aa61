//! The index of positions against a list of all positions.

use paceline_objects::ObjectIndex;
use paceline_objects::grid::PositionGrid;
use paceline_objects::motion::distance;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    Place(u32, [f64; 3]),
    Remove(u32),
    Query([f64; 3], f64, f64),
}

fn position() -> impl Strategy<Value = [f64; 3]> {
    let far = prop_oneof![8 => -300.0..300.0, 1 => Just(1e300), 1 => Just(-1e15)];
    prop::array::uniform3(far)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..40_u32, position()).prop_map(|(object, position)| Step::Place(object, position)),
        1 => (0..40_u32).prop_map(Step::Remove),
        2 => (position(), 0.0..400.0, 0.0..50.0).prop_map(|(at, range, more)| Step::Query(at, range, more)),
    ];
    prop::collection::vec(step, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_query_finds_what_a_search_of_all_positions_finds(edge in 1.0..500.0, steps in steps()) {
        let mut grid = PositionGrid::new(edge);
        let mut all = BTreeMap::new();
        let was_in = |object: ObjectIndex| object.0.is_multiple_of(2);
        for step in steps {
            match step {
                Step::Place(object, position) => {
                    grid.place(ObjectIndex(object), position);
                    all.insert(ObjectIndex(object), position);
                }
                Step::Remove(object) => {
                    grid.remove(ObjectIndex(object));
                    all.remove(&ObjectIndex(object));
                }
                Step::Query(at, range, more) => {
                    let found = grid.within(at, range, range + more, was_in);
                    let expected = all.iter().filter(|(object, position)| {
                        let distance = distance(at, **position);
                        distance <= range || (distance <= range + more && was_in(**object))
                    });
                    let expected: Vec<_> = expected.map(|(object, _)| *object).collect();
                    prop_assert_eq!(found, expected);
                }
            }
            prop_assert_eq!(grid.len(), all.len());
        }
    }
}
