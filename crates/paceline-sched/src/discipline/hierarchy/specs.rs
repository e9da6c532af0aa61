//! Construction of a whole hierarchy from a list of named classes, as in a configuration.

use super::{Discipline, Eligibility, Hierarchy, Policy};
use crate::hfsc::{ClassIndex, ClassSpec, Hfsc, HfscError, SpecError};
use alloc::borrow::ToOwned as _;
use alloc::vec::Vec;

/// A class of the list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BranchSpec<'a> {
    /// The name, the parent and the curves.
    pub class: ClassSpec<'a>,
    /// The discipline and the eligibility rule of a class for streams; `None` for a class for other
    /// classes.
    pub leaf: Option<(Policy, Eligibility)>,
}

impl Hierarchy {
    /// Returns a hierarchy from a list in any order, with the index of each class in the order of the
    /// list.
    ///
    /// # Errors
    /// [`SpecError`] if a name occurs twice, a parent is not listed or has streams, a class is its own
    /// ancestor, or [`Hfsc::add`] fails.
    pub fn from_specs(specs: &[BranchSpec<'_>]) -> Result<(Self, Vec<ClassIndex>), SpecError> {
        let classes: Vec<ClassSpec<'_>> = specs.iter().map(|spec| spec.class).collect();
        let (tree, indexes) = Hfsc::from_specs(&classes)?;
        let mut hierarchy = Self { tree, ..Self::default() };
        for (spec, index) in specs.iter().zip(&indexes) {
            let Some((policy, eligibility)) = spec.leaf else { continue };
            let name = spec.class.name;
            if specs.iter().any(|other| other.class.parent == Some(name)) {
                let error = HfscError::ParentActive(*index);
                return Err(SpecError::Class { name: name.to_owned(), error });
            }
            hierarchy.furnish(*index, Discipline::new(policy, eligibility));
        }
        Ok((hierarchy, indexes))
    }
}
