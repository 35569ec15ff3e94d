//! What the machine itself allows: bare instances, and a file with group commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use oncue_core::message::{Attempts, Body, Header, Message, MessageId, Sequence};
use oncue_core::time::Timestamp;
use oncue_manager::tasks::Delivered;
use oncue_runtime::bare::Bare;

use crate::cpu::Cpu;
use crate::host;
use crate::raw_log::RawLog;

/// How long a contender runs before it is measured.
pub(crate) const WARM: Duration = Duration::from_millis(100);

/// A message as a task would have it in hand.
pub(crate) fn message(length: usize) -> Arc<Delivered> {
    let header = Header {
        id: MessageId {
            origin: 1,
            sequence: Sequence(1),
        },
        correlation_id: None,
        reply_to: None,
        group: None,
        group_sequence: None,
        priority: 0,
        persistent: true,
        content_type: None,
        properties: Vec::new(),
        put_time: Timestamp(1),
        expires: None,
        hop_count: 0,
        put_by: None,
        size: length as u64,
    };
    Arc::new(Delivered {
        queue: host::name("echo"),
        message: Message {
            header,
            attempts: Attempts::default(),
            body: Body::Whole(Bytes::from(vec![b'x'; length])),
            dead_letter: None,
        },
        attempts_left: 5,
        fresh: true,
    })
}

/// What a message costs, in microseconds.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    /// Wall time, by the messages of all threads.
    pub(crate) us: f64,
    /// Time on the processors.
    pub(crate) cpu: f64,
}

/// What a message costs when instances are made, called and dropped on so many threads at once,
/// each for `times` messages.
pub(crate) fn instances(
    bare: &Bare,
    message: &Arc<Delivered>,
    threads: usize,
    times: u32,
    measure: Duration,
) -> anyhow::Result<Cost> {
    let (counting, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let messages = AtomicU64::new(0);
    let one = |thread: usize| -> anyhow::Result<()> {
        while !over.load(Ordering::Relaxed) {
            let end = bare.run(thread, message, times)?;
            anyhow::ensure!(end.puts == times, "a guest put {} of {times}", end.puts);
            if counting.load(Ordering::Relaxed) {
                messages.fetch_add(u64::from(times), Ordering::Relaxed);
            }
        }
        Ok(())
    };
    let (took, spent) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || one(thread)))
            .collect();
        std::thread::sleep(WARM);
        counting.store(true, Ordering::Relaxed);
        let (before, begun) = (Cpu::now(), Instant::now());
        std::thread::sleep(measure);
        counting.store(false, Ordering::Relaxed);
        let (took, spent) = (begun.elapsed(), Cpu::now().since(&before));
        over.store(true, Ordering::Relaxed);
        for thread in threads {
            let ended = thread.join();
            ended.map_err(|_| anyhow::anyhow!("a thread of the floor panicked"))??;
        }
        anyhow::Ok((took, spent))
    })?;
    let messages = messages.into_inner();
    anyhow::ensure!(messages > 0, "no instance ended in {measure:?}");
    #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
    let messages = messages as f64;
    Ok(Cost {
        us: took.as_secs_f64() * 1e6 / messages,
        cpu: spent.system_us() / messages,
    })
}

/// Records a second that a file takes when so many writers share a sync: as many records to a
/// group, none of them late.
pub(crate) fn append(log: &mut RawLog, writers: usize, measure: Duration) -> anyhow::Result<f64> {
    log.append(writers)?;
    let (begun, mut records) = (Instant::now(), 0_usize);
    while begun.elapsed() < measure {
        log.append(writers)?;
        records += writers;
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
    Ok(records as f64 / begun.elapsed().as_secs_f64())
}
