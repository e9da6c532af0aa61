//! The Debian package: the static binary, its service, manual pages and shell completions.

use super::archive::{Tar, ar, compress};
use super::proof::{self, Folder};
use super::{Artefact, Plan, VERSION, output};
use crate::setup;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The path of the installed binary, without the first slash.
const PROGRAM: &str = "usr/bin/paceline";
const UNIT: &str = "usr/lib/systemd/system/paceline.service";
const PAGES: &str = "usr/share/man/man1";
const DOC: &str = "usr/share/doc/paceline";
/// The shells, with the path of their completion scripts.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "usr/share/bash-completion/completions/paceline"),
    ("fish", "usr/share/fish/vendor_completions.d/paceline.fish"),
    ("zsh", "usr/share/zsh/vendor-completions/_paceline"),
];
/// Runs after installation. Does not enable the service: a host without a node is complete, because
/// every command opens a node of its own.
const AFTER_INSTALL: &str = "\
#!/bin/sh
set -e
if [ -z \"$DPKG_ROOT\" ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart paceline.service
fi
";
/// Runs before removal, and before the installation of another version.
const BEFORE_REMOVAL: &str = "\
#!/bin/sh
set -e
if [ \"$1\" = remove ] && [ -z \"$DPKG_ROOT\" ] && [ -d /run/systemd/system ]; then
    systemctl disable --now paceline.service
fi
";

/// The parts of a package.
struct Package {
    name: String,
    bytes: Vec<u8>,
    /// The compressed archive of the files.
    data: Vec<u8>,
}

/// A file of a package: its path, its mode and its content.
type File = (String, u32, Vec<u8>);

/// Builds the package, installs it below an empty folder, and runs it there.
pub(super) fn build(plan: &Plan<'_>, binary: &Path) -> Result<Artefact> {
    let package = package(&files(plan.root, binary)?, time(plan.root))?;
    let file = plan.out.join(&package.name);
    fs::write(&file, &package.bytes).with_context(|| file.display().to_string())?;
    let folder = Folder::new("root")?;
    let how = install(&package, &file, folder.path())?;
    let unit = fs::read_to_string(folder.path().join(UNIT)).context(UNIT)?;
    anyhow::ensure!(unit.contains(&format!("\"/{PROGRAM}\" node")), "{UNIT}:\n{unit}");
    let works = proof::works(&folder.path().join(PROGRAM))?;
    Ok(Artefact { file, proof: format!("{how}; {works}") })
}

/// Installs the package with dpkg, or unpacks it where that is not possible. Returns the method.
fn install(package: &Package, file: &Path, root: &Path) -> Result<&'static str> {
    if setup::find("dpkg").is_some() && setup::is_root() {
        fs::create_dir_all(root.join("var/lib/dpkg/info"))?;
        fs::create_dir_all(root.join("var/lib/dpkg/updates"))?;
        fs::write(root.join("var/lib/dpkg/status"), "")?;
        let mut dpkg = Command::new("dpkg");
        dpkg.arg("--root").arg(root).arg("--force-script-chrootless");
        output(dpkg.arg("--install").arg(file))?;
        return Ok("dpkg --root");
    }
    let data = root.join("data.tar");
    fs::write(&data, &package.data)?;
    output(Command::new("tar").arg("-xf").arg(&data).arg("-C").arg(root))?;
    Ok("unpacked with tar, because dpkg needs root")
}

/// Returns the files of the package.
fn files(root: &Path, binary: &Path) -> Result<Vec<File>> {
    let text = |args: &[&str]| output(Command::new(binary).args(args));
    let gzip = |bytes: &[u8]| compress("gzip", &["-9n"], bytes);
    let read = |name: &str| fs::read(root.join(name)).with_context(|| name.to_owned());
    let mut files = vec![(PROGRAM.to_owned(), 0o755, fs::read(binary)?)];
    let unit = String::from_utf8(text(&["node", "--print-unit"])?)?;
    files.push((UNIT.to_owned(), 0o644, with_program(&unit)?.into_bytes()));
    for (shell, path) in COMPLETIONS {
        files.push(((*path).to_owned(), 0o644, text(&["completion", shell])?));
    }
    let pages = Folder::new("man")?;
    output(Command::new(binary).args(["man", "--out"]).arg(pages.path()))?;
    for page in fs::read_dir(pages.path())? {
        let page = page?;
        let name = format!("{PAGES}/{}.gz", page.file_name().to_string_lossy());
        files.push((name, 0o644, gzip(&fs::read(page.path())?)?));
    }
    let copyright = ["Copyright: the Paceline authors\n\n".as_bytes(), &read("LICENSE")?].concat();
    files.push((format!("{DOC}/copyright"), 0o644, copyright));
    files.push((format!("{DOC}/changelog.gz"), 0o644, gzip(&read("CHANGELOG.md")?)?));
    files.sort();
    Ok(files)
}

/// Returns the unit with the path of the installed binary.
fn with_program(unit: &str) -> Result<String> {
    let start = "ExecStart=\"";
    let parts = unit.split_once(start).and_then(|(before, rest)| {
        rest.split_once('"').map(|(_, after)| format!("{before}{start}/{PROGRAM}\"{after}"))
    });
    parts.context("paceline node --print-unit: no ExecStart=\"…\"")
}

/// Returns the package of these files.
fn package(files: &[File], time: u64) -> Result<Package> {
    let (xz, gzip): (&[&str], &[&str]) = (&["-6", "-T1"], &["-9n"]);
    let (program, args, ending) = match setup::find("xz") {
        Some(_) => ("xz", xz, "xz"),
        None => ("gzip", gzip, "gz"),
    };
    let mut data = Tar::new(time)?;
    for (path, mode, content) in files {
        data.add(path, *mode, content)?;
    }
    let data = compress(program, args, &data.finish())?;
    let mut control = Tar::new(time)?;
    let bytes = files.iter().map(|(_, _, content)| content.len()).sum();
    let (architecture, text) = (architecture(std::env::consts::ARCH)?, control_text(bytes)?);
    control.add("control", 0o644, text.as_bytes())?;
    control.add("postinst", 0o755, AFTER_INSTALL.as_bytes())?;
    control.add("prerm", 0o755, BEFORE_REMOVAL.as_bytes())?;
    let control = compress(program, args, &control.finish())?;
    // This order is part of the format.
    let members = [
        ("debian-binary", &b"2.0\n"[..]),
        (&format!("control.tar.{ending}"), &control),
        (&format!("data.tar.{ending}"), &data),
    ];
    let bytes = ar(&members, time)?;
    Ok(Package { name: format!("paceline_{}_{architecture}.deb", version()), bytes, data })
}

/// Returns the control file of a package with this size of all files in bytes.
fn control_text(bytes: usize) -> Result<String> {
    Ok(format!(
        "\
Package: paceline
Version: {}
Architecture: {}
Maintainer: The Paceline authors
Installed-Size: {}
Section: net
Priority: optional
Description: real-time publish/subscribe with a deadline per subscriber
 Every subscriber gets each stream at its own rate, size and deadline, or a
 refusal before the first byte. This package contains the paceline command,
 and a systemd service that runs a node of this host. The service starts with
 the host after: systemctl enable --now paceline
",
        version(),
        architecture(std::env::consts::ARCH)?,
        bytes.div_ceil(1024),
    ))
}

/// Returns the version as Debian writes it: a tilde sorts before the release.
fn version() -> String {
    VERSION.replace('-', "~")
}

/// Returns Debian's name of a processor architecture.
fn architecture(name: &str) -> Result<&'static str> {
    Ok(match name {
        "x86_64" => "amd64",
        "x86" => "i386",
        "aarch64" => "arm64",
        "arm" => "armhf",
        "riscv64" => "riscv64",
        other => bail!("no Debian architecture for {other}"),
    })
}

/// Returns the time of the current commit, so that a second build gives the same package.
fn time(root: &Path) -> u64 {
    let log = Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root).output();
    let seconds = log.ok().and_then(|log| String::from_utf8_lossy(&log.stdout).trim().parse().ok());
    seconds.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_starts_the_installed_binary() {
        let unit = "[Service]\nType=notify\nExecStart=\"/tmp/a b/paceline\" node\nNice=-10\n";
        let expected = "[Service]\nType=notify\nExecStart=\"/usr/bin/paceline\" node\nNice=-10\n";
        assert_eq!(with_program(unit).unwrap(), expected);
        assert!(with_program("[Service]\nType=notify\n").is_err());
    }

    #[test]
    fn the_control_file_has_the_fields_that_dpkg_needs() {
        let text = control_text(2049).unwrap();
        for field in ["Package: paceline", "Maintainer: The Paceline authors", "Installed-Size: 3"]
        {
            assert!(text.lines().any(|line| line == field), "{field}: {text}");
        }
        assert!(text.ends_with('\n') && !text.contains("\n\n"));
        assert_eq!(architecture("x86_64").unwrap(), "amd64");
        assert!(architecture("z80").is_err());
    }

    #[test]
    fn dpkg_reads_the_package() {
        let files = [(PROGRAM.to_owned(), 0o755, b"#!/bin/sh\n".to_vec())];
        let package = package(&files, 1_700_000_000).unwrap();
        let folder = std::env::temp_dir().join(format!("paceline-deb-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(&package.name);
        fs::write(&file, &package.bytes).unwrap();
        if setup::find("dpkg-deb").is_none() {
            println!("skipped: dpkg-deb is not installed");
        } else {
            let field = |name| output(Command::new("dpkg-deb").arg("-f").arg(&file).arg(name));
            assert_eq!(field("Package").unwrap(), b"paceline\n");
            let list = output(Command::new("dpkg-deb").arg("-c").arg(&file)).unwrap();
            let list = String::from_utf8(list).unwrap();
            let line = list.lines().find(|line| line.ends_with("./usr/bin/paceline")).unwrap();
            assert!(line.starts_with("-rwxr-xr-x root/root"), "{line}");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_scripts_are_shell() {
        for script in [AFTER_INSTALL, BEFORE_REMOVAL] {
            output(Command::new("sh").args(["-n", "-c", script])).unwrap();
        }
    }
}
