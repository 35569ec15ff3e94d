//! `oncue test`: golden cases, each as it is and then under faults.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::bench::Bench;
use super::case::{self, Case, Expected};
use super::diff::{Difference, MAX_TOLD, differences};
use super::faults::{self, FaultKind};
use super::job::{Job, TEST_TIME};
use super::observed::Observed;
use super::probe::Order;
use super::{junit, plugin, report};
use crate::args::workshop::TestArgs;
use crate::exit::{Exit, Failure};
use crate::project::Project;
use crate::render::Screen;
use crate::render::time::number_of;

/// One way in which a case was run, and what was wrong then.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    /// None: as it is.
    pub(super) fault: Option<FaultKind>,
    /// What there is to know of a trial that passed.
    pub(super) note: String,
    /// Lines that say what is wrong. Empty: it passed.
    pub(super) wrong: Vec<String>,
}

/// How a case came out.
#[derive(Clone, Debug)]
pub(super) struct CaseReport {
    pub(super) name: String,
    /// The case as it is, then the faults.
    pub(super) trials: Vec<Trial>,
    /// What was expected was written anew.
    pub(super) blessed: bool,
    pub(super) time: Duration,
}

impl CaseReport {
    pub(super) fn passed(&self) -> bool {
        self.trials.iter().all(|trial| trial.wrong.is_empty())
    }
}

/// What is to be tested.
struct Subject {
    plugin: PathBuf,
    manifest: Option<PathBuf>,
    cases: PathBuf,
}

impl Subject {
    fn find(args: &TestArgs) -> Result<Self, Failure> {
        let project = match args.plugin.is_dir() {
            true => Some(Project::read(&args.plugin)?),
            false => None,
        };
        let cases = project.as_ref().and_then(|project| project.cases.clone());
        let Some(cases) = args.case.clone().or(cases) else {
            let message = "no case is named; name one, or a folder of them, with --case DIR";
            return Err(Failure::new(Exit::Usage, message));
        };
        let Some(project) = project else {
            return Ok(Self {
                plugin: args.plugin.clone(),
                manifest: args.manifest.clone(),
                cases,
            });
        };
        if !project.component.is_file() {
            let build = project
                .build
                .unwrap_or_else(|| "your build command".to_owned());
            let message = format!(
                "\"{}\" is not built; in the project's folder run: {build}",
                project.component.display()
            );
            return Err(Failure::new(Exit::NotFound, message));
        }
        Ok(Self {
            plugin: project.component,
            manifest: args.manifest.clone().or(project.manifest),
            cases,
        })
    }
}

/// Tests a plugin.
///
/// # Errors
/// Refused when the plugin is; usage when a case has faults; failed when a case did not pass.
pub(crate) fn test(screen: &Screen, args: &TestArgs) -> Result<(), Failure> {
    let subject = Subject::find(args)?;
    let cases = case::find(&subject.cases)?;
    let bench = plugin::load(screen, &subject.plugin, subject.manifest.as_deref())?;
    check(&cases, &bench)?;
    let mut reports = Vec::new();
    for case in &cases {
        screen.progress(|| format!("case \"{}\" ...", case.name));
        let begun = Instant::now();
        let (trials, blessed) = run_case(&bench, case, args)?;
        let report = CaseReport {
            name: case.name.clone(),
            trials,
            blessed,
            time: begun.elapsed(),
        };
        screen.end_progress();
        if !screen.is_json() {
            report::case_text(screen, &report)?;
        }
        reports.push(report);
    }
    let name = bench.plugin.version.plugin.as_str();
    if screen.is_json() {
        screen.json(&report::suite_json(name, &reports))?;
    }
    if let Some(path) = &args.junit {
        junit::write(path, name, &reports)?;
    }
    let failed = reports.iter().filter(|report| !report.passed()).count();
    let of = reports.len();
    if failed == 0 {
        let cases = number_of(of as u64, "case");
        screen.say(&format!("plugin \"{name}\": {cases} passed"));
        return Ok(());
    }
    let message = format!("plugin \"{name}\": {failed} of {of} cases did not pass");
    Err(Failure::new(Exit::Failed, message))
}

/// Refuses cases that cannot be run, all of them with all their faults, before any is.
fn check(cases: &[Case], bench: &Bench) -> Result<(), Failure> {
    let of_case = |case: &Case| {
        let job = Job::new(&case.input, &case.folder, &bench.plugin, TEST_TIME);
        let whom = case.folder.join(case::INPUT).display().to_string();
        let faults = job.err().unwrap_or_default().into_iter();
        faults.map(move |fault| format!("\"{whom}\": {fault}"))
    };
    let faults: Vec<String> = cases.iter().flat_map(of_case).collect();
    if faults.is_empty() {
        return Ok(());
    }
    let message = "no case was run, since not all of them can be:";
    Err(Failure::new(Exit::Usage, message).with_faults(faults))
}

/// Runs a case as it is, then under the faults that are wanted of it.
fn run_case(bench: &Bench, case: &Case, args: &TestArgs) -> Result<(Vec<Trial>, bool), Failure> {
    let mut plain = Trial {
        fault: None,
        note: String::new(),
        wrong: Vec::new(),
    };
    let mut job = match Job::new(&case.input, &case.folder, &bench.plugin, TEST_TIME) {
        Ok(job) => job,
        Err(faults) => {
            plain.wrong = faults;
            return Ok((vec![plain], false));
        }
    };
    let seen = observe(bench, &mut job)?;
    plain.note = report::note(&seen);
    let mut blessed = false;
    let expected = match (&case.expected, args.bless) {
        (expected, true) => match bless(bench, case, &mut job, &seen)? {
            Ok(written) => {
                blessed = expected.as_ref() != Some(&written);
                written
            }
            Err(wrong) => {
                plain.wrong = wrong;
                return Ok((vec![plain], false));
            }
        },
        (Some(expected), false) => expected.clone(),
        (None, false) => {
            plain.wrong = vec![format!(
                "\"{}\" is not there; look at what comes, then write it with --bless",
                case.folder.join(case::EXPECTED).display()
            )];
            return Ok((vec![plain], false));
        }
    };
    plain.wrong = told(&differences(&expected, &seen.expected()), &seen);
    let passed = plain.wrong.is_empty();
    let mut trials = vec![plain];
    if passed {
        let wanted = |kind: &FaultKind| {
            let of_case = case.input.faults.as_ref();
            of_case.is_none_or(|kinds| kinds.contains(kind))
        };
        let kinds: Vec<FaultKind> = args.faults().into_iter().filter(wanted).collect();
        trials.extend(faults::try_out(bench, &job, &seen, &kinds)?);
    }
    Ok((trials, blessed))
}

fn observe(bench: &Bench, job: &mut Job) -> Result<Observed, Failure> {
    bench.run(job, Order::None)?.observe()
}

/// Writes what came as what is expected, unless it changes from run to run.
fn bless(
    bench: &Bench,
    case: &Case,
    job: &mut Job,
    seen: &Observed,
) -> Result<Result<Expected, Vec<String>>, Failure> {
    let like = |got: Expected| match &case.expected {
        Some(before) => got.like(before),
        None => got,
    };
    let (first, again) = (like(seen.expected()), like(observe(bench, job)?.expected()));
    let changing = differences(&first, &again);
    if !changing.is_empty() {
        let mut wrong = vec![
            "changes from run to run, so nothing was written; leave times and random numbers out:"
                .to_owned(),
        ];
        wrong.extend(told(&changing, seen));
        return Ok(Err(wrong));
    }
    if case.expected.as_ref() != Some(&first) {
        case.bless(&first)?;
    }
    Ok(Ok(first))
}

/// Differences in lines, and what a failed handler wrote.
pub(super) fn told(found: &[Difference], seen: &Observed) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for difference in found.iter().take(MAX_TOLD) {
        lines.extend(difference.lines());
    }
    if found.len() > MAX_TOLD {
        lines.push(format!("and {} more differences", found.len() - MAX_TOLD));
    }
    if !lines.is_empty() {
        lines.extend(report::trouble_lines(seen));
    }
    lines
}

/// A path for people.
pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
}
