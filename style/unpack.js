// The first half of the single file's script; style/boot.js is the other. The file carries what lies
// beside the page elsewhere, as base64 of gzip: each part is given an address, which boot.js finds.

const unpacked = (part) => {
  const bytes = Uint8Array.from(atob(part.textContent), (letter) => letter.charCodeAt(0));
  part.remove();
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
};

const made = (content, type) => URL.createObjectURL(new Blob([content], { type }));

/** An address that holds the content itself: a worker of a page from a file may not fetch what the page made. */
const holding = (content, type) =>
  new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.readAsDataURL(new Blob([content], { type }));
  });

/** The address of a part, by its name. */
const address = async (name, part) => {
  const content = unpacked(part);
  if (name === "wasm") return made(await content.arrayBuffer(), "application/wasm");
  if (name === "readerswasm" || name.startsWith("chunk")) return holding(await content.arrayBuffer(), "application/wasm");
  const text = await content.text();
  if (name.endsWith("js")) return holding(text, "text/javascript");
  return made(text, name === "worker" || name === "readers" ? "text/javascript" : "text/plain");
};

const parts = document.querySelector("script[data-wasm]").dataset;
for (const name of Object.keys(parts)) parts[name] = await address(name, document.getElementById(`part-${name}`));
