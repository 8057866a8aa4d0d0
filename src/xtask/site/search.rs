//! The search of the site: an index of all sections, and the script that looks into it. A script, not a file that is fetched, so
//! that it works where the site is opened from a folder.

use serde_json::json;

use super::page::Page;

/// Characters of a section that are searched: tables of thousands of rows would make the index as large as the site.
const MOST_CHARACTERS: usize = 2000;

/// Writes the script with the index of these pages, each with its address.
pub fn script<'a>(pages: impl Iterator<Item = (String, &'a Page)>) -> String {
    let mut entries = Vec::new();
    for (address, page) in pages {
        for section in &page.sections {
            let words: String = section.words.split_whitespace().collect::<Vec<_>>().join(" ");
            let words: String = words.chars().take(MOST_CHARACTERS).collect();
            entries.push(json!([
                format!("{address}#{}", section.anchor),
                page.title,
                section.title,
                words
            ]));
        }
    }
    format!("const INDEX = {};\n{SCRIPT}", serde_json::Value::from(entries))
}

const SCRIPT: &str = r#"const field = document.getElementById("search");
const list = document.getElementById("found");
const base = document.currentScript.src.replace(/search\.js$/, "");
const weigh = (words, [, page, title, text]) => {
  let weight = 0;
  for (const word of words) {
    const inTitle = title.toLowerCase().includes(word) || page.toLowerCase().includes(word);
    if (inTitle) weight += 5;
    else if (text.toLowerCase().includes(word)) weight += 1;
    else return 0;
  }
  return weight;
};
field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length ? INDEX.map((entry) => [weigh(words, entry), entry]).filter(([weight]) => weight) : [];
  found.sort(([a], [b]) => b - a);
  list.replaceChildren(...found.slice(0, 20).map(([, [to, page, title]]) => {
    const link = Object.assign(document.createElement("a"), { href: base + to, textContent: title });
    const item = document.createElement("li");
    item.append(link, page === title ? "" : ` (${page})`);
    return item;
  }));
  list.hidden = !words.length;
});
"#;
