//! Routes of the page.

/// Routes of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Route {
    /// Memory calculator for a training run.
    #[default]
    Plan,
    /// Memory of a recorded step.
    Recorded,
    /// Memory and time of attention against length.
    Attention,
    /// Recommended setups for given hardware.
    Recommend,
    /// Diagnosis of an error message, log or snapshot.
    Diagnose,
    /// Benchmark records.
    Benchmarks,
    /// The course.
    Course,
}

impl Route {
    /// All routes in the order of the menu.
    pub const ALL: [Self; 7] = [
        Self::Plan,
        Self::Recorded,
        Self::Recommend,
        Self::Attention,
        Self::Diagnose,
        Self::Benchmarks,
        Self::Course,
    ];

    /// Path after `#`.
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

    /// Formats the fragment of this route with a query such as `model=gpt2`.
    pub fn fragment(self, query: &str) -> String {
        let mark = if query.is_empty() { "" } else { "?" };
        format!("#{}{mark}{query}", self.path())
    }

    /// Finds a route by its path; a trailing slash is ignored.
    pub fn of_path(path: &str) -> Option<Self> {
        let path = path.trim_end_matches('/');
        Self::ALL.into_iter().find(|r| r.path().trim_end_matches('/') == path)
    }
}
