//! PTX text → functions whose operands are registers, numbers and names.

use std::collections::HashMap;

use anyhow::{Result, bail};

use super::op::{PredSrc, Reg, Space, Ty};
use crate::inspect::ptx::lexer::{self, Kind, Token};

/// A module as written.
#[derive(Debug, Default)]
pub struct Text<'a> {
    pub variables: Vec<Variable<'a>>,
    pub functions: Vec<Function<'a>>,
    /// For each `.loc`, the line of the text that it is in, and what it says; nothing at the end of a
    /// function.
    pub locations: Vec<(usize, Option<Location>)>,
    /// The files that `.loc` numbers.
    pub files: HashMap<u32, String>,
}

/// What a `.loc` says.
#[derive(Debug, Clone)]
pub struct Location {
    pub file: u32,
    pub line: u32,
    /// LLVM's comment, `file:line:column @[ file:line:column @[ … ] ]`: the calls that were inlined.
    pub comment: String,
}

/// A variable or parameter.
#[derive(Debug, Clone)]
pub struct Variable<'a> {
    pub name: &'a str,
    pub space: Space,
    pub align: u32,
    pub bytes: u32,
    /// Bytes, or 8 or 4 of them that hold a symbol's address.
    pub init: Vec<Init<'a>>,
    /// Declared `[]` or `.extern`: dynamic shared memory, if shared.
    pub unsized_array: bool,
    pub external: bool,
}

/// One element of an initial value.
#[derive(Debug, Clone)]
pub enum Init<'a> {
    Number {
        value: u64,
        bytes: u32,
    },
    Symbol {
        name: &'a str,
        offset: i64,
        generic: bool,
        bytes: u32,
    },
}

/// A kernel or device function.
#[derive(Debug)]
pub struct Function<'a> {
    pub name: &'a str,
    pub entry: bool,
    pub line: usize,
    pub params: Vec<Variable<'a>>,
    pub rets: Vec<Variable<'a>>,
    pub variables: Vec<Variable<'a>>,
    pub registers: Vec<Ty>,
    pub predicates: u32,
    pub body: Vec<Statement<'a>>,
    pub has_body: bool,
    /// `.maxntid`, `.reqntid`, `.reqnctapercluster`, …
    pub directives: HashMap<&'a str, Vec<u32>>,
    /// Label lists of `.branchtargets`.
    pub tables: HashMap<&'a str, Vec<Operand<'a>>>,
}

#[derive(Debug)]
pub struct Statement<'a> {
    pub guard: Option<PredSrc>,
    pub opcode: &'a str,
    pub operands: Vec<Operand<'a>>,
    pub line: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Operand<'a> {
    Reg {
        reg: Reg,
        ty: Ty,
    },
    Pred(PredSrc),
    /// A number: its value, and whether it was written as a float.
    Int(i128),
    /// Bits of a float literal and their number.
    Float {
        bits: u64,
        width: u32,
    },
    /// A symbol, function or special register, with an offset.
    Name(&'a str, i64),
    Label(u32),
    /// `_`.
    Sink,
    Vector(Vec<Operand<'a>>),
    /// `[…]`: one operand, or a tensor map and coordinates.
    Address(Vec<Operand<'a>>, i64),
    /// `(…)` of a call.
    List(Vec<Operand<'a>>),
    /// `a|b`.
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
}

/// The largest alignment, and the most bytes of a variable in a thread's own memory and elsewhere.
const MOST_ALIGNMENT: u32 = 1 << 16;
const MOST_LOCAL: u32 = 512 << 10;
const MOST_BYTES: u32 = 1 << 28;

/// Parses a module.
pub fn parse(text: &str) -> Result<Text<'_>> {
    let tokens = lexer::tokens(text)?;
    let tokens: Vec<Token> = tokens
        .into_iter()
        .filter(|token| !matches!(token.kind, Kind::AsmBegin | Kind::AsmEnd))
        .collect();
    let mut parser = Parser {
        tokens,
        at: 0,
        lines: text.lines().collect(),
        text: Text::default(),
    };
    while parser.at < parser.tokens.len() {
        parser.module_item()?;
    }
    Ok(parser.text)
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    lines: Vec<&'a str>,
    text: Text<'a>,
}

/// The registers and labels that one `{ }` declares.
#[derive(Default)]
struct Scope<'a> {
    registers: HashMap<String, (Reg, Ty)>,
    /// `%r<8>`: prefix → first number, type, count.
    families: HashMap<&'a str, (Reg, Ty, u32)>,
    labels: HashMap<&'a str, u32>,
    start: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn line(&self) -> usize {
        let last = self.tokens.get(self.at).or(self.tokens.last());
        last.map_or(1, |token| token.line)
    }

    fn next(&mut self, expected: &str) -> Result<Token<'a>> {
        let Some(token) = self.peek() else {
            bail!(
                "line {}: expected {expected}, found the end of the text",
                self.line()
            );
        };
        self.at += 1;
        Ok(token)
    }

    fn accept(&mut self, punct: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.is(punct));
        self.at += usize::from(found);
        found
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = self
            .peek()
            .is_some_and(|token| token.kind == Kind::Word && token.text == word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, punct: &str) -> Result<()> {
        let token = self.next(&format!("`{punct}`"))?;
        if !token.is(punct) {
            bail!(
                "line {}: expected `{punct}`, found `{}`",
                token.line,
                token.text
            );
        }
        Ok(())
    }

    fn word(&mut self, expected: &str) -> Result<Token<'a>> {
        let token = self.next(expected)?;
        if token.kind != Kind::Word {
            bail!(
                "line {}: expected {expected}, found `{}`",
                token.line,
                token.text
            );
        }
        Ok(token)
    }

    fn number(&mut self, expected: &str) -> Result<i128> {
        let negative = self.accept("-");
        let token = self.word(expected)?;
        let Some(value) = integer(token.text) else {
            bail!(
                "line {}: expected {expected}, found `{}`",
                token.line,
                token.text
            );
        };
        Ok(if negative { -value } else { value })
    }

    fn small(&mut self, expected: &str) -> Result<u32> {
        let line = self.line();
        let value = self.number(expected)?;
        match u32::try_from(value) {
            Ok(value) => Ok(value),
            Err(_) => bail!("line {line}: expected {expected}, found {value}"),
        }
    }

    fn skip_line(&mut self, line: usize) {
        while self.peek().is_some_and(|token| token.line == line) {
            self.at += 1;
        }
    }

    fn skip_statement(&mut self) -> Result<()> {
        while !self.next("`;`")?.is(";") {}
        Ok(())
    }

    fn module_item(&mut self) -> Result<()> {
        let token = self.next("a directive")?;
        match token.text {
            ".version" | ".target" | ".address_size" => self.skip_line(token.line),
            ".file" => self.file(token)?,
            ".section" => while !self.next("`}` of a section")?.is("}") {},
            ".pragma" | ".alias" => self.skip_statement()?,
            ";" | "@" if token.kind == Kind::Punct => {}
            _ => self.declaration(token)?,
        }
        Ok(())
    }

    fn file(&mut self, first: Token<'a>) -> Result<()> {
        let number = self.small("the number of a file")?;
        let name = self.next("the name of a file")?;
        let name = name.text.trim_matches('"').to_owned();
        self.text.files.insert(number, name);
        self.skip_line(first.line);
        Ok(())
    }

    fn declaration(&mut self, mut token: Token<'a>) -> Result<()> {
        let mut external = false;
        while matches!(token.text, ".visible" | ".extern" | ".weak" | ".common") {
            external |= token.text == ".extern";
            token = self.next("a declaration")?;
        }
        match token.text {
            ".entry" | ".func" => self.function(token),
            ".global" | ".const" | ".shared" | ".local" => {
                let variables = self.variables(token, external)?;
                self.text.variables.extend(variables);
                Ok(())
            }
            _ => bail!(
                "line {}: expected a variable or function, found `{}`",
                token.line,
                token.text
            ),
        }
    }

    /// Variables of one statement, its `;` included.
    fn variables(&mut self, space: Token<'a>, external: bool) -> Result<Vec<Variable<'a>>> {
        let Some(space) = space_of(space.text) else {
            bail!(
                "line {}: expected a state space, found `{}`",
                space.line,
                space.text
            );
        };
        let mut variables = Vec::new();
        let (align, ty, lanes) = self.type_of()?;
        loop {
            variables.push(self.variable(space, align, ty, lanes, external)?);
            if !self.accept(",") {
                break;
            }
        }
        self.expect(";")?;
        Ok(variables)
    }

    /// Alignment, element type and elements of a vector.
    fn type_of(&mut self) -> Result<(u32, Ty, u32)> {
        let (mut align, mut lanes) = (0, 1);
        loop {
            let token = self.word("a type")?;
            match token.text {
                ".align" => align = self.small("an alignment")?,
                ".v2" => lanes = 2,
                ".v4" => lanes = 4,
                ".ptr" | ".attribute" => {
                    if token.text == ".attribute" {
                        while !self.next("`)`")?.is(")") {}
                    }
                }
                ".global" | ".shared" | ".const" | ".local" | ".param" => {}
                text => match Ty::parse(text.trim_start_matches('.')) {
                    Some(ty) => {
                        let align = if align == 0 {
                            ty.bytes() * lanes
                        } else {
                            align
                        };
                        return Ok((align, ty, lanes));
                    }
                    None => bail!("line {}: expected a type, found `{text}`", token.line),
                },
            }
        }
    }

    fn variable(
        &mut self,
        space: Space,
        align: u32,
        ty: Ty,
        lanes: u32,
        external: bool,
    ) -> Result<Variable<'a>> {
        // A kernel's parameter says after its type what it points to.
        while self.peek().is_some_and(|token| token.text.starts_with('.')) {
            let token = self.word("an attribute")?;
            match token.text {
                ".ptr" | ".global" | ".shared" | ".const" | ".local" | ".param" => {}
                // The alignment of what is pointed to.
                ".align" => drop(self.number("an alignment")?),
                text => bail!("line {}: expected a name, found `{text}`", token.line),
            }
        }
        if !align.is_power_of_two() || align > MOST_ALIGNMENT {
            bail!(
                "line {}: expected an alignment that is a power of two up to {MOST_ALIGNMENT}, \
                 found {align}",
                self.line()
            );
        }
        let name = self.word("the name of a variable")?.text;
        let (mut count, mut unsized_array) = (1u32, false);
        while self.accept("[") {
            if self.accept("]") {
                unsized_array = true;
                count = 0;
            } else {
                let line = self.line();
                let length = self.small("the length of an array")?;
                let Some(product) = count.checked_mul(length) else {
                    bail!("line {line}: expected an array below 4 GiB");
                };
                count = product;
                self.expect("]")?;
            }
        }
        let line = self.line();
        let Some(bytes) = (ty.bytes() * lanes).checked_mul(count) else {
            bail!("line {line}: expected an array below 4 GiB");
        };
        let most = match space {
            Space::Local | Space::Param => MOST_LOCAL,
            _ => MOST_BYTES,
        };
        if bytes > most {
            bail!("line {line}: expected at most {most} bytes for `{name}`, found {bytes}");
        }
        let mut init = Vec::new();
        if self.accept("=") {
            self.initial(ty, &mut init)?;
        }
        let initial_bytes: u64 = init.iter().map(|it| u64::from(it.bytes())).sum();
        let bytes = if unsized_array && !init.is_empty() {
            unsized_array = false;
            initial_bytes as u32
        } else {
            bytes
        };
        if initial_bytes > u64::from(bytes) {
            bail!(
                "line {line}: expected at most {bytes} bytes for `{name}`, found {initial_bytes}"
            );
        }
        Ok(Variable {
            name,
            space,
            align,
            bytes,
            init,
            unsized_array,
            external,
        })
    }

    fn initial(&mut self, ty: Ty, into: &mut Vec<Init<'a>>) -> Result<()> {
        if self.accept("{") {
            loop {
                self.initial(ty, into)?;
                if !self.accept(",") {
                    break;
                }
            }
            return self.expect("}");
        }
        let bytes = ty.bytes();
        let line = self.line();
        let generic = self.accept_word("generic");
        if generic {
            self.expect("(")?;
        }
        let operand = self.operand(&mut [])?;
        let mut offset = 0;
        if generic {
            self.expect(")")?;
            if self.accept("+") {
                offset = self.number("an offset")? as i64;
            }
        }
        into.push(match operand {
            Operand::Int(value) => Init::Number {
                value: value as u64,
                bytes,
            },
            Operand::Float { bits, .. } => Init::Number { value: bits, bytes },
            Operand::Name(name, plus) => Init::Symbol {
                name,
                offset: plus + offset,
                generic,
                bytes,
            },
            other => bail!("line {line}: expected an initial value, found {other:?}"),
        });
        Ok(())
    }

    fn parameters(&mut self) -> Result<Vec<Variable<'a>>> {
        let mut params = Vec::new();
        self.expect("(")?;
        if self.accept(")") {
            return Ok(params);
        }
        loop {
            let token = self.word("`.param`")?;
            match token.text {
                ".param" => {
                    let (align, ty, lanes) = self.type_of()?;
                    params.push(self.variable(Space::Param, align, ty, lanes, false)?);
                }
                text => bail!(
                    "line {}: expected `.param`, found `{text}`; parameters in registers are not \
                     executed",
                    token.line
                ),
            }
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(params)
    }

    fn function(&mut self, first: Token<'a>) -> Result<()> {
        let entry = first.text == ".entry";
        let mut rets = Vec::new();
        if !entry && self.peek().is_some_and(|token| token.is("(")) {
            rets = self.parameters()?;
        }
        let name = self.word("the name of a function")?.text;
        let mut params = Vec::new();
        if self.peek().is_some_and(|token| token.is("(")) {
            params = self.parameters()?;
        }
        let mut function = Function {
            name,
            entry,
            line: first.line,
            params,
            rets,
            variables: Vec::new(),
            registers: Vec::new(),
            predicates: 0,
            body: Vec::new(),
            has_body: false,
            directives: HashMap::new(),
            tables: HashMap::new(),
        };
        loop {
            let token = self.next("the body of a function")?;
            match token.text {
                ";" => break,
                "{" => {
                    function.has_body = true;
                    self.body(&mut function)?;
                    let end = self.line();
                    self.text.locations.push((end, None));
                    break;
                }
                ".pragma" => self.skip_statement()?,
                text if text.starts_with('.') => {
                    let mut values = Vec::new();
                    while self
                        .peek()
                        .is_some_and(|token| token.text.starts_with(|c: char| c.is_ascii_digit()))
                    {
                        values.push(self.small("a number")?);
                        self.accept(",");
                    }
                    function.directives.insert(text, values);
                }
                text => bail!(
                    "line {}: expected a directive or `{{`, found `{text}`",
                    token.line
                ),
            }
        }
        self.text.functions.push(function);
        Ok(())
    }

    fn body(&mut self, function: &mut Function<'a>) -> Result<()> {
        let mut scopes = vec![Scope::default()];
        while !scopes.is_empty() {
            let token = self.next("`}` at the end of a function")?;
            match (token.kind, token.text) {
                (Kind::Punct, ";") => {}
                (Kind::Punct, "{") => scopes.push(Scope {
                    start: function.body.len(),
                    ..Scope::default()
                }),
                (Kind::Punct, "}") => close_scope(scopes.pop(), function),
                (Kind::Word, ".loc") => {
                    let (file, line) = (self.small("a file")?, self.small("a line")?);
                    let text = self.lines.get(token.line - 1);
                    let comment = text.and_then(|it| it.split_once("// "));
                    let location = Location {
                        file,
                        line,
                        comment: comment.map_or(String::new(), |it| it.1.to_owned()),
                    };
                    self.text.locations.push((token.line, Some(location)));
                    self.skip_line(token.line);
                }
                (Kind::Word, ".file") => self.file(token)?,
                (Kind::Word, ".pragma" | ".callprototype" | ".calltargets") => {
                    self.skip_statement()?
                }
                (Kind::Word, ".reg") => self.registers(&mut scopes, function)?,
                (Kind::Word, ".shared" | ".local" | ".param" | ".global" | ".const") => {
                    let variables = self.variables(token, false)?;
                    function.variables.extend(variables);
                }
                (Kind::Word, label) if self.accept(":") => {
                    if self.accept_word(".branchtargets") {
                        let mut targets = Vec::new();
                        loop {
                            targets.push(self.operand(&mut scopes)?);
                            if !self.accept(",") {
                                break;
                            }
                        }
                        self.expect(";")?;
                        function.tables.insert(label, targets);
                    } else if self.accept_word(".callprototype") {
                        self.skip_statement()?;
                    } else if let Some(scope) = scopes.last_mut() {
                        scope.labels.insert(label, function.body.len() as u32);
                    }
                }
                (Kind::Punct, "@") => {
                    let negated = self.accept("!");
                    let guard = match self.operand(&mut scopes)? {
                        Operand::Pred(guard) => PredSrc {
                            negated: guard.negated ^ negated,
                            ..guard
                        },
                        other => bail!(
                            "line {}: expected a predicate after `@`, found {other:?}",
                            token.line
                        ),
                    };
                    let opcode = self.word("an instruction")?;
                    self.statement(Some(guard), opcode, &mut scopes, function)?;
                }
                (Kind::Word, text) if text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                    self.statement(None, token, &mut scopes, function)?;
                }
                _ => bail!(
                    "line {}: expected an instruction, found `{}`",
                    token.line,
                    token.text
                ),
            }
        }
        Ok(())
    }

    fn statement(
        &mut self,
        guard: Option<PredSrc>,
        opcode: Token<'a>,
        scopes: &mut [Scope<'a>],
        function: &mut Function<'a>,
    ) -> Result<()> {
        let mut operands = Vec::new();
        if !self.accept(";") {
            loop {
                let operand = self.operand(scopes)?;
                operands.push(if self.accept("|") {
                    Operand::Pair(Box::new(operand), Box::new(self.operand(scopes)?))
                } else {
                    operand
                });
                if !self.accept(",") {
                    break;
                }
            }
            self.expect(";")?;
        }
        function.body.push(Statement {
            guard,
            opcode: opcode.text,
            operands,
            line: opcode.line,
        });
        Ok(())
    }

    fn registers(&mut self, scopes: &mut [Scope<'a>], function: &mut Function<'a>) -> Result<()> {
        let (_, ty, lanes) = self.type_of()?;
        let line = self.line();
        if lanes != 1 {
            bail!("line {line}: vector registers are not executed: expected scalars");
        }
        let Some(scope) = scopes.last_mut() else {
            bail!("line {line}: expected registers inside a function");
        };
        let mut allocate = |count: u32| {
            if ty == Ty::Pred {
                function.predicates += count;
                function.predicates - count
            } else {
                let first = function.registers.len() as u32;
                function
                    .registers
                    .extend((0..count * slots(ty)).map(|_| ty));
                first
            }
        };
        loop {
            let name = self.word("a register")?.text;
            if self.accept("<") {
                let count = self.small("a count")?;
                if count > 1 << 20 {
                    bail!("line {line}: expected at most 2^20 registers, found {count}");
                }
                self.expect(">")?;
                scope.families.insert(name, (allocate(count), ty, count));
            } else {
                scope.registers.insert(name.to_owned(), (allocate(1), ty));
            }
            if !self.accept(",") {
                break;
            }
        }
        self.expect(";")
    }

    fn operand(&mut self, scopes: &mut [Scope<'a>]) -> Result<Operand<'a>> {
        let token = self.next("an operand")?;
        if token.kind == Kind::Punct {
            return match token.text {
                "-" => match self.operand(scopes)? {
                    Operand::Int(value) => Ok(Operand::Int(-value)),
                    Operand::Float { bits, width } => Ok(Operand::Float {
                        bits: bits ^ (1 << (width - 1)),
                        width,
                    }),
                    other => bail!(
                        "line {}: expected a number after `-`, found {other:?}",
                        token.line
                    ),
                },
                "!" => match self.operand(scopes)? {
                    Operand::Pred(p) => Ok(Operand::Pred(PredSrc {
                        negated: !p.negated,
                        ..p
                    })),
                    other => bail!(
                        "line {}: expected a predicate after `!`, found {other:?}",
                        token.line
                    ),
                },
                "[" => self.address(scopes),
                "{" => Ok(Operand::Vector(self.list("}", scopes)?)),
                "(" => Ok(Operand::List(self.list(")", scopes)?)),
                text => bail!("line {}: expected an operand, found `{text}`", token.line),
            };
        }
        if token.kind != Kind::Word {
            bail!(
                "line {}: expected an operand, found `{}`",
                token.line,
                token.text
            );
        }
        if token.text == "_" {
            return Ok(Operand::Sink);
        }
        if let Some(operand) = literal(token.text) {
            return Ok(operand);
        }
        if let Some((reg, ty)) = resolve(scopes, token.text) {
            return Ok(if ty == Ty::Pred {
                Operand::Pred(PredSrc {
                    reg,
                    negated: false,
                })
            } else {
                Operand::Reg { reg, ty }
            });
        }
        let mut offset = 0;
        if self.peek().is_some_and(|token| token.is("+")) && !token.text.starts_with('%') {
            self.at += 1;
            offset = self.number("an offset")? as i64;
        }
        Ok(Operand::Name(token.text, offset))
    }

    fn list(&mut self, end: &str, scopes: &mut [Scope<'a>]) -> Result<Vec<Operand<'a>>> {
        let mut operands = Vec::new();
        if self.accept(end) {
            return Ok(operands);
        }
        loop {
            operands.push(self.operand(scopes)?);
            if !self.accept(",") {
                break;
            }
        }
        self.expect(end)?;
        Ok(operands)
    }

    fn address(&mut self, scopes: &mut [Scope<'a>]) -> Result<Operand<'a>> {
        let base = self.operand(scopes)?;
        let mut parts = vec![base];
        let mut offset = 0i64;
        loop {
            if self.accept("+") {
                offset = offset.wrapping_add(self.number("an offset")? as i64);
            } else if self.accept("-") {
                offset = offset.wrapping_sub(self.number("an offset")? as i64);
            } else if self.accept(",") {
                parts.push(self.operand(scopes)?);
            } else {
                self.expect("]")?;
                return Ok(Operand::Address(parts, offset));
            }
        }
    }
}

impl Init<'_> {
    /// How many bytes the element takes.
    pub fn bytes(&self) -> u32 {
        match self {
            Self::Number { bytes, .. } | Self::Symbol { bytes, .. } => *bytes,
        }
    }
}

/// A label may be used before it is defined, so a scope's labels are resolved at its end.
fn close_scope<'a>(scope: Option<Scope<'a>>, function: &mut Function<'a>) {
    let Some(scope) = scope else { return };
    let resolve = |operand: &mut Operand<'a>| {
        if let Operand::Name(name, 0) = operand
            && let Some(&target) = scope.labels.get(name)
        {
            *operand = Operand::Label(target);
        }
    };
    for statement in &mut function.body[scope.start..] {
        statement.operands.iter_mut().for_each(resolve);
    }
    for targets in function.tables.values_mut() {
        targets.iter_mut().for_each(resolve);
    }
}

/// A register of 128 bits is two of 64, the lower half first.
fn slots(ty: Ty) -> u32 {
    if ty == Ty::B128 { 2 } else { 1 }
}

fn resolve(scopes: &[Scope], name: &str) -> Option<(Reg, Ty)> {
    scopes.iter().rev().find_map(|scope| {
        if let Some(&found) = scope.registers.get(name) {
            return Some(found);
        }
        let family = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let &(first, ty, count) = scope.families.get(family)?;
        let number: u32 = name[family.len()..].parse().ok()?;
        (number < count).then_some((first + number * slots(ty), ty))
    })
}

fn space_of(text: &str) -> Option<Space> {
    Some(match text {
        ".global" => Space::Global,
        ".const" => Space::Const,
        ".shared" => Space::Shared,
        ".local" => Space::Local,
        ".param" => Space::Param,
        _ => return None,
    })
}

fn literal(text: &str) -> Option<Operand<'_>> {
    if let Some(hex) = text.strip_prefix("0f").or(text.strip_prefix("0F"))
        && hex.len() == 8
    {
        let bits = u64::from_str_radix(hex, 16).ok()?;
        return Some(Operand::Float { bits, width: 32 });
    }
    if let Some(hex) = text.strip_prefix("0d").or(text.strip_prefix("0D"))
        && hex.len() == 16
    {
        let bits = u64::from_str_radix(hex, 16).ok()?;
        return Some(Operand::Float { bits, width: 64 });
    }
    if let Some(value) = integer(text) {
        return Some(Operand::Int(value));
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        let value: f64 = text.parse().ok()?;
        return Some(Operand::Float {
            bits: value.to_bits(),
            width: 64,
        });
    }
    None
}

fn integer(text: &str) -> Option<i128> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let text = text.strip_suffix('U').unwrap_or(text);
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', b'b' | b'B', ..] => (&text[2..], 2),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    u64::from_str_radix(digits, radix).ok().map(i128::from)
}
