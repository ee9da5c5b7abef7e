//! Cuts PTX text into words, punctuation and the markers around inline assembly.

use anyhow::{Result, bail};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An opcode, register, label, number or directive: `mbarrier.init.shared::cta.b64`, `%r1`.
    Word,
    /// One punctuation character.
    Punct,
    /// A quoted string, quotes included.
    String,
    /// The comment that both nvcc and LLVM write before inline assembly.
    AsmBegin,
    /// The comment after it.
    AsmEnd,
}

/// One token and the line it starts on (from 1).
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    pub line: usize,
}

impl Token<'_> {
    /// Whether this is the punctuation character `text`.
    pub fn is(&self, text: &str) -> bool {
        self.kind == Kind::Punct && self.text == text
    }
}

/// The tokens of `source`; comments other than the inline-assembly markers are dropped.
pub fn tokens(source: &str) -> Result<Vec<Token<'_>>> {
    let mut lexer = Lexer {
        source,
        at: 0,
        line: 1,
        tokens: Vec::new(),
    };
    while lexer.at < source.len() {
        lexer.step()?;
    }
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    line: usize,
    tokens: Vec<Token<'a>>,
}

impl<'a> Lexer<'a> {
    fn step(&mut self) -> Result<()> {
        let rest = &self.source[self.at..];
        match rest.as_bytes()[0] {
            b'\n' => {
                self.line += 1;
                self.at += 1;
            }
            byte if byte.is_ascii_whitespace() => self.at += 1,
            _ if rest.starts_with("//") => self.line_comment(rest),
            _ if rest.starts_with("/*") => match rest.find("*/") {
                Some(end) => self.skip(&rest[..end + 2]),
                None => bail!("line {}: expected `*/` to end this comment", self.line),
            },
            b'"' => match rest[1..].find('"') {
                Some(end) => self.push(Kind::String, &rest[..end + 2]),
                None => bail!("line {}: expected `\"` to end this string", self.line),
            },
            byte if is_word(byte) => self.push(Kind::Word, &rest[..word_length(rest.as_bytes())]),
            byte if byte.is_ascii() => self.push(Kind::Punct, &rest[..1]),
            _ => {
                let found = rest.chars().next().unwrap_or_default();
                bail!(
                    "line {}: expected PTX, which is ASCII; found `{found}`",
                    self.line
                )
            }
        }
        Ok(())
    }

    fn line_comment(&mut self, rest: &'a str) {
        let comment = &rest[..rest.find('\n').unwrap_or(rest.len())];
        match comment.trim_end() {
            "// begin inline asm" => self.push(Kind::AsmBegin, comment),
            "// end inline asm" => self.push(Kind::AsmEnd, comment),
            _ => self.skip(comment),
        }
    }

    fn push(&mut self, kind: Kind, text: &'a str) {
        self.tokens.push(Token {
            kind,
            text,
            line: self.line,
        });
        self.skip(text);
    }

    fn skip(&mut self, text: &str) {
        self.line += text.bytes().filter(|&byte| byte == b'\n').count();
        self.at += text.len();
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_$%.".contains(&byte)
}

/// A word may contain `::` (as in `shared::cta`) and a ratio after it (as in `spcompress::2:4`); another single colon
/// ends it (a label).
fn word_length(rest: &[u8]) -> usize {
    let mut length = 0;
    loop {
        match rest[length..] {
            [byte, ..] if is_word(byte) => length += 1,
            [b':', b':', byte, ..] if is_word(byte) => length += 2,
            [b':', byte, ..] if byte.is_ascii_digit() && is_ratio(&rest[..length]) => length += 1,
            _ => return length,
        }
    }
}

/// Whether `word` may go on with `:` and a number: it ends in `::` and a number.
fn is_ratio(word: &[u8]) -> bool {
    let end = word
        .iter()
        .rposition(|byte| !byte.is_ascii_digit())
        .map_or(0, |last| last + 1);
    end < word.len() && word[..end].ends_with(b"::")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        tokens(source)
            .unwrap()
            .iter()
            .map(|token| token.text)
            .collect()
    }

    #[test]
    fn qualifiers_with_two_colons_stay_in_one_word_and_labels_do_not() {
        assert_eq!(
            texts("$L1: st.async.shared::cluster [%r1+8], _|p;"),
            [
                "$L1",
                ":",
                "st.async.shared::cluster",
                "[",
                "%r1",
                "+",
                "8",
                "]",
                ",",
                "_",
                "|",
                "p",
                ";"
            ]
        );
    }

    #[test]
    fn a_ratio_stays_in_its_word() {
        assert_eq!(
            texts("a::2:4.b c; L2:4"),
            ["a::2:4.b", "c", ";", "L2", ":", "4"]
        );
    }

    #[test]
    fn a_comment_in_a_string_is_text() {
        assert_eq!(
            texts(".file 1 \"a//b\" // c\n/* d\n */ ret"),
            [".file", "1", "\"a//b\"", "ret"]
        );
    }

    #[test]
    fn lines_are_counted_through_comments() {
        assert_eq!(tokens("/*\n\n*/\nret").unwrap()[0].line, 4);
    }

    #[test]
    fn an_open_comment_is_an_error_with_its_line() {
        assert!(
            tokens("ret;\n/* open")
                .unwrap_err()
                .to_string()
                .starts_with("line 2:")
        );
    }
}
