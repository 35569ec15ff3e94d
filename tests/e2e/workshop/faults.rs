//! A handler with a bug that no plain run shows: only the faults find it.

use super::*;

/// A case that the handler passes as it is.
fn case() -> Cases {
    let cases = Cases::with("one", &json!({"messages": texts(&["to and fro"])}));
    cases
        .test("commits-half", &["--bless", "--faults", "none"])
        .is(0, &["NEW   one"]);
    let expected = cases.json("one/expected.json");
    assert_eq!(expected["messages"][0]["outcome"], "committed");
    assert_eq!(expected["puts"].as_array().map(Vec::len), Some(2));
    cases
}

#[test]
fn what_commits_half_passes_without_faults() {
    case()
        .test("commits-half", &["--faults", "none"])
        .is(0, &["1 case passed"]);
}

#[test]
fn a_cut_off_finds_what_commits_half() {
    let lost = [
        "FAIL  cut-off",
        "put to \"commits-half.out\"",
        "puts[1]",
        "got       (nothing)",
    ];
    case()
        .test("commits-half", &["--faults", "cut-off"])
        .is(1, &lost);
}

#[test]
fn a_refused_put_finds_what_commits_half() {
    let lost = [
        "FAIL  refused-put",
        "at put 2",
        "commits half",
        "lost:",
        "d fro",
    ];
    case()
        .test("commits-half", &["--faults", "refused-put"])
        .is(1, &lost);
}

#[test]
fn a_case_may_say_which_faults_are_tried() {
    let cases = case();
    let input = json!({"messages": texts(&["to and fro"]), "faults": ["redelivery"]});
    cases.write("one/input.json", &input.to_string());
    let said = cases.test("commits-half", &["-o", "json"]);
    let trials = said.json()["cases"][0]["trials"].clone();
    let names: Vec<&str> = trials
        .as_array()
        .expect("trials")
        .iter()
        .filter_map(|trial| trial["trial"].as_str())
        .collect();
    assert_eq!(names, ["plain", "redelivery"]);
}
