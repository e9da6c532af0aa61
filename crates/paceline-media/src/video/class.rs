//! The class of a unit.

/// The class of a unit of coded video: whether other units depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// A key unit: a decoder can start here. Later units need none from before it, except
    /// [`Class::Leading`] ones.
    I,
    /// A reference picture: later pictures may need it.
    P,
    /// No other picture needs it, whatever its slice type.
    B,
    /// It precedes the last key unit in presentation order. It may need pictures from before that unit and
    /// other leading ones; only leading pictures need it.
    Leading,
}

impl Class {
    /// Returns the class of a unit with a picture of this class, and then one of class `next`.
    pub(crate) fn and(self, next: Self) -> Self {
        match (self, next) {
            (Self::I, _) => Self::I,
            (Self::B, Self::B) => Self::B,
            (Self::Leading, Self::Leading) => Self::Leading,
            (Self::P | Self::B | Self::Leading, _) => Self::P,
        }
    }
}
