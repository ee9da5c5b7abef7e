//! Tokens of one header → overloads.

use super::lexer::{self, Kind, Token, collapse};
use super::{AsmOperand, Fault, IsaRange, Overload, Parameter, Target, Variant};

type Result<T> = std::result::Result<T, Fault>;

pub(super) fn parse(source: &str, file: &str) -> Result<Vec<Overload>> {
    let tokens = lexer::tokens(source)?;
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
        file,
        guards: Vec::new(),
        comment: String::new(),
    };
    let mut overloads = Vec::new();
    while let Some(token) = parser.peek() {
        match token.kind {
            Kind::Directive => {
                parser.at += 1;
                parser.directive(token)?;
            }
            Kind::Comment => {
                parser.at += 1;
                parser.comment.clone_from(&token.text);
            }
            _ => overloads.extend(parser.declaration()?),
        }
    }
    Ok(overloads)
}

struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    file: &'t str,
    /// The conditions of the open `#if`s.
    guards: Vec<String>,
    /// The last block comment: the documentation of the function that follows.
    comment: String,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self, expected: &str) -> Result<&'t Token> {
        let Some(token) = self.peek() else {
            let line = self.tokens.last().map_or(1, |token| token.line);
            return Err(Fault::new(
                line,
                format!("expected {expected}, found the end of the file"),
            ));
        };
        self.at += 1;
        Ok(token)
    }

    fn expect(&mut self, punct: &str) -> Result<()> {
        let token = self.next(&format!("`{punct}`"))?;
        if token.is(punct) {
            Ok(())
        } else {
            Err(unexpected(token, &format!("`{punct}`")))
        }
    }

    fn directive(&mut self, token: &Token) -> Result<()> {
        let (name, rest) = token.text.split_once(' ').unwrap_or((&token.text, ""));
        let outside = || Fault::new(token.line, format!("expected `#if` before `#{name}`"));
        match name {
            "if" => self.guards.push(rest.to_owned()),
            "ifdef" => self.guards.push(format!("defined({rest})")),
            "ifndef" => self.guards.push(format!("!defined({rest})")),
            "else" => *self.guards.last_mut().ok_or_else(outside)? = "otherwise".to_owned(),
            "elif" => rest.clone_into(self.guards.last_mut().ok_or_else(outside)?),
            "endif" => drop(self.guards.pop().ok_or_else(outside)?),
            "include" | "define" | "undef" | "pragma" => {}
            _ => {
                return Err(Fault::new(
                    token.line,
                    format!("expected a known directive, found `#{name}`"),
                ));
            }
        }
        Ok(())
    }

    /// One declaration outside any body: an overload, or nothing of interest.
    fn declaration(&mut self) -> Result<Option<Overload>> {
        let start = self.at;
        let mut depth = 0;
        loop {
            let token = self.next("`;` or `{`")?;
            match (token.kind.clone(), token.text.as_str()) {
                // A namespace macro stands alone in front of an `#if`.
                (Kind::Directive, _) if self.tokens[start..self.at - 1].iter().all(is_macro) => {
                    self.directive(token)?;
                    return Ok(None);
                }
                (Kind::Directive, _) => {
                    return Err(unexpected(token, "a declaration without `#` lines in it"));
                }
                (Kind::Punct, "(" | "[") => depth += 1,
                (Kind::Punct, ")" | "]") => depth -= 1,
                (Kind::Punct, ";") if depth == 0 => return Ok(None),
                (Kind::Punct, "{") if depth == 0 => break,
                _ => {}
            }
        }
        let header = &self.tokens[start..self.at - 1];
        if header.iter().any(|token| token.is_ident("enum")) {
            self.skip_block()?;
            self.expect(";")?;
            return Ok(None);
        }
        let mut overload = signature(header, self.file)?;
        if overload.function.starts_with("__") {
            self.skip_block()?;
            return Ok(None);
        }
        overload.isa = self.isa(overload.line)?;
        overload.targets = targets(&std::mem::take(&mut self.comment), overload.line)?;
        let guards = self.guards.len();
        self.block(&mut Vec::new(), &mut overload.variants, guards)?;
        if overload.variants.is_empty() {
            return Err(Fault::new(
                overload.line,
                format!("expected inline assembly in `{}`", overload.function),
            ));
        }
        Ok(Some(overload))
    }

    /// Skips to the `}` of an open block, which must hold no inline assembly.
    fn skip_block(&mut self) -> Result<()> {
        let mut depth = 1;
        while depth > 0 {
            let token = self.next("`}`")?;
            match token.text.as_str() {
                "asm" => {
                    return Err(unexpected(
                        token,
                        "a helper function without inline assembly",
                    ));
                }
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
        }
        Ok(())
    }

    fn isa(&self, line: usize) -> Result<IsaRange> {
        let Some(guard) = self
            .guards
            .iter()
            .rev()
            .find(|guard| guard.contains("__cccl_ptx_isa"))
        else {
            return Err(Fault::new(
                line,
                "expected `#if __cccl_ptx_isa >= …` around the function",
            ));
        };
        let mut isa = IsaRange {
            since: 0,
            before: None,
        };
        for condition in guard.split("&&") {
            let words = Vec::from_iter(condition.split_whitespace());
            match words[..] {
                ["__cccl_ptx_isa", ">=", number] => isa.since = parse_isa(number, line)?,
                ["__cccl_ptx_isa", "<", number] => isa.before = Some(parse_isa(number, line)?),
                _ => {
                    return Err(Fault::new(
                        line,
                        format!("expected a range of `__cccl_ptx_isa`, found `{guard}`"),
                    ));
                }
            }
        }
        Ok(isa)
    }

    /// The statements up to the block's `}`; `guards` directives were open outside the function.
    fn block(
        &mut self,
        conditions: &mut Vec<String>,
        variants: &mut Vec<Variant>,
        guards: usize,
    ) -> Result<()> {
        loop {
            let token = self.next("`}`")?;
            match (&token.kind, token.text.as_str()) {
                (Kind::Punct, "}") => return Ok(()),
                (Kind::Punct, ";") | (Kind::Comment, _) => {}
                (Kind::Directive, _) => self.directive(token)?,
                (Kind::Ident, "if") => self.conditional(conditions, variants, guards)?,
                (Kind::Ident, "else") => {
                    if self.peek().is_some_and(|token| token.is_ident("if")) {
                        self.at += 1;
                        self.conditional(conditions, variants, guards)?;
                    } else {
                        self.branch("otherwise".to_owned(), conditions, variants, guards)?;
                    }
                }
                (Kind::Ident, "asm") => {
                    let mut variant = self.assembly(token.line)?;
                    variant.conditions.clone_from(conditions);
                    variant.arch_guard = self.guards[guards..].last().cloned();
                    variants.push(variant);
                }
                (Kind::Ident, "for" | "while" | "do" | "switch" | "goto" | "try") => {
                    return Err(unexpected(
                        token,
                        "a declaration, `if constexpr`, `asm` or `return`",
                    ));
                }
                (Kind::Ident, _) | (Kind::Punct, "*" | "::") => self.simple_statement()?,
                _ => return Err(unexpected(token, "a statement")),
            }
        }
    }

    fn conditional(
        &mut self,
        conditions: &mut Vec<String>,
        variants: &mut Vec<Variant>,
        guards: usize,
    ) -> Result<()> {
        let constexpr = self.next("`constexpr`")?;
        if !constexpr.is_ident("constexpr") {
            return Err(unexpected(constexpr, "`constexpr` after `if`"));
        }
        self.expect("(")?;
        let condition = text(self.parenthesised()?);
        self.branch(condition, conditions, variants, guards)
    }

    fn branch(
        &mut self,
        condition: String,
        conditions: &mut Vec<String>,
        variants: &mut Vec<Variant>,
        guards: usize,
    ) -> Result<()> {
        self.expect("{")?;
        conditions.push(condition);
        self.block(conditions, variants, guards)?;
        conditions.pop();
        Ok(())
    }

    /// The tokens up to the `)` that closes an open `(`.
    fn parenthesised(&mut self) -> Result<&'t [Token]> {
        let start = self.at;
        let mut depth = 1;
        while depth > 0 {
            let token = self.next("`)`")?;
            depth += i32::from(token.is("(")) - i32::from(token.is(")"));
        }
        Ok(&self.tokens[start..self.at - 1])
    }

    fn simple_statement(&mut self) -> Result<()> {
        let mut depth = 0;
        loop {
            let token = self.next("`;`")?;
            depth += i32::from(token.is("{")) - i32::from(token.is("}"));
            if token.is(";") && depth == 0 {
                return Ok(());
            }
            if token.is_ident("asm") || depth < 0 {
                return Err(unexpected(token, "`;`"));
            }
        }
    }

    /// `asm volatile("…" : outputs : inputs : clobbers);` after its first word.
    fn assembly(&mut self, line: usize) -> Result<Variant> {
        let volatile = self.peek().is_some_and(|token| token.is_ident("volatile"));
        self.at += usize::from(volatile);
        self.expect("(")?;
        let mut sections = split(self.parenthesised()?, ":").into_iter();
        self.expect(";")?;
        let asm = strings(sections.next().unwrap_or_default(), line)?;
        if asm.is_empty() {
            return Err(Fault::new(line, "expected the text of the inline assembly"));
        }
        let outputs = operands(sections.next().unwrap_or_default())?;
        let inputs = operands(sections.next().unwrap_or_default())?;
        let clobbers = split(sections.next().unwrap_or_default(), ",")
            .into_iter()
            .filter(|it| !it.is_empty());
        let clobbers = clobbers
            .map(|clobber| strings(clobber, line))
            .collect::<Result<Vec<_>>>()?;
        if sections.next().is_some() {
            return Err(Fault::new(
                line,
                "expected at most three `:` in the inline assembly",
            ));
        }
        Ok(Variant {
            line,
            conditions: Vec::new(),
            arch_guard: None,
            asm,
            outputs,
            inputs,
            clobbers,
            volatile,
        })
    }
}

/// `"=r"(a), "l"(b)`
fn operands(tokens: &[Token]) -> Result<Vec<AsmOperand>> {
    let operands = split(tokens, ",")
        .into_iter()
        .filter(|operand| !operand.is_empty());
    let operand = |tokens: &[Token]| match tokens {
        [constraint, open, expression @ .., close]
            if constraint.kind == Kind::String && open.is("(") && close.is(")") =>
        {
            Ok(AsmOperand {
                constraint: constraint.text.clone(),
                expression: text(expression),
            })
        }
        _ => Err(unexpected(&tokens[0], "an operand such as `\"r\"(x)`")),
    };
    operands.map(operand).collect()
}

fn strings(tokens: &[Token], line: usize) -> Result<String> {
    let literal = |token: &Token| match token.kind {
        Kind::String => Ok(token.text.clone()),
        _ => Err(Fault::new(
            line,
            format!("expected a string, found `{}`", token.text),
        )),
    };
    tokens
        .iter()
        .filter(|token| token.kind != Kind::Comment)
        .map(literal)
        .collect()
}

/// `template <…> _CCCL_DEVICE_API returns name(parameters)`
fn signature(header: &[Token], file: &str) -> Result<Overload> {
    let (template, header) = template(header)?;
    let Some(open) = header.iter().position(|token| token.is("(")) else {
        return Err(unexpected(&header[0], "a function"));
    };
    let Some(name) = open
        .checked_sub(1)
        .map(|at| &header[at])
        .filter(|name| name.kind == Kind::Ident)
    else {
        return Err(unexpected(&header[open], "a function's name before `(`"));
    };
    let mut depth = 0;
    let close = header[open..].iter().position(|token| {
        depth += i32::from(token.is("(")) - i32::from(token.is(")"));
        depth == 0
    });
    let Some(close) = close.map(|length| open + length) else {
        return Err(unexpected(name, "`)` after the parameters"));
    };
    if let Some(token) = header[close + 1..]
        .iter()
        .find(|token| !token.is_ident("noexcept"))
    {
        return Err(unexpected(token, "`{` after the parameters"));
    }
    let parameters = split(&header[open + 1..close], ",")
        .into_iter()
        .filter(|it| !it.is_empty());
    Ok(Overload {
        file: file.to_owned(),
        line: name.line,
        function: name.text.clone(),
        template,
        parameters: parameters.map(parameter).collect(),
        returns: text(&Vec::from_iter(
            header[..open - 1]
                .iter()
                .filter(|it| !is_specifier(it))
                .cloned(),
        )),
        isa: IsaRange {
            since: 0,
            before: None,
        },
        targets: Vec::new(),
        variants: Vec::new(),
    })
}

/// The template parameters, and the rest of the header without attributes.
fn template(header: &[Token]) -> Result<(Vec<String>, Vec<Token>)> {
    let mut rest = Vec::new();
    let mut parameters = Vec::new();
    let mut at = 0;
    while let Some(token) = header.get(at) {
        if token.is("[") && header.get(at + 1).is_some_and(|next| next.is("[")) {
            let Some(length) = header[at..]
                .windows(2)
                .position(|pair| pair[0].is("]") && pair[1].is("]"))
            else {
                return Err(unexpected(token, "`]]` after an attribute"));
            };
            at += length + 2;
        } else if token.is_ident("template") {
            let length = angle_length(&header[at + 1..])
                .ok_or_else(|| unexpected(token, "`<…>` after `template`"))?;
            let list = &header[at + 2..at + length];
            parameters = split(list, ",").into_iter().map(text).collect();
            at += length + 1;
        } else {
            if token.kind != Kind::Comment {
                rest.push(token.clone());
            }
            at += 1;
        }
    }
    Ok((parameters, rest))
}

/// The number of tokens from `<` to its `>`; a `>` in parentheses is an operator.
fn angle_length(tokens: &[Token]) -> Option<usize> {
    if !tokens.first()?.is("<") {
        return None;
    }
    let (mut angles, mut parentheses) = (0, 0);
    let end = tokens.iter().position(|token| {
        parentheses += i32::from(token.is("(")) - i32::from(token.is(")"));
        if parentheses == 0 {
            angles += i32::from(token.is("<")) - i32::from(token.is(">"));
        }
        angles == 0
    })?;
    Some(end + 1)
}

/// A type, and a name that may be missing; a default value is dropped.
fn parameter(tokens: &[Token]) -> Parameter {
    let end = tokens
        .iter()
        .position(|token| token.is("="))
        .unwrap_or(tokens.len());
    let mut tokens = tokens[..end].to_vec();
    let array = tokens
        .windows(2)
        .position(|pair| pair[0].is("(") && pair[1].is("&"));
    let last = tokens.len().wrapping_sub(1);
    let named = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        tokens
            .get(at)
            .is_some_and(|token| token.kind == Kind::Ident)
            && before.is_some_and(|token| !token.is("::"))
    };
    let at = array.map_or(last, |open| open + 2);
    let name = if named(at) {
        tokens.remove(at).text
    } else {
        String::new()
    };
    Parameter {
        ty: text(&tokens),
        name: plain(&name).to_owned(),
    }
}

fn is_specifier(token: &Token) -> bool {
    is_macro(token)
        || ["static", "inline", "constexpr"]
            .iter()
            .any(|word| token.is_ident(word))
}

fn is_macro(token: &Token) -> bool {
    token.kind == Kind::Ident
        && ["_CCCL_", "_LIBCUDACXX_"]
            .iter()
            .any(|prefix| token.text.starts_with(prefix))
}

/// Splits at `separator` outside brackets. `::` counts as two `:`.
fn split<'t>(tokens: &'t [Token], separator: &str) -> Vec<&'t [Token]> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0);
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            _ if token.kind != Kind::Punct => {}
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" | ">" => depth -= 1,
            punct if depth == 0 && (punct == separator || (punct == "::" && separator == ":")) => {
                parts.push(&tokens[start..at]);
                if punct != separator {
                    parts.push(&tokens[at..at]);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tokens[start..]);
    parts
}

/// The tokens as text, without namespaces and the underscores of reserved names.
fn text(tokens: &[Token]) -> String {
    let mut text = String::new();
    let mut after_word = false;
    let mut tokens = tokens
        .iter()
        .filter(|token| token.kind != Kind::Comment)
        .peekable();
    while let Some(token) = tokens.next() {
        let qualifier = tokens.peek().is_some_and(|next| next.is("::"));
        if token.is("::")
            || (qualifier
                && ["cuda", "std", "ptx", "_CUDA_VSTD"]
                    .iter()
                    .any(|it| token.is_ident(it)))
        {
            continue;
        }
        let word = token.kind != Kind::Punct;
        match token.text.as_str() {
            "," if !word => text.push_str(", "),
            operator @ ("=" | "==" | "!=" | "<=" | ">=" | "&&" | "||" | "+") if !word => {
                text.push_str(&format!(" {operator} "));
            }
            other => {
                text.push_str(if word && after_word { " " } else { "" });
                text.push_str(if word { plain(other) } else { other });
            }
        }
        after_word = word;
    }
    text
}

/// `__addr` → `addr`, `_Scope` → `Scope`; the types `__half…` and `__nv_…` keep their names.
fn plain(name: &str) -> &str {
    if name.starts_with("__half") || name.starts_with("__nv_") {
        name
    } else {
        name.trim_start_matches('_')
    }
}

fn parse_isa(number: &str, line: usize) -> Result<u32> {
    number.parse().map_err(|_| {
        Fault::new(
            line,
            format!("expected a PTX ISA version such as 860, found `{number}`"),
        )
    })
}

/// The targets in `// instruction; // PTX ISA 86, SM_100a, SM_100f`, which may run over several lines.
fn targets(comment: &str, line: usize) -> Result<Vec<Target>> {
    let comment = collapse(comment);
    let Some((_, rest)) = comment.split_once("PTX ISA ") else {
        return Ok(Vec::new());
    };
    let mut words = rest
        .split([' ', ','])
        .filter(|word| !word.is_empty())
        .skip(1);
    let names = words.by_ref().map_while(|word| word.strip_prefix("SM_"));
    let target = |name: &str| {
        let digits = name.trim_end_matches(['a', 'f']);
        let number = digits.parse().map_err(|_| {
            Fault::new(
                line,
                format!("expected a target such as SM_90a, found `SM_{name}`"),
            )
        })?;
        Ok(Target {
            number,
            suffix: name[digits.len()..].chars().next(),
        })
    };
    names.map(target).collect()
}

fn unexpected(token: &Token, expected: &str) -> Fault {
    Fault::new(
        token.line,
        format!("expected {expected}, found `{}`", token.text),
    )
}
