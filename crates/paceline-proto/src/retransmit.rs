//! What a stream does about loss on a link whose frames may be lost.

use core::fmt;
use core::str::FromStr;

/// What becomes of what was lost, on links that lose frames (docs/lossy.md); elsewhere it means nothing.
///
/// Of several subscriptions of one stream the greatest wins, in the order of the variants: who did not
/// ask for repair is not harmed by it, and of the two that repair, selective delivers no less and sooner.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Retransmit {
    /// Nothing is sent again, and nothing waits for what was lost.
    None,
    /// Everything from the lost piece on is sent again: the receiver holds nothing.
    GoBackN,
    /// What was lost is sent again, alone; the receiver holds what came behind it, in order.
    #[default]
    Selective,
}

impl Retransmit {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::None, Self::GoBackN, Self::Selective];

    /// The byte on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::GoBackN => 1,
            Self::Selective => 2,
        }
    }

    /// The choice of a byte on the wire; `None` if none has it.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.code() == code)
    }

    /// Its name in commands and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::GoBackN => "go-back-n",
            Self::Selective => "selective",
        }
    }
}

impl fmt::Display for Retransmit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no [`Retransmit`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownRetransmit(String);

impl fmt::Display for UnknownRetransmit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "retransmission \"{}\": use none, selective or go-back-n", self.0)
    }
}

impl core::error::Error for UnknownRetransmit {}

impl FromStr for Retransmit {
    type Err = UnknownRetransmit;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|choice| choice.name() == text);
        named.ok_or_else(|| UnknownRetransmit(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_has_one_name_and_one_byte() {
        for choice in Retransmit::ALL {
            assert_eq!(choice.to_string().parse(), Ok(choice));
            assert_eq!(Retransmit::from_code(choice.code()), Some(choice));
        }
        assert_eq!(Retransmit::from_code(3), None);
        let error = "twice".parse::<Retransmit>().unwrap_err().to_string();
        assert_eq!(error, "retransmission \"twice\": use none, selective or go-back-n");
    }

    #[test]
    fn the_strictest_is_the_greatest() {
        let strictest = Retransmit::ALL.into_iter().max();
        assert_eq!(strictest, Some(Retransmit::Selective));
        assert!(Retransmit::GoBackN > Retransmit::None);
    }
}
