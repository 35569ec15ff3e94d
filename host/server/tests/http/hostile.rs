//! Clients that mean ill: slow, too many, too large, without a right, on a listener with tokens and
//! TLS and on one without.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use oncue_server::auth::identity::{Grants, Identity, Role};
use oncue_server::auth::tokens::{self, NewToken, Tokens};
use oncue_server::auth::{Access, Mode};
use oncue_server::{Security, ServerOptions, Tls};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::listener::{CLOSE, SOON, listen, rest, send};

/// A certificate in files of a folder, and a client that believes it.
fn certificate(folder: &Path) -> (Tls, TlsConnector) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    let (certificate, key) = (folder.join("c.pem"), folder.join("k.pem"));
    std::fs::write(&certificate, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let mut roots = RootCertStore::empty();
    let der: CertificateDer<'static> = made.cert.der().clone();
    roots.add(der).expect("a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tls = Tls::load(&certificate, &key).expect("a certificate");
    (tls, TlsConnector::from(Arc::new(config)))
}

fn secured(tls: Tls, options: ServerOptions) -> ServerOptions {
    let security = Security {
        tls: Some(tls),
        ..Security::default()
    };
    ServerOptions {
        security,
        ..options
    }
}

async fn greet(connector: &TlsConnector, stream: TcpStream) -> TlsStream<TcpStream> {
    let name = ServerName::try_from("localhost").expect("a name");
    connector.connect(name, stream).await.expect("TLS")
}

#[tokio::test]
async fn requests_are_served_over_tls() {
    let folder = tempfile::tempdir().expect("a directory");
    let (tls, connector) = certificate(folder.path());
    let listening = listen(secured(tls, ServerOptions::default())).await;
    let stream = TcpStream::connect(listening.address)
        .await
        .expect("a connection");
    let mut stream = greet(&connector, stream).await;
    let request = format!("GET /v1/status HTTP/1.1\r\n{CLOSE}");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(
        answer.contains("x-content-type-options: nosniff"),
        "{answer}"
    );
    assert!(answer.contains("cache-control: no-store"), "{answer}");
}

#[tokio::test]
async fn a_greeting_that_does_not_come_is_cut_off() {
    let folder = tempfile::tempdir().expect("a directory");
    let (tls, _) = certificate(folder.path());
    let options = ServerOptions {
        handshake_time: SOON,
        max_connections: 1,
        ..ServerOptions::default()
    };
    let listening = listen(secured(tls, options)).await;
    // Nothing at all, and the first bytes of a greeting.
    for first in [&b""[..], &[0x16, 0x03, 0x01, 0x02, 0x00]] {
        let mut stream = TcpStream::connect(listening.address)
            .await
            .expect("a connection");
        stream.write_all(first).await.expect("sent");
        assert_eq!(rest(stream).await, "", "{first:?}");
    }
    // What is no greeting is not answered in the clear.
    let plain = send(
        listening.address,
        &format!("GET /livez HTTP/1.1\r\n{CLOSE}"),
    )
    .await;
    assert!(!rest(plain).await.contains("HTTP/1.1"));
}

#[tokio::test]
async fn a_slow_head_over_tls_is_cut_off() {
    let folder = tempfile::tempdir().expect("a directory");
    let (tls, connector) = certificate(folder.path());
    let options = ServerOptions {
        idle_time: Duration::from_millis(500),
        handshake_time: Duration::from_secs(30),
        ..ServerOptions::default()
    };
    let listening = listen(secured(tls, options)).await;
    let stream = TcpStream::connect(listening.address)
        .await
        .expect("a connection");
    let mut stream = greet(&connector, stream).await;
    stream
        .write_all(b"GET /livez HTTP/1.1\r\nhost: local")
        .await
        .expect("sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert_eq!(answer, b"");
}

#[tokio::test]
async fn connections_of_one_address_are_bounded() {
    let options = ServerOptions {
        max_connections_per_address: Some(1),
        ..ServerOptions::default()
    };
    let listening = listen(options).await;
    let live = format!("GET /livez HTTP/1.1\r\n{CLOSE}");
    let mut first = send(
        listening.address,
        "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n",
    )
    .await;
    let mut begun = [0; 12];
    first.read_exact(&mut begun).await.expect("an answer");
    assert_eq!(&begun, b"HTTP/1.1 200");
    let second = TcpStream::connect(listening.address)
        .await
        .expect("a connection");
    assert_eq!(rest(second).await, "");
    drop(first);
    // The place is free once the server has seen the end.
    let mut answer = String::new();
    while !answer.starts_with("HTTP/1.1 200") {
        tokio::task::yield_now().await;
        let Ok(mut next) = TcpStream::connect(listening.address).await else {
            continue;
        };
        if next.write_all(live.as_bytes()).await.is_ok() {
            answer = rest(next).await;
        }
    }
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let listening = listen(ServerOptions::default()).await;
    let many: String = (0..150).map(|n| format!("x-{n}: y\r\n")).collect();
    let long = format!("x: {}\r\n", "y".repeat(1 << 20));
    for headers in [many, long] {
        let request = format!("GET /livez HTTP/1.1\r\n{headers}{CLOSE}");
        let mut stream = TcpStream::connect(listening.address)
            .await
            .expect("a connection");
        // The server may close before it has taken all.
        let _ = stream.write_all(request.as_bytes()).await;
        let answer = rest(stream).await;
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
            "{answer}"
        );
    }
    let live = send(
        listening.address,
        &format!("GET /livez HTTP/1.1\r\n{CLOSE}"),
    )
    .await;
    assert!(rest(live).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn another_protocol_is_not_spoken() {
    let listening = listen(ServerOptions::default()).await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut stream = TcpStream::connect(listening.address)
        .await
        .expect("a connection");
    // Byte by byte, as well as at once.
    for byte in &preface[..4] {
        let _ = stream.write_all(&[*byte]).await;
    }
    assert_eq!(rest(stream).await, "");
    let mut stream = TcpStream::connect(listening.address)
        .await
        .expect("a connection");
    let _ = stream.write_all(preface).await;
    assert_eq!(rest(stream).await, "");
    let put = send(
        listening.address,
        &format!("PRINT /livez HTTP/1.1\r\n{CLOSE}"),
    )
    .await;
    assert!(rest(put).await.starts_with("HTTP/1.1 405"));
}

/// A token of an administrator, and options that ask for it.
fn guarded(folder: &Path, rate: Option<u32>) -> (String, ServerOptions) {
    let identity = Identity {
        name: "ops".to_owned(),
        role: Role::Admin,
        grants: Grants::default(),
    };
    let new = NewToken {
        identity,
        created: 1,
        expires: None,
    };
    let token = tokens::create(&Tokens::path(folder), new).expect("a token");
    let rate = rate.and_then(std::num::NonZeroU32::new);
    let security = Security {
        access: Access::load(folder, Mode::Auto, rate).expect("tokens"),
        ..Security::default()
    };
    let options = ServerOptions {
        security,
        ..ServerOptions::default()
    };
    (token, options)
}

#[tokio::test]
async fn a_flood_without_a_token_is_refused_and_shuts_nobody_out() {
    let folder = tempfile::tempdir().expect("a directory");
    let (token, options) = guarded(folder.path(), None);
    let listening = listen(options).await;
    let ask = async |token: &str| {
        let head = format!("GET /v1/status HTTP/1.1\r\nauthorization: Bearer {token}\r\n{CLOSE}");
        rest(send(listening.address, &head).await).await
    };
    let mut answers = Vec::new();
    for _ in 0..60 {
        answers.push(ask("oncue_guess").await);
    }
    assert!(answers[0].starts_with("HTTP/1.1 401"), "{}", answers[0]);
    let limited = answers.iter().filter(|it| it.starts_with("HTTP/1.1 429"));
    assert!(limited.count() > 10);
    let last = answers.last().expect("an answer");
    assert!(
        last.contains("retry-after: 1") && last.contains("[rate-limited]"),
        "{last}"
    );
    let good = ask(&token).await;
    assert!(good.starts_with("HTTP/1.1 200"), "{good}");
}

#[tokio::test]
async fn an_identity_that_asks_too_often_is_told_to_wait() {
    let folder = tempfile::tempdir().expect("a directory");
    let (token, options) = guarded(folder.path(), Some(5));
    let listening = listen(options).await;
    let head = format!("GET /v1/status HTTP/1.1\r\nauthorization: Bearer {token}\r\n{CLOSE}");
    let mut limited = 0;
    for _ in 0..60 {
        let answer = rest(send(listening.address, &head).await).await;
        limited += usize::from(answer.starts_with("HTTP/1.1 429"));
    }
    assert!(limited > 0);
    // Health is asked without an identity, and answers.
    let live = send(
        listening.address,
        &format!("GET /livez HTTP/1.1\r\n{CLOSE}"),
    )
    .await;
    assert!(rest(live).await.starts_with("HTTP/1.1 200"));
}
