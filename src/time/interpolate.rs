//! Interpolates between measured points.

/// Number of nearest points used.
const NEIGHBOURS: usize = 8;

/// Squared distance, in doublings, below which two points count as equal.
const SAME: f64 = 1e-9;

/// Added to squared distances, so that a very close point does not get all the weight.
const NEAR: f64 = 0.01;

/// Measured points of one kind of kernel: extents, and the ratio of the time to the ideal time.
#[derive(Debug, Clone, Default)]
pub struct Field {
    points: Vec<([f64; 4], f64)>,
    /// Smallest and largest value of each extent.
    range: Option<[[f64; 4]; 2]>,
}

impl Field {
    /// Adds a point: its extents and the ratio to the ideal time.
    pub fn push(&mut self, extents: [u64; 4], factor: f64) {
        let point = doublings(extents);
        let [lowest, highest] = self.range.get_or_insert([point, point]);
        for (i, x) in point.into_iter().enumerate() {
            lowest[i] = lowest[i].min(x);
            highest[i] = highest[i].max(x);
        }
        self.points.push((point, factor));
    }

    /// The ratio at other extents: the mean of the nearest points, weighted by inverse squared distance in doublings of
    /// each extent. Extents beyond all points are clamped to the edge, where rates no longer change.
    pub fn at(&self, extents: [u64; 4]) -> Option<f64> {
        let [lowest, highest] = self.range?;
        let mut q = doublings(extents);
        for (i, x) in q.iter_mut().enumerate() {
            *x = x.clamp(lowest[i], highest[i]);
        }
        let mut nearest: Vec<(f64, f64)> = Vec::with_capacity(NEIGHBOURS + 1);
        let mut met = Vec::new();
        for (point, factor) in &self.points {
            let distance: f64 = point.iter().zip(&q).map(|(a, b)| (a - b) * (a - b)).sum();
            if distance < SAME {
                met.push(*factor);
            }
            if nearest.get(NEIGHBOURS - 1).is_some_and(|(d, _)| *d <= distance) {
                continue;
            }
            let at = nearest.partition_point(|(d, _)| *d <= distance);
            nearest.insert(at, (distance, *factor));
            nearest.truncate(NEIGHBOURS);
        }
        if !met.is_empty() {
            // Several measurements exist for these extents, in layouts that the extents do not distinguish.
            return Some(met.iter().sum::<f64>() / met.len() as f64);
        }
        let weights: f64 = nearest.iter().map(|(d, _)| 1.0 / (d + NEAR)).sum();
        let sum: f64 = nearest.iter().map(|(d, f)| f / (d + NEAR)).sum();
        (weights > 0.0).then(|| sum / weights)
    }
}

/// Logarithm of each extent to base 2: exact for powers of two, linear in between, so that every platform computes the
/// same bits.
fn doublings(extents: [u64; 4]) -> [f64; 4] {
    extents.map(|n| {
        let whole = n.max(1).ilog2();
        f64::from(whole) + (n.max(1) as f64 / (1_u64 << whole) as f64 - 1.0)
    })
}

/// A measured curve over one extent; time increases from point to point.
#[derive(Debug, Clone, Default)]
pub struct Curve {
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// Adds a point; points may come in any order.
    pub fn push(&mut self, x: f64, y: f64) {
        let at = self.points.partition_point(|(known, _)| *known < x);
        self.points.insert(at, (x, y));
    }

    /// The time at `x`: linear between points; constant before the first, whose time is the kernel's latency;
    /// proportional beyond the last.
    pub fn at(&self, x: f64) -> Option<f64> {
        let (first, last) = (self.points.first()?, self.points.last()?);
        if x <= first.0 {
            return Some(first.1);
        }
        if x >= last.0 {
            return Some(last.1 * x / last.0);
        }
        let after = self.points.partition_point(|(known, _)| *known < x);
        let ((x0, y0), (x1, y1)) = (self.points[after - 1], self.points[after]);
        Some(y0 + (y1 - y0) * (x - x0) / (x1 - x0))
    }
}

/// Measured ratios over one extent, which change slowly and in both directions.
#[derive(Debug, Clone, Default)]
pub struct Ratios {
    points: Vec<(f64, f64)>,
}

impl Ratios {
    /// Adds a point; points may come in any order.
    pub fn push(&mut self, x: u64, ratio: f64) {
        let x = doublings([x, 0, 0, 0])[0];
        let at = self.points.partition_point(|(known, _)| *known < x);
        self.points.insert(at, (x, ratio));
    }

    /// The ratio at `x`: the mean of the points there; linear in doublings between points; constant beyond them.
    pub fn at(&self, x: u64) -> Option<f64> {
        let x = doublings([x, 0, 0, 0])[0];
        let (before, rest) = self
            .points
            .split_at(self.points.partition_point(|(known, _)| *known < x));
        let mean = |of: &[(f64, f64)]| of.iter().map(|(_, ratio)| ratio).sum::<f64>() / of.len() as f64;
        let level = |at: f64| {
            let of: Vec<_> = self.points.iter().filter(|(known, _)| *known == at).copied().collect();
            (at, mean(&of))
        };
        match (before.last(), rest.first()) {
            (_, Some((next, _))) if *next == x => Some(level(x).1),
            (Some((last, _)), Some((next, _))) => {
                let ((x0, y0), (x1, y1)) = (level(*last), level(*next));
                Some(y0 + (y1 - y0) * (x - x0) / (x1 - x0))
            }
            (Some((end, _)), None) | (None, Some((end, _))) => Some(level(*end).1),
            (None, None) => None,
        }
    }
}
