/// A part of the page that can stand alone in a frame of another page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Widget {
    /// The page that the address names, without header and footer.
    #[default]
    Page,
    /// Whether it fits, and what takes the room.
    Verdict,
    /// The peak of each phase.
    Phases,
    /// One training step.
    Timeline,
    /// What is live at the peak.
    Breakdown,
}

impl Widget {
    /// Names in an address, in the order of the variants.
    pub const NAMES: [&str; 5] = ["page", "verdict", "phases", "timeline", "breakdown"];

    /// The widget of this name; the whole page for any other.
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
