//! Finds the largest value that satisfies a monotone predicate.

/// Returns the largest multiple of `unit`, up to `most`, for which `fits` is true; 0 if there is none.
///
/// `fits` must be monotone: if a value fits, so do all smaller ones. It is called with doubling values until one does
/// not fit, then by bisection: about `2 log₂(answer / unit)` calls.
///
/// # Errors
/// The first error of `fits`.
pub fn largest<E>(unit: u64, most: u64, mut fits: impl FnMut(u64) -> Result<bool, E>) -> Result<u64, E> {
    let unit = unit.max(1);
    let most = most / unit;
    // `good` and `bad` count units: `good` fits, `bad` does not.
    let (mut good, mut bad) = (0, None);
    let mut next = 1;
    while good < most && bad.is_none() {
        let tried = next.min(most);
        if fits(tried * unit)? {
            good = tried;
            next = tried.saturating_mul(2);
        } else {
            bad = Some(tried);
        }
    }
    if let Some(mut bad) = bad {
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            if fits(middle * unit)? {
                good = middle;
            } else {
                bad = middle;
            }
        }
    }
    Ok(good * unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    proptest! {
        #[test]
        fn it_is_what_a_linear_scan_finds(limit in 0u64..3000, unit in 1u64..40, most in 0u64..2500) {
            let scanned = (0..=most / unit).map(|i| i * unit).filter(|v| *v <= limit).max().unwrap_or(0);
            let Ok(found) = largest(unit, most, |v| Ok::<_, Infallible>(v <= limit));
            prop_assert_eq!(found, scanned);
        }

        #[test]
        fn it_asks_seldom(limit in 1u64..1_000_000) {
            let mut asked = 0;
            let Ok(_) = largest(1, 1 << 20, |v| {
                asked += 1;
                Ok::<_, Infallible>(v <= limit)
            });
            prop_assert!(asked <= 2 * (limit.ilog2() + 2));
        }
    }

    #[test]
    fn an_error_ends_it() {
        assert_eq!(largest(1, 100, |v| if v > 4 { Err("no") } else { Ok(true) }), Err("no"));
    }
}
