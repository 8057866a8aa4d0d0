// Starts the page's WebAssembly, here and in a worker: compiled once, run in both. A browser that
// cannot run it gets a message, never a blank page.
/** Languages, each with the subtags that tell it from others: `cargo xtask build` fills them in. */
const LANGUAGES = [];
const addresses = document.querySelector("script[data-wasm]").dataset;
const { js, wasm, worker } = addresses;
const at = (address) => new URL(address, document.baseURI).href;
/** Where the chunks of the program are, by name. */
const chunks = Object.fromEntries(
  Object.entries(addresses).flatMap(([name, address]) => (name.startsWith("chunk") ? [[name.slice(5), at(address)]] : [])),
);
(globalThis.vramscope ??= {}).chunks = chunks;

// The worker comes up beside the page, not after it; first of all, since it takes longest.
let first = attempt(newWorker);
const module = compile(at(wasm));
const known = {};
/** What the page says in a language: a promise of a line for each phrase. */
vramscope.phrases = (language) => {
  known[language] ??= text(at(addresses[language.toLowerCase().replace("-", "")]));
  // Where it could not be had, the next time is another try.
  known[language].catch(() => delete known[language]);
  return known[language];
};
// A head start; which language it is, the program decides.
vramscope.phrases(likelyLanguage());

/** A worker that answers the page; throws where the browser refuses workers. */
vramscope.startWorker = () => {
  const { made, refused } = first ?? attempt(newWorker);
  first = undefined;
  if (refused || made.refused) throw refused ?? new Error("the worker was refused");
  return made;
};

/** A worker that has its program and waits for the first file: who pastes need not wait for its start. */
let spare;
let isSpareWanted = false;
const program = () => ({ js: at(addresses.readersjs), wasm: at(addresses.readerswasm) });
const reader = () => new Worker(at(addresses.readers));

const standBy = () => {
  if (isSpareWanted === Boolean(spare)) return;
  spare?.terminate();
  spare = isSpareWanted ? reader() : undefined;
  if (!spare) return;
  // One that is refused now says so again when there is a file.
  spare.onerror = () => (spare = undefined);
  spare.postMessage(program());
};

/** Says whether such a worker should wait. */
vramscope.awaitDiagnosis = (wanted) => {
  isSpareWanted = wanted;
  standBy();
};

/** Reads files, and a text if there is one, in a worker of its own, which answers questions afterwards; `hear` gets the
 * kind of each message, its text, and what it answers. `run` is the run that they are of, as JSON, or empty. */
vramscope.diagnose = (files, text, run, hear) => {
  const all = [...files];
  if (text.trim()) all.push(new File([text], vramscope.pasted));
  const worker = spare ?? reader();
  spare = undefined;
  worker.onmessage = ({ data }) => {
    hear(data.kind, data.text, data.id);
    // The next paste finds one that is ready; this one has the changes of its run to try first.
    if (data.kind === "answer") setTimeout(standBy, 1000);
  };
  worker.onerror = (event) => hear("fault", event.message || "the worker was refused", "");
  worker.postMessage({ ...program(), files: all, run });
  return worker;
};
vramscope.pasted = "(pasted)";

/** What WebGL calls the GPU that draws this page; empty where the browser does not say. */
vramscope.renderer = () => {
  const gl = document.createElement("canvas").getContext("webgl");
  const names = gl?.getExtension("WEBGL_debug_renderer_info");
  const name = names && gl.getParameter(names.UNMASKED_RENDERER_WEBGL);
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return name || "";
};

try {
  const page = await import(at(js));
  const compiled = await module;
  // A new worker is given its messages by this thread. One that has none yet when the page begins to draw gets its program
  // once the page is drawn, and the first answer comes that much later; one that takes long to come up is not waited for.
  await Promise.race([first.made?.ready, new Promise((resolve) => setTimeout(resolve, 250))]);
  await page.default({ module_or_path: compiled });
} catch (error) {
  const message = document.createElement("p");
  message.className = "boot-error";
  message.setAttribute("role", "alert");
  message.textContent = `VRAMscope could not start: ${error}. It needs a browser with WebAssembly (any of the last three years).`;
  document.body.append(message);
  console.error(error);
}

/** Compiles while it loads; a server that does not know the type of WebAssembly makes it wait. */
async function compile(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  const typed = response.headers.get("content-type")?.startsWith("application/wasm");
  return typed ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer());
}

async function text(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  return response.text();
}

/** By the address, an earlier choice, or the browser. */
function likelyLanguage() {
  const named = /[?&#]lang=([\w-]+)/.exec(location.href)?.[1] ?? chosenLanguage() ?? navigator.language;
  const parts = named.toLowerCase().split("-");
  const alike = LANGUAGES.filter(([tag]) => tag.split("-")[0] === parts[0]);
  const [tag] = alike.find(([, ...own]) => own.some((part) => parts.includes(part))) ?? alike[0] ?? LANGUAGES[0];
  return tag;
}

function chosenLanguage() {
  try {
    // As src/app/shell/preferences.rs keeps it: JSON, and in earlier versions the name alone.
    return localStorage.getItem("vramscope.lang")?.replaceAll('"', "");
  } catch {
    return null;
  }
}

function newWorker() {
  // Not a module: Chromium refuses those to a page from a file. It imports all the same.
  const made = new Worker(at(worker));
  made.ready = new Promise((resolve) => {
    made.onerror = () => {
      made.refused = true;
      resolve();
    };
    // Its first message says that it listens, and is not for the program.
    const heard = (event) => {
      event.stopImmediatePropagation();
      resolve();
    };
    made.addEventListener("message", heard, { once: true });
  });
  made.postMessage({ js: at(js), chunks });
  // The first worker is made before the module is asked for. Where that cannot be compiled, the page says so.
  Promise.resolve().then(() => module).then((compiled) => made.postMessage({ module: compiled }), () => {});
  return made;
}

function attempt(make) {
  try {
    return { made: make() };
  } catch (refused) {
    return { refused };
  }
}
