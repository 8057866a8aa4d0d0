//! Formulas in a row, each of which may use the results of those before it.

use super::{Formula, FormulaError, List};

/// One line: a name for its result and how it comes about.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What later lines call it.
    pub name: String,
    /// How it comes about.
    pub formula: Formula,
    /// Its result.
    pub value: List,
}

/// Inputs and lines with their results.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sheet {
    inputs: Vec<(String, List)>,
    /// In order.
    pub lines: Vec<Line>,
}

/// Which line is wrong, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SheetError {
    /// Its name.
    pub line: String,
    /// What is wrong.
    pub error: FormulaError,
}

impl Sheet {
    /// A sheet of these inputs.
    pub fn new(inputs: Vec<(String, List)>) -> Self {
        Self {
            inputs,
            lines: Vec::new(),
        }
    }

    /// The value of an input or of a line so far.
    pub fn value(&self, name: &str) -> Option<&List> {
        let of_line = self.lines.iter().find(|line| line.name == name).map(|line| &line.value);
        of_line.or_else(|| self.inputs.iter().find(|(n, _)| n == name).map(|(_, value)| value))
    }

    /// What a formula gives here.
    ///
    /// # Errors
    /// A formula that cannot be read or evaluated.
    pub fn evaluate(&self, formula: &str) -> Result<List, FormulaError> {
        Formula::parse(formula)?.evaluate(&|name| self.value(name).cloned())
    }

    /// Adds a line.
    ///
    /// # Errors
    /// Which line is wrong, and how.
    pub fn add(&mut self, name: &str, formula: &str) -> Result<(), SheetError> {
        let wrong = |error| SheetError {
            line: name.to_owned(),
            error,
        };
        let formula = Formula::parse(formula).map_err(wrong)?;
        let value = formula.evaluate(&|name| self.value(name).cloned()).map_err(wrong)?;
        self.lines.push(Line {
            name: name.to_owned(),
            formula,
            value,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_uses_those_before_it() {
        let mut sheet = Sheet::new(vec![("n".into(), 13_000_000_000.0.into())]);
        sheet.add("weights", "n * 2").expect("it is well formed");
        sheet.add("states", "weights * 2").expect("it is well formed");
        assert_eq!(sheet.value("states").and_then(List::single), Some(52e9));
        let error = sheet
            .add("total", "weights + activations")
            .expect_err("a name is not known");
        assert_eq!(error.line, "total");
    }
}
