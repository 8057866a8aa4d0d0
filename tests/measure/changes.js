// In the page: makes one change after the other and times each from the event to the painted result.
// Arguments: a list of [entry, text], and whether the entry has had the focus for a while, as where people step or
// choose. Answer: a list of [entry, text, shown, painted] in ms.
const [changes, focused, done] = arguments;

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

const all = async () => {
  const times = [];
  for (const [entry, text] of changes) {
    if (focused) field(entry).focus();
    // Whatever the focus and the change before set off is over by then; no single change of the setup is tried yet.
    await new Promise((resolve) => setTimeout(resolve, 300));
    const changed = otherThan(shownNow());
    const begin = performance.now();
    enter(entry, text);
    const shown = (await changed.catch((error) => Promise.reject(`${entry} ${text}: ${error}`))) - begin;
    times.push([entry, text, shown, (await painted()) - begin]);
  }
  return times;
};

all().then(done, (error) => done(String(error)));
