//! The packages for crates.io, unpacked into a workspace of their own.

use super::{Artefact, Plan, VERSION, copy, empty, output, run_shown};
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The entry that the package of paceline-http has if the dashboard's page was built.
const PAGE: &str = "pages/dist/index.html";

/// The unpacked packages.
pub(super) struct Sources {
    folder: PathBuf,
    files: Vec<PathBuf>,
    /// True if the dashboard's page is in the package.
    has_page: bool,
}

impl Sources {
    /// Returns the manifest of the workspace.
    pub(super) fn manifest(&self) -> PathBuf {
        self.folder.join("Cargo.toml")
    }

    /// Returns the packages with their proof. `compiled` is true if the binary was compiled from
    /// them.
    pub(super) fn into_artefacts(self, compiled: bool) -> Vec<Artefact> {
        let compiled =
            if compiled { "unpacked; the binary is compiled from it" } else { "unpacked" };
        let page = match self.has_page {
            true => "; contains the dashboard",
            false => "; WITHOUT the dashboard: cargo xtask web builds it",
        };
        let artefact = |file: PathBuf| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let page = if name.starts_with("paceline-http-") { page } else { "" };
            Artefact { proof: format!("{compiled}{page}"), file }
        };
        self.files.into_iter().map(artefact).collect()
    }
}

/// Packages every published crate and unpacks the packages into an empty folder.
pub(super) fn package(plan: &Plan<'_>) -> Result<Sources> {
    let names = published(&plan.root.join("crates"))?;
    let mut cargo = crate::cargo(plan.root);
    // Verified later, by the build of the binary. The dashboard is not in git, which cargo would
    // refuse as an uncommitted change.
    cargo.args(["package", "--quiet", "--no-verify", "--allow-dirty"]);
    for name in &names {
        cargo.args(["--package", name]);
    }
    run_shown(cargo.env("CARGO_TARGET_DIR", &plan.target))?;
    let folder = plan.target.join("unpacked");
    empty(&folder)?;
    let mut files = Vec::new();
    for name in &names {
        let file = format!("{name}-{VERSION}.crate");
        let file = copy(&plan.target.join("package").join(&file), &plan.out, &file)?;
        // With the present time (-m): cargo compiles a file again only if it is newer than its
        // result, and packages contain a fixed time.
        output(Command::new("tar").arg("-xzmf").arg(&file).arg("-C").arg(&folder))?;
        files.push(file);
    }
    let root = fs::read_to_string(plan.root.join("Cargo.toml")).context("Cargo.toml")?;
    fs::write(folder.join("Cargo.toml"), workspace(&names, &root))?;
    fs::copy(plan.root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let mut metadata = crate::cargo(&folder);
    output(metadata.args(["metadata", "--format-version", "1", "--quiet"]))?;
    let has_page = folder.join(format!("paceline-http-{VERSION}")).join(PAGE).is_file();
    Ok(Sources { folder, files, has_page })
}

/// Returns the names of the crates in a folder that are published.
fn published(crates: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(crates).with_context(|| crates.display().to_string())? {
        let entry = entry?;
        let manifest = entry.path().join("Cargo.toml");
        // A folder without a manifest is no crate.
        let Ok(manifest) = fs::read_to_string(manifest) else { continue };
        if is_published(&manifest) {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    ensure!(!names.is_empty(), "{}: no crate is published", crates.display());
    names.sort();
    Ok(names)
}

fn is_published(manifest: &str) -> bool {
    !manifest.lines().any(|line| line.replace(' ', "") == "publish=false")
}

/// Returns the manifest of a workspace of the unpacked packages, in which each uses the others
/// instead of crates.io. `root` is the manifest of this workspace, for its profiles.
fn workspace(names: &[String], root: &str) -> String {
    let mut text = "[workspace]\nresolver = \"3\"\nmembers = [\n".to_owned();
    for name in names {
        let _ = writeln!(text, "    \"{name}-{VERSION}\",");
    }
    text.push_str("]\n\n[patch.crates-io]\n");
    for name in names {
        let _ = writeln!(text, "{name} = {{ path = \"{name}-{VERSION}\" }}");
    }
    text.push('\n');
    let mut is_profile = false;
    for line in root.lines() {
        if line.starts_with('[') {
            is_profile = line.starts_with("[profile.");
        }
        if is_profile {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_published_unless_its_manifest_forbids_it() {
        assert!(is_published("[package]\nname = \"a\"\n"));
        assert!(is_published("# publish = false in the lab\n"));
        assert!(!is_published("[package]\npublish = false\n"));
        assert!(!is_published("[package]\npublish=false\n"));
    }

    #[test]
    fn the_workspace_has_the_packages_and_the_profiles() {
        let root = "[workspace]\nmembers = [\"crates/a\"]\n[profile.dist]\nlto = \"thin\"\n\
            [workspace.lints.rust]\nmissing_docs = \"deny\"\n[profile.dev.package.\"*\"]\nopt-level = 3\n";
        let names = ["a".to_owned(), "b".to_owned()];
        let expected = format!(
            "[workspace]\nresolver = \"3\"\nmembers = [\n    \"a-{VERSION}\",\n    \"b-{VERSION}\",\n]\n\n\
             [patch.crates-io]\na = {{ path = \"a-{VERSION}\" }}\nb = {{ path = \"b-{VERSION}\" }}\n\n\
             [profile.dist]\nlto = \"thin\"\n[profile.dev.package.\"*\"]\nopt-level = 3\n"
        );
        assert_eq!(workspace(&names, root), expected);
    }
}
