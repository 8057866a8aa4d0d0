//! Ways to begin: a text to paste, files to open, or a tool's defaults.

use gloo_file::File;
use leptos::prelude::*;

use super::Looked;
use super::phrases::Phrases;
use crate::i18n::use_i18n;
use crate::shell::Given;
use crate::widgets::{OpenFiles, dropped, read_launch};
use crate::worker::launched::LaunchText;

/// Tools, each with the least that it is started with.
const TOOLS: [(&str, &str); 7] = [
    ("LLaMA-Factory", "stage: sft\nfinetuning_type: lora\n"),
    ("ms-swift", "swift sft --tuner_type lora"),
    ("axolotl", "adapter: lora\n"),
    ("TRL SFT", "trl sft --use_peft"),
    ("TRL DPO", "trl dpo --use_peft"),
    ("TRL GRPO", "trl grpo --use_peft"),
    ("transformers", "torchrun train.py"),
];

/// Text box, file button, and the tools' defaults.
#[component]
pub fn Begin() -> impl IntoView {
    let phrases = Phrases::of(use_i18n());
    let looked = Looked::get();
    let text = RwSignal::new(String::new());
    let take = take(looked);
    let read = move |_| {
        let text = text.get_untracked();
        if !text.trim().is_empty() {
            add(looked, String::new(), text);
        }
    };
    let tools = TOOLS.map(|(name, least)| {
        view! {
            <button
                type="button"
                class="tool"
                data-testid="launch-tool"
                data-name=name
                on:click=move |_| add(looked, name.to_owned(), least.to_owned())
            >
                {name}
            </button>
        }
    });
    view! {
        <div class="launch-begin" {..dropped(take)}>
            <p class="muted small" id="launch-intro">{phrases.live("intro")}</p>
            <div class="field">
                <textarea
                    rows="9"
                    spellcheck="false"
                    autocomplete="off"
                    autofocus
                    data-testid="launch-text"
                    aria-label=phrases.live("paste")
                    aria-describedby="launch-intro"
                    placeholder="CUDA_VISIBLE_DEVICES=0 swift sft --model Qwen/Qwen2.5-VL-7B-Instruct …"
                    prop:value=text
                    on:input:target=move |ev| text.set(ev.target().value())
                ></textarea>
            </div>
            <div class="launch-tools">
                <button type="button" class="primary" data-testid="launch-read" on:click=read>
                    {phrases.live("read")}
                </button>
                <OpenFiles label=phrases.live("open").into_any() testid="launch-files" multiple=true take />
            </div>
            <p class="muted small launch-or">{phrases.live("defaults_of")}</p>
            <div class="launch-tools">{tools}</div>
        </div>
    }
}

/// Opens files beside those that are there.
pub fn take(looked: Looked) -> Callback<Vec<File>> {
    let given = Given::get();
    Callback::new(move |files: Vec<File>| {
        read_launch(
            given,
            files,
            looked
                .given
                .launch
                .with_untracked(|open| open.as_ref().map(|open| open.use_as).unwrap_or_default()),
        )
    })
}

fn add(looked: Looked, name: String, text: String) {
    looked.edit(|open| open.texts.push(LaunchText { name, text }));
}
