//! Writes bits, for headers that no encoder produces on request.

/// The bits of a payload.
#[derive(Default)]
pub(crate) struct Bits(Vec<bool>);

impl Bits {
    pub(crate) fn bits(&mut self, count: u32, value: u32) -> &mut Self {
        self.0.extend((0..count).rev().map(|bit| value >> bit & 1 == 1));
        self
    }

    pub(crate) fn ue(&mut self, value: u32) -> &mut Self {
        let zeros = (value + 1).ilog2();
        self.bits(zeros, 0).bits(zeros + 1, value + 1)
    }

    /// Returns the payload with its stop bit.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bits = self.0.clone();
        bits.push(true);
        let byte = |bits: &[bool]| {
            (0..8).fold(0, |byte, bit| byte << 1 | u8::from(bits.get(bit) == Some(&true)))
        };
        bits.chunks(8).map(byte).collect()
    }
}
