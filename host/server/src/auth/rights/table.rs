//! Which right each route needs: the one table. A route that is not in it can be reached by an
//! administrator only, and a test finds it.

use super::Need::{self, Everywhere, Identity as Someone, Nothing, OnQueue, SeesQueue, Somewhere};
use super::Rule;
use crate::auth::identity::Right::{Admin, Bind, Browse, Define, Get, Observe, Operate, Put};

const fn look(path: &'static str, need: Need) -> Rule {
    Rule {
        method: "GET",
        path,
        need,
        action: None,
        is_page: false,
    }
}

/// What belongs to the console alone.
const fn page(method: &'static str, path: &'static str, need: Need) -> Rule {
    Rule {
        method,
        path,
        need,
        action: None,
        is_page: true,
    }
}

/// What moves messages: it has its traces in the messages, not in the audit log.
const fn traffic(path: &'static str, need: Need) -> Rule {
    Rule {
        method: "POST",
        path,
        need,
        action: None,
        is_page: false,
    }
}

const fn change(
    method: &'static str,
    path: &'static str,
    need: Need,
    action: &'static str,
) -> Rule {
    Rule {
        method,
        path,
        need,
        action: Some(action),
        is_page: false,
    }
}

/// Every route. The put stands first: it is looked for most often.
pub(super) const TABLE: &[Rule] = &[
    traffic("/v1/queues/{queue}/messages", OnQueue(Put)),
    traffic("/v1/queues/{queue}/get", OnQueue(Get)),
    // A lease's token is known to nobody but whoever got it.
    traffic("/v1/leases/{token}/ack", Somewhere(Get)),
    traffic("/v1/leases/{token}/nack", Somewhere(Get)),
    traffic("/v1/leases/{token}/extend", Somewhere(Get)),
    traffic("/v1/units", Somewhere(Put)),
    look("/v1/queues", Someone),
    look("/v1/queues/{queue}", SeesQueue),
    // Naming a process needs the right to bind too, another queue the right to define or put.
    change("PUT", "/v1/queues/{queue}", OnQueue(Define), "queue-define"),
    change(
        "PATCH",
        "/v1/queues/{queue}",
        OnQueue(Define),
        "queue-alter",
    ),
    change(
        "DELETE",
        "/v1/queues/{queue}",
        OnQueue(Define),
        "queue-delete",
    ),
    change(
        "POST",
        "/v1/queues/{queue}/clear",
        OnQueue(Operate),
        "queue-clear",
    ),
    // The right to define is asked for each queue, the right to bind for each process.
    change(
        "POST",
        "/v1/definitions",
        Somewhere(Define),
        "definitions-apply",
    ),
    // It changes nothing: what would be changed is asked in its body.
    traffic("/v1/definitions/changes", Somewhere(Define)),
    look("/v1/queues/{queue}/messages", OnQueue(Browse)),
    look("/v1/queues/{queue}/messages/{id}", OnQueue(Browse)),
    change(
        "DELETE",
        "/v1/queues/{queue}/messages/{id}",
        OnQueue(Operate),
        "message-remove",
    ),
    change(
        "POST",
        "/v1/queues/{queue}/messages/{id}/release",
        OnQueue(Operate),
        "message-release",
    ),
    change(
        "POST",
        "/v1/queues/{queue}/redrive",
        OnQueue(Operate),
        "queue-redrive",
    ),
    look("/v1/dead-letters", Everywhere(Observe)),
    change(
        "POST",
        "/v1/queues/{queue}/discard",
        OnQueue(Operate),
        "queue-discard",
    ),
    look("/v1/queues/{queue}/explain", SeesQueue),
    change(
        "POST",
        "/v1/queues/{queue}/trigger",
        OnQueue(Operate),
        "queue-trigger",
    ),
    change(
        "POST",
        "/v1/queues/{queue}/pause",
        OnQueue(Operate),
        "queue-pause",
    ),
    change(
        "POST",
        "/v1/queues/{queue}/resume",
        OnQueue(Operate),
        "queue-resume",
    ),
    look("/v1/processes", Everywhere(Observe)),
    look("/v1/processes/{process}", Everywhere(Observe)),
    change(
        "PUT",
        "/v1/processes/{process}",
        Everywhere(Bind),
        "process-define",
    ),
    change(
        "PATCH",
        "/v1/processes/{process}",
        Everywhere(Bind),
        "process-alter",
    ),
    change(
        "DELETE",
        "/v1/processes/{process}",
        Everywhere(Bind),
        "process-delete",
    ),
    change(
        "POST",
        "/v1/processes/{process}/pause",
        Everywhere(Operate),
        "process-pause",
    ),
    change(
        "POST",
        "/v1/processes/{process}/resume",
        Everywhere(Operate),
        "process-resume",
    ),
    look("/v1/plugins", Everywhere(Observe)),
    look("/v1/plugins/{plugin}", Everywhere(Observe)),
    change(
        "POST",
        "/v1/plugins/{plugin}/rollback",
        Everywhere(Operate),
        "plugin-rollback",
    ),
    // Only tasks of queues that are seen; logs and words of handlers to those who may browse.
    look("/v1/tasks", Someone),
    look("/v1/tasks/{task}", Someone),
    look("/v1/tasks/{task}/case", Someone),
    change("POST", "/v1/pause", Everywhere(Operate), "host-pause"),
    change("POST", "/v1/resume", Everywhere(Operate), "host-resume"),
    look("/v1/status", Everywhere(Observe)),
    look("/v1/ledger", Everywhere(Observe)),
    look("/v1/events", Someone),
    look("/v1/doctor", Everywhere(Observe)),
    look("/metrics", Everywhere(Observe)),
    look("/metrics/detailed", Everywhere(Observe)),
    look("/v1/audit", Everywhere(Admin)),
    // Pages of the console whose paths are not those of the API without `/v1`. Each one shows what
    // whoever looks may see; dead letters are of many queues, for those who may browse them all.
    page("GET", "/", Someone),
    page("GET", "/live", Someone),
    page("GET", "/dead-letters", Everywhere(Browse)),
    page("GET", "/dead-letters/export", Everywhere(Browse)),
    change(
        "POST",
        "/dead-letters/redrive",
        Everywhere(Operate),
        "queue-redrive",
    ),
    change(
        "POST",
        "/dead-letters/discard",
        Everywhere(Operate),
        "queue-discard",
    ),
    page("GET", "/queues/{queue}/put", OnQueue(Put)),
    page("POST", "/queues/{queue}/put", OnQueue(Put)),
    change(
        "POST",
        "/queues/{queue}/enable",
        OnQueue(Define),
        "queue-alter",
    ),
    change(
        "POST",
        "/queues/{queue}/messages/{id}/remove",
        OnQueue(Operate),
        "message-remove",
    ),
    change("POST", "/host/pause", Everywhere(Operate), "host-pause"),
    page("GET", "/login", Nothing),
    page("POST", "/login", Nothing),
    page("POST", "/logout", Someone),
    page("GET", "/assets/{hash}/{name}", Nothing),
    look("/v1/alarms", Everywhere(Observe)),
    look("/livez", Nothing),
    look("/readyz", Nothing),
    look("/startupz", Nothing),
    look("/v1/health/checks/{check}", Everywhere(Observe)),
    look("/openapi.json", Nothing),
];
