//! The flow of the trigger method, steps 10 to 68, as a drawing: lit where the last trigger went.

use oncue_core::trigger::Step;

/// Width and height of a step's box.
const BOX: (i32, i32) = (112, 58);

/// Between two boxes.
const GAP: i32 = 32;

/// The drawing.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    /// The steps that were passed, for those who do not see the drawing.
    pub(super) said: String,
    pub(super) width: i32,
    pub(super) height: i32,
}

/// A step.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) step: u8,
    /// What it does, whole.
    pub(super) sentence: &'static str,
    /// The same in two short lines.
    pub(super) lines: [&'static str; 2],
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) width: i32,
    pub(super) height: i32,
    /// `step`, `ask` for a question, `stop` for an end.
    pub(super) kind: &'static str,
    pub(super) lit: bool,
    /// The last one that was passed.
    pub(super) last: bool,
}

impl Node {
    pub(super) fn middle(&self) -> i32 {
        self.x + self.width / 2
    }
}

/// A way from one step to another.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) path: String,
    pub(super) lit: bool,
    /// A word beside it, and where.
    pub(super) label: Option<Word>,
}

/// A word beside a way.
#[derive(Debug)]
pub(super) struct Word {
    pub(super) text: &'static str,
    pub(super) x: i32,
    pub(super) y: i32,
    /// It stands between two boxes, and not at the side of a line.
    pub(super) is_between: bool,
}

/// What stands where: the step, column and row, kind, lines.
const PLACES: [(Step, i32, i32, &str, [&str; 2]); 14] = [
    (
        Step::S10,
        0,
        0,
        "ask",
        ["none pending, and", "the rule fires?"],
    ),
    (Step::S12, 1, 0, "ask", ["fewer tasks than", "max-tasks?"]),
    (Step::S14, 2, 0, "step", ["perform the", "trigger process"]),
    (Step::S16, 0, 1, "stop", ["go to the", "next queue"]),
    (Step::S50, 0, 2, "ask", ["resources for", "a new task?"]),
    (
        Step::S54,
        1,
        2,
        "ask",
        ["no other trigger", "process for it?"],
    ),
    (
        Step::S58,
        2,
        2,
        "step",
        ["set the indicator:", "in process"],
    ),
    (Step::S60, 3, 2, "step", ["queue table:", "process entry"]),
    (Step::S62, 4, 2, "step", ["process table:", "component"]),
    (
        Step::S64,
        5,
        2,
        "step",
        ["trigger message,", "start the task"],
    ),
    (Step::S66, 6, 2, "step", ["pending counter", "down"]),
    (Step::S68, 7, 2, "step", ["task ended: clear,", "ask again"]),
    (Step::S52, 0, 3, "stop", ["insufficient", "resources"]),
    (Step::S56, 1, 3, "stop", ["already", "in process"]),
];

/// The straight ways: from, to, and the word beside.
const WAYS: [(Step, Step, &str); 14] = [
    (Step::S10, Step::S12, "yes"),
    (Step::S12, Step::S14, "yes"),
    (Step::S10, Step::S16, "no"),
    (Step::S12, Step::S16, "no"),
    (Step::S14, Step::S50, ""),
    (Step::S50, Step::S54, "yes"),
    (Step::S50, Step::S52, "no"),
    (Step::S54, Step::S58, "yes"),
    (Step::S54, Step::S56, "no"),
    (Step::S58, Step::S60, ""),
    (Step::S60, Step::S62, ""),
    (Step::S62, Step::S64, ""),
    (Step::S64, Step::S66, ""),
    (Step::S66, Step::S68, ""),
];

/// The ways of a start that is held: past what is left of the start.
const HELD: [(Step, i32); 2] = [(Step::S60, 14), (Step::S62, 8)];

/// Draws the flow with a trace, given as the numbers of its steps.
pub(super) fn flow(trace: &[u8]) -> Flow {
    let nodes = nodes(trace);
    let mut edges = edges(&nodes, trace);
    // What is lit lies on top.
    edges.sort_by_key(|edge| edge.lit);
    let numbers: Vec<String> = trace.iter().map(ToString::to_string).collect();
    let said = if trace.is_empty() {
        "No trigger of this queue since the host started.".to_owned()
    } else {
        format!("Steps of the last trigger: {}.", numbers.join(", "))
    };
    Flow {
        nodes,
        edges,
        said,
        width: 12 + 8 * BOX.0 + 7 * GAP,
        height: 316,
    }
}

fn nodes(trace: &[u8]) -> Vec<Node> {
    PLACES
        .iter()
        .map(|(step, column, row, kind, lines)| Node {
            step: step.number(),
            sentence: step.sentence(),
            lines: *lines,
            x: 6 + column * (BOX.0 + GAP),
            y: 6 + [0, 84, 172, 256].get(*row as usize).copied().unwrap_or(0),
            width: BOX.0,
            height: if *kind == "stop" { 52 } else { BOX.1 },
            kind,
            lit: trace.contains(&step.number()),
            last: trace.last() == Some(&step.number()),
        })
        .collect()
}

fn edges(nodes: &[Node], trace: &[u8]) -> Vec<Edge> {
    let passed = |from: Step, to: Step| {
        let pair = [from.number(), to.number()];
        trace.windows(2).any(|steps| steps == pair)
    };
    let mut edges = Vec::new();
    for (from, to, word) in WAYS {
        if let (Some(a), Some(b)) = (find(nodes, from), find(nodes, to)) {
            let (path, place) = way(a, b);
            let label = (!word.is_empty()).then_some(Word {
                text: word,
                x: place.0,
                y: place.1,
                is_between: a.y == b.y,
            });
            edges.push(Edge {
                path,
                lit: passed(from, to),
                label,
            });
        }
    }
    for (from, height) in HELD {
        if let (Some(a), Some(b)) = (find(nodes, from), find(nodes, Step::S66)) {
            let top = a.y - height;
            let path = format!(
                "M{} {} V{top} H{} V{}",
                a.middle(),
                a.y,
                b.middle() - 10 + height,
                b.y - 2
            );
            let label = (from == Step::S60).then_some(Word {
                text: "held",
                x: a.middle() + 8,
                y: top - 5,
                is_between: false,
            });
            edges.push(Edge {
                path,
                lit: passed(from, Step::S66),
                label,
            });
        }
    }
    edges
}

fn find(nodes: &[Node], step: Step) -> Option<&Node> {
    nodes.iter().find(|node| node.step == step.number())
}

/// The line between two boxes, and the place of a word beside it.
fn way(a: &Node, b: &Node) -> (String, (i32, i32)) {
    let beside = a.y + a.height / 2;
    if a.y == b.y {
        let (start, end) = (a.x + a.width, b.x - 2);
        return (
            format!("M{start} {beside} H{end}"),
            ((start + end) / 2, beside - 6),
        );
    }
    let bottom = a.y + a.height;
    if a.x == b.x {
        let path = format!("M{} {bottom} V{}", a.middle(), b.y - 2);
        return (path, (a.middle() + 6, bottom + 14));
    }
    if a.step == Step::S14.number() {
        // From the first row to the second, past the stop between them.
        let turn = b.y - 12;
        let path = format!(
            "M{} {bottom} V{turn} H{} V{}",
            a.middle(),
            b.middle() + 20,
            b.y - 2
        );
        return (path, (a.middle() + 6, bottom + 14));
    }
    let side = b.y + b.height / 2;
    let path = format!("M{} {bottom} V{side} H{}", a.middle(), b.x + b.width + 2);
    (path, (a.middle() + 6, bottom + 14))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lit(trace: &[u8]) -> (Vec<u8>, usize) {
        let flow = flow(trace);
        let mut steps: Vec<u8> = flow
            .nodes
            .iter()
            .filter(|n| n.lit)
            .map(|n| n.step)
            .collect();
        steps.sort_unstable();
        (steps, flow.edges.iter().filter(|edge| edge.lit).count())
    }

    #[test]
    fn every_step_is_drawn_once_and_a_trace_lights_its_way() {
        let mut steps: Vec<u8> = flow(&[]).nodes.iter().map(|node| node.step).collect();
        steps.sort_unstable();
        assert_eq!(steps, Step::ALL.map(Step::number));
        let started = [10, 12, 14, 50, 54, 58, 60, 62, 64, 66, 68];
        assert_eq!(lit(&started), (started.to_vec(), 10));
        assert_eq!(lit(&[10, 16]), (vec![10, 16], 1));
        assert_eq!(lit(&[10, 12, 14, 50, 52]), (vec![10, 12, 14, 50, 52], 4));
        let held = [10, 12, 14, 50, 54, 58, 60, 66, 68];
        assert_eq!(lit(&held), (held.to_vec(), 8), "the way past the start");
        assert_eq!(lit(&[]), (vec![], 0));
    }
}
