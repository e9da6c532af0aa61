//! A service curve in use, anchored at the instant and the service at which a class became backlogged.

use super::{Curve, NANOBITS_PER_BYTE};
use crate::wide::Wide;

/// A service curve with an origin: `x` nanoseconds of real or virtual time, `y` bytes of service.
///
/// The struct stores the two lines of the curve rather than its two pieces. For a concave curve the
/// value is the lower of two lines: one of slope `m1` through the origin, and one of slope `m2` that
/// passes `lift` above it. In that form the minimum of two shifted copies needs no division, so it stays
/// exact when taken repeatedly.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct RuntimeCurve {
    x: Wide,
    y: u64,
    /// In nanobits; used for concave curves only.
    lift: Wide,
}

impl RuntimeCurve {
    /// A curve above every other one, for a class that was never backlogged.
    pub(crate) const UNBOUNDED: Self = Self { x: Wide::ZERO, y: u64::MAX, lift: Wide::MAX };

    /// Returns `curve` from the origin (`x`, `y`).
    pub(crate) const fn starting(curve: &Curve, x: u128, y: u64) -> Self {
        Self { x: Wide::new(x), y, lift: Wide::new(curve.lift()) }
    }

    /// Returns the instant of the origin.
    pub(crate) const fn since(&self) -> u128 {
        self.x.get()
    }

    /// Replaces this curve by its minimum with `curve` from the origin (`x`, `y`), for later queries.
    ///
    /// `x` and `y` must not be below the values of an earlier call. The result is exact for a concave curve.
    /// For a convex one that begins with 0 bit/s, it is exact for more than `y` bytes. Copies of other
    /// convex curves can cross, and their minimum then has more than two pieces. In that case this keeps
    /// the copy that is lower in the long run, which is never below the minimum.
    ///
    /// ALTQ and Linux keep the copy that is lower at `x`. A class that was served ahead of a convex
    /// curve and then paused claims its later, higher rate at once under that rule. Other classes then
    /// miss their deadlines.
    pub(crate) fn min_with(&mut self, curve: &Curve, x: u128, y: u64) {
        let above = u128::from(y) * NANOBITS_PER_BYTE;
        let origin = u128::from(self.y) * NANOBITS_PER_BYTE;
        let after = x.saturating_sub(self.x.get());
        let line = |rate: u64| origin.saturating_add(u128::from(rate).saturating_mul(after));
        if !curve.is_concave() {
            // The second piece of both copies is the same distance below the line of slope `m2` from its
            // origin, so comparing those lines is enough.
            if line(curve.m2()) >= above {
                *self = Self::starting(curve, x, y);
            }
            return;
        }
        let second = line(curve.m2()).saturating_add(self.lift.get());
        if line(curve.m1()).min(second) <= above {
            return;
        }
        let second = second.saturating_sub(above);
        *self = Self { x: Wide::new(x), y, lift: Wide::new(second.min(curve.lift())) };
    }

    /// Returns the least `x` at which the curve has reached `y` bytes, at least the `x` of the origin.
    pub(crate) fn time_of(&self, curve: &Curve, y: u64) -> u128 {
        let Some(rise) = y.checked_sub(self.y).filter(|&rise| rise > 0) else {
            return self.x.get();
        };
        let rise = u128::from(rise) * NANOBITS_PER_BYTE;
        let (m1, m2) = (u128::from(curve.m1()), u128::from(curve.m2()));
        let after = if curve.is_concave() {
            // The lower of two lines reaches `y` at the later of their two times.
            rise.div_ceil(m1).max(rise.saturating_sub(self.lift.get()).div_ceil(m2))
        } else {
            let second = rise.saturating_add(curve.lift()).div_ceil(m2);
            rise.checked_div(m1).map_or(second, |_| second.min(rise.div_ceil(m1)))
        };
        self.x.get().saturating_add(after)
    }

    /// Shifts the curve to later times until it reaches `y` bytes at `least` or later.
    pub(crate) fn delay(&mut self, curve: &Curve, y: u64, least: u128) {
        let lag = least.saturating_sub(self.time_of(curve, y));
        self.x = Wide::new(self.x.get().saturating_add(lag));
    }

    /// Returns the least `x` at which a line of the second piece's slope from the origin has reached `y`
    /// bytes.
    ///
    /// This line is the eligible curve of a convex curve.
    pub(crate) fn time_on_line(&self, curve: &Curve, y: u64) -> u128 {
        let rise = u128::from(y.saturating_sub(self.y)) * NANOBITS_PER_BYTE;
        self.x.get().saturating_add(rise.div_ceil(u128::from(curve.m2())))
    }
}

#[cfg(test)]
mod tests;
