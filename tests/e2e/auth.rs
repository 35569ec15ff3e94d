//! Tokens, TLS and the audit log with the real binary: who gets in, and who is told why not.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::host::{Answer, Home, Host};
use crate::wait::until;
use crate::work::sample;

/// Runs the command line with an environment; answers exit code, standard output, standard error.
fn run(home: &Home, arguments: &[&str], environment: &[(&str, &str)]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_oncue"))
        .args(arguments)
        .envs(environment.iter().copied())
        .env_remove("ONCUE_TOKEN_FILE")
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Makes a token in a home's data directory.
pub(crate) fn token(home: &Home, arguments: &[&str]) -> String {
    let data = home.data().display().to_string();
    let all = [&["token", "create"], arguments, &["--data-dir", &data]].concat();
    let (code, out, err) = run(home, &all, &[]);
    assert_eq!(code, 0, "{err}");
    let token = out.trim_end().to_owned();
    assert!(
        token.starts_with("oncue_") && token.lines().count() == 1,
        "{out}"
    );
    assert!(!err.contains(&token), "{err}");
    token
}

fn ask(host: &Host, token: &str, method: &str, path: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    host.request(method, path, &headers, &[])
        .expect("the host answers")
}

#[test]
fn logs_are_followed_with_the_token() {
    let home = Home::new();
    home.drop_sample(sample("traps"));
    let host = home.start();
    host.wait_for_plugin("traps", "ready");
    let admin = token(&home, &["ops", "--role", "admin"]);
    until("the token to be asked for", || {
        host.get("/v1/status").status == 401
    });
    let mut follower = Command::new(env!("CARGO_BIN_EXE_oncue"))
        .args(["logs", "-f", "--url", &host.url])
        .env("ONCUE_TOKEN", &admin)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let out = BufReader::new(follower.stdout.take().expect("it is piped"));
    let (tell, told) = mpsc::sync_channel(1_000);
    let reader = std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            let _ = tell.send(line);
        }
    });
    until("a line of what the handler wrote", || {
        ask(&host, &admin, "POST", "/v1/queues/traps/messages").expect(201);
        told.try_recv().is_ok()
    });
    follower.kill().expect("it runs");
    follower.wait().expect("it ends");
    reader.join().expect("it ends");
}

#[test]
fn a_running_host_asks_for_tokens_as_soon_as_there_are_some() {
    let home = Home::new();
    let host = home.start();
    host.get("/v1/status").expect(200);
    let admin = token(&home, &["ops", "--role", "admin"]);
    until("the token to be asked for", || {
        host.get("/v1/status").status == 401
    });
    ask(&host, &admin, "GET", "/v1/status").expect(200);
    host.get("/livez").expect(200);
    // The command line sends it from the environment or from a file.
    let url = [("ONCUE_URL", host.url.as_str())];
    let (code, _, err) = run(&home, &["status"], &url);
    assert_eq!(code, 4, "{err}");
    assert!(
        err.contains("put it into ONCUE_TOKEN, or name its file with --token-file")
            && err.contains("[not-authorized]"),
        "{err}"
    );
    let (code, _, err) = run(&home, &["logs", "-f"], &url);
    assert!(code == 4 && err.contains("ONCUE_TOKEN"), "{err}");
    let wrong = [url[0], ("ONCUE_TOKEN", "oncue_wrong")];
    let (code, _, err) = run(&home, &["status"], &wrong);
    assert!(
        code == 4 && err.contains("refuses the token of ONCUE_TOKEN: the token is not one"),
        "{err}"
    );
    let with = [url[0], ("ONCUE_TOKEN", admin.as_str())];
    assert_eq!(run(&home, &["status"], &with).0, 0);
    let file = home.path().join("token");
    std::fs::write(&file, format!("{admin}\n")).expect("written");
    let file = file.display().to_string();
    assert_eq!(run(&home, &["status", "--token-file", &file], &url).0, 0);
    let (_, shown, _) = run(&home, &["config", "show"], &with);
    assert!(!shown.contains(&admin), "{shown}");
    // It is listed without what could be used, and revoked.
    let data = home.data().display().to_string();
    let (_, listed, _) = run(&home, &["token", "list", "--data-dir", &data], &[]);
    assert!(
        listed.contains("ops") && !listed.contains("oncue_"),
        "{listed}"
    );
    let revoke = ["token", "revoke", "ops", "--data-dir", &data];
    let (code, _, err) = run(&home, &revoke, &[]);
    assert_eq!(code, 0, "{err}");
    until("the token to be refused", || {
        ask(&host, &admin, "GET", "/v1/status").status == 401
    });
    assert_eq!(run(&home, &revoke, &[]).0, 3);
    // What was told and written has no token in it.
    let audit = std::fs::read_to_string(home.data().join("audit/audit.jsonl")).expect("the log");
    for place in [host.log(), host.out(), audit] {
        assert!(!place.contains(&admin), "{place}");
    }
}

#[test]
fn the_first_token_says_whom_it_keeps_out() {
    let home = Home::new();
    let data = home.data().display().to_string();
    let create = |name: &str, role: &str, more: &[&str]| {
        let line = [
            &["token", "create", name, "--role", role, "--data-dir", &data],
            more,
        ]
        .concat();
        let (code, _, err) = run(&home, &line, &[]);
        assert_eq!(code, 0, "{err}");
        err
    };
    let first = create("shop", "application", &["-o", "json"]);
    let meta = std::fs::metadata(home.data()).expect("it is made");
    assert_eq!(meta.permissions().mode() & 0o777, 0o700);
    for part in [
        "refuses every request without one",
        "ONCUE_TOKEN",
        "does not administer",
    ] {
        assert!(first.contains(part), "{first}");
    }
    let second = create("ops", "admin", &[]);
    assert!(!second.contains("refuses every request"), "{second}");
}

#[test]
fn the_audit_log_is_shown_and_survives_a_restart() {
    let home = Home::new();
    let admin = token(&home, &["ops", "--role", "admin"]);
    let shop = token(&home, &["shop", "--role", "application", "--put", "orders"]);
    let host = home.start();
    let bearer = format!("Bearer {admin}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let body = json!({"trigger": "none"}).to_string();
    let made = host.request("PUT", "/v1/queues/orders", &headers, body.as_bytes());
    made.expect("an answer").expect(201);
    ask(&host, &shop, "POST", "/v1/queues/orders/messages").expect(201);
    ask(&host, &shop, "POST", "/v1/queues/orders/clear").expect(403);
    assert_eq!(host.stop(), 0);
    let host = home.start();
    let environment = [
        ("ONCUE_URL", host.url.as_str()),
        ("ONCUE_TOKEN", admin.as_str()),
    ];
    let (code, out, err) = run(&home, &["audit", "-o", "json"], &environment);
    assert_eq!(code, 0, "{err}");
    let page: Value = serde_json::from_str(&out).expect("JSON");
    let told: Vec<String> = page["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|it| format!("{} {} {}", it["identity"], it["action"], it["result"]).replace('"', ""))
        .collect();
    assert_eq!(
        told,
        [
            "host host-started done",
            "ops queue-define done",
            "shop queue-clear not-permitted",
            "host host-started done",
        ]
    );
    let (code, out, _) = run(&home, &["audit", "--since", "1h"], &environment);
    assert_eq!(code, 0);
    assert!(out.contains("queue-clear"), "{out}");
    let environment = [environment[0], ("ONCUE_TOKEN", shop.as_str())];
    assert_eq!(run(&home, &["audit"], &environment).0, 4);
}

/// Starts a host at an address of all machines; its complaint if it does not.
fn start_open(home: &Home, flags: &[&str]) -> Result<Host, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oncue"));
    command
        .args(["serve", "--listen", "0.0.0.0:0", "--data-dir"])
        .arg(home.data())
        .arg("--plugins-dir")
        .arg(home.plugins())
        .args(flags)
        .current_dir(home.path());
    Host::of(command)
}

/// A certificate for this machine in files of a folder.
fn certificate(folder: &Path, name: &str) -> (PathBuf, PathBuf, String) {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let (certificate, key) = (
        folder.join(format!("{name}.pem")),
        folder.join(format!("{name}.key")),
    );
    std::fs::write(&certificate, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    (certificate, key, made.cert.pem())
}

#[test]
fn other_machines_are_listened_to_with_tokens_and_tls_only() {
    let home = Home::new();
    let refused = |flags: &[&str], part: &str| {
        let complaint = start_open(&home, flags).err().expect("refused");
        assert!(complaint.contains(part), "{complaint}");
        assert!(
            complaint.contains("refuses to listen on 0.0.0.0"),
            "{complaint}"
        );
    };
    refused(&[], "no token is asked for");
    let required = start_open(&home, &["--auth", "required"])
        .err()
        .expect("refused");
    assert!(required.contains("there is no token"), "{required}");
    let admin = token(&home, &["ops", "--role", "admin"]);
    refused(&[], "tokens would pass in the clear");
    refused(&["--auth", "off"], "no token is asked for");
    let (certificate, key, _) = certificate(home.path(), "host");
    let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
    let host = start_open(&home, &["--tls-cert", &certificate, "--tls-key", &key]);
    drop(host.expect("with tokens and TLS"));
    let host = start_open(&home, &["--insecure-http"]).expect("behind a proxy");
    let port = host.url.rsplit(':').next().expect("a port");
    let local = format!("http://127.0.0.1:{port}");
    let environment = [
        ("ONCUE_URL", local.as_str()),
        ("ONCUE_TOKEN", admin.as_str()),
    ];
    assert_eq!(run(&home, &["status"], &environment).0, 0);
    // A client does not send its token in the clear to another machine.
    let environment = [
        ("ONCUE_URL", "http://192.0.2.1:7373"),
        ("ONCUE_TOKEN", admin.as_str()),
    ];
    let (code, _, err) = run(&home, &["status"], &environment);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("plain HTTP to another machine"), "{err}");
}

#[test]
fn tls_is_spoken_and_a_new_certificate_is_taken_while_old_connections_go_on() {
    let home = Home::new();
    let (certificate_file, key_file, _) = certificate(home.path(), "host");
    let flags = [
        "--tls-cert",
        certificate_file.to_str().expect("a text"),
        "--tls-key",
        key_file.to_str().expect("a text"),
    ];
    let host = home.start_with(&flags, &[]);
    assert!(host.url.starts_with("https://127.0.0.1:"), "{}", host.url);
    let status = |authority: &Path| {
        let authority = authority.display().to_string();
        let environment = [("ONCUE_URL", host.url.as_str())];
        run(
            &home,
            &["status", "--ca-file", &authority, "--timeout", "60s"],
            &environment,
        )
    };
    let first = home.path().join("first.pem");
    std::fs::copy(&certificate_file, &first).expect("copied");
    let (code, _, err) = status(&first);
    assert_eq!(code, 0, "{err}");
    // Who does not know the certificate is told how it is made known.
    let url = [("ONCUE_URL", host.url.as_str())];
    let (code, _, err) = run(&home, &["status", "--timeout", "60s"], &url);
    assert!(
        code == 5 && err.contains("with --ca-file [unreachable]"),
        "{err}"
    );
    // A connection of before the change.
    let kept = agent(&first);
    let url = format!("{}/livez", host.url);
    let ask_kept = || {
        let answer = kept.get(&url).call().expect("an answer");
        let body = answer.into_body().read_to_string();
        assert!(body.expect("a body").contains("ok"));
    };
    ask_kept();
    // One that is no use changes nothing.
    std::fs::write(&certificate_file, "nonsense").expect("written");
    host.signal("HUP");
    until("the warning", || {
        host.log().contains("the certificate in use stays")
    });
    assert_eq!(status(&first).0, 0);
    // A new one is taken by new connections.
    let second = home.path().join("second.pem");
    let (new, new_key, _) = certificate(home.path(), "new");
    std::fs::copy(&new, &second).expect("copied");
    std::fs::rename(new_key, &key_file).expect("renamed");
    std::fs::rename(new, &certificate_file).expect("renamed");
    until("the new certificate", || status(&second).0 == 0);
    let (code, _, err) = status(&first);
    assert!(code == 5 && err.contains("does not vouch"), "{err}");
    ask_kept();
    // Plain HTTP is not answered.
    use std::io::{Read as _, Write as _};
    let address = host.url.trim_start_matches("https://");
    let mut plain = TcpStream::connect(address).expect("a connection");
    plain
        .write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .expect("sent");
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(!answer.contains("HTTP/1.1"), "{answer}");
    let _ = std::fs::remove_file(second);
}

/// The greeting of a client that speaks nothing newer than a version of TLS: 3.1 is 1.0.
fn old_greeting(minor: u8) -> Vec<u8> {
    let mut hello = vec![3, minor];
    hello.extend([7; 32]);
    // No session, two suites of that time, no compression, no extension.
    hello.extend([0, 0, 4, 0xc0, 0x13, 0x00, 0x2f, 1, 0]);
    let length = u8::try_from(hello.len()).expect("short");
    let mut record = vec![0x16, 3, 1, 0, length + 4, 1, 0, 0, length];
    record.extend(hello);
    record
}

#[test]
fn old_protocols_are_not_spoken_and_an_expired_certificate_is_believed_by_nobody() {
    use std::io::{Read as _, Write as _};
    let home = Home::new();
    let (certificate_file, key_file, _) = certificate(home.path(), "host");
    let flags = [
        "--tls-cert",
        certificate_file.to_str().expect("a text"),
        "--tls-key",
        key_file.to_str().expect("a text"),
    ];
    let host = home.start_with(&flags, &[]);
    let address = host.url.trim_start_matches("https://");
    for minor in [0, 1, 2] {
        let mut old = TcpStream::connect(address).expect("a connection");
        old.write_all(&old_greeting(minor)).expect("sent");
        let mut answer = Vec::new();
        let _ = old.read_to_end(&mut answer);
        // An alert and the end, no greeting in return.
        assert_eq!(answer.first(), Some(&0x15), "3.{minor}: {answer:?}");
    }
    // What has expired is taken, as the operator wants it, and no client believes it.
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let mut past = rcgen::CertificateParams::new(names).expect("names");
    past.not_before = rcgen::date_time_ymd(2020, 1, 1);
    past.not_after = rcgen::date_time_ymd(2020, 2, 1);
    let key = rcgen::KeyPair::generate().expect("a key");
    let expired = past.self_signed(&key).expect("a certificate");
    std::fs::write(&key_file, key.serialize_pem()).expect("written");
    std::fs::write(&certificate_file, expired.pem()).expect("written");
    host.signal("HUP");
    until("the new certificate", || {
        host.log().contains("a new certificate is in use")
    });
    let authority = certificate_file.display().to_string();
    let ask = ["status", "--ca-file", &authority, "--timeout", "60s"];
    let (code, _, err) = run(&home, &ask, &[("ONCUE_URL", host.url.as_str())]);
    assert_eq!(code, 5, "{err}");
    assert!(err.contains("has expired; renew it"), "{err}");
}

/// A client that believes one certificate.
fn agent(authority: &Path) -> ureq::Agent {
    use ureq::tls::{Certificate, RootCerts, TlsConfig};
    let pem = std::fs::read(authority).expect("a certificate");
    let certificate = Certificate::from_pem(&pem).expect("a certificate");
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&[certificate]))
        .unversioned_rustls_crypto_provider(std::sync::Arc::new(
            tokio_rustls::rustls::crypto::ring::default_provider(),
        ));
    ureq::Agent::config_builder()
        .tls_config(tls.build())
        .build()
        .into()
}
