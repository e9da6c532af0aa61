//! The capacity of the radio over a run, and what the robot knew of it.

use super::camera::Film;
use crate::bench::stats::float;
use crate::chart::{Line, svg};
use std::time::Instant;

/// The radio at one moment, in bits per second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    pub(super) at: Option<Instant>,
    pub(super) capacity: u64,
    pub(super) estimate: u64,
    /// The part that contracts may use.
    pub(super) contracts: u64,
    pub(super) reserved: u64,
    /// The reservation of the camera's granted rate.
    pub(super) granted: f64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Course(Vec<Moment>);

impl Course {
    pub(super) fn push(&mut self, moment: Moment) {
        self.0.push(moment);
    }

    /// Returns the part of the radio that admission could use.
    pub(super) fn admitted(&self) -> f64 {
        let used: u64 = self.0.iter().map(|it| it.contracts.min(it.capacity)).sum();
        float(used) / float(self.0.iter().map(|it| it.capacity).sum::<u64>().max(1))
    }

    /// Adds the grants of the camera.
    pub(super) fn with_grants(mut self, film: &Film) -> Self {
        for moment in &mut self.0 {
            moment.granted = moment.at.map_or(0.0, |at| film.granted_bits_per_s(at));
        }
        self
    }

    /// Draws the run.
    pub(super) fn picture(&self, title: &str) -> String {
        let begun = self.0.first().and_then(|moment| moment.at);
        let line = |name: &str, of: &dyn Fn(&Moment) -> f64| {
            let points = self.0.iter().filter_map(|moment| {
                let time = moment.at?.saturating_duration_since(begun?);
                Some((time.as_secs_f64(), of(moment) / 1e6))
            });
            Line { name: name.to_owned(), points: points.collect() }
        };
        let lines = [
            line("capacity", &|it| float(it.capacity)),
            line("estimate", &|it| float(it.estimate)),
            line("reserved", &|it| float(it.reserved)),
            line("granted to the camera", &|it| it.granted),
        ];
        svg(title, ["s", "Mbit/s"], &lines)
    }
}
