//! Conformance scenarios. They check counts, order and forms of deliveries, but never wall-clock time.
//!
//! Each scenario builds its own nodes on an empty [`Net`], and panics if the network violates a guarantee.

mod links;
mod streams;
mod video;

pub use links::{
    a_dead_neighbour_is_noticed_and_streams_recover, best_effort_sheds_pictures_not_data,
    chain_knows_everything, matching_is_notified, refusal_names_the_numbers,
};
pub use streams::{
    a_named_proxy_scales_once_for_all_behind_it, one_stream_serves_all_behind_a_hop,
    patterns_match, proxy_places_give_the_same_samples, temporal_scaling,
    unsubscribing_stops_the_stream,
};

pub use video::{
    thinned_video_can_be_decoded, video_begins_with_an_i, video_sheds_b_before_p_before_i,
};

use crate::handle::{LinkPlan, NodeIx};
use crate::net::Net;
use crate::sink::Delivered;
use paceline_sched::Duration;

/// A conformance scenario.
pub type Scenario = fn(&mut dyn Net);

/// Every scenario with its name.
pub const ALL: [(&str, Scenario); 14] = [
    ("temporal_scaling", temporal_scaling),
    ("patterns_match", patterns_match),
    ("proxy_places_give_the_same_samples", proxy_places_give_the_same_samples),
    ("a_named_proxy_scales_once_for_all_behind_it", a_named_proxy_scales_once_for_all_behind_it),
    ("one_stream_serves_all_behind_a_hop", one_stream_serves_all_behind_a_hop),
    ("chain_knows_everything", chain_knows_everything),
    (
        "a_dead_neighbour_is_noticed_and_streams_recover",
        a_dead_neighbour_is_noticed_and_streams_recover,
    ),
    ("unsubscribing_stops_the_stream", unsubscribing_stops_the_stream),
    ("refusal_names_the_numbers", refusal_names_the_numbers),
    ("matching_is_notified", matching_is_notified),
    ("best_effort_sheds_pictures_not_data", best_effort_sheds_pictures_not_data),
    ("thinned_video_can_be_decoded", thinned_video_can_be_decoded),
    ("video_begins_with_an_i", video_begins_with_an_i),
    ("video_sheds_b_before_p_before_i", video_sheds_b_before_p_before_i),
];

/// The time after which all nodes know a change.
const KNOWN_AFTER: Duration = Duration::from_secs(1);
/// The time after which links are up.
const UP_AFTER: Duration = Duration::from_secs(2);

/// Adds two nodes, joined by links that are up.
fn pair(net: &mut dyn Net, plan: LinkPlan) -> (NodeIx, NodeIx) {
    let (a, b) = (net.add_node("here"), net.add_node("there"));
    net.connect(a, b, plan);
    net.run_for(UP_AFTER);
    (a, b)
}

fn seqs(delivered: &[Delivered]) -> Vec<u64> {
    delivered.iter().map(|sample| sample.seq).collect()
}

/// Returns true if the sequence numbers increase strictly.
fn in_order(delivered: &[Delivered]) -> bool {
    seqs(delivered).is_sorted_by(|a, b| a < b)
}
