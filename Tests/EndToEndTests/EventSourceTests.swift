import Foundation
import Glibc
import TestSupport
import Testing

/// The query parameter `larder_live`, for a page's `EventSource`, which can send no field of its own.
@Suite(.scripts) struct EventSourceTests: LiveFixtures {
    /// What Chromium sends for `new EventSource(…)`, to the byte.
    private static func bytes(_ target: String, _ larder: Larder, _ more: String = "", site: String) -> String {
        "GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(larder.port)\r\nConnection: keep-alive\r\nPragma: no-cache\r\n"
            + "Cache-Control: no-cache\r\nsec-ch-ua-platform: \"Linux\"\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) "
            + "AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/156.0.0.0 Safari/537.36\r\n"
            + "Accept: text/event-stream\r\nsec-ch-ua: \"Not:A-Brand\";v=\"8\", \"Chromium\";v=\"156\"\r\n"
            + "sec-ch-ua-mobile: ?0\r\n\(more)Sec-Fetch-Site: \(site)\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n"
            + "Accept-Encoding: gzip, deflate, br, zstd\r\nAccept-Language: en-US,en;q=0.9\r\n\r\n"
    }

    private static let takesEvents: FieldLines = ["Accept": "text/event-stream"]

    @Test func `the live parameter is not sent upstream, and the response is stored under the plain URL`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.hour) }
        let larder = try Larder(config: Configs.plain(origin, top: ["log: { level: debug }"]))
        for target in [
            "/x?larder_live=once", "/x?a=1&larder_live=once&b=2", "/x?larder%5Flive=%6fnce&a=1", "/x?&larder_live=once",
        ] {
            let answer = try larder.get(target, Self.takesEvents)
            #expect(answer["Content-Type"] == "text/event-stream", "\(target): \(answer.text)")
            #expect(try answer.events.last?.text == Self.old, "\(target)")
        }
        #expect(origin.requests.map(\.target) == ["/x", "/x?a=1&b=2", "/x?a=1", "/x?"])
        #expect(origin.requests.allSatisfy { $0["Accept"] == "*/*" })
        for plain in ["/x", "/x?a=1&b=2", "/x?a=1", "/x?"] { #expect(try larder.get(plain).isHit, "\(plain)") }
        #expect(!larder.log.contains("larder_live"))
    }

    @Test func `Chromium's EventSource requests are served, also to a page of an allowed origin`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.hour) }
        let page = "http://127.0.0.1:3000"
        let larder = try Larder(config: Configs.plain(origin, upstream: ["cors: [\"\(page)\"]"]))
        let referer = "Referer: http://127.0.0.1:\(larder.port)/page\r\n"
        let own = try larder.client()
        try own.send(Self.bytes("/x?larder_live=once", larder, referer, site: "same-origin"))
        #expect(try own.response().events.map(\.name) == ["fresh"])
        let foreign = try larder.client()
        let more = "Origin: \(page)\r\nReferer: \(page)/\r\n"
        try foreign.send(Self.bytes("/x?larder_live=once", larder, more, site: "same-site"))
        let answer = try foreign.response()
        #expect(try answer.events.map(\.name) == ["cached", "unchanged"])
        #expect(answer["Access-Control-Allow-Origin"] == page)
        #expect(answer["Vary"] == "Origin")
        let refused = try larder.client()
        let evil = "Origin: http://127.0.0.1:3001\r\nReferer: http://127.0.0.1:3001/\r\n"
        try refused.send(Self.bytes("/x?larder_live=once", larder, evil, site: "same-site"))
        #expect(try refused.response().status == 403)
    }

    @Test func `a client that reconnects after the end of a once stream gets 204`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.hour) }
        let page = "http://127.0.0.1:3000"
        let larder = try Larder(config: Configs.plain(origin, upstream: ["cors: [\"\(page)\"]"]))
        let first = try larder.get("/x?larder_live=once", Self.takesEvents).events
        #expect(first.map(\.id) == ["end"])
        #expect(try larder.get("/x", ["Larder-Live": "once"]).events.map(\.id) == [nil, "end"])
        let client = try larder.client()
        let more = "Origin: \(page)\r\nLast-Event-ID: end\r\n"
        try client.send(Self.bytes("/x?larder_live=once", larder, more, site: "same-site"))
        let stop = try client.response()
        #expect(stop.status == 204)
        #expect(stop["Access-Control-Allow-Origin"] == page)
        // Without the upstream's word the stream ends as well.
        let known = try larder.get("/x?larder_live=once", Self.takesEvents + ["Cache-Control": "only-if-cached"]).events
        #expect(known.map(\.name) == ["cached"])
        #expect(known.map(\.id) == ["end"])
        #expect(origin.count() == 2)
    }

    @Test func `a stream that stays open goes on after a break`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.hour) }
        let larder = try Larder(origin)
        func events(after id: String?) throws -> ServerSentEvent? {
            let client = try larder.client()
            let more = id.map { "Last-Event-ID: \($0)\r\n" } ?? ""
            try client.send(Self.bytes("/x?larder_live=on", larder, more, site: "same-origin"))
            #expect(try client.head().status == 200)
            var bytes: [UInt8] = []
            while let chunk = try client.chunk() {
                bytes += chunk
                if let event = ServerSentEvent.parse(bytes).first { return event }
            }
            return nil
        }
        // The language is the browser's.
        _ = try larder.get("/x", ["Accept-Language": "en-US,en;q=0.9"])
        #expect(try larder.waitForDocuments(1))
        let first = try events(after: nil)
        #expect(first?.name == "cached")
        let id = try #require(first?.id)
        try larder.restart()
        #expect(try events(after: id)?.name == "unchanged")
    }

    @Test(
        arguments: [
            ("GET", "/x?larder_live=once", [:], "larder_live"),
            ("GET", "/x?larder_live=once", ["Accept": "text/html, */*"], "larder_live"),
            ("GET", "/x?larder_live=twice", takesEvents, "twice"), ("GET", "/x?larder_live", takesEvents, "once"),
            ("GET", "/x?larder_live=on&larder_live=once", takesEvents, "on, once"),
            ("GET", "/x?larder_live=on", takesEvents + ["Larder-Live": "once"], "once, on"),
            ("HEAD", "/x?larder_live=on", takesEvents, ""), ("POST", "/x?larder_live=on", takesEvents, "POST"),
            ("DELETE", "/x?larder_live=on", [:], "larder_live"),
        ] as [(String, String, FieldLines, String)]
    )
    func `a live request that makes no sense is refused with the reason`(
        method: String,
        target: String,
        fields: FieldLines,
        said: String
    ) throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.hour) }
        let larder = try Larder(origin)
        let answer = try larder.request(method, target, fields)
        #expect(answer.status == 400)
        #expect(method == "HEAD" || answer.text.contains(said), "\(answer.text)")
        #expect(origin.count() == 0)
    }

    /// `key: { ignore: ["*"] }` makes one key of all queries; a stream is none of their hits.
    @Test func `a cache key that ignores all parameters does not make a live stream a hit`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.hour) }
        let larder = try Larder(
            config: Configs.plain(origin, top: ["routes:", "  - { path: x, key: { ignore: [\"*\"] } }"])
        )
        _ = try larder.get("/x?a=1")
        #expect(try larder.get("/x?b=1").isHit)
        #expect(try larder.get("/x?larder_live=once", Self.takesEvents)["Content-Type"] == "text/event-stream")
        #expect(try larder.get("/x?larder_live=once").status == 400)
    }

    @Test func `an upstream's own event stream is passed on without the live parameter, and refused with it`() throws {
        let stream = "data: own\n\n"
        let origin = try Origin { _ in .text(stream, ["Content-Type": "text/event-stream"]) }
        let larder = try Larder(origin)
        #expect(try larder.get("/x", Self.takesEvents).text == stream)
        let events = try larder.get("/x?larder_live=once", Self.takesEvents).events
        #expect(events.map(\.problemType) == ["urn:larder:live-event-stream"])
    }

    // MARK: A real browser

    static let chromium: String? = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
        .first { access($0, X_OK) == 0 }

    /// Opens both forms and tells the page's own server what happened.
    private static let page = """
        <!doctype html><link rel="icon" href="data:,"><script>
        const base = new URLSearchParams(location.search).get("base") ?? "";
        const tell = text => fetch("/report?" + encodeURIComponent(text));
        for (const form of ["on", "once"]) {
          const source = new EventSource(base + "/x?larder_live=" + form);
          for (const name of ["cached", "fresh", "unchanged", "changed", "error"])
            source.addEventListener(name, event => {
              if (event.data) tell([form, name, JSON.parse(event.data).body ?? "", event.lastEventId].join(" "));
            });
          source.onerror = () => { if (source.readyState === EventSource.CLOSED) tell(form + " closed"); };
        }
        </script>
        """

    @Test(
        .enabled(if: chromium != nil, "Chromium is not installed: apt-get install chromium"),
        arguments: [true, false]
    )
    func `EventSource in Chromium follows a document`(isSameOrigin: Bool) throws {
        let body = Monitor(#"["old"]"#)
        let origin = try Origin { request in
            switch request.path {
            case "/page": .text(Self.page, ["Content-Type": "text/html", "Cache-Control": "no-store"])
            case "/report": .empty(204, ["Cache-Control": "no-store"])
            default: .json(body.current, Fresh.hour)
            }
        }
        let larder = try Larder(config: Configs.plain(origin, upstream: ["cors: [\"\(origin.url)\"]"]))
        let browser = try Browser(isSameOrigin ? "\(larder.url)/page" : "\(origin.url)/page?base=\(larder.url)")
        func waitFor(_ report: String) -> Bool {
            eventually {
                origin.requests.contains {
                    $0.path == "/report" && $0.target.removingPercentEncoding?.contains(report) == true
                }
            }
        }
        // Which of the two streams asks first is open: the other is shown what the first has brought.
        #expect(waitFor(#" ["old"] "#), "\(browser.log)")
        // The end of `once` is its end: the browser asks again, and is told to stop.
        #expect(waitFor("once closed"), "\(browser.log)")
        body.withLock { $0 = #"["new"]"# }
        #expect(try larder.request("PATCH", "/x", body: "{}").status == 200)
        #expect(waitFor(#"on changed ["new"]"#), "\(browser.log)")
        #expect(!origin.requests.contains { $0.target.contains("on%20closed") })
        #expect(!origin.requests.contains { $0.target.contains("larder_live") })
    }

    @Test(.enabled(if: chromium != nil, "Chromium is not installed: apt-get install chromium"))
    func `a page of another origin gets no events, and nothing goes upstream`() throws {
        let origin = try Origin { _ in .json(Self.old, Fresh.hour) }
        let larder = try Larder(origin)
        let foreign = try Origin { request in
            request.path == "/page"
                ? .text(Self.page, ["Content-Type": "text/html"]) : .empty(204, ["Cache-Control": "no-store"])
        }
        let browser = try Browser("\(foreign.url)/page?base=\(larder.url)")
        #expect(eventually { foreign.requests.count { $0.target.contains("closed") } == 2 }, "\(browser.log)")
        #expect(origin.count() == 0)
    }

    /// Chromium without a window, with a profile of its own.
    private final class Browser {
        private let folder = TemporaryFolder()
        private let process: TestProcess

        init(_ url: String) throws {
            process = try TestProcess(
                EventSourceTests.chromium ?? "",
                [
                    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                    "--disable-background-networking", "--user-data-dir=\(folder.file("profile"))",
                    "--remote-debugging-port=0", url,
                ]
            )
        }

        var log: String { process.errors }

        deinit {
            process.signal(SIGTERM)
            process.waitForEnd()
        }
    }
}
