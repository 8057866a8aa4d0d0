// In the page: makes one change after the other and times each from the event to the painted result.
// Arguments: a list of [entry, text], and how they are made. "set": the text is there at once, as when it is pasted;
// "chosen": so too, but the entry has had the focus for a while, as where people step or choose; "typed": a digit
// after the other, of which the last is timed. Answer: a list of [entry, text, shown, painted] in ms.
const [changes, how, done] = arguments;

// Between two keys: 60 words a minute.
const PACE_MS = 200;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const results = document.getElementById("results");
const shownNow = () => [...results.querySelectorAll("[data-value]")].map((e) => e.dataset.value).join(" ");

const painted = () =>
  new Promise((resolve) => {
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      // A frame's tasks run once it is painted.
      port1.onmessage = () => resolve(performance.now());
      port2.postMessage(null);
    });
  });

const otherThan = (before) =>
  new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("no result within 10 s")), 10_000);
    const observer = new MutationObserver(() => {
      if (shownNow() === before) return;
      observer.disconnect();
      clearTimeout(late);
      resolve(performance.now());
    });
    observer.observe(results, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-value"] });
  });

const field = (entry) => document.querySelector(`:is(input, select)[data-testid="${entry}"]`);

const enter = (entry, text) => {
  const control = field(entry);
  control.value = text;
  control.dispatchEvent(new Event(control.localName === "select" ? "change" : "input", { bubbles: true }));
};

const press = (key) => document.execCommand("insertText", false, key);

const all = async () => {
  const times = [];
  for (const [entry, text] of changes) {
    if (how !== "set") field(entry).focus();
    if (how === "typed") field(entry).select();
    // Whatever the focus and the change before set off is over by then; no single change of the setup is tried yet.
    await pause(300);
    const last = how === "typed" ? text.slice(-1) : text;
    for (const key of how === "typed" ? text.slice(0, -1) : "") {
      press(key);
      await pause(PACE_MS);
    }
    const changed = otherThan(shownNow());
    const begin = performance.now();
    if (how === "typed") press(last);
    else enter(entry, last);
    const shown = (await changed.catch((error) => Promise.reject(`${entry} ${text}: ${error}`))) - begin;
    times.push([entry, text, shown, (await painted()) - begin]);
  }
  return times;
};

all().then(done, (error) => done(String(error)));
