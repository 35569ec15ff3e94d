//! A server with tokens, two queues and an audit log.

use oncue_core::definition::Pattern;
use oncue_server::auth::identity::{Grants, Identity, Role};
use oncue_server::auth::tokens::{self, NewToken, Tokens};
use oncue_server::auth::{Access, Mode};
use oncue_server::{Audit, Security, ServerOptions};
use serde_json::{Value, json};

use crate::harness::{Answered, Server};

/// The server, and its data directory.
pub(crate) struct Guarded {
    pub(crate) server: Server,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) security: Security,
}

pub(crate) fn patterns(texts: &[&str]) -> Vec<Pattern> {
    let read = texts
        .iter()
        .map(|text| Pattern::new(text).expect("a pattern"));
    read.collect()
}

pub(crate) fn grants(put: &[&str], get: &[&str], browse: &[&str]) -> Grants {
    Grants {
        put: patterns(put),
        get: patterns(get),
        browse: patterns(browse),
        ..Grants::default()
    }
}

impl Guarded {
    /// A server with queues `a` and `b`, and the token of an administrator.
    pub(crate) async fn start() -> (Self, String) {
        let (guarded, admin, _) = Self::with(&[]).await;
        (guarded, admin)
    }

    /// The same with tokens of others.
    pub(crate) async fn with(tokens: &[(&str, Role, Grants)]) -> (Self, String, Vec<String>) {
        let folder = tempfile::tempdir().expect("a directory");
        let admin = make(&folder, "admin", Role::Admin, Grants::default(), None);
        let made = tokens
            .iter()
            .map(|(name, role, grants)| make(&folder, name, *role, grants.clone(), None))
            .collect();
        let security = Security {
            access: Access::load(folder.path(), Mode::Auto, None).expect("tokens"),
            audit: Some(Audit::open(folder.path()).expect("an audit log")),
            ..Security::default()
        };
        let options = ServerOptions {
            security: security.clone(),
            ..ServerOptions::default()
        };
        let server = Server::with(options).await;
        let guarded = Self {
            server,
            folder,
            security,
        };
        for queue in ["a", "b"] {
            let path = format!("/v1/queues/{queue}");
            let body = json!({"trigger": "none"});
            guarded.json(&admin, "PUT", &path, body).await.is(201);
        }
        (guarded, admin, made)
    }

    pub(crate) async fn call(&self, token: &str, method: &str, path: &str) -> Answered {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str())];
        self.server.call(method, path, &headers, "").await
    }

    pub(crate) async fn json(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Value,
    ) -> Answered {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        self.server
            .call(method, path, &headers, body.to_string())
            .await
    }

    /// What the audit log says, without what differs from run to run.
    pub(crate) async fn audited(&self, admin: &str) -> Vec<Value> {
        let page = self
            .call(admin, "GET", "/v1/audit?max=1000")
            .await
            .is(200)
            .json();
        page["entries"].as_array().expect("entries").clone()
    }
}

pub(crate) fn make(
    folder: &tempfile::TempDir,
    name: &str,
    role: Role,
    grants: Grants,
    expires: Option<u64>,
) -> String {
    let name = name.to_owned();
    let new = NewToken {
        identity: Identity { name, role, grants },
        created: 1,
        expires,
    };
    tokens::create(&Tokens::path(folder.path()), new).expect("a token")
}
