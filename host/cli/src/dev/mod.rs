//! `dev`: a handler's project, built and served as its author writes it.
//!
//! One host in this process, with a place of its own in the project's folder (`place`); a thread
//! that waits for changes (`watcher`, `tree`); builds as children with a process group of their own
//! (`child`); and what is said of all that (`news`). One build at a time; a change while it runs
//! leads to one more. A build that fails leaves the version before serving.

mod child;
mod news;
mod place;
mod tree;
mod watcher;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use oncue_manager::status::HostEvent;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::args::Globals;
use crate::args::dev::DevArgs;
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::project::Project;
use crate::render::Screen;
use crate::render::time::format_duration;
use crate::serve::{self, Home, Host, signals::Signals};
use child::{Ended, Running};
use news::News;
use place::{Dropped, Place};
use tree::Tree;
use watcher::Watcher;

/// Events that wait for the loop.
const WAITING_EVENTS: usize = 64;

/// Builds in a row that nobody's hand has asked for: changes while a build runs. Then it is the
/// build that changes files.
const MAX_CHAIN: u32 = 3;

/// Changed files that are named.
const SHOWN_FILES: usize = 3;

/// Settings of the host that are `dev`'s own.
const OWN_SETTINGS: &[(&str, &str)] = &[
    // Files come whole, by a rename.
    ("plugin-settle", "20ms"),
    ("store-ballast", "1 MiB"),
    ("shutdown-deadline", "5s"),
];

/// What reaches the loop.
enum Event {
    /// These files changed.
    Changed(Vec<PathBuf>),
    /// The build has ended, after so long.
    Built(Ended, Duration),
    /// The golden cases have been run.
    Tested(Ended),
}

/// Builds and serves a project until it is told to end.
///
/// # Errors
/// The project or a setting is wrong, something cannot be opened, or the host failed.
pub(crate) fn run(globals: &Globals, args: &DevArgs) -> Result<(), Failure> {
    let project = Project::read(&args.directory)?;
    let place = Place::take(&project.folder, args.fresh)?;
    let config = settings(globals, args, &place)?;
    serve::log::start(&config)?;
    let listener = serve::listen(config.text("listen"), &oncue_server::Security::default())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("oncue-io")
        .build()
        .context("start the threads for input and output")?;
    let signals = {
        let _entered = runtime.enter();
        Signals::catch().context("catch signals")?
    };
    let home = Home::make(&config)?;
    let host = serve::start_host(&config, &home, None)?;
    let screen = Screen::standard(globals.format, globals.quiet);
    let (events, inbox) = mpsc::channel(WAITING_EVENTS);
    let desk = Desk {
        news: News::new(&screen, host.handle(), project.plugin.clone()),
        host_events: host.handle().events(),
        events,
        project,
        place: &place,
        with_cases: args.test,
        watcher: None,
        build: None,
        test: None,
        dirty: false,
        chain: 0,
    };
    let done = runtime.block_on(serve_project(&config, host, listener, signals, desk, inbox));
    runtime.shutdown_background();
    done
}

/// Works at the desk until a signal or a failure, then ends all parts.
async fn serve_project(
    config: &Config,
    host: Host,
    listener: TcpListener,
    mut signals: Signals,
    mut desk: Desk<'_>,
    inbox: mpsc::Receiver<Event>,
) -> Result<(), Failure> {
    let url = format!("http://{}", serve::address_of(&listener)?);
    let deadline = config.duration("shutdown-deadline");
    let options = oncue_server::ServerOptions {
        doctor: Some(host.doctor(config)),
        ..serve::server_options(config, deadline, oncue_server::Security::default())
    };
    let (stop, stopping) = oneshot::channel::<()>();
    let handle = host.handle();
    let mut server = tokio::spawn(oncue_server::serve(listener, handle, options, async {
        // A dropped sender means the end too.
        let _ = stopping.await;
    }));
    let mut has_ended = false;
    let done = tokio::select! {
        ended = &mut server => {
            has_ended = true;
            serve::server_result(ended)
        }
        done = desk.work(inbox, &url) => done,
        _ = signals.next(|| {}) => Ok(()),
    };
    let end_all = async {
        // Ends the build, with all that it started.
        drop(desk);
        drop(stop);
        if !has_ended {
            serve::server_result(server.await)?;
        }
        serve::end_host(host, deadline).await;
        done
    };
    tokio::select! {
        done = end_all => done,
        signal = signals.next(|| {}) => {
            let message = format!("ended at once by a second signal ({signal})");
            Err(Failure::new(Exit::Failed, message))
        }
    }
}

/// The settings of the host: those of `dev` itself, what the command line says, and the usual ones.
fn settings(globals: &Globals, args: &DevArgs, place: &Place) -> Result<Config, Failure> {
    let mut flags = globals.flags();
    flags.extend(args.flags());
    flags.extend([
        ("data-dir", place.data().display().to_string()),
        ("plugins-dir", place.plugins().display().to_string()),
    ]);
    let own = OWN_SETTINGS.iter();
    flags.extend(own.map(|(name, value)| (*name, (*value).to_owned())));
    Config::load(flags, globals.config.as_deref())
}

/// What the loop has at hand.
struct Desk<'a> {
    project: Project,
    place: &'a Place,
    news: News<'a>,
    host_events: broadcast::Receiver<HostEvent>,
    events: mpsc::Sender<Event>,
    /// Golden cases are run after each build.
    with_cases: bool,
    watcher: Option<Watcher>,
    build: Option<Running>,
    test: Option<Running>,
    /// Something changed while the build ran.
    dirty: bool,
    /// Builds in a row that such a change asked for.
    chain: u32,
}

impl Desk<'_> {
    async fn work(&mut self, mut inbox: mpsc::Receiver<Event>, url: &str) -> Result<(), Failure> {
        let name = &self.project.name;
        let line = format!("oncue: dev of \"{name}\" on {url} (Ctrl-C ends it)");
        let fields = json!({ "project": name, "url": url });
        self.news.say("ready", &line, fields)?;
        self.news.plugin_state().await?;
        self.watch()?;
        self.build().await?;
        loop {
            tokio::select! {
                event = self.host_events.recv() => self.heard(event).await?,
                event = inbox.recv() => match event {
                    Some(Event::Changed(files)) => self.changed(&files).await?,
                    Some(Event::Built(ended, took)) => self.built(ended, took).await?,
                    Some(Event::Tested(ended)) => self.tested(&ended)?,
                    // The desk itself has a sender.
                    None => return Ok(()),
                },
            }
        }
    }

    /// Watches the project as it is now.
    fn watch(&mut self) -> Result<(), Failure> {
        // The one before ends first: two would tell everything twice.
        self.watcher = None;
        let tree = Tree::of(&self.project, self.with_cases);
        self.watcher = Some(Watcher::start(tree, self.events.clone())?);
        Ok(())
    }

    async fn heard(&mut self, event: Result<HostEvent, RecvError>) -> Result<(), Failure> {
        match event {
            Ok(event) => {
                if self.news.event(event).await? {
                    self.news.make_queues().await?;
                }
                Ok(())
            }
            Err(RecvError::Lagged(missed)) => {
                let line = format!("{missed} events were too many to be shown");
                self.news.say("lagged", &line, json!({ "missed": missed }))
            }
            Err(RecvError::Closed) => Err(Failure::new(
                Exit::Failed,
                "the queue manager has ended by itself",
            )),
        }
    }

    async fn changed(&mut self, files: &[PathBuf]) -> Result<(), Failure> {
        let names = names(&self.project.folder, files);
        let fields = json!({ "files": files.len() });
        if self.build.is_some() {
            self.dirty = true;
            let line = format!("changed while it was built: {names}");
            return self.news.say("changed", &line, fields);
        }
        self.chain = 0;
        self.news
            .say("changed", &format!("changed: {names}"), fields)?;
        let file = self.project.folder.join(crate::project::PROJECT_FILE);
        if files.contains(&file) && !self.reread()? {
            return Ok(());
        }
        self.build().await
    }

    /// Reads the project's file again; false when it has faults, which are said.
    fn reread(&mut self) -> Result<bool, Failure> {
        match Project::read(&self.project.folder) {
            Ok(project) => {
                self.news.follow(project.plugin.clone());
                self.project = project;
                self.watch()?;
                Ok(true)
            }
            Err(failure) => {
                let mut line = failure.message.clone();
                for fault in &failure.faults {
                    line.push_str("\n  ");
                    line.push_str(fault);
                }
                let fields = json!({ "message": failure.message, "faults": failure.faults });
                self.news.say("project", &line, fields)?;
                Ok(false)
            }
        }
    }

    /// Starts a build; without a command, what is there is dropped.
    async fn build(&mut self) -> Result<(), Failure> {
        self.dirty = false;
        let Some(command) = self.project.build.clone() else {
            return self.deploy(None);
        };
        let fields = json!({ "command": command });
        self.news
            .say("building", &format!("building: {command}"), fields)?;
        let events = self.events.clone();
        let running = Running::shell(&command, &self.project.folder, move |ended, took| {
            // Nobody listens any more at the end.
            let _ = events.blocking_send(Event::Built(ended, took));
        });
        self.build = Some(running.context("start the build")?);
        Ok(())
    }

    async fn built(&mut self, ended: Ended, took: Duration) -> Result<(), Failure> {
        self.build = None;
        match ended {
            Ok(status) if status.success() => self.deploy(Some(took))?,
            Ok(status) => self.failed(&format!("the build failed ({status})"))?,
            Err(error) => self.failed(&format!("the build was lost: {error}"))?,
        }
        if !self.dirty {
            self.chain = 0;
            return Ok(());
        }
        self.chain += 1;
        if self.chain >= MAX_CHAIN {
            self.dirty = false;
            let line = "files changed while it was built, again and again: the next build waits \
                        for another change; name in watch only what the build does not write";
            return self.news.say("waiting", line, json!({}));
        }
        self.build().await
    }

    fn deploy(&mut self, took: Option<Duration>) -> Result<(), Failure> {
        let took_text = took
            .map(|took| format!(" in {}", format_duration(millis(took))))
            .unwrap_or_default();
        match self.place.drop_plugin(&self.project) {
            Ok(dropped) => {
                let what = match dropped {
                    Dropped::Changed => "",
                    Dropped::Same => ": the same plugin as before",
                };
                let fields = json!({
                    "took": took.map(millis), "changed": dropped == Dropped::Changed,
                });
                self.news
                    .say("built", &format!("built{took_text}{what}"), fields)?;
                self.run_cases()
            }
            Err(failure) => self.failed(&failure.message),
        }
    }

    /// Runs the golden cases, as `oncue test` does; a run of an earlier build ends.
    fn run_cases(&mut self) -> Result<(), Failure> {
        self.test = None;
        let cases = self.project.cases.as_ref();
        if !self.with_cases || !cases.is_some_and(|cases| cases.is_dir()) {
            return Ok(());
        }
        let program = std::env::current_exe().context("find this program, to test with")?;
        let mut command = Command::new(program);
        // Faults are for before a commit, not for each save.
        command.args(["test", ".", "--faults", "none"]);
        let events = self.events.clone();
        let running = Running::start(command, &self.project.folder, move |ended, _| {
            let _ = events.blocking_send(Event::Tested(ended));
        });
        self.test = Some(running.context("start the golden cases")?);
        Ok(())
    }

    fn tested(&mut self, ended: &Ended) -> Result<(), Failure> {
        self.test = None;
        let passed = ended.as_ref().is_ok_and(std::process::ExitStatus::success);
        let line = match ended {
            Ok(_) if passed => "the golden cases pass".to_owned(),
            Ok(status) => format!("the golden cases fail ({status})"),
            Err(error) => format!("the golden cases were lost: {error}"),
        };
        self.news.say("tested", &line, json!({ "passed": passed }))
    }

    fn failed(&self, why: &str) -> Result<(), Failure> {
        let line = format!("{why}; what served before serves on");
        self.news.say("failed", &line, json!({ "message": why }))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The first changed files, below the project's folder.
fn names(folder: &Path, files: &[PathBuf]) -> String {
    let shown = files.iter().take(SHOWN_FILES);
    let shown: Vec<String> = shown.map(|file| watcher::below(folder, file)).collect();
    let more = files.len().saturating_sub(SHOWN_FILES);
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
