//! Encoding of decoded pictures in the requested size.

use openh264::encoder::{
    BitRate, ColorPrimaries, Complexity, Encoder, EncoderConfig, FrameRate, MatrixCoefficients,
    Profile, QpRange, RateControlMode, TransferCharacteristics, VuiConfig,
};
use openh264::formats::YUVSource;
use openh264::{OpenH264API, Timestamp};

use super::colour::Colour;
use super::limit::{Detail, Limit};
use super::{Class, Classifier};
use crate::error::MediaError;
use crate::picture::split_planes;
use crate::pixel::PixelFormat;
use crate::resize::Resize;
use crate::size::Size;

/// The default target of the rate control: bits per pixel, and bits per picture. Small pictures have more detail per
/// pixel, and headers.
const BITS_PER_PIXEL: f64 = 0.1;
const BITS_PER_PICTURE: f64 = 1_000.0;

/// The longest time between I pictures, in seconds of encoded pictures.
const KEY_SECONDS: f64 = 2.0;

/// The range of openh264's rate control in Hz; other rates are encoded like the nearest in the range.
const ENCODER_HZ: (f64, f64) = (1.0, 60.0);

/// The highest permitted rate in Hz.
const HZ_MAX: u32 = 1000;

/// The shortest permitted side in pixels.
const SIDE_MIN: u32 = 16;

/// The longer and the shorter side of the largest picture that openh264 encodes.
const SIDES_MAX: (u32, u32) = (3840, 2160);

/// Scales and encodes pictures, each to one unit.
pub(super) struct Coder {
    hz: f64,
    /// The target of the rate control in bits per second; `None` for the default of the size.
    bits: Option<u32>,
    pub(super) resize: Resize,
    scaled: Vec<u8>,
    encoder: Option<(Size, Encoder)>,
    /// The range and colour space of the pictures, which their SPS repeats.
    colour: Option<Colour>,
    /// The largest number of pictures from one I picture to the next.
    pub(super) key_every: u64,
    /// The pictures encoded since the last I picture, including that one.
    since_key: u64,
    key: bool,
    coded: u64,
    /// The pictures have limits.
    pub(super) limited: bool,
    /// No I picture is encoded now.
    pub(super) keeps_reference: bool,
    pub(super) detail: Detail,
}

impl Coder {
    pub(super) fn new(hz: f64) -> Result<Self, MediaError> {
        if !hz.is_finite() || hz <= 0.0 || hz > f64::from(HZ_MAX) {
            return Err(MediaError::H264Rate { hz: hz.to_string(), max: HZ_MAX });
        }
        Ok(Self {
            hz,
            bits: None,
            resize: Resize::new(),
            scaled: Vec::new(),
            encoder: None,
            colour: None,
            key_every: whole((KEY_SECONDS * hz).floor()).max(1),
            since_key: 0,
            key: true,
            coded: 0,
            limited: false,
            keeps_reference: false,
            detail: Detail::default(),
        })
    }

    /// Sets the target of the rate control, in bits per second; `None` for the default of the size.
    pub(super) fn set_bits(&mut self, bits: Option<u32>) {
        if self.bits != bits {
            self.bits = bits;
            self.encoder = None;
        }
    }

    /// Requests that the next picture is an I picture.
    pub(super) fn request_key(&mut self) {
        self.key = true;
    }

    /// Sets the range and colour space of the following pictures.
    pub(super) fn set_colour(&mut self, colour: Option<Colour>) {
        if self.colour != colour {
            self.colour = colour;
            self.encoder = None;
        }
    }

    /// Returns one unit of size `to` (the picture's if `None`) with `picture`; `None` if there is no room for it within
    /// the limit.
    pub(super) fn code(
        &mut self,
        picture: &impl YUVSource,
        to: Option<Size>,
        limit: Option<Limit>,
    ) -> Result<Option<(Class, Vec<u8>)>, MediaError> {
        let from = size_of(picture)?;
        let to = to.unwrap_or(from);
        check_target(to)?;
        if !to.fits(from) {
            return Err(MediaError::SizeAboveSource { asked: to, source_size: from });
        }
        if to == from && limit.is_none() {
            return self.encode(picture, to).map(Some);
        }
        let mut scaled = std::mem::take(&mut self.scaled);
        let planes = self.scale(picture, from, &mut scaled, to);
        let coded = match limit {
            None => {
                planes.and_then(|planes| self.encode(&Planes { planes, size: to }, to)).map(Some)
            }
            Some(limit) => planes.map(drop).and_then(|()| self.code_within(&mut scaled, to, limit)),
        };
        self.scaled = scaled;
        coded
    }

    fn scale<'a>(
        &mut self,
        picture: &impl YUVSource,
        from: Size,
        scaled: &'a mut Vec<u8>,
        to: Size,
    ) -> Result<[&'a [u8]; 3], MediaError> {
        let len = PixelFormat::I420.payload_len(to);
        scaled.resize(usize::try_from(len).map_err(|_| MediaError::Pixels { size: to })?, 0);
        let strides = picture.strides();
        let planes = split_planes(to, scaled).ok_or(MediaError::Pixels { size: to })?;
        let [luma, cb, cr] = planes;
        let (small, half) = (to.chroma(), from.chroma());
        self.resize.rows((picture.y(), strides.0, from), (&mut *luma, to))?;
        self.resize.rows((picture.u(), strides.1, half), (&mut *cb, small))?;
        self.resize.rows((picture.v(), strides.2, half), (&mut *cr, small))?;
        Ok([luma, cb, cr])
    }

    pub(super) fn encode(
        &mut self,
        picture: &impl YUVSource,
        size: Size,
    ) -> Result<(Class, Vec<u8>), MediaError> {
        let refuse = |error: &dyn std::error::Error| MediaError::H264Encode {
            size,
            reason: error.to_string(),
            fix: "choose another size",
        };
        let mut encoder = match self.encoder.take() {
            Some((made_for, encoder)) if made_for == size => encoder,
            Some(_) | None => {
                self.key = true;
                let made = Encoder::with_api_config(
                    OpenH264API::from_source(),
                    config(size, self.hz, (self.bits, self.limited), self.colour),
                );
                let mut encoder = made.map_err(|error| refuse(&error))?;
                silence(&mut encoder);
                encoder
            }
        };
        if !self.keeps_reference && (self.key || self.since_key >= self.key_every) {
            encoder.force_intra_frame();
        }
        let millis = self.coded.saturating_mul(1000) / whole(encoder_hz(self.hz)).max(1);
        let stream = encoder.encode_at(picture, Timestamp::from_millis(millis));
        let bytes = stream.map_err(|error| refuse(&error))?.to_vec();
        let class = Classifier::new().classify(&bytes)?;
        self.since_key = if class == Class::I { 1 } else { self.since_key + 1 };
        self.key &= class != Class::I;
        self.coded += 1;
        self.encoder = Some((size, encoder));
        Ok((class, bytes))
    }
}

/// Checks that pictures of `size` can be encoded.
pub(super) fn check_target(size: Size) -> Result<(), MediaError> {
    size.check()?;
    let sides = (size.width.max(size.height), size.width.min(size.height));
    let reason = if !size.width.is_multiple_of(2) || !size.height.is_multiple_of(2) {
        "a side is odd, and chroma has half the pixels".to_owned()
    } else if sides.1 < SIDE_MIN || sides.0 > SIDES_MAX.0 || sides.1 > SIDES_MAX.1 {
        let (long, short) = SIDES_MAX;
        format!("must be {SIDE_MIN}x{SIDE_MIN} to {long}x{short} or {short}x{long}")
    } else {
        return Ok(());
    };
    let fix = "choose even sides in that range, such as 320x180";
    Err(MediaError::H264Encode { size, reason, fix })
}

/// Prevents openh264 from writing to standard error.
///
/// The crate sets the level only after the encoder has checked its parameters and has warned that the
/// rate may be exceeded without skipped pictures.
#[expect(unsafe_code, reason = "the crate has no safe function that comes early enough")]
fn silence(encoder: &mut Encoder) {
    const ENCODER_OPTION_TRACE_LEVEL: i32 = 25;
    const WELS_LOG_QUIET: i32 = 0;
    let mut level = WELS_LOG_QUIET;
    // SAFETY: the encoder was created and not destroyed. Before its parameters are set, this option is
    // one of three that it accepts. For this option it reads the `i32` behind the pointer and does not
    // keep the pointer.
    unsafe {
        encoder.raw_api().set_option(ENCODER_OPTION_TRACE_LEVEL, (&raw mut level).cast());
    }
}

fn encoder_hz(hz: f64) -> f64 {
    hz.clamp(ENCODER_HZ.0, ENCODER_HZ.1)
}

/// Returns the configuration: Baseline, one slice and one reference, no B pictures, no skipped pictures,
/// one thread.
fn config(
    size: Size,
    hz: f64,
    (bits, limited): (Option<u32>, bool),
    colour: Option<Colour>,
) -> EncoderConfig {
    // The rate control counts pictures: at rates outside its range it needs the bits of as many pictures.
    let scaled = |bits: u32| whole(f64::from(bits) * encoder_hz(hz) / hz);
    // Only a bit rate that was set, or a limit, is worth more loss of quality than this.
    let coarsest = if bits.is_some() || limited { 51 } else { 40 };
    let bits = bits.map(scaled);
    let hz = encoder_hz(hz);
    let pixels = u32::try_from(size.pixels()).unwrap_or(u32::MAX);
    let bits =
        bits.unwrap_or_else(|| whole((f64::from(pixels) * BITS_PER_PIXEL + BITS_PER_PICTURE) * hz));
    let config = EncoderConfig::new()
        .profile(Profile::Baseline)
        .max_frame_rate(FrameRate::from_hz(narrow(hz)))
        .rate_control_mode(RateControlMode::Bitrate)
        .bitrate(BitRate::from_bps(u32::try_from(bits).unwrap_or(u32::MAX)))
        .qp(QpRange::new(12, coarsest))
        .complexity(Complexity::Low)
        .skip_frames(false)
        .scene_change_detect(false)
        .background_detection(false)
        .num_threads(1);
    colour.map_or(config, |colour| config.vui(vui(colour)))
}

/// Returns the encoder's names of a colour space; unspecified where it has none.
fn vui(colour: Colour) -> VuiConfig {
    use ColorPrimaries as C;
    use MatrixCoefficients as M;
    use TransferCharacteristics as T;
    let primaries =
        [C::Bt709, C::Bt470M, C::Bt470BG, C::Smpte170M, C::Smpte240M, C::Film, C::Bt2020]
            .into_iter()
            .find(|it| it.as_u8() == colour.primaries);
    let transfer = [
        T::Bt709,
        T::Bt470M,
        T::Bt470Bg,
        T::Smpte170M,
        T::Smpte240M,
        T::Linear,
        T::Srgb,
        T::Bt2020_10,
        T::Bt2020_12,
        T::Smpte2084,
        T::Hlg,
    ]
    .into_iter()
    .find(|it| it.as_u8() == colour.transfer);
    let matrix = [
        M::Bt709,
        M::Fcc,
        M::Bt470Bg,
        M::Smpte170M,
        M::Smpte240M,
        M::Ycgco,
        M::Bt2020Ncl,
        M::Bt2020Cl,
    ]
    .into_iter()
    .find(|it| it.as_u8() == colour.matrix);
    VuiConfig::new()
        .color_primaries(primaries.unwrap_or(C::Unspecified))
        .transfer_characteristics(transfer.unwrap_or(T::Unspecified))
        .matrix_coefficients(matrix.unwrap_or(M::Unspecified))
        .full_range(colour.full_range)
}

#[expect(clippy::cast_possible_truncation, reason = "at most 60, and a rate need not be exact")]
fn narrow(hz: f64) -> f32 {
    hz as f32
}

#[expect(clippy::cast_possible_truncation, reason = "callers pass whole positive numbers")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

fn size_of(picture: &impl YUVSource) -> Result<Size, MediaError> {
    let (width, height) = picture.dimensions();
    let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
    Size::new(side(width), side(height))
}

/// Scaled planes without padding.
pub(super) struct Planes<'a> {
    pub(super) planes: [&'a [u8]; 3],
    pub(super) size: Size,
}

impl YUVSource for Planes<'_> {
    fn dimensions(&self) -> (usize, usize) {
        self.size.usizes()
    }

    fn strides(&self) -> (usize, usize, usize) {
        let ((luma, _), (chroma, _)) = (self.size.usizes(), self.size.chroma().usizes());
        (luma, chroma, chroma)
    }

    fn y(&self) -> &[u8] {
        let [luma, _, _] = self.planes;
        luma
    }

    fn u(&self) -> &[u8] {
        let [_, cb, _] = self.planes;
        cb
    }

    fn v(&self) -> &[u8] {
        let [_, _, cr] = self.planes;
        cr
    }
}
