//! The real binary as a child process on port zero, with directories of its own, and a small HTTP
//! client to it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::wait::until;

/// Directories that outlive a host: what a restart finds again.
pub struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// The same on another disk.
    pub fn within(folder: &Path) -> Self {
        let directory = tempfile::tempdir_in(folder).expect("a temporary directory");
        let home = Self { directory };
        std::fs::create_dir_all(home.plugins()).expect("plugins directory");
        home
    }

    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub fn plugins(&self) -> PathBuf {
        self.directory.path().join("plugins")
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Copies a sample into the plugins directory, manifest and all.
    pub fn drop_sample(&self, sample: &oncue_artifacts::Artifact) {
        if let Some(manifest) = sample.manifest {
            self.copy(Path::new(manifest), &format!("{}.toml", sample.name));
        }
        self.copy(
            Path::new(sample.component),
            &format!("{}.wasm", sample.name),
        );
    }

    /// Copies a file into the plugins directory under a name, whole at once.
    pub fn copy(&self, from: &Path, name: &str) {
        let partial = self.plugins().join(format!(".{name}.partial"));
        std::fs::copy(from, &partial).expect("the file is copied");
        std::fs::rename(&partial, self.plugins().join(name)).expect("the file is renamed");
    }

    /// Starts the host and waits until it serves.
    pub fn start(&self) -> Host {
        self.start_with(&[], &[])
    }

    /// The same with more flags and environment.
    pub fn start_with(&self, flags: &[&str], environment: &[(&str, &str)]) -> Host {
        self.try_start(flags, environment)
            .unwrap_or_else(|log| panic!("no start:\n{log}"))
    }

    /// The command that starts the host.
    pub fn command(&self, flags: &[&str], environment: &[(&str, &str)]) -> Command {
        let binary = env!("CARGO_BIN_EXE_oncue");
        if environment
            .iter()
            .any(|(name, _)| *name == "ONCUE_FAIL_POINT")
        {
            let found = Command::new("grep")
                .args(["-aqF", "ONCUE_FAIL_POINT", binary])
                .status();
            let why = "the binary has no fail points: `cargo test --test e2e` builds one that has";
            assert!(found.expect("grep runs").success(), "{why}");
        }
        let mut command = Command::new(binary);
        command
            .arg("serve")
            .arg("--data-dir")
            .arg(self.data())
            .arg("--plugins-dir")
            .arg(self.plugins())
            .args(["--listen", "127.0.0.1:0"])
            .args(flags)
            .envs(environment.iter().copied())
            .current_dir(self.path());
        command
    }

    /// Starts the host; its log when it ends before it serves.
    pub fn try_start(&self, flags: &[&str], environment: &[(&str, &str)]) -> Result<Host, String> {
        Host::of(self.command(flags, environment))
    }
}

impl Host {
    /// The host that a command is, once it serves: its first line on stdout names its address.
    /// Its log when it ends before.
    pub fn of(mut command: Command) -> Result<Self, String> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let log = Arc::new(Mutex::new(String::new()));
        let stderr = child.stderr.take().expect("stderr is piped");
        let sink = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut log = sink.lock().expect("log");
                log.push_str(&line);
                log.push('\n');
            }
        });
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("stdout is read");
        let Some(url) = line
            .split_whitespace()
            .find(|word| word.starts_with("http://") || word.starts_with("https://"))
        else {
            let status = child.wait().expect("the host ended");
            let log = whole(&log);
            return Err(format!("{status}\n{line}\n{log}"));
        };
        let url = url.trim_end_matches(['/', ',']).to_owned();
        let out = Arc::new(Mutex::new(line));
        let sink = Arc::clone(&out);
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let mut out = sink.lock().expect("output");
                out.push_str(&line);
                out.push('\n');
            }
        });
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(std::time::Duration::from_secs(120)))
            .build()
            .into();
        Ok(Self {
            child,
            url,
            log,
            out,
            agent,
        })
    }
}

/// The log of a host that has ended: all of it, when its reader has let go of it.
fn whole(log: &Arc<Mutex<String>>) -> String {
    until("the end of the log", || Arc::strong_count(log) == 1);
    log.lock().expect("log").clone()
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: ureq::http::HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!(
                "{error}: {} {}",
                self.status,
                String::from_utf8_lossy(&self.body)
            )
        })
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The answer, which must have this status.
    pub fn expect(self, status: u16) -> Self {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{text}");
        self
    }
}

/// A running host.
pub struct Host {
    child: Child,
    pub url: String,
    log: Arc<Mutex<String>>,
    out: Arc<Mutex<String>>,
    pub agent: ureq::Agent,
}

impl Host {
    /// One request; a failed connection is an error.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, ureq::Error> {
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body).expect("a request");
        let mut response = self.agent.run(request)?;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = response
            .body_mut()
            .with_config()
            .limit(1 << 30)
            .read_to_vec()?;
        Ok(Answer {
            status,
            headers,
            body,
        })
    }

    pub fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], &[])
            .expect("the host answers")
    }

    pub fn post(&self, path: &str, body: &[u8]) -> Answer {
        self.request("POST", path, &[], body)
            .expect("the host answers")
    }

    pub fn send_json(&self, method: &str, path: &str, body: &Value) -> Answer {
        let headers = [("content-type", "application/json")];
        let body = serde_json::to_vec(body).expect("JSON");
        self.request(method, path, &headers, &body)
            .expect("the host answers")
    }

    /// Makes a queue.
    pub fn define(&self, queue: &str, attributes: Value) {
        let answer = self.send_json("PUT", &format!("/v1/queues/{queue}"), &attributes);
        assert!(
            answer.status < 300,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
    }

    /// Puts a message; answers its id.
    pub fn put(&self, queue: &str, body: &[u8]) -> String {
        self.put_with(queue, &[], body)
    }

    pub fn put_with(&self, queue: &str, headers: &[(&str, &str)], body: &[u8]) -> String {
        let path = format!("/v1/queues/{queue}/messages");
        let answer = self
            .request("POST", &path, headers, body)
            .expect("the host answers");
        assert!(
            matches!(answer.status, 200 | 201),
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
        answer.json()["id"].as_str().expect("an id").to_owned()
    }

    pub fn queue(&self, queue: &str) -> Value {
        self.get(&format!("/v1/queues/{queue}")).expect(200).json()
    }

    pub fn depth(&self, queue: &str) -> u64 {
        self.queue(queue)["depth"].as_u64().expect("a depth")
    }

    /// The code of the reason that holds a queue.
    pub fn reason(&self, queue: &str) -> String {
        self.queue(queue)["reason"]
            .as_str()
            .unwrap_or("fires")
            .to_owned()
    }

    /// All messages of a queue, browsed.
    pub fn browse(&self, queue: &str) -> Vec<Value> {
        let mut found = Vec::new();
        let mut cursor = String::new();
        for _ in 0..10_000 {
            let page = self
                .get(&format!("/v1/queues/{queue}/messages?{cursor}"))
                .expect(200)
                .json();
            let messages = page["messages"].as_array().expect("messages");
            found.extend(messages.iter().cloned());
            match page["next"].as_str() {
                Some(next) => cursor = format!("cursor={next}"),
                None => return found,
            }
        }
        panic!("the browse has no end");
    }

    /// Bodies of a queue's messages, as text.
    pub fn bodies(&self, queue: &str) -> Vec<String> {
        let ids = self.browse(queue);
        ids.iter()
            .map(|message| {
                let id = message["id"].as_str().expect("an id");
                let answer = self
                    .get(&format!("/v1/queues/{queue}/messages/{id}"))
                    .expect(200);
                String::from_utf8_lossy(&answer.body).into_owned()
            })
            .collect()
    }

    pub fn wait_for_depth(&self, queue: &str, depth: u64) {
        until(&format!("depth {depth} of {queue}"), || {
            self.depth(queue) == depth
        });
    }

    pub fn wait_for_plugin(&self, plugin: &str, state: &str) -> Value {
        let path = format!("/v1/plugins/{plugin}");
        until(&format!("plugin {plugin} to be {state}"), || {
            let answer = self.get(&path);
            answer.status == 200 && answer.json()["state"] == state
        });
        self.get(&path).expect(200).json()
    }

    /// Task records of a queue, newest first.
    pub fn tasks(&self, queue: &str) -> Vec<Value> {
        let answer = self
            .get(&format!("/v1/tasks?queue={queue}"))
            .expect(200)
            .json();
        answer.as_array().expect("a list").clone()
    }

    /// What the ledger has reserved: nothing, when nothing runs.
    pub fn reserved(&self) -> Value {
        self.get("/v1/ledger").expect(200).json()["reserved"].clone()
    }

    pub fn log(&self) -> String {
        self.log.lock().expect("log").clone()
    }

    /// What it has printed on stdout.
    pub fn out(&self) -> String {
        self.out.lock().expect("output").clone()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory in bytes.
    pub fn resident(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.id()));
        let text = text.unwrap_or_default();
        let line = text
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap_or_default();
        let kib = line
            .split_whitespace()
            .nth(1)
            .and_then(|n| n.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    }

    /// Ends it as a power switch would end the process: kill -9.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([&format!("-{name}"), &self.id().to_string()])
            .status()
            .expect("kill runs");
        assert!(status.success());
    }

    /// Ends it with SIGTERM and waits for its end; answers the exit code.
    pub fn stop(mut self) -> i32 {
        self.signal("TERM");
        self.child
            .wait()
            .expect("the host ends")
            .code()
            .unwrap_or(-1)
    }

    /// Stops all its threads where they are, and waits until none is in the midst of a system call.
    pub fn freeze(&self) {
        self.signal("STOP");
        let tasks = format!("/proc/{}/task", self.id());
        // The state stands behind the name, which ends with a parenthesis.
        let stopped = |stat: &str| {
            stat.rsplit_once(") ")
                .is_some_and(|(_, s)| s.starts_with('T'))
        };
        until("all threads to stop", || {
            std::fs::read_dir(&tasks).expect("it runs").all(|task| {
                let stat = task.map(|task| std::fs::read_to_string(task.path().join("stat")));
                matches!(stat, Ok(Ok(stat)) if stopped(&stat))
            })
        });
    }

    /// Waits for the end that a signal has asked for; answers the exit code and the log.
    pub fn wait(mut self) -> (i32, String) {
        let status = self.child.wait().expect("the host ends");
        (status.code().unwrap_or(-1), whole(&self.log))
    }

    /// True while the process runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the child is ours").is_none()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!(
                "log of the host:\n{}\nits output:\n{}",
                self.log(),
                self.out()
            );
        }
    }
}

/// Runs the command line against a host; answers exit code, standard output, standard error.
pub fn oncue(host: &Host, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_oncue"))
        .args(arguments)
        .env("ONCUE_URL", &host.url)
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}
