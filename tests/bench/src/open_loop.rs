//! Load in an open loop: arrivals are fixed in advance, and nothing that happens moves them.
//!
//! Each latency counts from the arrival as it was intended, so that a load which is held up counts
//! what it held up (no coordinated omission). A latency ends when the guest is entered: its
//! instance is made and its handler is about to be called. The load sleeps between arrivals, with a
//! timer as exact as the system has; how late it was itself is a figure beside the others.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use oncue_manager::Handle;
use oncue_manager::tasks::Delivered;
use oncue_manager::tasks::port::{PortError, PutOptions, PutRequest};
use oncue_manager::tasks::probe::{Probe, SessionCall};
use oncue_runtime::bare::Bare;
use tokio::task::JoinSet;

use crate::cpu::{self, Cpu, Spent};
use crate::host;
use crate::raw_log::RawLog;

/// How long the last messages may take after the last arrival.
const TAIL: Duration = Duration::from_secs(20);

/// The first arrival comes so long after the load's begin.
const LEAD: Duration = Duration::from_millis(20);

/// How often it is looked whether they are through.
const LOOK: Duration = Duration::from_millis(1);

/// One of this many first arrivals is not counted: the system warms up.
const WARM_PART: usize = 8;

/// Seed of the arrivals: the same for every contender.
const SEED: u64 = 7;

/// Arrivals that were fixed in advance, and when each message's guest was entered.
pub(crate) struct Arrivals {
    /// Nanoseconds from the beginning.
    due: Vec<u64>,
    entered: Vec<AtomicU64>,
    missing: AtomicUsize,
    /// Set when the load begins.
    begin: OnceLock<Instant>,
}

impl Arrivals {
    /// So many a second for so long, at random and independent of each other, from shortly after
    /// the load's begin on.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "nanoseconds of some seconds"
    )]
    pub(crate) fn new(rate: f64, time: Duration) -> Arc<Self> {
        let mut random = fastrand::Rng::with_seed(SEED);
        let (mut at, mut due) = (0.0, Vec::new());
        while at < time.as_secs_f64() {
            due.push((at * 1e9) as u64);
            at -= (1.0 - random.f64()).ln() / rate;
        }
        Arc::new(Self {
            entered: due.iter().map(|_| AtomicU64::new(0)).collect(),
            missing: AtomicUsize::new(due.len()),
            due,
            begin: OnceLock::new(),
        })
    }

    /// How many.
    pub(crate) fn len(&self) -> u64 {
        self.due.len() as u64
    }

    /// Notes that a message's guest is entered. Its first attempt counts.
    fn note(&self, number: usize, at: Instant) {
        let (Some(entered), Some(begin)) = (self.entered.get(number), self.begin.get()) else {
            return;
        };
        let nanos = at.duration_since(*begin).as_nanos();
        // 0 stands for never.
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX).max(1);
        let first = entered.compare_exchange(0, nanos, Ordering::SeqCst, Ordering::SeqCst);
        if first.is_ok() {
            self.missing.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Waits until all were entered.
    fn wait(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while self.missing.load(Ordering::SeqCst) > 0 {
            let missing = self.missing.load(Ordering::SeqCst);
            let of = self.due.len();
            anyhow::ensure!(
                begun.elapsed() < TAIL,
                "{missing} of {of} never came to a guest"
            );
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Calls `submit` for each arrival at its time; answers by how much each was late.
    fn drive(
        &self,
        mut submit: impl FnMut(usize) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<u64>> {
        exact_timer();
        let begin = *self.begin.get_or_init(|| Instant::now() + LEAD);
        let mut late = Vec::with_capacity(self.due.len());
        for (number, due) in self.due.iter().enumerate() {
            let at = begin + Duration::from_nanos(*due);
            let now = Instant::now();
            if let Some(left) = at.checked_duration_since(now) {
                std::thread::sleep(left);
            }
            late.push(u64::try_from(at.elapsed().as_nanos()).unwrap_or(u64::MAX));
            submit(number)?;
        }
        Ok(late)
    }

    fn latencies(&self) -> Vec<u64> {
        let entered = self.entered.iter().map(|at| at.load(Ordering::SeqCst));
        let each = entered
            .zip(&self.due)
            .map(|(at, due)| at.saturating_sub(*due));
        each.skip(self.due.len() / WARM_PART).collect()
    }
}

/// Asks for timers without slack for this thread. Where it is refused, the load is later, and says
/// so.
fn exact_timer() {
    let thread = std::fs::read_link("/proc/thread-self");
    let number = thread
        .ok()
        .and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    if let Some(number) = number {
        // Refused on some systems: no reason to stop.
        let _ = std::fs::write(format!("/proc/{number}/timerslack_ns"), "1");
    }
}

/// What was measured: nanoseconds, in order of size.
pub(crate) struct Latencies {
    sorted: Vec<u64>,
    late: Vec<u64>,
    /// From the first arrival to the last entry.
    spent: Spent,
    messages: f64,
    /// Tasks that the loop started, and how often it asked the rule.
    pub(crate) loop_work: Option<[u64; 2]>,
}

impl Latencies {
    #[expect(clippy::cast_precision_loss, reason = "some hundred thousands")]
    fn new(arrivals: &Arrivals, mut late: Vec<u64>, spent: Spent) -> Self {
        let mut sorted = arrivals.latencies();
        sorted.sort_unstable();
        late.sort_unstable();
        Self {
            sorted,
            late,
            spent,
            messages: arrivals.len() as f64,
            loop_work: None,
        }
    }

    /// Microseconds that so many per mille of the messages did not exceed.
    pub(crate) fn us(&self, per_mille: usize) -> f64 {
        place(&self.sorted, per_mille)
    }

    /// What the threads spent, a message.
    pub(crate) fn by_thread(&self) -> String {
        self.spent.by_thread(self.messages)
    }

    /// So many as there were for each message.
    #[expect(clippy::cast_precision_loss, reason = "some hundred thousands")]
    pub(crate) fn each(&self, count: u64) -> f64 {
        count as f64 / self.messages
    }

    /// The same of the load's own lateness.
    pub(crate) fn late_us(&self, per_mille: usize) -> f64 {
        place(&self.late, per_mille)
    }
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of some seconds")]
fn place(sorted: &[u64], per_mille: usize) -> f64 {
    let place = (sorted.len() * per_mille / 1000).min(sorted.len().saturating_sub(1));
    sorted
        .get(place)
        .map_or(f64::NAN, |nanos| *nanos as f64 / 1e3)
}

/// Learns when guests are entered, from the number that each message carries as its correlation id.
pub(crate) struct Entries(Arc<Arrivals>);

impl Entries {
    pub(crate) fn probe(arrivals: &Arc<Arrivals>) -> Arc<dyn Probe> {
        Arc::new(Self(Arc::clone(arrivals)))
    }
}

impl Probe for Entries {
    fn before(&self, _: SessionCall<'_>) -> Result<(), PortError> {
        Ok(())
    }

    fn entered(&self, message: &Delivered) {
        let now = Instant::now();
        let number = message.message.header.correlation_id.as_deref();
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            self.0.note(number, now);
        }
    }
}

/// Puts each arrival to `queue` of a manager whose probe is [`Entries`]. Answers when all were
/// entered.
pub(crate) fn puts(
    handle: &Handle,
    queue: &str,
    length: usize,
    arrivals: &Arc<Arrivals>,
) -> anyhow::Result<Latencies> {
    let body = Bytes::from(vec![b'x'; length]);
    let queue = host::name(queue);
    // Answers that do not come at once are awaited on a thread of their own.
    let answers = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name(cpu::LOAD)
        .build()?;
    let mut putting = JoinSet::new();
    let before = Cpu::now();
    let late = arrivals.drive(|number| {
        let request = PutRequest {
            queue: queue.clone(),
            body: body.clone(),
            options: PutOptions {
                correlation_id: Some(number.to_string()),
                ..PutOptions::default()
            },
        };
        let handle = handle.clone();
        let mut put = Box::pin(async move {
            handle.put(vec![request], None).await?;
            anyhow::Ok(())
        });
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match put.as_mut().poll(&mut context) {
            std::task::Poll::Ready(answer) => answer,
            std::task::Poll::Pending => {
                putting.spawn_on(put, answers.handle());
                Ok(())
            }
        }
    })?;
    arrivals.wait()?;
    let spent = Cpu::now().since(&before);
    answers.block_on(async {
        while let Some(answer) = putting.join_next().await {
            answer??;
        }
        anyhow::Ok(())
    })?;
    Ok(Latencies::new(arrivals, late, spent))
}

/// Hands over between threads: what the floor has instead of a queue manager.
#[derive(Default)]
struct Channel {
    waiting: Mutex<(VecDeque<usize>, bool)>,
    more: Condvar,
}

impl Channel {
    fn lock(&self) -> std::sync::MutexGuard<'_, (VecDeque<usize>, bool)> {
        // A panic elsewhere ends the run anyway.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, numbers: impl IntoIterator<Item = usize>) {
        self.lock().0.extend(numbers);
        self.more.notify_all();
    }

    fn close(&self) {
        self.lock().1 = true;
        self.more.notify_all();
    }

    /// Up to `most` of what waits; none when it is closed.
    fn take(&self, most: usize) -> Option<Vec<usize>> {
        let mut waiting = self.lock();
        loop {
            if !waiting.0.is_empty() {
                let count = waiting.0.len().min(most);
                return Some(waiting.0.drain(..count).collect());
            }
            if waiting.1 {
                return None;
            }
            waiting = self
                .more
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The same arrivals for bare instances on so many threads, handed over by a channel; with a
/// folder, each arrival is a record in a raw log first, all that wait in one sync.
pub(crate) fn bare(
    bare: &Bare,
    message: &Arc<Delivered>,
    threads: usize,
    log: Option<(&Path, usize)>,
    arrivals: &Arc<Arrivals>,
) -> anyhow::Result<Latencies> {
    let (to_log, to_guests) = (Channel::default(), Channel::default());
    let mut log = log
        .map(|(folder, length)| RawLog::create(folder, length))
        .transpose()?;
    let is_logged = log.is_some();
    let guests = |thread: usize| -> anyhow::Result<()> {
        while let Some(numbers) = to_guests.take(1) {
            for number in numbers {
                arrivals.note(number, bare.run(thread, message, 1)?.entered);
            }
        }
        Ok(())
    };
    let committer = || -> anyhow::Result<()> {
        while let (Some(log), Some(numbers)) = (&mut log, to_log.take(usize::MAX)) {
            log.append(numbers.len())?;
            to_guests.send(numbers);
        }
        Ok(())
    };
    let before = Cpu::now();
    let (late, spent) = std::thread::scope(|scope| {
        let mut running: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || guests(thread)))
            .collect();
        if is_logged {
            running.push(scope.spawn(committer));
        }
        let first = if is_logged { &to_log } else { &to_guests };
        let late = arrivals.drive(|number| {
            first.send([number]);
            Ok(())
        });
        let waited = arrivals.wait();
        let spent = Cpu::now().since(&before);
        to_log.close();
        to_guests.close();
        for thread in running {
            let ended = thread.join();
            ended.map_err(|_| anyhow::anyhow!("a thread of the floor panicked"))??;
        }
        waited?;
        anyhow::Ok((late?, spent))
    })?;
    Ok(Latencies::new(arrivals, late, spent))
}
