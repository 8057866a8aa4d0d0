// The first half of the single file's script; src/app/js/boot.js is the other. The file carries what lies
// beside the page elsewhere, as dense text of gzip: each part is given an address, which boot.js finds.

/** Bytes of a text of 91 letters, of which two hold 13 bits or 14: src/xtask/page/dense.rs writes it. */
const bytesOf = (text) => {
  const value = (at) => {
    const code = text.charCodeAt(at);
    return code - 33 - (code > 38) - (code > 60) - (code > 62);
  };
  const bytes = new Uint8Array(Math.ceil((text.length * 14) / 16));
  let [length, bits, count] = [0, 0, 0];
  for (let at = 0; at < text.length; at += 2) {
    const isPair = at + 1 < text.length;
    const read = value(at) + (isPair ? value(at + 1) * 91 : 0);
    bits |= read << count;
    count = isPair ? count + ((read & 8191) < 89 ? 14 : 13) : 8;
    for (; count > 7; count -= 8, bits >>>= 8) bytes[length++] = bits;
  }
  return bytes.subarray(0, length);
};

const unpacked = (part) => {
  const bytes = bytesOf(part.textContent);
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
