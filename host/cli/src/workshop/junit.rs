//! The report that CI systems read: a suite for each case, a test for each trial.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::report::trial_name;
use super::suite::{CaseReport, Trial, shown};
use crate::exit::{Exit, Failure};

/// Writes a report.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write(path: &Path, plugin: &str, reports: &[CaseReport]) -> Result<(), Failure> {
    let mut report = Report::new(format!("oncue test {plugin}"));
    for case in reports {
        let mut suite = TestSuite::new(format!("{plugin}/{}", case.name));
        suite.set_time(case.time);
        for trial in &case.trials {
            suite.add_test_case(test_case(plugin, case, trial));
        }
        report.add_test_suite(suite);
    }
    let file = File::create(path).map_err(|error| unwritable(path, &error))?;
    report
        .serialize(BufWriter::new(file))
        .map_err(|error| unwritable(path, &error))
}

fn test_case(plugin: &str, case: &CaseReport, trial: &Trial) -> TestCase {
    let status = match trial.wrong.split_first() {
        None => TestCaseStatus::success(),
        Some((first, _)) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(first.clone());
            status.set_description(trial.wrong.join("\n"));
            status
        }
    };
    let mut test = TestCase::new(trial_name(trial), status);
    test.set_classname(format!("{plugin}.{}", case.name));
    test
}

fn unwritable(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    let message = format!("\"{}\" cannot be written: {error}", shown(path));
    Failure::new(Exit::Failed, message)
}
