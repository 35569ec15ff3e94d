//! A strict reader of both text formats, for tests: what a lenient scraper would forgive is a
//! fault here.

use std::collections::{BTreeMap, BTreeSet};

use super::Format;

/// A family as it was written.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) kind: String,
    /// Values by the sample's name and labels, as written.
    pub(crate) samples: BTreeMap<String, f64>,
}

/// Reads a page; every family by its name.
///
/// # Panics
/// At the first line that breaks a rule of the format.
pub(crate) fn parse(format: Format, text: &str) -> BTreeMap<String, Parsed> {
    let mut families: BTreeMap<String, Parsed> = BTreeMap::new();
    let mut current = String::new();
    let body = match format {
        Format::OpenMetrics => text.strip_suffix("# EOF\n").expect("the end is marked"),
        Format::Prometheus => text,
    };
    assert!(body.ends_with('\n') && !body.contains("\n\n"), "lines");
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            assert!(is_name(name), "{line}");
            assert!(!help.is_empty() && !help.ends_with('.'), "{line}");
            let earlier = families.insert(name.to_owned(), Parsed::default());
            assert!(earlier.is_none(), "a second family {name}");
            name.clone_into(&mut current);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert_eq!(name, current, "the type follows the help");
            let family = families.get_mut(name).expect("a family");
            assert!(family.kind.is_empty(), "a second type of {name}");
            kind.clone_into(&mut family.kind);
        } else {
            assert!(!line.starts_with('#'), "{line}");
            let family = families.get_mut(&current).expect("a family");
            sample(format, &current, family, line);
        }
    }
    families.values().for_each(check_histogram);
    families
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|byte| byte.is_ascii_lowercase());
    first && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn sample(format: Format, name: &str, family: &mut Parsed, line: &str) {
    let (series, value) = line.rsplit_once(' ').expect("a value");
    let value: f64 = value.parse().expect(line);
    let (sample, labels) = match series.split_once('{') {
        Some((sample, labels)) => (sample, labels.strip_suffix('}').expect(line)),
        None => (series, ""),
    };
    let suffixes: &[&str] = match (family.kind.as_str(), format) {
        ("counter", Format::OpenMetrics) => &["_total"],
        ("info", Format::OpenMetrics) => &["_info"],
        ("counter", Format::Prometheus) => {
            assert!(name.ends_with("_total"), "{name}");
            &[""]
        }
        ("gauge", _) => &[""],
        ("histogram", _) => &["_bucket", "_sum", "_count"],
        (kind, _) => panic!("{name} has type {kind:?}"),
    };
    let suffix = sample.strip_prefix(name).expect(line);
    assert!(suffixes.contains(&suffix), "{line}");
    let mut names = BTreeSet::new();
    if !labels.is_empty() {
        for label in labels.split(',') {
            let (label, value) = label.split_once("=\"").expect(line);
            let value = value.strip_suffix('"').expect(line);
            assert!(is_name(label) && !label.starts_with("__"), "{line}");
            assert!(names.insert(label), "a label twice: {line}");
            assert!(!value.contains(['"', '\\', '\n']), "{line}");
        }
    }
    if family.kind == "counter" || family.kind == "histogram" {
        assert!(value >= 0.0, "{line}");
    }
    let earlier = family.samples.insert(series.to_owned(), value);
    assert!(earlier.is_none(), "a second series {series}");
}

/// Classes grow, and the last one is the count. None of ours has further labels.
fn check_histogram(family: &Parsed) {
    if family.kind != "histogram" {
        return;
    }
    let value_of = |suffix: &str| {
        let mut found = family
            .samples
            .iter()
            .filter(|(name, _)| name.ends_with(suffix));
        let (_, value) = found.next().expect("a sum and a count");
        assert!(found.next().is_none(), "one of each");
        *value
    };
    let mut classes: Vec<(f64, f64)> = Vec::new();
    for (name, value) in &family.samples {
        let Some((_, bound)) = name.split_once("_bucket{le=\"") else {
            continue;
        };
        let bound = bound.strip_suffix("\"}").expect("only a bound");
        let bound = if bound == "+Inf" { "inf" } else { bound };
        classes.push((bound.parse().expect("a bound"), *value));
    }
    classes.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(
        classes.windows(2).all(|pair| pair[0].1 <= pair[1].1),
        "{classes:?}"
    );
    let (last, all) = classes.last().copied().expect("classes");
    assert!(last.is_infinite(), "{classes:?}");
    assert!((all - value_of("_count")).abs() < f64::EPSILON);
    assert!(value_of("_sum") >= 0.0);
}
