//! The first message after a drop: the plugin new to the host, and known to it from before.
//!
//! A message waits on the queue when the file comes. From the file's rename to the message's effect
//! are: settling, compiling or finding what was compiled, loading, and the first call.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::Scenario;
use crate::child::{Client, Host, drop_echo, remove_echo};
use crate::host;
use crate::run::Run;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "cold",
    what: "the first message after a drop, compiled and from the cache, with its parts",
    run,
};

fn run(run: &mut Run) -> anyhow::Result<()> {
    run.note(
        "settle",
        "200 ms, the default, is part of every figure but .call",
    );
    for _ in 0..run.rounds() {
        let directory = host::directory()?;
        let home = directory.path();
        let host = Host::start(home)?;
        let mut client = host.client()?;
        for queue in ["echo", "echo.out"] {
            let path = format!("/v1/queues/{queue}");
            client.json("PUT", &path, &json!({"trigger": "none"}))?;
        }
        client.json(
            "PUT",
            "/v1/queues/echo",
            &json!({"process": "echo", "trigger": "first"}),
        )?;
        let mut handled = 0;
        for name in ["compiled", "cached"] {
            first(run, home, &mut client, &mut handled, name)?;
            remove_echo(home, &mut client)?;
        }
        host.stop()?;
    }
    run.ratio("cached.total", "compiled.total");
    Ok(())
}

fn first(
    run: &mut Run,
    home: &Path,
    client: &mut Client,
    handled: &mut u64,
    name: &str,
) -> anyhow::Result<()> {
    let put = |client: &mut Client| {
        client.send("POST", "/v1/queues/echo/messages", "text/plain", b"first")
    };
    put(client)?;
    let begun = Instant::now();
    drop_echo(home, 0)?;
    client.serves("echo")?;
    run.sample(
        &format!("{name}.ready"),
        begun.elapsed().as_secs_f64() * 1e3,
        "ms",
    );
    *handled += 1;
    effect(client, *handled)?;
    run.sample(
        &format!("{name}.total"),
        begun.elapsed().as_secs_f64() * 1e3,
        "ms",
    );
    let plugin = client.json("GET", "/v1/plugins/echo", &Value::Null)?;
    run.note(&format!("{name}.facts"), &plugin["facts"].to_string());
    let begun = Instant::now();
    put(client)?;
    *handled += 1;
    effect(client, *handled)?;
    run.sample(
        &format!("{name}.call"),
        begun.elapsed().as_secs_f64() * 1e3,
        "ms",
    );
    Ok(())
}

fn effect(client: &mut Client, handled: u64) -> anyhow::Result<()> {
    client.until(|client| Ok(client.number("/v1/queues/echo.out", "depth")? >= handled))
}
