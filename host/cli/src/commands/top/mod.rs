//! `top`: a host live, a frame each second; or one frame as text.

mod frame;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::Context as _;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, poll, read};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use crossterm::{execute, queue};

use super::Context;
use crate::args::top::{Sort, TopArgs};
use crate::exit::Failure;
use frame::{Look, View, draw};

/// The least time between two looks: each asks the host five questions.
const SHORTEST: u64 = 200;

/// Lines of a frame that goes into a pipe.
const UNBOUNDED: usize = 100_000;

/// The last line on a terminal.
const KEYS: &str =
    "q end   d depth  n name  o oldest  p puts  l left  r growth   e empty ones   arrows move";

/// Shows the host.
pub(super) fn run(context: &Context, args: &TopArgs) -> Result<(), Failure> {
    let view = View {
        sort: args.sort,
        all: args.all,
        skipped: 0,
    };
    if args.once || !io::stdout().is_terminal() {
        // What comes and leaves a second is seen between two looks.
        let before = Look::take(&context.client)?;
        std::thread::sleep(interval(args));
        let look = Look::take(&context.client)?;
        if context.screen.is_json() {
            return context.screen.json(&look.as_json(Some(&before)));
        }
        let frame = draw(&look, Some(&before), view, (None, UNBOUNDED), false);
        return context.screen.raw(frame.text.as_bytes());
    }
    if context.screen.is_json() {
        return lines(context, args);
    }
    // Before the screen is taken: a host that is not there is told of in the usual way.
    let first = Look::take(&context.client)?;
    let _taken = Taken::take()?;
    live(context, args, view, first)
}

fn interval(args: &TopArgs) -> Duration {
    Duration::from_millis(args.interval.max(SHORTEST))
}

/// A JSON line for each look.
fn lines(context: &Context, args: &TopArgs) -> Result<(), Failure> {
    let mut before = None;
    loop {
        let look = Look::take(&context.client)?;
        context.screen.json(&look.as_json(before.as_ref()))?;
        context.screen.flush()?;
        before = Some(look);
        std::thread::sleep(interval(args));
    }
}

fn live(context: &Context, args: &TopArgs, mut view: View, first: Look) -> Result<(), Failure> {
    let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut before: Option<Look> = None;
    let mut now = first;
    loop {
        let (width, height) = size().unwrap_or((80, 24));
        let room = (Some(width), usize::from(height).saturating_sub(1));
        let frame = draw(&now, before.as_ref(), view, room, colour);
        view.skipped = view.skipped.min(frame.queues.saturating_sub(1));
        show(&frame.text, height).context("the terminal cannot be written to")?;
        match pressed(interval(args))? {
            Pressed::End => return Ok(()),
            Pressed::Nothing => {
                let next = Look::take(&context.client)?;
                before = Some(std::mem::replace(&mut now, next));
            }
            Pressed::Key(code) => obey(&mut view, code, usize::from(height) / 2),
        }
    }
}

/// Writes the frame over the one before, so that nothing flickers.
fn show(text: &str, height: u16) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    queue!(out, MoveTo(0, 0))?;
    for line in text.lines().take(usize::from(height).saturating_sub(1)) {
        write!(out, "{line}")?;
        queue!(out, Clear(ClearType::UntilNewLine))?;
        write!(out, "\r\n")?;
    }
    queue!(out, Clear(ClearType::FromCursorDown))?;
    queue!(out, MoveTo(0, height.saturating_sub(1)))?;
    write!(out, "{KEYS}")?;
    queue!(out, Clear(ClearType::UntilNewLine))?;
    out.flush()
}

enum Pressed {
    Nothing,
    Key(KeyCode),
    End,
}

/// Waits for a key, or for the time of the next look.
fn pressed(interval: Duration) -> Result<Pressed, Failure> {
    const FAILED: &str = "the terminal cannot be read";
    if !poll(interval).context(FAILED)? {
        return Ok(Pressed::Nothing);
    }
    let Event::Key(key) = read().context(FAILED)? else {
        return Ok(Pressed::Key(KeyCode::Null));
    };
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Ok(match key.code {
        _ if key.kind == KeyEventKind::Release => Pressed::Key(KeyCode::Null),
        KeyCode::Char('q') | KeyCode::Esc => Pressed::End,
        KeyCode::Char('c' | 'd') if control => Pressed::End,
        code => Pressed::Key(code),
    })
}

fn obey(view: &mut View, code: KeyCode, page: usize) {
    match code {
        KeyCode::Char('d') => view.sort = Sort::Depth,
        KeyCode::Char('n') => view.sort = Sort::Name,
        KeyCode::Char('r') => view.sort = Sort::Rate,
        KeyCode::Char('p') => view.sort = Sort::Put,
        KeyCode::Char('l') => view.sort = Sort::Left,
        KeyCode::Char('o') => view.sort = Sort::Oldest,
        KeyCode::Char('e') => view.all = !view.all,
        KeyCode::Down | KeyCode::Char('j') => view.skipped += 1,
        KeyCode::Up | KeyCode::Char('k') => view.skipped = view.skipped.saturating_sub(1),
        KeyCode::PageDown => view.skipped += page,
        KeyCode::PageUp => view.skipped = view.skipped.saturating_sub(page),
        KeyCode::Home => view.skipped = 0,
        _ => {}
    }
}

/// The terminal is ours until this is dropped, whatever happens.
struct Taken;

impl Taken {
    fn take() -> Result<Self, Failure> {
        let taken = Self;
        enable_raw_mode()
            .and_then(|()| execute!(io::stdout(), EnterAlternateScreen, Hide))
            .context("the terminal cannot be taken")?;
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // There is nothing left to do about a terminal that is gone.
        let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_change_the_view() {
        let mut view = View {
            sort: Sort::Depth,
            all: false,
            skipped: 0,
        };
        obey(&mut view, KeyCode::Char('o'), 10);
        obey(&mut view, KeyCode::Char('e'), 10);
        obey(&mut view, KeyCode::PageDown, 10);
        obey(&mut view, KeyCode::Up, 10);
        assert_eq!((view.sort, view.all, view.skipped), (Sort::Oldest, true, 9));
        obey(&mut view, KeyCode::Home, 10);
        obey(&mut view, KeyCode::Up, 10);
        assert_eq!(view.skipped, 0);
    }
}
