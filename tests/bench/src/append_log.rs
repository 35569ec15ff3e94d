//! A raw append log with group commit: what the disk itself allows for durable puts. One thread
//! takes all records that wait, writes them at once, syncs once, and answers.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;

use anyhow::Context as _;
use bytes::Bytes;
use tokio::sync::oneshot;

/// Records that wait for the thread.
const WAITING: usize = 4096;

/// Most bytes of one write.
const MAX_WRITE: usize = 16 << 20;

struct Record {
    body: Bytes,
    answer: oneshot::Sender<()>,
}

/// An open log. Cloned senders append; the thread ends with the last of them.
pub(crate) struct AppendLog {
    sender: mpsc::SyncSender<Record>,
    thread: JoinHandle<anyhow::Result<()>>,
}

impl AppendLog {
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let (sender, receiver) = mpsc::sync_channel(WAITING);
        let thread = std::thread::spawn(move || write(file, &receiver));
        Ok(Self { sender, thread })
    }

    pub(crate) fn appender(&self) -> Appender {
        Appender(self.sender.clone())
    }

    /// Waits for the thread; every appender must be gone.
    pub(crate) fn close(self) -> anyhow::Result<()> {
        drop(self.sender);
        self.thread
            .join()
            .map_err(|_panic| anyhow::anyhow!("the log's thread panicked"))?
    }
}

/// One that appends.
#[derive(Clone)]
pub(crate) struct Appender(mpsc::SyncSender<Record>);

impl Appender {
    /// Appends a record and waits until it is durable.
    pub(crate) async fn append(&self, body: Bytes) -> anyhow::Result<()> {
        let (answer, answered) = oneshot::channel();
        // There is room for more records than any scenario has appenders.
        let sent = self.0.try_send(Record { body, answer });
        sent.map_err(|_full| anyhow::anyhow!("too many records wait"))?;
        answered.await.context("the log has stopped")
    }
}

fn write(mut file: File, records: &mpsc::Receiver<Record>) -> anyhow::Result<()> {
    let mut buffer = Vec::new();
    let mut answers = Vec::new();
    while let Ok(first) = records.recv() {
        let mut next = Some(first);
        while let Some(record) = next {
            let length = u32::try_from(record.body.len()).context("a record's length")?;
            buffer.extend_from_slice(&length.to_le_bytes());
            buffer.extend_from_slice(&record.body);
            answers.push(record.answer);
            next = (buffer.len() < MAX_WRITE)
                .then(|| records.try_recv().ok())
                .flatten();
        }
        file.write_all(&buffer).context("append")?;
        file.sync_data().context("sync")?;
        buffer.clear();
        for answer in answers.drain(..) {
            let _ = answer.send(());
        }
    }
    Ok(())
}
