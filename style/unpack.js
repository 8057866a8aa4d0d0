// The first half of the single file's script; style/boot.js is the other. The file carries what lies
// beside the page elsewhere, as base64 of gzip: each part is given an address, which boot.js finds.

const unpacked = (part) => {
  const bytes = Uint8Array.from(atob(part.textContent), (letter) => letter.charCodeAt(0));
  part.remove();
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
};

const textAddress = async (part) => URL.createObjectURL(new Blob([await unpacked(part).text()], { type: "text/plain" }));

const address = {
  en: textAddress,
  zhcn: textAddress,
  zhtw: textAddress,
  courseen: textAddress,
  coursezhcn: textAddress,
  coursezhtw: textAddress,
  wasm: async (part) => URL.createObjectURL(new Blob([await unpacked(part).arrayBuffer()], { type: "application/wasm" })),
  readerswasm: async (part) => URL.createObjectURL(new Blob([await unpacked(part).arrayBuffer()], { type: "application/wasm" })),
  readers: async (part) => URL.createObjectURL(new Blob([await unpacked(part).text()], { type: "text/javascript" })),
  readersjs: async (part) => `data:text/javascript,${encodeURIComponent(await unpacked(part).text())}`,
  worker: async (part) => URL.createObjectURL(new Blob([await unpacked(part).text()], { type: "text/javascript" })),
  // The worker of a page from a file may import this, but no address made by the page.
  js: async (part) => `data:text/javascript,${encodeURIComponent(await unpacked(part).text())}`,
};

const parts = document.querySelector("script[data-wasm]").dataset;
for (const name of Object.keys(parts)) parts[name] = await address[name](document.getElementById(`part-${name}`));
