//! Who asked for what, for the audit log.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use oncue_core::code::Code;

use crate::app::App;
use crate::audit::{self, Entry, Told};
use crate::auth::Caller;
use crate::auth::identity::Identity;
use crate::auth::rights::{Found, Rule};
use crate::security::Peer;

/// A request, as the audit log has it.
pub(crate) struct Asked {
    pub(crate) rule: Option<&'static Rule>,
    /// Only for what goes into the log when it is done.
    object: String,
    message: Option<String>,
    /// Method and path, where no action in the table names the request and a log is kept. Copied:
    /// while somebody holds a part of the request's head, the connection reads into new memory.
    unnamed: Option<String>,
    pub(crate) identity: Option<Arc<Identity>>,
    /// Whom a token or a cookie names, until the request bears it.
    pub(crate) caller: Option<Caller>,
    pub(crate) peer: Option<Peer>,
}

impl Asked {
    pub(crate) fn of(
        found: Option<&Found<'_>>,
        request: &Request,
        peer: Option<Peer>,
        is_logged: bool,
    ) -> Self {
        let audited = found.filter(|found| found.rule.action.is_some());
        let shown = || {
            let shown = format!("{} {}", request.method(), request.uri().path());
            shown.chars().take(audit::MAX_OBJECT).collect()
        };
        Self {
            rule: found.map(|found| found.rule),
            object: audited.map(Found::shown).unwrap_or_default(),
            message: audited.and_then(Found::shown_message),
            unnamed: (is_logged && audited.is_none()).then(shown),
            identity: None,
            caller: None,
            peer,
        }
    }

    /// The entry of a change, or of a refusal.
    fn entry(&self, code: Option<Code>, told: Told) -> Option<Entry> {
        let action = self.rule.and_then(|rule| rule.action);
        if !is_refusal(code) && (action.is_none() || code == Some(Code::RateLimited)) {
            return None;
        }
        let result = code.map_or(audit::DONE, Code::as_str);
        let action = action.map_or_else(|| self.route(), str::to_owned);
        let object = told.object.as_ref().unwrap_or(&self.object);
        let entry = Entry {
            message: self.message.clone(),
            messages: told.messages,
            ..Entry::new(&action, object, result)
        };
        Some(entry.by(self.name(), self.peer.map(|peer| peer.0.ip())))
    }

    /// Method and path of what has no name. A path with a lease's token in it is not written down.
    fn route(&self) -> String {
        let secret = self.rule.filter(|rule| rule.bears_a_token());
        match (secret, &self.unnamed) {
            (Some(rule), _) => rule.to_string(),
            (None, Some(shown)) => shown.clone(),
            (None, None) => String::new(),
        }
    }

    fn name(&self) -> Option<&str> {
        let identity = self.identity.as_ref();
        identity.map(|identity| identity.name.as_str())
    }
}

/// Whether somebody was refused who should not be here.
fn is_refusal(code: Option<Code>) -> bool {
    matches!(
        code,
        Some(Code::NotAuthorized | Code::NotPermitted | Code::ForeignOrigin)
    )
}

/// Writes what was done or refused into the audit log, if one is kept.
pub(crate) fn note(
    app: &App,
    asked: &Asked,
    code: Option<Code>,
    told: Option<Told>,
    response: &Response,
    id: &str,
) {
    let security = &app.options.security;
    let Some(audit) = &security.audit else {
        return;
    };
    let Some(mut entry) = asked.entry(code, told.unwrap_or_default()) else {
        return;
    };
    if is_refusal(code) {
        let address = asked.peer.map(|peer| peer.0.ip());
        let Some(unwritten) = security.access.refused(asked.name(), address) else {
            return;
        };
        entry.unwritten = Some(unwritten).filter(|count| *count > 0);
    }
    entry.status = Some(response.status().as_u16());
    entry.request_id = Some(id.to_owned());
    audit.note(&entry);
}
