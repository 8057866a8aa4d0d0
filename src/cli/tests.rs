//! Tests of the command line as a whole.

use clap::{Command, CommandFactory, Parser};

use super::Cli;

#[test]
fn the_commands_are_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn every_example_of_the_help_is_a_command_line() {
    let mut examples = Vec::new();
    collect(&Cli::command(), &mut examples);
    assert!(examples.len() > 10);
    for example in examples {
        assert!(example.len() <= 78, "a terminal of 80 columns would break {example}");
        if let Err(error) = Cli::try_parse_from(words(&example)) {
            panic!("{example}\n{error}");
        }
    }
}

/// Collects lines of examples, without redirections.
fn collect(command: &Command, examples: &mut Vec<String>) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let lines = help
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| line.starts_with("vramscope "));
    examples.extend(lines.map(|line| line.split(" > ").next().unwrap_or(line).to_string()));
    command.get_subcommands().for_each(|sub| collect(sub, examples));
}

/// Splits a line into words like a shell, with single and double quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quote) = (vec![String::new()], None);
    for c in line.chars() {
        match (quote, c) {
            (None, ' ') => words.push(String::new()),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (_, c) => words.last_mut().expect("never empty").push(c),
        }
    }
    words
}
