//! A lean HTTP/1.1 client over one connection kept alive: whole requests are sent as they were
//! prepared, of an answer only what the benchmarks need is read. It must not be the bottleneck of
//! what it measures, which is why it is no general client.

use std::net::SocketAddr;

use anyhow::Context as _;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longest head of an answer, in bytes.
const MAX_HEAD: usize = 16 << 10;

/// Longest body of an answer, in bytes.
const MAX_BODY: usize = 32 << 20;

/// A whole request, prepared once and sent as often as wanted.
pub(crate) fn request(method: &str, path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {content_type}\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    /// What came in: an answer, whole.
    read: Vec<u8>,
    /// Where its body starts.
    body: usize,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("connect")?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            read: Vec::with_capacity(MAX_HEAD),
            body: 0,
        })
    }

    /// Sends a prepared request and reads the answer; its status.
    pub(crate) async fn send(&mut self, request: &[u8]) -> anyhow::Result<u16> {
        self.stream.write_all(request).await.context("send")?;
        self.read.clear();
        let head = loop {
            if let Some(end) = find(&self.read, b"\r\n\r\n") {
                break end + 4;
            }
            anyhow::ensure!(self.read.len() < MAX_HEAD, "the answer's head is too long");
            self.more().await?;
        };
        self.body = head;
        let length = match self.header("content-length") {
            Some(length) => length.parse().context("a length")?,
            None => 0,
        };
        anyhow::ensure!(length <= MAX_BODY, "the answer's body is too long");
        anyhow::ensure!(
            self.header("transfer-encoding").is_none(),
            "the answer has no length"
        );
        while self.read.len() < head + length {
            self.more().await?;
        }
        let status = self
            .read
            .get(9..12)
            .and_then(|text| std::str::from_utf8(text).ok());
        status
            .and_then(|text| text.parse().ok())
            .context("the answer has no status")
    }

    /// A header of the last answer; `name` in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let head = std::str::from_utf8(&self.read[..self.body]).ok()?;
        head.split("\r\n").find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The body of the last answer.
    pub(crate) fn body(&self) -> &[u8] {
        &self.read[self.body..]
    }

    /// One request that must succeed, its answer as JSON.
    pub(crate) async fn json(
        &mut self,
        method: &str,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<Value> {
        let text = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let request = request(method, path, "application/json", text.as_bytes());
        let status = self.send(&request).await?;
        let text = String::from_utf8_lossy(self.body());
        anyhow::ensure!(status < 300, "{method} {path} answered {status}: {text}");
        Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// Messages in a queue.
    pub(crate) async fn depth(&mut self, queue: &str) -> anyhow::Result<u64> {
        let path = format!("/v1/queues/{queue}");
        self.json("GET", &path, &Value::Null).await?["depth"]
            .as_u64()
            .context("a queue's depth")
    }

    async fn more(&mut self) -> anyhow::Result<()> {
        let count = self.stream.read_buf(&mut self.read).await.context("read")?;
        anyhow::ensure!(count > 0, "the host closed the connection");
        Ok(())
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}
