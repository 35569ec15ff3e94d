//! What stands around every page: the navigation, the state of the host, what needs a person now.

use oncue_manager::status::StatusView;

use super::assets;
use super::format;
use super::notes::Note;
use super::page::PageError;
use super::params::Params;
use super::viewer::Viewer;
use crate::app::App;
use crate::auth::identity::Right;

/// The parameter that names a notice.
pub(super) const NOTE: &str = "note";

/// The sections of the navigation: address and name.
const SECTIONS: [(&str, &str); 7] = [
    ("/", "Overview"),
    ("/queues", "Queues"),
    ("/tasks", "Tasks"),
    ("/plugins", "Plugins"),
    ("/dead-letters", "Dead letters"),
    ("/ledger", "Ledger"),
    ("/audit", "Audit"),
];

/// The name of a queue manager that was given none.
const USUAL_NAME: &str = "oncue";

/// What stands around a page.
#[derive(Debug)]
pub(super) struct Frame {
    /// The section that the page belongs to, by its address.
    pub(super) section: &'static str,
    /// The sections that whoever looks may open.
    sections: Vec<(&'static str, &'static str)>,
    /// The state of the host, for those who may see it; nothing on a page of errors.
    pub(super) host: Option<Host>,
    /// The page asks for itself again when something has changed.
    pub(super) is_live: bool,
    /// What the last action has to say.
    pub(super) note: Option<Note>,
    /// The token of forms.
    pub(super) csrf: String,
    /// The page is seen within a session, which can be ended.
    pub(super) in_session: bool,
}

/// The host in a line.
#[derive(Debug)]
pub(super) struct Host {
    /// The queue manager's name, unless it has the usual one.
    pub(super) name: Option<String>,
    pub(super) version: &'static str,
    pub(super) up: String,
    pub(super) dead_letters: u64,
    pub(super) warnings: Vec<Warning>,
    /// Alarms that are raised, in words.
    pub(super) alarms: Option<String>,
}

/// Something that a person should know on every page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Warning {
    /// It stops work.
    pub(super) bad: bool,
    pub(super) text: String,
}

impl Host {
    fn of(status: &StatusView) -> Self {
        Self {
            name: Some(status.name.clone()).filter(|name| name != USUAL_NAME),
            version: status.version,
            up: format::duration(status.now.since(status.started)),
            dead_letters: status.dead_letters,
            warnings: warnings(status),
            alarms: match status.alarms {
                0 => None,
                1 => Some("1 alarm is raised.".to_owned()),
                alarms => Some(format!("{} alarms are raised.", format::number(alarms))),
            },
        }
    }
}

impl Frame {
    /// The frame of a page of that section.
    pub(super) async fn new(
        app: &App,
        section: &'static str,
        params: &Params,
        viewer: &Viewer,
    ) -> Result<Self, PageError> {
        let status = if viewer.may(Right::Observe) {
            Some(app.handle.status().await?)
        } else {
            None
        };
        Ok(Self::with(app, section, params, viewer, status.as_ref()))
    }

    /// The same where the status is known already, or not for whoever looks.
    pub(super) fn with(
        app: &App,
        section: &'static str,
        params: &Params,
        viewer: &Viewer,
        status: Option<&StatusView>,
    ) -> Self {
        let note = params.number(NOTE);
        let token = viewer.session().unwrap_or(app.console.csrf.token());
        Self {
            host: status.map(Host::of),
            is_live: true,
            note: note.and_then(|number| app.console.notes.take(number)),
            csrf: token.to_owned(),
            ..Self::bare(section, viewer)
        }
    }

    /// A frame with nothing of the host in it.
    pub(super) fn bare(section: &'static str, viewer: &Viewer) -> Self {
        let sections = SECTIONS.into_iter();
        Self {
            section,
            sections: sections.filter(|it| viewer.may_open(it.0)).collect(),
            host: None,
            is_live: false,
            note: None,
            csrf: viewer.session().unwrap_or_default().to_owned(),
            in_session: viewer.session().is_some(),
        }
    }

    /// The same page, left as it is while somebody is at it.
    pub(super) fn still(self) -> Self {
        Self {
            is_live: false,
            ..self
        }
    }

    /// Whether there is nowhere to go.
    pub(super) fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// Address, name, whether it is this page's, and a number to show beside the name.
    pub(super) fn sections(&self) -> Vec<(&'static str, &'static str, bool, Option<String>)> {
        let letters = self.host.as_ref().map_or(0, |host| host.dead_letters);
        let badge =
            |address| (address == "/dead-letters" && letters > 0).then(|| format::number(letters));
        let sections = self.sections.iter();
        sections
            .map(|(address, name)| (*address, *name, *address == self.section, badge(*address)))
            .collect()
    }

    /// The address of a file of the console.
    #[expect(
        clippy::unused_self,
        reason = "templates reach functions through the frame"
    )]
    pub(super) fn asset(&self, name: &str) -> &'static str {
        assets::address(name)
    }
}

fn warnings(status: &StatusView) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |bad, text: &str| {
        let text = text.to_owned();
        warnings.push(Warning { bad, text });
    };
    match status.store {
        "ok" => {}
        "full" => warn(
            true,
            "The disk is full: puts are refused and no task starts. Make room; the store goes on \
             by itself.",
        ),
        other => warn(
            true,
            &format!(
                "The store does not write ({other}): restart the host after a look at the disk."
            ),
        ),
    }
    if status.phase != "running" {
        warn(true, "The host is stopping: no task starts.");
    }
    if status.paused {
        warn(
            false,
            "The host is paused: no task starts. Puts and gets go on.",
        );
    }
    warnings
}
