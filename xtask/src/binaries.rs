//! The test binaries that cargo builds, and their requirements.

use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The requirement of a test binary on the machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Need {
    /// Processor time at any moment: its time is virtual, so a delay does not change its result.
    Processor,
    /// Real sockets, processes and clocks: it mostly sleeps, but must run promptly when it wakes.
    Clock,
    /// The whole machine: it checks measured rates.
    Machine,
}

/// Crates whose tests read no clock. The tests of all others do.
const VIRTUAL: &[&str] = &[
    "paceline-sched",
    "paceline-admit",
    "paceline-plan",
    "paceline-time",
    "paceline-proto",
    "paceline-sim",
    "paceline-media",
    "paceline-record",
    "paceline-edge",
    "paceline-fuzz",
    "xtask",
];

/// Tests of these crates that read the clock all the same, by package and target: a live node next to a hostile member.
const LIVE: &[(&str, &str)] = &[("paceline-fuzz", "member")];

/// Tests that check measured rates, by package and target: the newcomer's demo reports whether each
/// subscriber got its requested rate.
const MEASURING: &[(&str, &str)] = &[("paceline-cli", "newcomer")];

/// A test binary.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Binary {
    pub(crate) package: String,
    pub(crate) target: String,
    /// The folder of the package, which is the working directory of its tests.
    pub(crate) folder: PathBuf,
    pub(crate) file: PathBuf,
}

impl Binary {
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.package, self.target)
    }

    pub(crate) fn need(&self) -> Need {
        let test = (self.package.as_str(), self.target.as_str());
        if MEASURING.contains(&test) {
            Need::Machine
        } else if LIVE.contains(&test) {
            Need::Clock
        } else if VIRTUAL.contains(&self.package.as_str()) {
            Need::Processor
        } else {
            Need::Clock
        }
    }

    /// Parses a line of cargo's JSON. Returns `None` unless it describes a test binary.
    fn read(line: &str) -> Option<Self> {
        let file = PathBuf::from(text(line, "executable")?);
        // Binaries and examples are built too, without their tests.
        if !line.contains("\"test\":true},\"features\"") {
            return None;
        }
        let manifest = PathBuf::from(text(line, "manifest_path")?);
        let folder = manifest.parent()?.to_owned();
        let package = folder.file_name()?.to_str()?.to_owned();
        let target = line.split_once("\"target\":").and_then(|(_, rest)| text(rest, "name"))?;
        Some(Self { package, target: target.to_owned(), folder, file })
    }
}

/// Returns the text of a field of a JSON object. Cargo's names and paths contain no escapes.
fn text<'a>(line: &'a str, field: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("\"{field}\":\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

/// Builds all tests of the workspace.
pub(crate) fn build(root: &Path) -> Result<Vec<Binary>, String> {
    let mut cargo = crate::cargo(root);
    cargo.args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    let output = cargo.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cannot start cargo test: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo test --no-run: {}", output.status));
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    let binaries: Vec<Binary> = lines.lines().filter_map(Binary::read).collect();
    if binaries.is_empty() {
        return Err("cargo test --no-run named no test binary".to_owned());
    }
    Ok(binaries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(folder: &str, kind: &str, name: &str, test: bool) -> String {
        format!(
            "{{\"reason\":\"compiler-artifact\",\"manifest_path\":\"/w/crates/{folder}/Cargo.toml\",\
             \"target\":{{\"kind\":[\"{kind}\"],\"name\":\"{name}\",\"test\":true}},\
             \"profile\":{{\"opt_level\":\"2\",\"test\":{test}}},\"features\":[],\
             \"executable\":\"/w/target/debug/deps/{name}-1\",\"fresh\":true}}"
        )
    }

    #[test]
    fn test_binaries_and_their_requirements_are_found() {
        let read = |folder, kind, name| Binary::read(&artifact(folder, kind, name, true)).unwrap();
        let oracle = read("paceline-sched", "test", "oracles");
        assert_eq!(
            (oracle.name().as_str(), oracle.need()),
            ("paceline-sched oracles", Need::Processor)
        );
        assert_eq!(oracle.file, Path::new("/w/target/debug/deps/oracles-1"));
        assert_eq!(oracle.folder, Path::new("/w/crates/paceline-sched"));
        assert_eq!(read("paceline", "test", "live").need(), Need::Clock);
        assert_eq!(read("paceline-new", "lib", "paceline_new").need(), Need::Clock);
        assert_eq!(read("paceline-fuzz", "test", "member").need(), Need::Clock);
        assert_eq!(read("paceline-fuzz", "test", "hostile").need(), Need::Processor);
        assert_eq!(read("paceline-cli", "test", "newcomer").need(), Need::Machine);
        assert_eq!(Binary::read(&artifact("paceline", "example", "hello", false)), None);
        assert_eq!(Binary::read("{\"reason\":\"build-finished\",\"success\":true}"), None);
    }
}
