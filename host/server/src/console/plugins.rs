//! Plugins and process definitions: what the directory holds, what serves, what it may reach and
//! take, and why a drop was refused.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use oncue_core::code::Code;
use oncue_core::definition::PROCESS_ATTRIBUTES;
use oncue_core::names::{PluginName, ProcessName};
use oncue_manager::error::ApiError;
use oncue_manager::handle::TaskFilter;
use oncue_manager::reload::PluginView;
use oncue_manager::status::ProcessView;

use super::form::{Form, back};
use super::format;
use super::frame::Frame;
use super::page::{Page, PageError, page};
use super::params::Params;
use super::queue::{Attributes, attributes};
use super::tasks::Row as TaskRow;
use super::viewer::Viewer;
use crate::app::App;
use crate::auth::identity::Right;
use crate::error::Problem;
use crate::extract::{PluginPath, ProcessPath};

/// Where the list is.
const PATH: &str = "/plugins";

/// Latest tasks on a plugin's page, of all its queues together.
const TASKS: usize = 8;

/// Queues of a plugin whose tasks are looked for.
const MAX_QUEUES: usize = 8;

/// Versions to which a rollback can go that are shown.
const MAX_VERSIONS: usize = 8;

/// A plugin or a process definition in the list.
#[derive(Debug)]
struct Row {
    name: String,
    state: &'static str,
    tone: &'static str,
    reason: String,
    digest: String,
    style: &'static str,
    queues: Vec<String>,
    running: u32,
    paused: bool,
    memory: String,
    fuel: String,
    grants: String,
}

/// How much a plugin's state matters to a person.
fn tone_of(state: &str) -> &'static str {
    match state {
        "ready" => "good",
        "compiling" => "live",
        "quarantined" => "bad",
        _ => "warn",
    }
}

impl Row {
    fn of(name: String, plugin: Option<&PluginView>, process: Option<&ProcessView>) -> Self {
        let state = plugin.map(|plugin| plugin.state);
        let state = state
            .or(process.map(|process| process.component))
            .unwrap_or("missing");
        let reason = plugin.and_then(|plugin| plugin.reason.clone());
        let digest = plugin.and_then(|plugin| plugin.digest.clone());
        let digest = digest.or(process.and_then(|process| process.digest.clone()));
        let attributes = process.map(|process| &process.attributes);
        Self {
            name,
            state,
            tone: tone_of(state),
            reason: reason
                .or(process.and_then(|process| process.component_reason.clone()))
                .unwrap_or_default(),
            digest: format::digest(&digest.unwrap_or_default()),
            style: plugin
                .and_then(|plugin| plugin.style)
                .map_or("", |style| style.as_str()),
            queues: process
                .map(|process| process.queues.iter().map(ToString::to_string).collect())
                .unwrap_or_default(),
            running: process.map_or(0, |process| process.running),
            paused: process.is_some_and(|process| process.paused),
            memory: attributes
                .map(|set| format::bytes(set.memory))
                .unwrap_or_default(),
            fuel: attributes
                .map(|set| format::count(set.fuel))
                .unwrap_or_default(),
            grants: process.map(grants).unwrap_or_default(),
        }
    }
}

/// What a handler may reach, in a line.
fn grants(process: &ProcessView) -> String {
    let grants = &process.attributes.grants;
    let mut said = Vec::new();
    let mut say = |what: &str, names: Vec<String>| {
        if !names.is_empty() {
            said.push(format!("{what} {}", names.join(", ")));
        }
    };
    let patterns = |list: &[oncue_core::definition::Pattern]| {
        list.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    say("put", patterns(&grants.put));
    say("get", patterns(&grants.get));
    say("browse", patterns(&grants.browse));
    say(
        "http",
        grants.http.iter().map(ToString::to_string).collect(),
    );
    say("environment", grants.environment.keys().cloned().collect());
    said.join("; ")
}

#[derive(Template)]
#[template(path = "plugins.html")]
struct PluginsPage {
    frame: Frame,
    plugins: Vec<Row>,
    others: Vec<Row>,
}

/// The list of plugins, and the process definitions that stand without one.
pub(super) async fn list(State(app): State<App>, viewer: Viewer, params: Params) -> Page {
    let plugins = app.handle.plugins().await?;
    let processes = app.handle.processes().await?;
    let mut processes: BTreeMap<String, ProcessView> = processes
        .into_iter()
        .map(|process| (process.name.to_string(), process))
        .collect();
    let rows = plugins.iter().map(|plugin| {
        let process = processes.remove(plugin.process.as_str());
        Row::of(plugin.name.to_string(), Some(plugin), process.as_ref())
    });
    let plugins = rows.collect();
    let others = processes.into_iter();
    page(&PluginsPage {
        frame: Frame::new(&app, PATH, &params, &viewer).await?,
        plugins,
        others: others
            .map(|(name, process)| Row::of(name, None, Some(&process)))
            .collect(),
    })
}

#[derive(Template)]
#[template(path = "plugin.html")]
struct PluginPage {
    /// Whoever looks may pause and roll back.
    operates: bool,
    frame: Frame,
    row: Row,
    is_plugin: bool,
    file: String,
    digest: Option<String>,
    previous: Vec<String>,
    more_previous: usize,
    facts: Vec<(String, String)>,
    has_process: bool,
    description: String,
    warnings: Vec<String>,
    attributes: Attributes,
    tasks: Vec<TaskRow>,
}

/// The answer, unless it is that the object is not there.
fn if_there<T>(answer: Result<T, ApiError>, absent: Code) -> Result<Option<T>, ApiError> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.code == absent => Ok(None),
        Err(error) => Err(error),
    }
}

/// One plugin and its process definition; either may be missing.
pub(super) async fn show(
    State(app): State<App>,
    plugin: Result<PluginPath, Problem>,
    viewer: Viewer,
    params: Params,
) -> Page {
    let PluginPath(name) = plugin?;
    let asked = app.handle.plugin(name.clone()).await;
    let plugin = if_there(asked.clone(), Code::UnknownPlugin)?;
    let process = app.handle.process(ProcessName::from(&name)).await;
    let process = if_there(process, Code::UnknownProcess)?;
    if process.is_none() {
        // Neither is there: the plugin is what was asked for.
        asked?;
    }
    let now = app.handle.now();
    let tasks = viewer.tasks(tasks_of(&app, process.as_ref()).await?);
    let tasks = tasks.iter().map(|task| TaskRow::of(task, now)).collect();
    let (plugin, process) = (plugin.as_ref(), process.as_ref());
    let previous = plugin
        .map(|plugin| plugin.previous.as_slice())
        .unwrap_or_default();
    page(&PluginPage {
        row: Row::of(name.to_string(), plugin, process),
        is_plugin: plugin.is_some(),
        file: plugin.map(|plugin| plugin.file.clone()).unwrap_or_default(),
        digest: plugin.and_then(|plugin| plugin.digest.clone()),
        more_previous: previous.len().saturating_sub(MAX_VERSIONS),
        previous: previous.iter().take(MAX_VERSIONS).cloned().collect(),
        facts: plugin
            .map(|plugin| plugin.facts.clone())
            .unwrap_or_default(),
        has_process: process.is_some(),
        description: process
            .map(|set| set.attributes.description.clone())
            .unwrap_or_default(),
        warnings: process
            .map(|process| process.warnings.clone())
            .unwrap_or_default(),
        attributes: process
            .map(|set| attributes(&set.attributes, PROCESS_ATTRIBUTES, &set.origins))
            .unwrap_or_default(),
        tasks,
        operates: viewer.may(Right::Operate),
        frame: Frame::new(&app, PATH, &params, &viewer).await?,
    })
}

/// The latest tasks of the queues that a process serves.
async fn tasks_of(
    app: &App,
    process: Option<&ProcessView>,
) -> Result<Vec<oncue_manager::tasks::record::TaskRecord>, ApiError> {
    let mut found = Vec::new();
    let queues = process
        .map(|process| process.queues.as_slice())
        .unwrap_or_default();
    for queue in queues.iter().take(MAX_QUEUES) {
        let filter = TaskFilter {
            queue: Some(queue.clone()),
            max: TASKS,
            ..TaskFilter::default()
        };
        found.extend(app.handle.tasks(filter).await?);
    }
    found.sort_by_key(|record| std::cmp::Reverse(record.id));
    found.truncate(TASKS);
    Ok(found)
}

/// Serves the version before the present one.
pub(super) async fn roll_back(
    State(app): State<App>,
    plugin: Result<PluginPath, Problem>,
    _form: Form,
) -> Result<Response, PageError> {
    let PluginPath(plugin): PluginPath = plugin?;
    let done = app.handle.rollback(plugin.clone()).await;
    let done = done.map(|digest| {
        let digest = format::digest(&digest);
        format!("Version {digest} of \"{plugin}\" serves until the plugin's file changes.")
    });
    Ok(back(&app, &page_of(&plugin), done.map_err(Into::into)))
}

fn page_of(plugin: &PluginName) -> String {
    format!("{PATH}/{plugin}")
}

/// Pauses or resumes the process definition.
pub(super) async fn pause(
    State(app): State<App>,
    process: Result<ProcessPath, Problem>,
    form: Form,
) -> Result<Response, PageError> {
    let ProcessPath(process) = process?;
    let paused = form.text("paused") == "true";
    let done = app.handle.pause_process(process.clone(), paused).await;
    let done = done.map(|()| {
        if paused {
            format!("Process \"{process}\" is paused: no task starts for its queues.")
        } else {
            format!("Process \"{process}\" is resumed.")
        }
    });
    Ok(back(
        &app,
        &format!("{PATH}/{process}"),
        done.map_err(Into::into),
    ))
}
