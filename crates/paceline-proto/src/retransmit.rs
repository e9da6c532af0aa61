//! The retransmission choices of a stream on links that may lose frames.

use core::fmt;
use core::str::FromStr;

/// The retransmission of lost samples on links that lose frames (docs/concepts/lossy.md). Other links ignore it.
///
/// If several subscriptions share a stream, the greatest choice applies, in the order of the variants. Repair
/// does not harm subscriptions that did not request it. Selective repair delivers no less than go-back-n, and
/// sooner.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Retransmit {
    /// No retransmission; later samples are not delayed by a loss.
    None,
    /// Go-back-n: everything from the lost part on is sent again, so the receiver buffers nothing.
    GoBackN,
    /// Selective: only the lost parts are sent again; the receiver buffers later parts and delivers in order.
    /// This is the default.
    #[default]
    Selective,
}

impl Retransmit {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::None, Self::GoBackN, Self::Selective];

    /// Returns the byte on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::GoBackN => 1,
            Self::Selective => 2,
        }
    }

    /// Returns the choice of a byte on the wire; `None` if the byte is unknown.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.code() == code)
    }

    /// Returns the name used in commands and JSON.
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

/// The error for a name that is no [`Retransmit`].
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
    fn every_mode_has_one_name_and_one_byte() {
        for choice in Retransmit::ALL {
            assert_eq!(choice.to_string().parse(), Ok(choice));
            assert_eq!(Retransmit::from_code(choice.code()), Some(choice));
        }
        assert_eq!(Retransmit::from_code(3), None);
        let error = "twice".parse::<Retransmit>().unwrap_err().to_string();
        assert_eq!(error, "retransmission \"twice\": use none, selective or go-back-n");
    }

    #[test]
    fn the_strictest_mode_is_the_greatest() {
        let strictest = Retransmit::ALL.into_iter().max();
        assert_eq!(strictest, Some(Retransmit::Selective));
        assert!(Retransmit::GoBackN > Retransmit::None);
    }
}
