//! Reading LLVM's textual IR: enough to find one piece of a line without being fooled by strings or
//! nesting. LLVM prints one instruction, global or function header a line, in one fixed form.

/// The index just behind a string literal that starts at `start` (a `"`).
fn string_end(line: &str, start: usize) -> Option<usize> {
    line[start + 1..].find('"').map(|n| start + 1 + n + 1)
}

/// The position of `needle` in `line`, outside string literals, at or behind `from`.
pub fn find(line: &str, needle: &str, from: usize) -> Option<usize> {
    let mut at = from;
    while at < line.len() {
        if line[at..].starts_with(needle) {
            return Some(at);
        }
        at = match line.as_bytes()[at] {
            b'"' => string_end(line, at)?,
            _ => at + char_len(line, at),
        };
    }
    None
}

/// The index of the bracket that closes the one at `open`; string literals are skipped.
pub fn closing(line: &str, open: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = open;
    while at < line.len() {
        match line.as_bytes()[at] {
            b'"' => {
                at = string_end(line, at)?;
                continue;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += char_len(line, at);
    }
    None
}

/// Splits at the commas that are outside brackets and strings; no parts for blank text.
pub fn split_arguments(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < text.len() {
        at = match text.as_bytes()[at] {
            b'(' | b'[' | b'{' => closing(text, at).map_or(text.len(), |n| n + 1),
            b'"' => string_end(text, at).unwrap_or(text.len()),
            b',' => {
                parts.push(text[start..at].trim());
                start = at + 1;
                at + 1
            }
            _ => at + char_len(text, at),
        };
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        parts.push(last);
    }
    parts
}

/// The global name (`@name` or `@"name"`) that starts at `at`.
pub fn global_name(line: &str, at: usize) -> Option<&str> {
    let rest = line.get(at..)?.strip_prefix('@')?;
    let length = if rest.starts_with('"') {
        string_end(rest, 0)?
    } else {
        rest.find(|c: char| !is_name_char(c)).unwrap_or(rest.len())
    };
    (length > 0).then(|| &line[at..at + 1 + length])
}

/// Replaces each use of a global name by what `replacement` says of it.
pub fn replace_globals<'a>(
    line: &str,
    replacement: impl Fn(&str) -> Option<&'a str>,
) -> Option<String> {
    let mut out: Option<String> = None;
    let (mut at, mut copied) = (0, 0);
    while let Some(start) = find(line, "@", at) {
        let Some(name) = global_name(line, start) else {
            at = start + 1;
            continue;
        };
        at = start + name.len();
        if let Some(new) = replacement(name) {
            let text = out.get_or_insert_default();
            text.push_str(&line[copied..start]);
            text.push_str(new);
            copied = at;
        }
    }
    if let Some(text) = &mut out {
        text.push_str(&line[copied..]);
    }
    out
}

pub fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '-')
}

/// The bytes of `c"…"`, where `\XX` is a byte in hexadecimal and `\\` a backslash.
pub fn decode_bytes(literal: &str) -> Option<Vec<u8>> {
    let text = literal.strip_prefix("c\"")?.strip_suffix('"')?.as_bytes();
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'\\' {
            bytes.push(text[at]);
            at += 1;
        } else if text.get(at + 1) == Some(&b'\\') {
            bytes.push(b'\\');
            at += 2;
        } else {
            let hex = std::str::from_utf8(text.get(at + 1..at + 3)?).ok()?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            at += 3;
        }
    }
    Some(bytes)
}

fn char_len(line: &str, at: usize) -> usize {
    line[at..].chars().next().map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_and_strings_nest() {
        let line = r#"call void asm "a)b", "c"(i32 (x), [2 x i8] y) #1"#;
        let open = find(line, "(", 0).unwrap();
        assert_eq!(
            &line[open..=closing(line, open).unwrap()],
            "(i32 (x), [2 x i8] y)"
        );
        assert_eq!(
            split_arguments("i32 (a, b), ptr x, c\"1,2\""),
            ["i32 (a, b)", "ptr x", "c\"1,2\""]
        );
        assert!(split_arguments("  ").is_empty());
    }

    #[test]
    fn only_whole_global_names_are_replaced() {
        let replace = |name: &str| (name == "@a").then_some("NEW");
        assert_eq!(
            replace_globals("ptr @a, ptr @ab, \"@a\", (@a)", replace).unwrap(),
            "ptr NEW, ptr @ab, \"@a\", (NEW)"
        );
        assert_eq!(replace_globals("ptr @b", replace), None);
    }

    #[test]
    fn escaped_bytes_are_decoded() {
        assert_eq!(decode_bytes(r#"c"a\00\FF\\b""#).unwrap(), b"a\x00\xff\\b");
        assert_eq!(decode_bytes(r#"c"\0""#), None);
    }
}
