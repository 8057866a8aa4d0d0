//! Polynomials with rational coefficients, evaluated exactly.
//!
//! A tensor's bytes are a product of sizes, and its share of attention one of squares, so each number of a recording is a
//! polynomial of batch and length that the recorder solves for (`src/recorder/vramscope/record/sizes.py`). Coefficients
//! may be fractions, such as the half of n (n + 1) / 2, although every value is whole. In floating point such a sum
//! would be off by a byte for large tensors, and one byte decides into which block of the allocator a tensor goes.

use super::super::fault::Fault;

/// Maximum number of sizes that vary.
pub(super) const MOST_SIZES: usize = 8;
/// Maximum number of monomials in a basis.
const MOST_MONOMIALS: usize = 256;
/// Maximum exponent of a size.
const MOST_EXPONENT: u32 = 8;

/// Polynomials over a common basis.
pub(super) struct Polynomials {
    /// Exponents of each monomial, one for each size.
    basis: Vec<Vec<u32>>,
    polynomials: Vec<Polynomial>,
}

/// Nonzero coefficients over a common denominator.
struct Polynomial {
    numerators: Vec<(usize, i128)>,
    denominator: i128,
}

impl Polynomials {
    /// Parses coefficients, such as `-3/2`.
    pub fn read(basis: Vec<Vec<u32>>, words: &[Vec<String>], sizes: usize) -> Result<Self, Fault> {
        let fits = |monomial: &Vec<u32>| monomial.len() == sizes && monomial.iter().all(|&e| e <= MOST_EXPONENT);
        if basis.len() > MOST_MONOMIALS || !basis.iter().all(fits) {
            return Err(Fault::Json("has a basis that cannot be".into()));
        }
        let one = |words: &Vec<String>| Polynomial::read(words, basis.len());
        Ok(Self {
            polynomials: words.iter().map(one).collect::<Result<_, _>>()?,
            basis,
        })
    }

    /// Returns the values at a point; the error is the number of the first one that is not whole there, or too large.
    pub fn at(&self, point: &[u64]) -> Result<Vec<i64>, usize> {
        let monomial = |exponents: &Vec<u32>| {
            let powers = exponents.iter().zip(point);
            powers
                .map(|(&exponent, &size)| i128::from(size).checked_pow(exponent))
                .try_fold(1i128, |all, power| all.checked_mul(power?))
        };
        let monomials: Vec<Option<i128>> = self.basis.iter().map(monomial).collect();
        let value = |(k, polynomial): (usize, &Polynomial)| polynomial.at(&monomials).ok_or(k);
        self.polynomials.iter().enumerate().map(value).collect()
    }
}

impl Polynomial {
    fn read(words: &[String], monomials: usize) -> Result<Self, Fault> {
        let wrong = || Fault::Json("has a polynomial that cannot be".into());
        if words.len() != monomials {
            return Err(wrong());
        }
        let fractions: Option<Vec<[i128; 2]>> = words.iter().map(|words| fraction(words)).collect();
        let fractions = fractions.ok_or_else(wrong)?;
        let lcm = |all: Option<i128>, [_, below]: &[i128; 2]| {
            let all = all?;
            (all / gcd(all, *below)).checked_mul(*below)
        };
        // One denominator for all terms, so that a value is a single exact division.
        let denominator = fractions.iter().fold(Some(1), lcm).ok_or_else(wrong)?;
        let scaled = fractions.iter().enumerate().filter(|(_, [above, _])| *above != 0);
        let scaled = scaled.map(|(i, [above, below])| Some((i, above.checked_mul(denominator / below)?)));
        Ok(Self {
            numerators: scaled.collect::<Option<_>>().ok_or_else(wrong)?,
            denominator,
        })
    }

    fn at(&self, monomials: &[Option<i128>]) -> Option<i64> {
        let terms = self
            .numerators
            .iter()
            .map(|&(i, above)| monomials[i]?.checked_mul(above));
        let sum = terms.into_iter().try_fold(0i128, |sum, term| sum.checked_add(term?))?;
        // A value that is not whole proves that the polynomial does not hold here, for example because a kernel rounds
        // up to a multiple: the sizes are refused, instead of rounding what is wrong already.
        (sum % self.denominator == 0).then(|| i64::try_from(sum / self.denominator).ok())?
    }
}

/// Parses a fraction, such as `3` or `-3/2`.
fn fraction(words: &str) -> Option<[i128; 2]> {
    let (above, below) = words.split_once('/').unwrap_or((words, "1"));
    let (above, below): (i64, i64) = (above.parse().ok()?, below.parse().ok()?);
    (below > 0).then_some([above.into(), below.into()])
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(basis: &[[u32; 2]], words: &[&[&str]]) -> Result<Polynomials, Fault> {
        let words: Vec<Vec<String>> = words
            .iter()
            .map(|all| all.iter().map(ToString::to_string).collect())
            .collect();
        Polynomials::read(basis.iter().map(|monomial| monomial.to_vec()).collect(), &words, 2)
    }

    #[test]
    fn values_are_whole_or_none() {
        let some = read(&[[0, 0], [1, 2], [0, 1]], &[&["7", "-1/2", "1/3"], &["0", "1", "0"]]).unwrap();
        assert_eq!(some.at(&[4, 6]), Ok(vec![7 - 72 + 2, 144]));
        assert_eq!(some.at(&[3, 5]), Err(0));
        assert_eq!(some.at(&[u64::MAX, u64::MAX]), Err(0));
    }

    #[test]
    fn what_is_no_polynomial_is_refused() {
        assert!(read(&[[0, 0]], &[&["1", "2"]]).is_err());
        for words in ["1/0", "1/-2", "x", "", "9223372036854775808"] {
            assert!(read(&[[0, 0]], &[&[words]]).is_err(), "{words}");
        }
        assert!(read(&[[0, 99]], &[]).is_err());
    }
}
