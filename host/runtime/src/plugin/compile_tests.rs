//! Scripts in the child's place, and every way they can end.

use super::*;

const BOUNDS: CompileBounds = CompileBounds {
    timeout: Duration::from_secs(60),
    memory: 64 << 20,
};

/// Runs a shell script in the child's place; answers what it wrote.
fn run(script: &str, bounds: CompileBounds) -> Result<String, CompileError> {
    let arguments = ["-c", script, "child"].map(OsString::from).to_vec();
    let command = CompileCommand {
        program: "/bin/sh".into(),
        arguments,
    };
    let mut output = tempfile::tempfile().expect("a file");
    // More than a pipe holds: feeding and reading must not wait for each other.
    let component = vec![b'x'; 1 << 20];
    let compiler = Compiler::Child(command);
    compiler.compile(
        &component,
        "engine",
        &mut output,
        bounds,
        &AtomicBool::new(false),
    )?;
    let mut text = String::new();
    output.read_to_string(&mut text).expect("text");
    Ok(text)
}

fn check(script: &str, wanted: &CompileError) {
    assert_eq!(run(script, BOUNDS).as_ref(), Err(wanted), "{script}");
}

fn refused(text: &str) -> CompileError {
    CompileError::Refused(text.to_owned())
}

fn host(text: &str) -> CompileError {
    CompileError::Host(text.to_owned())
}

#[test]
fn the_child_gets_the_component_and_its_bounds() {
    let answer = run("echo $1 $3 $4 $(/usr/bin/env wc -c)", BOUNDS).expect("compiled");
    assert_eq!(
        answer.trim(),
        format!("compile {} 60 {}", 64 << 20, 1 << 20)
    );
    // A child that ends before it has read everything is no fault.
    assert_eq!(run("echo done", BOUNDS), Ok("done\n".to_owned()));
}

#[test]
fn every_end_of_the_child_has_its_words() {
    check(
        "echo no >&2; echo 'is bad' >&2; exit 10",
        &refused("is bad"),
    );
    check(
        "echo late >&2; exit 11",
        &host("it could not be compiled: late"),
    );
    check(
        "exit 0",
        &host("it could not be compiled: its child wrote nothing"),
    );
    check(
        "echo memory allocation of 9 bytes failed >&2; kill -ABRT $$",
        &refused(
            "it needs more than 64 MiB to be compiled; make it smaller or raise the bound \
             [compile-failed]",
        ),
    );
    check(
        "echo panicked >&2; exit 101",
        &refused("it made its compiler end with exit status: 101: panicked [compile-failed]"),
    );
    let loud = "i=0; while [ $i -lt 5000 ]; do echo 0123456789012345678901234567 >&2; \
                i=$((i+1)); done; echo fine";
    assert_eq!(run(loud, BOUNDS), Ok("fine\n".to_owned()));
}

#[test]
fn a_child_past_its_time_is_ended() {
    let bounds = CompileBounds {
        timeout: Duration::from_millis(30),
        ..BOUNDS
    };
    let text = "it was not compiled within 30ms; make it smaller or raise the bound \
                [compile-failed]";
    assert_eq!(
        run("exec cat /dev/zero >/dev/null", bounds),
        Err(refused(text))
    );
}

#[test]
fn a_stopping_host_waits_for_no_child() {
    let arguments = ["-c", "exec cat /dev/zero >/dev/null"]
        .map(OsString::from)
        .to_vec();
    let command = CompileCommand {
        program: "/bin/sh".into(),
        arguments,
    };
    let mut output = tempfile::tempfile().expect("a file");
    let stopping = AtomicBool::new(true);
    let compiler = Compiler::Child(command);
    let answer = compiler.compile(b"x", "engine", &mut output, BOUNDS, &stopping);
    assert_eq!(answer, Err(CompileError::Cancelled));
}

#[test]
fn a_program_that_is_not_there_is_the_hosts_fault() {
    let command = CompileCommand {
        program: "/nowhere".into(),
        arguments: Vec::new(),
    };
    let mut output = tempfile::tempfile().expect("a file");
    let (compiler, stopping) = (Compiler::Child(command), AtomicBool::new(false));
    let answer = compiler.compile(b"x", "engine", &mut output, BOUNDS, &stopping);
    assert!(matches!(answer, Err(CompileError::Host(_))), "{answer:?}");
}

#[test]
fn the_child_refuses_what_is_not_its_hosts_call() {
    assert_eq!(compile_child(&[]), UNABLE);
    assert_eq!(
        compile_child(&["x".to_owned(), "y".to_owned(), "z".to_owned()]),
        UNABLE
    );
}
