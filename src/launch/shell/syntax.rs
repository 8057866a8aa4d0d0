//! The commands of a shell script, as a tree. What bash would not take is passed over, so that the rest is read.

use std::rc::Rc;

use super::EarlyEnd;
use super::lexer::{Redirection, Token, Word, tokens};

/// Commands within each other that are followed.
const MOST_NESTED: usize = 60;

/// Commands, one after the other.
pub(super) type List = Vec<Chain>;

/// Commands that `&&` and `||` join.
#[derive(Debug, Clone, Default)]
pub(super) struct Chain {
    /// A pipeline, and true if it runs only where the one before it fails.
    pub links: Vec<(bool, Pipeline)>,
}

/// Commands that `|` joins.
#[derive(Debug, Clone, Default)]
pub(super) struct Pipeline {
    pub is_negated: bool,
    pub commands: Vec<Node>,
}

/// A command, with redirections behind a compound one.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub command: Command,
    pub redirections: Vec<Redirection>,
}

#[derive(Debug, Clone)]
pub(super) enum Command {
    Simple(Simple),
    Group(List),
    Subshell(List),
    /// Conditions with what follows from each, and what is done where none holds.
    If(Vec<(List, List)>, List),
    /// A word, and patterns with commands.
    Case(String, Vec<(Vec<String>, List)>),
    /// A name, words or the arguments, and the body.
    For(String, Option<Vec<Word>>, Rc<List>),
    /// The three sums of `for ((…))`, and the body.
    Count([String; 3], Rc<List>),
    /// A condition, whether the loop runs until it holds, and the body.
    While(List, bool, Rc<List>),
    Function(String, Rc<List>),
    /// `[[ … ]]`
    Test(Vec<String>),
    /// `(( … ))`
    Sum(String),
}

/// A command with words.
#[derive(Debug, Clone, Default)]
pub(super) struct Simple {
    pub words: Vec<Word>,
    /// Options on the lines behind it, which the author meant for it and the shell does not, and why.
    pub cut_off: Option<(Option<EarlyEnd>, Vec<String>)>,
}

/// Reads a script.
pub(super) fn parse(text: &str) -> List {
    let mut parser = Parser {
        tokens: tokens(text),
        at: 0,
        depth: 0,
    };
    let mut out = Vec::new();
    while parser.at < parser.tokens.len() {
        let before = parser.at;
        out.extend(parser.list(&[]));
        // A word that closes nothing.
        parser.at += usize::from(parser.at == before);
    }
    out
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn word(&self) -> Option<&str> {
        match self.peek() {
            Some(Token::Word(word)) => Some(&word.raw),
            _ => None,
        }
    }

    fn is_operator(&self, wanted: &str) -> bool {
        matches!(self.peek(), Some(Token::Operator(operator)) if *operator == wanted)
    }

    fn take_operator(&mut self, wanted: &str) -> bool {
        let is_there = self.is_operator(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn take_word(&mut self, wanted: &str) -> bool {
        let is_there = self.word() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn skip_ends(&mut self) {
        while matches!(self.peek(), Some(Token::End(_))) || self.is_operator(";") || self.is_operator("&") {
            self.at += 1;
        }
    }

    /// Reads commands up to one of some words, or a bracket that closes.
    fn list(&mut self, ends: &[&str]) -> List {
        let mut out: List = Vec::new();
        loop {
            self.skip_ends();
            let is_end = self.word().is_some_and(|word| ends.contains(&word));
            let closes = [")", ";;", ";&", ";;&"].iter().any(|sign| self.is_operator(sign));
            if self.peek().is_none() || is_end || closes || self.is_reserved_end() {
                return out;
            }
            let early = self.early_end_before();
            if self.word().is_some_and(|word| word.starts_with('-'))
                && let Some(cut_off) = out.last_mut().and_then(last_simple)
            {
                let options = self.options_of_line();
                cut_off.cut_off.get_or_insert((early, Vec::new())).1.extend(options);
                continue;
            }
            let before = self.at;
            out.push(self.chain());
            self.at += usize::from(self.at == before);
        }
    }

    /// A word that closes a command which is not open here ends the list, so that the one around it is closed.
    fn is_reserved_end(&self) -> bool {
        let closing = ["then", "else", "elif", "fi", "do", "done", "esac", "}"];
        self.word().is_some_and(|word| closing.contains(&word))
    }

    /// What ended the line before this place early.
    fn early_end_before(&self) -> Option<EarlyEnd> {
        let before = self.tokens[..self.at].iter().rev();
        let ends = before.map_while(|token| match token {
            Token::End(early) => Some(*early),
            _ => None,
        });
        ends.flatten().next()
    }

    fn options_of_line(&mut self) -> Vec<String> {
        let mut out = Vec::new();
        while let Some(token) = self.peek() {
            match token {
                Token::End(_) => break,
                Token::Word(word) if word.raw.starts_with("--") => out.push(word.raw.clone()),
                _ => {}
            }
            self.at += 1;
        }
        out
    }

    fn chain(&mut self) -> Chain {
        let mut links = vec![(false, self.pipeline())];
        loop {
            let is_or = self.is_operator("||");
            if !is_or && !self.is_operator("&&") {
                return Chain { links };
            }
            self.at += 1;
            while matches!(self.peek(), Some(Token::End(_))) {
                self.at += 1;
            }
            links.push((is_or, self.pipeline()));
        }
    }

    fn pipeline(&mut self) -> Pipeline {
        let mut out = Pipeline::default();
        while self.word().is_some_and(|word| matches!(word, "!" | "time")) {
            out.is_negated ^= self.word() == Some("!");
            self.at += 1;
        }
        loop {
            out.commands.push(self.command());
            if !self.take_operator("|") && !self.take_operator("|&") {
                return out;
            }
            while matches!(self.peek(), Some(Token::End(_))) {
                self.at += 1;
            }
        }
    }

    fn command(&mut self) -> Node {
        self.depth += 1;
        let command = match self.depth {
            ..=MOST_NESTED => self.compound(),
            _ => None,
        };
        let command = command.unwrap_or_else(|| Command::Simple(Simple::default()));
        self.depth -= 1;
        let mut out = Node {
            command,
            redirections: Vec::new(),
        };
        // Of a simple command they stand between its words.
        self.rest_of(&mut out);
        out
    }

    /// Takes redirections behind a command, and words of a simple one.
    fn rest_of(&mut self, out: &mut Node) {
        while let Some(token) = self.tokens.get(self.at) {
            match (token, &mut out.command) {
                (Token::Redirection(redirection), _) => out.redirections.push(redirection.clone()),
                (Token::Word(word), Command::Simple(simple)) => simple.words.push(word.clone()),
                _ => break,
            }
            self.at += 1;
        }
    }

    fn compound(&mut self) -> Option<Command> {
        if self.take_operator("((") {
            return Some(Command::Sum(self.sum_text()));
        }
        if self.take_operator("(") {
            let list = self.list(&[]);
            self.take_operator(")");
            return Some(Command::Subshell(list));
        }
        let word = self.word()?.to_owned();
        let is_function = matches!(self.tokens.get(self.at + 1), Some(Token::Operator("(")))
            && matches!(self.tokens.get(self.at + 2), Some(Token::Operator(")")));
        if is_function {
            self.at += 3;
            return Some(self.function(word));
        }
        self.at += 1;
        match word.as_str() {
            "{" => Some(Command::Group(self.body("}"))),
            "if" => Some(self.branches()),
            "case" => self.case(),
            "for" | "select" => self.repeated(),
            "while" | "until" => {
                let condition = self.list(&["do"]);
                self.take_word("do");
                Some(Command::While(condition, word == "until", Rc::new(self.body("done"))))
            }
            "function" => {
                let name = self.word()?.trim_end_matches("()").to_owned();
                self.at += 1;
                if self.take_operator("(") {
                    self.take_operator(")");
                }
                Some(self.function(name))
            }
            "[[" => Some(Command::Test(self.test_words())),
            _ => {
                self.at -= 1;
                None
            }
        }
    }

    /// Commands up to a word, which is taken.
    fn body(&mut self, end: &str) -> List {
        let list = self.list(&[end]);
        self.take_word(end);
        list
    }

    fn function(&mut self, name: String) -> Command {
        self.skip_ends();
        let body = self.command();
        let chain = Chain {
            links: vec![(
                false,
                Pipeline {
                    is_negated: false,
                    commands: vec![body],
                },
            )],
        };
        Command::Function(name, Rc::new(vec![chain]))
    }

    fn branches(&mut self) -> Command {
        let mut arms = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let condition = self.list(&["then"]);
            self.take_word("then");
            arms.push((condition, self.list(&["elif", "else", "fi"])));
            if self.take_word("elif") {
                continue;
            }
            if self.take_word("else") {
                otherwise = self.list(&["fi"]);
            }
            self.take_word("fi");
            return Command::If(arms, otherwise);
        }
    }

    fn case(&mut self) -> Option<Command> {
        let word = self.word()?.to_owned();
        self.at += 1;
        self.skip_ends();
        self.take_word("in");
        let mut arms = Vec::new();
        loop {
            self.skip_ends();
            if self.take_word("esac") || self.peek().is_none() {
                return Some(Command::Case(word, arms));
            }
            let before = self.at;
            self.take_operator("(");
            let mut patterns = Vec::new();
            while let Some(pattern) = self.word() {
                patterns.push(pattern.to_owned());
                self.at += 1;
                if !self.take_operator("|") {
                    break;
                }
            }
            self.take_operator(")");
            let list = self.list(&["esac"]);
            arms.push((patterns, list));
            let _ = self.take_operator(";;") || self.take_operator(";&") || self.take_operator(";;&");
            self.at += usize::from(self.at == before);
        }
    }

    fn repeated(&mut self) -> Option<Command> {
        if self.take_operator("((") {
            let sums = self.sum_text();
            let mut parts = sums.split(';').map(|part| part.trim().to_owned());
            let sums = [(); 3].map(|()| parts.next().unwrap_or_default());
            return Some(Command::Count(sums, self.loop_body()));
        }
        let name = self.word()?.to_owned();
        self.at += 1;
        self.skip_ends();
        let mut words = None;
        if self.take_word("in") {
            let mut given = Vec::new();
            while let Some(Token::Word(word)) = self.peek() {
                given.push(word.clone());
                self.at += 1;
            }
            words = Some(given);
        }
        Some(Command::For(name, words, self.loop_body()))
    }

    fn loop_body(&mut self) -> Rc<List> {
        self.skip_ends();
        if self.take_word("{") {
            return Rc::new(self.body("}"));
        }
        self.take_word("do");
        Rc::new(self.body("done"))
    }

    /// Text of a sum up to `))`.
    fn sum_text(&mut self) -> String {
        let mut out = String::new();
        let mut depth = 0_usize;
        while let Some(token) = self.peek() {
            match token {
                Token::Operator(")") if depth == 0 => {
                    self.at += 1;
                    self.take_operator(")");
                    break;
                }
                Token::Operator(operator) => {
                    depth += usize::from(operator.starts_with('(')) * operator.len();
                    depth -= usize::from(*operator == ")");
                    out.push_str(operator);
                }
                Token::Word(word) => out.push_str(&word.raw),
                Token::Redirection(redirection) => {
                    out.push_str(match redirection.kind {
                        super::lexer::RedirectionKind::In => "<",
                        _ => ">",
                    });
                    out.push_str(&redirection.target);
                }
                Token::End(_) => break,
            }
            out.push(' ');
            self.at += 1;
        }
        out
    }

    /// Words of a test up to `]]`, its signs among them.
    fn test_words(&mut self) -> Vec<String> {
        let mut out = Vec::new();
        while let Some(token) = self.peek() {
            match token {
                Token::Word(word) if word.raw == "]]" => {
                    self.at += 1;
                    break;
                }
                Token::Word(word) => out.push(word.raw.clone()),
                Token::Operator("((") => out.extend(["(".to_owned(), "(".to_owned()]),
                Token::Operator(operator) => out.push((*operator).to_owned()),
                // `a < b` and `a > b` compare texts, which conditions leave undecided: one sign stands for both.
                Token::Redirection(redirection) => {
                    out.push("<".to_owned());
                    out.push(redirection.target.clone());
                }
                Token::End(_) => {}
            }
            self.at += 1;
        }
        out
    }
}

/// The simple command that a chain ends with, if it is one alone.
fn last_simple(chain: &mut Chain) -> Option<&mut Simple> {
    let (_, pipeline) = chain.links.last_mut()?;
    match &mut pipeline.commands.last_mut()?.command {
        Command::Simple(simple) => Some(simple),
        _ => None,
    }
}
