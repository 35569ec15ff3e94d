//! Cases on disk: found, read with every fault, written and read again.

use serde_json::json;

use super::*;

fn folder(files: &[(&str, Value)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (file, value) in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, value.to_string()).expect("written");
    }
    folder
}

#[test]
fn one_case_or_a_folder_of_them_is_found() {
    let check = |files: &[&str], below: &str, names: &[&str]| {
        let input = json!({"messages": [{"text": "a"}]});
        let files: Vec<(&str, Value)> = files.iter().map(|file| (*file, input.clone())).collect();
        let folder = folder(&files);
        let found = find(&folder.path().join(below)).expect("cases");
        let found: Vec<&str> = found.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(found, names);
    };
    check(&["b/input.json", "a/input.json"], "", &["a", "b"]);
    check(&["b/input.json", "a/input.json"], "b", &["b"]);
    check(&["x/a/input.json", "b/input.json"], "", &["b", "x/a"]);
}

#[test]
fn where_no_case_is_that_is_said() {
    let empty = folder(&[]);
    for path in [empty.path(), Path::new("/nowhere")] {
        assert_eq!(find(path).expect_err("no case").exit, Exit::NotFound);
    }
}

#[test]
fn every_unknown_name_of_every_case_is_a_fault() {
    let folder = folder(&[
        (
            "a/input.json",
            json!({"messages": [{"text": "a", "corelation-id": "x"}], "queu": "q", "none": null}),
        ),
        ("b/input.json", json!({"messages": [{"text": "a"}]})),
        (
            "b/expected.json",
            json!({"puts": [{"queue": "q", "txt": "a"}]}),
        ),
        ("c/input.json", json!({"messages": []})),
    ]);
    let failure = find(folder.path()).expect_err("faults");
    assert_eq!(failure.exit, Exit::Usage);
    let has = |text: &str| failure.faults.iter().any(|fault| fault.contains(text));
    assert!(
        has("\"messages[0].corelation-id\" is not known"),
        "{failure:?}"
    );
    assert!(has("\"queu\" is not known"), "{failure:?}");
    assert!(has("\"puts[0].txt\" is not known"), "{failure:?}");
    assert!(has("has 0 messages"), "{failure:?}");
    assert_eq!(failure.faults.len(), 4, "{failure:?}");
}

#[test]
fn a_case_is_written_as_it_is_read() {
    let input: Input = serde_json::from_value(json!({
        "queue": "orders",
        "trigger": {"trigger": "depth", "trigger-depth": 2},
        "messages": [
            {"text": "a", "reply-to": "answers", "properties": {"region": ["eu", "us"]}},
            {"base64": "/w==", "priority": 7},
        ],
        "state": {"total": {"text": "1"}},
        "config": {"wait": "5"},
        "replies": [{"queue": "prices", "json": {"price": 1}}],
        "faults": ["redelivery", "fuel"],
    }))
    .expect("an input");
    let expected: Expected = serde_json::from_value(json!({
        "messages": [{"outcome": "committed"}, {"outcome": "rejected", "reason": "no"}],
        "puts": [{"queue": "out", "text": "a", "correlation-id": "{{message 1}}"}],
        "state": {"total": {"text": "2"}},
    }))
    .expect("an expectation");
    let folder = folder(&[]);
    let place = folder.path().join("new");
    write_case(&place, &input, &expected).expect("written");
    let read = find(&place).expect("read").remove(0);
    assert_eq!((read.input, read.expected), (input, Some(expected)));
}
