//! Lists page by page: `max` and `cursor` in the query, `next` in the answer.

use oncue_core::code::Code;
use oncue_core::cursor;
use oncue_core::definition::Raw;
use oncue_manager::reload::PluginView;
use oncue_manager::status::{ProcessView, QueueView};
use serde::Serialize;
use utoipa::ToSchema;

use super::fields::{integer, text};
use super::schema::{PluginSchema, ProcessSchema, QueueSchema};
use crate::error::Problem;

/// Entries of one page when nothing else is asked for.
const DEFAULT_MAX: usize = 100;

/// Most entries of one page.
const MAX: u64 = 1_000;

/// The part of a list that is asked for.
#[derive(Debug)]
pub(crate) struct Paging {
    cursor: Option<String>,
    /// At most so many entries.
    pub(crate) max: usize,
}

impl Default for Paging {
    fn default() -> Self {
        Self {
            cursor: None,
            max: DEFAULT_MAX,
        }
    }
}

impl Paging {
    /// Reads one of the parameters `cursor` and `max`; any other name is read as `max`.
    ///
    /// # Errors
    /// The fact and the cure.
    pub(crate) fn read(&mut self, name: &str, value: &Raw) -> Result<(), String> {
        match name {
            "cursor" => self.cursor = Some(text(value)?.to_owned()),
            _ => self.max = integer(value, 1, MAX)?,
        }
        Ok(())
    }

    /// The place after which the page begins. `list` names the list and everything that was asked
    /// of it but for `max`.
    ///
    /// # Errors
    /// `invalid-cursor`, if this list did not give the cursor out.
    pub(crate) fn after<T>(
        &self,
        list: &[&str],
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(given) = &self.cursor else {
            return Ok(None);
        };
        let place = cursor::open(list, given).and_then(read);
        place.map(Some).ok_or_else(|| {
            let detail = "the cursor is not one that this list gave; start without it, and change \
                          nothing but \"max\" from page to page";
            Problem::new(Code::InvalidCursor, detail)
        })
    }
}

/// A page of the queues.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct QueuesPage {
    /// The queues, in the order that was asked for.
    #[schema(value_type = Vec<QueueSchema>)]
    pub(crate) queues: Vec<QueueView>,
    /// How many queues fit what was asked for, on all pages.
    pub(crate) matching: u64,
    /// How many queues there are, of those that the identity may see.
    pub(crate) defined: u64,
    /// The cursor of the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// A page of the process definitions.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ProcessesPage {
    /// The definitions, by name.
    #[schema(value_type = Vec<ProcessSchema>)]
    pub(crate) processes: Vec<ProcessView>,
    /// The cursor of the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// A page of the plugins.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PluginsPage {
    /// The plugins, by name.
    #[schema(value_type = Vec<PluginSchema>)]
    pub(crate) plugins: Vec<PluginView>,
    /// The cursor of the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// Cuts a list that was asked for one entry more than a page has, and says where the page ends.
pub(crate) fn cut<T>(
    found: &mut Vec<T>,
    max: usize,
    list: &[&str],
    name: impl FnOnce(&T) -> String,
) -> Option<String> {
    let has_more = found.len() > max;
    found.truncate(max);
    let last = found.last().filter(|_| has_more)?;
    Some(cursor::seal(list, &name(last)))
}
