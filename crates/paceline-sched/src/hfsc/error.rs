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
                write!(f, "{class} does not exist: it was never added, or was removed")
            }
            Self::Root => f.write_str(
                "class 0 is the root: it has no curves and cannot be removed; to limit all traffic, add a class below it",
            ),
            Self::NoCurve => f.write_str(
                "class without a curve: give it a real-time or a link-sharing curve, or both",
            ),
            Self::UpperLimitWithoutLinkShare => f.write_str(
                "upper limit without a link-sharing curve: it limits only link sharing; add a link-sharing curve",
            ),
            Self::RealTimeOnInner(class) => write!(
                f,
                "{class} has children and a real-time curve: only leaves may have one; move the \
                 curve to a leaf"
            ),
            Self::InnerWithoutLinkShare(class) => write!(
                f,
                "{class} has children and no link-sharing curve: give it one, in the same proportion as \
                 its siblings' shares"
            ),
            Self::ParentActive(class) => write!(
                f,
                "{class} has a packet waiting and must stay a leaf; add children while its queue is empty"
            ),
            Self::HasChildren(class) => write!(f, "{class} has children: remove them first"),
            Self::TooDeep(class) => write!(
                f,
                "{class} is {DEPTH_MAX} levels below the root, which is the maximum; add the class higher up"
            ),
            Self::TooMany => {
                write!(f, "there are already {CLASSES_MAX} classes, which is the maximum; remove one first")
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
                write!(f, "class {name:?} is listed twice; give each class a unique name")
            }
            Self::UnknownParent { name, parent } => write!(
                f,
                "class {name:?} has the parent {parent:?}, which is not listed; add it, or omit \
                 the parent for a class directly below the root"
            ),
            Self::Loop { name } => write!(
                f,
                "class {name:?} is below itself; one of its ancestors must be directly below the \
                 root"
            ),
            Self::Class { name, error } => write!(f, "class {name:?}: {error}"),
        }
    }
}

impl core::error::Error for SpecError {}
