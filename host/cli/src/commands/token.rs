//! `token create`, `list`, `revoke`: on the data directory, with or without a running host.

use std::path::{Path, PathBuf};

use oncue_core::code::Code;
use oncue_manager::{Clock as _, SystemClock};
use oncue_server::auth::identity::{Grants, Identity, Role};
use oncue_server::auth::tokens::{self, NewToken, Token, Tokens, TokensError};
use serde_json::{Value, json};

use super::Context;
use crate::args::Cli;
use crate::args::token::{CreateArgs, DataArgs, TokenCommand};
use crate::config::{Config, TOKEN_VARIABLE};
use crate::exit::Failure;
use crate::render::table::{Cell, Table};
use crate::render::time::format_timestamp;
use crate::serve::home::make_data;

/// Runs one of the commands.
pub(super) fn run(context: &Context, cli: &Cli, command: &TokenCommand) -> Result<(), Failure> {
    let path = |data: &DataArgs| -> Result<PathBuf, Failure> {
        let mut flags = cli.globals.flags();
        flags.extend(data.flags());
        let config = Config::load(flags, cli.globals.config.as_deref())?;
        Ok(Tokens::path(Path::new(config.text("data-dir"))))
    };
    match command {
        TokenCommand::Create(args) => create(context, args, &path(&args.data)?),
        TokenCommand::List(data) => list(context, &path(data)?),
        TokenCommand::Revoke(args) => revoke(context, &args.name, &path(&args.data)?),
    }
}

fn failed(error: &TokensError) -> Failure {
    let code = match error {
        TokensError::Refused(_, fact) if fact.starts_with("is not there") => Code::NotFound,
        _ => Code::InvalidConfiguration,
    };
    Failure::coded(code, error)
}

fn create(context: &Context, args: &CreateArgs, path: &Path) -> Result<(), Failure> {
    let data = path.parent().unwrap_or(Path::new("."));
    make_data(data).map_err(|error| {
        let message = format!(
            "data directory \"{}\" cannot be made: {error}",
            data.display()
        );
        Failure::coded(Code::InvalidConfiguration, message)
    })?;
    let created = SystemClock.now().0;
    let expires = args.expires.map(|time| created.saturating_add(time));
    let identity = Identity {
        name: args.name.clone(),
        role: args.role,
        grants: Grants {
            put: args.put.clone(),
            get: args.get.clone(),
            browse: args.browse.clone(),
            define: args.define.clone(),
            operate: args.operate.clone(),
            bind: args.bind.clone(),
        },
    };
    let new = NewToken {
        identity,
        created,
        expires,
    };
    let token = tokens::create(path, new).map_err(|error| failed(&error))?;
    let is_first = read(path)?.all().len() == 1;
    if context.screen.is_json() {
        context.screen.json(&json!({
            "name": args.name, "role": args.role.as_str(), "created": created,
            "expires": expires, "token": token,
        }))?;
    } else {
        context.screen.line(&token)?;
        say_where(context, args, path);
    }
    if is_first {
        warn(context, args.role);
    }
    Ok(())
}

fn say_where(context: &Context, args: &CreateArgs, path: &Path) {
    context.screen.say(&format!(
        "token \"{}\" ({}) is in {}; keep what is printed above, it is not shown again",
        args.name,
        args.role,
        path.display()
    ));
}

/// Says what the first token does to all who have none.
fn warn(context: &Context, role: Role) {
    let screen = &context.screen;
    screen.say(&format!(
        "it is the only token: within a second a host on this directory refuses every request \
         without one. Give it to commands in {TOKEN_VARIABLE} or a file (--token-file), to the \
         console at /login, to programs as the header \"authorization: Bearer TOKEN\"; make one \
         for each application"
    ));
    if role != Role::Admin {
        screen.say(&format!(
            "role {role} does not administer the host: make a token for that too, with \"oncue \
             token create NAME --role admin\""
        ));
    }
}

fn read(path: &Path) -> Result<Tokens, Failure> {
    let tokens = Tokens::read(path).map_err(|error| failed(&error))?;
    Ok(tokens.unwrap_or_default())
}

fn list(context: &Context, path: &Path) -> Result<(), Failure> {
    let tokens = read(path)?;
    if context.screen.is_json() {
        let all = tokens.all().iter().map(as_json);
        return context.screen.json(&Value::Array(all.collect()));
    }
    let mut table = Table::new(&["NAME", "ROLE", "GRANTS", "CREATED", "EXPIRES"]);
    let now = SystemClock.now().0;
    for token in tokens.all() {
        let expires = token.expires.map_or_else(
            || "never".to_owned(),
            |end| {
                let over = if end <= now { " (over)" } else { "" };
                format!("{}{over}", format_timestamp(end))
            },
        );
        table.row(vec![
            Cell::new(&token.identity.name),
            Cell::new(token.identity.role.as_str()),
            Cell::new(grants(&token.identity.grants)),
            Cell::new(format_timestamp(token.created)),
            Cell::new(expires),
        ]);
    }
    context.screen.table(&table, "there are no tokens")
}

/// The grants that are given, by right.
fn granted(grants: &Grants) -> Vec<(&'static str, Vec<&str>)> {
    let lists = [
        ("put", &grants.put),
        ("get", &grants.get),
        ("browse", &grants.browse),
        ("define", &grants.define),
        ("operate", &grants.operate),
        ("bind", &grants.bind),
    ];
    let given = lists
        .into_iter()
        .filter(|(_, patterns)| !patterns.is_empty());
    given
        .map(|(right, patterns)| (right, patterns.iter().map(|it| it.as_str()).collect()))
        .collect()
}

fn grants(grants: &Grants) -> String {
    let lists = granted(grants).into_iter();
    let written = lists.map(|(right, patterns)| format!("{right}: {}", patterns.join(", ")));
    written.collect::<Vec<_>>().join("; ")
}

fn as_json(token: &Token) -> Value {
    let grants: serde_json::Map<String, Value> = granted(&token.identity.grants)
        .into_iter()
        .map(|(right, patterns)| (right.to_owned(), json!(patterns)))
        .collect();
    json!({
        "name": token.identity.name, "role": token.identity.role.as_str(), "grants": grants,
        "created": token.created, "expires": token.expires,
    })
}

fn revoke(context: &Context, name: &str, path: &Path) -> Result<(), Failure> {
    let left = tokens::revoke(path, name).map_err(|error| failed(&error))?;
    if context.screen.is_json() {
        return context
            .screen
            .json(&json!({ "revoked": name, "left": left }));
    }
    let then = if left == 0 {
        format!(
            "; none is left, so a host refuses everybody until one is made, or {} is removed and \
             the host restarted",
            path.display()
        )
    } else {
        String::new()
    };
    context
        .screen
        .say(&format!("token \"{name}\" is revoked{then}"));
    Ok(())
}
