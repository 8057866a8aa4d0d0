// The first half of the single file's script; style/boot.js is the other. The file carries what lies
// beside the page elsewhere, as base64 of gzip: each part is given an address, which boot.js finds.
const TYPES = { wasm: "application/wasm", js: "text/javascript", worker: "text/javascript" };

const unpack = async (carried, type) => {
  const bytes = Uint8Array.from(atob(carried.textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  carried.remove();
  return URL.createObjectURL(new Blob([await new Response(stream).arrayBuffer()], { type }));
};

const addresses = document.querySelector("script[data-wasm]").dataset;
await Promise.all(
  Object.keys(addresses).map(async (name) => {
    addresses[name] = await unpack(document.getElementById(`part-${name}`), TYPES[name]);
  }),
);
