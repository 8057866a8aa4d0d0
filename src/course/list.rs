//! Values of a formula's names: one number, or several in order.

/// One or several numbers; an operation combines a single number with every number of the other side.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct List(pub Vec<f64>);

impl From<f64> for List {
    fn from(value: f64) -> Self {
        Self(vec![value])
    }
}

impl List {
    /// The number, if there is exactly one.
    pub fn single(&self) -> Option<f64> {
        match self.0[..] {
            [value] => Some(value),
            _ => None,
        }
    }

    /// Combines two lists element by element; `None` if their lengths differ and neither has length one.
    pub(super) fn zip(&self, other: &Self, f: &dyn Fn(f64, f64) -> f64) -> Option<Self> {
        let (a, b) = (&self.0, &other.0);
        let len = if a.len() == 1 { b.len() } else { a.len() };
        let fits = |list: &Vec<f64>| list.len() == 1 || list.len() == len;
        let at = |list: &Vec<f64>, i: usize| if list.len() == 1 { list[0] } else { list[i] };
        let values = (0..len).map(|i| f(at(a, i), at(b, i)));
        (fits(a) && fits(b)).then(|| Self(values.collect()))
    }

    /// Sum of the numbers.
    pub fn sum(&self) -> f64 {
        self.0.iter().sum()
    }

    /// Differences between consecutive numbers.
    pub(super) fn steps(&self) -> Self {
        Self(self.0.windows(2).map(|pair| pair[1] - pair[0]).collect())
    }

    /// Sums of all earlier numbers: the start of each of several pieces laid end to end.
    pub(super) fn starts(&self) -> Self {
        let mut total = 0.0;
        let start = |value: &f64| {
            total += value;
            total - value
        };
        Self(self.0.iter().map(start).collect())
    }

    /// Slope of the least-squares line through the numbers, per index.
    pub(super) fn slope(&self) -> f64 {
        let n = self.0.len() as f64;
        let middle = (n - 1.0) / 2.0;
        let mean = self.sum() / n;
        let places = (0..self.0.len()).map(|i| i as f64 - middle);
        let (mut products, mut squares) = (0.0, 0.0);
        for (place, value) in places.zip(&self.0) {
            products += place * (value - mean);
            squares += place * place;
        }
        products / squares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_has_its_slope() {
        assert_eq!(List(vec![1.0, 3.0, 5.0, 7.0]).slope(), 2.0);
    }

    #[test]
    fn lists_of_different_lengths_do_not_meet() {
        let (two, three) = (List(vec![1.0, 2.0]), List(vec![1.0, 2.0, 3.0]));
        assert_eq!(two.zip(&three, &|a, b| a + b), None);
        assert_eq!(two.zip(&List::from(1.0), &|a, b| a + b), Some(List(vec![2.0, 3.0])));
    }
}
