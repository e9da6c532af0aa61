//! The datagrams of multicast groups (docs/internals/wire.md), encrypted and authenticated.
//!
//! All members of a group have its key, which encrypts the common end of the frames. The part of each receiver is sealed
//! with a key that only the sender and this receiver have, together with the digest of the common end. So no member can
//! send in the name of the sender, and nobody else can read or send anything.

use bytes::Bytes;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{SHA256, digest};

/// The length of keys in bytes.
pub(super) const KEY_BYTES: usize = 32;
/// The identifier of the group and the number of the datagram.
const HEAD_BYTES: usize = 12;
/// The receiver and the length of its part.
const PART_BYTES: usize = 4;
/// The number of datagrams before the newest one that may still arrive.
const WINDOW: u64 = 128;

/// A key for one direction.
#[derive(Debug)]
pub(super) struct Key {
    bytes: [u8; KEY_BYTES],
    cipher: LessSafeKey,
}

impl Key {
    /// Returns a random key; `None` without a source of random numbers.
    pub(super) fn random() -> Option<Self> {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes).ok()?;
        Self::of(bytes)
    }

    /// Returns the key with these bytes.
    pub(super) fn of(bytes: [u8; KEY_BYTES]) -> Option<Self> {
        let cipher = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &bytes).ok()?);
        Some(Self { bytes, cipher })
    }

    pub(super) const fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.bytes
    }

    fn seal(&self, head: &[u8; HEAD_BYTES], more: &[u8], plain: &[u8], out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(plain);
        let Some(place) = out.get_mut(from..) else { return };
        let sealed = self.cipher.seal_in_place_separate_tag(nonce(head), Aad::from(more), place);
        // Only a piece beyond any datagram cannot be sealed.
        if let Ok(tag) = sealed {
            out.extend_from_slice(tag.as_ref());
        }
    }

    fn open<'b>(
        &self,
        head: &[u8; HEAD_BYTES],
        more: &[u8],
        sealed: &'b mut [u8],
    ) -> Option<&'b [u8]> {
        self.cipher.open_in_place(nonce(head), Aad::from(more), sealed).ok().map(|plain| &*plain)
    }
}

/// Each datagram of a link has another head.
fn nonce(head: &[u8; HEAD_BYTES]) -> Nonce {
    const { assert!(NONCE_LEN == HEAD_BYTES) };
    Nonce::assume_unique_for_key(*head)
}

/// The part of one receiver in a datagram.
pub(super) struct Part<'p> {
    /// The receiver's number on the link.
    pub(super) receiver: u16,
    pub(super) key: &'p Key,
    /// Its frame up to the common end.
    pub(super) own: &'p [u8],
}

/// Returns datagram `number` of the group `id`. A probe has neither parts nor a common end.
pub(super) fn seal(
    (id, number): (u32, u64),
    key: &Key,
    parts: &[Part<'_>],
    common: &[u8],
) -> Vec<u8> {
    let head = head(id, number);
    let digest = digest(&SHA256, common);
    let mut out = Vec::with_capacity(1_500);
    out.extend_from_slice(&head);
    out.push(u8::try_from(parts.len()).unwrap_or(u8::MAX));
    for part in parts {
        let from = out.len();
        out.extend_from_slice(&part.receiver.to_be_bytes());
        out.extend_from_slice(&[0; 2]);
        part.key.seal(&head, digest.as_ref(), part.own, &mut out);
        let length = u16::try_from(out.len() - from - PART_BYTES).unwrap_or(u16::MAX);
        if let Some(place) = out.get_mut(from + 2..from + PART_BYTES) {
            place.copy_from_slice(&length.to_be_bytes());
        }
    }
    key.seal(&head, &head, common, &mut out);
    out
}

fn head(id: u32, number: u64) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&id.to_be_bytes());
    head[4..].copy_from_slice(&number.to_be_bytes());
    head
}

/// The content of a datagram for one receiver.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Opened {
    /// The sender tests whether its datagrams arrive.
    Probe,
    /// A frame.
    Frame(Bytes),
}

/// The receiving end of a group.
#[derive(Debug)]
pub(super) struct Opener {
    pub(super) id: u32,
    pub(super) key: Key,
    /// This node's number on the sender's link, and the key of its parts.
    pub(super) receiver: (u16, Key),
    /// The group has probes alone, and others have none.
    is_probes: bool,
    /// One more than the newest number, and a bit for each of those before.
    newest: u64,
    seen: u128,
}

impl Opener {
    pub(super) const fn new(id: u32, key: Key, receiver: (u16, Key), is_probes: bool) -> Self {
        Self { id, key, receiver, is_probes, newest: 0, seen: 0 }
    }

    /// Returns the content of a datagram; `None` if it was not sealed by the sender, is for other receivers or has
    /// arrived before.
    pub(super) fn open(&mut self, datagram: &mut [u8]) -> Option<Opened> {
        let (head, rest) = datagram.split_first_chunk_mut::<HEAD_BYTES>()?;
        let (id, number) = head.split_first_chunk::<4>()?;
        let number = u64::from_be_bytes(number.try_into().ok()?);
        if u32::from_be_bytes(*id) != self.id || number == u64::MAX || self.is_old(number) {
            return None;
        }
        let (parts, mut rest) = rest.split_first_mut()?;
        let (is_probe, mut own) = (*parts == 0, None);
        if is_probe != self.is_probes {
            return None;
        }
        for _ in 0..*parts {
            let (place, behind) = rest.split_first_chunk_mut::<PART_BYTES>()?;
            let [a, b, c, d] = *place;
            let (part, behind) = behind.split_at_mut_checked(u16::from_be_bytes([c, d]).into())?;
            if u16::from_be_bytes([a, b]) == self.receiver.0 {
                own = Some(part);
            }
            rest = behind;
        }
        if !is_probe && own.is_none() {
            return None;
        }
        let common = self.key.open(head, &*head, rest)?;
        let opened = match own {
            // Any member can send probes, so their numbers do not count.
            None if common.is_empty() => return Some(Opened::Probe),
            None => return None,
            Some(part) => {
                let digest = digest(&SHA256, common);
                let own = self.receiver.1.open(head, digest.as_ref(), part)?;
                Opened::Frame([own, common].concat().into())
            }
        };
        self.note(number);
        Some(opened)
    }

    const fn is_old(&self, number: u64) -> bool {
        if number >= self.newest {
            return false;
        }
        let behind = self.newest - 1 - number;
        behind >= WINDOW || self.seen >> behind & 1 == 1
    }

    fn note(&mut self, number: u64) {
        if number >= self.newest {
            let by = number + 1 - self.newest;
            self.seen = if by < WINDOW { self.seen << by | 1 } else { 1 };
            self.newest = number + 1;
        } else {
            self.seen |= 1 << (self.newest - 1 - number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> Key {
        Key::of([byte; KEY_BYTES]).unwrap()
    }

    fn opener(receiver: u16) -> Opener {
        Opener::new(7, key(1), (receiver, key(10 + u8::try_from(receiver).unwrap())), false)
    }

    fn probes() -> Opener {
        Opener::new(7, key(1), (2, key(12)), true)
    }

    fn datagram(number: u64) -> Vec<u8> {
        let keys = [key(12), key(13)];
        let part = |receiver, own| {
            let key = &keys[usize::from(receiver) - 2];
            Part { receiver, key, own }
        };
        seal((7, number), &key(1), &[part(2, b"two "), part(3, b"three ")], b"common")
    }

    fn open(opener: &mut Opener, datagram: &[u8]) -> Option<Opened> {
        opener.open(&mut datagram.to_vec())
    }

    #[test]
    fn each_receiver_gets_its_own_frame_once() {
        let (mut two, mut three, mut four) = (opener(2), opener(3), opener(4));
        let frame = |text: &'static str| Some(Opened::Frame(text.into()));
        for number in [0, 1, 5, 3, 400, 300] {
            let datagram = datagram(number);
            assert_eq!(open(&mut two, &datagram), frame("two common"), "{number}");
            assert_eq!(open(&mut two, &datagram), None, "{number} is repeated");
            assert_eq!(open(&mut three, &datagram), frame("three common"));
            assert_eq!(open(&mut four, &datagram), None);
        }
        assert_eq!(open(&mut two, &datagram(200)), None, "too old");
    }

    #[test]
    fn probes_are_of_no_effect_in_other_groups_and_silence_no_later_ones() {
        let probe = |number| seal((7, number), &key(1), &[], b"");
        let mut tests = probes();
        for number in [u64::MAX - 1, 3, 3] {
            assert_eq!(open(&mut tests, &probe(number)), Some(Opened::Probe));
        }
        assert_eq!(open(&mut tests, &probe(u64::MAX)), None);
        assert_eq!(open(&mut tests, &datagram(0)), None, "a frame among probes");
        let mut two = opener(2);
        assert_eq!(open(&mut two, &probe(u64::MAX - 1)), None);
        assert!(open(&mut two, &datagram(0)).is_some());
    }

    #[test]
    fn nothing_that_was_changed_or_sealed_by_others_is_opened() {
        let valid = datagram(0);
        for at in 0..valid.len() {
            let mut changed = valid.clone();
            changed[at] ^= 1;
            let mut two = opener(2);
            let got = open(&mut two, &changed);
            // The parts of others are theirs to check.
            let others = 13 + 4 + 4 + 16..valid.len() - 6 - 16;
            assert_eq!(got.is_some(), others.contains(&at) && got.is_some(), "byte {at}");
            assert_eq!(open(&mut opener(2), &valid[..at]), None, "{at} bytes");
        }
        // A member has the key of the group, but not that of another member.
        let member = Part { receiver: 2, key: &key(13), own: b"two " };
        let forged = seal((7, 1), &key(1), &[member], b"forged");
        assert_eq!(open(&mut opener(2), &forged), None);
        // It cannot exchange the common end.
        let mut exchanged = datagram(1);
        exchanged.truncate(valid.len() - 6 - 16);
        key(1).seal(&head(7, 1), &head(7, 1), b"forged", &mut exchanged);
        assert_eq!(open(&mut opener(2), &exchanged), None);
        assert_eq!(open(&mut probes(), &seal((8, 1), &key(1), &[], b"")), None, "another group");
        assert_eq!(open(&mut probes(), &seal((7, 1), &key(9), &[], b"")), None, "another key");
    }
}
