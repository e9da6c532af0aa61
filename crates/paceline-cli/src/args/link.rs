//! Parses `--link`: one link per argument.

use super::name;
use paceline::class::{LinkClass, Policy};
use paceline::{Capacity, LinkCapacity, LinkCapacityError, LinkConfig, Medium, MulticastRange};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

const KEYS: &str = "name, listen, connect, capacity, medium, medium_capacity, medium_access, policy, tls_cert, tls_key, tls_ca, proxy, multicast, ordered, insecure";
const PROTOCOLS: [&str; 4] = ["quic", "tls", "tcp", "unix"];
/// The protocols of the session for plain Zenoh programs.
const PLAIN_PROTOCOLS: [&str; 4] = ["tls", "tcp", "udp", "unixsock-stream"];

/// A link as specified on the command line or in a configuration file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LinkSpec {
    pub(crate) name: Option<String>,
    /// Endpoints on which the link listens for neighbours.
    pub(crate) listen: Vec<String>,
    /// Endpoints to which the link connects.
    pub(crate) connect: Vec<String>,
    pub(crate) capacity: Option<LinkCapacity>,
    pub(crate) medium: MediumSpec,
    /// The queue space for contracts in bytes. Only a configuration file can set it.
    pub(crate) buffer: Option<u64>,
    /// The discipline that schedules the link.
    pub(crate) policy: Policy,
    /// The link's classes. Only a configuration file can define them.
    pub(crate) classes: Vec<LinkClass>,
    /// Whether the link may listen on addresses beyond this host without TLS.
    pub(crate) insecure: bool,
    /// Whether everything arrives in order, also over QUIC with a capacity.
    pub(crate) ordered: bool,
    /// The addresses of its multicast groups.
    pub(crate) multicast: Option<MulticastRange>,
    /// The HTTP proxy through which the link connects.
    pub(crate) proxy: Option<String>,
    pub(crate) tls: TlsSpec,
}

/// The medium that a link shares with others.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MediumSpec {
    pub(crate) name: Option<String>,
    /// The capacity of the medium; by default that of the link.
    pub(crate) capacity: Option<Capacity>,
    /// The longest wait of a frame for the medium; by default none.
    pub(crate) access: Option<Duration>,
}

impl MediumSpec {
    /// Returns the medium of a link with this capacity.
    pub(crate) fn of(&self, link: Option<LinkCapacity>) -> Result<Option<Medium>, String> {
        let Self { name, capacity, access } = self;
        let Some(name) = name else {
            let given = capacity.map(|_| "medium_capacity").or(access.map(|_| "medium_access"));
            let lacks = |key| {
                Err(format!("{key} needs a medium: give medium=NAME, such as medium=field-radio"))
            };
            return given.map_or(Ok(None), lacks);
        };
        let own = link.map(|capacity| match capacity {
            LinkCapacity::Fixed(capacity) => Ok(capacity),
            LinkCapacity::Measured { .. } => Err(format!(
                "medium '{name}' needs a fixed capacity, such as capacity=2mbit: other links of the medium send, too, so \
                 a measurement does not show it"
            )),
        });
        let own = own.transpose()?;
        let lacks = || {
            format!(
                "medium '{name}' has no capacity: give medium_capacity=2mbit, which all its links share"
            )
        };
        let mut medium = Medium::new(name, capacity.or(own).ok_or_else(lacks)?);
        medium.access = access.unwrap_or_default().into();
        Ok(Some(medium))
    }
}

/// The files with which a link proves its identity: all three, or none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TlsSpec {
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) ca: Option<PathBuf>,
}

impl TlsSpec {
    /// Returns the name of a missing file, if only some are given.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        let given = [("tls_cert", &self.cert), ("tls_key", &self.key), ("tls_ca", &self.ca)];
        let any = given.iter().any(|(_, file)| file.is_some());
        let lacking = given.iter().find(|(_, file)| file.is_none());
        lacking.filter(|_| any).map(|(name, _)| *name)
    }
}

impl LinkSpec {
    /// Returns this link of a process whose current folder is `folder`.
    pub(crate) fn in_folder(mut self, folder: &Path) -> Self {
        let TlsSpec { cert, key, ca } = &mut self.tls;
        for file in [cert, key, ca].into_iter().flatten() {
            *file = folder.join(&*file);
        }
        self
    }

    /// Returns the library's configuration of this link. `number` names a link without a name.
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
        // Checked when it was read.
        if let Ok(Some(medium)) = self.medium.of(self.capacity) {
            link = link.medium(medium);
            if self.medium.capacity.is_none() {
                link = link.medium_follows_capacity();
            }
        }
        if let Some(bytes) = self.buffer {
            link = link.buffer_bytes(bytes);
        }
        for class in &self.classes {
            link = link.class(class.clone());
        }
        if let TlsSpec { cert: Some(cert), key: Some(key), ca: Some(ca) } = &self.tls {
            link = link.tls(cert, key, ca);
        }
        if let Some(proxy) = &self.proxy {
            link = link.proxy(proxy);
        }
        if let Some(range) = self.multicast {
            link = link.multicast(range);
        }
        if self.ordered {
            link = link.ordered();
        }
        if self.insecure { link.insecure() } else { link }
    }

    /// Returns the link's name; `link1`, `link2`… by default.
    pub(crate) fn name(&self, number: usize) -> String {
        self.name.clone().unwrap_or_else(|| format!("link{number}"))
    }

    fn set(&mut self, key: &str, value: Option<&str>) -> Result<(), String> {
        let flag = match key {
            "insecure" => Some(&mut self.insecure),
            "ordered" => Some(&mut self.ordered),
            _ => None,
        };
        if let Some(flag) = flag {
            *flag = true;
            let given = value.map(|value| format!("{key}={value}: {key} takes no value"));
            return given.map_or(Ok(()), Err);
        }
        let value = match value {
            Some(value) if !value.is_empty() => value,
            _ if KEYS.split(", ").any(|known| known == key) => {
                return Err(format!("{key} has no value: write {key}=VALUE"));
            }
            _ => return Err(format!("key '{key}' is not known: the keys are {KEYS}")),
        };
        match key {
            "name" if self.name.is_some() => return Err("name is given twice".to_owned()),
            "name" => self.name = Some(named(key, value, name)?),
            "listen" => self.listen.push(named(key, value, endpoint)?),
            "connect" => self.connect.push(named(key, value, endpoint)?),
            "capacity" => self.capacity = Some(named(key, value, link_capacity)?),
            "medium" => self.medium.name = Some(named(key, value, name)?),
            "medium_capacity" => self.medium.capacity = Some(named(key, value, medium_capacity)?),
            "medium_access" => self.medium.access = Some(named(key, value, access)?),
            "policy" => self.policy = named(key, value, policy)?,
            "tls_cert" => self.tls.cert = Some(value.into()),
            "tls_key" => self.tls.key = Some(value.into()),
            "tls_ca" => self.tls.ca = Some(value.into()),
            "multicast" => self.multicast = Some(named(key, value, str::parse)?),
            "proxy" => self.proxy = Some(value.to_owned()),
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
        if let Some(lacking) = link.tls.lacks() {
            return Err(format!(
                "{lacking} is missing: give tls_cert, tls_key and tls_ca together"
            ));
        }
        link.medium.of(link.capacity)?;
        Ok(link)
    }
}

/// Parses a value and prefixes an error with its key.
fn named<T>(key: &str, value: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
    read(value).map_err(|error| format!("{key} '{value}': {error}"))
}

/// Parses the capacity of a link, such as `2mbit`, `auto` or `auto 1mbit..50mbit`.
pub(crate) fn link_capacity(text: &str) -> Result<LinkCapacity, String> {
    text.parse().map_err(|error: LinkCapacityError| {
        let error = error.to_string();
        // The caller names the field and its value.
        let rest = error.strip_prefix(&format!("capacity \"{text}\": ")).map(str::to_owned);
        rest.unwrap_or(error)
    })
}

/// Parses the capacity of a medium, such as `2mbit`.
pub(crate) fn medium_capacity(text: &str) -> Result<Capacity, String> {
    match link_capacity(text)? {
        LinkCapacity::Fixed(capacity) => Ok(capacity),
        LinkCapacity::Measured { .. } => Err(
            "must be fixed, such as 2mbit: a measurement does not show what other links of the medium send".to_owned(),
        ),
    }
}

/// Parses the longest wait for a medium: from 0ms to 1s.
pub(crate) fn access(text: &str) -> Result<Duration, String> {
    let wait = paceline_sched::units::duration(text).map_err(|error| error.to_string())?;
    if wait > Medium::ACCESS_MAX {
        return Err(format!("must be at most {}", Medium::ACCESS_MAX));
    }
    Ok(wait.into())
}

/// Parses an endpoint of a link, such as `tcp/127.0.0.1:7600`.
pub(crate) fn endpoint(text: &str) -> Result<String, String> {
    if let Some(address) = text.strip_prefix("udp/").filter(|address| !address.is_empty()) {
        return Err(format!("udp was replaced by quic, with certificates: write quic/{address}"));
    }
    with_protocol(text, &PROTOCOLS, "tcp/127.0.0.1:7600")
}

/// Parses an endpoint of the session for plain Zenoh programs, such as `tcp/localhost:7447`.
pub(crate) fn plain_endpoint(text: &str) -> Result<String, String> {
    with_protocol(text, &PLAIN_PROTOCOLS, "tcp/localhost:7447")
}

fn with_protocol(text: &str, protocols: &[&str], example: &str) -> Result<String, String> {
    let (protocol, address) = text.split_once('/').unwrap_or((text, ""));
    if address.is_empty() || !protocols.contains(&protocol) {
        let protocols = protocols.join(", ");
        return Err(format!(
            "must be PROTOCOL/ADDRESS with protocol {protocols}; for example {example}"
        ));
    }
    Ok(text.to_owned())
}

/// Parses the name of a discipline.
pub(crate) fn policy(text: &str) -> Result<Policy, String> {
    Policy::offered(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_read_key_by_key() {
        let link: LinkSpec =
            "name=radio, listen=tcp/127.0.0.1:7600,connect=tls/[::1]:7601,capacity=2mbit,policy=dwcs,ordered,multicast=239.77.0.0/24:7400,proxy=http://p:1,insecure"
                .parse()
                .unwrap();
        assert_eq!(link.name(1), "radio");
        assert_eq!(link.listen, ["tcp/127.0.0.1:7600"]);
        assert_eq!(link.connect, ["tls/[::1]:7601"]);
        assert_eq!(link.capacity.unwrap().first().bits_per_s(), 2_000_000);
        assert_eq!(link.policy, Policy::DWCS);
        assert!(link.insecure && link.ordered);
        assert_eq!(link.multicast.unwrap().to_string(), "239.77.0.0/24:7400");
        assert_eq!(link.proxy.as_deref(), Some("http://p:1"));
        let plain: LinkSpec = "connect=unix//run/a.sock".parse().unwrap();
        assert_eq!((plain.name(2).as_str(), plain.policy), ("link2", Policy::Vds));
    }

    #[test]
    fn a_medium_has_the_capacity_of_its_link_by_default() {
        let of = |text: &str| {
            let link: LinkSpec = format!("connect=tcp/a:1,{text}").parse().unwrap();
            link.medium.of(link.capacity).unwrap().unwrap()
        };
        let air = Medium::new("air", Capacity::from_bits_per_s(2_000_000).unwrap());
        assert_eq!(of("medium=air,capacity=2mbit"), air);
        assert_eq!(of("medium=air,medium_capacity=2mbit"), air);
        let mut slow = air;
        slow.access = Duration::from_millis(16).into();
        assert_eq!(of("medium=air,capacity=1mbit,medium_capacity=2mbit,medium_access=16ms"), slow);
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
            ("listen=ws/127.0.0.1:7600", "protocol quic, tls, tcp, unix"),
            ("connect=udp/robot:7600", "write quic/robot:7600"),
            ("listen=quic/127.0.0.1:7600,tls_cert=a", "tls_key is missing: give tls_cert, tls_key"),
            (
                "name=a\x1b[2J,listen=tcp/[::1]:1",
                "must be text of 1 to 255 bytes without line breaks",
            ),
            ("name=,listen=tcp/[::1]:1", "name has no value: write name=VALUE"),
            ("name=a,name=b,listen=tcp/[::1]:1", "name is given twice"),
            ("listen=tcp/[::1]:1,capacity=0mbit", "capacity is 0 bit/s"),
            ("listen=tcp/[::1]:1,policy=lottery", "policy 'lottery': unknown policy: must be fifo"),
            (
                "listen=tcp/[::1]:1,policy=dwcs-original-order",
                "drr, wf2q+, hfsc, rcsp, stop-and-go or rpq",
            ),
            (
                "listen=tcp/[::1]:1,medium=air",
                "medium 'air' has no capacity: give medium_capacity=2mbit",
            ),
            ("listen=tcp/[::1]:1,medium=air,capacity=auto", "medium 'air' needs a fixed capacity"),
            (
                "listen=tcp/[::1]:1,medium_access=1ms",
                "medium_access needs a medium: give medium=NAME",
            ),
            ("listen=tcp/[::1]:1,medium_access=2s", "medium_access '2s': must be at most 1 s"),
            ("listen=tcp/[::1]:1,medium=air,medium_capacity=auto", "must be fixed, such as 2mbit"),
            ("listen=tcp/[::1]:1,medium_capacity=0bit", "medium_capacity '0bit'"),
            ("listen=tcp/[::1]:1,insecure=yes", "insecure takes no value"),
            ("listen=tcp/[::1]:1,ordered=1", "ordered takes no value"),
            ("listen=tcp/[::1]:1,multicast=10.0.0.0/24:1", "multicast '10.0.0.0/24:1'"),
        ] {
            let error = text.parse::<LinkSpec>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
