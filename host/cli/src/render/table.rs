//! Tables for people: columns, no borders, colours only where they are wanted.

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, CellAlignment, Color, ContentArrangement};

use super::text::escape_line;

/// Spaces between two columns.
const GAP: u16 = 2;

/// What a cell's colour says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Nothing in particular.
    Plain,
    /// All is well.
    Good,
    /// Look here.
    Warn,
    /// This is wrong.
    Bad,
    /// This is the one.
    Strong,
}

/// One cell: text for one line, and its tone.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A cell; control characters in the text are written out.
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        Self {
            text: escape_line(text.as_ref()),
            tone: Tone::Plain,
        }
    }

    /// The same cell in a tone.
    pub(crate) fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// A table under construction.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    header: Vec<&'static str>,
    right: Vec<usize>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these column titles. A title that starts with `>` has its column at the
    /// right: numbers.
    pub(crate) fn new(titles: &[&'static str]) -> Self {
        let right = titles
            .iter()
            .enumerate()
            .filter(|(_, title)| title.starts_with('>'));
        Self {
            right: right.map(|(index, _)| index).collect(),
            header: titles
                .iter()
                .map(|title| title.trim_start_matches('>'))
                .collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Whether there is no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as text, with a line end after each line. `width`: wrap to so many columns;
    /// `None`: never wrap, as programs read lines.
    pub(crate) fn render(&self, width: Option<u16>, colour: bool) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING).force_no_tty();
        match width {
            Some(width) => {
                table
                    .set_content_arrangement(ContentArrangement::Dynamic)
                    .set_width(width);
            }
            None => {
                table.set_content_arrangement(ContentArrangement::Disabled);
            }
        }
        if colour {
            table.enforce_styling();
        }
        if self.header.iter().any(|title| !title.is_empty()) {
            table.set_header(self.header.clone());
        }
        for row in &self.rows {
            table.add_row(
                row.iter()
                    .map(|cell| styled(cell, colour))
                    .collect::<Vec<_>>(),
            );
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, GAP));
            if self.right.contains(&index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut text = table.trim_fmt();
        text.push('\n');
        text
    }
}

fn styled(cell: &Cell, colour: bool) -> comfy_table::Cell {
    let styled = comfy_table::Cell::new(&cell.text);
    match cell.tone {
        _ if !colour => styled,
        Tone::Plain => styled,
        Tone::Good => styled.fg(Color::Green),
        Tone::Warn => styled.fg(Color::Yellow),
        Tone::Bad => styled.fg(Color::Red),
        Tone::Strong => styled.add_attribute(Attribute::Bold),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(&["NAME", ">DEPTH", "REASON"]);
        table.row(vec![
            "orders".into(),
            "12".into(),
            Cell::new("empty").tone(Tone::Warn),
        ]);
        table.row(vec!["a\x1b[2Jb".into(), "1 000".into(), "".into()]);
        table
    }

    #[test]
    fn a_table_is_columns_without_borders() {
        assert_eq!(
            sample().render(None, false),
            "NAME         DEPTH  REASON\n\
             orders          12  empty\n\
             a\\u{1b}[2Jb  1 000\n"
        );
    }

    #[test]
    fn colours_come_only_when_asked_for() {
        assert!(!sample().render(None, false).contains('\x1b'));
        assert!(sample().render(None, true).contains('\x1b'));
    }

    #[test]
    fn a_narrow_terminal_wraps_and_a_pipe_does_not() {
        let mut table = Table::new(&["NAME", "MEANING"]);
        table.row(vec!["x".into(), "word ".repeat(40).trim().into()]);
        assert_eq!(table.render(None, false).lines().count(), 2);
        let wrapped = table.render(Some(40), false);
        assert!(wrapped.lines().count() > 4, "{wrapped}");
        assert!(
            wrapped.lines().all(|line| line.chars().count() <= 40),
            "{wrapped}"
        );
    }
}
