//! Parts of the page that can be embedded in another page.

/// A part of the page that can be embedded alone in another page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Widget {
    /// The page given by the address, without header and footer.
    #[default]
    Page,
    /// Verdict and memory bar.
    Verdict,
    /// Peak of each phase.
    Phases,
    /// Timeline of a training step.
    Timeline,
    /// Breakdown of the memory live at the peak.
    Breakdown,
}

impl Widget {
    /// Names in an address, in the order of the variants.
    pub const NAMES: [&str; 5] = ["page", "verdict", "phases", "timeline", "breakdown"];

    /// Finds a widget by its name; falls back to the whole page.
    pub fn named(name: &str) -> Self {
        match name {
            "verdict" => Self::Verdict,
            "phases" => Self::Phases,
            "timeline" => Self::Timeline,
            "breakdown" => Self::Breakdown,
            _ => Self::Page,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_widget_of_its_own() {
        let widgets: Vec<_> = Widget::NAMES.iter().map(|name| Widget::named(name) as usize).collect();
        assert_eq!(widgets, (0..Widget::NAMES.len()).collect::<Vec<_>>());
    }
}
