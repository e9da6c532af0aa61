//! Construction of a whole tree from a list of named classes, as in a configuration.

use super::{ClassIndex, Curves, Hfsc, SpecError};
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A class of a list: its name, the name of its parent, its curves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClassSpec<'a> {
    /// The name, unique in the list.
    pub name: &'a str,
    /// The name of the parent, anywhere in the list; `None` for a class directly below the root.
    pub parent: Option<&'a str>,
    /// The curves of the class.
    pub curves: Curves,
}

impl Hfsc {
    /// Returns a tree from a list in any order, with the index of each class in the order of the list.
    ///
    /// # Errors
    /// [`SpecError`] if a name occurs twice, a parent is not listed, a class is its own ancestor, or
    /// [`Hfsc::add`] fails.
    pub fn from_specs(specs: &[ClassSpec<'_>]) -> Result<(Self, Vec<ClassIndex>), SpecError> {
        let parents = parents(specs)?;
        let mut tree = Self::new();
        let mut added: Vec<Option<ClassIndex>> = specs.iter().map(|_| None).collect();
        for start in 0..specs.len() {
            for at in chain(specs, &parents, &added, start)? {
                let Some(spec) = specs.get(at) else { continue };
                let parent = parents.get(at).copied().flatten();
                let parent = parent.and_then(|parent| added.get(parent).copied().flatten());
                let class = tree
                    .add(parent.unwrap_or(ClassIndex::ROOT), spec.curves)
                    .map_err(|error| SpecError::Class { name: spec.name.to_owned(), error })?;
                if let Some(place) = added.get_mut(at) {
                    *place = Some(class);
                }
            }
        }
        Ok((tree, added.into_iter().flatten().collect()))
    }
}

/// Returns the list index of each class's parent.
fn parents(specs: &[ClassSpec<'_>]) -> Result<Vec<Option<usize>>, SpecError> {
    let mut places = BTreeMap::new();
    for (place, spec) in specs.iter().enumerate() {
        if places.insert(spec.name, place).is_some() {
            return Err(SpecError::Duplicate { name: spec.name.to_owned() });
        }
    }
    let find = |spec: &ClassSpec<'_>| {
        let Some(parent) = spec.parent else { return Ok(None) };
        places.get(parent).copied().map(Some).ok_or_else(|| SpecError::UnknownParent {
            name: spec.name.to_owned(),
            parent: parent.to_owned(),
        })
    };
    specs.iter().map(find).collect()
}

/// Returns the class at `start` and its ancestors that are not added yet, the uppermost first.
fn chain(
    specs: &[ClassSpec<'_>],
    parents: &[Option<usize>],
    added: &[Option<ClassIndex>],
    start: usize,
) -> Result<Vec<usize>, SpecError> {
    let mut above = Vec::new();
    let mut next = Some(start);
    while let Some(at) = next.filter(|&at| added.get(at).is_some_and(Option::is_none)) {
        above.push(at);
        if above.len() > specs.len() {
            // More steps than classes: `at` is on a loop, and so are all classes since its last
            // occurrence.
            let since = above.iter().rev().skip(1).take_while(|&&other| other != at);
            let on_loop = since.copied().min().map_or(at, |least| least.min(at));
            let name = specs.get(on_loop).map_or("", |spec| spec.name).to_owned();
            return Err(SpecError::Loop { name });
        }
        next = parents.get(at).copied().flatten();
    }
    above.reverse();
    Ok(above)
}
