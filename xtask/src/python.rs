//! The Python package: builds a wheel, installs it in a virtual environment and tests it. Without
//! Python this step is skipped.

use crate::setup;
use crate::steps::Outcome;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The oldest supported Python is 3.x with this x.
const PYTHON_MIN: u32 = 11;
/// The time limit of the tests in seconds.
const TEST_WITHIN: &str = "170";
/// The pinned packages to install. The tests and the build read the same list.
const TOOLS: &str = "python/tools.txt";

/// Builds, installs and tests the package.
pub(crate) fn run(root: &Path) -> Outcome {
    let python = match find() {
        Ok(python) => python,
        Err(lack) => {
            println!("skipped: python/tests: {lack}");
            return Outcome::passed(&format!("skipped: {lack}"));
        }
    };
    match check(root, &python) {
        Ok(()) => Outcome::passed(""),
        Err(problem) => Outcome::failed(&problem),
    }
}

/// The environment variable with the interpreter of tests that are not Python's own.
pub(crate) const PYTHON: &str = "PACELINE_PYTHON";

/// Installs the tools, among them the packages that other tests use.
pub(crate) fn prepare(root: &Path) -> Outcome {
    match find() {
        Ok(python) => match tools(root, &python) {
            Ok(_) => Outcome::passed(""),
            Err(problem) => Outcome::failed(&problem),
        },
        Err(lack) => Outcome::passed(&format!("skipped: {lack}")),
    }
}

/// Returns the interpreter with the tools: of the environment, or the installed one; `target` is cargo's target folder.
pub(crate) fn interpreter(target: &Path) -> Option<PathBuf> {
    let named = std::env::var_os(PYTHON).map(PathBuf::from);
    let installed = target.join("python/bin/python");
    named.or_else(|| Some(installed).filter(|file| file.is_file()))
}

fn check(root: &Path, python: &Path) -> Result<(), String> {
    let room = install(root, python)?;
    let within = |name: &str| {
        let mut command = Command::new("timeout");
        command.args([TEST_WITHIN.as_ref(), room.join("bin").join(name).as_os_str()]);
        command.current_dir(root.join("python")).env("PYTHONDONTWRITEBYTECODE", "1");
        // Tests must import the installed package, not its sources, which lack the compiled part.
        command.env("MYPY_CACHE_DIR", room.join("mypy")).env("PYTHONSAFEPATH", "1");
        command
    };
    let stubs = ["paceline._native", "--mypy-config-file", "pyproject.toml"];
    run_tool("stubtest", within("stubtest").args(stubs))?;
    run_tool("mypy", &mut within("mypy"))?;
    run_tool("mypy", within("mypy").arg("../examples/python"))?;
    run_tool("pytest", within("pytest").env("PACELINE_ROOT", root))?;
    // A short run only checks that the benchmark works. Its figures are no measurement.
    let bench = ["-m", "paceline.bench", "--duration", "0.1s"];
    run_tool("paceline.bench", within("python").args(bench).stdout(Stdio::null()))
}

/// Installs a new wheel in the virtual environment of the tools. Returns its folder.
fn install(root: &Path, python: &Path) -> Result<PathBuf, String> {
    let room = tools(root, python)?;
    // The profile of the tests, so that cargo reuses their compiled dependencies.
    let wheel = wheel(root, &room, "dev", &room.join("wheels"))?;
    run_tool("pip", pip(&room).args(["--no-deps", "--force-reinstall"]).arg(wheel))?;
    Ok(room)
}

/// Creates a virtual environment with the tools, unless it exists. Returns its folder.
pub(crate) fn tools(root: &Path, python: &Path) -> Result<PathBuf, String> {
    let room = crate::web::target(root).join("python");
    let tools = root.join(TOOLS);
    let installed = room.join("tools.txt");
    // Programs of a virtual environment contain its path and do not start from another folder.
    let required = std::fs::read_to_string(&tools).map_err(|error| format!("{TOOLS}: {error}"))?;
    let required = format!("{}\n{required}", room.display());
    if std::fs::read_to_string(&installed).ok().as_ref() != Some(&required) {
        let mut venv = Command::new(python);
        run_tool("venv", venv.args(["-m", "venv", "--clear"]).arg(&room))?;
        run_tool("pip", pip(&room).arg("--requirement").arg(&tools))?;
        std::fs::write(&installed, required).map_err(|error| error.to_string())?;
    }
    Ok(room)
}

/// Builds the wheel with one of cargo's profiles, and removes older wheels from the folder `out`.
pub(crate) fn wheel(
    root: &Path,
    room: &Path,
    profile: &str,
    out: &Path,
) -> Result<PathBuf, String> {
    for old in wheels(out) {
        let _ = std::fs::remove_file(old);
    }
    let mut maturin = Command::new(room.join("bin/maturin"));
    maturin.current_dir(root.join("python")).env("CARGO_TARGET_DIR", crate::web::target(root));
    crate::forget_package(&mut maturin);
    let build = ["build", "--quiet", "--profile", profile, "--out"];
    run_tool("maturin", maturin.args(build).arg(out))?;
    wheels(out).next().ok_or_else(|| "maturin produced no wheel".to_owned())
}

/// Returns the wheels in a folder.
fn wheels(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.map(|file| file.path()).filter(|file| file.extension().is_some_and(|it| it == "whl"))
}

pub(crate) fn pip(room: &Path) -> Command {
    let mut pip = Command::new(room.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip
}

/// Runs a tool. Its output is shown.
fn run_tool(name: &str, command: &mut Command) -> Result<(), String> {
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: {status}")),
        Err(error) => Err(format!("cannot start {name}: {error}")),
    }
}

/// Returns a Python that is new enough and can create environments. Errors with the packages to
/// install.
pub(crate) fn find() -> Result<PathBuf, String> {
    let lack = format!("python3 not found: install Python 3.{PYTHON_MIN} or newer");
    let python = setup::find("python3").ok_or(lack)?;
    let script =
        format!("import sys, ensurepip, venv; sys.exit(sys.version_info < (3, {PYTHON_MIN}))");
    let output = Command::new(&python).args(["-c", &script]).output();
    match output {
        Ok(output) if output.status.success() => Ok(python),
        _ => Err(format!(
            "python3 is older than 3.{PYTHON_MIN} or cannot create environments: install python3 \
             and python3-venv"
        )),
    }
}
