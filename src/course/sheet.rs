//! A sequence of formulas, each of which may use the results of earlier ones.

use super::{Formula, FormulaError, List};

/// One line: a name, its formula and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Name by which later lines refer to the result.
    pub name: String,
    /// The formula.
    pub formula: Formula,
    /// The result.
    pub value: List,
}

/// Inputs, and lines with their results.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sheet {
    inputs: Vec<(String, List)>,
    /// The lines in order.
    pub lines: Vec<Line>,
}

/// Error in a line of a sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SheetError {
    /// Name of the line.
    pub line: String,
    /// Error in its formula.
    pub error: FormulaError,
}

impl Sheet {
    /// Creates a sheet with these inputs and no lines.
    pub fn new(inputs: Vec<(String, List)>) -> Self {
        Self {
            inputs,
            lines: Vec::new(),
        }
    }

    /// The value of an input or of an earlier line.
    pub fn value(&self, name: &str) -> Option<&List> {
        let of_line = self.lines.iter().find(|line| line.name == name).map(|line| &line.value);
        of_line.or_else(|| self.inputs.iter().find(|(n, _)| n == name).map(|(_, value)| value))
    }

    /// Evaluates a formula with the values of this sheet.
    ///
    /// # Errors
    /// If the formula cannot be parsed or evaluated.
    pub fn evaluate(&self, formula: &str) -> Result<List, FormulaError> {
        Formula::parse(formula)?.evaluate(&|name| self.value(name).cloned())
    }

    /// Evaluates a formula and adds it as a line.
    ///
    /// # Errors
    /// If the formula cannot be parsed or evaluated; the error names the line.
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
