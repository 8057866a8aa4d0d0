// Reads files for the page of diagnoses, and answers what the page asks of them: a worker with a program of its own,
// which is loaded when it is first needed. The page ends the worker when it is told to stop.
//
// Every message to the page has a `kind` and a `text`; those that answer a question, its `id`.

/** So many bytes are handed over at once. */
const PART = 8 << 20;

let program;
let begun;
/** Grows when the run changes: what was begun for the last one is given up. */
let run = 0;

onmessage = async ({ data }) => {
  try {
    begun ??= begin(data).catch((error) => {
      begun = undefined;
      throw error;
    });
    await begun;
    if (data.files) await read(data.files, data.run);
    else if (data.run !== undefined) await know(data.run);
    else if (data.language) tell("phrases", program.phrases(data.language), data.language);
    else if (data.columns) tell("columns", program.columns(...data.columns), data.id);
    else if (data.instant) tell("instant", program.instant(...data.instant), data.id);
  } catch (error) {
    tell("fault", String(error));
  }
};

const tell = (kind, text, id = "") => postMessage({ kind, text, id: String(id) });

async function begin({ js, wasm }) {
  program = await import(js);
  await program.default({ module_or_path: wasm });
}

async function read(files, named) {
  const whole = files.reduce((sum, file) => sum + file.size, 0);
  let before = 0;
  for (const file of files) {
    await take(file, (done) => tell("progress", JSON.stringify([before + done, whole, file.name])));
    before += file.size;
  }
  await know(named, true);
}

/** Takes in a file, of gzip unpacked, in parts: the page never holds it, and this worker holds it once. */
async function take(file, told) {
  const [first, second] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  const packed = first === 0x1f && second === 0x8b;
  if (program.begin(file.name, packed ? await unpackedSize(file) : file.size)) return;
  if (packed) await unpack(file, told);
  else {
    for (let at = 0; at < file.size; at += PART) {
      program.feed(new Uint8Array(await file.slice(at, at + PART).arrayBuffer()));
      told(Math.min(at + PART, file.size));
    }
  }
  told(file.size);
  program.end();
}

async function unpack(file, told) {
  let read = 0;
  const count = new TransformStream({
    transform(part, out) {
      read += part.byteLength;
      told(read);
      out.enqueue(part);
    },
  });
  const reader = file.stream().pipeThrough(count).pipeThrough(new DecompressionStream("gzip")).getReader();
  let fed = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      fed += value.byteLength;
      program.feed(value);
    }
  } catch (error) {
    // A file that is cut short still holds what comes before.
    if (fed === 0) throw error;
  }
}

/** What gzip says at its end; wrong for more than 4 GiB, and for files put one behind another. */
async function unpackedSize(file) {
  const tail = await file.slice(-4).arrayBuffer();
  return tail.byteLength === 4 ? new DataView(tail).getUint32(0, true) : 0;
}

/** Answers for a run, then tries its changes one by one; questions of the page come in between. */
async function know(named, always = false) {
  const mine = ++run;
  // While a person types, only the last entry counts.
  if (!always) await new Promise((go) => setTimeout(go, 300));
  if (mine !== run) return;
  program.know(named ?? "");
  tell("answer", program.answer());
  for (;;) {
    await new Promise((go) => setTimeout(go));
    if (mine !== run) return;
    const tried = program.tryNext();
    if (tried === undefined) break;
    tell("fix", tried);
  }
  const ladder = program.ladder();
  if (ladder !== undefined) tell("ladder", ladder);
}
