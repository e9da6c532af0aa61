//! A gate that passes only decodable video samples.

use crate::sample::Kind;

/// Passes a video sample only if every sample that it depends on has passed.
///
/// Call [`Self::admit`] for each sample, in order. If an admitted sample is dropped later, call
/// [`Self::broke`] before the next `admit`. A gate that starts in the middle of a group, or that missed a
/// sample, opens with the next I. Samples other than video always pass and change nothing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DecodeGate {
    open: bool,
    /// Everything before the last I passed, and every leading sample since.
    leading: bool,
}

impl DecodeGate {
    /// Creates a closed gate, which opens with the first I.
    #[must_use]
    pub const fn new() -> Self {
        Self { open: false, leading: false }
    }

    /// Creates a gate with an initial state, for a stream whose samples were already selected to be
    /// decodable.
    #[must_use]
    pub const fn starting(open: bool) -> Self {
        Self { open, leading: open }
    }

    /// Opens a closed gate, because an I and every reference since then were passed beside it.
    pub const fn join(&mut self) {
        if !self.open {
            *self = Self { open: true, leading: false };
        }
    }

    /// Returns true if samples that depend on others pass.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.open
    }

    /// Returns true if a sample of `kind` can be decoded after those that passed. It then counts as passed.
    #[must_use]
    pub fn admit(&mut self, kind: Kind) -> bool {
        match kind {
            Kind::VideoI => {
                self.leading = self.open;
                self.open = true;
                true
            }
            Kind::VideoP | Kind::VideoB => self.open,
            Kind::VideoLeading => self.open && self.leading,
            Kind::Data | Kind::State | Kind::Picture | Kind::Audio => true,
        }
    }

    /// Records that an admitted sample of `kind` was dropped; samples that depend on it cannot pass.
    pub const fn broke(&mut self, kind: Kind) {
        match kind {
            Kind::VideoI | Kind::VideoP => self.open = false,
            Kind::VideoLeading => self.leading = false,
            Kind::VideoB | Kind::Data | Kind::State | Kind::Picture | Kind::Audio => {}
        }
    }

    /// Records the loss of an unknown sample before the gate.
    pub const fn lost(&mut self) {
        self.open = false;
    }
}
