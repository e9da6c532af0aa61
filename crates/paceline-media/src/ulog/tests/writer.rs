//! A small writer of logs: the generated counterpart of the recordings.

/// A log under construction.
pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
}

impl Writer {
    /// Returns a log with a header and no record.
    pub(super) fn new() -> Self {
        let mut bytes = b"ULog\x01\x12\x35\x01".to_vec();
        bytes.extend(5_000_u64.to_le_bytes());
        Self { bytes }
    }

    pub(super) fn record(&mut self, kind: u8, body: &[u8]) -> &mut Self {
        self.bytes.extend(u16::try_from(body.len()).unwrap().to_le_bytes());
        self.bytes.push(kind);
        self.bytes.extend(body);
        self
    }

    /// Appends bytes that need not be a record.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend(bytes);
        self
    }

    pub(super) fn flags(&mut self, incompatible: u8, offsets: [u64; 3]) -> &mut Self {
        let mut body = vec![0; 16];
        body[8] = incompatible;
        body.extend(offsets.map(u64::to_le_bytes).as_flattened());
        self.record(b'B', &body)
    }

    pub(super) fn format(&mut self, text: &str) -> &mut Self {
        self.record(b'F', text.as_bytes())
    }

    pub(super) fn subscribe(&mut self, number: u16, name: &str, multi_id: u8) -> &mut Self {
        let [low, high] = number.to_le_bytes();
        self.record(b'A', &[&[multi_id, low, high], name.as_bytes()].concat())
    }

    /// Appends a message with a format that begins with its time.
    pub(super) fn data(&mut self, number: u16, time_us: u64, rest: &[u8]) -> &mut Self {
        let number = number.to_le_bytes();
        self.record(b'D', &[number.as_slice(), &time_us.to_le_bytes(), rest].concat())
    }
}

/// Returns a log with every kind of record.
///
/// It has a fast topic and a slow one in two instances. A third has nested arrays of another format, and
/// padding at its end that is not logged.
pub(super) fn log() -> Vec<u8> {
    let mut log = Writer::new();
    log.flags(0, [0; 3])
        .record(b'I', b"\x0dchar[3] ver_x1.2")
        .record(b'M', b"\x00\x0bchar[2] bootok")
        .format("fast:uint64_t timestamp;float[3] rate;")
        .format("slow:uint8_t id;uint64_t timestamp;bool on;char[4] text;")
        // Used before it is defined.
        .format("nest:uint64_t timestamp;inner[2] parts;double big;uint8_t[4] _padding0;")
        .format("inner:int16_t x;uint8_t[2] _padding0;char c;uint8_t _padding1;")
        .record(b'P', b"\x09int32_t p\x01\0\0\0")
        .record(b'Q', b"\x01\x09int32_t p\x02\0\0\0")
        .subscribe(0, "fast", 0)
        .subscribe(1, "slow", 0)
        .subscribe(2, "slow", 1)
        .subscribe(3, "nest", 0)
        .record(b'L', b"6\0\0\0\0\0\0\0\0hello")
        .record(b'C', b"6\0\0\0\0\0\0\0\0\0\0hello")
        .record(b'S', b"\x2f\x73\x13\x20\x25\x0c\xbb\x12")
        .record(b'O', &[7, 0])
        .record(b'?', b"of the future");
    for n in 0..100_u16 {
        let rates = [f32::from(n), f32::NAN, -0.5].map(f32::to_le_bytes);
        log.data(0, 1_000_000 + u64::from(n) * 4_000, rates.as_flattened());
        if n % 10 == 0 {
            for number in 1..=2_u8 {
                let mut body = vec![number, 0, number];
                body.extend((1_000_000 + u64::from(n) * 4_000).to_le_bytes());
                body.extend([n.to_le_bytes()[0] / 10 % 2, b'"', b'\n', 0, b'z']);
                log.record(b'D', &body);
            }
        }
    }
    let mut body = Vec::new();
    body.extend([0xff, 0xff, 9, 9, b'a', 9]);
    body.extend([0x00, 0x80, 9, 9, b'\\', 9]);
    body.extend(1e300_f64.to_le_bytes());
    log.data(3, 1_400_000, &body);
    log.record(b'R', &[1, 0]);
    log.bytes
}
