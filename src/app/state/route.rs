//! Routes of the page.

/// Declares the routes, `Route = "path"`. The phrase `nav.NAME` is its entry in the menu, and `pages::load` finds its page.
macro_rules! routes {
    ($( $(#[$meta:meta])+ $Route:ident = $path:literal; )+) => {
        /// Routes of the page.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum Route {
            $( $(#[$meta])+ $Route, )+
        }

        impl Route {
            /// All routes.
            pub const ALL: &'static [Self] = &[$( Self::$Route ),+];

            /// Path after `#`.
            pub const fn path(self) -> &'static str {
                match self {
                    $( Self::$Route => $path, )+
                }
            }
        }
    };
}

routes! {
    /// Memory calculator for a training run.
    #[default]
    Plan = "/";
    /// Memory of a recorded step.
    Recorded = "/recorded";
    /// Recommended setups for given hardware.
    Recommend = "/recommend";
    /// Memory of two setups, tensor by tensor.
    Compare = "/compare";
    /// Memory and time of attention against length.
    Attention = "/attention";
    /// Diagnosis of an error message, log or snapshot.
    Diagnose = "/diagnose";
    /// Benchmark records.
    Benchmarks = "/benchmarks";
    /// The course.
    Course = "/course";
}

impl Route {
    /// Places of the menu, in its order.
    pub const MENU: [Self; 5] = [Self::Plan, Self::Diagnose, Self::Compare, Self::Attention, Self::Course];

    /// Places behind the menu. [`Route::Recommend`] is a part of planning, and is opened from there.
    pub const BEHIND: [Self; 2] = [Self::Benchmarks, Self::Recorded];

    /// Returns true if a place of the menu leads to this route, or to what belongs to it.
    pub fn is_part_of(self, place: Self) -> bool {
        self == place || self == Self::Recommend && place == Self::Plan
    }

    /// Name of the route: its path without the slash.
    pub fn name(self) -> &'static str {
        match self.path().trim_start_matches('/') {
            "" => "plan",
            name => name,
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
        let mut all = Self::ALL.iter().copied();
        all.find(|route| route.path().trim_end_matches('/') == path)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_route_has_one_place() {
        for route in Route::ALL {
            let places = Route::MENU.into_iter().chain(Route::BEHIND);
            assert_eq!(places.filter(|place| route.is_part_of(*place)).count(), 1, "{route:?}");
        }
    }

    #[test]
    fn every_route_is_found_by_its_path_and_has_its_words() {
        let locales = Path::new(env!("CARGO_MANIFEST_DIR")).join("locales");
        let phrases = vramscope_phrases::read(&locales).expect("the page's phrases");
        for route in Route::ALL {
            assert_eq!(Route::of_path(route.path()), Some(*route));
            let name = route.name();
            // The planner begins with a question of its own, and what belongs to it has no entry in the menu.
            for (subject, is_wanted) in [("nav", *route != Route::Recommend), ("heading", *route != Route::Plan)] {
                let mut all = phrases.iter();
                let has_words = all.any(|phrase| phrase.subject == subject && phrase.key == name);
                assert!(
                    has_words || !is_wanted,
                    "src/app/locales lacks `{name}` in {subject}.json"
                );
            }
        }
    }
}
