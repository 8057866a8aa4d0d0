//! Settings of a launch file that its setup leaves out, as an entry: links and saved setups carry them.

use vramscope_engine::setup::Setting;
use vramscope_launch::{Aspect, Direction, LeftOut};

use super::{Draft, Key};

impl Draft {
    /// What the entries leave out of the run that was given. Lengths and sizes of images that are entered are missing no
    /// more.
    pub fn left_out(&self) -> Vec<LeftOut> {
        let is_entered = |left: &LeftOut| {
            // A bound holds for the length and the images that it names, which are entered with it.
            let is_of_samples = left.direction == Direction::Unknown
                && (self.has(Setting::Seq) && left.is_missing_length()
                    || self.has(Setting::ImageSizes) && left.is_missing_images());
            // The verdict counts it, since the page always has a card.
            is_of_samples || self.has(Key::VllmShare) && left.is_vllm_beside()
        };
        let mut all = self.listed();
        all.retain(|left| !is_entered(left));
        all
    }

    /// Says what the entries leave out of the run that was given.
    pub fn leave_out(&mut self, left_out: &[LeftOut]) {
        let text = match left_out {
            [] => String::new(),
            // Plain data always serializes to JSON.
            some => serde_json::to_string(some).unwrap_or_default(),
        };
        self.set(Key::NotThisRun, text);
    }

    /// Says that a larger model stands in for the model, for this reason, or that none does.
    pub fn stand_in(&mut self, why: Option<&str>) {
        let mut all = self.listed();
        all.retain(|left| !left.is_of_larger_model());
        all.extend(why.map(LeftOut::of_larger_model));
        self.leave_out(&all);
    }

    /// Says that this is not in the run either, so that nothing of it is left out.
    pub fn take_out(&mut self, left: &LeftOut) {
        let mut all = self.listed();
        all.retain(|listed| listed != left);
        if all.iter().all(LeftOut::is_assumption) {
            all.clear();
        }
        self.leave_out(&all);
        if left.is_vllm_beside() {
            self.set(Key::VllmShare, "");
        }
    }

    /// Comment lines that say in a configuration what it leaves out; empty if that is nothing.
    pub fn left_out_comment(&self) -> String {
        let left_out = self.left_out();
        let lines = left_out.iter().map(|left| format!("# {}\n", note(left)));
        lines.collect()
    }

    fn listed(&self) -> Vec<LeftOut> {
        match self.get(Key::NotThisRun) {
            "" => Vec::new(),
            // That something is left out must not get lost with what it is.
            text => serde_json::from_str(text).unwrap_or_else(|_| vec![unreadable()]),
        }
    }
}

/// One line that says in a configuration or a command what it leaves out. Links hold any text, and no part of it may
/// become a line of its own.
pub fn note(left: &LeftOut) -> String {
    // What stands for a line is simulated otherwise than it is; what no line tells, as its largest.
    let head = match (left.direction, &left.given) {
        (Direction::AtMost, None) => "At most",
        (Direction::AtLeast, None) => "At least",
        _ => "Not simulated",
    };
    format!("{head}: {}", words(left))
}

/// One thing that is left out, in English: what the file gives, and why it counts.
pub fn words(left: &LeftOut) -> String {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    match &left.given {
        Some(given) => format!("{} ({})", one_line(given), one_line(&left.why)),
        None => one_line(&left.why),
    }
}

fn unreadable() -> LeftOut {
    LeftOut {
        what: Aspect::Setting,
        given: None,
        why: "the link says that something is left out, and what it is cannot be read".into(),
        direction: Direction::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use vramscope_launch::Grade;

    use super::*;

    #[test]
    fn what_is_left_out_outlasts_a_link() {
        let left = LeftOut {
            what: Aspect::Length,
            given: Some("packing: true".into()),
            why: "packs samples".into(),
            direction: Direction::AtMost,
        };
        let mut draft = Draft::default();
        draft.leave_out(std::slice::from_ref(&left));
        let mut read = Draft::default();
        assert_eq!(read.read_pairs(&draft.to_query()), []);
        assert_eq!(read.left_out(), [left]);
        assert_eq!(
            read.left_out_comment(),
            "# Not simulated: packing: true (packs samples)\n"
        );
        read.leave_out(&[]);
        assert_eq!(read, Draft::default());
    }

    #[test]
    fn what_cannot_be_read_still_counts() {
        let mut draft = Draft::default();
        draft.set(Key::NotThisRun, "[{");
        assert_eq!(draft.left_out().len(), 1);
        assert_eq!(Grade::of(&draft.left_out()), Grade::DryRun);
    }

    #[test]
    fn what_is_entered_is_missing_no_more() {
        let missing = |what| LeftOut {
            what,
            given: None,
            why: "no file tells it".into(),
            direction: Direction::Unknown,
        };
        let (length, images, vllm) = (
            missing(Aspect::Length),
            missing(Aspect::Images),
            missing(Aspect::Beside),
        );
        let mut draft = Draft::default();
        draft.leave_out(&[length.clone(), images.clone(), vllm.clone()]);
        draft.set(Key::VllmShare, "0.4");
        draft.set(Setting::Seq, "512");
        // The verdict counts the share of vLLM.
        assert_eq!(draft.left_out(), [images]);
        draft.set(Setting::ImageSizes, "480x640");
        assert_eq!(draft.left_out(), []);
        draft.set(Key::VllmShare, "");
        assert_eq!(draft.left_out(), std::slice::from_ref(&vllm));
        // A length that is taken away again is missing again.
        draft.take_out(&vllm);
        assert_eq!((draft.left_out(), draft.get(Key::VllmShare)), (Vec::new(), ""));
        draft.set(Setting::Seq, "");
        assert_eq!(draft.left_out(), [length]);
    }
}
