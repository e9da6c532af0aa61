//! Parameter sets, kept for decoders that join later.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Class;
use super::nal::{Header, Kind, payload};
use super::pps::Pps;
use super::sps::Sps;
use crate::annexb::{Nal, Nals, without};

/// The largest parameter set that is kept, in bytes.
const SET_BYTES_MAX: usize = 64 * 1024;

/// The limit for all parameter sets together, in bytes.
const ALL_BYTES_MAX: usize = 1024 * 1024;

/// The latest parameter sets (VPS, SPS and PPS) of a stream.
///
/// Encoders may send them only once, at the start of the stream. If they precede each I unit, a decoder
/// can begin there.
///
/// Keeps at most 16 VPS, 16 SPS and 64 PPS of at most 64 KiB each, together at most 1 MiB.
#[derive(Debug, Clone, Default)]
pub struct H265ParameterSets {
    kept: BTreeMap<Key, Kept>,
}

/// The identity of a parameter set. The order is that in which a decoder needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Vps(u32),
    Sps(u32),
    Pps(u32),
}

#[derive(Debug, Clone)]
struct Kept {
    /// The id of the set to which it refers: the VPS of an SPS, the SPS of a PPS.
    refers: u32,
    /// The start code and the NAL unit.
    bytes: Vec<u8>,
}

impl H265ParameterSets {
    /// Returns an empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the parameter sets in `unit`, and returns the unit, completed if necessary.
    ///
    /// If a unit of class I lacks the PPS, SPS or VPS of its picture, those and all other
    /// PPS of that SPS are inserted. Parameter sets that a unit repeats between its slices are left out: receivers may
    /// take them for the begin of another unit. Pass every unit with its class, in decoding order.
    pub fn complete<'a>(&mut self, unit: &'a [u8], class: Class) -> Cow<'a, [u8]> {
        let mut own = Own::default();
        let mut rest = Nals::new(unit);
        // Parameter sets precede the slices.
        for (count, nal) in rest.by_ref().enumerate() {
            let header = Header::of(&nal);
            if count == 0 {
                own.front = nal.begin;
            }
            if header.kind == Kind::Delimiter && own.sets.is_empty() {
                own.front = nal.end;
            }
            if let Some((key, refers)) = read(header, &nal) {
                own.note(key, nal.end);
                self.remember(key, refers, &nal);
            }
            if header.begins_picture(&nal) {
                own.pps = header.pps_of_slice(&nal);
                break;
            }
        }
        let completed = if class == Class::I { self.completed(&own, unit) } else { None };
        let whole = completed.map_or(Cow::Borrowed(unit), Cow::Owned);
        // The inserted sets precede the slices, so offsets from the end stay.
        let moved = whole.len() - unit.len();
        let mut again = Vec::new();
        for nal in rest {
            if self.repeats(&nal) {
                again.push(nal.begin + moved..nal.end + moved);
            } else if let Some((key, refers)) = read(Header::of(&nal), &nal) {
                self.remember(key, refers, &nal);
            }
        }
        without(whole, again.into_iter())
    }

    /// Returns true if the NAL unit is a parameter set that is recorded.
    fn repeats(&self, nal: &Nal<'_>) -> bool {
        let set = read(Header::of(nal), nal).and_then(|(key, _)| self.kept.get(&key));
        set.is_some_and(|kept| kept.bytes.strip_prefix(&[0, 0, 0, 1]) == Some(nal.bytes))
    }

    /// Returns the unit with the sets that it needs and lacks; `None` if it lacks none or they are not
    /// known.
    fn completed(&self, own: &Own, unit: &[u8]) -> Option<Vec<u8>> {
        let pps = own.pps?;
        let sps = self.kept.get(&Key::Pps(pps))?.refers;
        let vps = self.kept.get(&Key::Sps(sps))?.refers;
        if [Key::Vps(vps), Key::Sps(sps), Key::Pps(pps)].iter().all(|key| own.sets.contains(key)) {
            return None;
        }
        let wanted = |key: &Key, kept: &Kept| match key {
            Key::Vps(id) => *id == vps,
            Key::Sps(id) => *id == sps,
            Key::Pps(_) => kept.refers == sps,
        };
        // A set is parsed with the one to which it refers, so it must not precede the unit's own one.
        let mut out = Vec::with_capacity(unit.len() + 1024);
        let mut from = 0;
        for (key, kept) in &self.kept {
            if own.sets.contains(key) || !wanted(key, kept) {
                continue;
            }
            let to = match key {
                Key::Vps(_) => own.front,
                Key::Sps(_) => own.behind_vps.max(own.front),
                Key::Pps(_) => own.behind_sps.max(own.behind_vps).max(own.front),
            };
            out.extend_from_slice(unit.get(from..to).unwrap_or_default());
            out.extend_from_slice(&kept.bytes);
            from = from.max(to);
        }
        out.extend_from_slice(unit.get(from..).unwrap_or_default());
        Some(out)
    }

    fn remember(&mut self, key: Key, refers: u32, nal: &Nal<'_>) {
        if nal.bytes.len() > SET_BYTES_MAX {
            return;
        }
        let all: usize = self.kept.values().map(|kept| kept.bytes.len()).sum();
        if all + nal.bytes.len() > ALL_BYTES_MAX {
            // No encoder does this. Clearing all keeps the bound and the latest set.
            self.kept.clear();
        }
        self.kept.insert(key, Kept { refers, bytes: [&[0, 0, 0, 1], nal.bytes].concat() });
    }
}

/// Returns the identity of a parameter set and of the one to which it refers.
fn read(header: Header, nal: &Nal<'_>) -> Option<(Key, u32)> {
    match header.kind {
        Kind::Vps => payload(nal).first().map(|byte| (Key::Vps(u32::from(byte >> 4)), 0)),
        Kind::Sps => Sps::read(nal).ok().map(|sps| (Key::Sps(sps.id), sps.vps)),
        Kind::Pps => Pps::read(nal).map(|pps| (Key::Pps(pps.id), pps.sps)),
        Kind::Slice | Kind::Delimiter | Kind::Opening | Kind::Other => None,
    }
}

/// The parameter sets in the unit itself.
#[derive(Default)]
struct Own {
    sets: Vec<Key>,
    /// The PPS of its first slice.
    pps: Option<u32>,
    /// The beginning of the unit, or the end of its delimiter, which must stay first.
    front: usize,
    behind_vps: usize,
    behind_sps: usize,
}

impl Own {
    fn note(&mut self, key: Key, end: usize) {
        self.sets.push(key);
        match key {
            Key::Vps(_) => self.behind_vps = end,
            Key::Sps(_) => self.behind_sps = end,
            Key::Pps(_) => {}
        }
    }
}
