//! Errors in the configuration of a link's classes.

use super::{CLASSES_MAX, Combined, DEFAULT, LinkClass, NAME_BYTES_MAX};
use crate::text::{escape, is_plain};
use core::fmt;
use paceline_sched::hfsc::SpecError;
use std::collections::BTreeMap;

/// The reason why the classes of a link were refused: the class, its key, the problem and a remedy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClassError {
    /// The name of the class; empty if the error concerns the whole list.
    pub class: String,
    /// The key of the class that is invalid.
    pub key: &'static str,
    /// The problem, the allowed range and a remedy.
    pub what: String,
}

pub(super) const NO_CAPACITY: &str = "a guarantee is a part of a capacity, and the link has none: \
                                      set a capacity for the link, or a share for the class";

impl fmt::Display for ClassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { class, key, what } = self;
        if class.is_empty() {
            return write!(f, "class: {what}");
        }
        write!(f, "class '{}': {key}: {what}", escape(class))
    }
}

impl core::error::Error for ClassError {}

impl From<SpecError> for ClassError {
    fn from(error: SpecError) -> Self {
        let what = error.to_string();
        match error {
            SpecError::Duplicate { name } => Self { class: name, key: "name", what },
            SpecError::UnknownParent { name, .. } | SpecError::Loop { name } => {
                Self { class: name, key: "parent", what }
            }
            SpecError::Class { name, error } => {
                Self { class: name, key: "parent", what: error.to_string() }
            }
            _ => Self { class: String::new(), key: "name", what },
        }
    }
}

impl ClassError {
    pub(super) fn new(class: &str, key: &'static str, what: String) -> Self {
        Self { class: class.to_owned(), key, what }
    }
}

/// Checks the number of classes.
pub(super) fn count(classes: &[LinkClass]) -> Result<(), ClassError> {
    let given = classes.len();
    if given > CLASSES_MAX {
        let what = format!(
            "{given} of them: must be at most {CLASSES_MAX} per link; per_peer creates one for each next hop"
        );
        return Err(ClassError::new("", "name", what));
    }
    Ok(())
}

/// Checks that no class has the name of the default class.
pub(super) fn free_default(classes: &[LinkClass]) -> Result<(), ClassError> {
    match classes.iter().find(|class| class.name == DEFAULT) {
        None => Ok(()),
        Some(class) => Err(ClassError::new(
            &class.name,
            "match",
            format!(
                "{DEFAULT} is the class of streams that match no other class; remove its match, or \
                 rename it"
            ),
        )),
    }
}

/// Returns the position of each class's parent. Checks that names are unique and that there is no cycle.
pub(super) fn parents(classes: &[LinkClass]) -> Result<Vec<Option<usize>>, ClassError> {
    let mut places = BTreeMap::new();
    for (place, class) in classes.iter().enumerate() {
        if !(1..=NAME_BYTES_MAX).contains(&class.name.len()) || !is_plain(&class.name) {
            let what = format!(
                "must be 1 to {NAME_BYTES_MAX} bytes of text without control characters; try \
                 \"video\""
            );
            return Err(ClassError::new(&class.name, "name", what));
        }
        if places.insert(class.name.as_str(), place).is_some() {
            return Err(SpecError::Duplicate { name: class.name.clone() }.into());
        }
    }
    let parent = |class: &LinkClass| {
        let Some(parent) = &class.parent else { return Ok(None) };
        let unknown =
            || SpecError::UnknownParent { name: class.name.clone(), parent: parent.clone() };
        places.get(parent.as_str()).copied().map(Some).ok_or_else(|| unknown().into())
    };
    let parents: Vec<Option<usize>> =
        classes.iter().map(parent).collect::<Result<_, ClassError>>()?;
    for (place, class) in classes.iter().enumerate() {
        let above = |at: &usize| parents.get(*at).copied().flatten();
        if core::iter::successors(above(&place), above).take(classes.len()).any(|at| at == place) {
            return Err(SpecError::Loop { name: class.name.clone() }.into());
        }
    }
    Ok(parents)
}

/// Checks each class by itself and within the tree.
pub(super) fn each(classes: &[LinkClass], parents: &[Option<usize>]) -> Result<(), ClassError> {
    for (place, class) in classes.iter().enumerate() {
        let wrong = |key, what: String| Err(ClassError::new(&class.name, key, what));
        if let Some(share) = class.share.filter(|share| !(1..=100).contains(share)) {
            return wrong("share", format!("{share} %: must be a whole number from 1 to 100"));
        }
        if class.share.is_some() && class.curves.link_share.is_some() {
            let what = "conflicts with link_share, which sets the same in bits; remove one";
            return wrong("share", what.to_owned());
        }
        if let Some(police) = &class.police {
            let given = police.constraints.len();
            if given > Combined::POLICERS_MAX {
                let most = Combined::POLICERS_MAX;
                return wrong("police", format!("{given} policers: must be at most {most}"));
            }
        }
        let below = parents.iter().position(|parent| *parent == Some(place));
        if let Some(child) = below.and_then(|child| classes.get(child)) {
            let place = format!("class '{}' is below it", child.name);
            inner(class, &place)?;
        } else if class.per_peer && class.curves.real_time.is_some() {
            let what = "conflicts with per_peer, as the number of peers is unknown; define a class \
                        for each peer with a guarantee, or remove it";
            return wrong("real_time", what.to_owned());
        }
    }
    Ok(())
}

/// Checks that a class with subclasses, which has no streams of its own, has no settings for streams.
fn inner(class: &LinkClass, why: &str) -> Result<(), ClassError> {
    for (key, there) in [
        ("real_time", class.curves.real_time.is_some()),
        ("discipline", class.policy.is_some()),
        ("match", !class.wants.is_any()),
        ("per_peer", class.per_peer),
        ("police", class.police.is_some()),
    ] {
        if there {
            let what =
                format!("{why}, and only a class without subclasses has streams; move it there");
            return Err(ClassError::new(&class.name, key, what));
        }
    }
    Ok(())
}
