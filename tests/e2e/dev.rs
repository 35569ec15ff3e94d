//! `oncue dev`: a project is built, served and built again as its files change, and its author sees
//! what its handler does. The build is a copy, so no toolchain is needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::host::{Host, oncue};
use crate::wait::until;
use crate::work::sample;

/// Copies a component that somebody has built; fails while a file `broken` is there.
const BUILD: &str = "if [ -e broken ]; then echo 'handler.c:7: no such thing' >&2; exit 1; fi; \
                     cp prebuilt.wasm handler.wasm";

const MANIFEST: &str = "[process.grants]\nput = [\"echo.out\", \"settled\"]\n[queue.work]\n";

/// A project's folder.
struct Folder(tempfile::TempDir);

impl Folder {
    /// Writes a golden case of what `batch-settle` does.
    fn case(&self, text: &str, puts: &str) {
        let case = self.path().join("cases/one");
        std::fs::create_dir_all(&case).expect("a folder");
        let input = json!({"queue": "work", "messages": [{"text": text}]});
        let put = json!({"queue": "settled", "text": puts, "correlation-id": "{{message 1}}"});
        let expected = json!({
            "messages": [{"outcome": "committed"}], "puts": [put],
            "state": {format!("settled.{text}"): {"text": "yes"}},
        });
        self.write("cases/one/input.json", input.to_string().as_bytes());
        self.write("cases/one/expected.json", expected.to_string().as_bytes());
    }

    fn new(build: &str) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        let project = format!(
            "[project]\nname = \"work\"\nbuild = \"\"\"{build}\"\"\"\n\
             component = \"handler.wasm\"\nmanifest = \"work.toml\"\ncases = \"cases\"\n"
        );
        folder.write("oncue-project.toml", project.as_bytes());
        folder.write("work.toml", MANIFEST.as_bytes());
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, whole at once, as editors do.
    fn write(&self, name: &str, bytes: &[u8]) {
        let partial = self.path().join(format!("{name}.partial"));
        std::fs::write(&partial, bytes).expect("written");
        std::fs::rename(&partial, self.path().join(name)).expect("renamed");
    }

    /// Puts a sample's component where the build finds it.
    fn prebuilt(&self, name: &str) {
        let bytes = std::fs::read(sample(name).component).expect("a component");
        self.write("prebuilt.wasm", &bytes);
    }

    fn dev(&self, flags: &[&str]) -> Host {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oncue"));
        command
            .arg("dev")
            .arg(self.path())
            .args(["--listen", "127.0.0.1:0"])
            .args(flags);
        Host::of(command).unwrap_or_else(|log| panic!("no start:\n{log}"))
    }
}

fn says(host: &Host, text: &str) {
    until(&format!("\"{text}\" on stdout"), || {
        host.out().contains(text)
    });
}

/// Puts a message as an author does, from another terminal.
fn put(host: &Host, body: &str) {
    let (code, _, talk) = oncue(host, &["put", "work", body]);
    assert_eq!(code, 0, "{talk}");
}

/// Ends it as Ctrl-C does.
fn interrupt(mut host: Host) {
    host.signal("INT");
    until("the end", || !host.is_running());
    let (code, log) = host.wait();
    assert_eq!(code, 0, "{log}");
}

#[test]
fn a_project_is_built_served_and_built_again_when_it_changes() {
    let folder = Folder::new(BUILD);
    folder.prebuilt("echo");
    let host = folder.dev(&[]);
    says(&host, "plugin work: ready");
    says(&host, "queue \"echo.out\" was made");
    let first = host.wait_for_plugin("work", "ready")["digest"].clone();
    put(&host, "one");
    says(&host, "put echo.out: one");
    assert!(
        host.out().contains("of work: committed in"),
        "{}",
        host.out()
    );

    folder.prebuilt("batch-settle");
    until("another version", || {
        host.get("/v1/plugins/work").json()["digest"] != first
    });
    put(&host, "two");
    says(&host, "put settled: two");

    // The build fails: the compiler's own words are shown, and the version before serves on.
    let second = host.get("/v1/plugins/work").json()["digest"].clone();
    folder.write("broken", b"");
    says(&host, "the build failed (exit status: 1)");
    until("the compiler's words", || {
        host.log().contains("handler.c:7: no such thing")
    });
    put(&host, "trap");
    says(&host, "of work: trapped");
    says(&host, "the body says trap");
    says(&host, "oncue task export");
    assert_eq!(host.get("/v1/plugins/work").json()["digest"], second);
    // A bad component is said too, and the one before serves on.
    folder.write("prebuilt.wasm", b"no component");
    std::fs::remove_file(folder.path().join("broken")).expect("removed");
    says(&host, "plugin work: quarantined");
    put(&host, "three");
    says(&host, "put settled: three");
    interrupt(host);

    // What was there is there again.
    let host = folder.dev(&[]);
    until("the messages of before", || {
        host.get("/v1/queues/settled").status == 200 && host.depth("settled") == 2
    });
    interrupt(host);
}

#[test]
fn the_golden_cases_run_after_each_build() {
    let folder = Folder::new(BUILD);
    folder.prebuilt("batch-settle");
    folder.case("hello", "another");
    let host = folder.dev(&["--test"]);
    says(&host, "the golden cases fail (exit status: 1)");
    folder.case("hello", "hello");
    says(&host, "the golden cases pass");
    interrupt(host);
}

#[test]
fn the_end_takes_a_build_with_it_that_still_runs() {
    let folder = Folder::new("sleep 1000 & echo $! > .part && mv .part .pid; wait");
    let host = folder.dev(&[]);
    let pid: PathBuf = folder.path().join(".pid");
    until("the build", || pid.exists());
    let pid = std::fs::read_to_string(&pid).expect("a number");
    interrupt(host);
    let stat = format!("/proc/{}/stat", pid.trim());
    until("the end of what the build started", || {
        let stat = std::fs::read_to_string(&stat).unwrap_or_default();
        let state = stat.rsplit_once(") ").map(|(_, state)| state.to_owned());
        state.is_none_or(|state| state.starts_with('Z'))
    });
}

#[test]
fn a_folder_without_a_project_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_oncue"))
        .arg("dev")
        .arg(folder.path())
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(3));
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(talk.contains("oncue-project.toml\" is not there"), "{talk}");
}
