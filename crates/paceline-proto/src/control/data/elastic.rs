//! Elastic contracts: the steps between the most that a subscription requests and the least that it accepts.
//!
//! Christie (1995, section 2.3) reserves continuous media at discrete rates, of which the network selects the highest that
//! fits, and lets a receiver reduce a grant. Here each step reduces one property of the previous one.

use super::refusal::{Offer, Refusal};
use crate::form::{Form, Size};
use core::fmt;
use core::num::NonZeroU32;

/// The default importance of a contract.
pub const IMPORTANCE_DEFAULT: u8 = 50;
/// The highest importance of a contract.
pub const IMPORTANCE_MAX: u8 = 100;

/// The parts of the original value at each step of a range, until half of it is reached: two thirds, then a half.
const PARTS: [(u32, u32); 2] = [(2, 3), (1, 2)];

/// The reductions that a subscription accepts.
///
/// A range is divided into steps of two thirds, a half, a third, a quarter, a sixth, … of its highest value, and ends with
/// its lowest one. If several properties may be reduced, their steps alternate, evenly spread over the whole ladder.
///
/// ```
/// use core::num::NonZeroU32;
/// use paceline_proto::control::Elastic;
/// use paceline_proto::{Form, Rate};
///
/// let rate = |hz: u32| NonZeroU32::new(hz * 1_000).unwrap();
/// let most = Form { rate: Rate::max(rate(30)), ..Form::FULL };
/// let elastic = Elastic { min_millihertz: Some(rate(5)), ..Elastic::none(most) };
/// let hertz: Vec<String> = elastic.steps().iter().map(|step| step.rate.to_string()).collect();
/// assert_eq!(hertz, ["30 Hz", "20 Hz", "15 Hz", "10 Hz", "7.500 Hz", "5 Hz"]);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Elastic {
    /// The most that the subscription requests: the first step.
    pub most: Form,
    /// The lowest rate in millihertz, below that of `most`; `None` if the rate is not reduced.
    pub min_millihertz: Option<NonZeroU32>,
    /// The smaller sizes of pictures, each smaller than the one before; at most [`Self::SIZES_MAX`].
    pub sizes: Vec<Size>,
    /// The lowest bit rate in bits per second, below that of `most`; `None` if it is not reduced.
    pub min_bitrate: Option<NonZeroU32>,
}

/// A change of an elastic contract by the nodes of its path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Adaptation {
    /// The new step, from 0 for the most that the subscription requests.
    pub step: usize,
    /// The number of steps.
    pub steps: usize,
    /// The reason.
    pub cause: Cause,
}

/// The reason for the change of an elastic contract.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Cause {
    /// A path refuses more.
    Refused(Box<Refusal>),
    /// A more important contract would not fit otherwise.
    MoreImportant {
        /// The pattern of its subscription.
        pattern: String,
        /// Its importance.
        importance: u8,
        /// The name of the node whose link lacks room, a label only.
        node_name: String,
    },
    /// The path grants more again.
    Room,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt_shortage(f),
            Self::MoreImportant { pattern, importance, node_name } => write!(
                f,
                "'{node_name}' needs the room for '{pattern}', which is more important ({importance})"
            ),
            Self::Room => f.write_str("the path carries more again"),
        }
    }
}

impl fmt::Display for Adaptation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} of {}: {}", self.step + 1, self.steps, self.cause)
    }
}

/// One reduction, and its place on the ladder: its number among the reductions of its property, and their count.
struct Reduction {
    place: (usize, usize),
    apply: Property,
}

#[derive(Clone, Copy)]
enum Property {
    Bitrate(NonZeroU32),
    Rate(NonZeroU32),
    Size(Size),
}

impl Elastic {
    /// The largest number of smaller sizes.
    pub const SIZES_MAX: usize = 8;

    /// Returns a ladder of one step.
    #[must_use]
    pub const fn none(most: Form) -> Self {
        Self { most, min_millihertz: None, sizes: Vec::new(), min_bitrate: None }
    }

    /// Returns true if there is a second step, and each one is below the one before.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let below = |least: Option<NonZeroU32>, most: Option<NonZeroU32>| {
            least.is_none_or(|least| most.is_some_and(|most| least < most))
        };
        let all: Vec<Size> = self.most.size.into_iter().chain(self.sizes.iter().copied()).collect();
        let smaller = |pair: &[Size]| match pair {
            [one, other] => other.pixels() < one.pixels() && other.fits_in(*one),
            _ => true,
        };
        let any =
            self.min_millihertz.is_some() || !self.sizes.is_empty() || self.min_bitrate.is_some();
        any && below(self.min_millihertz, self.most.rate.max_millihertz)
            && below(self.min_bitrate, self.most.bitrate)
            && self.sizes.len() <= Self::SIZES_MAX
            && (self.sizes.is_empty() || self.most.size.is_some())
            && all.windows(2).all(smaller)
    }

    /// Returns the steps, from the most to the least.
    #[must_use]
    pub fn steps(&self) -> Vec<Form> {
        let rates = range(self.most.rate.max_millihertz, self.min_millihertz);
        let bitrates = range(self.most.bitrate, self.min_bitrate);
        let mut all = placed(bitrates.into_iter().map(Property::Bitrate).collect());
        all.extend(placed(rates.into_iter().map(Property::Rate).collect()));
        all.extend(placed(self.sizes.iter().copied().map(Property::Size).collect()));
        // A stable order: of equal places, bit rates are first and sizes last.
        all.sort_by(|one, other| {
            let part = |a: &Reduction, b: &Reduction| a.place.0 * b.place.1;
            part(one, other).cmp(&part(other, one))
        });
        let mut steps = vec![self.most];
        let mut form = self.most;
        for Reduction { apply, .. } in all {
            match apply {
                Property::Bitrate(bits) => form.bitrate = Some(bits),
                Property::Rate(millihertz) => form.rate = form.rate.at_most(millihertz),
                Property::Size(size) => form.size = Some(size),
            }
            steps.push(form);
        }
        steps
    }

    /// Returns the number of the step with the form `form`, from 0 for the most.
    #[must_use]
    pub fn step_of(&self, form: Form) -> Option<usize> {
        self.steps().iter().position(|step| *step == form)
    }
}

/// Returns the first of `steps` after step `now` that `offer`, of the refusal of that step, covers, or the last one; `None` at
/// the last step.
pub(in crate::control) fn step_below(steps: &[Form], now: usize, offer: &Offer) -> Option<usize> {
    let last = steps.len().checked_sub(1).filter(|last| now < *last)?;
    let refused = steps.get(now)?;
    let covers = |step: &Form| {
        let rate = step.rate.max_millihertz.map(|it| u64::from(it.get()));
        let lower = rate.zip(offer.max_millihertz).is_some_and(|(rate, most)| rate <= most);
        let smaller = step.size.zip(offer.size).is_some_and(|(size, most)| size.fits_in(most));
        let fewer = step.bitrate.zip(offer.bitrate).is_some_and(|(bits, most)| bits <= most);
        let by_rate = lower && step.rate != refused.rate;
        let by_size = smaller && step.size != refused.size;
        let by_bitrate = fewer && step.bitrate != refused.bitrate;
        if offer.together { by_rate && by_size } else { by_rate || by_size || by_bitrate }
    };
    let found = steps.iter().skip(now + 1).position(covers);
    Some(found.map_or(last, |at| now + 1 + at))
}

fn placed(of: Vec<Property>) -> Vec<Reduction> {
    let count = of.len();
    let place = |(at, apply)| Reduction { place: (at + 1, count), apply };
    of.into_iter().enumerate().map(place).collect()
}

/// Returns the values of a range below its highest one.
fn range(most: Option<NonZeroU32>, least: Option<NonZeroU32>) -> Vec<NonZeroU32> {
    let (Some(most), Some(least)) = (most, least) else { return Vec::new() };
    let mut values = Vec::new();
    let mut whole = most;
    loop {
        for (part, of) in PARTS {
            let value = u64::from(whole.get()) * u64::from(part) / u64::from(of);
            let value = u32::try_from(value).ok().and_then(NonZeroU32::new);
            // A step that saves little more than the last one is left out.
            let Some(value) =
                value.filter(|it| u64::from(it.get()) * 10 > u64::from(least.get()) * 11)
            else {
                values.push(least);
                return values;
            };
            values.push(value);
        }
        whole = values.last().copied().unwrap_or(least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Rate;

    fn number(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).unwrap()
    }

    fn size(width: u32, height: u32) -> Size {
        Size { width, height }
    }

    #[test]
    fn the_steps_of_several_properties_alternate_and_each_reduces_one() {
        let most = Form {
            rate: Rate::max(number(30_000)),
            size: Some(size(640, 480)),
            bitrate: Some(number(2_000_000)),
            ..Form::FULL
        };
        let elastic = Elastic {
            most,
            min_millihertz: Some(number(5_000)),
            sizes: vec![size(320, 240), size(160, 120)],
            min_bitrate: Some(number(1_000_000)),
        };
        assert!(elastic.is_valid());
        let text = |form: &Form| {
            let (bits, size) = (form.bitrate.unwrap().get() / 1_000, form.size.unwrap());
            format!("{} {}x{} {bits}k", form.rate, size.width, size.height)
        };
        let steps: Vec<String> = elastic.steps().iter().map(text).collect();
        assert_eq!(
            steps,
            [
                "30 Hz 640x480 2000k",
                "20 Hz 640x480 2000k",
                "15 Hz 640x480 2000k",
                "15 Hz 640x480 1333k",
                "15 Hz 320x240 1333k",
                "10 Hz 320x240 1333k",
                "7.500 Hz 320x240 1333k",
                "7.500 Hz 320x240 1000k",
                "5 Hz 320x240 1000k",
                "5 Hz 160x120 1000k",
            ]
        );
        for (at, step) in elastic.steps().into_iter().enumerate() {
            assert_eq!(elastic.step_of(step), Some(at));
        }
        assert_eq!(elastic.step_of(Form::FULL), None);
    }

    #[test]
    fn a_range_ends_with_its_lowest_value_and_is_short_even_if_it_is_wide() {
        let values = |most, least| range(Some(number(most)), Some(number(least)));
        assert_eq!(values(30_000, 29_000), [29_000].map(number));
        assert_eq!(values(2, 1), [1].map(number));
        assert_eq!(values(1_000, 333), [666, 500, 333].map(number));
        let wide = values(u32::MAX, 1);
        assert!(wide.len() < 64 && wide.windows(2).all(|pair| pair[1] < pair[0]), "{wide:?}");
        assert_eq!(wide.last(), Some(&number(1)));
    }

    #[test]
    fn contradictions_are_found() {
        let rate = |hz| Form { rate: Rate::max(number(hz)), ..Form::FULL };
        let sizes = |most, sizes: &[Size]| Elastic {
            sizes: sizes.to_vec(),
            ..Elastic::none(Form { size: most, ..Form::FULL })
        };
        let bad = [
            Elastic::none(Form::FULL),
            Elastic { min_millihertz: Some(number(5)), ..Elastic::none(Form::FULL) },
            Elastic { min_millihertz: Some(number(5)), ..Elastic::none(rate(5)) },
            Elastic { min_millihertz: Some(number(6)), ..Elastic::none(rate(5)) },
            Elastic { min_bitrate: Some(number(6)), ..Elastic::none(rate(5)) },
            sizes(None, &[size(32, 24)]),
            sizes(Some(size(64, 48)), &[size(64, 48)]),
            sizes(Some(size(64, 48)), &[size(32, 24), size(48, 32)]),
            sizes(Some(size(64, 48)), &[size(32, 64)]),
            sizes(Some(size(64, 48)), &[size(32, 24); 9]),
        ];
        for elastic in bad {
            assert!(!elastic.is_valid(), "{elastic:?}");
        }
        assert!(sizes(Some(size(64, 48)), &[size(32, 24)]).is_valid());
    }
}
