//! `--link`: one link in one argument.

use paceline::{Capacity, LinkConfig, Policy};
use std::str::FromStr;

const KEYS: &str = "name, listen, connect, capacity, policy, insecure";
const PROTOCOLS: [&str; 4] = ["tcp", "udp", "tls", "unixsock-stream"];
/// Each unit with its bits.
const UNITS: [(&str, u128); 8] = [
    ("gbit", 1_000_000_000),
    ("mbit", 1_000_000),
    ("kbit", 1_000),
    ("bit", 1),
    ("GB", 8_000_000_000),
    ("MB", 8_000_000),
    ("kB", 8_000),
    ("B", 8),
];

/// A link as it was written on the command line or in a configuration file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LinkSpec {
    /// Its name, if one was given.
    pub(crate) name: Option<String>,
    /// Where it waits for neighbours.
    pub(crate) listen: Vec<String>,
    /// Whom it reaches out to.
    pub(crate) connect: Vec<String>,
    /// What it carries.
    pub(crate) capacity: Option<Capacity>,
    /// Which discipline schedules it.
    pub(crate) policy: Policy,
    /// Whether it may listen beyond this host without TLS.
    pub(crate) insecure: bool,
}

impl LinkSpec {
    /// The library's link; `number` names one that has no name.
    pub(crate) fn config(&self, number: usize) -> LinkConfig {
        let mut link = LinkConfig::new(&self.name(number)).policy(self.policy);
        for endpoint in &self.listen {
            link = link.listen(endpoint);
        }
        for endpoint in &self.connect {
            link = link.connect(endpoint);
        }
        if let Some(capacity) = self.capacity {
            link = link.capacity(capacity);
        }
        if self.insecure { link.insecure() } else { link }
    }

    /// Its name, or `link1`, `link2` for one without.
    pub(crate) fn name(&self, number: usize) -> String {
        self.name.clone().unwrap_or_else(|| format!("link{number}"))
    }

    fn set(&mut self, key: &str, value: Option<&str>) -> Result<(), String> {
        if key == "insecure" {
            return match value {
                None => {
                    self.insecure = true;
                    Ok(())
                }
                Some(value) => Err(format!("insecure={value}: insecure takes no value")),
            };
        }
        let value = match value {
            Some(value) if !value.is_empty() => value,
            _ if KEYS.split(", ").any(|known| known == key) => {
                return Err(format!("{key} has no value: write {key}=VALUE"));
            }
            _ => return Err(format!("key '{key}' is not known: the keys are {KEYS}")),
        };
        match key {
            "name" if self.name.is_some() => return Err("name is there twice".to_owned()),
            "name" => self.name = Some(value.to_owned()),
            "listen" => self.listen.push(named(key, value, endpoint)?),
            "connect" => self.connect.push(named(key, value, endpoint)?),
            "capacity" => self.capacity = Some(named(key, value, capacity)?),
            "policy" => self.policy = named(key, value, policy)?,
            _ => return Err(format!("key '{key}' is not known: the keys are {KEYS}")),
        }
        Ok(())
    }
}

impl FromStr for LinkSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut link = Self::default();
        for item in text.split(',') {
            match item.split_once('=') {
                Some((key, value)) => link.set(key.trim(), Some(value.trim()))?,
                None => link.set(item.trim(), None)?,
            }
        }
        if link.listen.is_empty() && link.connect.is_empty() {
            return Err(
                "no endpoint: give listen=tcp/127.0.0.1:7600 or connect=tcp/HOST:7600".to_owned()
            );
        }
        Ok(link)
    }
}

/// Reads a value; what is wrong with it is told with its key before it.
fn named<T>(key: &str, value: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
    read(value).map_err(|error| format!("{key} '{value}': {error}"))
}

/// Reads an endpoint, `tcp/127.0.0.1:7600`.
pub(crate) fn endpoint(text: &str) -> Result<String, String> {
    let (protocol, address) = text.split_once('/').unwrap_or((text, ""));
    if address.is_empty() || !PROTOCOLS.contains(&protocol) {
        return Err(format!(
            "must be PROTOCOL/ADDRESS with protocol {}; tcp/127.0.0.1:7600 is one",
            PROTOCOLS.join(", "),
        ));
    }
    Ok(text.to_owned())
}

/// Reads the name of a discipline.
pub(crate) fn policy(text: &str) -> Result<Policy, String> {
    text.parse::<Policy>().map_err(|error| error.to_string())
}

/// Reads a capacity: a decimal number and a unit, `2mbit`, `1.5 Mbit/s`, `250kB/s`.
pub(crate) fn capacity(text: &str) -> Result<Capacity, String> {
    let wrong = || {
        "must be a number above 0 with a unit: bit, kbit, mbit, gbit, B/s, kB/s, MB/s or GB/s; \
         2mbit is one"
            .to_owned()
    };
    let amount = text.strip_suffix("/s").unwrap_or(text);
    let (number, unit) =
        amount.split_at(amount.find(|c: char| c.is_alphabetic()).unwrap_or(amount.len()));
    let lower = unit.to_ascii_lowercase();
    let (_, scale) = UNITS
        .iter()
        .find(|(name, _)| *name == unit || (name.ends_with("bit") && *name == lower))
        .ok_or_else(wrong)?;
    let bits = scaled(number.trim(), *scale).ok_or_else(wrong)?;
    Capacity::from_bits_per_s(bits).map_err(|error| error.to_string())
}

/// A decimal number times `scale`, rounded down; `None` if it is none or too large.
pub(crate) fn scaled(number: &str, scale: u128) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let parse = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u128>().ok() };
    let ten_to = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let total = parse(whole)? * ten_to + parse(fraction)?;
    u64::try_from(total.checked_mul(scale)? / ten_to).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(text: &str) -> u64 {
        capacity(text).unwrap().bits_per_s()
    }

    #[test]
    fn capacities_have_units() {
        assert_eq!(bits("2mbit"), 2_000_000);
        assert_eq!(bits("2 Mbit/s"), 2_000_000);
        assert_eq!(bits("1.544Mbit"), 1_544_000);
        assert_eq!(bits("64kbit"), 64_000);
        assert_eq!(bits("8bit"), 8);
        assert_eq!(bits("1gbit"), 1_000_000_000);
        assert_eq!(bits("250kB/s"), 2_000_000);
        assert_eq!(bits("1.5MB"), 12_000_000);
        for wrong in ["2", "mbit", "-2mbit", "2kb", "2kbps", "1e6bit", "2..0mbit", ".mbit", ""] {
            let error = capacity(wrong).unwrap_err();
            assert!(error.starts_with("must be a number above 0"), "{wrong}: {error}");
        }
        assert!(capacity("99999999999gbit").is_err());
        let zero = capacity("0mbit").unwrap_err();
        assert!(zero.starts_with("capacity is 0 bit/s: a link needs"), "{zero}");
    }

    #[test]
    fn a_link_is_read_key_by_key() {
        let link: LinkSpec =
            "name=radio, listen=tcp/127.0.0.1:7600,connect=udp/[::1]:7601,capacity=2mbit,policy=dwcs,insecure"
                .parse()
                .unwrap();
        assert_eq!(link.name(1), "radio");
        assert_eq!(link.listen, ["tcp/127.0.0.1:7600"]);
        assert_eq!(link.connect, ["udp/[::1]:7601"]);
        assert_eq!(link.capacity.unwrap().bits_per_s(), 2_000_000);
        assert_eq!(link.policy, Policy::DWCS);
        assert!(link.insecure);
        let plain: LinkSpec = "connect=unixsock-stream//run/a.sock".parse().unwrap();
        assert_eq!((plain.name(2).as_str(), plain.policy), ("link2", Policy::Vds));
    }

    #[test]
    fn wrong_links_name_the_key() {
        for (text, part) in [
            ("", "key '' is not known: the keys are name, listen"),
            ("colour=red", "key 'colour' is not known"),
            ("name=radio", "no endpoint: give listen=tcp/127.0.0.1:7600"),
            ("listen", "listen has no value: write listen=VALUE"),
            ("connect=", "connect has no value"),
            ("listen=127.0.0.1:7600", "listen '127.0.0.1:7600': must be PROTOCOL/ADDRESS"),
            ("listen=quic/127.0.0.1:7600", "protocol tcp, udp, tls, unixsock-stream"),
            ("name=a,name=b,listen=tcp/[::1]:1", "name is there twice"),
            ("listen=tcp/[::1]:1,capacity=0mbit", "capacity is 0 bit/s"),
            ("listen=tcp/[::1]:1,policy=lottery", "policy 'lottery': unknown policy: must be fifo"),
            ("listen=tcp/[::1]:1,insecure=yes", "insecure takes no value"),
        ] {
            let error = text.parse::<LinkSpec>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
