//! The conformance scenarios in virtual time.

use paceline_sim::World;
use paceline_sim::scenarios::{self, ALL};

macro_rules! scenarios {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                let mut world = World::new(7);
                scenarios::$name(&mut world);
            }
        )*

        #[test]
        fn every_scenario_runs_here() {
            assert_eq!([$(stringify!($name)),*], ALL.map(|(name, _)| name));
        }
    };
}

scenarios! {
    temporal_scaling
    patterns_match
    proxy_places_give_the_same_samples
    a_named_proxy_scales_once_for_all_behind_it
    one_stream_serves_all_behind_a_hop
    chain_knows_everything
    a_dead_neighbour_is_noticed_and_streams_recover
    unsubscribing_stops_the_stream
    refusal_names_the_numbers
    matching_is_notified
    best_effort_sheds_pictures_not_data
    thinned_video_can_be_decoded
    video_begins_with_an_i
    video_sheds_b_before_p_before_i
}
