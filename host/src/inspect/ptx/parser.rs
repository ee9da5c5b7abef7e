//! Tokens → [`Module`].

use super::lexer::{self, Kind, Token};
use super::{Guard, Instruction, Kernel, Module, Operand, Param, Piece, Variable, Width};
use anyhow::{Result, bail};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub(super) fn parse(text: &str) -> Result<Module> {
    let tokens = lexer::tokens(text)?;
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
        module: Module::default(),
        globals: BTreeSet::new(),
    };
    while parser.at < tokens.len() {
        parser.declaration()?;
    }
    if parser.module.version.is_empty() || parser.module.target.is_empty() {
        bail!(
            "expected the directives `.version` and `.target`, which start every PTX module; found neither or one"
        );
    }
    parser.adopt_globals();
    Ok(parser.module)
}

struct Parser<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    module: Module,
    globals: BTreeSet<String>,
}

impl<'t, 'a> Parser<'t, 'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn next(&mut self, expected: &str) -> Result<Token<'a>> {
        let Some(token) = self.peek() else {
            bail!("expected {expected}, found the end of the text");
        };
        self.at += 1;
        Ok(token)
    }

    /// The rest of the line that `first` is on.
    fn line(&mut self, first: Token<'a>) -> &'t [Token<'a>] {
        let start = self.at;
        while self.peek().is_some_and(|token| token.line == first.line) {
            self.at += 1;
        }
        &self.tokens[start..self.at]
    }

    /// The tokens up to the next `;` (which is consumed).
    fn statement(&mut self) -> Result<&'t [Token<'a>]> {
        let start = self.at;
        while !self.next("`;`")?.is(";") {}
        Ok(&self.tokens[start..self.at - 1])
    }

    /// One declaration outside any body.
    fn declaration(&mut self) -> Result<()> {
        let first = self.next("a directive")?;
        match first.text {
            ".version" => self.module.version = join(self.line(first)),
            ".target" => self.module.target = join(self.line(first)),
            ".address_size" | ".file" | ".loc" => drop(self.line(first)),
            ".section" => self.skip_section()?,
            ".pragma" => drop(self.statement()?),
            ";" => {}
            text if text.starts_with('.') && first.kind == Kind::Word => {
                self.symbol(self.at - 1)?
            }
            _ => bail!(
                "line {}: expected a directive such as `.entry`, found `{}`",
                first.line,
                first.text
            ),
        }
        Ok(())
    }

    fn skip_section(&mut self) -> Result<()> {
        while !self.next("`{` of a section")?.is("{") {}
        while !self.next("`}` of a section")?.is("}") {}
        Ok(())
    }

    /// A function, kernel or variable, whose first token is number `start`.
    fn symbol(&mut self, start: usize) -> Result<()> {
        let mut depth = 0;
        loop {
            let token = self.next("`;` or `{`")?;
            match token.text {
                "(" | "[" => depth += 1,
                ")" | "]" => depth -= 1,
                "{" if depth == 0 && self.is_function(start) => return self.function(start),
                "{" => depth += 1,
                "}" => depth -= 1,
                ";" if depth == 0 && !self.ends_pragma(start) => break,
                _ => {}
            }
        }
        let header = &self.tokens[start..self.at - 1];
        let Some(name) = declared_name(header) else {
            bail!(
                "line {}: expected the name of a variable or function",
                header[0].line
            );
        };
        let external = header.iter().any(|token| token.text == ".extern");
        if external {
            self.module.externs.push(name.clone());
            if header.iter().any(|token| token.text == ".noreturn") {
                self.module.noreturns.push(name.clone());
            }
        }
        self.globals.insert(name);
        Ok(())
    }

    fn is_function(&self, start: usize) -> bool {
        let header = &self.tokens[start..self.at];
        header
            .iter()
            .any(|token| matches!(token.text, ".entry" | ".func"))
    }

    /// A `;` may stand in a kernel's header after `.pragma "…"`.
    fn ends_pragma(&self, start: usize) -> bool {
        let header = &self.tokens[start..self.at - 1];
        header.len() >= 2 && header[header.len() - 2].text == ".pragma"
    }

    fn function(&mut self, start: usize) -> Result<()> {
        let header = &self.tokens[start..self.at - 1];
        let entry = header.iter().any(|token| token.text == ".entry");
        let mut kernel = self.header(header)?;
        self.globals.insert(kernel.name.clone());
        Body::default().parse(self, &mut kernel)?;
        kernel.lines = *kernel.lines.start()..=self.tokens[self.at - 1].line;
        let list = if entry {
            &mut self.module.kernels
        } else {
            &mut self.module.functions
        };
        list.push(kernel);
        Ok(())
    }

    fn header(&self, header: &[Token<'a>]) -> Result<Kernel> {
        let line = header[0].line;
        let mut kernel = Kernel {
            name: String::new(),
            lines: line..=line,
            params: Vec::new(),
            directives: BTreeMap::new(),
            instructions: Vec::new(),
            variables: Vec::new(),
            branch_targets: BTreeMap::new(),
            registers: Vec::new(),
            globals: Arc::default(),
        };
        let mut tokens = header.iter().copied().peekable();
        let mut directive = None;
        while let Some(token) = tokens.next() {
            if token.is("(") {
                let params = Vec::from_iter(tokens.by_ref().take_while(|token| !token.is(")")));
                // A function's return values come before its name.
                if !kernel.name.is_empty() {
                    kernel.params = params
                        .split(|token| token.is(","))
                        .filter_map(param)
                        .collect();
                }
            } else if matches!(
                token.text,
                ".visible" | ".weak" | ".entry" | ".func" | ".extern" | ";"
            ) {
            } else if token.text.starts_with('.') && token.kind == Kind::Word {
                kernel
                    .directives
                    .insert(token.text.to_owned(), String::new());
                directive = Some(token.text);
            } else if let Some(directive) = directive {
                let value = kernel.directives.entry(directive.to_owned()).or_default();
                value.push_str(if token.is(",") { ", " } else { token.text });
            } else if kernel.name.is_empty() && token.kind == Kind::Word {
                token.text.clone_into(&mut kernel.name);
            }
        }
        if kernel.name.is_empty() {
            bail!("line {line}: expected a name after `.entry` or `.func`");
        }
        Ok(kernel)
    }

    /// Symbols of the module may be used before their declaration.
    fn adopt_globals(&mut self) {
        let globals: Arc<BTreeSet<String>> = Arc::new(std::mem::take(&mut self.globals));
        let module = &mut self.module;
        for kernel in module.kernels.iter_mut().chain(&mut module.functions) {
            kernel.globals = Arc::clone(&globals);
        }
    }
}

/// One function body.
#[derive(Default)]
struct Body {
    scopes: Vec<Scope>,
    /// The last label.
    label: String,
    asm_block: Option<usize>,
    asm_blocks: usize,
}

/// The registers that one `{ }` declares.
#[derive(Default)]
struct Scope {
    widths: HashMap<String, Width>,
    /// `%r<8>` declares `%r0` … `%r7`.
    families: HashMap<String, (Width, usize)>,
    ids: HashMap<String, usize>,
    /// Label → index of the instruction that follows it.
    labels: HashMap<String, usize>,
    /// The label of a `.branchtargets` → the labels in it.
    branch_targets: HashMap<String, Vec<String>>,
    /// The index of the first instruction in the scope.
    start: usize,
}

impl Body {
    fn parse(&mut self, parser: &mut Parser, kernel: &mut Kernel) -> Result<()> {
        self.open_scope(kernel);
        while !self.scopes.is_empty() {
            let token = parser.next("`}` at the end of a function")?;
            match (token.kind, token.text) {
                (Kind::AsmBegin, _) => {
                    self.asm_block = Some(self.asm_blocks);
                    self.asm_blocks += 1;
                }
                (Kind::AsmEnd, _) => self.asm_block = None,
                (Kind::Punct, ";") => {}
                (Kind::Punct, "{") => self.open_scope(kernel),
                (Kind::Punct, "}") => self.close_scope(kernel),
                (Kind::Punct, "@") => self.instruction(token, parser, kernel)?,
                (Kind::Word, ".loc" | ".file") => drop(parser.line(token)),
                (Kind::Word, ".reg") => self.registers(token, parser.statement()?)?,
                (Kind::Word, ".branchtargets") => {
                    self.branch_targets(token, parser.statement()?)?
                }
                (Kind::Word, text) if text.starts_with('.') => {
                    variable(token, parser.statement()?, kernel)
                }
                (Kind::Word, label) if parser.peek().is_some_and(|next| next.is(":")) => {
                    parser.at += 1;
                    let scope = self.scopes.last_mut().expect("a body has a scope");
                    scope
                        .labels
                        .insert(label.to_owned(), kernel.instructions.len());
                    label.clone_into(&mut self.label);
                }
                (Kind::Word, _) => self.instruction(token, parser, kernel)?,
                _ => bail!(
                    "line {}: expected an instruction, found `{}`",
                    token.line,
                    token.text
                ),
            }
        }
        Ok(())
    }

    fn open_scope(&mut self, kernel: &Kernel) {
        self.scopes.push(Scope {
            start: kernel.instructions.len(),
            ..Scope::default()
        });
    }

    /// A label may be used before it is defined, so a scope's labels are resolved at its end.
    fn close_scope(&mut self, kernel: &mut Kernel) {
        let scope = self.scopes.pop().expect("a body has a scope");
        for (index, instruction) in kernel.instructions.iter().enumerate().skip(scope.start) {
            let last = instruction.operands.last().map(ToString::to_string);
            if let Some(list) = last.and_then(|label| scope.branch_targets.get(&label)) {
                let targets = list.iter().filter_map(|label| scope.labels.get(label));
                kernel
                    .branch_targets
                    .insert(index, targets.copied().collect());
            }
        }
        let operands = kernel.instructions[scope.start..]
            .iter_mut()
            .flat_map(|it| &mut it.operands);
        for piece in operands.flat_map(|operand| &mut operand.pieces) {
            if let Piece::Word(word) = piece
                && let Some(&target) = scope.labels.get(word.as_str())
            {
                *piece = Piece::Label {
                    name: std::mem::take(word),
                    target,
                };
            }
        }
    }

    fn branch_targets(&mut self, first: Token, statement: &[Token]) -> Result<()> {
        if self.label.is_empty() {
            bail!(
                "line {}: expected a label before `.branchtargets`",
                first.line
            );
        }
        let labels = statement.iter().filter(|token| !token.is(","));
        let labels = labels.map(|token| token.text.to_owned()).collect();
        let scope = self.scopes.last_mut().expect("a body has a scope");
        scope.branch_targets.insert(self.label.clone(), labels);
        Ok(())
    }

    fn registers(&mut self, first: Token, statement: &[Token]) -> Result<()> {
        let Some(split) = statement
            .iter()
            .rposition(|token| token.text.starts_with('.'))
        else {
            bail!("line {}: expected a type after `.reg`", first.line);
        };
        let Some(width) = register_width(statement[split].text) else {
            bail!(
                "line {}: expected a register type, found `{}`",
                first.line,
                statement[split].text
            );
        };
        let scope = self.scopes.last_mut().expect("a body has a scope");
        for declared in statement[split + 1..].split(|token| token.is(",")) {
            match declared {
                [name] => drop(scope.widths.insert(name.text.to_owned(), width)),
                [name, _, count, _] => {
                    let Ok(count) = count.text.parse() else {
                        bail!(
                            "line {}: expected a count in `<>`, found `{}`",
                            first.line,
                            count.text
                        );
                    };
                    scope.families.insert(name.text.to_owned(), (width, count));
                }
                _ => bail!(
                    "line {}: expected a register name, found `{}`",
                    first.line,
                    join(declared)
                ),
            }
        }
        Ok(())
    }

    fn instruction(
        &mut self,
        first: Token,
        parser: &mut Parser,
        kernel: &mut Kernel,
    ) -> Result<()> {
        let (guard, opcode) = if first.is("@") {
            let negated = parser.peek().is_some_and(|token| token.is("!"));
            parser.at += usize::from(negated);
            let predicate = parser.next("a predicate register after `@`")?;
            let predicate = self.operand(&[predicate], kernel);
            (
                Some(Guard { negated, predicate }),
                parser.next("an instruction after its predicate")?,
            )
        } else {
            (None, first)
        };
        if !opcode
            .text
            .starts_with(|character: char| character.is_ascii_alphabetic())
        {
            bail!(
                "line {}: expected an instruction, found `{}`",
                opcode.line,
                opcode.text
            );
        }
        let statement = parser.statement()?;
        if let Some(marker) = statement
            .iter()
            .find(|token| matches!(token.kind, Kind::AsmBegin | Kind::AsmEnd))
        {
            bail!(
                "line {}: expected `;` after `{}` and before the end of inline assembly",
                marker.line,
                opcode.text
            );
        }
        let operands = split_operands(statement).into_iter();
        let operands = operands
            .map(|tokens| self.operand(tokens, kernel))
            .collect();
        kernel.instructions.push(Instruction {
            guard,
            opcode: opcode.text.to_owned(),
            operands,
            asm_block: self.asm_block,
            line: opcode.line,
        });
        Ok(())
    }

    fn operand(&mut self, tokens: &[Token], kernel: &mut Kernel) -> Operand {
        let piece = |token: &Token| match token.kind {
            Kind::Word => self.word(token.text, kernel),
            _ if token.text == "," => Piece::Punct(", ".to_owned()),
            _ => Piece::Punct(token.text.to_owned()),
        };
        Operand {
            pieces: tokens.iter().map(piece).collect(),
        }
    }

    fn word(&mut self, word: &str, kernel: &mut Kernel) -> Piece {
        let dot = word.find('.').unwrap_or(word.len());
        for length in [word.len(), dot] {
            let (name, component) = word.split_at(length);
            if let Some(id) = self.resolve(name, kernel) {
                return Piece::Register {
                    id,
                    name: name.to_owned(),
                    component: component.to_owned(),
                };
            }
        }
        Piece::Word(word.to_owned())
    }

    /// The number of the register that `name` means in the innermost scope that declares it.
    fn resolve(&mut self, name: &str, kernel: &mut Kernel) -> Option<usize> {
        let (scope, width) = self.scopes.iter_mut().rev().find_map(|scope| {
            let width = scope.width(name)?;
            Some((scope, width))
        })?;
        let id = *scope
            .ids
            .entry(name.to_owned())
            .or_insert(kernel.registers.len());
        if id == kernel.registers.len() {
            kernel.registers.push(width);
        }
        Some(id)
    }
}

impl Scope {
    fn width(&self, name: &str) -> Option<Width> {
        if let Some(&width) = self.widths.get(name) {
            return Some(width);
        }
        let family = name.trim_end_matches(|character: char| character.is_ascii_digit());
        let &(width, count) = self.families.get(family)?;
        let number: usize = name[family.len()..].parse().ok()?;
        (number < count).then_some(width)
    }
}

fn register_width(ty: &str) -> Option<Width> {
    if ty == ".pred" {
        return Some(Width::Predicate);
    }
    let digits = ty.trim_start_matches(|character: char| !character.is_ascii_digit());
    let digits = digits.split('x').next()?; // .f16x2 is declared as .b32, but is legal
    digits.parse().ok().map(Width::Bits)
}

/// Operands are separated by the commas outside `[]`, `{}` and `()`.
fn split_operands<'t, 'a>(statement: &'t [Token<'a>]) -> Vec<&'t [Token<'a>]> {
    let mut depth = 0;
    let operands = statement.split(|token| {
        match token.text {
            "[" | "{" | "(" => depth += 1,
            "]" | "}" | ")" => depth -= 1,
            _ => {}
        }
        depth == 0 && token.is(",")
    });
    operands.filter(|operand| !operand.is_empty()).collect()
}

fn param(tokens: &[Token]) -> Option<Param> {
    let name = declared_name(tokens)?;
    Some(Param {
        ty: type_without(tokens, &name),
        name,
    })
}

fn variable(first: Token, statement: &[Token], kernel: &mut Kernel) {
    if !matches!(
        first.text,
        ".shared" | ".local" | ".param" | ".const" | ".global"
    ) {
        return;
    }
    let Some(name) = declared_name(statement) else {
        return;
    };
    let ty = format!("{} {}", first.text, type_without(statement, &name));
    kernel.variables.push(Variable { name, ty });
}

/// The name in a declaration: its first word after the return values that is no directive and no number.
fn declared_name(tokens: &[Token]) -> Option<String> {
    let mut depth = 0;
    let name = tokens.iter().find(|token| {
        match token.text {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        let names = |character: char| character.is_ascii_alphabetic() || "_$%".contains(character);
        depth == 0 && token.kind == Kind::Word && token.text.starts_with(names)
    })?;
    Some(name.text.to_owned())
}

fn type_without(tokens: &[Token], name: &str) -> String {
    let mut ty = String::new();
    for token in tokens.iter().filter(|token| token.text != name) {
        let glued = ty.is_empty() || ty.ends_with('[') || token.is("]");
        ty.push_str(if glued { "" } else { " " });
        ty.push_str(token.text);
    }
    ty
}

fn join(tokens: &[Token]) -> String {
    tokens
        .iter()
        .map(|token| if token.is(",") { ", " } else { token.text })
        .collect()
}
