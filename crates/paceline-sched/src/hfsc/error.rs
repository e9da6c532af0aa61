//! The errors of classes and lists of classes.

use super::{CLASSES_MAX, ClassIndex, DEPTH_MAX};
use alloc::string::String;
use core::fmt;

/// The reasons for rejecting a change of the tree; the tree is unchanged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum HfscError {
    /// The class does not exist.
    Unknown(ClassIndex),
    /// The root has no curves and cannot be removed.
    Root,
    /// The class has none of the three curves and would never be served.
    NoCurve,
    /// The class has an upper limit, which limits link-sharing, but no link-sharing curve.
    UpperLimitWithoutLinkShare,
    /// The class is not a leaf, and only leaves may have a real-time curve.
    RealTimeOnInner(ClassIndex),
    /// The class has children but no link-sharing curve.
    InnerWithoutLinkShare(ClassIndex),
    /// The leaf has a packet waiting, so it cannot become an inner class.
    ParentActive(ClassIndex),
    /// The class has children, so it cannot be removed.
    HasChildren(ClassIndex),
    /// The class would be more than [`DEPTH_MAX`] below the root.
    TooDeep(ClassIndex),
    /// The tree already has [`CLASSES_MAX`] classes.
    TooMany,
}

impl fmt::Display for HfscError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(class) => {
                write!(f, "there is no {class}: it was never added, or it is removed")
            }
            Self::Root => f.write_str(
                "class 0 is the root: it has no curves and stays; put a class below it for a limit of all",
            ),
            Self::NoCurve => f.write_str(
                "class without a curve: give it a real-time or a link-sharing curve, or both",
            ),
            Self::UpperLimitWithoutLinkShare => f.write_str(
                "upper limit without a link-sharing curve: it limits link-sharing alone; add such a curve",
            ),
            Self::RealTimeOnInner(class) => write!(
                f,
                "{class} has children or gets one, and a real-time curve: only leaves have one; move it \
                 to a leaf below"
            ),
            Self::InnerWithoutLinkShare(class) => write!(
                f,
                "{class} has children and no link-sharing curve: give it one, in the same proportion as \
                 its siblings' shares"
            ),
            Self::ParentActive(class) => write!(
                f,
                "{class} has a packet waiting, so it stays a leaf: add children while it has none"
            ),
            Self::HasChildren(class) => write!(f, "{class} has children: remove them first"),
            Self::TooDeep(class) => write!(
                f,
                "{class} is {DEPTH_MAX} below the root: a class is from 1 to {DEPTH_MAX} below it"
            ),
            Self::TooMany => {
                write!(f, "there are {CLASSES_MAX} classes already: at most that many fit")
            }
        }
    }
}

impl core::error::Error for HfscError {}

/// The reasons for rejecting a list of classes.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SpecError {
    /// Two classes have the same name.
    Duplicate {
        /// The name.
        name: String,
    },
    /// A class has a parent that is not in the list.
    UnknownParent {
        /// The class.
        name: String,
        /// The name of its parent.
        parent: String,
    },
    /// A class is its own ancestor.
    Loop {
        /// The first class of the list that is on the loop.
        name: String,
    },
    /// A class is invalid by itself or at its position.
    Class {
        /// The class.
        name: String,
        /// The reason; its indices count the classes in the order in which they were added.
        error: HfscError,
    },
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate { name } => {
                write!(f, "class {name:?} is listed twice: give each class a name of its own")
            }
            Self::UnknownParent { name, parent } => write!(
                f,
                "class {name:?} has the parent {parent:?}, which is not listed: list it, or leave the \
                 parent out for a class right below the root"
            ),
            Self::Loop { name } => write!(
                f,
                "class {name:?} is below itself: follow its parents, one of them must be right below \
                 the root"
            ),
            Self::Class { name, error } => write!(f, "class {name:?}: {error}"),
        }
    }
}

impl core::error::Error for SpecError {}
