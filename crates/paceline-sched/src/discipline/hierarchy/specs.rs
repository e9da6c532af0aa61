//! A whole hierarchy from a list of classes with names, as a configuration has it.

use super::{Discipline, Eligibility, Hierarchy, Policy};
use crate::hfsc::{ClassIndex, ClassSpec, Hfsc, HfscError, SpecError};
use alloc::borrow::ToOwned as _;
use alloc::vec::Vec;

/// A class of a list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BranchSpec<'a> {
    /// Its name, its parent and its curves.
    pub class: ClassSpec<'a>,
    /// Of a class for streams: which of them leaves next, and how often one may use its rank. `None`: it
    /// is for other classes.
    pub leaf: Option<(Policy, Eligibility)>,
}

impl Hierarchy {
    /// A hierarchy from a list in any order, with the index of each class in the order of the list.
    ///
    /// # Errors
    /// [`SpecError`]: a name twice, a parent that is not listed or is for streams, a class below itself,
    /// or what [`Hfsc::add`] does not accept.
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
