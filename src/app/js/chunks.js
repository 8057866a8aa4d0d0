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
