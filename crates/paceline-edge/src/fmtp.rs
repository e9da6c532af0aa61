//! The parameters of a format in a session description (RFC 8866, `a=fmtp`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use paceline_media::audio::AacFormat;

/// Longest parameter set in bytes.
const SET_BYTES_MAX: usize = 4_096;
/// Most parameter sets.
const SETS_MAX: usize = 16;
/// The bytes of a configuration of AAC that are read: 44 bits at most.
const CONFIG_BYTES: usize = 6;
/// The index of a sample rate that is stated in 24 bits.
const RATE_STATED: u8 = 15;

/// The parameters of a format, by name.
pub(crate) struct Parameters<'a>(Vec<(&'a str, &'a str)>);

/// A configuration of AAC (AudioSpecificConfig of ISO/IEC 14496-3, 1.6.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AacConfig {
    /// The samples per second.
    pub(crate) rate: u32,
    /// The channels; `None` if the blocks state them.
    pub(crate) channels: Option<u16>,
}

impl<'a> Parameters<'a> {
    pub(crate) fn parse(format: &'a str) -> Self {
        let parts = format.split(';').filter_map(|part| part.trim().split_once('='));
        Self(parts.map(|(name, value)| (name.trim(), value.trim().trim_matches('"'))).collect())
    }

    /// Returns the value of a parameter, whose name may have any case.
    fn get(&self, name: &str) -> Option<&'a str> {
        let mut named = self.0.iter().filter(|(part, _)| part.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| *value)
    }

    /// Returns the parameter sets. Those that cannot be read may arrive with the pictures.
    pub(crate) fn sets(&self) -> Vec<Vec<u8>> {
        const NAMES: [&str; 4] = ["sprop-vps", "sprop-sps", "sprop-pps", "sprop-parameter-sets"];
        let named = NAMES.iter().filter_map(|name| self.get(name));
        let decoded =
            named.flat_map(|value| value.split(',')).filter_map(|set| STANDARD.decode(set).ok());
        let fit = decoded.filter(|set| !set.is_empty() && set.len() <= SET_BYTES_MAX);
        fit.take(SETS_MAX).collect()
    }

    /// Returns the configuration of a track of AAC, if it states one.
    ///
    /// # Errors
    /// The unsupported parameter of an encoding, with the supported value.
    pub(crate) fn check(&self, encoding: &str) -> Result<Option<AacConfig>, String> {
        // RFC 3640, 3.3.6, and RFC 7798, 7.1: packets without decoding order numbers.
        let aac = [
            ("mode", "AAC-hbr"),
            ("sizeLength", "13"),
            ("indexLength", "3"),
            ("indexDeltaLength", "3"),
        ];
        let h265 = [("sprop-max-don-diff", "0")];
        let is_aac = encoding.eq_ignore_ascii_case("mpeg4-generic");
        let rules: &[(&str, &str)] = if is_aac {
            &aac
        } else if encoding.eq_ignore_ascii_case("h265") {
            &h265
        } else {
            &[]
        };
        for (name, supported) in rules {
            let value = self.get(name).filter(|value| !value.eq_ignore_ascii_case(supported));
            if let Some(value) = value {
                return Err(format!("with {name}={value} ({supported} is supported)"));
            }
        }
        match self.get("config").filter(|value| is_aac && !value.is_empty()) {
            Some(config) => AacConfig::parse(config).map(Some),
            None => Ok(None),
        }
    }
}

impl AacConfig {
    /// Reads a configuration in hexadecimal digits.
    fn parse(text: &str) -> Result<Self, String> {
        let unread = || format!("with config={text}, which cannot be read");
        let bytes = text.as_bytes().chunks(2).take(CONFIG_BYTES).map(|digits| {
            let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 2);
            digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())
        });
        let bytes: Option<Vec<u8>> = bytes.collect();
        let mut bits = Bits(bytes.ok_or_else(unread)?, 0);
        let (object, config) = bits.config().ok_or_else(unread)?;
        match object {
            2 => config.ok_or_else(|| {
                format!(
                    "with config={text} (blocks of 1024 samples and up to 6 or 8 channels are supported)"
                )
            }),
            5 | 29 => {
                Err(format!("of object type {object}, which is HE-AAC (2, AAC-LC, is supported)"))
            }
            _ => Err(format!("of object type {object} (2, AAC-LC, is supported)")),
        }
    }
}

/// Bytes, and the number of bits that were read.
struct Bits(Vec<u8>, usize);

impl Bits {
    fn take(&mut self, count: usize) -> Option<u32> {
        (0..count).try_fold(0, |value, _| {
            let byte = *self.0.get(self.1 / 8)?;
            let bit = byte >> (7 - self.1 % 8) & 1;
            self.1 += 1;
            Some(value << 1 | u32::from(bit))
        })
    }

    /// Returns the object type, and the configuration of an object of type 2 unless its blocks cannot be published.
    fn config(&mut self) -> Option<(u32, Option<AacConfig>)> {
        let object = match self.take(5)? {
            31 => 32 + self.take(6)?,
            object => object,
        };
        let index = u8::try_from(self.take(4)?).ok()?;
        let rate = match index {
            RATE_STATED => self.take(24)?,
            _ => AacFormat::rate_of(index)?,
        };
        let channels = match self.take(4)? {
            0 => Ok(None),
            count @ 1..=6 => Ok(u16::try_from(count).ok()),
            7 => Ok(Some(8)),
            _ => Err(()),
        };
        let short = object == 2 && self.take(1)? == 1;
        let config = channels.ok().filter(|_| !short);
        Some((object, config.map(|channels| AacConfig { rate, channels })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(encoding: &str, format: &str) -> Result<Option<AacConfig>, String> {
        Parameters::parse(format).check(encoding)
    }

    #[test]
    fn configurations_state_rate_and_channels() {
        let config = |text: &str| check("MPEG4-GENERIC", &format!("mode=AAC-hbr;config={text}"));
        let found = |rate, channels| Ok(Some(AacConfig { rate, channels }));
        assert_eq!(config("1190"), found(48_000, Some(2)));
        assert_eq!(config("\"1408\""), found(16_000, Some(1)));
        assert_eq!(config("11B8"), found(48_000, Some(8)));
        assert_eq!(config("1180"), found(48_000, None));
        // 44,100 Hz in 24 bits.
        assert_eq!(config("1780562210"), found(44_100, Some(2)));
        assert_eq!(config(""), Ok(None));
        assert_eq!(check("opus", "config=2b"), Ok(None));
    }

    #[test]
    fn unsupported_parameters_are_named() {
        let aac = |format: &str| check("mpeg4-generic", format).unwrap_err();
        assert_eq!(aac("mode=AAC-lbr"), "with mode=AAC-lbr (AAC-hbr is supported)");
        assert_eq!(aac("Mode=aac-HBR; SizeLength=6"), "with sizeLength=6 (13 is supported)");
        assert_eq!(aac("sizelength=13;indexlength=2"), "with indexLength=2 (3 is supported)");
        let he = "of object type 5, which is HE-AAC (2, AAC-LC, is supported)";
        assert_eq!(aac("config=2b118800"), he);
        assert_eq!(aac("config=eb098800"), he.replace("type 5", "type 29"));
        assert_eq!(aac("config=0990"), "of object type 1 (2, AAC-LC, is supported)");
        for text in ["1", "zz", "119", "é1", "17"] {
            assert_eq!(
                aac(&format!("config={text}")),
                format!("with config={text}, which cannot be read")
            );
        }
        assert!(aac("config=1194").contains("1024 samples"), "960 samples");
        assert!(aac("config=11d8").contains("channels"), "a configuration of 11");
        assert_eq!(check("H265", "sprop-max-don-diff=0"), Ok(None));
        assert_eq!(
            check("H265", "sprop-max-don-diff=2"),
            Err("with sprop-max-don-diff=2 (0 is supported)".to_owned())
        );
    }
}
