//! Parameter sets, kept for decoders that join later.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Class;
use super::nal::{Kind, Nal, Nals};
use super::params::Params;
use super::slice::Slice;
use crate::annexb::without;
use crate::bits::Bits;

/// The largest parameter set that is kept, in bytes. Only a PPS that maps each macroblock to a slice
/// group has more than some hundred bytes.
const SET_BYTES_MAX: usize = 64 * 1024;

/// The limit for all parameter sets together, in bytes.
const ALL_BYTES_MAX: usize = 1024 * 1024;

/// The latest parameter sets (SPS and PPS) of a stream.
///
/// Encoders may send them only once, at the start of the stream. If they precede each I unit, a decoder
/// can begin there.
///
/// Keeps at most 32 SPS and 256 PPS of at most 64 KiB each, together at most 1 MiB.
#[derive(Debug, Clone, Default)]
pub struct ParameterSets {
    sps: BTreeMap<u32, Kept>,
    pps: BTreeMap<u32, Kept>,
}

#[derive(Debug, Clone)]
struct Kept {
    /// The id of the SPS itself, or of the SPS to which the PPS refers.
    sps: u32,
    /// The start code and the NAL unit.
    bytes: Vec<u8>,
}

impl ParameterSets {
    /// Returns an empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the parameter sets in `unit`, and returns the unit, completed if necessary.
    ///
    /// If the slices of a unit of class I refer to a PPS or SPS that the unit lacks, that SPS and all its PPS
    /// are inserted. Parameter sets that a unit repeats between the slices of a picture are left out: receivers may
    /// take them for the begin of another unit. Pass every unit with its class, in decoding order.
    pub fn complete<'a>(&mut self, unit: &'a [u8], class: Class) -> Cow<'a, [u8]> {
        let mut own = Own::default();
        let mut rest = Nals::new(unit);
        // Parameter sets precede the slices.
        for (count, nal) in rest.by_ref().enumerate() {
            if count == 0 {
                own.front = nal.begin;
            }
            own.look(&nal);
            self.remember(&nal);
            if matches!(nal.kind(), Kind::Slice { .. }) {
                break;
            }
        }
        let whole =
            if class == Class::I { self.with_sets(&own, unit) } else { Cow::Borrowed(unit) };
        // The inserted sets precede the slices, so offsets from the end stay.
        let moved = whole.len() - unit.len();
        let (mut again, mut found) = (Vec::new(), Vec::new());
        for nal in rest {
            if matches!(nal.kind(), Kind::Slice { .. }) {
                // The second field of a frame is a picture by itself, with sets of its own.
                if Bits::new(nal.payload()).ue() == Some(0) {
                    found.clear();
                }
                again.append(&mut found);
            } else if self.repeats(&nal) {
                found.push(nal.begin + moved..nal.end + moved);
            } else {
                self.remember(&nal);
            }
        }
        again.append(&mut found);
        without(whole, again.into_iter())
    }

    /// Returns the unit with the parameter sets that it lacks.
    fn with_sets<'a>(&self, own: &Own, unit: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(pps) = own.named else { return Cow::Borrowed(unit) };
        let Some(&Kept { sps, .. }) = self.pps.get(&pps) else { return Cow::Borrowed(unit) };
        if own.sps.contains(&sps) && own.pps.contains(&pps) {
            return Cow::Borrowed(unit);
        }
        let lacking = |kept: &BTreeMap<u32, Kept>, own: &[u32]| -> Vec<u8> {
            let of_sps = kept.iter().filter(|(id, kept)| kept.sps == sps && !own.contains(id));
            of_sps.flat_map(|(_, kept)| &kept.bytes).copied().collect()
        };
        let (sets, pps) = (lacking(&self.sps, &own.sps), lacking(&self.pps, &own.pps));
        // A PPS is parsed with its SPS, so it must not precede the unit's own SPS.
        let (head, rest) = unit.split_at_checked(own.front).unwrap_or((&[], unit));
        let middle = own.behind_sps.saturating_sub(head.len());
        let (middle, tail) = rest.split_at_checked(middle).unwrap_or((&[], rest));
        Cow::Owned([head, &sets, middle, &pps, tail].concat())
    }

    /// Returns the SPS with this id: a start code and its NAL unit.
    #[cfg(feature = "h264")]
    pub(super) fn sps(&self, id: u32) -> Option<&[u8]> {
        self.sps.get(&id).map(|kept| kept.bytes.as_slice())
    }

    /// Returns the SPS with this id, and all PPS that refer to it.
    #[cfg(feature = "h264")]
    pub(super) fn all_of(&self, id: u32) -> Vec<u8> {
        let pps = self.pps.values().filter(|kept| kept.sps == id);
        self.sps.get(&id).into_iter().chain(pps).flat_map(|kept| &kept.bytes).copied().collect()
    }

    /// Returns true if the NAL unit is a parameter set that is recorded.
    fn repeats(&self, nal: &Nal<'_>) -> bool {
        let Some(Set { kind, id, .. }) = Set::read(nal) else { return false };
        let kept = if kind == Kind::Sps { &self.sps } else { &self.pps };
        kept.get(&id).is_some_and(|kept| kept.bytes.strip_prefix(&[0, 0, 0, 1]) == Some(nal.bytes))
    }

    fn remember(&mut self, nal: &Nal<'_>) {
        let Some(Set { kind, id, sps }) = Set::read(nal) else { return };
        if nal.bytes.len() > SET_BYTES_MAX {
            return;
        }
        let others = |kept: &BTreeMap<u32, Kept>| -> usize {
            kept.values().map(|kept| kept.bytes.len()).sum()
        };
        if others(&self.sps) + others(&self.pps) + nal.bytes.len() > ALL_BYTES_MAX {
            // No encoder does this. Clearing all keeps the bound and the latest set.
            self.sps.clear();
            self.pps.clear();
        }
        let kept = if kind == Kind::Sps { &mut self.sps } else { &mut self.pps };
        kept.insert(id, Kept { sps, bytes: [&[0, 0, 0, 1], nal.bytes].concat() });
    }
}

/// The parameter sets in the unit itself.
#[derive(Default)]
struct Own {
    sps: Vec<u32>,
    pps: Vec<u32>,
    /// The PPS of its first slice.
    named: Option<u32>,
    /// The beginning of the unit, or the end of its delimiter, which must stay first.
    front: usize,
    behind_sps: usize,
}

impl Own {
    fn look(&mut self, nal: &Nal<'_>) {
        match (nal.kind(), Set::read(nal)) {
            (Kind::Delimiter, _) if self.behind_sps == 0 => self.front = nal.end,
            (Kind::Slice { .. }, _) => {
                self.named = Slice::read(nal, &Params::default()).map(|slice| slice.pps);
            }
            (_, Some(Set { kind: Kind::Sps, id, .. })) => {
                self.sps.push(id);
                self.behind_sps = nal.end;
            }
            (_, Some(Set { id, .. })) => self.pps.push(id),
            _ => {}
        }
    }
}

/// The ids of a parameter set, readable without parsing all of it.
struct Set {
    kind: Kind,
    id: u32,
    /// The id of the SPS itself, or of the SPS to which the PPS refers.
    sps: u32,
}

impl Set {
    fn read(nal: &Nal<'_>) -> Option<Self> {
        let (kind, mut bits) = (nal.kind(), Bits::new(nal.payload()));
        match kind {
            Kind::Sps => {
                // profile_idc, constraint flags, level_idc.
                bits.bits(24)?;
                let id = bits.ue().filter(|&id| id <= 31)?;
                Some(Self { kind, id, sps: id })
            }
            Kind::Pps => {
                let id = bits.ue().filter(|&id| id <= 255)?;
                bits.ue().filter(|&sps| sps <= 31).map(|sps| Self { kind, id, sps })
            }
            Kind::Slice { .. }
            | Kind::Delimiter
            | Kind::Sei
            | Kind::Leading
            | Kind::Prefix
            | Kind::Other => None,
        }
    }
}
