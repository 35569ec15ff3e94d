//! The log's filter is read again at SIGHUP, and nothing of the host waits for that.

use crate::host::{Home, Host};
use crate::wait::until;

/// Lines of the log that only the level `debug` has: one at each question to the trigger rule.
fn questions(host: &Host) -> usize {
    host.log().matches("DEBUG").count()
}

/// Writes the settings file of the directory that hosts of `home` start in.
fn settings(home: &Home, text: &str) {
    std::fs::write(home.path().join("oncue.toml"), text).expect("written");
}

/// The changes that the audit log has.
fn changes(host: &Host) -> Vec<String> {
    let page = host.get("/v1/audit").expect(200).json();
    let entries = page["entries"].as_array().expect("a list").iter();
    entries
        .filter(|entry| entry["action"] == "log-filter")
        .map(|entry| entry["object"].as_str().expect("a text").to_owned())
        .collect()
}

#[test]
fn a_hang_up_has_the_log_filtered_as_the_file_says_now() {
    let home = Home::new();
    settings(&home, "log = \"info\"\n");
    let host = home.start();
    host.define_plain("q");
    host.put("q", b"1");
    assert_eq!(questions(&host), 0);
    settings(&home, "log = \"info,oncue_manager=debug\"\n");
    host.signal("HUP");
    let change = "info -> info,oncue_manager=debug";
    until("the change to be written down", || {
        changes(&host) == [change]
    });
    until("the change to be told", || host.log().contains(change));
    host.put("q", b"2");
    until("what is asked to be told", || questions(&host) > 0);
    // What is no filter, or no settings file, changes nothing and is told.
    for (number, (text, why)) in [
        ("log = \"a=b=c\"\n", "is no filter"),
        ("log = debug\n", "oncue.toml"),
        ("lgo = \"debug\"\n", "is not a setting"),
    ]
    .into_iter()
    .enumerate()
    {
        settings(&home, text);
        host.signal("HUP");
        until("the refusal", || {
            let log = host.log();
            let refusals = log.lines().filter(|line| line.contains("as before"));
            refusals.filter(|line| line.contains(why)).count() > 0
                && log.matches("filtered as before").count() == number + 1
        });
    }
    let before = questions(&host);
    host.put("q", b"3");
    until("what is asked to be told still", || {
        questions(&host) > before
    });
    assert_eq!(changes(&host), [change]);
}

#[test]
fn a_flag_stays_above_the_file() {
    let home = Home::new();
    settings(&home, "log = \"info\"\nlog-format = \"json\"\n");
    let host = home.start_with(&["--log", "info"], &[]);
    settings(&home, "log = \"debug\"\nlog-format = \"json\"\n");
    host.signal("HUP");
    until("the file to be read", || {
        host.log().contains("the settings name the same filter")
    });
    assert_eq!(changes(&host), [""; 0]);
    assert_eq!(host.stop(), 0);
}
