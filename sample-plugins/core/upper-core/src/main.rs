//! A core module for preview 1, as many compilers emit: the host makes a component of it when it
//! is dropped. Standard input to standard output, in upper case.

use std::io::{Read, Write, stdin, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut body = String::new();
    if stdin().read_to_string(&mut body).is_err() {
        eprintln!("oncue-reject: the body is not UTF-8");
        return ExitCode::FAILURE;
    }
    let queue = std::env::var("ONCUE_QUEUE").unwrap_or_default();
    match write!(stdout(), "{} from {queue}", body.to_uppercase()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
