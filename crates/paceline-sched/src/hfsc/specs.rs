//! A whole tree from a list of classes with names, as a configuration has it.

use super::{ClassIndex, Curves, Hfsc, SpecError};
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A class in a list: its name, the name of its parent, its curves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClassSpec<'a> {
    /// The name, unique in the list.
    pub name: &'a str,
    /// The name of the parent, anywhere in the list; `None` for a class right below the root.
    pub parent: Option<&'a str>,
    /// The curves.
    pub curves: Curves,
}

impl Hfsc {
    /// A tree from a list in any order, with the index of each class in the order of the list.
    ///
    /// # Errors
    /// [`SpecError`]: a name twice, a parent that is not listed, a class below itself, or what
    /// [`Hfsc::add`] does not accept.
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

/// The place of each class's parent in the list.
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

/// The class at `start` and those above it that are not added yet, the uppermost first.
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
            // More steps than classes: this one is on the loop, and so are those since it came last.
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
