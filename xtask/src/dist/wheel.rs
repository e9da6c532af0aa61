//! The Python wheel, with the `paceline` command as a script.

use super::proof::{self, Folder};
use super::{Artefact, Plan, output};
use crate::python;
use anyhow::{Context, Result, anyhow};
use std::process::Command;

/// Builds the wheel, installs it in an empty environment without a package index, and runs it.
pub(super) fn build(plan: &Plan<'_>) -> Result<Artefact> {
    let interpreter = python::find().map_err(|lack| anyhow!(lack))?;
    let tools = python::tools(plan.root, &interpreter).map_err(|problem| anyhow!(problem))?;
    let wheel = python::wheel(plan.root, &tools, plan.profile.name(), &plan.out);
    let file = wheel.map_err(|problem| anyhow!(problem))?;
    let room = Folder::new("venv")?;
    output(Command::new(&interpreter).args(["-m", "venv"]).arg(room.path()))?;
    // Without an index, so that a dependency that is not optional would be an error.
    let mut pip = python::pip(room.path());
    output(pip.arg("--no-index").arg(&file)).context("pip")?;
    let program = room.path().join("bin/paceline");
    let proof = format!("pip; {}; {}", proof::works(&program)?, proof::demo(&program)?);
    let python = room.path().join("bin/python");
    output(Command::new(python).args(["-m", "paceline", "--version"]))?;
    Ok(Artefact { file, proof: format!("{proof}; python -m paceline") })
}
