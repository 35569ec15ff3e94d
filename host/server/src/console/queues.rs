//! The list of queues: search, sort, hide what is empty, a page at a time.

use askama::Template;
use axum::extract::State;
use oncue_core::definition::TriggerType;
use oncue_core::time::Timestamp;
use oncue_manager::status::{QueueFilter, QueueSort, QueueView};

use super::format;
use super::frame::Frame;
use super::page::{Page, page};
use super::params::{Params, address};
use super::rates::Rates;
use super::spark::{SMALL, Spark};
use super::viewer::Viewer;
use crate::app::App;
use crate::auth::identity::Right;

/// Queues of one page.
const ROWS: usize = 100;

/// Where the list is.
const PATH: &str = "/queues";

/// A queue in a list.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) depth: String,
    pub(super) oldest: Option<String>,
    pub(super) spark: Option<Spark>,
    pub(super) running: u32,
    pub(super) max_tasks: u32,
    pub(super) trigger: &'static str,
    pub(super) process: Option<String>,
    pub(super) state: Standing,
}

/// What the trigger does, in words.
#[derive(Debug)]
pub(super) struct Standing {
    /// `good`, `calm`, `warn` or `bad`.
    pub(super) tone: &'static str,
    /// A word or a code.
    pub(super) word: String,
    /// The whole reason.
    pub(super) text: String,
}

impl Standing {
    /// How a queue stands.
    pub(super) fn of(view: &QueueView) -> Self {
        let text = view.reason_text.clone().unwrap_or_default();
        let standing = |tone, word: &str| Self {
            tone,
            word: word.to_owned(),
            text: text.clone(),
        };
        match view.reason {
            None => Self {
                tone: "good",
                word: "starts".to_owned(),
                text: "the trigger fires now".to_owned(),
            },
            Some(reason) if view.running > 0 && is_busy(reason) => Self {
                tone: "good",
                word: "runs".to_owned(),
                text: format::of(u64::from(view.running), "task") + " in process",
            },
            Some("empty") => standing("calm", "idle"),
            Some("trigger-type-none") => standing("calm", "no trigger"),
            Some(reason) => standing(tone_of(reason), reason),
        }
    }
}

/// Reasons that only say that the queue is served already.
fn is_busy(reason: &str) -> bool {
    matches!(
        reason,
        "at-max-tasks" | "already-in-process" | "trigger-pending" | "in-open-unit" | "empty"
    )
}

/// How much a reason to hold matters to a person.
pub(super) fn tone_of(reason: &str) -> &'static str {
    match reason {
        "no-process"
        | "component-missing"
        | "component-quarantined"
        | "start-failed"
        | "parked-message"
        | "store-stopped" => "bad",
        "trigger-off-by-operator"
        | "paused"
        | "get-disabled"
        | "insufficient-memory"
        | "insufficient-fuel"
        | "no-task-slot"
        | "component-compiling"
        | "backing-off"
        | "retry-delay"
        | "draining" => "warn",
        _ => "calm",
    }
}

impl Row {
    /// A queue's row.
    pub(super) fn of(view: &QueueView, rates: &Rates) -> Self {
        Self {
            spark: Spark::of(&rates.of(&view.name), SMALL),
            name: view.name.to_string(),
            depth: format::number(view.depth),
            oldest: view.oldest_age.map(format::age),
            running: view.running,
            max_tasks: view.attributes.max_tasks,
            trigger: match view.attributes.trigger {
                TriggerType::None => "",
                other => other.as_str(),
            },
            process: view.attributes.process.as_ref().map(ToString::to_string),
            state: Standing::of(view),
        }
    }
}

/// The head of a column by which the list can be sorted.
#[derive(Debug)]
struct Head {
    name: &'static str,
    address: String,
    /// `ascending` or `descending` when the list is sorted by it.
    order: Option<&'static str>,
    is_number: bool,
}

#[derive(Template)]
#[template(path = "queues.html")]
struct QueuesPage {
    frame: Frame,
    rows: Vec<Row>,
    heads: Vec<Head>,
    search: String,
    hides_empty: bool,
    sort: &'static str,
    descending: bool,
    /// The first and last row that is shown, from 1.
    shown: (usize, usize),
    matching: u64,
    defined: u64,
    /// Not all queues of the host are shown to whoever looks.
    is_part: bool,
    before: Option<String>,
    after: Option<String>,
}

/// What the page was asked for.
struct Asked<'a> {
    search: &'a str,
    hides_empty: bool,
    sort: QueueSort,
    descending: bool,
    /// From 0.
    number: usize,
}

impl<'a> Asked<'a> {
    fn of(params: &'a Params) -> Self {
        let word = params.text("sort");
        let sort = QueueSort::ALL
            .into_iter()
            .find(|sort| sort.as_str() == word);
        let sort = sort.unwrap_or_default();
        let order = params.get("order");
        Self {
            search: params.text("search"),
            hides_empty: params.is_on("hide-empty"),
            sort,
            descending: order.map_or(sort != QueueSort::Name, |order| order == "descending"),
            number: params.number("page").unwrap_or(1).max(1) - 1,
        }
    }

    fn address(&self, sort: QueueSort, descending: bool, number: usize) -> String {
        let number = if number == 0 {
            String::new()
        } else {
            (number + 1).to_string()
        };
        let fields = [
            ("search", self.search),
            ("hide-empty", if self.hides_empty { "1" } else { "" }),
            ("sort", sort.as_str()),
            ("order", order_word(descending)),
            ("page", &number),
        ];
        address(PATH, &fields)
    }

    fn heads(&self) -> Vec<Head> {
        let columns = [
            (QueueSort::Name, "Queue"),
            (QueueSort::Depth, "Depth"),
            (QueueSort::OldestAge, "Oldest"),
            (QueueSort::Running, "Tasks"),
        ];
        let head = |(sort, name)| {
            let is_this = sort == self.sort;
            let first = sort != QueueSort::Name;
            let turned = if is_this { !self.descending } else { first };
            Head {
                name,
                address: self.address(sort, turned, 0),
                order: is_this.then(|| order_word(self.descending)),
                is_number: sort != QueueSort::Name,
            }
        };
        columns.into_iter().map(head).collect()
    }
}

fn order_word(descending: bool) -> &'static str {
    if descending {
        "descending"
    } else {
        "ascending"
    }
}

/// The list of queues.
pub(super) async fn list(State(app): State<App>, viewer: Viewer, params: Params) -> Page {
    let asked = Asked::of(&params);
    let first = asked.number.saturating_mul(ROWS);
    let found = app.handle.queue_page(QueueFilter {
        seen: viewer.seen(),
        search: asked.search.to_owned(),
        non_empty: asked.hides_empty,
        sort: asked.sort,
        descending: asked.descending,
        offset: first,
        max: Some(ROWS),
        ..QueueFilter::default()
    });
    let found = found.await?;
    let last = first.saturating_add(found.queues.len());
    let to = |number| asked.address(asked.sort, asked.descending, number);
    page(&QueuesPage {
        frame: Frame::new(&app, PATH, &params, &viewer).await?,
        rows: found
            .queues
            .iter()
            .map(|view| Row::of(view, &app.console.rates))
            .collect(),
        heads: asked.heads(),
        search: asked.search.to_owned(),
        hides_empty: asked.hides_empty,
        sort: asked.sort.as_str(),
        descending: asked.descending,
        shown: (first + usize::from(last > first), last),
        matching: found.matching,
        defined: found.defined,
        is_part: !viewer.may(Right::Observe),
        before: asked.number.checked_sub(1).map(to),
        after: ((last as u64) < found.matching).then(|| to(asked.number + 1)),
    })
}

/// How long ago a time was, as a page writes it.
pub(super) fn ago(time: Timestamp, now: Timestamp) -> String {
    format::age(now.since(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_that_waits_for_a_person_has_a_tone() {
        assert_eq!(tone_of("component-quarantined"), "bad");
        assert_eq!(tone_of("paused"), "warn");
        assert_eq!(tone_of("delayed"), "calm");
    }

    #[test]
    fn a_head_turns_the_order_of_its_own_column_only() {
        let params = Params::parse(b"sort=depth&search=a%26b&hide-empty=1&page=3");
        let heads = Asked::of(&params).heads();
        assert_eq!(heads[1].order, Some("descending"));
        let wanted = "/queues?search=a%26b&hide-empty=1&sort=depth&order=ascending";
        assert_eq!(heads[1].address, wanted);
        assert_eq!(heads[0].order, None);
        assert!(heads[0].address.ends_with("sort=name&order=ascending"));
        assert!(
            heads[2]
                .address
                .ends_with("sort=oldest-age&order=descending")
        );
    }
}
