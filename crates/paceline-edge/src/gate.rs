//! The pictures that can be decoded.

use crate::fault::UnitFault;
use paceline_media::codec::{Codec, Units};
use paceline_media::video::Class;

/// Lets the units of a video pass that can be decoded: from a key picture on, and after a loss from the next key picture on.
///
/// A unit of class I without parameter sets receives the latest ones, and sets that a unit repeats between its slices are left
/// out. A stream of JPEG pictures needs no gate.
///
/// ```
/// use paceline_edge::{UnitFault, Gate};
/// use paceline_media::codec::Codec;
///
/// let mut gate = Gate::new(Codec::H264, &[]);
/// assert!(matches!(gate.take(b"no unit"), Err(UnitFault::Malformed(_))));
/// ```
#[derive(Clone, Debug)]
pub struct Gate {
    codec: Codec,
    units: Units,
    /// The reason why a picture that is no key picture cannot pass; `None` if it can.
    closed: Option<UnitFault>,
    /// Pictures that precede the last key picture in presentation order need lost ones.
    leading: bool,
}

impl Gate {
    /// Returns the gate of a stream. `sets` are the parameter sets of its description (SPS, PPS and, for H.265, VPS), each as a
    /// NAL unit without a start code.
    #[must_use]
    pub fn new(codec: Codec, sets: &[&[u8]]) -> Self {
        let mut units = Units::new(codec);
        let mut unit = Vec::new();
        for set in sets {
            unit.extend_from_slice(&[0, 0, 0, 1]);
            unit.extend_from_slice(set);
        }
        if !unit.is_empty() {
            // It has no picture, and so no class, but its parameter sets are noted.
            let _ = units.classify(&unit);
            let _ = units.complete(&unit, Class::P);
        }
        Self { codec, units, closed: Some(UnitFault::Early), leading: false }
    }

    /// Notes that a unit was lost.
    pub fn lose(&mut self) {
        self.closed.get_or_insert(UnitFault::NeedsLost);
    }

    /// Returns the next unit, completed, if it can be decoded.
    ///
    /// # Errors
    /// [`UnitFault::Early`], [`UnitFault::NeedsLost`], [`UnitFault::NoSets`], or [`UnitFault::Malformed`] for bytes without a picture.
    pub fn take(&mut self, unit: &[u8]) -> Result<Vec<u8>, UnitFault> {
        let Ok(class) = self.units.classify(unit) else {
            self.lose();
            return Err(UnitFault::Malformed("a unit without a picture"));
        };
        // Units that do not pass may have parameter sets for later ones.
        let whole = self.units.complete(unit, class);
        match (class, self.closed) {
            // Neither the description nor a picture had them.
            (Class::I, Some(_)) if !matches!(self.codec.info(&whole), Ok(Some(_))) => {
                return Err(UnitFault::NoSets);
            }
            (Class::I, closed) => {
                self.leading = closed.is_some();
                self.closed = None;
            }
            (_, Some(fault)) => return Err(fault),
            (Class::Leading, None) if self.leading => return Err(UnitFault::NeedsLost),
            (Class::P, None) => self.leading = false,
            (Class::B | Class::Leading, None) => {}
        }
        Ok(whole.into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An SPS of 320 x 240 pixels and a PPS, of x264.
    const SETS: [&[u8]; 2] = [
        &[
            0x67, 0x64, 0x00, 0x0d, 0xac, 0xb2, 0x02, 0x83, 0xf6, 0x02, 0x20, 0x00, 0x00, 0x03,
            0x00, 0x20, 0x00, 0x00, 0x06, 0x41, 0xe2, 0x85, 0x49,
        ],
        &[0x68, 0xeb, 0xc3, 0xcb, 0x22, 0xc0],
    ];
    const KEY: &[u8] = &[0, 0, 0, 1, 0x65, 0x88, 0x84, 1, 2];
    const NEXT: &[u8] = &[0, 0, 0, 1, 0x41, 0x9a, 0x02, 3];

    #[test]
    fn pictures_pass_from_a_key_picture_on_and_after_a_loss_from_the_next_one() {
        let mut gate = Gate::new(Codec::H264, &SETS);
        assert_eq!(gate.take(NEXT), Err(UnitFault::Early));
        let first = gate.take(KEY).unwrap();
        assert!(
            first.ends_with(KEY) && first.len() > KEY.len(),
            "with the sets of the description"
        );
        assert_eq!(gate.take(NEXT).as_deref(), Ok(NEXT));
        gate.lose();
        assert_eq!(gate.take(NEXT), Err(UnitFault::NeedsLost));
        assert!(gate.take(KEY).is_ok() && gate.take(NEXT).is_ok());
        assert!(matches!(gate.take(&NEXT[..5]), Ok(_) | Err(UnitFault::Malformed(_))));
    }

    #[test]
    fn a_key_picture_without_parameter_sets_cannot_be_decoded() {
        let mut gate = Gate::new(Codec::H264, &[]);
        assert_eq!(gate.take(KEY), Err(UnitFault::NoSets));
        assert_eq!(gate.take(NEXT), Err(UnitFault::Early));
        let sets: Vec<u8> = SETS.iter().flat_map(|set| [&[0, 0, 0, 1], *set].concat()).collect();
        let whole = [&sets, KEY].concat();
        assert_eq!(gate.take(&whole), Ok(whole));
    }
}
