//! Why a class or a list of classes was not accepted.

use super::{CLASSES_MAX, ClassIndex, DEPTH_MAX};
use alloc::string::String;
use core::fmt;

/// Why a change of the tree was not accepted; nothing was changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum HfscError {
    /// There is no such class.
    Unknown(ClassIndex),
    /// The root has no curves and cannot be removed.
    Root,
    /// A class with none of the three curves would never be served.
    NoCurve,
    /// An upper limit limits link-sharing, and there is no link-sharing curve.
    UpperLimitWithoutLinkShare,
    /// Only leaves have a real-time curve.
    RealTimeOnInner(ClassIndex),
    /// A class that has children shares among them, so it needs a link-sharing curve.
    InnerWithoutLinkShare(ClassIndex),
    /// A leaf that has a packet waiting cannot become an inner class.
    ParentActive(ClassIndex),
    /// A class that has children cannot be removed.
    HasChildren(ClassIndex),
    /// The class would be more than [`DEPTH_MAX`] below the root.
    TooDeep(ClassIndex),
    /// There are [`CLASSES_MAX`] classes already.
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

/// Why a list of classes was not accepted.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SpecError {
    /// Two classes have one name.
    Duplicate {
        /// The name.
        name: String,
    },
    /// A class names a parent that is not in the list.
    UnknownParent {
        /// The class.
        name: String,
        /// The parent that it names.
        parent: String,
    },
    /// Going from a class to its parent, and on, leads back to it.
    Loop {
        /// A class on the loop: the first in the list.
        name: String,
    },
    /// A class is not accepted by itself or at its place.
    Class {
        /// The class.
        name: String,
        /// Why; the indexes in it count the classes in the order in which they were added.
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
