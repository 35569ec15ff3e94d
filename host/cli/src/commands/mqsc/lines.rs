//! Lines of a script become commands: comments go, continued lines are joined.
//!
//! `*` begins a comment line. A line that ends in `+` goes on at the first character of the next
//! line that is no blank; one that ends in `-` goes on at the next line's first column. `;` ends a
//! command, and so does a line that is not continued.

/// One command as text, and the line where it begins, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) line: usize,
    pub(super) text: String,
}

/// Takes a script apart. The last command may lack its end: that is told by `unfinished`.
pub(super) fn commands(script: &str) -> (Vec<Whole>, Option<usize>) {
    let mut commands = Vec::new();
    let mut open: Option<Whole> = None;
    let mut skips_blanks = false;
    for (index, line) in script.lines().enumerate() {
        let line = line.trim_end();
        // A comment may stand between the lines of one command.
        if line.trim_start().starts_with('*') {
            continue;
        }
        let is_first = open.is_none();
        if is_first && line.trim().is_empty() {
            continue;
        }
        let part = if is_first || skips_blanks {
            line.trim_start()
        } else {
            line
        };
        let (part, goes_on) = match part.as_bytes().last() {
            Some(b'+') => (&part[..part.len() - 1], Some(true)),
            Some(b'-') => (&part[..part.len() - 1], Some(false)),
            _ => (part, None),
        };
        let whole = open.get_or_insert_with(|| Whole {
            line: index + 1,
            text: String::new(),
        });
        whole.text.push_str(part);
        match goes_on {
            Some(skips) => skips_blanks = skips,
            None => commands.extend(open.take().into_iter().flat_map(at_semicolons)),
        }
    }
    let unfinished = open.as_ref().map(|whole| whole.line);
    commands.extend(open.into_iter().flat_map(at_semicolons));
    (commands, unfinished)
}

/// Several commands may stand on one line; a semicolon in quotes is text.
fn at_semicolons(whole: Whole) -> Vec<Whole> {
    let mut found = Vec::new();
    let mut text = String::new();
    let mut quoted = false;
    let mut end = |text: &mut String| {
        let part = std::mem::take(text);
        if !part.trim().is_empty() {
            found.push(Whole {
                line: whole.line,
                text: part.trim().to_owned(),
            });
        }
    };
    for character in whole.text.chars() {
        quoted ^= character == '\'';
        if character == ';' && !quoted {
            end(&mut text);
        } else {
            text.push(character);
        }
    }
    end(&mut text);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, wanted: &[(usize, &str)]) {
        let (found, unfinished) = commands(script);
        let found: Vec<_> = found
            .iter()
            .map(|whole| (whole.line, whole.text.as_str()))
            .collect();
        assert_eq!(found, wanted, "{script:?}");
        assert_eq!(unfinished, None, "{script:?}");
    }

    #[test]
    fn lines_are_joined_as_they_say() {
        check(
            "DEF QL(A)\n\n* no\n  * no\nDEL QL(B)",
            &[(1, "DEF QL(A)"), (5, "DEL QL(B)")],
        );
        check("DEF QL(A) +\n   TRIG+\n  GER", &[(1, "DEF QL(A) TRIGGER")]);
        check(
            "DEF QL(A) DESCR('one -\n  two')",
            &[(1, "DEF QL(A) DESCR('one   two')")],
        );
        check(
            "DEF QL(A) +\n* a comment between\n GET(ENABLED)",
            &[(1, "DEF QL(A) GET(ENABLED)")],
        );
        check("A; B ;;C", &[(1, "A"), (1, "B"), (1, "C")]);
        check("A DESCR('x;y')", &[(1, "A DESCR('x;y')")]);
        check("", &[]);
    }

    #[test]
    fn a_script_that_breaks_off_says_where() {
        let (found, unfinished) = commands("A\nB +\n");
        assert_eq!((found.len(), unfinished), (2, Some(2)));
    }
}
