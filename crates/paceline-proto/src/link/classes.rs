//! Classes of a link: a small tree of them, and which streams belong to which.
//!
//! The tree shares the link by service curves (HFSC), each class for streams has a discipline of its
//! own. A stream belongs to the first class in the list that wants it. What no class wants has a class
//! too, [`DEFAULT`].

mod error;
mod shares;

pub use error::ClassError;

use crate::tag::{Pattern, Tag};
use paceline_sched::curve::{Curve, fits};
use paceline_sched::discipline::{BranchSpec, Eligibility, Hierarchy};
use paceline_sched::hfsc::{ClassIndex, ClassSpec, Curves};
use paceline_sched::police::{Action, Combined, Constraint, Police};
use paceline_sched::{Capacity, Policy};

/// The class of streams that no other wants.
pub const DEFAULT: &str = "default";
/// Classes that a link has at most, that of the others not counted.
pub const CLASSES_MAX: usize = 64;
/// The longest name of a class, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// Which streams a class wants: those for which all that is said here holds. Nothing said: every one.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Match {
    /// Names of next hops, one of which it goes to; any if there are none.
    pub peers: Vec<String>,
    /// Names of nodes, one of which publishes it; any if there are none.
    pub nodes: Vec<String>,
    /// Tags or patterns, one of which its tag matches; any if there are none.
    pub tags: Vec<Pattern>,
    /// With a contract, or best effort; `None`: both.
    pub contracted: Option<bool>,
}

impl Match {
    /// It says nothing, so it takes every stream.
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

/// What the streams of a class, all together, are held to where they enter the link.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClassPolice {
    /// The constraints, of which all must be kept: at most [`Combined::POLICERS_MAX`].
    pub constraints: Vec<Constraint>,
    /// What becomes of a sample that does not keep them: [`Action::Delay`] or [`Action::Drop`].
    pub action: Action,
}

impl From<&Police> for ClassPolice {
    fn from(police: &Police) -> Self {
        Self { constraints: police.policers.constraints().collect(), action: police.action }
    }
}

impl ClassPolice {
    /// Policers that have seen nothing.
    pub(super) fn start(&self) -> Police {
        // More than there may be were refused with the tree.
        let policers = Combined::new(&self.constraints).unwrap_or_default();
        Police { policers, action: self.action }
    }
}

/// A class of a link, as a configuration has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkClass {
    /// Its name, 1 to [`NAME_BYTES_MAX`] bytes; no two are alike.
    pub name: String,
    /// The class above it; the link if there is none.
    pub parent: Option<String>,
    /// Percent of what the class above has, 1 to 100, in place of a link-sharing curve. Those that say
    /// neither share evenly what the others leave.
    pub share: Option<u32>,
    /// What it is guaranteed, its share beside its siblings, and the most that it gets.
    pub curves: Curves,
    /// Which of its streams leaves next; that of the link if not said. Only without classes below it.
    pub policy: Option<Policy>,
    /// Which streams it wants. Only without classes below it.
    pub wants: Match,
    /// Each next hop has a class of its own below it, all alike: one peer's storm stays its own.
    pub per_peer: bool,
    /// What its streams are held to; with `per_peer` those to each next hop.
    pub police: Option<ClassPolice>,
}

/// What a stream's class is chosen by, beside its contract.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct StreamNames {
    /// The next hop's name.
    pub peer: String,
    /// The name of the publisher's node.
    pub node: String,
    /// The publisher's tag.
    pub tag: Option<Tag>,
}

/// The classes of one link, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassTree {
    /// In the order in which they choose.
    pub(super) classes: Vec<LinkClass>,
    /// With shares made into curves.
    curves: Vec<Curves>,
    /// The place of the class above.
    pub(super) parents: Vec<Option<usize>>,
    /// Millionths of the link that each has while all are busy.
    pub(super) parts: Vec<u32>,
}

impl ClassTree {
    /// The tree of `classes` on a link of this capacity. Where none of them takes every stream, one is
    /// added that does, [`DEFAULT`].
    ///
    /// # Errors
    /// [`ClassError`] names the class, its key, what is wrong and the mend.
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
        // Whatever is left to refuse, the tree itself refuses.
        tree.grow(Policy::default())?;
        Ok(tree)
    }

    /// Whether the guarantees of all classes fit a capacity.
    ///
    /// # Errors
    /// The first class with which they do not.
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
                    "with the guarantees before it too much for the link, of which 5 % stay for \
                     control: {error}"
                );
                ClassError::new(&class.name, "real_time", what)
            })?;
        }
        Ok(())
    }

    /// The classes as they were given, and the one that was added for all others, if it was.
    #[must_use]
    pub fn classes(&self) -> &[LinkClass] {
        &self.classes
    }

    /// The place of the class that a stream belongs to.
    #[must_use]
    pub fn class_of(&self, names: &StreamNames, contracted: bool) -> usize {
        let wants = |(place, class): (usize, &LinkClass)| {
            !self.is_inner(place) && class.wants.takes(names, contracted)
        };
        let found = self.classes.iter().enumerate().position(wants);
        found.unwrap_or(self.classes.len().saturating_sub(1))
    }

    pub(super) fn is_inner(&self, place: usize) -> bool {
        self.parents.contains(&Some(place))
    }

    /// The discipline of the link: the classes without streams, and where each class is in it.
    pub(super) fn grow(&self, policy: Policy) -> Result<(Hierarchy, Vec<ClassIndex>), ClassError> {
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

    /// What each peer of a class gets beside the others.
    pub(super) fn peer_curves(&self, place: usize) -> Curves {
        let share = self.curves.get(place).and_then(|curves| curves.link_share);
        let link_share = share.and_then(|curve| Curve::linear(curve.m2()).ok());
        Curves { link_share, ..Curves::default() }
    }
}

/// As on a link without classes.
pub(super) const ELIGIBILITY: Eligibility = Eligibility::OncePerPeriod;

/// What of a capacity is there for data.
fn usable(capacity: Capacity) -> Capacity {
    let bytes = capacity.bytes_per_s();
    Capacity::from_bytes_per_s(bytes - bytes.div_ceil(20)).unwrap_or(capacity)
}
