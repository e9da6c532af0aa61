//! A small writer of PNG pictures of every kind, without compression.
//!
//! It writes kinds that the encoder in use cannot (palettes, few bits, interlacing), and is independent
//! of the decoder.

/// One picture to be written.
pub(super) struct Kind {
    pub(super) width: u32,
    pub(super) height: u32,
    /// 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGBA.
    pub(super) colour: u8,
    pub(super) bits: u8,
    pub(super) interlaced: bool,
    /// The chunks between the header and the pixels: palette and transparency.
    pub(super) chunks: Vec<(&'static [u8; 4], Vec<u8>)>,
}

impl Kind {
    pub(super) fn channels(&self) -> u32 {
        match self.colour {
            0 | 3 => 1,
            2 => 3,
            4 => 2,
            _ => 4,
        }
    }

    /// Returns the file; `sample` returns channel `c` of the pixel at x and y.
    pub(super) fn file(&self, sample: impl Fn(u32, u32, u32) -> u16) -> Vec<u8> {
        let mut rows = Vec::new();
        // The first pixel and the distance of pixels, in both directions, of the seven passes.
        let passes: &[[u32; 4]] = if self.interlaced {
            &[
                [0, 0, 8, 8],
                [4, 0, 8, 8],
                [0, 4, 4, 8],
                [2, 0, 4, 4],
                [0, 2, 2, 4],
                [1, 0, 2, 2],
                [0, 1, 1, 2],
            ]
        } else {
            &[[0, 0, 1, 1]]
        };
        for [x0, y0, dx, dy] in passes.iter().filter(|[x0, ..]| *x0 < self.width) {
            for y in (*y0..self.height).step_by(*dy as usize) {
                // No filter.
                rows.push(0);
                let xs = (*x0..self.width).step_by(*dx as usize);
                let samples: Vec<u16> = xs
                    .flat_map(|x| (0..self.channels()).map(move |c| (x, c)))
                    .map(|(x, c)| sample(x, y, c))
                    .collect();
                rows.extend(pack(&samples, self.bits));
            }
        }
        let mut header = self.width.to_be_bytes().to_vec();
        header.extend(self.height.to_be_bytes());
        header.extend([self.bits, self.colour, 0, 0, u8::from(self.interlaced)]);
        let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
        chunk(&mut out, b"IHDR", &header);
        for (name, body) in &self.chunks {
            chunk(&mut out, name, body);
        }
        chunk(&mut out, b"IDAT", &stored(&rows));
        chunk(&mut out, b"IEND", &[]);
        out
    }
}

/// Packs samples, the first in the highest bits.
fn pack(samples: &[u16], bits: u8) -> Vec<u8> {
    if bits == 16 {
        return samples.iter().flat_map(|sample| sample.to_be_bytes()).collect();
    }
    let per_byte = usize::from(8 / bits);
    let byte = |group: &[u16]| {
        let byte = group.iter().fold(0_u16, |byte, sample| (byte << bits) | sample);
        let missing = u16::try_from(per_byte - group.len()).unwrap();
        u8::try_from(byte << (missing * u16::from(bits))).unwrap()
    };
    samples.chunks(per_byte).map(byte).collect()
}

/// Appends a chunk: length, name, body, checksum.
pub(super) fn chunk(out: &mut Vec<u8>, name: &[u8; 4], body: &[u8]) {
    out.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
    let begin = out.len();
    out.extend(name);
    out.extend(body);
    let sum = crc(&out[begin..]);
    out.extend(sum.to_be_bytes());
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 }
        })
    })
}

/// Returns a zlib stream of stored blocks.
pub(super) fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let blocks = bytes.chunks(65_535);
    let count = blocks.len();
    for (number, block) in blocks.enumerate() {
        let len = u16::try_from(block.len()).unwrap();
        out.push(u8::from(number + 1 == count));
        out.extend(len.to_le_bytes());
        out.extend((!len).to_le_bytes());
        out.extend(block);
    }
    let (a, b) = bytes.iter().fold((1_u32, 0_u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (a + b) % 65_521)
    });
    out.extend(((b << 16) | a).to_be_bytes());
    out
}
