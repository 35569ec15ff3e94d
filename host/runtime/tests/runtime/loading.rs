//! What is loaded, what is refused, and why.

use std::path::Path;

use oncue_core::definition::ProcessAttributes;
use oncue_core::definition::Style;
use oncue_runtime::PluginError;

use crate::harness::{load, sample, sandbox};

fn refused(name: &str) -> PluginError {
    load(Path::new(sample(name).component)).expect_err("it is refused")
}

#[test]
fn the_style_is_found_by_shape() {
    for (name, style) in [("echo", Style::Message), ("drain", Style::Trigger)] {
        let loaded = load(Path::new(sample(name).component)).expect("it loads");
        assert_eq!(
            (loaded.style(), loaded.styles().collect()),
            (style, vec![style]),
            "{name}"
        );
        assert!(
            loaded
                .imports()
                .iter()
                .any(|it| it.starts_with("oncue:handler/queues@"))
        );
        assert!(
            loaded
                .exports()
                .iter()
                .any(|it| it.starts_with("oncue:handler/on-"))
        );
        assert!(loaded.needs().memory >= 1 << 20, "{:?}", loaded.needs());
    }
}

#[test]
fn a_component_of_another_host_is_found_by_shape() {
    for (name, style) in [
        ("wasmcloud-messaging-echo", Style::WasmcloudMessaging),
        ("wasi-messaging-echo", Style::WasiMessaging),
        ("wasmcloud-v1-reply", Style::WasiMessaging),
    ] {
        let loaded = load(Path::new(sample(name).component)).expect("it loads");
        assert_eq!(loaded.styles().collect::<Vec<_>>(), [style], "{name}");
        let mut imports = loaded.imports().iter();
        assert!(!imports.any(|it| it.starts_with("oncue:")), "{name}");
    }
}

#[test]
fn a63_the_shapes_of_other_hosts_load_and_fit() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for (name, style) in [
        ("http-echo", Style::WasiHttp),
        ("http-client", Style::Message),
        ("spin-sqs", Style::SpinSqs),
    ] {
        let loaded = load(Path::new(sample(name).component)).expect("it loads");
        assert_eq!(loaded.styles().collect::<Vec<_>>(), [style], "{name}");
        let limits = ProcessAttributes::default();
        let tried = runtime.block_on(sandbox().smoke(&loaded, &limits));
        tried.expect("its types fit");
    }
}

#[test]
fn a61_an_unknown_import_is_named() {
    let error = refused("unknown-import");
    let imports = vec!["acme:secret/vault@1.0.0".to_owned()];
    assert_eq!(error, PluginError::UnknownImports { imports });
}

#[test]
fn a63_a_component_of_another_world_is_told_what_it_exports() {
    let text = refused("wrong-world").to_string();
    assert!(
        text.contains("exports \"acme:weather/forecast@1.0.0\" and no handler"),
        "{text}"
    );
    assert!(text.ends_with("[wrong-world]"), "{text}");
}

#[test]
fn a61_what_no_compiler_wrote_is_not_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.cwasm");
    for bytes in [&b""[..], b"nothing of the kind"] {
        std::fs::write(&file, bytes).expect("written");
        let error = sandbox().load(&file).expect_err("refused");
        assert!(matches!(error, PluginError::Incompatible(_)), "{error}");
    }
    let error = sandbox()
        .load(&folder.path().join("absent"))
        .expect_err("refused");
    assert!(matches!(error, PluginError::Incompatible(_)), "{error}");
}

#[test]
fn a_component_is_tried_out_under_its_limits() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let loaded = load(Path::new(sample("echo").component)).expect("it loads");
    let enough = ProcessAttributes::default();
    runtime
        .block_on(sandbox().smoke(&loaded, &enough))
        .expect("it fits");
    let short = ProcessAttributes {
        memory: 64 << 10,
        ..ProcessAttributes::default()
    };
    let error = runtime
        .block_on(sandbox().smoke(&loaded, &short))
        .expect_err("it does not fit");
    let text = error.to_string();
    assert!(
        text.contains("wanted") && text.contains("may have 64 KiB"),
        "{text}"
    );
    let short = ProcessAttributes {
        table_elements: 1,
        ..ProcessAttributes::default()
    };
    let error = runtime
        .block_on(sandbox().smoke(&loaded, &short))
        .expect_err("it does not fit");
    assert!(
        error.to_string().contains("table elements and may have 1"),
        "{error}"
    );
}
