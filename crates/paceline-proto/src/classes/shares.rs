//! Conversion of shares in percent to curves.

use super::{ClassError, LinkClass};
use paceline_sched::Capacity;
use paceline_sched::curve::{Curve, RATE_MAX};
use paceline_sched::hfsc::Curves;

/// The rate of a link without a capacity, in bits per second; only the proportions matter there.
const NO_CAPACITY: u64 = 1_000_000_000;
/// The minimum share of a class without settings, as the fraction 1/`LEAST_PART` of its parent.
const LEAST_PART: u64 = 100;
/// The unit of shares: millionths.
const WHOLE: u64 = 1_000_000;

/// Returns the curves of each class.
pub(super) fn resolve(
    classes: &[LinkClass],
    parents: &[Option<usize>],
    capacity: Option<Capacity>,
) -> Result<Vec<Curves>, ClassError> {
    let whole = capacity.map_or(NO_CAPACITY, Capacity::bits_per_s);
    let mut curves: Vec<Curves> = classes.iter().map(|class| class.curves).collect();
    for parent in by_depth(parents) {
        let rate = parent.and_then(|at| curves.get(at)?.link_share).map_or(whole, |c| c.m2());
        let below = siblings(parents, parent);
        let shares = divide(classes, &below, rate)?;
        for (place, share) in below.into_iter().zip(shares) {
            if let (Some(curves), Some(bits)) = (curves.get_mut(place), share) {
                curves.link_share = Curve::linear(bits.clamp(1, RATE_MAX)).ok();
            }
        }
    }
    Ok(curves)
}

/// Returns the share in bits per second of each class below one of `rate`; `None` for a class with a curve or
/// only a guarantee.
fn divide(
    classes: &[LinkClass],
    below: &[usize],
    rate: u64,
) -> Result<Vec<Option<u64>>, ClassError> {
    let (mut percent, mut taken, mut open) = (0, 0_u64, 0);
    let of_rate = |share: u32| u64::try_from(u128::from(rate) * u128::from(share) / 100);
    for class in below.iter().filter_map(|&place| classes.get(place)) {
        percent += class.share.unwrap_or(0);
        if let (true, Some(share)) = (percent > 100, class.share) {
            let what = format!(
                "{share} %: with the earlier shares {percent} % of the class above: must be at \
                 most 100 % in total; lower some of them"
            );
            return Err(ClassError::new(&class.name, "share", what));
        }
        let bits = class.share.map(|share| of_rate(share).unwrap_or(u64::MAX));
        let curve = class.curves.link_share.map(|curve| curve.m2());
        taken = taken.saturating_add(bits.or(curve).unwrap_or(0));
        open += u64::from(is_open(class));
    }
    let each = rate.saturating_sub(taken).checked_div(open).unwrap_or(0).max(rate / LEAST_PART);
    let share = |class: &LinkClass| {
        let said = class.share.map(|share| of_rate(share).unwrap_or(u64::MAX));
        said.or_else(|| is_open(class).then_some(each))
    };
    Ok(below.iter().map(|&place| classes.get(place).and_then(share)).collect())
}

/// Returns `true` if the class has neither a share nor a curve.
const fn is_open(class: &LinkClass) -> bool {
    let curves = &class.curves;
    class.share.is_none() && curves.link_share.is_none() && curves.real_time.is_none()
}

/// Returns the share of the link of each class while all are busy, in millionths.
pub(super) fn parts(curves: &[Curves], parents: &[Option<usize>]) -> Vec<u32> {
    let share = |place: usize| {
        curves.get(place).and_then(|curves| curves.link_share).map_or(0, |curve| curve.m2())
    };
    let mut parts: Vec<u64> = vec![0; curves.len()];
    for parent in by_depth(parents) {
        let whole = parent.map_or(WHOLE, |at| parts.get(at).copied().unwrap_or(0));
        let below = siblings(parents, parent);
        let all: u128 = below.iter().map(|&place| u128::from(share(place))).sum();
        for place in below {
            let part = u128::from(whole) * u128::from(share(place)) / all.max(1);
            if let Some(slot) = parts.get_mut(place) {
                *slot = u64::try_from(part).unwrap_or(WHOLE);
            }
        }
    }
    parts.into_iter().map(|part| u32::try_from(part).unwrap_or(u32::MAX)).collect()
}

fn siblings(parents: &[Option<usize>], parent: Option<usize>) -> Vec<usize> {
    (0..parents.len()).filter(|&place| parents.get(place) == Some(&parent)).collect()
}

/// Returns the link and all classes with subclasses, parents first.
fn by_depth(parents: &[Option<usize>]) -> Vec<Option<usize>> {
    let depth = |place: &usize| {
        core::iter::successors(Some(*place), |at| parents.get(*at).copied().flatten()).count()
    };
    let inner = |place: &usize| parents.contains(&Some(*place));
    let mut places: Vec<usize> = (0..parents.len()).filter(inner).collect();
    places.sort_by_key(depth);
    core::iter::once(None).chain(places.into_iter().map(Some)).collect()
}
