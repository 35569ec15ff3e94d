//! A host in a process of its own, with nothing else in it: for memory, starts and kills. And a
//! blocking client to it, as small as an honest one can be.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::Value;

/// How long an answer, and what is waited for, may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often something that is waited for is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// Kernel ticks a second in `/proc`, by the kernel's interface.
const TICKS: f64 = 100.0;

/// Before the address in the ready line.
const READY: &str = "oncue: ready on http://";

/// A running host. Killed when it is dropped.
pub(crate) struct Host {
    process: Child,
    address: String,
    /// From the start of the process until it was ready.
    pub(crate) ready: Duration,
    /// When the process was started.
    pub(crate) begun: Instant,
}

impl Host {
    /// Starts a host over `home`, and waits until it is ready.
    pub(crate) fn start(home: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(home.join("plugins"))?;
        let log = home.join("host.log");
        let begun = Instant::now();
        let mut process = Command::new(std::env::current_exe()?)
            .args(["oncue", "serve", "--listen", "127.0.0.1:0", "--log", "warn"])
            .args(["--data-dir", "data", "--plugins-dir", "plugins"])
            .current_dir(home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .spawn()
            .context("start the host")?;
        let mut line = String::new();
        if let Some(out) = process.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let ready = begun.elapsed();
        let address = line
            .strip_prefix(READY)
            .and_then(|rest| rest.split_whitespace().next());
        let Some(address) = address else {
            let _ = process.kill();
            let _ = process.wait();
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            anyhow::bail!("the host did not start: {log}");
        };
        let address = address.to_owned();
        Ok(Self {
            process,
            address,
            ready,
            begun,
        })
    }

    /// A connection to it.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        Client::connect(&self.address)
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(mut self) -> anyhow::Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Ends it as an operator would.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let id = self.process.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status()?;
        self.process.wait()?;
        Ok(())
    }

    /// Resident memory, in bytes.
    pub(crate) fn resident(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        Ok(number.context("no VmRSS")?.parse::<f64>()? * 1024.0)
    }

    /// Processor time so far, in seconds.
    pub(crate) fn spent(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        // The name, in parentheses, may hold anything.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let ticks = fields.split_whitespace().skip(11).take(2);
        Ok(ticks.filter_map(|t| t.parse::<f64>().ok()).sum::<f64>() / TICKS)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A connection that is kept alive.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    fn connect(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).context("connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// One request that must succeed; its answer.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> anyhow::Result<Vec<u8>> {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {content_type}\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.stream.get_mut().write_all(&request)?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let ok = line
            .split_whitespace()
            .nth(1)
            .is_some_and(|status| status.starts_with('2'));
        let mut length = 0;
        loop {
            let mut header = String::new();
            self.stream.read_line(&mut header)?;
            let Some((name, value)) = header.split_once(':') else {
                break;
            };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse()?;
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer)?;
        let text = || String::from_utf8_lossy(&answer).into_owned();
        anyhow::ensure!(ok, "{method} {path} answered {line}{}", text());
        Ok(answer)
    }

    /// The same with JSON both ways.
    pub(crate) fn json(&mut self, method: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        let body = match body {
            Value::Null => Vec::new(),
            body => serde_json::to_vec(body)?,
        };
        let answer = self.send(method, path, "application/json", &body)?;
        Ok(serde_json::from_slice(&answer).unwrap_or(Value::Null))
    }

    /// A number in an answer.
    pub(crate) fn number(&mut self, path: &str, field: &str) -> anyhow::Result<u64> {
        let answer = self.json("GET", path, &Value::Null)?;
        let number = answer.get(field).and_then(Value::as_u64);
        number.with_context(|| format!("{path} has no number {field}"))
    }

    /// Waits until something holds.
    pub(crate) fn until(
        &mut self,
        mut holds: impl FnMut(&mut Self) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let begun = Instant::now();
        while !holds(self)? {
            anyhow::ensure!(
                begun.elapsed() < PATIENCE,
                "it did not come to that in time"
            );
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Waits until a plugin serves.
    pub(crate) fn serves(&mut self, plugin: &str) -> anyhow::Result<()> {
        self.until(|client| {
            let plugins = client.json("GET", "/v1/plugins", &Value::Null)?;
            let mut plugins = plugins["plugins"].as_array().into_iter().flatten();
            Ok(plugins.any(|one| one["name"] == plugin && one["state"] == "ready"))
        })
    }
}

/// Puts the echo sample into a host's plugins directory, whole at once. Each `version` is another
/// file to the host: a section that nobody reads says which.
pub(crate) fn drop_echo(home: &Path, version: u32) -> anyhow::Result<()> {
    let plugins = home.join("plugins");
    std::fs::create_dir_all(&plugins)?;
    let manifest = plugins.join("echo.toml");
    if !manifest.exists() {
        std::fs::copy(oncue_artifacts::ECHO_MANIFEST, manifest)?;
    }
    let mut component = std::fs::read(oncue_artifacts::ECHO)?;
    if version > 0 {
        // A custom section: its length, its name's length, its name, the version.
        component.extend_from_slice(&[0, 6, 1, b'v']);
        component.extend_from_slice(&version.to_le_bytes());
    }
    let partial = plugins.join(".partial");
    std::fs::write(&partial, component)?;
    std::fs::rename(partial, plugins.join("echo.wasm"))?;
    Ok(())
}

/// Takes it away again, and waits until the host has seen it.
pub(crate) fn remove_echo(home: &Path, client: &mut Client) -> anyhow::Result<()> {
    for file in ["echo.wasm", "echo.toml"] {
        std::fs::remove_file(home.join("plugins").join(file))?;
    }
    client.until(|client| {
        let plugins = client.json("GET", "/v1/plugins", &Value::Null)?;
        Ok(plugins["plugins"].as_array().is_some_and(Vec::is_empty))
    })
}

/// Does something for each of the numbers below `count`, on several connections at once.
pub(crate) fn in_parallel(
    host: &Host,
    connections: usize,
    count: usize,
    each: impl Fn(&mut Client, usize) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        let each = &each;
        let threads: Vec<_> = (0..connections)
            .map(|first| {
                scope.spawn(move || {
                    let mut client = host.client()?;
                    let mut numbers = (first..count).step_by(connections);
                    numbers.try_for_each(|number| each(&mut client, number))
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .map_err(|_panic| anyhow::anyhow!("a client panicked"))?
        })
    })
}
