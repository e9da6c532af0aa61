//! Classes of a link: a small tree that shares the link, and rules that assign streams to it.
//!
//! The tree shares the link by service curves (HFSC). Each leaf class has its own discipline. A stream
//! belongs to the first class of the list that matches it. Streams that no class matches belong to the class
//! [`DEFAULT`].

mod error;
mod guarantee;
mod shares;

pub use error::ClassError;
pub use guarantee::Unguaranteed;
pub(crate) use guarantee::refuses_contracts;

use crate::budget::CONTROL_SHARE;
use crate::plan::StreamNames;
use crate::tag::Pattern;
use paceline_sched::curve::{Curve, fits};
use paceline_sched::discipline::{BranchSpec, Eligibility, Hierarchy};
use paceline_sched::hfsc::{ClassIndex, ClassSpec, Curves};
use paceline_sched::police::{Action, Combined, Constraint, Police};
use paceline_sched::{Capacity, Policy};

/// The name of the class for streams that no other class matches.
pub const DEFAULT: &str = "default";
/// The maximum number of classes of a link, not counting the default class.
pub const CLASSES_MAX: usize = 64;
/// The maximum length of a class name, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// The criteria of a class for streams. All given criteria must match; without any, every stream matches.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Match {
    /// Names of next hops, one of which must match; empty matches any.
    pub peers: Vec<String>,
    /// Names of publishing nodes, one of which must match; empty matches any.
    pub nodes: Vec<String>,
    /// Tags or patterns, one of which must match the stream's tag; empty matches any.
    pub tags: Vec<Pattern>,
    /// `true` matches only contracted streams, `false` only best effort, `None` both.
    pub contracted: Option<bool>,
}

impl Match {
    /// Returns `true` if there are no criteria, so that every stream matches.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }

    fn takes(&self, names: &StreamNames, contracted: bool) -> bool {
        let among = |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
        let tag = |pattern: &Pattern| names.tag.as_ref().is_some_and(|tag| pattern.matches(tag));
        among(&self.peers, &names.peer)
            && among(&self.nodes, &names.node)
            && (self.tags.is_empty() || self.tags.iter().any(tag))
            && self.contracted.is_none_or(|wanted| wanted == contracted)
    }
}

/// The policing of a class's streams, all together, at the entry of the link.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClassPolice {
    /// The constraints, all of which must be met; at most [`Combined::POLICERS_MAX`].
    pub constraints: Vec<Constraint>,
    /// The action on a sample that does not conform: delay, drop or demote it ([`Action`]).
    pub action: Action,
}

impl From<&Police> for ClassPolice {
    fn from(police: &Police) -> Self {
        Self { constraints: police.policers.constraints().collect(), action: police.action }
    }
}

impl ClassPolice {
    /// Returns policers in their initial state.
    pub(crate) fn start(&self) -> Police {
        // Trees with too many constraints were refused.
        let policers = Combined::new(&self.constraints).unwrap_or_default();
        Police { policers, action: self.action }
    }
}

/// The configuration of a class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkClass {
    /// The unique name, 1 to [`NAME_BYTES_MAX`] bytes.
    pub name: String,
    /// The parent class; `None` for a class directly below the link.
    pub parent: Option<String>,
    /// The share of the parent in percent, 1 to 100, instead of a link-sharing curve. Classes with neither
    /// share the rest evenly.
    pub share: Option<u32>,
    /// The guarantee, the link-sharing curve and the upper limit.
    pub curves: Curves,
    /// The discipline of the class; defaults to that of the link. Only for classes without subclasses.
    pub policy: Option<Policy>,
    /// The criteria for streams. Only for classes without subclasses.
    pub wants: Match,
    /// Gives each next hop an equal subclass of its own, so that a flood to one peer does not affect others.
    pub per_peer: bool,
    /// The policing of its streams; with `per_peer`, of the streams to each next hop.
    pub police: Option<ClassPolice>,
}

/// The validated classes of one link.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassTree {
    /// The classes in matching order.
    pub(crate) classes: Vec<LinkClass>,
    /// The curves of the classes, with shares converted to curves.
    curves: Vec<Curves>,
    /// The position of each class's parent.
    pub(crate) parents: Vec<Option<usize>>,
    /// The share of the link of each class while all are busy, in millionths.
    pub(crate) parts: Vec<u32>,
}

impl ClassTree {
    /// Returns the tree of `classes` on a link of this capacity. Adds the class [`DEFAULT`] if no class
    /// matches every stream.
    ///
    /// # Errors
    /// Returns a [`ClassError`] with the class, its key, the problem and a remedy.
    pub fn new(
        mut classes: Vec<LinkClass>,
        capacity: Option<Capacity>,
    ) -> Result<Self, ClassError> {
        error::count(&classes)?;
        let parents = error::parents(&classes)?;
        error::each(&classes, &parents)?;
        let (mut classes, mut parents) = (core::mem::take(&mut classes), parents);
        let is_inner = |place: usize| parents.contains(&Some(place));
        let any = |(place, class): (usize, &LinkClass)| class.wants.is_any() && !is_inner(place);
        if !classes.iter().enumerate().any(any) {
            error::free_default(&classes)?;
            classes.push(LinkClass { name: DEFAULT.to_owned(), ..LinkClass::default() });
            parents.push(None);
        }
        let curves = shares::resolve(&classes, &parents, capacity)?;
        let parts = shares::parts(&curves, &parents);
        let tree = Self { classes, curves, parents, parts };
        tree.fits(capacity)?;
        // The hierarchy itself checks everything else.
        tree.grow(Policy::default())?;
        Ok(tree)
    }

    /// Checks that the guarantees of all classes fit a capacity.
    ///
    /// # Errors
    /// Returns an error for the first class whose guarantee does not fit.
    pub fn fits(&self, capacity: Option<Capacity>) -> Result<(), ClassError> {
        let real = |place: usize| self.curves.get(place).and_then(|curves| curves.real_time);
        let mut promised: Vec<Curve> = Vec::new();
        for (place, class) in self.classes.iter().enumerate() {
            let Some(curve) = real(place) else { continue };
            promised.push(curve);
            let Some(capacity) = capacity else {
                return Err(ClassError::new(
                    &class.name,
                    "real_time",
                    error::NO_CAPACITY.to_owned(),
                ));
            };
            fits(&promised, usable(capacity)).map_err(|error| {
                let what = format!(
                    "with the earlier guarantees it exceeds the link, of which 5 % are reserved \
                     for control: {error}"
                );
                ClassError::new(&class.name, "real_time", what)
            })?;
        }
        Ok(())
    }

    /// Returns the configured classes, including an added default class.
    #[must_use]
    pub fn classes(&self) -> &[LinkClass] {
        &self.classes
    }

    /// Returns the classes that have streams, without those that have subclasses.
    pub fn leaves(&self) -> impl Iterator<Item = &LinkClass> {
        let leaf = |(place, _): &(usize, &LinkClass)| !self.is_inner(*place);
        self.classes.iter().enumerate().filter(leaf).map(|(_, class)| class)
    }

    /// Returns the position of the class that a stream belongs to.
    #[must_use]
    pub fn class_of(&self, names: &StreamNames, contracted: bool) -> usize {
        let wants = |(place, class): (usize, &LinkClass)| {
            !self.is_inner(place) && class.wants.takes(names, contracted)
        };
        let found = self.classes.iter().enumerate().position(wants);
        found.unwrap_or(self.classes.len().saturating_sub(1))
    }

    pub(crate) fn is_inner(&self, place: usize) -> bool {
        self.parents.contains(&Some(place))
    }

    /// Returns the discipline of the link without streams, and the index of each class in it.
    pub(crate) fn grow(&self, policy: Policy) -> Result<(Hierarchy, Vec<ClassIndex>), ClassError> {
        let specs: Vec<BranchSpec<'_>> = (0..self.classes.len())
            .filter_map(|place| {
                let (class, curves) = (self.classes.get(place)?, *self.curves.get(place)?);
                let (name, parent) = (class.name.as_str(), class.parent.as_deref());
                let streams = !self.is_inner(place) && !class.per_peer;
                let leaf = streams.then(|| (class.policy.unwrap_or(policy), ELIGIBILITY));
                Some(BranchSpec { class: ClassSpec { name, parent, curves }, leaf })
            })
            .collect();
        let (mut tree, indexes) = Hierarchy::from_specs(&specs).map_err(ClassError::from)?;
        tree.add_background();
        Ok((tree, indexes))
    }

    /// Returns the curves of each peer's subclass.
    pub(crate) fn peer_curves(&self, place: usize) -> Curves {
        let share = self.curves.get(place).and_then(|curves| curves.link_share);
        let link_share = share.and_then(|curve| Curve::linear(curve.m2()).ok());
        Curves { link_share, ..Curves::default() }
    }
}

/// The same eligibility rule as on a link without classes.
pub(crate) const ELIGIBILITY: Eligibility = Eligibility::OncePerPeriod;

/// Returns the part of a capacity that is available for data.
fn usable(capacity: Capacity) -> Capacity {
    let bytes = capacity.bytes_per_s();
    Capacity::from_bytes_per_s(bytes - bytes.div_ceil(CONTROL_SHARE)).unwrap_or(capacity)
}
