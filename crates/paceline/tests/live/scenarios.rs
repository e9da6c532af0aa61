//! The conformance scenarios on live nodes.

use crate::net::Live;
use paceline_sim::scenarios::{self, ALL};

macro_rules! scenarios {
    ($($(#[$skipped:meta])? $name:ident)*) => {
        $(
            #[test]
            $(#[$skipped])?
            fn $name() {
                scenarios::$name(&mut Live::default());
            }
        )*

        /// The same over QUIC.
        mod quic {
            use super::{Live, scenarios};

            $(
                #[test]
                $(#[$skipped])?
                fn $name() {
                    scenarios::$name(&mut Live::over_quic(stringify!($name)));
                }
            )*
        }

        #[test]
        fn every_scenario_is_listed_here() {
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
