//! Forms with files, as browsers send them: parts between lines that bear a boundary.
//!
//! Only what browsers write is read; anything else is refused, never guessed.

use bytes::Bytes;

/// Most parts that are read.
const MAX_PARTS: usize = 100;

/// Longest boundary, in bytes.
const MAX_BOUNDARY: usize = 70;

/// Longest head of a part, in bytes.
const MAX_HEAD: usize = 4 << 10;

/// A field of a form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The field's name.
    pub(super) name: String,
    /// The file's name, where the field is one for a file; empty when none was chosen.
    pub(super) file: Option<String>,
    /// What the browser takes the file for.
    pub(super) content_type: Option<String>,
    /// The text, or the file.
    pub(super) bytes: Bytes,
}

/// The boundary that a content type names.
pub(super) fn boundary_of(content_type: &str) -> Option<&str> {
    let parameters = content_type.split(';').skip(1);
    let mut named = parameters.filter_map(|it| it.trim().strip_prefix("boundary="));
    let boundary = named.next()?.trim_matches('"');
    (!boundary.is_empty() && boundary.len() <= MAX_BOUNDARY).then_some(boundary)
}

/// Takes a form apart.
///
/// # Errors
/// What is wrong with it.
pub(super) fn parse(form: &Bytes, boundary: &str) -> Result<Vec<Part>, &'static str> {
    let line = format!("--{boundary}");
    let next = format!("\r\n{line}");
    let mut parts = Vec::new();
    let mut at = if form.starts_with(line.as_bytes()) {
        line.len()
    } else {
        return Err("it does not begin with its boundary");
    };
    loop {
        let rest = &form[at..];
        if rest.starts_with(b"--") {
            return Ok(parts);
        }
        if !rest.starts_with(b"\r\n") {
            return Err("a boundary is not the end of its line");
        }
        if parts.len() >= MAX_PARTS {
            return Err("it has too many parts");
        }
        let head = at + 2;
        let within = &form[head..form.len().min(head + MAX_HEAD)];
        let length = find(within, b"\r\n\r\n").ok_or("the head of a part does not end")?;
        let first = head + length + 4;
        let size = find(&form[first..], next.as_bytes()).ok_or("a part does not end")?;
        let bytes = form.slice(first..first + size);
        parts.push(read_head(&form[head..head + length], bytes)?);
        at = first + size + next.len();
    }
}

/// Where a text begins in another.
fn find(within: &[u8], text: &[u8]) -> Option<usize> {
    let first = *text.first()?;
    let mut from = 0;
    loop {
        let at = from + within[from..].iter().position(|byte| *byte == first)?;
        if within[at..].starts_with(text) {
            return Some(at);
        }
        from = at + 1;
    }
}

fn read_head(head: &[u8], bytes: Bytes) -> Result<Part, &'static str> {
    let head = std::str::from_utf8(head).map_err(|_| "the head of a part is not UTF-8")?;
    let (mut names, mut content_type) = (None, None);
    for line in head.split("\r\n") {
        let (name, text) = line
            .split_once(':')
            .ok_or("a part has a line of no header")?;
        if name.eq_ignore_ascii_case("content-disposition") {
            names = Some(disposition(text.trim())?);
        } else if name.eq_ignore_ascii_case("content-type") {
            content_type = Some(text.trim().to_owned());
        }
    }
    let (name, file) = names.ok_or("a part has no name")?;
    Ok(Part {
        name,
        file,
        content_type,
        bytes,
    })
}

/// The names in `form-data; name="a"; filename="b"`.
fn disposition(text: &str) -> Result<(String, Option<String>), &'static str> {
    let mut rest = text
        .strip_prefix("form-data")
        .ok_or("a part is no field of a form")?;
    let (mut name, mut file) = (None, None);
    while let Some(parameter) = rest.strip_prefix(';') {
        let (key, value) = parameter.split_once("=\"").ok_or("a name is not quoted")?;
        let (value, after) = value.split_once('"').ok_or("a name does not end")?;
        // Browsers write these three so, and nothing else.
        let value = value
            .replace("%22", "\"")
            .replace("%0D", "\r")
            .replace("%0A", "\n");
        match key.trim() {
            "name" => name = Some(value),
            "filename" => file = Some(value),
            _ => {}
        }
        rest = after;
    }
    let name = name.ok_or("a part has no name")?;
    rest.is_empty()
        .then_some((name, file))
        .ok_or("a part has more than names")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(form: &str) -> Result<Vec<Part>, &'static str> {
        parse(&Bytes::copy_from_slice(form.as_bytes()), "xy")
    }

    #[test]
    fn texts_and_files_are_read_as_browsers_write_them() {
        let form = "--xy\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none\r\ntwo\r\n\
                    --xy\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a %22b.bin\"\r\n\
                    Content-Type: image/png\r\n\r\n\0\r\n--x\r\n--xy--\r\n";
        let parts = parsed(form).expect("two parts");
        assert_eq!(parts.len(), 2);
        assert_eq!(
            (parts[0].name.as_str(), &parts[0].bytes[..]),
            ("a", &b"one\r\ntwo"[..])
        );
        assert_eq!(parts[0].file, None);
        assert_eq!(parts[1].file.as_deref(), Some("a \"b.bin"));
        assert_eq!(parts[1].content_type.as_deref(), Some("image/png"));
        assert_eq!(&parts[1].bytes[..], b"\0\r\n--x");
        assert_eq!(parsed("--xy--\r\n"), Ok(Vec::new()));
    }

    #[test]
    fn what_is_cut_or_not_of_this_form_is_refused() {
        let whole = "--xy\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none\r\n--xy--";
        assert!(parsed(whole).is_ok());
        for end in 0..whole.len() {
            assert!(parsed(&whole[..end]).is_err(), "{:?}", &whole[..end]);
        }
        let many = whole.trim_end_matches("--").repeat(MAX_PARTS + 1);
        let many = many.replace("--xy--xy", "--xy") + "--";
        assert_eq!(parsed(&many), Err("it has too many parts"));
        for wrong in [
            whole.replace("form-data", "attachment"),
            whole.replace("; name=\"a\"", ""),
            whole.replace("\"a\"", "a"),
            whole.replace("\"a\"", "\"a\" b"),
            whole.replace("Content-Disposition:", ""),
            whole.replace(
                "\r\n\r\n",
                &format!("\r\nx: {}\r\n\r\n", "y".repeat(MAX_HEAD)),
            ),
        ] {
            assert!(parsed(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_boundary_is_named_by_the_content_type() {
        let named = |text| boundary_of(text);
        assert_eq!(
            named("multipart/form-data; boundary=----x1"),
            Some("----x1")
        );
        assert_eq!(
            named("multipart/form-data; charset=x; boundary=\"a b\""),
            Some("a b")
        );
        assert_eq!(named("multipart/form-data"), None);
        assert_eq!(named("multipart/form-data; boundary="), None);
        let long = format!("multipart/form-data; boundary={}", "x".repeat(71));
        assert_eq!(named(&long), None);
    }
}
