//! Small drawings of what was put and what left, as lines.

use std::fmt::Write as _;

use oncue_core::time::Timestamp;

use super::rates::Point;

/// Width and height of a line in a list.
pub(super) const SMALL: (f64, f64) = (96.0, 20.0);

/// Those of the drawing on a page, for browsers without script.
const LARGE: (f64, f64) = (600.0, 90.0);

/// How much time a drawing shows, in milliseconds.
const SPAN: u64 = 600_000;

/// Two lines: what was put and what left, and the last of each in words.
#[derive(Debug)]
pub(super) struct Spark {
    pub(super) put: String,
    pub(super) left: String,
    pub(super) put_rate: String,
    pub(super) left_rate: String,
    pub(super) most: String,
}

impl Spark {
    /// The drawing of samples, the newest at the right; nothing where there is none.
    pub(super) fn of(points: &[Point], size: (f64, f64)) -> Option<Self> {
        let last = *points.last()?;
        let rates = points
            .iter()
            .flat_map(|point| [point.put_rate(), point.left_rate()]);
        let most = rates.fold(0.0, f64::max);
        let line = |rate: fn(Point) -> f64| line(points, rate, most, last.time, size);
        Some(Self {
            put: line(Point::put_rate),
            left: line(Point::left_rate),
            put_rate: written(last.put_rate()),
            left_rate: written(last.left_rate()),
            most: written(most),
        })
    }
}

/// A drawing with what a script needs to draw it better.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) spark: Spark,
    pub(super) points: String,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Chart {
    /// The drawing of samples; nothing where there is none.
    pub(super) fn of(points: &[Point]) -> Option<Self> {
        Some(Self {
            spark: Spark::of(points, LARGE)?,
            points: columns(points),
            width: LARGE.0,
            height: LARGE.1,
        })
    }
}

/// A rate to about two digits.
fn written(rate: f64) -> String {
    if rate > 0.0 && rate < 9.95 {
        format!("{rate:.1}")
    } else {
        format!("{rate:.0}")
    }
}

fn line(
    points: &[Point],
    rate: fn(Point) -> f64,
    most: f64,
    now: Timestamp,
    (width, height): (f64, f64),
) -> String {
    let mut path = String::new();
    for (number, point) in points.iter().enumerate() {
        let age = now.since(point.time).min(SPAN);
        let x = width - width * age as f64 / SPAN as f64;
        let share = if most > 0.0 { rate(*point) / most } else { 0.0 };
        // One unit stays free above and below, so that no line is cut.
        let y = height - 1.0 - share * (height - 2.0);
        let mark = if number == 0 { 'M' } else { 'L' };
        // Writing to a string does not fail.
        let _ = write!(path, "{mark}{x:.1} {y:.1}");
    }
    path
}

/// The samples as the chart's script reads them: times in seconds, rates, depths.
fn columns(points: &[Point]) -> String {
    let list = |value: &dyn Fn(&Point) -> String| {
        let values: Vec<String> = points.iter().map(value).collect();
        format!("[{}]", values.join(","))
    };
    format!(
        "[{},{},{},{}]",
        list(&|point| (point.time.0 / 1_000).to_string()),
        list(&|point| format!("{:.2}", point.put_rate())),
        list(&|point| format!("{:.2}", point.left_rate())),
        list(&|point| point.depth.to_string()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_at_the_right_and_its_highest_point_at_the_top() {
        assert!(Spark::of(&[], SMALL).is_none());
        let point = |time, put| Point {
            time: Timestamp(time),
            span: 5_000,
            put,
            left: 0,
            depth: put,
        };
        let points = [point(0, 50), point(300_000, 0)];
        let spark = Spark::of(&points, SMALL).expect("two points");
        assert_eq!(spark.put, "M48.0 1.0L96.0 19.0");
        assert_eq!(spark.left, "M48.0 19.0L96.0 19.0");
        assert_eq!((spark.put_rate.as_str(), spark.most.as_str()), ("0", "10"));
        assert_eq!(
            columns(&points),
            "[[0,300],[10.00,0.00],[0.00,0.00],[50,0]]"
        );
    }
}
