//! The pages as a scraper gets them: valid in both formats, every name documented, and of the same
//! size however many queues there are.

use std::collections::{BTreeMap, BTreeSet};

use axum::body::{Body, to_bytes};
use axum::http::Request;
use oncue_core::alarm::Alarm;
use oncue_core::definition::QueuePatch;
use oncue_core::names::QueueName;
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use tower::ServiceExt as _;

use super::Format;
use super::parser::{Parsed, parse};
use crate::app::{App, ServerOptions};
use crate::routes::{api_of, tests::app};

/// The page that documents every name.
const PAGE: &str = include_str!("../../METRICS.md");

async fn scrape(app: &App, path: &str, format: Format) -> String {
    let mut request = Request::builder().uri(path);
    if format == Format::OpenMetrics {
        // As Prometheus itself asks.
        let accepted = "application/openmetrics-text;version=1.0.0;q=0.5,\
                        text/plain;version=0.0.4;q=0.4,*/*;q=0.1";
        request = request.header("accept", accepted);
    }
    let request = request.body(Body::empty()).expect("a request");
    let response = api_of(app.clone())
        .oneshot(request)
        .await
        .expect("infallible");
    assert_eq!(response.status(), 200, "{path}");
    assert_eq!(response.headers()["content-type"], format.content_type());
    let body = to_bytes(response.into_body(), usize::MAX)
        .await
        .expect("a body");
    String::from_utf8(body.to_vec()).expect("text")
}

async fn define(app: &App, name: &str) {
    let name = QueueName::new(name).expect("a name");
    let defined = app.handle.define_queue(name, QueuePatch::default()).await;
    defined.expect("it is defined");
}

async fn put(app: &App, queue: &str, messages: usize) {
    let put = || PutRequest {
        queue: QueueName::new(queue).expect("a name"),
        body: bytes::Bytes::from_static(b"12345"),
        options: PutOptions::default(),
    };
    let puts = (0..messages).map(|_| put()).collect();
    app.handle.put(puts, None).await.expect("they are taken");
}

/// One value of a page in OpenMetrics.
fn value(page: &BTreeMap<String, Parsed>, family: &str, series: &str) -> f64 {
    let family = page
        .get(family)
        .unwrap_or_else(|| panic!("no family {family}"));
    let found = family.samples.get(series);
    *found.unwrap_or_else(|| panic!("no {series} in {:?}", family.samples))
}

/// Files that others load, which name metrics.
const FILES: [(&str, &str); 3] = [
    (
        "grafana-dashboard.json",
        include_str!("../../../packaging/observability/grafana-dashboard.json"),
    ),
    (
        "prometheus-alerts.yml",
        include_str!("../../../packaging/observability/prometheus-alerts.yml"),
    ),
    (
        "prometheus-alerts-test.yml",
        include_str!("../../../packaging/observability/prometheus-alerts-test.yml"),
    ),
];

#[tokio::test]
async fn the_dashboard_and_the_alerts_name_metrics_that_are_there() {
    let (app, _manager) = app(ServerOptions::default());
    let page = scrape(&app, "/metrics", Format::Prometheus).await;
    let families = parse(Format::Prometheus, &page);
    let mut known = BTreeSet::new();
    for (name, family) in &families {
        if family.kind == "histogram" {
            known.extend(["bucket", "sum", "count"].map(|part| format!("{name}_{part}")));
        } else {
            known.insert(name.clone());
        }
    }
    for (file, text) in FILES {
        let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let words = text.split(|character| !is_part(character));
        let named: BTreeSet<&str> = words
            .filter(|word| word.starts_with("oncue_") || word.starts_with("process_"))
            .collect();
        assert!(named.len() >= 3, "{file}: {named:?}");
        let unknown: Vec<_> = named
            .iter()
            .filter(|name| !known.contains(**name))
            .collect();
        assert!(unknown.is_empty(), "{file} names {unknown:?}");
    }
}

/// Alarms that are told by a rule about something else than `oncue_alarm_active`.
const TOLD_ELSEWHERE: [(&str, &str); 5] = [
    ("store-stopped", "OncueStoreStopped"),
    ("parked-message", "OncueMessagesParked"),
    ("quarantined", "OncuePluginQuarantined"),
    ("held-by-error", "OncueQueueHeldByFault"),
    ("dead-letter", "OncueDeadLetters"),
];

#[test]
fn every_alarm_is_told_by_one_rule_and_shown_in_a_panel() {
    let [(_, dashboard), (_, rules), _] = FILES;
    // In expressions of the rules and of the panel, alarms go by their names.
    let matched = |operator: &str| {
        let quoted = rules
            .split("alarm_active{alarm")
            .filter_map(|rest| rest.strip_prefix(operator)?.strip_prefix('"'));
        let names = quoted.filter_map(|rest| rest.split('"').next());
        let names = names.flat_map(|names| names.split('|'));
        names.map(str::to_owned).collect::<BTreeSet<String>>()
    };
    let known: BTreeSet<&str> = Alarm::ALL.iter().map(|alarm| alarm.as_str()).collect();
    for name in matched("!~").union(&matched("=~")) {
        assert!(known.contains(name.as_str()), "no alarm is named {name:?}");
    }
    let elsewhere: BTreeSet<String> = TOLD_ELSEWHERE
        .iter()
        .map(|(alarm, _)| (*alarm).to_owned())
        .collect();
    assert_eq!(matched("!~"), elsewhere);
    for (alarm, rule) in TOLD_ELSEWHERE {
        let rule = format!("- alert: {rule}\n");
        assert!(rules.contains(&rule), "{alarm} is told by {rule:?}");
    }
    let panel =
        "sum(oncue_alarm_active{job=~\\\"$job\\\", instance=~\\\"$instance\\\"}) by (alarm)";
    assert!(dashboard.contains(panel), "no panel has {panel}");
}

fn names(page: &str, format: Format) -> BTreeSet<String> {
    parse(format, page).into_keys().collect()
}

#[tokio::test]
async fn both_formats_can_be_read_strictly() {
    let (app, _manager) = app(ServerOptions::default());
    define(&app, "orders").await;
    put(&app, "orders", 3).await;
    for path in ["/metrics", "/metrics/detailed"] {
        for format in [Format::Prometheus, Format::OpenMetrics] {
            let page = scrape(&app, path, format).await;
            assert!(!names(&page, format).is_empty());
        }
    }
}

#[tokio::test]
async fn every_name_is_documented_and_every_documented_name_is_there() {
    let (app, _manager) = app(ServerOptions::default());
    define(&app, "orders").await;
    let mut found = BTreeSet::new();
    for path in ["/metrics", "/metrics/detailed"] {
        found.extend(names(
            &scrape(&app, path, Format::Prometheus).await,
            Format::Prometheus,
        ));
    }
    // The memory store has no disk, but the family stands there.
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `"));
    let documented = rows.filter_map(|row| row.split_once('`'));
    let is_ours = |name: &&str| name.starts_with("oncue_") || name.starts_with("process_");
    let documented = documented.map(|(name, _)| name).filter(is_ours);
    let documented: BTreeSet<String> = documented.map(ToOwned::to_owned).collect();
    assert_eq!(found, documented);
}

#[tokio::test]
async fn counts_are_those_of_the_messages() {
    let (app, _manager) = app(ServerOptions::default());
    define(&app, "orders").await;
    define(&app, "audit").await;
    put(&app, "orders", 3).await;
    put(&app, "audit", 1).await;
    let wrong = PutRequest {
        queue: QueueName::new("nowhere").expect("a name"),
        body: bytes::Bytes::new(),
        options: PutOptions::default(),
    };
    app.handle
        .put(vec![wrong], None)
        .await
        .expect_err("it is refused");
    let page = scrape(&app, "/metrics", Format::OpenMetrics).await;
    let page = parse(Format::OpenMetrics, &page);
    let put = |result: &str| {
        let series = format!("oncue_messages_put_total{{result=\"{result}\",by=\"application\"}}");
        value(&page, "oncue_messages_put", &series)
    };
    assert!((put("durable") - 4.0).abs() < 1e-9);
    assert!((put("refused") - 1.0).abs() < 1e-9);
    let ready = "oncue_queue_messages_ready";
    assert!((value(&page, ready, ready) - 4.0).abs() < 1e-9);
    let bytes = "oncue_queue_bytes";
    assert!((value(&page, bytes, bytes) - 20.0).abs() < 1e-9);
    let held = "oncue_queues_held{reason=\"no-process\"}";
    assert!((value(&page, "oncue_queues_held", held) - 2.0).abs() < 1e-9);
    let detailed = scrape(&app, "/metrics/detailed?queue=or*", Format::OpenMetrics).await;
    let detailed = parse(Format::OpenMetrics, &detailed);
    let ready = "oncue_detailed_queue_messages_ready";
    let series = format!("{ready}{{queue=\"orders\"}}");
    assert_eq!(detailed[ready].samples.len(), 1);
    assert!((value(&detailed, ready, &series) - 3.0).abs() < 1e-9);
}

#[tokio::test]
async fn the_page_about_the_host_is_no_longer_with_ten_thousand_queues() {
    let (app, _manager) = app(ServerOptions::default());
    let lines = |page: &str| page.lines().count();
    let before = lines(&scrape(&app, "/metrics", Format::Prometheus).await);
    for number in 0..10_000 {
        define(&app, &format!("q{number}")).await;
    }
    put(&app, "q17", 1).await;
    let after = scrape(&app, "/metrics", Format::Prometheus).await;
    assert_eq!(lines(&after), before);
    // One by one they are bounded, and it is said that some are missing.
    let all = scrape(&app, "/metrics/detailed?family=age", Format::OpenMetrics).await;
    let all = parse(Format::OpenMetrics, &all);
    let age = "oncue_detailed_queue_oldest_message_age_seconds";
    assert_eq!(all[age].samples.len(), 1000);
    let truncated = "oncue_detailed_truncated";
    assert!((value(&all, truncated, truncated) - 1.0).abs() < 1e-9);
    let busy = scrape(&app, "/metrics/detailed?busy=true", Format::OpenMetrics).await;
    let busy = parse(Format::OpenMetrics, &busy);
    assert_eq!(busy[age].samples.len(), 1);
    assert!(value(&busy, truncated, truncated).abs() < 1e-9);
}

#[tokio::test]
async fn wrong_parameters_are_refused_with_the_cure() {
    let (app, _manager) = app(ServerOptions::default());
    for (query, wanted) in [
        ("family=mesages", "did you mean \\\"messages\\\"?"),
        ("queue=a b", "use 1 to 128 of"),
        ("max=0", "use a whole number from 1 to 10000"),
        ("queues=x", "did you mean \\\"queue\\\"?"),
    ] {
        let uri = format!("/metrics/detailed?{}", query.replace(' ', "%20"));
        let request = Request::builder()
            .uri(uri)
            .body(Body::empty())
            .expect("a request");
        let response = api_of(app.clone())
            .oneshot(request)
            .await
            .expect("infallible");
        assert_eq!(response.status(), 400, "{query}");
        let body = to_bytes(response.into_body(), usize::MAX)
            .await
            .expect("a body");
        let body = String::from_utf8_lossy(&body);
        assert!(body.contains(wanted), "{query}: {body}");
    }
}
