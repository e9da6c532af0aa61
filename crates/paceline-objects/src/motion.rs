//! Positions, velocities and extrapolation.

use paceline_sched::{Duration, Instant};

/// The position and velocity of an object at an instant.
///
/// The units are those of the world, usually metres and metres per second. All components are finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Motion {
    /// The position.
    pub position: [f64; 3],
    /// The change of the position per second.
    pub velocity: [f64; 3],
    /// When the object was there.
    pub at: Instant,
}

impl Motion {
    /// Returns an object that stands at `position`.
    #[must_use]
    pub const fn standing(position: [f64; 3], at: Instant) -> Self {
        Self { position, velocity: [0.0; 3], at }
    }

    /// Returns the position at `now` if the velocity stays the same; an instant before [`Self::at`] gives the
    /// position itself. This is the linear model of dead reckoning (IEEE 1278.1, DRM 2).
    #[must_use]
    pub fn position_at(&self, now: Instant) -> [f64; 3] {
        let seconds = seconds(now.since(self.at));
        std::array::from_fn(|axis| {
            component(&self.position, axis) + component(&self.velocity, axis) * seconds
        })
    }

    /// Returns whether the velocity is not 0.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        self.velocity.iter().any(|component| component.abs() > 0.0)
    }

    /// Returns whether all components are finite.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        self.position.iter().chain(&self.velocity).all(|value| value.is_finite())
    }
}

/// Returns the distance of two positions.
#[must_use]
pub fn distance(from: [f64; 3], to: [f64; 3]) -> f64 {
    let [x, y, z] = std::array::from_fn(|axis| component(&to, axis) - component(&from, axis));
    (x * x + y * y + z * z).sqrt()
}

/// Returns a duration in seconds.
#[must_use]
pub fn seconds(duration: Duration) -> f64 {
    std::time::Duration::from_nanos(duration.as_nanos()).as_secs_f64()
}

fn component(vector: &[f64; 3], axis: usize) -> f64 {
    vector.get(axis).copied().unwrap_or_default()
}
