// The panel of a fault of the program's own. It needs nothing of the program, which may have
// stopped: the words were left here in the page's language while all was well.
let words = {
  title: "VRAMscope stopped at a fault of its own",
  page: "What you entered is in the address: load the page again to go on.",
  worker: "What you entered is kept. The next change starts the calculation anew.",
  copy: "Copy report",
  copied: "Copied",
  reload: "Load again",
  version: "",
};

const vramscope = (globalThis.vramscope ??= {});

/** The words of the panel in the page's language. */
vramscope.faultWords = (title, page, worker, copy, copied, reload, version) => {
  words = { title, page, worker, copy, copied, reload, version };
};

/** Shows what happened; `stopped` says that the page itself stopped, not only its worker. */
vramscope.fault = (what, stopped) => {
  const shown = document.getElementById("fault");
  // The first fault tells most; those that follow from it are in the console.
  if (shown && (shown.dataset.stopped === "true" || !stopped)) return;
  shown?.remove();
  document.body.prepend(panel(what, stopped));
};

/** The worker answers again. */
vramscope.faultOver = () => {
  const shown = document.getElementById("fault");
  if (shown?.dataset.stopped === "false") shown.remove();
};

// What stops WebAssembly without a word of the program's, such as memory that ran out.
addEventListener("error", ({ error }) => {
  if (error instanceof WebAssembly.RuntimeError) vramscope.fault(`${error}`, true);
});

function panel(what, stopped) {
  const report = element("pre", `${what}\n${location.href}\n${navigator.userAgent}\nVRAMscope ${words.version}`);
  const section = element("section");
  section.id = "fault";
  section.className = "fault";
  section.dataset.testid = "fault";
  section.dataset.stopped = stopped;
  section.setAttribute("role", "alert");
  const tools = element("p");
  tools.className = "fault-tools";
  tools.append(copyButton(report));
  if (stopped) tools.append(button(words.reload, () => location.reload()));
  section.append(element("h2", words.title), element("p", stopped ? words.page : words.worker), report, tools);
  return section;
}

function copyButton(report) {
  const made = button(words.copy, () => {
    // Where the clipboard is refused, the text is marked, ready to be copied by hand.
    getSelection().selectAllChildren(report);
    if (document.execCommand("copy")) made.textContent = words.copied;
  });
  made.dataset.testid = "copy-report";
  return made;
}

function button(label, press) {
  const made = element("button", label);
  made.type = "button";
  made.className = "tool";
  made.onclick = press;
  return made;
}

function element(name, text = "") {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}
