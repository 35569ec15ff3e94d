//! A manager stepped by hand: manual clock, memory store, tasks that a test scripts. No thread, no
//! sleep.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::task::Poll;
use std::time::Duration;

use oncue_core::definition::Style;
use oncue_core::outcome::CallEnd;
use oncue_core::time::Timestamp;
use oncue_manager::handle::{Browsed, TaskFilter};
use oncue_manager::reload::{PluginState, PluginUpdate};
use oncue_manager::status::{Explanation, QueueView};
use oncue_manager::tasks::port::{GetOptions, Got, PutOptions, PutRequest};
use oncue_manager::tasks::record::TaskRecord;
use oncue_manager::tasks::{
    CallReport, ComponentVersion, Delivered, Handler, StartError, TaskCost, TaskHost, TaskSession,
    drain, trigger_style,
};
use oncue_manager::{ApiError, Clock, Handle, Manager, ManagerConfig, ManualClock};
use oncue_store::Store;
use oncue_store::faulty::Faulty;
use oncue_store::memory::MemoryStore;
use parking_lot::Mutex;

use crate::values::{
    Pairs, name, process_name, process_patch, queue_patch, ready, report, request, text, update,
};

/// Started tasks wait here until the test runs them.
#[derive(Default)]
pub(crate) struct ScriptedHost {
    workers: Option<usize>,
    begins_in: Duration,
    /// Where they go instead.
    starts: Option<SyncSender<Arc<TaskSession>>>,
    started: Mutex<VecDeque<Arc<TaskSession>>>,
    refusal: Mutex<Option<String>>,
    refused_once: Mutex<Option<String>>,
}

impl ScriptedHost {
    /// A host that says this of itself. One that says that a task begins at once has no task at
    /// hand, so that nothing depends on how fast the machine is.
    pub(crate) fn of(workers: usize, begins_in: Duration) -> Self {
        Self {
            workers: Some(workers),
            begins_in,
            ..Self::default()
        }
    }

    /// It starts tasks there.
    pub(crate) fn on(self, starts: SyncSender<Arc<TaskSession>>) -> Self {
        let starts = Some(starts);
        Self { starts, ..self }
    }
}

impl TaskHost for ScriptedHost {
    fn workers(&self) -> usize {
        self.workers.unwrap_or(usize::MAX)
    }

    fn begins_in(&self) -> Duration {
        self.begins_in
    }

    fn start(&self, session: Arc<TaskSession>) -> Result<(), StartError> {
        if let Some(why) = self.refusal.lock().clone() {
            return Err(StartError(why));
        }
        if let Some(why) = self.refused_once.lock().take() {
            return Err(StartError(why));
        }
        match &self.starts {
            Some(starts) => starts.send(session).expect("somebody runs them"),
            None => self.started.lock().push_back(session),
        }
        Ok(())
    }
}

pub(crate) struct Rig {
    pub(crate) manager: Manager,
    pub(crate) handle: Handle,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) memory: Arc<MemoryStore>,
    pub(crate) tasks: Arc<ScriptedHost>,
    runtime: tokio::runtime::Runtime,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(ManagerConfig::default())
    }

    pub(crate) fn with(config: ManagerConfig) -> Self {
        let memory = Arc::new(MemoryStore::new(1, 1 << 30));
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        Self::over(config, memory.clone(), memory, clock)
    }

    /// A manager over a store that fails on request.
    pub(crate) fn faulty() -> (Self, Arc<Faulty>) {
        Self::hosted(ScriptedHost::default())
    }

    /// Another manager over the same store and clock.
    pub(crate) fn beside(other: &Self) -> Self {
        let (memory, clock) = (other.memory.clone(), other.clock.clone());
        let mut rig = Self::over(ManagerConfig::default(), memory.clone(), memory, clock);
        rig.settle();
        rig
    }

    /// A manager over a store that another one uses or has used.
    pub(crate) fn over(
        config: ManagerConfig,
        store: Arc<dyn Store>,
        memory: Arc<MemoryStore>,
        clock: Arc<ManualClock>,
    ) -> Self {
        Self::of_host(ScriptedHost::default(), config, store, memory, clock)
    }

    /// A manager whose tasks such a host runs, over a store that fails on request.
    pub(crate) fn hosted(host: ScriptedHost) -> (Self, Arc<Faulty>) {
        let memory = Arc::new(MemoryStore::new(1, 1 << 30));
        let faulty = Arc::new(Faulty::new(memory.clone()));
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        let config = ManagerConfig::default();
        let rig = Self::of_host(host, config, faulty.clone(), memory, clock);
        (rig, faulty)
    }

    pub(crate) fn of_host(
        host: ScriptedHost,
        config: ManagerConfig,
        store: Arc<dyn Store>,
        memory: Arc<MemoryStore>,
        clock: Arc<ManualClock>,
    ) -> Self {
        let tasks = Arc::new(host);
        let config = ManagerConfig {
            seed: Some(7),
            ..config
        };
        let (manager, handle, _) =
            Manager::open(config, store, clock.clone(), tasks.clone()).expect("the manager opens");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        let mut rig = Self {
            manager,
            handle,
            clock,
            memory,
            tasks,
            runtime,
        };
        rig.settle();
        rig
    }

    /// The next start of the host. Nothing of this one runs on, as when its process was killed;
    /// `hands` are its tasks that the test holds.
    pub(crate) fn reopen(self, config: ManagerConfig, hands: Vec<Arc<TaskSession>>) -> Self {
        let unclean = !hands.is_empty();
        hands.into_iter().for_each(std::mem::forget);
        self.tasks
            .started
            .lock()
            .drain(..)
            .for_each(std::mem::forget);
        std::mem::forget(self.manager);
        let memory = Arc::new(self.memory.restarted(unclean));
        Self::over(config, memory.clone(), memory, self.clock)
    }

    /// Turns until nothing more happens at this moment.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100 {
            let now = self.clock.now();
            if self.manager.turn() > now && !self.manager.wants_turn() {
                return;
            }
        }
        panic!("the manager does not come to rest");
    }

    pub(crate) fn advance(&mut self, millis: u64) {
        self.clock.advance(millis);
        self.settle();
    }

    /// Runs a future while the manager turns beside it.
    pub(crate) fn ask<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        for _ in 0..1000 {
            let answer = self.runtime.block_on(async {
                tokio::select! {
                    biased;
                    answer = &mut future => Some(answer),
                    () = tokio::task::yield_now() => None,
                }
            });
            if let Some(answer) = answer {
                self.settle();
                return answer;
            }
            // Outside the runtime: a store on disk makes the loop wait.
            self.manager.turn();
        }
        panic!("the manager does not answer");
    }

    /// Runs a future alone: the manager takes no turn until it is done.
    pub(crate) fn drive<T>(&mut self, future: impl Future<Output = T>) -> T {
        let answer = self.runtime.block_on(future);
        self.settle();
        answer
    }

    /// Polls a future once; true when it has ended.
    pub(crate) fn poll<F: Future + ?Sized>(
        &mut self,
        future: &mut Pin<Box<F>>,
    ) -> Option<F::Output> {
        self.runtime.block_on(std::future::poll_fn(|context| {
            match future.as_mut().poll(context) {
                Poll::Ready(answer) => Poll::Ready(Some(answer)),
                Poll::Pending => Poll::Ready(None),
            }
        }))
    }

    /// Does something inside the runtime: what is dropped there may still spawn.
    pub(crate) fn in_runtime(&self, act: impl FnOnce()) {
        self.runtime.block_on(async { act() });
    }

    /// Commits of the store so far.
    pub(crate) fn memory_commits(&self) -> u64 {
        self.memory.status().commits
    }

    pub(crate) fn define(&mut self, queue: &str, attributes: Pairs<'_>) {
        self.try_define(queue, attributes)
            .expect("the queue is valid");
    }

    pub(crate) fn try_define(
        &mut self,
        queue: &str,
        attributes: Pairs<'_>,
    ) -> Result<QueueView, ApiError> {
        let handle = self.handle.clone();
        let patch = queue_patch(attributes);
        self.ask(async move { handle.define_queue(name(queue), patch).await })
            .map(|(view, _)| view)
    }

    pub(crate) fn process(&mut self, process: &str, attributes: Pairs<'_>) {
        let handle = self.handle.clone();
        let name = process_name(process);
        let patch = process_patch(attributes);
        self.ask(async move { handle.define_process(name, patch).await })
            .expect("the process is valid");
    }

    /// A plugin whose component is ready, serving queues of the given attributes.
    pub(crate) fn plugin(
        &mut self,
        plugin: &str,
        process: Pairs<'_>,
        queues: &[(&str, Pairs<'_>)],
    ) {
        self.update(update(plugin, ready(plugin, "1"), process, queues))
            .expect("the plugin is taken");
    }

    /// The same in trigger style.
    pub(crate) fn trigger_plugin(
        &mut self,
        plugin: &str,
        process: Pairs<'_>,
        queues: &[(&str, Pairs<'_>)],
    ) {
        let PluginState::Ready(version) = ready(plugin, "1") else {
            unreachable!("ready is ready");
        };
        let style = Style::Trigger;
        let state = PluginState::Ready(ComponentVersion { style, ..version });
        self.update(update(plugin, state, process, queues))
            .expect("the plugin is taken");
    }

    pub(crate) fn update(&mut self, update: PluginUpdate) -> Result<(), String> {
        let handle = self.handle.clone();
        self.ask(async move { handle.plugin_changed(update).await })
            .map_err(|refusal| refusal.0)
    }

    pub(crate) fn put(&mut self, queue: &str, body: &str) -> String {
        self.put_with(queue, body, PutOptions::default())
    }

    pub(crate) fn put_with(&mut self, queue: &str, body: &str, options: PutOptions) -> String {
        self.put_all(vec![request(queue, body, options)])
            .expect("the put is taken")
            .remove(0)
    }

    /// Puts in one commit.
    pub(crate) fn put_all(&mut self, puts: Vec<PutRequest>) -> Result<Vec<String>, ApiError> {
        let handle = self.handle.clone();
        let answers = self.ask(async move { handle.put(puts, None).await })?;
        Ok(answers.iter().map(|put| put.id.to_string()).collect())
    }

    pub(crate) fn trigger(&mut self, queue: &str, on: bool) {
        let handle = self.handle.clone();
        self.ask(async move { handle.trigger(name(queue), on).await })
            .expect("the queue is there");
    }

    /// Tasks that were started and not yet run.
    pub(crate) fn waiting(&self) -> usize {
        self.tasks.started.lock().len()
    }

    /// Takes the oldest started task.
    pub(crate) fn next_task(&mut self) -> Arc<TaskSession> {
        let task = self.tasks.started.lock().pop_front();
        task.expect("a task was started")
    }

    /// Takes the oldest started task of a queue.
    pub(crate) fn task_of(&mut self, queue: &str) -> Arc<TaskSession> {
        let mut started = self.tasks.started.lock();
        let place = started
            .iter()
            .position(|task| task.spec().queue.as_str() == queue);
        let task = place.and_then(|place| started.remove(place));
        task.expect("a task of the queue was started")
    }

    /// Every start fails from now on, with this reason; or none does.
    pub(crate) fn refuse_starts(&self, why: Option<&str>) {
        *self.tasks.refusal.lock() = why.map(str::to_owned);
    }

    /// The next start fails.
    pub(crate) fn refuse_next_start(&self, why: &str) {
        *self.tasks.refused_once.lock() = Some(why.to_owned());
    }

    /// Runs the oldest started task in message style with `handler`; answers the bodies it was
    /// called with.
    pub(crate) fn run(&mut self, mut handler: impl FnMut(&str) -> CallEnd + Send) -> Vec<String> {
        let session = self.next_task();
        self.run_session(&session, |_, body| handler(body))
    }

    pub(crate) fn run_session(
        &mut self,
        session: &Arc<TaskSession>,
        handler: impl FnMut(&Arc<TaskSession>, &str) -> CallEnd + Send,
    ) -> Vec<String> {
        let mut scripted = Scripted {
            session: session.clone(),
            handler,
            bodies: Vec::new(),
        };
        self.runtime.block_on(drain::drain(session, &mut scripted));
        session.finish(TaskCost::default());
        self.settle();
        scripted.bodies
    }

    /// Runs every task that is or gets started, all calls ok; answers all bodies.
    pub(crate) fn run_all(&mut self) -> Vec<String> {
        let mut bodies = Vec::new();
        for _ in 0..10_000 {
            if self.waiting() == 0 {
                return bodies;
            }
            bodies.extend(self.run(|_| CallEnd::Ok));
        }
        panic!("tasks are started without end");
    }

    /// A get of a trigger-style handler, without a wait.
    pub(crate) fn get(&mut self, session: &Arc<TaskSession>) -> Got {
        self.drive(session.get(GetOptions::default()))
            .expect("the get is allowed")
    }

    /// The body that the next get answers.
    pub(crate) fn got(&mut self, session: &Arc<TaskSession>) -> String {
        match self.get(session) {
            Got::Message(message) => text(session, &message),
            other => panic!("a message, not {other:?}"),
        }
    }

    /// The end of a trigger-style handler's call, and of its task.
    pub(crate) fn end(&mut self, session: &Arc<TaskSession>, end: CallEnd) {
        self.runtime
            .block_on(trigger_style::end(session, report(end)));
        session.finish(TaskCost::default());
        self.settle();
    }

    pub(crate) fn queue(&mut self, queue: &str) -> QueueView {
        let handle = self.handle.clone();
        self.ask(async move { handle.queue(name(queue)).await })
            .expect("the queue is there")
    }

    pub(crate) fn explain(&mut self, queue: &str) -> Explanation {
        let handle = self.handle.clone();
        self.ask(async move { handle.explain(name(queue)).await })
            .expect("the queue is there")
    }

    pub(crate) fn depth(&mut self, queue: &str) -> u64 {
        self.queue(queue).depth
    }

    /// The code of the reason that holds a queue.
    pub(crate) fn reason(&mut self, queue: &str) -> Option<&'static str> {
        self.queue(queue).reason
    }

    /// The task records, newest first.
    pub(crate) fn records(&mut self) -> Vec<TaskRecord> {
        let handle = self.handle.clone();
        self.ask(async move { handle.tasks(TaskFilter::default()).await })
            .expect("the records")
    }

    /// Every message of a queue, by browsing.
    pub(crate) fn browse(&self, queue: &str) -> Vec<Browsed> {
        self.handle
            .browse(&name(queue), None, 1000, false)
            .expect("a page")
            .messages
    }

    /// The bodies of a queue's messages, in their order.
    pub(crate) fn bodies(&self, queue: &str) -> Vec<String> {
        let body = |browsed: &Browsed| self.handle.body(&browsed.message.body).expect("a body");
        let texts = self.browse(queue).into_iter().map(|browsed| body(&browsed));
        texts
            .map(|body| String::from_utf8(body.to_vec()).expect("text"))
            .collect()
    }

    /// Backout and interrupted count of a queue's only message.
    pub(crate) fn attempts(&self, queue: &str) -> (u32, u32) {
        let messages = self.browse(queue);
        assert_eq!(messages.len(), 1, "one message on {queue}");
        let attempts = messages[0].message.attempts;
        (attempts.backout_count, attempts.interrupted_count)
    }

    /// Nothing is reserved, and the ledger says so.
    pub(crate) fn assert_ledger_empty(&mut self) {
        let handle = self.handle.clone();
        let ledger = self.ask(async move { handle.ledger().await });
        let reserved = ledger.expect("the ledger").reserved;
        assert_eq!(reserved, Default::default(), "back to capacity");
    }
}

struct Scripted<F> {
    session: Arc<TaskSession>,
    handler: F,
    bodies: Vec<String>,
}

impl<F: FnMut(&Arc<TaskSession>, &str) -> CallEnd + Send> Handler for Scripted<F> {
    async fn call(&mut self, message: &Arc<Delivered>) -> CallReport {
        let body = text(&self.session, message);
        let end = (self.handler)(&self.session, &body);
        self.bodies.push(body);
        report(end)
    }
}
