//! Cuts a C++ header into tokens; preprocessor lines and block comments are tokens of their own.

use super::Fault;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ident,
    Number,
    /// A string literal; the token's text is its value.
    String,
    /// One character, or one of the [`OPERATORS`].
    Punct,
    /// A preprocessor line with its continuations, without `#` and trailing comment.
    Directive,
    /// The inside of a block comment.
    Comment,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub kind: Kind,
    pub text: String,
    pub line: usize,
}

impl Token {
    pub fn is(&self, punct: &str) -> bool {
        self.kind == Kind::Punct && self.text == punct
    }

    pub fn is_ident(&self, ident: &str) -> bool {
        self.kind == Kind::Ident && self.text == ident
    }
}

/// The operators of more than one character; `>>` is two closing brackets.
const OPERATORS: [&str; 7] = ["::", "==", "!=", "<=", ">=", "&&", "||"];

pub(super) fn tokens(source: &str) -> Result<Vec<Token>, Fault> {
    let mut lexer = Lexer {
        source,
        at: 0,
        line: 1,
        fresh_line: true,
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
    /// Whether nothing but blanks came before on this line.
    fresh_line: bool,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    fn step(&mut self) -> Result<(), Fault> {
        let rest = &self.source[self.at..];
        let first = rest.chars().next().unwrap_or_default();
        if first == '\n' {
            self.advance(1);
            self.fresh_line = true;
            return Ok(());
        }
        if first.is_whitespace() {
            self.advance(first.len_utf8());
            return Ok(());
        }
        let starts_line = std::mem::take(&mut self.fresh_line);
        if first == '#' && starts_line {
            let length = directive_length(rest);
            let text = rest[1..length].replace("\\\n", " ");
            let text = text.split("//").next().unwrap_or_default();
            self.push(Kind::Directive, collapse(text), length);
        } else if rest.starts_with("//") {
            self.advance(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            let Some(end) = rest.find("*/") else {
                return Err(Fault::new(self.line, "expected `*/` to end this comment"));
            };
            self.push(Kind::Comment, rest[2..end].to_owned(), end + 2);
        } else if first == '"' {
            let (value, length) = string(rest).map_err(|message| Fault::new(self.line, message))?;
            self.push(Kind::String, value, length);
        } else if first.is_ascii_alphanumeric() || first == '_' {
            let word = |character: char| character.is_ascii_alphanumeric() || character == '_';
            let length = rest
                .find(|character| !word(character))
                .unwrap_or(rest.len());
            let kind = if first.is_ascii_digit() {
                Kind::Number
            } else {
                Kind::Ident
            };
            self.push(kind, rest[..length].to_owned(), length);
        } else {
            let operator = OPERATORS
                .iter()
                .find(|operator| rest.starts_with(**operator));
            let length = operator.map_or(first.len_utf8(), |operator| operator.len());
            self.push(Kind::Punct, rest[..length].to_owned(), length);
        }
        Ok(())
    }

    fn push(&mut self, kind: Kind, text: String, length: usize) {
        self.tokens.push(Token {
            kind,
            text,
            line: self.line,
        });
        self.advance(length);
    }

    fn advance(&mut self, length: usize) {
        let passed = &self.source[self.at..self.at + length];
        self.line += passed.bytes().filter(|&byte| byte == b'\n').count();
        self.at += length;
    }
}

/// Up to the first line end without a backslash in front.
fn directive_length(rest: &str) -> usize {
    let ends = rest.match_indices('\n').map(|(position, _)| position);
    ends.into_iter()
        .find(|&end| !rest[..end].ends_with('\\'))
        .unwrap_or(rest.len())
}

/// The value of the literal at the start of `rest`, and its length in the source.
fn string(rest: &str) -> Result<(String, usize), String> {
    let mut value = String::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((position, character)) = characters.next() {
        match character {
            '"' => return Ok((value, position + 1)),
            '\n' => break,
            '\\' => match characters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, 't')) => value.push('\t'),
                Some((_, quoted @ ('"' | '\\'))) => value.push(quoted),
                other => {
                    let found = other.map(|(_, character)| character).unwrap_or(' ');
                    return Err(format!(
                        "expected the escape n, t, \" or \\, found `\\{found}`"
                    ));
                }
            },
            _ => value.push(character),
        }
    }
    Err("expected `\"` to end this string".to_owned())
}

pub(super) fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
