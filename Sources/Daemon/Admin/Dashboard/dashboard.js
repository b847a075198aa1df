// The dashboard of Larder. It runs as it stands here: there is no build step, and nothing is loaded from elsewhere.
//
// Whatever comes from upstreams and clients is foreign text. It enters the page as text nodes only (the page's content security
// policy forbids everything else), isolated from the text direction around it. Whatever its source, text is put into the page by
// `append`, `tell` and the properties in `worded`, which make invisible characters visible. The address of a page is in the hash,
// so that the back button and links work.
"use strict";

(() => {
  const byID = id => document.getElementById(id);
  const main = byID("main");

  // ---------------------------------------------------------------- Elements

  const append = (node, children) => {
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false) continue;
      node.append(...child instanceof Node ? [child] : visible(String(child), false));
    }
    return node;
  };

  /// Properties that contain text for people.
  const worded = new Set(["title", "aria-label", "data-label", "placeholder"]);
  const element = (node, properties, children) => {
    for (const [name, value] of Object.entries(properties ?? {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : worded.has(name) ? plain(value) : value);
    }
    return append(node, children);
  };
  const el = (name, properties, ...children) => element(document.createElement(name), properties, children);
  const svg = (name, properties, ...children) =>
    element(document.createElementNS("http://www.w3.org/2000/svg", name), properties, children);

  // Control characters, marks that change the text direction, characters without width, unpaired surrogates; but not those that
  // choose between the forms of a letter or an emoji.
  const invisible = /(?![\uFE0E\uFE0F])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}]/u;
  const runs = /((?![\uFE0E\uFE0F])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}])/u;
  const controlName = character => {
    const code = character.codePointAt(0);
    // As terminals show them; few fonts have glyphs for them.
    if (code < 0x20 || code === 0x7f) return "^" + String.fromCodePoint(code ^ 0x40);
    return "U+" + code.toString(16).toUpperCase().padStart(4, "0");
  };
  /// The text as nodes.
  const visible = (text, keepsLines) => {
    if (!invisible.test(text)) return [document.createTextNode(text)];
    return text.split(runs).filter(part => part !== "").map(part => {
      if (!invisible.test(part) || keepsLines && (part === "\n" || part === "\t")) return document.createTextNode(part);
      return el("span", { class: "ctl", title: "U+" + part.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") }, controlName(part));
    });
  };
  /// Foreign text on one line.
  const foreign = (text, properties) => el("bdi", properties, visible(String(text), false));
  const code = text => el("code", { class: "foreign" }, foreign(text));

  /// The same for places that take plain text only, such as a title.
  const plain = text => invisible.test(text) ? append(document.createElement("span"), [String(text)]).textContent : String(text);
  /// Replaces the text of a node.
  const tell = (node, words) => {
    const text = plain(words);
    if (node.textContent !== text) node.textContent = text;
  };

  // ---------------------------------------------------------------- Words and numbers

  const grouped = number => Number(number).toLocaleString("en");
  const plural = (number, one, many = one + "s") => `${grouped(number)} ${number === 1 ? one : many}`;
  const size = bytes => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (bytes >= 1023.95 && unit < 4) { bytes /= 1024; unit++; }
    return (unit ? bytes.toFixed(bytes < 100 ? 1 : 0) : bytes) + " " + units[unit];
  };
  const percent = (part, whole) => whole ? (100 * part / whole).toFixed(part === whole || part === 0 ? 0 : 1) + " %" : "–";
  const seconds = value => {
    if (value === null || value === undefined) return "";
    if (value < 0.001) return Math.max(1, Math.round(value * 1e6)) + " µs";
    if (value < 1) return (value * 1000).toFixed(value < 0.1 ? 1 : 0) + " ms";
    return value.toFixed(value < 10 ? 2 : 0) + " s";
  };
  const span = total => {
    const [sign, value] = [total < 0 ? "−" : "", Math.abs(Math.round(total))];
    for (const [unit, name] of [[86400, "d"], [3600, "h"], [60, "min"]])
      if (value >= 2 * unit) return sign + Math.floor(value / unit) + " " + name;
    return sign + value + " s";
  };
  const relative = date => {
    const difference = (Date.now() - date) / 1000;
    if (Math.abs(difference) < 1.5) return "now";
    return difference > 0 ? span(difference) + " ago" : "in " + span(-difference);
  };
  const clock = date => date.toLocaleTimeString("en-GB");
  const when = text => {
    if (!text) return "";
    const date = new Date(text);
    return el("time", { datetime: text, title: date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "long" }), "data-relative": true },
      relative(date));
  };
  setInterval(() => {
    if (!document.hidden) for (const time of document.querySelectorAll("time[data-relative]")) {
      const text = relative(new Date(time.dateTime));
      if (time.textContent !== text) time.textContent = text;
    }
  }, 5000);

  /// A number that JavaScript's numbers cannot hold exactly.
  class Exact { constructor(text) { this.text = text; } }
  const parse = text => JSON.parse(text, (_, value, context) =>
    typeof value === "number" && context && context.source !== undefined && context.source !== String(value) ? new Exact(context.source) : value);
  const number = value => value instanceof Exact ? Number(value.text) : value;
  const spell = (value, indent = 0) => {
    if (value instanceof Exact) return value.text;
    if (value === null || typeof value !== "object") return JSON.stringify(value);
    const pad = "  ".repeat(indent + 1);
    const entries = Array.isArray(value) ? value.map(item => spell(item, indent + 1))
      : Object.entries(value).map(([name, item]) => JSON.stringify(name) + ": " + spell(item, indent + 1));
    const [open, close] = Array.isArray(value) ? "[]" : "{}";
    if (!entries.length) return open + close;
    return `${open}\n${pad}${entries.join(",\n" + pad)}\n${"  ".repeat(indent)}${close}`;
  };
  const short = value => {
    if (value instanceof Exact) return value.text;
    if (typeof value === "string") return value;
    const text = value !== null && typeof value === "object" ? spell(value).replace(/\s+/g, " ") : String(value);
    return text.length > 160 ? text.slice(0, 160) + "…" : text;
  };

  // ---------------------------------------------------------------- The daemon

  /// The daemon refused, with a reason.
  class Problem extends Error { constructor(status, detail) { super(detail); this.status = status; } }
  /// The daemon did not respond.
  class Gone extends Error {}
  /// Nobody is logged in.
  class Locked extends Error {}

  let session = sessionStorage.getItem("larder-session");
  const keep = value => {
    session = value;
    if (value) sessionStorage.setItem("larder-session", value);
    else sessionStorage.removeItem("larder-session");
  };

  const send = async (path, { method = "GET", body, accept = "application/json", signal, isOpen } = {}) => {
    const headers = { Accept: accept };
    if (session && !isOpen) headers.Authorization = "Bearer " + session;
    if (body) headers["Content-Type"] = "application/json";
    let response;
    try {
      response = await fetch(path, { method, headers, signal, body: body && JSON.stringify(body), credentials: "omit", redirect: "error", cache: "no-store" });
    } catch (error) {
      if (signal?.aborted) throw error;
      connection.lost();
      throw new Gone("Larder does not respond");
    }
    connection.found();
    if (response.status === 401 && !isOpen) {
      lock(session ? "This login has ended: Larder was restarted, or somebody logged it out." : "");
      throw new Locked("log in");
    }
    if (response.ok) return response;
    let detail = `Larder responded with status ${response.status}.`;
    try { const problem = await response.json(); detail = problem.detail ?? problem.title ?? detail; } catch {}
    throw new Problem(response.status, detail);
  };
  const text = async response => {
    try { return await response.text(); } catch (error) {
      if (error.name === "AbortError") throw error;
      connection.lost();
      throw new Gone("the connection broke off");
    }
  };
  const ask = async (path, options) => parse(await text(await send(path, options)));
  const target = (path, query) => {
    const pairs = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
    return pairs.length ? path + "?" + new URLSearchParams(pairs) : path;
  };
  const path = (...parts) => "/" + parts.map(encodeURIComponent).join("/");

  /// Reads server-sent events; ends when the stream does.
  const listen = async (path, options, each) => {
    const response = await send(path, { ...options, accept: "text/event-stream" });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    let event = { name: "message", data: [], id: "" };
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        const lines = (rest + value).split(/\r\n|\n|\r/);
        rest = lines.pop();
        for (const line of lines) {
          if (line === "") {
            if (event.data.length) each(event.name, parse(event.data.join("\n")), event.id);
            event = { name: "message", data: [], id: event.id };
            continue;
          }
          const colon = line.indexOf(":");
          const [field, content] = colon < 0 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
          if (field === "event") event.name = content;
          else if (field === "data") event.data.push(content);
          else if (field === "id") event.id = content;
        }
      }
    } finally { reader.cancel().catch(() => {}); }
  };

  const pause = (milliseconds, signal) => new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });

  /// Whether the daemon can be reached; the banner says so, and says when it is back.
  const connection = {
    isUp: true,
    waiting: [],
    last: null,
    banner(words, isCalm) {
      const banner = byID("banner");
      banner.hidden = !words;
      banner.classList.toggle("calm", Boolean(isCalm));
      tell(banner, words);
    },
    found() {
      this.last = new Date();
      if (this.isUp) return;
      this.isUp = true;
      this.banner("Larder responds again.", true);
      setTimeout(() => { if (this.isUp) this.banner(""); }, 3000);
      for (const resume of this.waiting.splice(0)) resume();
      if (page.hasFailed) show();
    },
    async lost() {
      if (!this.isUp) return;
      this.isUp = false;
      this.banner(`Larder does not respond${this.last ? " since " + clock(this.last) : ""}. This page tries again until it does.`);
      for (let wait = 1; !this.isUp; wait = Math.min(wait * 1.6, 8)) {
        await pause(wait * 1000);
        try { await (await fetch("/healthz", { cache: "no-store" })).text(); this.found(); } catch {}
      }
    },
    /// Resolves once it can be reached.
    up() { return this.isUp ? Promise.resolve() : new Promise(resolve => this.waiting.push(resolve)); },
  };

  /// Repeats something while the page is shown and visible; the work may say when it is due next.
  const repeat = async (milliseconds, signal, work) => {
    while (!signal.aborted) {
      try {
        const wish = await work();
        await pause(wish ?? milliseconds, signal);
        while (document.hidden) await pause(500, signal);
      } catch (error) {
        if (signal.aborted || error instanceof Locked) return;
        if (!(error instanceof Gone)) throw error;
        await connection.up();
      }
    }
  };

  // ---------------------------------------------------------------- Parts of pages

  const heading = (title, { crumbs, sub, tools } = {}) => el("div", { class: "head" },
    crumbs && el("nav", { class: "crumbs", "aria-label": "Above this page" }, crumbs),
    el("h1", { tabindex: "-1" }, title), tools, sub && el("p", { class: "sub" }, sub));
  const section = (title, aside, ...children) => el("section", { class: "section" },
    el("div", { class: "bar" }, el("h2", {}, title), aside), children);
  const card = (...children) => el("div", { class: "card" }, children);
  const empty = (title, ...words) => el("p", { class: "empty" }, el("strong", {}, title), words);
  const pill = (word, kind = "") => el("span", { class: "pill " + kind }, word);
  const button = (words, action, kind = "") => el("button", { type: "button", class: kind, onclick: action }, words);
  const facts = pairs => el("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) =>
    [el("dt", {}, name), el("dd", {}, value)]));
  const complaint = (error, retry) => el("div", { class: "empty", role: "alert" }, el("strong", {}, "That did not work"),
    el("p", {}, foreign(error.message)), retry && el("p", {}, button("Try again", retry, "quiet")));

  let fieldNumber = 0;
  const field = (label, control, hint) => {
    control.id ||= "field-" + ++fieldNumber;
    const note = hint && el("span", { class: "hint", id: control.id + "-hint" }, hint);
    if (note) control.setAttribute("aria-describedby", note.id);
    return el("div", { class: "field" }, el("label", { for: control.id }, label), control, note);
  };
  const select = (value, choices, properties) => el("select", properties, choices.map(([key, name]) =>
    el("option", { value: key, selected: key === value }, name)));

  /// A table; on a phone each row is a card, with the main cell first. The roles survive that, which CSS would take away.
  const table = (label, columns) => {
    const body = el("tbody", { role: "rowgroup" });
    const head = el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, columns.map(column =>
      el("th", { scope: "col", role: "columnheader", class: [column.width, column.number && "num"].filter(Boolean).join(" ") }, column.title))));
    const node = el("table", { class: "rows stack", role: "table", "aria-label": label }, head, body);
    const row = cells => el("tr", { role: "row" }, columns.map((column, index) => {
      const content = cells[index];
      const isEmpty = content === "" || content === null || content === undefined;
      const kinds = [column.number && "num", column.main ? "main" : "", column.wraps ? "wrapped" : "cut", isEmpty && "none"];
      return el("td", { role: "cell", class: kinds.filter(Boolean).join(" "), "data-label": column.main || column.bare ? null : column.title.toLowerCase() }, content);
    }));
    // A column without any value leaves its room to the others.
    new MutationObserver(() => {
      const rows = [...body.rows];
      for (let index = 0; index < columns.length; index++) {
        const isEmpty = rows.length > 0 && rows.every(one => one.cells[index].classList.contains("none"));
        for (const one of [head.rows[0], ...rows]) one.cells[index].hidden = isEmpty && !columns[index].main;
      }
    }).observe(body, { childList: true });
    return { node: card(node), body, row, add(...cells) { body.append(row(cells)); } };
  };

  const waiting = (place, what) => {
    const words = el("p", { class: "wait", role: "status" });
    const begun = Date.now();
    place.replaceChildren(words);
    // A quick response needs no message.
    const timer = setInterval(() => {
      const passed = Math.round((Date.now() - begun) / 1000);
      words.textContent = `Waiting for ${what}…` + (passed > 3 ? ` (${passed} s)` : "");
      if (!words.isConnected) clearInterval(timer);
    }, 300);
    return () => clearInterval(timer);
  };
  /// Loads something into a place, with a message while it waits. The latest request wins, whichever response comes last.
  const fill = async (place, what, signal, work) => {
    const turn = place.turn = {};
    const isOver = () => signal.aborted || place.turn !== turn;
    const done = waiting(place, what);
    try {
      const content = await work();
      if (!isOver()) place.replaceChildren(...[content].flat(Infinity).filter(Boolean));
    } catch (error) {
      if (isOver() || error instanceof Locked) return;
      if (error instanceof Gone) page.hasFailed = true;
      place.replaceChildren(complaint(error, () => fill(place, what, signal, work)));
    } finally { done(); }
  };

  /// Reads a list whose pages may be short, as those of a search, until there are as many rows as wanted; says how far it
  /// is, shows what it has found, and can be stopped.
  const readOn = async (place, limit, after, read, draw) => {
    const found = { rows: [], examined: 0, next: after };
    const words = el("span", { role: "status" });
    let isStopped = false;
    const note = el("div", { class: "pager" }, words, button("Stop", () => { isStopped = true; }, "quiet"));
    const shown = el("div", {});
    for (;;) {
      const { rows, examined, next } = await read(found.next, limit - found.rows.length);
      found.rows.push(...rows);
      found.examined += examined ?? 0;
      found.next = next;
      if (!next || isStopped || found.rows.length >= limit) return found;
      words.textContent = `Searching: ${found.examined ? grouped(found.examined) + " looked at, " : ""}${grouped(found.rows.length)} found so far…`;
      if (!note.isConnected) place.replaceChildren(note, shown);
      if (rows.length) shown.replaceChildren(draw(found.rows));
    }
  };

  /// Asks for confirmation; anything but a clear yes counts as no.
  const confirm = (title, content, yes, isDangerous) => new Promise(resolve => {
    const dialog = byID("dialog");
    tell(byID("dialog-title"), title);
    byID("dialog-text").replaceChildren(...[content].flat());
    byID("dialog-yes").textContent = yes;
    byID("dialog-yes").className = isDangerous ? "danger" : "";
    byID("dialog-no").onclick = event => { event.preventDefault(); dialog.close("no"); };
    byID("dialog-yes").onclick = event => { event.preventDefault(); dialog.close("yes"); };
    dialog.returnValue = "no";
    dialog.onclose = () => resolve(dialog.returnValue === "yes");
    dialog.showModal();
    byID("dialog-no").focus();
  });

  // Colours JSON by its tokens; the text stays the same.
  const tokens = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*)|\b(true|false|null)\b/g;
  const coloured = text => {
    if (text.length > 300_000) return visible(text, true);
    const nodes = [];
    let last = 0;
    for (const match of text.matchAll(tokens)) {
      if (match.index > last) nodes.push(visible(text.slice(last, match.index), true));
      const [all, string, colon, digits] = match;
      if (string) nodes.push(el("span", { class: colon ? "t-key" : "t-string" }, visible(string, true)), visible(colon ?? "", true));
      else nodes.push(el("span", { class: digits ? "t-number" : "t-word" }, all));
      last = match.index + all.length;
    }
    nodes.push(visible(text.slice(last), true));
    return nodes;
  };
  /// JSON on many lines; only the white space outside of strings changes.
  const indented = text => {
    let [result, depth, isText] = ["", 0, false];
    for (let at = 0; at < text.length; at++) {
      const character = text[at];
      if (isText) {
        result += character;
        if (character === "\\") result += text[++at] ?? "";
        else if (character === '"') isText = false;
      } else if (character === '"') { isText = true; result += character; }
      else if (/\s/.test(character)) continue;
      else if (character === "{" || character === "[") {
        const close = character === "{" ? "}" : "]";
        const next = text.slice(at + 1).match(/^\s*(.)/)?.[1];
        if (next === close) { result += character + close; at = text.indexOf(close, at); }
        else result += character + "\n" + "  ".repeat(++depth);
      } else if (character === "}" || character === "]") result += "\n" + "  ".repeat(depth = Math.max(0, depth - 1)) + character;
      else if (character === ",") result += ",\n" + "  ".repeat(depth);
      else if (character === ":") result += ": ";
      else result += character;
    }
    return result;
  };
  const bodyText = (label, text, isJSON) => el("pre", { class: "body", tabindex: "0", role: "region", "aria-label": label },
    isJSON ? coloured(text) : visible(text, true));

  // ---------------------------------------------------------------- Charts

  /// What became of requests, in the order in which bars are stacked: how the daemon names it, how it is drawn and called.
  const results = [["hits", "f-hit", "hits"], ["stale", "f-stale", "stale"], ["forwarded", "f-miss", "upstream asked"], ["failed", "f-error", "failed"]];
  const legend = (...entries) => el("div", { class: "legend", "aria-hidden": "true" }, entries.map(([kind, words]) => el("span", {}, el("i", { class: kind }), words)));
  const resultLegend = () => legend(...results.map(([, kind, words]) => [kind, words]));
  const resultWords = one => [plural(one.requests, "request"), ...results.filter(([name]) => one[name]).map(([name, , words]) => `${grouped(one[name])} ${words}`)].join(", ");

  /// The minutes of the last hour, from the daemon's intervals; the last one is not over.
  const minutes = traffic => {
    const step = Math.max(1, Math.round(60 / traffic.interval));
    const sums = Array.from({ length: 60 }, () => ({ requests: 0, hits: 0, stale: 0, forwarded: 0, failed: 0, served: 0 }));
    const count = traffic.requests.length;
    for (let back = 0; back < count && back < 60 * step; back++) {
      const [minute, at] = [sums[59 - Math.floor(back / step)], count - 1 - back];
      minute.requests += traffic.requests[at];
      minute.served += traffic.hits[at];
      minute.hits += traffic.hits[at] - traffic.stale[at];
      minute.stale += traffic.stale[at];
      minute.failed += traffic.failed[at];
      minute.forwarded += Math.max(0, traffic.requests[at] - traffic.hits[at] - traffic.failed[at]);
    }
    return sums;
  };

  /// A chart of `count` equal times; `words` says what a value means, `at` when it was.
  const chart = (title, { count, span, words, at, axis }) => {
    const picture = svg("svg", { viewBox: "0 0 600 100", preserveAspectRatio: "none", "aria-hidden": "true" });
    const said = el("span", {});
    const scale = el("div", { "aria-hidden": "true" });
    const plot = el("div", { class: "plot", role: "img", tabindex: "0" }, picture, scale);
    const below = el("div", { class: "axis", "aria-hidden": "true" }, axis.map(one => el("span", {}, one)));
    const node = el("figure", { class: "card chart" }, el("figcaption", {}, el("h3", {}, title), said), plot, below);
    let [data, pointed] = [[], null];
    const describe = () => {
      const one = pointed === null ? null : data[pointed];
      said.textContent = one ? `${at(pointed)}: ${words(one)}` : said.dataset.summary ?? "";
    };
    const point = index => { pointed = index; describe(); };
    plot.addEventListener("pointermove", event => {
      const box = picture.getBoundingClientRect();
      point(Math.min(count - 1, Math.max(0, Math.floor(count * (event.clientX - box.left) / box.width))));
    });
    plot.addEventListener("pointerleave", () => point(null));
    plot.addEventListener("blur", () => point(null));
    plot.addEventListener("keydown", event => {
      if (event.key === "ArrowLeft") point(Math.max(0, (pointed ?? count) - 1));
      else if (event.key === "ArrowRight") point(Math.min(count - 1, (pointed ?? -1) + 1));
      else return;
      event.preventDefault();
    });
    return {
      node,
      /// `lines`: heights from 0 to 100, and their labels.
      draw(values, summary, lines, shapes, axis) {
        data = values;
        plot.setAttribute("aria-label", `${title}, ${span}: ${summary}`);
        said.dataset.summary = summary;
        describe();
        scale.replaceChildren(...lines.map(([height, label]) => {
          const line = el("span", { class: "scale" }, label);
          line.style.top = 100 - height + "%";
          return line;
        }));
        if (axis) below.replaceChildren(...axis.map(one => el("span", {}, one)));
        picture.replaceChildren(svg("path", { class: "grid", d: lines.map(([height]) => `M0 ${100 - height}H600`).join("") }), ...shapes);
      },
    };
  };
  const round = value => {
    if (value <= 4) return 4;
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 4, 5, 10].map(factor => factor * power).find(candidate => candidate >= value);
  };
  /// Bars of results, one above the other; times without requests are null.
  const resultBars = (values, top) => {
    const width = 600 / values.length;
    return values.flatMap((one, index) => {
      let y = 100;
      return one ? results.map(([name, kind]) => {
        const height = 100 * one[name] / top;
        y -= height;
        return one[name] > 0 ? svg("rect", { class: kind, x: (index + 0.1) * width, y, width: 0.8 * width, height }) : null;
      }) : [];
    }).filter(Boolean);
  };
  /// A line through the heights that are known, each as long as its time.
  const steps = (heights, kind) => {
    const width = 600 / heights.length;
    let [line, isOn] = ["", false];
    heights.forEach((height, index) => {
      if (height !== null) line += `${isOn ? "L" : "M"}${(index + 0.1) * width} ${100 - height}H${(index + 0.9) * width}`;
      isOn = height !== null;
    });
    return line ? [svg("path", { class: "line " + kind, d: line })] : [];
  };

  const trafficCharts = () => {
    const hour = { count: 60, span: "the last hour", axis: ["an hour ago", "now"], words: resultWords, at: index => index === 59 ? "this minute" : 59 - index + " min ago" };
    const requests = chart("Requests per minute", hour);
    const ratio = chart("Hit ratio", hour);
    requests.node.append(resultLegend());
    ratio.node.append(legend(["f-hit", "requests for which the upstream was not asked"]));
    return {
      node: el("div", { class: "charts" }, requests.node, ratio.node),
      draw(traffic) {
        const sums = minutes(traffic);
        const sum = name => sums.reduce((total, one) => total + one[name], 0);
        const [all, hits, failed, stale] = [sum("requests"), sum("served"), sum("failed"), sum("stale")];
        const most = Math.max(...sums.map(one => one.requests));
        const top = round(most);
        requests.draw(sums, all ? `${grouped(all)} in all, ${grouped(most)} at most` : "no requests", [[0, "0"], [50, grouped(top / 2)], [100, grouped(top)]], resultBars(sums, top));
        ratio.draw(sums, all ? `${percent(hits, all)} of ${plural(all, "request")}` : "no requests", [[0, "0 %"], [50, "50 %"], [100, "100 %"]],
          steps(sums.map(one => one.requests ? 100 * one.served / one.requests : null), "l-hit"));
        return { all, hits, failed, stale };
      },
    };
  };

  const percentiles = [["p50", "l-hit", "half"], ["p95", "l-p95", "95 %"], ["p99", "l-p99", "99 %"]];
  const dayCharts = () => {
    let start = Date.now() - 86_400_000;
    const time = index => new Date(start + index * 600_000);
    const day = { count: 144, span: "the last day", axis: [], at: index => `${clock(time(index)).slice(0, 5)} to ${index === 143 ? "now" : clock(time(index + 1)).slice(0, 5)}` };
    const took = one => percentiles.map(([name]) => `${name} ${seconds(number(one[name])) || "–"}`).join(", ");
    const outcomes = chart("Requests per ten minutes", { ...day, words: resultWords });
    const times = chart("Response time", { ...day, words: one => one.p50 === undefined ? "hits from memory only" : took(one) });
    outcomes.node.append(resultLegend());
    times.node.append(legend(...percentiles.map(([name, kind]) => [kind, name]), ["none", "on a scale of powers of ten"]));
    return {
      node: el("div", { class: "charts" }, outcomes.node, times.node),
      draw(history) {
        start = Date.parse(history.start);
        const values = Array(144).fill(null);
        for (const { time, figures } of history.intervals) values[Math.round((Date.parse(time) - start) / 1000 / history.interval)] = figures;
        const axis = [...[0, 36, 72, 108].map(index => clock(time(index)).slice(0, 5)), "now"];
        const all = number(history.total.requests);
        const top = round(Math.max(...values.map(one => one ? one.requests : 0)));
        outcomes.draw(values, all ? `${grouped(all)} in all, ${grouped(number(history.total.failed))} failed` : "no requests", [[0, "0"], [50, grouped(top / 2)], [100, grouped(top)]], resultBars(values, top), axis);
        // Times differ by powers of ten.
        const known = values.flatMap(one => one && one.p50 !== undefined ? [number(one.p50), number(one.p99)] : []);
        const lowest = known.length ? Math.floor(Math.log10(Math.max(1e-4, Math.min(...known)))) : -3;
        const highest = known.length ? Math.max(lowest + 1, Math.ceil(Math.log10(Math.max(...known)))) : 0;
        const height = value => Math.max(0, Math.min(100, 100 * (Math.log10(Math.max(1e-6, value)) - lowest) / (highest - lowest)));
        const lines = Array.from({ length: highest - lowest + 1 }, (_, index) => [100 * index / (highest - lowest), power(lowest + index)]);
        times.draw(values, known.length ? took(history.total) : "none measured", lines,
          percentiles.toReversed().flatMap(([name, kind]) => steps(values.map(one => one && one[name] !== undefined ? height(number(one[name])) : null), kind)), axis);
      },
    };
  };
  /// A power of ten in seconds, such as 10 ms.
  const power = exponent => exponent >= 0 ? 10 ** exponent + " s" : exponent >= -3 ? 10 ** (exponent + 3) + " ms" : 10 ** (exponent + 6) + " µs";

  // ---------------------------------------------------------------- Links between pages

  const pageLink = (parts, query = {}) => target("#" + path(...parts), query);
  const objectLink = (model, id, more = {}) =>
    el("a", { href: pageLink(["objects", model, id], more), class: "foreign" }, foreign(`${model} ${id}`));
  const documentLink = (row, words = row.url) => row.id
    ? el("a", { href: pageLink(["documents", String(row.id)]), class: "foreign mono" }, foreign(words)) : code(words);
  const outcomeKinds = { hit: "good", composed: "good", stale: "warn", offline: "warn", "stale-if-error": "warn", error: "bad" };
  const outcome = word => pill(word, outcomeKinds[word]);
  const statusPill = status => el("span", { class: status >= 500 || status === 499 ? "pill bad" : status >= 400 ? "pill warn" : "pill" }, String(status));

  // ---------------------------------------------------------------- Overview

  /// In the words of `larder status`.
  const states = { reachable: "good", unreachable: "bad", slow: "bad", failing: "bad", backing_off: "warn" };
  const upstreamCard = one => {
    const limit = one.rate_limit;
    const share = limit && limit.limit ? Math.max(0, Math.min(1, number(limit.remaining) / number(limit.limit))) : null;
    return el("article", { class: "card upstream" },
      el("div", { class: "top" }, el("h3", {}, el("a", { href: pageLink(["traffic"], { upstream: one.name }) }, foreign(one.name))), pill(one.state, states[one.state])),
      el("p", { class: "origin mono" }, foreign(one.origin)),
      el("p", {}, plural(number(one.requests), "request"), number(one.failures) ? `, ${plural(number(one.failures), "failure")}` : ", no failures"),
      one.unreachable_since && el("p", { class: "note bad" }, "no response since ", when(one.unreachable_since),
        one.is_held_back && "; requests are not sent until a connection can be made"),
      one.slow_since && el("p", { class: "note bad" }, "no response in time since ", when(one.slow_since)),
      one.failing_since && el("p", { class: "note bad" }, "its responses fail since ", when(one.failing_since)),
      one.back_off_until && el("p", { class: "note" }, "asked again ", when(one.back_off_until)),
      limit && el("div", {},
        el("p", { class: "note" }, `${grouped(number(limit.remaining))} of ${limit.limit === undefined || limit.limit === null ? "?" : grouped(number(limit.limit))} requests left`,
          limit.resource ? [" (", foreign(limit.resource), ")"] : "", limit.reset ? [", renewed ", when(limit.reset)] : ""),
        share === null ? null : el("div", { class: "meter", "aria-hidden": "true" }, svg("svg", { viewBox: "0 0 100 1", preserveAspectRatio: "none" },
          svg("rect", { class: share < 0.1 ? "f-error" : "f-hit", width: 100 * share, height: 1 })))),
      one.last_error && el("p", { class: ["failing", "unreachable"].includes(one.state) ? "note bad" : "note" }, "last error ", when(one.last_error.time), ": ", foreign(one.last_error.message)));
  };

  const figure = name => {
    const [value, note] = [el("span", {}, "…"), el("small", {}, " ")];
    return {
      node: el("div", {}, el("dt", {}, name), el("dd", {}, value, note)),
      set(words, small) {
        if (value.textContent !== words) value.textContent = words;
        note.replaceChildren(...[small ?? " "].flat());
      },
    };
  };

  const overview = async ({ signal }) => {
    const every = ["Requests, last hour", "Hit ratio, last hour", "Failed, last hour", "Objects", "Documents", "Store"].map(figure);
    const [requests, ratio, failures, objects, documents, store] = every;
    const notes = el("div", {});
    const charts = trafficCharts();
    const upstreams = el("div", { class: "upstreams" });
    const latest = el("div", {});
    const warnings = el("div", {});
    main.append(heading("Overview"), notes, el("dl", { class: "figures" }, every.map(one => one.node)), charts.node,
      section("Upstreams", el("a", { href: "#/traffic" }, "The last day"), upstreams),
      section("Latest requests", el("a", { href: "#/requests" }, "All requests"), latest),
      section("Warnings", el("a", { href: "#/warnings" }, "All warnings"), warnings));
    for (const [place, what] of [[upstreams, "the upstreams"], [latest, "the requests"], [warnings, "the warnings"]]) waiting(place, what);

    const unknown = (error, what) => {
      if (error instanceof Problem && error.status === 404) return card(empty(`No ${what}`, `This version of Larder does not report its ${what}.`));
      throw error;
    };
    // Old rows stay as they are: somebody may be reading one, or have the focus there.
    const redraw = (place, response, make) => {
      const state = JSON.stringify(response);
      if (place.shown !== state) place.replaceChildren(...make());
      place.shown = state;
    };
    const rows = requestTable("The latest requests");
    await Promise.all([
      repeat(5000, signal, async () => {
        const traffic = await ask("/traffic", { signal });
        const { all, hits, failed, stale } = charts.draw(traffic);
        tell(byID("version"), "Larder " + traffic.version);
        requests.set(grouped(all), `${plural(traffic.total.requests, "request")} since the start`);
        ratio.set(percent(hits, all), stale ? `${grouped(stale)} of them stale` : `${percent(traffic.total.hits, traffic.total.requests)} since the start`);
        failures.set(grouped(failed), `${grouped(traffic.total.failed)} since the start`);
      }),
      repeat(10000, signal, async () => {
        const begun = performance.now();
        const status = await ask("/status", { signal });
        // Counting takes a while in a large store, so it is done less often there.
        const wait = Math.max(10000, 50 * (performance.now() - begun));
        objects.set(grouped(status.store.objects), el("a", { href: "#/objects" }, "by model"));
        documents.set(grouped(status.store.documents), el("a", { href: "#/documents" }, "stored responses"));
        store.set(size(status.store.bytes), `of ${size(status.store.maximum)}`);
        redraw(notes, status.notes, () => status.notes.length ? [el("ul", { class: "card notes", "aria-label": "What is to be known or done" },
          status.notes.map(one => el("li", { class: one.needs_attention ? "bad" : null }, pill(one.needs_attention ? "attention" : "note", one.needs_attention ? "bad" : ""), " ", foreign(one.text))))] : []);
        return wait;
      }),
      repeat(5000, signal, async () => {
        try {
          const response = await ask("/upstreams", { signal });
          redraw(upstreams, response, () => response.upstreams.map(upstreamCard));
        } catch (error) { upstreams.replaceChildren(unknown(error, "upstreams")); }
      }),
      (async () => {
        let seen = null;
        await repeat(2000, signal, async () => {
          let response;
          try { response = await ask(target("/requests", { limit: 8 }), { signal }); } catch (error) { latest.replaceChildren(unknown(error, "requests")); return; }
          if (!response.requests.length) latest.replaceChildren(card(empty("No requests yet", "Point a program at Larder's address, and its requests appear here.")));
          else {
            rows.add(response.requests, seen, 8);
            if (rows.node.parentNode !== latest) latest.replaceChildren(rows.node);
          }
          seen = response.next;
        });
      })(),
      repeat(15000, signal, async () => {
        const response = await ask("/warnings?limit=3", { signal });
        redraw(warnings, response, () => [response.warnings.length ? card(response.warnings.map(one => warningNode(one, true)))
          : card(empty("No warnings", "Everything that was received fits the models and routes."))]);
      }),
    ]);
  };

  // ---------------------------------------------------------------- Traffic

  const subjects = [["url", "URLs", "search"], ["route", "Routes", "route"], ["program", "Programs", "program"], ["principal", "Principals", null]];
  const trafficPage = async ({ signal, query }) => {
    const wanted = { upstream: query.get("upstream") ?? "", route: query.get("route") ?? "", period: query.get("period") ?? "hour", order: query.get("order") ?? "requests" };
    const link = change => pageLink(["traffic"], Object.fromEntries(Object.entries({ ...wanted, ...change }).map(([name, value]) => [name, value === { period: "hour", order: "requests" }[name] ? "" : value])));
    const go = change => { history.replaceState(null, "", link(change)); Object.assign(wanted, change); };
    const figures = ["Requests", "From the cache", "Stale", "Failed", "p50", "p95", "p99"].map(figure);
    const [requests, cached, stale, failed, ...times] = figures;
    const charts = dayCharts();
    const [routes, top, budgets] = [el("div", {}), el("div", {}), el("div", {})];
    const upstream = select("", [["", "all"]], { onchange: () => { location.hash = link({ upstream: upstream.value, route: "" }); } });
    const route = select("", [["", "all"]], { onchange: () => { location.hash = link({ route: route.value }); } });
    const period = select(wanted.period, [["minute", "last minute"], ["hour", "last hour"], ["day", "last day"]], { onchange: () => { go({ period: period.value }); drawTop(); } });
    const order = select(wanted.order, [["requests", "requests"], ["upstream_requests", "upstream requests"], ["bytes", "bytes"], ["seconds", "time"]], { onchange: () => { go({ order: order.value }); drawTop(); } });
    main.append(heading("Traffic", { sub: "The last day by upstream and route. Response times are those of requests that were no hits from memory: these take microseconds." }),
      el("div", { class: "tools" }, field("Upstream", upstream), field("Route", route)),
      el("dl", { class: "figures" }, figures.map(one => one.node)), charts.node, section("By route, last day", null, routes),
      section("Who asks", null, el("div", { class: "tools" }, field("Period", period), field("Most", order)), top),
      section("Rate limits", null, budgets));
    for (const [place, what] of [[routes, "the routes"], [top, "the lists"], [budgets, "the rate limits"]]) waiting(place, what);
    const offer = (control, value, values) => {
      const all = [...new Set([...values, value])].filter(Boolean).sort();
      if (control.known === all.join("\n")) return;
      control.known = all.join("\n");
      control.replaceChildren(...select(value, [["", "all"], ...all.map(one => [one, plain(one)])]).children);
      control.value = value;
    };
    const drawRoutes = series => {
      const shown = series.filter(one => !wanted.upstream || one.upstream === wanted.upstream);
      if (!shown.length) return routes.replaceChildren(card(empty("No requests in the last day", "Point a program at Larder's address, and its requests appear here.")));
      const hasMany = new Set(shown.map(one => one.upstream)).size > 1;
      const made = table("Requests by route", [{ title: "Route", main: true, wraps: true }, { title: "Upstream", width: "w-m", wraps: true },
        ...["Requests", "From the cache", "Stale", "Failed", "p50", "p95", "p99"].map(title => ({ title, width: title === "From the cache" ? "w-m" : "w-s", number: true }))]);
      for (const { upstream, route, figures: one } of shown.slice(0, 50)) {
        const row = made.row([el("a", { href: link({ upstream, route }), class: "foreign mono", "aria-current": route === wanted.route ? "true" : null }, foreign(route)), hasMany ? foreign(upstream) : "",
          grouped(one.requests), percent(one.hits + one.stale, one.requests), one.stale ? el("span", { class: "t-warn" }, grouped(one.stale)) : "",
          one.failed ? el("span", { class: "t-bad" }, grouped(one.failed)) : "", ...percentiles.map(([name]) => seconds(number(one[name])))]);
        made.body.append(row);
      }
      routes.replaceChildren(made.node);
    };
    const drawTop = async () => {
      const turn = top.turn = {};
      const response = await ask(target("/top", { period: wanted.period, order: wanted.order, limit: 10 }), { signal });
      if (top.turn !== turn) return;
      const lists = new Map(response.lists.map(list => [list.by, list.rows]));
      if (!response.lists.some(list => list.rows.length)) return top.replaceChildren(card(empty(`No requests in the last ${response.period}`, "Who asks most appears here.")));
      const measure = { requests: one => one.requests, upstream_requests: one => one.upstream_requests, bytes: one => one.bytes, seconds: one => number(one.seconds) }[response.order];
      top.replaceChildren(el("div", { class: "tops" }, subjects.map(([by, title, filter]) => {
        const rows = lists.get(by) ?? [];
        const made = table(`${title} with the most ${order.selectedOptions[0].textContent}`, [{ title, main: true, wraps: true }, { title: "Requests", width: "w-n", number: true },
          { title: "Upstream", width: "w-n", number: true }, { title: "Bytes", width: "w-n", number: true }, { title: "Time", width: "w-n", number: true }]);
        const most = Math.max(...rows.map(measure));
        for (const one of rows) made.add([filter && one.name !== "(others)" ? el("a", { href: pageLink(["requests"], { [filter]: one.name }), class: "foreign mono clamped" }, foreign(one.name)) : foreign(one.name, { class: "mono" }),
          el("div", { class: "meter thin", "aria-hidden": "true" }, svg("svg", { viewBox: "0 0 100 1", preserveAspectRatio: "none" }, svg("rect", { class: "f-hit", width: most ? 100 * measure(one) / most : 0, height: 1 })))],
          grouped(one.requests), one.upstream_requests ? grouped(one.upstream_requests) : "", one.bytes ? size(one.bytes) : "", seconds(number(one.seconds) || null));
        const node = rows.length ? made.node : card(empty(title, "None of these requests has one."));
        if (by === "url" || by === "route") node.classList.add("wide");
        return node;
      })));
    };
    const drawBudgets = async () => {
      const response = await ask(target("/budget", { limit: 20 }), { signal });
      if (!response.budgets.length && !response.spent.length) return budgets.replaceChildren(card(empty("No rate limits", "No response has said anything of one.")));
      const left = table("Rate limits by credential", [{ title: "Resource", main: true, wraps: true }, { title: "Upstream", width: "w-m", wraps: true }, { title: "Principal", width: "w-m", wraps: true },
        { title: "Left", width: "w-s", number: true }, { title: "Limit", width: "w-s", number: true }, { title: "Renewed", width: "w-m" }, { title: "Used up", width: "w-m" }]);
      for (const one of response.budgets) left.add([foreign(one.resource ?? "everything", { class: "mono" })], foreign(one.upstream), foreign(one.principal ?? ""),
        grouped(one.remaining), one.limit ? grouped(one.limit) : "", when(one.reset), one.used_up ? el("span", { class: "t-bad" }, when(one.used_up)) : "");
      const spent = table("Who spent them, by minute", [{ title: "Program", main: true, wraps: true }, { title: "Upstream", width: "w-m", wraps: true }, { title: "Principal", width: "w-m", wraps: true },
        { title: "Resource", width: "w-m", wraps: true }, { title: "Requests", width: "w-s", number: true }, { title: "Minute", width: "w-m" }]);
      for (const one of response.spent) spent.add([foreign(one.program ?? "")], foreign(one.upstream), foreign(one.principal ?? ""), foreign(one.resource ?? ""), grouped(one.requests), when(one.minute));
      budgets.replaceChildren(left.node, spent.node);
    };
    await Promise.all([
      repeat(10000, signal, drawBudgets),
      repeat(10000, signal, async () => {
        const history = await ask(target("/history", { upstream: wanted.upstream, route: wanted.route }), { signal });
        const one = history.total;
        offer(upstream, wanted.upstream, history.series.map(one => one.upstream));
        offer(route, wanted.route, history.series.filter(one => !wanted.upstream || one.upstream === wanted.upstream).map(one => one.route));
        requests.set(grouped(one.requests), "in the last day");
        cached.set(percent(one.hits + one.stale, one.requests), `${grouped(one.hits + one.stale)} hits`);
        stale.set(grouped(one.stale), "of the hits");
        failed.set(grouped(one.failed), percent(one.failed, one.requests));
        times.forEach((figure, index) => figure.set(seconds(number(one[percentiles[index][0]])) || "–", `${percentiles[index][2]} are faster`));
        charts.draw(history);
        drawRoutes(history.series);
      }),
      repeat(10000, signal, drawTop),
    ]);
  };

  // ---------------------------------------------------------------- Requests

  const requestTable = label => {
    const made = table(label, [
      { title: "Time", width: "w-n", bare: true }, { title: "Request", main: true, wraps: true }, { title: "Program", width: "w-s", wraps: true }, { title: "Upstream", width: "w-s", wraps: true },
      { title: "Status", width: "w-xs", bare: true }, { title: "Outcome", width: "w-m", bare: true, wraps: true }, { title: "Size", width: "w-n", number: true, bare: true },
      { title: "Took", width: "w-n", number: true }, { title: "Upstream took", width: "w-n", number: true },
    ]);
    const row = (one, isNew) => {
      const link = el("a", { href: pageLink(["requests", String(one.id)]), class: "foreign mono clamped", title: plain(one.url) }, foreign(one.method + " " + one.url));
      const node = made.row([el("time", { datetime: one.time, title: new Date(one.time).toLocaleString("en-GB") }, clock(new Date(one.time))), link, one.program ? foreign(one.program) : "", one.upstream ? foreign(one.upstream) : "",
        statusPill(one.status), [outcome(one.outcome), one.detail && one.detail !== one.outcome ? [" ", el("span", { class: "note" }, foreign(one.detail))] : ""], size(one.bytes), seconds(number(one.seconds)),
        seconds(number(one.upstream_seconds))]);
      if (isNew) node.classList.add("fresh");
      return node;
    };
    return {
      ...made,
      /// Shows these, the latest first.
      show(requests) { made.body.replaceChildren(...[...requests].reverse().map(one => row(one, false))); },
      /// Puts those after a number above what is shown; the rest stays where it is, and with it the focus.
      add(requests, after, limit) {
        for (const one of requests) if (after === null || one.id > after) made.body.prepend(row(one, after !== null));
        while (made.body.children.length > limit) made.body.lastChild.remove();
      },
    };
  };

  const filters = ["search", "status", "outcome", "program", "upstream", "route"];
  const requestsPage = async ({ signal, query }) => {
    const wanted = Object.fromEntries(filters.map(name => [name, query.get(name) ?? ""]));
    const list = el("div", {});
    const [kept, rows] = [[], requestTable("Requests, the latest first")];
    let [isPaused, seen, isKnown] = [false, null, true];
    const count = el("span", { class: "note" });
    const fits = one => {
      if (wanted.search && !(one.method + " " + one.url).toLowerCase().includes(wanted.search.toLowerCase())) return false;
      if (wanted.status && !String(one.status).startsWith(wanted.status.replace("xx", ""))) return false;
      return ["outcome", "program", "upstream", "route"].every(name => !wanted[name] || one[name] === wanted[name]);
    };
    const draw = added => {
      offer();
      const shown = kept.filter(fits);
      count.textContent = `${grouped(shown.length)} of the last ${plural(kept.length, "request")}`;
      if (!kept.length) return list.replaceChildren(card(empty("No requests yet", "Point a program at Larder's address, and its requests appear here.")));
      if (!shown.length) rows.show([]);
      if (!shown.length) return list.replaceChildren(card(empty("No request fits", "Requests that fit appear here as they come.")));
      if (added) rows.add(added.filter(fits), 0, 300);
      else rows.show(shown.slice(-300));
      if (rows.node.parentNode !== list) list.replaceChildren(rows.node);
    };
    const search = el("input", { type: "search", value: wanted.search, spellcheck: "false", oninput: () => { wanted.search = search.value; remember(); draw(null); } });
    /// A choice among what the requests have had so far.
    const choice = (title, name, first, least) => {
      const control = select("", [["", "all"]], { onchange: () => { wanted[name] = control.value; remember(); draw(null); } });
      const node = field(title, control);
      let known = null;
      const offer = () => {
        const values = [...first, ...[...new Set([...kept.map(one => String(one[name] ?? "")), wanted[name]])].filter(one => one && !first.includes(one)).sort()];
        node.hidden = values.length < least && !wanted[name];
        if (known === values.join("\n")) return;
        known = values.join("\n");
        control.replaceChildren(...select(wanted[name], [["", "all"], ...values.map(one => [one, plain(one)])]).children);
        control.value = wanted[name];
      };
      return { node, offer };
    };
    const choices = [choice("Status", "status", ["2xx", "3xx", "4xx", "5xx"], 0),
      choice("Outcome", "outcome", ["hit", "stale", "composed", "miss", "revalidated", "offline", "stale-if-error", "error", "bypass"], 0),
      choice("Program", "program", [], 0), choice("Route", "route", [], 1), choice("Upstream", "upstream", [], 2)];
    const offer = () => { for (const one of choices) one.offer(); };
    const remember = () => history.replaceState(null, "", pageLink(["requests"], wanted));
    const pausing = button("Pause", () => {
      isPaused = !isPaused;
      pausing.textContent = isPaused ? "Resume" : "Pause";
      pausing.setAttribute("aria-pressed", isPaused);
    }, "quiet");
    pausing.setAttribute("aria-pressed", "false");
    const searching = field("Method or URL contains", search);
    searching.classList.add("grow");
    main.append(heading("Requests", { sub: "Requests from programs, and the responses they got. Hits from memory are logged only while somebody watches." }),
      el("div", { class: "tools" }, searching, choices.map(one => one.node), pausing), list, el("div", { class: "pager" }, count));
    offer();
    const done = waiting(list, "the requests");
    try {
      await repeat(2000, signal, async () => {
        if (isPaused || !isKnown) return;
        let response;
        try { response = await ask(target("/requests", { limit: 1000, after: seen }), { signal }); }
        catch (error) {
          if (!(error instanceof Problem) || error.status !== 404) throw error;
          isKnown = false;
          return list.replaceChildren(card(empty("No requests", "This version of Larder does not report its requests.")));
        }
        const before = seen;
        seen = response.next;
        if (before !== null && !response.requests.length) return;
        kept.push(...response.requests);
        kept.splice(0, kept.length - 1000);
        draw(before === null ? null : response.requests);
      });
    } finally { done(); }
  };

  const requestPage = async ({ signal, query }, id) => {
    const place = el("div", {});
    const title = heading(`Request ${id}`, { crumbs: el("a", { href: "#/requests" }, "Requests") });
    main.append(title, place);
    await fill(place, "the request", signal, async () => {
      const known = await ask(path("requests", id), { signal });
      const one = known.request;
      title.querySelector("h1").replaceChildren(el("span", { class: "mono foreign" }, foreign(`${one.method} ${one.url}`)));
      document.title = `${plain(`${one.method} ${one.url}`).slice(0, 60)} – Larder`;
      const row = known.document === undefined ? null : await ask(target(path("documents", String(known.document)), { view: query.get("view"), limit: firstBytes }), { signal });
      const more = name => one[name] && el("a", { href: pageLink(["requests"], { [name]: one[name] }), class: "foreign" }, foreign(one[name]));
      return [
        card(facts([
          ["Outcome", [statusPill(one.status), " ", outcome(one.outcome), one.detail ? [" ", foreign(one.detail)] : ""]],
          ["When", [when(one.time), ", ", new Date(one.time).toLocaleString("en-GB")]], ["Client", foreign(one.client)], ["Program", more("program")],
          ["Principal", one.principal && foreign(one.principal)], ["Upstream", more("upstream")], ["Route", more("route")],
          ["Cache-Status", one.cache_status && code(one.cache_status)], ["Upstream asked because", one.reason && foreign(one.reason)],
          ["To make it a hit", one.remedy && code(one.remedy)], ["Size", size(one.bytes)],
          ["Took", [seconds(number(one.seconds)), one.upstream_seconds === undefined ? "" : `, the upstream ${seconds(number(one.upstream_seconds))} of it`]],
          ["Explain", el("a", { href: pageLink(["explain"], { url: one.url, method: one.method, upstream: one.upstream ?? "" }) }, "What such a request would get now")],
        ])),
        row ? [
          bodySection(row, ["requests", id], signal, known.is_current ? null : el("p", { class: "note bad" }, known.note)),
          fieldsSection(row),
          el("p", { class: "note under" }, "This is ", el("a", { href: pageLink(["documents", String(row.id)]) }, `document ${row.id}`), " as it is stored, received ", when(row.received), "."),
        ] : section("Response", null, card(empty("Not stored", foreign(known.note ?? "")))),
      ];
    });
  };

  // ---------------------------------------------------------------- Explain

  const explainPage = async ({ signal, query }) => {
    const url = el("input", { type: "text", value: query.get("url") ?? "", spellcheck: "false", autocomplete: "off", required: true });
    const method = el("input", { type: "text", value: query.get("method") ?? "GET", size: "8", spellcheck: "false" });
    const upstream = el("input", { type: "text", value: query.get("upstream") ?? "", spellcheck: "false" });
    const headers = el("textarea", { rows: "2", spellcheck: "false", placeholder: "Accept: application/json" });
    const result = el("div", {});
    const wide = field("URL", url, "A path as programs send it to Larder, or a URL of Larder or of an upstream.");
    wide.classList.add("wide");
    const form = el("form", { class: "card padded form" }, el("div", { class: "fields" }, wide, field("Method", method), field("Upstream", upstream, "Where the URL fits several."),
      field("Header fields", headers, "One on each line. Credentials decide whose data it is; they are used for this explanation only.")),
      el("p", {}, el("button", { type: "submit" }, "Explain")));
    form.addEventListener("submit", event => {
      event.preventDefault();
      history.replaceState(null, "", pageLink(["explain"], { url: url.value, method: method.value, upstream: upstream.value }));
      explain();
    });
    // Someone who comes from a request or a document wants to read, not to fill in the form.
    const asking = url.value ? el("details", { class: "section" }, el("summary", {}, "Ask about another request"), form) : form;
    main.append(heading("Explain", { sub: "What is stored for a URL, how fresh it is and why, and what a request would get now. Nothing is fetched." }), asking, result);
    const explain = async () => fill(result, "the explanation", signal, async () => {
      const parameters = new URLSearchParams({ url: url.value.trim(), method: method.value.trim() || "GET" });
      if (upstream.value.trim()) parameters.set("upstream", upstream.value.trim());
      for (const line of headers.value.split("\n")) if (line.trim()) parameters.append("header", line.trim());
      return explanation(await ask("/explain?" + parameters, { signal }));
    });
    if (url.value) await explain(); else url.focus();
  };

  const actions = {
    "serve": "served from the cache", "serve-and-refresh": "served from the cache, and refreshed in the background", "fetch": "asks the upstream",
    "events": "events", "pass": "passed on", "write": "a write, passed on", "refuse": "refused",
  };
  const actionKind = one => {
    if (one.action.startsWith("serve")) return /; ttl=-/.test(one.cache_status ?? "") ? "warn" : "good";
    return one.action === "refuse" ? "bad" : "";
  };
  const outcomeFacts = one => facts([["Gets", [pill(actions[one.action] ?? one.action, actionKind(one)), one.status ? [" ", statusPill(one.status)] : ""]],
    ["Why", foreign(one.reason)], ["Cache-Status", one.cache_status && code(one.cache_status)]]);
  const explanation = explained => {
    const request = explained.request;
    const nodes = [
      el("div", { class: "section pair" },
        section(explained.mode === "offline" ? "Online" : "Online, as now", null, card(outcomeFacts(explained.online))),
        section(explained.mode === "offline" ? "Offline, as now" : "Offline", null, card(outcomeFacts(explained.offline)))),
      section("The request as the cache sees it", null, card(facts([
        ["Sent", code(`${request.method} ${request.sent}`)], ["Upstream", foreign(request.upstream)], ["Cache key", code(request.key)],
        ["Route", request.route ? [code(request.route.path), request.route.model ? [" contains ", foreign(request.route.model)] : ""] : "none"],
        ["Principal", [foreign(request.principal.label), request.principal.is_known ? "" : ", never seen", request.principal.fields.length ? [", by ", foreign(request.principal.fields.join(", "))] : ""]],
        ["Context", request.context.length ? request.context.map((line, index) => [index ? ", " : "", code(line)]) : ""], ["View", request.view],
      ]))),
    ];
    if (explained.freshness) nodes.push(freshness(explained.freshness));
    const stored = explained.variants.map(one => card(facts([
      ["Status", [statusPill(one.status), " ", one.is_selected ? pill("this one", "good") : ""]],
      ["Form", [one.form, one.is_dirty ? ", newer values are known" : "", one.in_memory ? ", in memory" : ""]],
      ["Document", one.document ? el("a", { href: pageLink(["documents", String(one.document)]) }, `document ${one.document}`) : "not committed yet"],
      ["Age", `${span(one.age)}; ${one.time_to_live >= 0 ? "fresh for another " + span(one.time_to_live) : "stale for " + span(-one.time_to_live)}`],
      ["Varies by", one.selection.length ? code(one.selection.join(", ")) : ""], ["ETag", one.entity_tag && code(one.entity_tag)],
      ["Last-Modified", one.last_modified && foreign(one.last_modified)], ["Shows", `${plural(one.objects, "object")}, ${size(one.bytes)}`],
    ])));
    nodes.push(section("Stored", null, stored.length ? el("div", { class: "pair" }, stored) : card(empty("Nothing is stored", "for this request."))));
    if (explained.unstored) nodes.push(section("The last response was not stored", null, card(facts([
      ["Status", statusPill(explained.unstored.status)], ["When", span(explained.unstored.seconds_ago) + " ago"], ["Why", foreign(explained.unstored.reason)],
      ["Rule", [foreign(explained.unstored.rule), ", decided by ", foreign(explained.unstored.decided_by)]]]))));
    if (explained.others.length) nodes.push(section("Stored for other requests of this URL", null, ...explained.others.map(one => card(facts([
      ["Differs", one.differences.map((line, index) => [index ? "; " : "", foreign(line)])], ["Status", statusPill(one.status)],
      ["Age", `${span(one.age)}; ${one.time_to_live >= 0 ? "fresh" : "stale"}`]])))));
    if (explained.upstream) nodes.push(section("If the upstream is asked", null, card(facts([
      ["Conditions", explained.upstream.conditions.length ? explained.upstream.conditions.map((line, index) => [index ? ", " : "", code(line)]) : "none"],
      ["After a 304", explained.upstream.not_modified && foreign(explained.upstream.not_modified)], ["Storing", explained.upstream.storing && foreign(explained.upstream.storing)],
      ["After a failure", foreign(explained.upstream.failure)]]))));
    return nodes;
  };
  const freshness = explained => {
    const made = table("Freshness", [{ title: "Number", main: true }, { title: "Value", width: "w-m", number: true, bare: true }, { title: "Source", wraps: true, bare: true }]);
    for (const term of explained.terms) made.add(term.name, `${grouped(term.seconds)} s`, foreign(term.source));
    return section("Freshness", pill(explained.is_fresh ? "fresh" : "stale", explained.is_fresh ? "good" : "warn"), made.node,
      explained.rules.length ? el("p", { class: "note" }, "Directives that affect reuse: ", explained.rules.map((rule, index) => [index ? ", " : "", code(rule)])) : null);
  };

  // ---------------------------------------------------------------- Objects

  const modelsPage = async ({ signal }) => {
    const list = el("div", {});
    main.append(heading("Objects", { sub: "What responses contain, by model: each object once, at its newest known value." }), list);
    await fill(list, "the models", signal, async () => {
      const count = await ask("/count", { signal });
      const models = Object.entries(count.models).sort(([one, few], [other, many]) => many - few || one.localeCompare(other));
      if (!models.length) return card(empty("No objects yet",
        "Objects come from responses whose route has a model. Without models every response is stored as it is."));
      const most = models[0][1];
      const made = table("Models", [{ title: "Model", main: true }, { title: "Objects", width: "w-m", number: true }, { title: "Share", width: "w-l", bare: true }]);
      for (const [model, objects] of models) made.add(el("a", { href: pageLink(["objects", model]) }, foreign(model)), grouped(objects),
        el("div", { class: "meter", "aria-hidden": "true" }, svg("svg", { viewBox: "0 0 100 1", preserveAspectRatio: "none" }, svg("rect", { class: "f-hit", width: 100 * objects / most, height: 1 }))));
      return made.node;
    });
  };

  /// The cursors of the pages seen so far, for the way back; by listing and page number.
  const cursors = new Map();
  const pager = (base, query, next, shown) => {
    const at = Number(query.get("page") ?? 1);
    const listing = new URLSearchParams(query);
    listing.delete("page");
    listing.delete("after");
    const key = base.join("/") + "?" + listing;
    cursors.set(`${key}#${at}`, query.get("after") ?? "");
    const link = (words, number, after) => el("a", { class: "button quiet", href: pageLink(base, { ...Object.fromEntries(listing), after, page: number > 1 ? String(number) : "" }) }, words);
    return el("nav", { class: "pager", "aria-label": "Pages of this list" }, el("span", {}, shown),
      el("div", { class: "buttons" }, at > 1 && link("First", 1, ""),
        at > 1 && cursors.has(`${key}#${at - 1}`) && link("Previous", at - 1, cursors.get(`${key}#${at - 1}`)), next && link("Next", at + 1, next)));
  };

  const isScalar = value => value === null || typeof value !== "object" || value instanceof Exact;
  /// The most telling members of these objects: plain values that most of them have.
  const columnsOf = objects => {
    const counts = new Map();
    for (const one of objects) for (const [name, value] of Object.entries(one.object ?? {})) {
      if (name === "id" || /(^|_)(url|href|node_id|uuid)$/i.test(name) || !isScalar(value) || value === null || typeof value === "string" && /^https?:/.test(value)) continue;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    return [...counts].filter(([, count]) => 2 * count >= objects.length).slice(0, 4).map(([name]) => name);
  };
  const owners = rows => ({
    upstream: new Set(rows.map(row => row.upstream)).size > 1, principal: new Set(rows.map(row => row.principal)).size > 1,
    context: new Set(rows.map(row => row.context)).size > 1,
  });
  const contextText = context => context.split("\n").filter(Boolean).join(", ");
  const ownerOf = row => ({ upstream: row.upstream, principal: row.principal });

  const objectsPage = async ({ signal, query }, model) => {
    const base = ["objects", model];
    const list = el("div", {});
    const [text, sort, view] = [query.get("search") ?? "", query.get("sort") ?? "id", query.get("view") ?? "wire"];
    const search = el("input", { type: "search", value: text, spellcheck: "false", id: "search" });
    const order = select(sort, [["id", "identity"], ["-id", "identity, reversed"], ["-stored", "latest stored first"], ["stored", "first stored first"]], { onchange: () => go() });
    const form = el("form", { class: "tools", role: "search" }, (() => {
      const node = field("Identity, key or JSON contains", search);
      node.classList.add("grow");
      return node;
    })(), field("Order", order), el("button", { type: "submit", class: "quiet" }, "Search"),
      el("div", { class: "tabs", role: "group", "aria-label": "Members" }, [["wire", "As received"], ["mapped", "Mapped"]].map(([key, words]) =>
        el("a", { href: pageLink(base, { search: text, sort: query.get("sort"), view: key === "wire" ? "" : key }), "aria-current": key === view ? "true" : null }, words))));
    const go = () => { location.hash = pageLink(base, { search: search.value.trim(), sort: order.value === "id" ? "" : order.value, view: view === "wire" ? "" : view }); };
    form.addEventListener("submit", event => { event.preventDefault(); go(); });
    main.append(heading(foreign(model), { crumbs: el("a", { href: "#/objects" }, "Objects") }), form, list);
    const draw = rows => {
      const [members, many] = [columnsOf(rows), owners(rows)];
      const made = table(`Objects of ${model}`, [{ title: "Identity", main: true }, ...members.map(name => ({ title: name })),
        ...(many.upstream ? [{ title: "Upstream", width: "w-m" }] : []), ...(many.principal ? [{ title: "Principal", width: "w-m" }] : []),
        ...(many.context ? [{ title: "Context", width: "w-l" }] : []), { title: "Observed", width: "w-m" }]);
      for (const row of rows) made.add(
        el("a", { href: pageLink(["objects", model, row.id], ownerOf(row)), class: "foreign mono" }, foreign(row.id)),
        ...members.map(name => row.object?.[name] === undefined ? "" : foreign(short(row.object[name]), { title: plain(short(row.object[name])) })),
        ...(many.upstream ? [foreign(row.upstream)] : []), ...(many.principal ? [foreign(row.principal)] : []), ...(many.context ? [foreign(contextText(row.context))] : []),
        row.unknown ? pill("unknown", "warn") : when(row.observed));
      return made.node;
    };
    await fill(list, "the objects", signal, async () => {
      const response = await readOn(list, 50, query.get("after"), async (after, limit) => {
        const { objects, examined, next } = await ask(target(path(...base), { search: text, sort, view, limit, after, upstream: query.get("upstream"), principal: query.get("principal") }), { signal });
        return { rows: objects, examined, next };
      }, draw);
      const rows = response.rows;
      const searched = text ? `${plural(rows.length, "object")} found, ${grouped(response.examined)} looked at` + (response.next ? "; “Next” goes on" : "") : plural(rows.length, "object") + " on this page";
      if (!rows.length && !response.next) return card(text ? empty("No object fits", "Search for another text, or a part of it.") : empty("No objects", "None of this model are stored."));
      if (!rows.length) return [card(empty("None so far", `${grouped(response.examined)} objects were looked at.`)), pager(base, query, response.next, searched)];
      return [draw(rows), pager(base, query, response.next, searched)];
    });
  };

  const standings = { known: "good", merged: "good", doubt: "warn", quarantined: "bad", outdated: "warn", local: "", undeclared: "" };
  const sourceNode = from => !from ? "" : [from.seeded ? "larder seed" : from.url ? code([from.method, from.url].filter(Boolean).join(" ")) : "a response that is no longer known", " ", when(from.at)];
  const memberTable = object => {
    const made = table("Members", [{ title: "Member", main: true, width: "w-l" }, { title: "Value", wraps: true, bare: true }, { title: "Standing", width: "w-m", bare: true }, { title: "Last shown by", wraps: true, width: "w-xl" }]);
    for (const one of object.members) {
      const more = [];
      if (one.replaced) more.push(el("p", { class: "note" }, "replaced ", code(short(one.replaced.value)), `: ${one.replaced.reason}`));
      if (one.conflicting) more.push(el("p", { class: "note bad" }, "conflicting value ", code(short(one.conflicting.value)), ", shown by ", sourceNode(one.conflicting.from)));
      for (const seen of one.quarantined ?? []) more.push(el("p", { class: "note bad" }, "fails its checks: ", code(short(seen.value))));
      const isOwn = one.standing === "local" || one.standing === "undeclared";
      if (one.reason && !isOwn) more.push(el("p", { class: "note" }, foreign(one.reason)));
      made.add([code(one.pointer.replace(/^\//, "")), one.properties.length && one.properties.join() !== one.pointer.slice(1) ? [" ", el("span", { class: "note" }, foreign(one.properties.join(", ")))] : ""],
        [one.value === undefined ? "" : code(short(one.value)), more], el("span", { title: one.reason ?? null }, pill(one.standing, standings[one.standing])), sourceNode(one.from));
    }
    const hasOwn = object.members.some(one => one.standing === "local" || one.standing === "undeclared");
    return [made.node, hasOwn && el("p", { class: "note under" }, "Members that are local or not declared belong to their responses: each document keeps its own.")];
  };
  const showing = { newest: ["newest values", "good"], composed: ["newest values, put in at the next hit", "good"], outdated: ["outdated", "warn"] };
  const documentTable = (label, isShowing) => table(label, [{ title: "URL", main: true, wraps: true }, { title: "Status", width: "w-xs", bare: true }, ...(isShowing ? [{ title: "Shows", width: "w-l", bare: true, wraps: true }]
    : [{ title: "Upstream", width: "w-m" }, { title: "Principal", width: "w-m" }]), { title: "Objects", width: "w-s", number: true }, { title: "Size", width: "w-s", number: true, bare: true }, { title: "Received", width: "w-m" }]);

  const objectPage = async ({ signal, query }, model, id) => {
    const place = el("div", {});
    const owner = { upstream: query.get("upstream"), principal: query.get("principal") };
    const base = ["objects", model, id];
    const view = query.get("view") ?? "wire";
    const cleanButton = button("Clean this object", async () => cleanUp({ model, id, ...Object.fromEntries(Object.entries(owner).filter(([, value]) => value)) }, signal, () => show()), "quiet");
    main.append(heading(foreign(`${model} ${id}`), { crumbs: [el("a", { href: "#/objects" }, "Objects"), " › ", el("a", { href: pageLink(["objects", model]) }, foreign(model))], tools: cleanButton }), place);
    await fill(place, "the object", signal, async () => {
      const why = await ask(target(path(...base, "why"), { documents: 20, ...owner }), { signal });
      // A deleted object has no values, but a history.
      const values = await ask(target(path(...base), { view, limit: 20, ...owner }), { signal }).catch(error => {
        if (error instanceof Problem && [404, 410].includes(error.status)) return { objects: [] };
        throw error;
      });
      return why.objects.map(object => {
        const value = values.objects.find(one => one.upstream === object.upstream && one.principal === object.principal && one.context === object.context);
        const rows = documentTable("Documents that show it", true);
        const add = documents => {
          for (const row of documents) {
            const [words, kind] = showing[row.shows] ?? [row.shows, ""];
            rows.add(documentLink(row), statusPill(row.status), [pill(words, kind), row.reason ? el("p", { class: "note" }, foreign(row.reason)) : ""], grouped(row.objects), size(row.bytes), when(row.received));
          }
        };
        add(object.documents);
        let next = object.next;
        const more = button("Look for more", async () => {
          more.disabled = true;
          try {
            const found = await ask(target(path(...base, "documents"), { limit: 50, after: next, upstream: object.upstream, principal: object.principal }), { signal });
            add(found.documents);
            next = found.next;
            more.hidden = !next;
          } catch (error) { if (!signal.aborted) more.after(complaint(error)); }
          more.disabled = false;
        }, "quiet");
        more.hidden = !next;
        return el("article", {},
          card(facts([["Upstream", foreign(object.upstream)], ["Principal", foreign(object.principal)], ["Context", object.context && foreign(contextText(object.context))], ["Observed", when(object.observed)],
            ["State", object.mark && [pill(object.mark.kind, object.mark.superseded ? "" : "warn"), " ", foreign(object.mark.reason), ", ", when(object.mark.at)]]])),
          section("Where its members come from", null, memberTable(object)),
          value && section("As JSON", el("div", { class: "tabs", role: "group", "aria-label": "View" }, [["wire", "As received"], ["mapped", "Mapped"]].map(([key, words]) =>
            el("a", { href: pageLink(base, { ...owner, view: key === "wire" ? "" : key }), "aria-current": key === view ? "true" : null }, words))),
            card(bodyText("The object as JSON", spell(value.object), true)),
            value.synthetic?.length ? el("p", { class: "note" }, "Not sent by the upstream: ", value.synthetic.map((one, index) => [index ? ", " : "", code(one)])) : null),
          section("Documents that show it", null, object.documents.length || next ? rows.node : card(empty("No document shows it any more", "It stays stored until space is needed.")),
            el("div", { class: "pager" }, el("span", {}), more)));
      });
    });
  };

  // ---------------------------------------------------------------- Documents

  const documentsPage = async ({ signal, query }) => {
    const list = el("div", {});
    const text = query.get("search") ?? "";
    const search = el("input", { type: "search", value: text, spellcheck: "false", id: "search" });
    const searching = field("Path and query contain", search);
    searching.classList.add("grow");
    const form = el("form", { class: "tools", role: "search" }, searching, el("button", { type: "submit", class: "quiet" }, "Search"));
    form.addEventListener("submit", event => { event.preventDefault(); location.hash = pageLink(["documents"], { search: search.value.trim() }); });
    main.append(heading("Documents", { sub: "Stored responses, the latest first." }), form, list);
    const draw = rows => {
      const made = documentTable("Stored responses", false);
      for (const row of rows) made.add(documentLink(row), statusPill(row.status), foreign(row.upstream), foreign(row.principal), grouped(row.objects), size(row.bytes), when(row.received));
      return made.node;
    };
    await fill(list, "the documents", signal, async () => {
      const response = await readOn(list, 50, query.get("after"), async (after, limit) => {
        const { documents, next } = await ask(target("/documents", { search: text, sort: "-stored", limit, after }), { signal });
        return { rows: documents, next };
      }, draw);
      const rows = response.rows;
      const shown = plural(rows.length, "document") + (text && response.next ? " found; “Next” goes on" : " on this page");
      if (!rows.length && !response.next) return card(text ? empty("No document fits", "Search for another part of its path or query.")
        : empty("No documents yet", "Responses that may be stored show up here."));
      if (!rows.length) return [card(empty("None so far", "“Next” searches on.")), pager(["documents"], query, response.next, shown)];
      return [draw(rows), pager(["documents"], query, response.next, shown)];
    });
  };

  const views = [["wire", "Wire", "as clients get it"], ["mapped", "Mapped", "in the form of its models"], ["raw", "Raw", "the bytes as received"]];
  const firstBytes = 64 * 1024;

  /// The body of a stored response in one view, with links to the others.
  const bodySection = (row, base, signal, remark) => {
    const isJSON = /json/i.test(row.media_type ?? "");
    const body = el("div", {});
    const format = el("input", { type: "checkbox", id: "format", onchange: () => drawBody() });
    let shown = row;
    const drawBody = () => {
      if (shown.text === undefined) return body.replaceChildren(empty(`${size(shown.bytes)} of ${shown.media_type ?? "an unknown type"}`, "This is neither JSON nor text, so it is not shown."));
      if (!shown.bytes) return body.replaceChildren(empty("No body", "The response has none."));
      const isCut = shown.shown < shown.bytes;
      body.replaceChildren(bodyText("The body", format.checked ? indented(shown.text) : shown.text, isJSON),
        ...(isCut ? [el("div", { class: "pager padded" }, el("span", {}, `The first ${size(shown.shown)} of ${size(shown.bytes)}.`), button("Show all", all, "quiet"))] : []));
    };
    const all = async event => {
      event.target.disabled = true;
      event.target.textContent = `Waiting for ${size(shown.bytes)}…`;
      try { shown = await ask(target(path("documents", String(row.id)), { view: row.view, limit: 64 << 20 }), { signal }); drawBody(); }
      catch (error) { if (!signal.aborted) body.append(complaint(error)); }
    };
    drawBody();
    return section("Body", el("div", { class: "tabs", role: "group", "aria-label": "View" }, views.map(([key, words, meaning]) =>
      el("a", { href: pageLink(base, { view: key === "wire" ? "" : key }), title: meaning, "aria-current": key === row.view ? "true" : null, "data-view": key }, words))),
      remark, row.notice && el("p", { class: "note" }, row.notice), card(body),
      el("div", { class: "pager" }, el("span", {}, `${size(row.bytes)}, ${views.find(([key]) => key === row.view)?.[2] ?? row.view}`),
        isJSON && el("span", { class: "check" }, format, el("label", { for: "format" }, "One member on each line"))));
  };
  const fieldsSection = row => {
    const fields = table("Header fields", [{ title: "Field", main: true, width: "w-l" }, { title: "Value", wraps: true, bare: true }]);
    for (const line of row.fields) fields.add(foreign(line.name), code(line.value));
    return section("Header fields", null, fields.node);
  };

  const documentPage = async ({ signal, query }, id) => {
    const view = query.get("view") ?? "wire";
    const place = el("div", {});
    const title = heading(`Document ${id}`, { crumbs: el("a", { href: "#/documents" }, "Documents") });
    main.append(title, place);
    await fill(place, "the document", signal, async () => {
      const row = await ask(target(path("documents", id), { view, limit: firstBytes }), { signal });
      title.querySelector("h1").replaceChildren(el("span", { class: "mono foreign" }, foreign(row.url)));
      document.title = `${plain(row.url).slice(0, 60)} – Larder`;
      const ttl = row.time_to_live;
      const form = { received: ["as received", ttl < 0 ? "" : "good"], composed: ["composed with newer values", ttl < 0 ? "" : "good"], outdated: ["outdated", "warn"] }[row.form];
      return [
        card(facts([
          ["Served", [pill(...form), row.reason ? [" ", foreign(row.reason)] : ""]], ["Status", statusPill(row.status)],
          ["Fresh", ttl === undefined ? "" : [pill(ttl >= 0 ? "fresh" : "stale", ttl >= 0 ? "good" : "warn"), ` ${ttl >= 0 ? "for another " + span(ttl) : "since " + span(-ttl)}, ${span(row.age)} old`]],
          ["Upstream", foreign(row.upstream)], ["Principal", foreign(row.principal)], ["Context", row.context && foreign(contextText(row.context))],
          ["Received", when(row.received)], ["Last used", when(row.used)],
          ["Explain", el("a", { href: pageLink(["explain"], { url: row.url, upstream: row.upstream }) }, "What a request for it would get now")],
        ])),
        bodySection(row, ["documents", id], signal),
        section("Objects", el("span", { class: "note" }, plural(row.object_count, "object") + (row.object_count > row.objects.length ? `, the first ${row.objects.length} here` : "")),
          row.objects.length ? card(el("p", { class: "padded" }, row.objects.map((one, index) => [index ? ", " : "", objectLink(one.model, one.id, ownerOf(row))])))
            : card(empty("No objects", "It is stored as it is."))),
        fieldsSection(row),
        row.freshness && freshness(row.freshness),
      ];
    });
  };

  // ---------------------------------------------------------------- Changes

  const changeKinds = { created: "good", changed: "", deleted: "bad", unknown: "warn" };
  const changesPage = async ({ signal, query }) => {
    const wanted = query.get("model") ?? "";
    const list = el("div", {});
    const state = el("span", { class: "note" });
    let [isPaused, held] = [false, []];
    const made = table("Changes, the latest first", [{ title: "Time", width: "w-s", bare: true }, { title: "Change", width: "w-m", bare: true }, { title: "Object", main: true, wraps: true }, { title: "Upstream", width: "w-m" },
      { title: "Principal", width: "w-m" }]);
    const add = (one, isNew) => {
      const name = typeof one.id === "object" ? one.id?.text ?? spell(one.id) : String(one.id);
      const node = one.reset ? made.row(["", pill("gap", "warn"), foreign(one.reset), "", ""])
        : made.row([el("time", { datetime: one.time, title: `${new Date(one.time).toLocaleString("en-GB")}, change ${spell(one.sequence)}` }, clock(new Date(one.time))), pill(one.kind, changeKinds[one.kind]), objectLink(one.model, name, ownerOf(one)),
          foreign(one.upstream), foreign(one.principal)]);
      if (isNew) node.classList.add("fresh");
      if (made.node.parentNode !== list) list.replaceChildren(made.node);
      made.body.prepend(node);
      while (made.body.children.length > 300) made.body.lastChild.remove();
    };
    const pausing = button("Pause", () => {
      isPaused = !isPaused;
      pausing.textContent = isPaused ? "Resume" : "Pause";
      pausing.setAttribute("aria-pressed", isPaused);
      if (!isPaused) for (const one of held.splice(0)) add(one, true);
      describe();
    }, "quiet");
    pausing.setAttribute("aria-pressed", "false");
    const describe = () => { state.textContent = isPaused ? `Paused; ${plural(held.length, "change")} since.` : "Changes appear as they are committed."; };
    const choice = select(wanted, [["", "all"]], { onchange: () => { location.hash = pageLink(["changes"], { model: choice.value }); } });
    main.append(heading("Changes", { sub: "Changes of objects, the latest first." }), el("div", { class: "tools" }, field("Model", choice), pausing, state), list);
    describe();
    const done = waiting(list, "the changes");
    try {
      const offer = names => {
        choice.replaceChildren(...select(wanted, [["", "all"], ...[...new Set([...names, wanted].filter(Boolean))].sort().map(name => [name, name])]).children);
        choice.value = wanted;
      };
      offer([]);
      ask("/count", { signal }).then(count => offer(Object.keys(count.models)), () => {});
      // The current number, and some of the changes before it.
      const now = number((await ask(target("/changes", { limit: 1 }), { signal })).next);
      let last = String(Math.max(0, now - 200));
      if (now > 0) {
        let before = await ask(target("/changes", { since: last, limit: 300, model: wanted }), { signal });
        // The number lies before the store's first change: then there are few changes, and all are loaded.
        if (before.resets?.some(one => one.reason === "unknown")) before = await ask(target("/changes", { since: 0, limit: 300, model: wanted }), { signal });
        for (const one of before.changes) add(one, false);
        last = String(number(before.next));
      }
      if (!made.body.children.length) list.replaceChildren(card(empty("No changes yet", "They appear here as they are committed.")));
      while (!signal.aborted) {
        try {
          await listen(target("/changes", { since: last, model: wanted }), { signal }, (name, data, id) => {
            const one = name === "reset" ? { reset: data.message } : { kind: name, ...data };
            if (id) last = id;
            if (isPaused) { held.push(one); held.splice(0, held.length - 300); describe(); } else add(one, true);
          });
          await pause(500, signal);
        } catch (error) {
          if (signal.aborted || error instanceof Locked || error instanceof Problem) throw error;
          if (!(error instanceof Gone)) connection.lost();
          await connection.up();
        }
      }
    } catch (error) {
      if (signal.aborted || error instanceof Locked) return;
      if (error instanceof Gone) page.hasFailed = true;
      list.replaceChildren(card(complaint(error)));
    } finally { done(); }
  };

  // ---------------------------------------------------------------- Warnings

  const warningNode = (one, isShort) => el("article", { class: "warning" },
    el("div", { class: "top" }, el("h3", {}, foreign(one.subject || "Larder"), " ", pill(one.kind, "warn")),
      el("span", { class: "note" }, `${grouped(one.count)} ×, last `, when(one.last), isShort ? "" : [", first ", when(one.first)])),
    el("p", {}, foreign(one.message)),
    one.url && el("p", { class: "note" }, "in ", el("a", { href: pageLink(["documents"], { search: one.url.slice(0, 300) }), class: "mono foreign" }, foreign(one.url)), one.pointer ? [" at ", code(one.pointer)] : ""),
    !isShort && one.remedy && [el("p", {}, foreign(one.remedy.sentence)), one.remedy.lines && el("pre", { class: "remedy", tabindex: "0", role: "region", "aria-label": "Lines for the config" }, visible(one.remedy.lines, true))]);
  const warningsPage = async ({ signal, query }) => {
    const list = el("div", {});
    main.append(heading("Warnings", { sub: "What did not fit the models and routes. Nothing was delayed, refused or changed because of it, except that the mapped view may leave a value out." }), list);
    await fill(list, "the warnings", signal, async () => {
      const response = await ask(target("/warnings", { limit: 50, after: query.get("after") }), { signal });
      if (!response.warnings.length) return card(empty("No warnings", "Everything that was received fits the models and routes."));
      return [card(response.warnings.map(one => warningNode(one, false))), pager(["warnings"], query, response.next, plural(response.warnings.length, "warning") + " on this page")];
    });
  };

  // ---------------------------------------------------------------- Recordings

  const recordingsPage = async ({ signal }) => {
    const [list, said] = [el("div", { class: "section" }), el("p", { class: "note bad", role: "alert" })];
    const name = el("input", { type: "text", required: true, spellcheck: "false", autocomplete: "off" });
    const owner = el("input", { type: "text", spellcheck: "false", autocomplete: "off" });
    const form = el("form", { class: "card padded form" }, el("div", { class: "fields" }, field("Name", name, "Also the name of its folder."),
      field("Session", owner, "Only requests with this Larder-Session; without it, all.")), el("p", {}, el("button", { type: "submit" }, "Begin a recording")), said);
    form.addEventListener("submit", async event => {
      event.preventDefault();
      said.textContent = "";
      try {
        await ask("/recordings", { method: "POST", signal, body: { name: name.value.trim(), ...(owner.value.trim() ? { session: owner.value.trim() } : {}) } });
        name.value = owner.value = "";
        await load();
      } catch (error) { if (!signal.aborted) tell(said, error.message); }
    });
    const fetchFile = async (recording, file) => {
      const content = await (await send(target(path("recordings", recording), { file }), { signal, accept: "*/*" })).blob();
      const link = el("a", { href: URL.createObjectURL(content), download: file.split("/").pop() });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    };
    const load = () => fill(list, "the recordings", signal, async () => {
      let response;
      try { response = await ask("/recordings", { signal }); } catch (error) {
        if (!(error instanceof Problem) || error.status !== 409) throw error;
        form.hidden = true;
        return card(empty("No recordings here", foreign(error.message)));
      }
      if (!response.recordings.length) return card(empty("No recordings yet", "A recording keeps what programs ask and receive, to be replayed without the API."));
      return response.recordings.map(one => {
        const files = el("div", {});
        const stop = one.running && button("Stop", async () => {
          if (!await confirm(`Stop the recording ${one.name}?`, el("p", {}, `It has ${plural(one.exchanges ?? 0, "exchange")} so far. A recording that is stopped does not go on.`), "Stop it")) return;
          try {
            const summary = await ask(path("recordings", one.name, "stop"), { method: "POST", signal });
            if (summary.notices.length) await confirm(`${one.name} is stopped`, summary.notices.map(line => el("p", {}, foreign(line))), "OK");
          } catch (error) { if (!signal.aborted) tell(said, error.message); }
          await load();
        }, "quiet");
        const open = button("Files", () => fill(files, "the files", signal, async () => {
          const known = await ask(path("recordings", one.name), { signal });
          const made = table("Files", [{ title: "File", main: true }, { title: "", width: "w-m", bare: true }]);
          for (const file of known.files) made.add(code(file), button("Save", () => fetchFile(one.name, file).catch(error => { tell(said, error.message); }), "quiet"));
          return known.files.length ? made.node : empty("No files", "");
        }), "quiet");
        return el("article", { class: "spaced" }, card(el("div", { class: "warning" }, el("div", { class: "top" },
          el("h3", {}, foreign(one.name), " ", one.running ? pill("recording", "bad") : pill("stopped")), el("span", {}, stop || null, " ", open)),
          el("p", { class: "note" }, one.running ? [plural(one.exchanges ?? 0, "exchange"), one.began ? [", begun ", when(one.began)] : "", one.session ? [", session ", foreign(one.session)] : ""] : "", " in ", code(one.folder)), files)));
      });
    });
    main.append(heading("Recordings", { sub: "What programs ask and receive, kept in folders to be replayed." }), form, list);
    await load();
  };

  // ---------------------------------------------------------------- Clean and mode

  const removed = (count, isDry) => [
    el("p", {}, `${isDry ? "This removes" : "Removed:"} ${plural(count.documents, "document")} and ${plural(count.objects, "object")}, ${size(count.bytes)}.`),
    Object.keys(count.models).length ? el("p", {}, Object.entries(count.models).map(([model, objects], index) => [index ? ", " : "", `${grouped(objects)} `, foreign(model)])) : null,
    count.orphaned ? el("p", {}, `${plural(count.orphaned, "other object that no document shows stays", "other objects that no document shows stay")} stored until space is needed.`) : null,
  ].filter(Boolean);
  /// Counts first, asks, then removes; says how far it is.
  const cleanUp = async (conditions, signal, done, place) => {
    const report = el("div", { role: "status" });
    const dialog = (...nodes) => (place ?? report).replaceChildren(...nodes.flat());
    if (!place) main.querySelector(".head").after(report);
    const run = (isDry, verb) => new Promise((resolve, reject) => {
      const stopping = new AbortController();
      const words = el("span", {}, `${verb}…`);
      signal.addEventListener("abort", () => stopping.abort(), { once: true });
      dialog(card(el("div", { class: "padded pager" }, words, button("Stop", () => stopping.abort(), "quiet"))));
      let isOver = false;
      listen("/clean", { method: "POST", body: { ...conditions, dry_run: isDry }, signal: stopping.signal }, (name, data) => {
        if (name === "progress") words.textContent = `${verb}: ${plural(data.documents, "document")}, ${plural(data.objects, "object")} so far…`;
        else if (name === "done") { isOver = true; resolve(data); }
        else if (name === "error") { isOver = true; reject(new Problem(data.status, data.detail ?? data.title)); }
      }).then(() => { if (!isOver) reject(new Gone("the connection broke off; what was removed stays removed")); },
        error => stopping.signal.aborted ? resolve(null) : reject(error));
    });
    try {
      const counted = await run(true, "Counting what this would remove");
      if (!counted) return dialog(card(empty("Stopped", "Nothing was removed.")));
      if (!counted.documents && !counted.objects) return dialog(card(empty("Nothing to remove", "The store has nothing that fits these conditions.")));
      if (!await confirm("Remove this for good?", removed(counted, true), "Remove", true)) return dialog(card(empty("Not removed", "Everything is as it was.")));
      const result = await run(false, "Removing");
      dialog(card(result ? el("div", { class: "empty" }, el("strong", {}, "Done"), removed(result, false)) : empty("Stopped", "What was removed until then stays removed.")));
      done?.();
    } catch (error) {
      if (!signal.aborted && !(error instanceof Locked)) dialog(card(complaint(error)));
    }
  };

  const cleanPage = async ({ signal, query }) => {
    const input = name => el("input", { type: "text", spellcheck: "false", autocomplete: "off", value: query.get(name) ?? "" });
    const fields = { model: input("model"), id: input("id"), route: input("route"), upstream: input("upstream"), principal: input("principal"), older_than: input("older_than") };
    const everything = el("input", { type: "checkbox", id: "everything", onchange: () => { for (const one of Object.values(fields)) one.disabled = everything.checked; } });
    const [report, said] = [el("div", { class: "section", role: "status" }), el("p", { class: "note bad", role: "alert" })];
    const form = el("form", { class: "card padded form" }, el("div", { class: "fields" },
      field("Model", fields.model, "Its objects, and the documents that show them."), field("Identity or key", fields.id, "One object of the model."), field("Route", fields.route, "A path as the config spells it."),
      field("Upstream", fields.upstream), field("Principal", fields.principal, "A label, such as anonymous."), field("Older than", fields.older_than, "90s, 15m, 12h, 7d.")),
      el("p", { class: "check" }, everything, el("label", { for: "everything" }, "Everything")),
      el("p", {}, el("button", { type: "submit", class: "danger" }, "Preview")), said);
    form.addEventListener("submit", async event => {
      event.preventDefault();
      const conditions = everything.checked ? { all: true } : Object.fromEntries(Object.entries(fields).map(([name, one]) => [name, one.value.trim()]).filter(([, value]) => value));
      said.textContent = Object.keys(conditions).length ? "" : "Give a condition, or choose everything.";
      if (said.textContent) return;
      const submit = form.querySelector("button");
      submit.disabled = true;
      await cleanUp(conditions, signal, null, report);
      submit.disabled = false;
    });
    main.append(heading("Clean", { sub: "Removes what fits every condition. It is counted first, and you are asked." }), form, report);
  };

  // Read to the end, because an unread body may occupy one of the browser's few connections.
  const isReady = async () => {
    try {
      const response = await fetch("/readyz", { cache: "no-store" });
      await response.text();
      return response.ok;
    } catch { return false; }
  };
  // On a slow link requests overlap: the latest is shown, and the timer sends none while one is under way.
  let [modeTurn, modeReads] = [0, 0];
  const readMode = async () => {
    const turn = ++modeTurn;
    modeReads++;
    try {
      const [{ mode }, ready] = await Promise.all([ask("/mode"), isReady()]);
      if (turn === modeTurn) {
        tell(byID("mode-text"), ready ? mode : mode + ", not ready");
        byID("dot").className = "dot " + (!ready ? "bad" : mode === "offline" ? "warn" : "good");
      }
      return mode;
    } finally { modeReads--; }
  };
  const changeMode = async () => {
    try {
      const mode = await readMode();
      const other = mode === "offline" ? "auto" : "offline";
      const act = other === "offline" ? "Go offline" : "Go back to auto";
      const meaning = other === "offline" ? "Larder then asks no upstream. Programs get what is stored; what is not stored gets 504."
        : "Larder then asks upstreams for what is not stored or not fresh, unless they cannot be reached.";
      if (!await confirm(`${act}?`, [el("p", {}, meaning), el("p", {}, "This lasts until it is changed again, or until Larder restarts.")], act)) return;
      await ask("/mode", { method: "PUT", body: { mode: other } });
      await readMode();
      connection.banner(other === "offline" ? "Larder is offline now." : "Larder is in the mode auto now.", true);
      setTimeout(() => { if (connection.isUp) connection.banner(""); }, 3000);
    } catch (error) {
      if (!(error instanceof Gone || error instanceof Locked)) connection.banner(error.message);
    }
  };

  // ---------------------------------------------------------------- Login

  const loginPage = words => {
    document.body.classList.add("locked");
    byID("side").hidden = true;
    document.title = "Log in – Larder";
    const token = el("input", { type: "password", id: "token", autocomplete: "off", required: true, spellcheck: "false" });
    const said = el("p", { class: "said", role: "alert", id: "said" });
    const form = el("form", {}, el("label", { for: "token" }, "Or give the admin token"), token,
      el("span", { class: "note" }, "The content of ", el("code", {}, "admin.token"), " beside the store. This page does not keep it."), el("p", {}, el("button", { type: "submit" }, "Log in")));
    form.addEventListener("submit", async event => {
      event.preventDefault();
      said.textContent = "";
      const given = token.value.trim();
      token.value = "";
      if (!await logIn({ token: given }, said)) token.focus();
    });
    main.replaceChildren(el("div", { class: "login" }, el("div", {}, el("h1", { tabindex: "-1" }, "Larder"), el("p", { class: "note" }, "The dashboard of the daemon at this address.")),
      el("div", { class: "card" }, said, el("h2", {}, "Log in"), el("p", {}, "Run this where Larder runs, as a user who may use it:"), el("pre", {}, "larder dashboard"),
        el("p", { class: "note" }, "It opens this page with a link that works once."), form)));
    tell(said, words ?? "");
  };
  const logIn = async (credentials, said) => {
    try {
      keep((await ask("/login", { method: "POST", body: credentials, isOpen: true })).session);
      await begin();
      return true;
    } catch (error) {
      if (error instanceof Locked) return true;
      tell(said, error.message);
      return false;
    }
  };
  const lock = words => {
    page.leave();
    keep(null);
    byID("dialog").close("no");
    loginPage(words);
  };
  const logOut = async () => {
    try { await send("/login", { method: "DELETE" }); } catch {}
    lock("");
    main.querySelector("h1").focus();
  };

  // ---------------------------------------------------------------- Pages by their addresses

  const page = {
    controller: null,
    hasFailed: false,
    leave() { this.controller?.abort(); this.controller = null; this.hasFailed = false; },
  };
  const pages = [
    [[], overview, "Overview"], [["traffic"], trafficPage, "Traffic"], [["requests"], requestsPage, "Requests"], [["requests", null], requestPage, null], [["explain"], explainPage, "Explain"], [["objects"], modelsPage, "Objects"],
    [["objects", null], objectsPage, null], [["objects", null, null], objectPage, null], [["documents"], documentsPage, "Documents"], [["documents", null], documentPage, null],
    [["changes"], changesPage, "Changes"], [["warnings"], warningsPage, "Warnings"], [["recordings"], recordingsPage, "Recordings"], [["clean"], cleanPage, "Clean"],
  ];
  const decoded = part => { try { return decodeURIComponent(part); } catch { return part; } };
  const show = async isFirst => {
    page.leave();
    const [place, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
    const parts = place.split("/").filter(Boolean).map(decoded);
    const found = pages.find(([pattern]) => pattern.length === parts.length && pattern.every((part, index) => part === null || part === parts[index]));
    const controller = page.controller = new AbortController();
    main.replaceChildren();
    for (const link of byID("nav").querySelectorAll("a")) {
      if (link.dataset.page === (parts[0] ?? "")) { link.setAttribute("aria-current", "page"); link.scrollIntoView?.({ block: "nearest", inline: "nearest" }); }
      else link.removeAttribute("aria-current");
    }
    const names = parts.slice(found?.[0].indexOf(null) === -1 ? 0 : 1).join(" ");
    document.title = `${(found?.[2] ?? (plain(names) || "Not found")).slice(0, 80)} – Larder`;
    scrollTo(0, 0);
    try {
      if (!found) main.append(heading("No such page"), card(empty("There is nothing here", el("a", { href: "#/" }, "Back to the overview"))));
      else {
        const running = found[1]({ signal: controller.signal, query: new URLSearchParams(query) }, ...parts.filter((_, index) => found[0][index] === null));
        // After a link, a screen reader says where it leads.
        if (isFirst !== true) main.querySelector("h1")?.focus({ preventScroll: true });
        await running;
      }
    } catch (error) {
      if (controller.signal.aborted || error instanceof Locked) return;
      if (error instanceof Gone) page.hasFailed = true;
      main.append(card(complaint(error, () => show())));
    }
  };

  const begin = async () => {
    await readMode();
    document.body.classList.remove("locked");
    byID("side").hidden = false;
    show(true);
  };

  addEventListener("hashchange", () => { if (session) { if (location.hash.startsWith("#login=")) start(); else show(); } else if (location.hash.startsWith("#login=")) start(); });
  addEventListener("keydown", event => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    const search = main.querySelector("input[type=search]");
    if (search) { event.preventDefault(); search.focus(); search.select(); }
  });
  byID("skip").addEventListener("click", event => { event.preventDefault(); main.focus(); });
  byID("mode-button").addEventListener("click", changeMode);
  byID("logout").addEventListener("click", logOut);
  setInterval(() => { if (session && connection.isUp && !document.hidden && !modeReads) readMode().catch(() => {}); }, 5000);

  const start = async () => {
    const login = location.hash.match(/^#login=(.+)$/);
    if (login) {
      // Neither added to the history nor repeated by a reload.
      history.replaceState(null, "", "#/");
      page.leave();
      document.body.classList.add("locked");
      byID("side").hidden = true;
      main.replaceChildren(el("p", { class: "wait", role: "status" }, "Logging in…"));
      const said = {};
      if (!await logIn({ code: decoded(login[1]) }, said)) loginPage(said.textContent);
    } else if (session) {
      try { await begin(); } catch (error) {
        if (error instanceof Locked) return;
        await connection.up();
        start();
      }
    } else loginPage("");
  };
  start();
})();
