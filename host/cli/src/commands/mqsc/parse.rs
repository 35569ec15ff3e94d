//! A command as text becomes a verb, an object and its parameters; what they mean is not known
//! here.
//!
//! Keywords are read in any case. A value outside quotes is folded to upper case, as MQ does it;
//! within single quotes it stands as it is, `''` being one quote.

/// A verb of MQSC that is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Define,
    Alter,
    Display,
    Delete,
}

impl Verb {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Define => "DEFINE",
            Self::Alter => "ALTER",
            Self::Display => "DISPLAY",
            Self::Delete => "DELETE",
        }
    }
}

/// A kind of object that is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Object {
    Queue,
    QueueStatus,
    Process,
}

impl Object {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Queue => "QLOCAL",
            Self::QueueStatus => "QSTATUS",
            Self::Process => "PROCESS",
        }
    }
}

/// A value between brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    /// As it counts: folded, if it stood outside quotes.
    pub(super) text: String,
    pub(super) quoted: bool,
}

/// A keyword, with its value if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) keyword: String,
    pub(super) value: Option<Value>,
}

impl Parameter {
    /// As a script has it, short enough for a line.
    pub(super) fn shown(&self) -> String {
        match &self.value {
            None => self.keyword.clone(),
            Some(value) if value.quoted => format!("{}('{}')", self.keyword, value.text),
            Some(value) => format!("{}({})", self.keyword, value.text),
        }
    }
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) verb: Verb,
    pub(super) object: Object,
    pub(super) name: String,
    pub(super) parameters: Vec<Parameter>,
    /// `WHERE(KEYWORD OPERATOR VALUE)` of a display.
    pub(super) filter: Option<Filter>,
}

/// A condition of a display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) keyword: String,
    pub(super) operator: String,
    pub(super) value: String,
}

/// What a command is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    Command(Command),
    /// `END`, `EXIT`, `QUIT`: the rest of the script is not read.
    End,
}

/// Reads a command.
///
/// # Errors
/// What is wrong and what to do.
pub(super) fn command(text: &str) -> Result<Parsed, String> {
    let mut words = parameters(text)?.into_iter();
    let verb_word = words.next().ok_or("the command is empty")?;
    if ["END", "EXIT", "QUIT"].contains(&verb_word.keyword.as_str()) {
        return Ok(Parsed::End);
    }
    let verb = verb(&verb_word.keyword).ok_or_else(|| unknown_verb(&verb_word.keyword))?;
    let object_word = words
        .next()
        .ok_or_else(|| format!("{} names no object; write QLOCAL(NAME)", verb.word()))?;
    let object = object(verb, &object_word.keyword)?;
    let name = object_word
        .value
        .map(|value| value.text)
        .unwrap_or_default();
    if name.is_empty() {
        return Err(format!("{} has no name; write {0}(NAME)", object.word()));
    }
    let mut rest: Vec<Parameter> = words.collect();
    let filter = match rest.iter().position(|one| one.keyword == "WHERE") {
        Some(at) => Some(filter(&rest.remove(at))?),
        None => None,
    };
    for (index, one) in rest.iter().enumerate() {
        if rest[..index]
            .iter()
            .any(|other| other.keyword == one.keyword)
        {
            return Err(format!("{} is given twice; remove one", one.keyword));
        }
    }
    Ok(Parsed::Command(Command {
        verb,
        object,
        name,
        parameters: rest,
        filter,
    }))
}

fn verb(word: &str) -> Option<Verb> {
    match word {
        "DEFINE" | "DEF" => Some(Verb::Define),
        "ALTER" | "ALT" => Some(Verb::Alter),
        "DISPLAY" | "DIS" => Some(Verb::Display),
        "DELETE" => Some(Verb::Delete),
        _ => None,
    }
}

fn unknown_verb(word: &str) -> String {
    match word {
        "CLEAR" => "CLEAR is not done from a script; use \"oncue queue clear\"".to_owned(),
        "START" | "STOP" | "PING" | "RESET" | "RESOLVE" => {
            format!("{word} is about channels, listeners or services, which do not exist here")
        }
        _ => format!("{word} is not known here; use DEFINE, ALTER, DISPLAY or DELETE"),
    }
}

fn object(verb: Verb, word: &str) -> Result<Object, String> {
    match word {
        "QLOCAL" | "QL" => Ok(Object::Queue),
        "QUEUE" | "Q" if verb == Verb::Display => Ok(Object::Queue),
        "QSTATUS" | "QS" if verb == Verb::Display => Ok(Object::QueueStatus),
        "PROCESS" | "PRO" => Ok(Object::Process),
        "QALIAS" | "QA" | "QREMOTE" | "QR" | "QMODEL" | "QM" => Err(format!(
            "{word}: there are only local queues here; put to the queue itself"
        )),
        "QMGR" => Err(
            "QMGR: the queue manager's settings are in oncue.toml; see \"oncue config \
                       show\""
                .to_owned(),
        ),
        "CHANNEL" | "CHL" | "LISTENER" | "LSTR" | "SERVICE" | "AUTHINFO" | "AUTHREC"
        | "CHLAUTH" | "TOPIC" | "SUB" | "NAMELIST" | "STGCLASS" | "COMMINFO" => Err(format!(
            "{word}: there is no such object here; only QLOCAL and PROCESS"
        )),
        _ => Err(format!(
            "{word} is no object that is known here; use QLOCAL or PROCESS"
        )),
    }
}

fn filter(parameter: &Parameter) -> Result<Filter, String> {
    const FORM: &str = "write WHERE(KEYWORD OPERATOR VALUE), such as WHERE(CURDEPTH GT 0)";
    let text = parameter.value.as_ref().map(|value| value.text.as_str());
    let mut words = text.unwrap_or_default().splitn(3, char::is_whitespace);
    let (Some(keyword), Some(operator), Some(value)) = (words.next(), words.next(), words.next())
    else {
        return Err(FORM.to_owned());
    };
    if !["EQ", "NE", "LT", "LE", "GT", "GE", "LK", "NL"].contains(&operator) {
        return Err(format!("operator {operator} is not known here; {FORM}"));
    }
    let value = value.trim().trim_matches('\'');
    Ok(Filter {
        keyword: keyword.to_owned(),
        operator: operator.to_owned(),
        value: value.to_owned(),
    })
}

/// Takes a command apart into keywords and what stands in brackets behind them.
fn parameters(text: &str) -> Result<Vec<Parameter>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '\''))
            .unwrap_or(rest.len());
        if end == 0 {
            let character: String = rest.chars().take(1).collect();
            return Err(format!("{character:?} stands where a keyword is expected"));
        }
        let keyword = rest[..end].to_ascii_uppercase();
        rest = rest[end..].trim_start();
        let value = match rest.strip_prefix('(') {
            Some(inner) => {
                let (value, after) = bracketed(inner, &keyword)?;
                rest = after.trim_start();
                Some(value)
            }
            None => None,
        };
        // Keywords may stand between commas too.
        rest = rest.trim_start_matches(',').trim_start();
        found.push(Parameter { keyword, value });
    }
    Ok(found)
}

/// What stands up to the closing bracket, and what follows it.
fn bracketed<'a>(text: &'a str, keyword: &str) -> Result<(Value, &'a str), String> {
    let mut written = String::new();
    let mut in_quotes = false;
    let mut quoted = false;
    let mut depth = 0_usize;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\'' if in_quotes && characters.peek().is_some_and(|(_, next)| *next == '\'') => {
                characters.next();
                written.push('\'');
            }
            '\'' => {
                in_quotes = !in_quotes;
                quoted = true;
            }
            _ if in_quotes => written.push(character),
            ')' if depth == 0 => {
                let text_of = if quoted {
                    written.trim_end().to_owned()
                } else {
                    written.trim().to_owned()
                };
                let value = Value {
                    text: text_of,
                    quoted,
                };
                return Ok((value, &text[at + 1..]));
            }
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => written.push(character.to_ascii_uppercase()),
        }
    }
    let what = if in_quotes { "quote" } else { "bracket" };
    Err(format!("{keyword}: a {what} is not closed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Command {
        match command(text) {
            Ok(Parsed::Command(command)) => command,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn shown(text: &str) -> String {
        let command = parsed(text);
        let parameters: Vec<_> = command.parameters.iter().map(Parameter::shown).collect();
        format!(
            "{} {}({}) {}",
            command.verb.word(),
            command.object.word(),
            command.name,
            parameters.join(" ")
        )
    }

    #[test]
    fn commands_are_taken_apart() {
        let check = |text: &str, wanted: &str| assert_eq!(shown(text), wanted, "{text}");
        check(
            "def ql(orders) trigger trigtype ( first )",
            "DEFINE QLOCAL(ORDERS) TRIGGER TRIGTYPE(FIRST)",
        );
        check(
            "ALTER QLOCAL('orders.in') DESCR('it''s (a) test')",
            "ALTER QLOCAL(orders.in) DESCR('it's (a) test')",
        );
        check(
            "DEFINE PROCESS(P) USERDATA(' ') REPLACE",
            "DEFINE PROCESS(P) USERDATA('') REPLACE",
        );
        check(
            "DIS Q(*) CURDEPTH, MAXDEPTH",
            "DISPLAY QLOCAL(*) CURDEPTH MAXDEPTH",
        );
        let command = parsed("DISPLAY QLOCAL(A*) WHERE(CURDEPTH GT 0) ALL");
        let filter = command.filter.expect("a filter");
        assert_eq!(
            (filter.keyword.as_str(), filter.value.as_str()),
            ("CURDEPTH", "0")
        );
        assert_eq!(command.parameters.len(), 1);
        assert_eq!(self::command("end"), Ok(Parsed::End));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let check = |text: &str, part: &str| {
            let error = command(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        };
        check("DEFINE", "names no object");
        check("DEFINE QLOCAL", "has no name");
        check("DEFINE QLOCAL(A", "bracket is not closed");
        check("DEFINE QLOCAL(A) DESCR('x)", "quote is not closed");
        check("DEFINE QLOCAL(A) (B)", "where a keyword is expected");
        check("DEFINE QLOCAL(A) GET(ENABLED) GET(DISABLED)", "given twice");
        check("DEFINE QALIAS(A)", "only local queues");
        check("DEFINE CHANNEL(A)", "no such object here");
        check("START CHANNEL(A)", "which do not exist here");
        check("CLEAR QLOCAL(A)", "oncue queue clear");
        check("FROB QLOCAL(A)", "use DEFINE, ALTER");
        check("DISPLAY QLOCAL(*) WHERE(CURDEPTH)", "WHERE(CURDEPTH GT 0)");
        check("DISPLAY QLOCAL(*) WHERE(CURDEPTH CT 1)", "operator CT");
        check("ALTER QSTATUS(A)", "no object that is known");
    }
}
