//! The binary: passes its arguments to the library and returns the exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    stepscope::run(std::env::args_os()).into()
}
