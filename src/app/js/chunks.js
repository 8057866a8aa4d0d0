// The first lines of the program's glue, here and in a worker. Whoever starts it says where its chunks are.

/** A chunk of the program. */
const fetchChunk = async (name) => {
  // The page as one file leaves one out (src/xtask/page/single_file.rs).
  if (!vramscope.chunks[name]) throw new Error(`this copy of the page is without ${name}`);
  const response = await fetch(vramscope.chunks[name]);
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  const isTyped = response.headers.get("content-type")?.startsWith("application/wasm");
  // A server that does not know the type of WebAssembly; else it could not be compiled while it loads.
  return isTyped ? response : new Response(response.body, { headers: { "content-type": "application/wasm" } });
};

/** Bytes of gzip unpacked, up to where they are cut; nothing where they are more than `most`. */
vramscope.unpack = async (bytes, most) => {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const part = await reader.read().catch(() => ({ done: true }));
    if (part.done) break;
    size += part.value.length;
    if (size > most) return void reader.cancel();
    parts.push(part.value);
  }
  const all = new Uint8Array(size);
  for (const part of parts.reverse()) all.set(part, (size -= part.length));
  return all;
};
