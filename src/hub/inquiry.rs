//! The questions that a hub is asked for a model, one after the other. Does no I/O: the caller sends each question and hands
//! in what came.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use vramscope_engine::python_json;

use super::answer::{Answer, Asked, Question, Response, Trouble, host_of};
use super::error::HubError;
use super::repository::{Hub, Repository};
use super::repository_info::RepositoryInfo;

/// What a hub says of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Id of the repository.
    pub id: String,
    /// Revision that was asked, if one was.
    pub revision: Option<String>,
    /// Host that answered.
    pub host: String,
    /// ETag of the file.
    pub etag: Option<String>,
    /// Name of the file that describes the model: `config.json`, `adapter_config.json`, or empty if there is neither.
    pub file: String,
    /// Its text.
    pub text: String,
    /// Largest image that its processor makes, in pixels, if one of its files says it.
    pub max_pixels: Option<u64>,
    /// What the hub's API says.
    pub info: RepositoryInfo,
}

impl Description {
    /// True if it is worth keeping: it describes a model, or names one that does.
    pub fn is_of_use(&self) -> bool {
        !self.file.is_empty() || !self.info.base_models.is_empty()
    }

    /// That of a `config.json` which a person gives for a repository.
    pub fn given(of: &Repository, text: &str) -> Self {
        Self {
            file: "config.json".into(),
            text: text.to_owned(),
            ..Self::empty(of, String::new())
        }
    }

    fn empty(of: &Repository, host: String) -> Self {
        Self {
            id: of.id.clone(),
            revision: of.revision.clone(),
            host,
            etag: None,
            file: String::new(),
            text: "{}".into(),
            max_pixels: None,
            info: RepositoryInfo::default(),
        }
    }

    /// The configuration as an object.
    pub(crate) fn config(&self) -> Map<String, Value> {
        object(&self.text)
    }
}

/// Next question of an inquiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Config,
    Adapter,
    Info,
    Preprocessor,
    Processor,
    Done,
}

/// The questions for one repository.
#[derive(Debug, Clone)]
pub struct Inquiry {
    of: Repository,
    endpoint: String,
    kept: Option<Description>,
    step: Step,
    found: Description,
}

impl Inquiry {
    /// Begins to ask the hub at `endpoint`. What did not change since `kept` is taken from there.
    pub fn begin(of: &Repository, endpoint: &str, kept: Option<Description>) -> Self {
        Self {
            of: of.clone(),
            endpoint: endpoint.to_owned(),
            kept: kept.filter(|kept| kept.file == "config.json"),
            step: Step::Config,
            found: Description::empty(of, host_of(endpoint)),
        }
    }

    /// The next question; `None` if nothing is left to ask.
    pub fn question(&self) -> Option<Question> {
        let file = self.file()?;
        let is_kept = self.step == Step::Config;
        let etag = self
            .kept
            .as_ref()
            .filter(|_| is_kept)
            .and_then(|kept| kept.etag.clone());
        let address = match self.step {
            Step::Info => self.of.info_address(&self.endpoint)?,
            _ => self.of.file_address(&self.endpoint, file),
        };
        Some(Question { address, etag })
    }

    const fn file(&self) -> Option<&'static str> {
        Some(match self.step {
            Step::Config => "config.json",
            Step::Adapter => "adapter_config.json",
            Step::Info => "its description",
            Step::Preprocessor => "preprocessor_config.json",
            Step::Processor => "processor_config.json",
            Step::Done => return None,
        })
    }

    /// Takes the answer to [`Self::question`], or why there is none.
    ///
    /// # Errors
    /// If the hub does not answer, or does not show the repository. What only adds to a description may be missing.
    pub fn hear(&mut self, response: Result<Response, Trouble>) -> Result<(), HubError> {
        let (Some(file), Some(question)) = (self.file(), self.question()) else {
            return Ok(());
        };
        let asked = Asked {
            repository: &self.of,
            endpoint: &self.endpoint,
            file,
            question: &question,
        };
        let answer = asked.read(response);
        let after_file = match self.of.hub {
            Hub::HuggingFace => Step::Info,
            // It has another API.
            Hub::ModelScope => self.after_info(),
        };
        self.step = match (self.step, answer) {
            (Step::Config, Ok(Answer::Unchanged)) => {
                if let Some(kept) = self.kept.take() {
                    self.found = kept;
                }
                Step::Done
            }
            (Step::Config | Step::Adapter, Ok(Answer::File { text, etag, .. })) => {
                file.clone_into(&mut self.found.file);
                (self.found.text, self.found.etag) = (text, etag);
                match after_file {
                    Step::Info => Step::Info,
                    _ => self.after_info(),
                }
            }
            (Step::Config, Ok(Answer::Missing)) => Step::Adapter,
            (Step::Config | Step::Adapter, Err(error)) => return Err(error),
            (Step::Adapter, Ok(_)) => after_file,
            (Step::Info, answer) => {
                if let Ok(Answer::File { value, .. }) = answer {
                    self.found.info = RepositoryInfo::read(&value);
                }
                self.after_info()
            }
            (step @ (Step::Preprocessor | Step::Processor), answer) => {
                if let Ok(Answer::File { value, .. }) = answer {
                    self.found.max_pixels = max_pixels(&value);
                }
                match (step, self.found.max_pixels) {
                    (Step::Preprocessor, None) => Step::Processor,
                    _ => Step::Done,
                }
            }
            (Step::Done, _) => Step::Done,
        };
        Ok(())
    }

    /// A model of images has a processor.
    fn after_info(&self) -> Step {
        let has_images = self.found.file == "config.json" && self.found.config().contains_key("vision_config");
        if has_images { Step::Preprocessor } else { Step::Done }
    }

    /// What was found.
    pub fn end(self) -> Description {
        self.found
    }
}

/// Largest image of a processor, where it says pixels (`max_pixels`, or `size.longest_edge` of Qwen's, which is pixels too).
fn max_pixels(config: &Value) -> Option<u64> {
    let inner = config.get("image_processor").unwrap_or(config);
    let is_of_qwen = inner.get("patch_size").is_some() && inner.get("merge_size").is_some();
    let edge = || inner.pointer("/size/longest_edge").filter(|_| is_of_qwen);
    inner.get("max_pixels").or_else(edge)?.as_u64()
}

/// Reads an object; an empty one of what is none.
pub(crate) fn object(text: &str) -> Map<String, Value> {
    match python_json::read(text) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Repository {
        Repository::parse(text).expect("it is an id")
    }

    fn said(body: &str) -> Result<Response, Trouble> {
        Ok(Response {
            status: 200,
            body: body.into(),
            etag: Some("\"1\"".into()),
            ..Response::default()
        })
    }

    fn missing() -> Result<Response, Trouble> {
        Ok(Response {
            status: 404,
            error_code: "EntryNotFound".into(),
            ..Response::default()
        })
    }

    /// Addresses that were asked, and what was found.
    fn ask(
        mut inquiry: Inquiry,
        answers: Vec<Result<Response, Trouble>>,
    ) -> (Vec<String>, Result<Description, HubError>) {
        let (mut asked, mut answers) = (Vec::new(), answers.into_iter());
        while let Some(question) = inquiry.question() {
            asked.push(question.address);
            if let Err(error) = inquiry.hear(answers.next().expect("it asks no more")) {
                return (asked, Err(error));
            }
        }
        assert_eq!(answers.next(), None, "it asks as many");
        (asked, Ok(inquiry.end()))
    }

    #[test]
    fn a_model_of_images_is_asked_for_its_processor() {
        let answers = vec![
            said(r#"{"model_type": "x", "vision_config": {}}"#),
            said(r#"{"safetensors": {"parameters": {"BF16": 7}}}"#),
            missing(),
            said(r#"{"image_processor": {"max_pixels": 99}}"#),
        ];
        let (asked, found) = ask(Inquiry::begin(&of("a/b@v1"), "https://hub", None), answers);
        assert_eq!(
            asked,
            [
                "https://hub/a/b/resolve/v1/config.json",
                "https://hub/api/models/a/b/revision/v1?expand[]=safetensors&expand[]=cardData&expand[]=sha",
                "https://hub/a/b/resolve/v1/preprocessor_config.json",
                "https://hub/a/b/resolve/v1/processor_config.json",
            ]
        );
        let found = found.expect("it is found");
        assert_eq!((found.max_pixels, found.info.plain_parameters()), (Some(99), Some(7)));
    }

    #[test]
    fn without_a_configuration_an_adapter_is_looked_for_and_then_a_base() {
        let answers = vec![missing(), missing(), said(r#"{"cardData": {"base_model": "c/d"}}"#)];
        let (asked, found) = ask(Inquiry::begin(&of("a/b-GGUF"), "https://hub", None), answers);
        assert_eq!(asked.len(), 3);
        let found = found.expect("it is found");
        assert_eq!((found.file.as_str(), found.is_of_use()), ("", true));
        let answers = vec![missing(), said(r#"{"peft_type": "LORA"}"#), Err(Trouble::BrokenOff)];
        let (_, found) = ask(Inquiry::begin(&of("a/b"), "https://hub", None), answers);
        assert_eq!(found.expect("it is found").file, "adapter_config.json");
    }

    #[test]
    fn what_did_not_change_is_taken_from_the_copy() {
        let first = ask(
            Inquiry::begin(&of("a/b"), "https://hub", None),
            vec![said(r#"{"model_type": "x"}"#), Err(Trouble::BrokenOff)],
        );
        let kept = first.1.expect("it is found");
        let inquiry = Inquiry::begin(&of("a/b"), "https://hub", Some(kept.clone()));
        assert_eq!(
            inquiry.question().and_then(|question| question.etag).as_deref(),
            Some("\"1\"")
        );
        let unchanged = Ok(Response {
            status: 304,
            ..Response::default()
        });
        let (asked, found) = ask(inquiry, vec![unchanged]);
        assert_eq!((asked.len(), found), (1, Ok(kept)));
    }

    #[test]
    fn an_answer_that_is_none_says_why() {
        let failed = |response: Result<Response, Trouble>| {
            let (_, found) = ask(Inquiry::begin(&of("a/b"), "https://hub", None), vec![response]);
            found.expect_err("it is none").word()
        };
        let status = |status: u16, code: &str| {
            failed(Ok(Response {
                status,
                error_code: code.into(),
                ..Response::default()
            }))
        };
        assert_eq!(failed(Err(Trouble::BrokenOff)), "no_answer");
        assert_eq!(failed(said("<html>")), "wrong_answer");
        assert_eq!(failed(said("[]")), "wrong_answer");
        assert_eq!(status(401, "RepoNotFound"), "no_repository");
        assert_eq!(status(401, "GatedRepo"), "gated");
        assert_eq!(status(404, "RevisionNotFound"), "no_revision");
        assert_eq!(status(404, ""), "no_repository");
        assert_eq!(status(429, ""), "too_many");
        assert_eq!(status(503, ""), "no_answer");
        // Without its ETag nothing is unchanged.
        assert_eq!(status(304, ""), "no_answer");
    }
}
