// <vramscope-widget model="llava-1.5-7b" gpu="RTX 4090" widget="timeline"></vramscope-widget>
//
// Shows a part of VRAMscope in any page: load this script from where VRAMscope is, and put the
// element where the part is to be. Attributes are the keys of VRAMscope's links (`model`, `gpu`,
// `batch`, `seq`, …) and these:
//   widget  verdict | phases | timeline | breakdown | attention | course | page (default)
//   theme   light | dark; else the reader's system decides
//   lang    a tag such as en or zh-TW; else the language of the text around it
//   title   what screen readers call the frame
//
// The frame tells its height by postMessage: { type: "vramscope:height", height, id }, with the
// height in CSS pixels and the `id` of its address, if any. A page that makes its own <iframe> can
// listen to the same message.
(() => {
  const home = new URL(".", document.currentScript.src);
  /** Languages, each with the subtags that tell it from others: `cargo xtask build` fills them in. */
  const LANGUAGES = [];
  /** Attributes of any element; all others are keys. */
  const COMMON = ["id", "class", "style", "slot", "title", "hidden", "dir", "role", "part", "tabindex", "lang"];

  /** The page's language for a tag such as `zh-Hant-HK`. */
  const language = (tag) => {
    const parts = tag.toLowerCase().split("-");
    const alike = LANGUAGES.filter(([name]) => name.split("-")[0] === parts[0]);
    return (alike.find(([, ...own]) => own.some((part) => parts.includes(part))) ?? alike[0])?.[0] ?? null;
  };

  class VramscopeWidget extends HTMLElement {
    #frame = document.createElement("iframe");
    #attributes = new MutationObserver(() => this.#show());
    #hear = (event) => this.#fit(event);

    connectedCallback() {
      Object.assign(this.#frame, { loading: "lazy", referrerPolicy: "no-referrer", allow: "clipboard-write" });
      Object.assign(this.#frame.style, { display: "block", width: "100%", height: "12rem", border: "0" });
      if (!this.style.display) this.style.display = "block";
      this.#show();
      this.replaceChildren(this.#frame);
      this.#attributes.observe(this, { attributes: true });
      window.addEventListener("message", this.#hear);
    }

    disconnectedCallback() {
      this.#attributes.disconnect();
      window.removeEventListener("message", this.#hear);
    }

    #show() {
      // A page of its own, not a part of the first page.
      const route = ["attention", "course"].find((page) => page === this.getAttribute("widget"));
      const isKey = (name) => !COMMON.includes(name) && !/^(aria|data)-/.test(name) && !(route && name === "widget");
      const keys = [...this.attributes].filter(({ name }) => isKey(name));
      const pairs = keys.map(({ name, value }) => `${name}=${encodeURIComponent(value)}`);
      const lang = language(this.closest("[lang]")?.lang ?? "");
      if (lang) pairs.push(`lang=${lang}`);
      const address = `${home}?embed=1#/${route ?? ""}?${pairs.join("&")}`;
      // A change after the `#` alone is taken up by the page without loading it again.
      if (this.#frame.src !== address) this.#frame.src = address;
      this.#frame.title = this.title || `VRAMscope: ${this.getAttribute("model") ?? "GPU memory of a training step"}`;
    }

    /** Only its own frame, and only a page of VRAMscope in it, may say how high it is. */
    #fit({ source, origin, data }) {
      if (source !== this.#frame.contentWindow || origin !== home.origin) return;
      if (data?.type !== "vramscope:height" || !(data.height > 0 && data.height < 20000)) return;
      this.#frame.style.height = `${Math.ceil(data.height)}px`;
    }
  }

  customElements.define("vramscope-widget", VramscopeWidget);
})();
