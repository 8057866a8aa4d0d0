/// The pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Route {
    /// Plan a training run.
    #[default]
    Plan,
    /// What a recorded step takes.
    Recorded,
    /// Memory and time of attention against length.
    Attention,
    /// What to run on some hardware.
    Recommend,
    /// What an error message or a log says.
    Diagnose,
    /// Measured runs.
    Benchmarks,
    /// The course.
    Course,
}

impl Route {
    /// All routes, in the order of the menu.
    pub const ALL: [Self; 7] = [
        Self::Plan,
        Self::Recorded,
        Self::Recommend,
        Self::Attention,
        Self::Diagnose,
        Self::Benchmarks,
        Self::Course,
    ];

    /// The path after `#`.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Plan => "/",
            Self::Recorded => "/recorded",
            Self::Recommend => "/recommend",
            Self::Attention => "/attention",
            Self::Diagnose => "/diagnose",
            Self::Benchmarks => "/benchmarks",
            Self::Course => "/course",
        }
    }

    /// A fragment that names it, with a query such as `model=gpt2`.
    pub fn fragment(self, query: &str) -> String {
        let mark = if query.is_empty() { "" } else { "?" };
        format!("#{}{mark}{query}", self.path())
    }

    /// The route of this path; a slash at the end does not matter.
    pub fn of_path(path: &str) -> Option<Self> {
        let path = path.trim_end_matches('/');
        Self::ALL.into_iter().find(|r| r.path().trim_end_matches('/') == path)
    }
}
