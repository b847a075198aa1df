import HTTPSemantics
import Proxy

/// The page at `/` of the admin address: what a person sees first.
///
/// It holds no data. Its script asks `/count`, `/mode` and so on, with the token that the person types where one is wanted; so
/// the page itself may be shown to whoever reaches the address.
enum StatusPage {
    /// The page, under a policy that lets in nothing but its own script and style.
    static func response(status: Int) -> AdminResponse {
        let nonce = nonce()
        let hits = Outcome.allCases.filter(\.isHit).map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
        let page = template.replacing("NONCE", with: nonce).replacing("HITS", with: hits)
        var response = AdminResponse.text(Array(page.utf8), type: "text/html; charset=utf-8", status: status)
        response.fields.append(
            "Content-Security-Policy",
            "default-src 'none'; script-src 'nonce-\(nonce)'; style-src 'nonce-\(nonce)'; connect-src 'self'; "
                + "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return response
    }

    private static func nonce() -> String {
        String(UInt64.random(in: .min ... .max), radix: 36) + String(UInt64.random(in: .min ... .max), radix: 36)
    }

    private static let template = #"""
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width">
        <title>Larder</title>
        <link rel="icon" href="data:,">
        <style nonce="NONCE">
        :root { color-scheme: light dark; --ink: #1d2b28; --soft: #5d6d69; --line: #d9e0de; --paper: #fbfcfb; --accent: #1f7a5c }
        @media (prefers-color-scheme: dark) {
          :root { --ink: #e4ece9; --soft: #93a5a0; --line: #2c3a36; --paper: #131a18; --accent: #5cc79e }
        }
        * { box-sizing: border-box }
        body { margin: 0 auto; max-width: 46rem; padding: 3rem 1.25rem; background: var(--paper); color: var(--ink);
          font: 16px/1.5 system-ui, sans-serif }
        header { display: flex; align-items: baseline; justify-content: space-between; gap: 1rem; flex-wrap: wrap }
        h1 { font-size: 1.6rem; margin: 0; letter-spacing: -.01em }
        h2 { font-size: .8rem; font-weight: 600; letter-spacing: .06em; text-transform: uppercase; color: var(--soft);
          margin: 2.5rem 0 .5rem }
        .figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: 1px; margin: 2rem 0 0;
          background: var(--line); border: 1px solid var(--line); border-radius: .6rem; overflow: hidden }
        .figures div { background: var(--paper); padding: 1rem }
        dt { color: var(--soft); font-size: .85rem } dd { margin: 0; font-size: 1.5rem; font-variant-numeric: tabular-nums }
        table { width: 100%; border-collapse: collapse } td { padding: .35rem 0; border-top: 1px solid var(--line);
          overflow-wrap: anywhere }
        td:last-child { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; padding-left: 1rem }
        form { margin: 2rem 0; display: flex; gap: .5rem; flex-wrap: wrap }
        input { flex: 1 14rem; padding: .5rem .7rem; border: 1px solid var(--line); border-radius: .4rem; font: inherit;
          background: transparent; color: inherit }
        button { padding: .5rem 1rem; border: 0; border-radius: .4rem; font: inherit; background: var(--accent);
          color: var(--paper); cursor: pointer }
        .state { color: var(--soft) } .state b { color: var(--accent) } .state.bad b { color: #c0492b }
        p.none { color: var(--soft); margin: .25rem 0 } [hidden] { display: none }
        </style>
        </head>
        <body>
        <header><h1>Larder</h1><span class="state" id="state" role="status">…</span></header>
        <form id="ask" hidden>
          <input id="token" type="password" autocomplete="off" required aria-label="Admin token"
            placeholder="Token: the content of admin.token beside the store">
          <button>Show</button>
        </form>
        <main id="main" hidden>
          <dl class="figures">
            <div><dt>Objects</dt><dd id="objects"></dd></div>
            <div><dt>Documents</dt><dd id="documents"></dd></div>
            <div><dt>Store</dt><dd id="bytes"></dd></div>
            <div><dt>Hit ratio</dt><dd id="ratio"></dd></div>
          </dl>
          <h2>Models</h2><div id="models"></div>
          <h2>Warnings</h2><div id="warnings"></div>
        </main>
        <script nonce="NONCE">
        "use strict";
        const part = id => document.getElementById(id);
        let token = sessionStorage.getItem("token");
        const ask = async path => {
          const answer = await fetch(path, token ? { headers: { Authorization: "Bearer " + token } } : {});
          if (!answer.ok) throw answer;
          return answer;
        };
        const size = bytes => {
          const units = ["B", "KiB", "MiB", "GiB", "TiB"];
          let unit = 0;
          while (bytes >= 1024 && unit < 4) { bytes /= 1024; unit++ }
          return (unit && bytes < 10 ? bytes.toFixed(1) : Math.round(bytes)) + " " + units[unit];
        };
        const ratio = metrics => {
          let hits = 0, all = 0;
          for (const [, outcome, count] of metrics.matchAll(/^larder_requests_total\{outcome="(\w+)"\} (\S+)$/gm)) {
            all += +count;
            if ([HITS].includes(outcome)) hits += +count;
          }
          return all ? Math.round(1000 * hits / all) / 10 + " %" : "–";
        };
        const table = (place, rows, none) => {
          const list = document.createElement(rows.length ? "table" : "p");
          if (!rows.length) { list.className = "none"; list.textContent = none }
          for (const row of rows) {
            const line = list.insertRow();
            for (const text of row) line.insertCell().textContent = text;
          }
          part(place).replaceChildren(list);
        };
        const state = (word, rest, bad) => {
          const strong = document.createElement("b");
          strong.textContent = word;
          part("state").replaceChildren(strong, rest);
          part("state").classList.toggle("bad", bad);
        };
        const show = async () => {
          try {
            const [count, mode, warnings, metrics] = await Promise.all([
              ask("/count").then(a => a.json()), ask("/mode").then(a => a.json()),
              ask("/warnings?limit=20").then(a => a.json()), ask("/metrics").then(a => a.text())]);
            const ready = await fetch("/readyz");
            part("objects").textContent = count.objects.toLocaleString();
            part("documents").textContent = count.documents.toLocaleString();
            part("bytes").textContent = size(count.bytes);
            part("ratio").textContent = ratio(metrics);
            table("models", Object.entries(count.models).map(([name, n]) => [name, n.toLocaleString()]), "No objects yet.");
            table("warnings", warnings.warnings.map(w =>
              [[w.subject, w.message, w.url && "(" + w.url + ")"].filter(Boolean).join(" "), w.count + " ×"]), "None.");
            state(mode.mode, ready.ok ? ", ready" : ", " + (await ready.json()).detail, !ready.ok);
            part("main").hidden = false;
            part("ask").hidden = true;
            setTimeout(show, 5000);
          } catch (answer) {
            const locked = answer.status === 401;
            if (locked) { token = null; sessionStorage.removeItem("token"); part("main").hidden = true }
            part("ask").hidden = !locked;
            state(locked ? "locked" : "unreachable", locked ? ": the token opens it" : "", !locked);
            if (!locked) setTimeout(show, 5000);
          }
        };
        part("ask").addEventListener("submit", event => {
          event.preventDefault();
          token = part("token").value.trim();
          sessionStorage.setItem("token", token);
          part("token").value = "";
          show();
        });
        show();
        </script>
        </body>
        </html>

        """#
}
