//! Nothing passes that cannot be decoded.

use crate::sample::Kind;

/// Lets a sample of video pass only if everything that it needs has passed.
///
/// Whoever hands samples on asks [`Self::admit`] for each, in order, and says what became of those
/// that were admitted but dropped after all ([`Self::broke`]), before it asks for the next. A gate that
/// has begun in the middle or missed something opens with the next I. Samples that are no video
/// always pass and change nothing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DecodeGate {
    open: bool,
}

impl DecodeGate {
    /// A gate that nothing has passed yet: closed until an I.
    #[must_use]
    pub const fn new() -> Self {
        Self { open: false }
    }

    /// A gate of a stream whose samples were chosen beforehand so that they can be decoded.
    #[must_use]
    pub const fn starting(open: bool) -> Self {
        Self { open }
    }

    /// True if samples that need others pass.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.open
    }

    /// True if a sample of `kind` can be decoded after those that have passed; it then counts as passed.
    #[must_use]
    pub fn admit(&mut self, kind: Kind) -> bool {
        self.open |= kind == Kind::VideoI;
        self.open || !kind.is_video()
    }

    /// A sample of `kind` that was admitted was dropped after all: what needs it cannot pass.
    pub const fn broke(&mut self, kind: Kind) {
        match kind {
            Kind::VideoI | Kind::VideoP => self.open = false,
            Kind::VideoB | Kind::Data | Kind::State | Kind::Picture | Kind::Audio => {}
        }
    }

    /// Something was lost before it came here, and nobody knows what.
    pub const fn lost(&mut self) {
        self.open = false;
    }
}
