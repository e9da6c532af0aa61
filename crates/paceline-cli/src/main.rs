//! The `paceline` binary.

use paceline_cli::threads;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some((name, value)) = threads::setting() {
        #[expect(unsafe_code, reason = "Zenoh reads it from the environment only")]
        // SAFETY: no other thread runs yet, so none reads the environment.
        unsafe {
            std::env::set_var(name, value);
        }
    }
    paceline_cli::main(std::env::args_os())
}
