//! Draws a stacked curve as SVG from its columns, however many events they represent.

/// Width and height of the drawing in SVG units.
pub const SIDES: (f64, f64) = (800.0, 200.0);

/// Paths of a stacked curve, lowest layer first. `class` returns the CSS class of each layer; the drawing's height
/// stands for `most` bytes.
pub fn paths(columns: &[Vec<f64>], most: f64, class: impl Fn(usize) -> String) -> String {
    let layers = columns.first().map_or(0, Vec::len);
    let step = SIDES.0 / columns.len().max(1) as f64;
    let mut below = vec![0.0; columns.len()];
    let mut out = String::new();
    for layer in 0..layers {
        let tops: Vec<f64> = columns
            .iter()
            .zip(&below)
            .map(|(column, below)| below + column.get(layer).copied().unwrap_or(0.0))
            .collect();
        if tops != below {
            let y = |bytes: f64| SIDES.1 * (1.0 - bytes / most.max(1.0));
            let mut path = String::from("M");
            for (i, &top) in tops.iter().enumerate() {
                let x = i as f64 * step;
                path += &format!("{x:.1} {:.1} {:.1} {:.1} ", y(top), x + step, y(top));
            }
            for (i, &low) in below.iter().enumerate().rev() {
                let x = i as f64 * step;
                path += &format!("{:.1} {:.1} {x:.1} {:.1} ", x + step, y(low), y(low));
            }
            out += &format!("<path class=\"{}\" d=\"{path}Z\"/>", class(layer));
        }
        below = tops;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_stand_on_each_other_and_empty_ones_are_left_out() {
        let drawn = paths(&[vec![1.0, 0.0, 1.0], vec![2.0, 0.0, 0.0]], 2.0, |layer| {
            format!("l{layer}")
        });
        assert_eq!(drawn.matches("<path").count(), 2);
        assert!(drawn.starts_with("<path class=\"l0\" d=\"M0.0 100.0 400.0 100.0 400.0 0.0 800.0 0.0 "));
        assert!(drawn.contains("class=\"l2\" d=\"M0.0 0.0 400.0 0.0 400.0 0.0 800.0 0.0 800.0 0.0 400.0 0.0"));
        assert_eq!(paths(&[], 2.0, |_| String::new()), "");
    }
}
