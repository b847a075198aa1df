import Foundation
import Glibc
import TestSupport
import Testing

/// The dashboard in a real browser, by clicks.
@Suite(.scripts, .enabled(if: Browser.isInstalled, Comment(rawValue: Browser.absence)))
struct DashboardTests {
    /// A daemon that has seen some users and posts.
    private static func blog(admin: UInt16 = 0) throws -> Larder {
        let users = (1...120).map { #"{"id":\#($0),"login":"user\#($0)","name":"Person \#($0)","company":"Acme"}"# }
        let origin = try Origin { request in
            switch request.path {
            case "/users": .json("[\(users.joined(separator: ","))]", Fresh.hour)
            case "/users/7" where request.method == "PATCH":
                .json(#"{"id":7,"login":"user7","name":"Seven","company":"Acme"}"#)
            case "/users/7": .json(#"{"id":7,"login":"user7","name":"Person 7","company":"Acme"}"#, Fresh.hour)
            case "/posts/7": .json(#"{"id":7,"title":"Caches","author":{"id":1,"login":"user1"}}"#, Fresh.hour)
            default: .json(#"{"message":"Not Found"}"#, status: 404)
            }
        }
        let larder = try Larder(origin, config: Configs.blog(origin), admin: admin)
        for path in ["/users", "/users/7", "/posts/7"] { _ = try larder.get(path) }
        #expect(try larder.waitForDocuments(3))
        return larder
    }

    /// The link that `larder dashboard` prints.
    private static func link(_ larder: Larder) throws -> String {
        let (end, output, errors) = try larder.command("dashboard", "--print")
        #expect(end == .exited(0), "\(errors)")
        return output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private static func loggedIn(_ larder: Larder, width: Int = 1280) throws -> Browser {
        let browser = try Browser(width: width)
        try browser.open(try link(larder))
        #expect(try browser.isAt("Overview"), "\(browser.seen)")
        return browser
    }

    // MARK: Login

    @Test func `a login link works for one browser, and its second use ends that session`() throws {
        let larder = try Self.blog()
        let first = try Browser()
        let link = try Self.link(larder)
        try first.open(link)
        #expect(try first.isAt("Overview"))
        #expect(try first.shows("121"), "the objects: \(first.seen)")
        #expect(try !first.address.contains("login"), "the code is in no history")
        try first.reload()
        #expect(try first.isAt("Overview"), "a tab stays logged in")

        let second = try Browser()
        try second.open(link)
        #expect(try second.shows("this login link has been used already"), "\(second.seen)")
        #expect(try second.shows("larder dashboard"))
        #expect(try first.shows("This login has ended"), "\(first.seen)")
    }

    @Test func `without a session the dashboard shows no data, and a wrong token says what to do`() throws {
        let larder = try Self.blog()
        let token = try #require(larder.token)
        let browser = try Browser()
        try browser.open("\(larder.adminURL)/#/objects/User")
        #expect(try browser.shows("Log in"))
        #expect(try !browser.text.contains("user1"))
        try browser.type("wrong-horse-battery-staple", into: "Or give the admin token")
        try browser.click(css: "form button")
        #expect(try browser.shows("this is not the token of this daemon"), "\(browser.seen)")
        #expect(try browser.shows("run `larder dashboard`"))
        try browser.type(token, into: "Or give the admin token")
        try browser.click(css: "form button")
        #expect(try browser.isAt("User"), "it goes where it was to go: \(browser.seen)")
        #expect(try browser.shows("user1"))
        let kept = try browser.script(
            "return JSON.stringify(sessionStorage) + JSON.stringify(localStorage) + document.cookie"
        )
        #expect((kept as? String)?.contains(token) == false, "the page does not keep the token")
        try browser.click("Log out")
        #expect(try browser.shows("Or give the admin token"))
        #expect(try !browser.text.contains("user1"))
        let ended = try browser.script("return sessionStorage.length") as? Int
        #expect(ended == 0)
    }

    @Test func `an unknown login link says so`() throws {
        let larder = try Self.blog()
        let browser = try Browser()
        try browser.open("\(larder.adminURL)/#login=made-up")
        #expect(try browser.shows("this login link is not known"), "\(browser.seen)")
    }

    @Test func `at a desktop the login link is opened, and not printed`() throws {
        let larder = try Self.blog()
        let folder = TemporaryFolder()
        try folder.write("#!/bin/sh\nprintf %s \"$1\" > \(folder.file("opened"))\n", to: "xdg-open")
        chmod(folder.file("xdg-open"), 0o700)
        let arguments = [
            "dashboard", "--admin", "127.0.0.1:\(larder.adminPort)", "--store", larder.folder.file("larder.db"),
        ]
        let path = "\(folder.path):/usr/bin:/bin"
        let desktop = try Larder.run(arguments, environment: ["PATH": path, "DISPLAY": ":0"])
        #expect(desktop.output == "opened \(larder.adminURL)/ in your browser\n", "\(desktop.errors)")
        let link = String(decoding: folder.bytes("opened"), as: UTF8.self)
        #expect(link.hasPrefix("\(larder.adminURL)/#login="))
        let terminal = try Larder.run(arguments, environment: ["PATH": path])
        #expect(terminal.output.hasPrefix("\(larder.adminURL)/#login="))
        #expect(terminal.errors.contains("it works once"))
        #expect(try Larder.run(arguments + ["--json"]).output.contains(#"{"url": "\#(larder.adminURL)/#login="#))
    }

    // MARK: Finding one's way

    @Test func `every page of the dashboard works, also on a phone, without errors in the browser`() throws {
        let larder = try Self.blog()
        for width in [1360, 360] {
            let browser = try Self.loggedIn(larder, width: width)
            let pages = [
                "Traffic", "Requests", "Objects", "Documents", "Changes", "Explain", "Warnings", "Recordings", "Clean",
                "Overview",
            ]
            for name in pages {
                try browser.click(name)
                #expect(try browser.isAt(name))
                let current = try browser.script(
                    "return document.querySelector('nav a[aria-current=page]').textContent"
                )
                #expect(current as? String == name)
                #expect(try browser.title == "\(name) – Larder")
                let overflow =
                    try browser.script("return document.documentElement.scrollWidth - innerWidth") as? Int ?? 1
                #expect(overflow <= 0, "\(name) is wider than \(width) pixels")
                let unnamed = try browser.script(
                    """
                    return [...document.querySelectorAll('main input, main select, main textarea, main button')].filter(one =>
                      !one.labels?.length && !one.textContent.trim() && !one.getAttribute('aria-label')).length
                    """
                )
                #expect(unnamed as? Int == 0, "\(name) has a control without a name")
                #expect(try browser.script("return document.activeElement.tagName") as? String == "H1")
            }
            try browser.back()
            #expect(try browser.isAt("Clean"))
            #expect(try browser.complaints().filter { !$0.contains("409") } == [])
        }
    }

    @Test func `the dashboard leads from a model to an object, its documents, and a body in all views`() throws {
        let larder = try Self.blog()
        let browser = try Self.loggedIn(larder)
        try browser.click("Objects")
        try browser.click("User")
        #expect(try browser.isAt("User"))
        #expect(try browser.shows("50 objects on this page"))
        try browser.click("Next")
        #expect(try browser.shows("user51"), "\(browser.seen)")
        #expect(try !browser.text.contains("user50"))
        try browser.click("Previous")
        #expect(try browser.shows("user50"))
        try browser.type("USER119", into: "Identity, key or JSON contains")
        try browser.click("Search")
        #expect(try browser.shows("1 object found"), "\(browser.seen)")
        try browser.click("119")
        #expect(try browser.isAt("User 119"))
        #expect(try browser.shows("Where its members come from"))
        #expect(try browser.shows("GET /users"))
        try browser.click("/users")
        #expect(try browser.isAt("/users"))
        #expect(try browser.shows(#""login":"user119""#), "\(browser.seen.prefix(2000))")
        try browser.click("One member on each line")
        #expect(try browser.shows("\"login\": \"user119\""))
        #expect(try browser.shows("max-age=3600"))
        #expect(try browser.shows("lifetime"))
        try browser.click("Mapped")
        #expect(try browser.shows("in the form of its models"))
        try browser.click("Raw")
        #expect(try browser.shows("the bytes as received"))
        try browser.click("What a request for it would get now")
        #expect(try browser.isAt("Explain"))
        #expect(try browser.shows("served from the cache"), "\(browser.seen)")
    }

    @Test func `requests are shown as they happen, each with an explanation`() throws {
        let larder = try Self.blog()
        let browser = try Self.loggedIn(larder)
        try browser.click("Requests")
        #expect(try browser.isAt("Requests"))
        #expect(try browser.shows("/posts/7"), "\(browser.seen)")
        _ = try larder.get("/nowhere")
        #expect(try browser.shows("GET /nowhere"))
        try browser.click("GET /users/7")
        #expect(try browser.isAt("GET /users/7"))
        #expect(try browser.shows(#"{"id":7,"login":"user7","name":"Person 7","company":"Acme"}"#), "\(browser.seen)")
        #expect(try browser.shows("max-age=3600"), "its fields: \(browser.seen)")
        try browser.click("Mapped")
        #expect(try browser.isAt("GET /users/7"))
        #expect(try browser.shows("in the form of its models"))
        try browser.click("What such a request would get now")
        #expect(try browser.isAt("Explain"))
        #expect(try browser.shows("served from the cache"), "\(browser.seen)")
        #expect(try browser.shows("Freshness"))
    }

    @Test func `a past request whose response is not stored says so on its page`() throws {
        let larder = try Self.blog()
        #expect(try larder.request("PATCH", "/users/7", body: "{}").status == 200)
        let browser = try Self.loggedIn(larder)
        try browser.click("Requests")
        try browser.click("PATCH /users/7")
        #expect(try browser.isAt("PATCH /users/7"))
        #expect(try browser.shows("Not stored"), "\(browser.seen)")
        #expect(try browser.shows("passed on, and not stored"))
        #expect(try browser.complaints() == [])
    }

    @Test func `requests are filtered by status, outcome and program, and the address keeps the filters`() throws {
        let larder = try Self.blog()
        _ = try larder.admin("GET", "/requests")
        _ = try larder.get("/users/7", ["User-Agent": "PyGithub/Python"])
        _ = try larder.get("/nowhere", ["User-Agent": "nightly/1"])
        let browser = try Self.loggedIn(larder)
        try browser.click("Requests")
        let urls = {
            try browser.script("return [...document.querySelectorAll('tbody a')].map(one => one.textContent)")
                as? [String] ?? []
        }
        #expect(try eventually { try urls().count == 5 }, "\(browser.seen)")
        try browser.choose("4xx", in: "Status")
        #expect(try eventually { try urls() == ["GET /nowhere"] }, "\(browser.seen)")
        try browser.choose("PyGithub", in: "Program")
        #expect(try browser.shows("No request fits"))
        try browser.choose("all", in: "Status")
        #expect(try eventually { try urls() == ["GET /users/7"] }, "\(browser.seen)")
        try browser.choose("miss", in: "Outcome")
        #expect(try browser.shows("No request fits"))
        try browser.choose("all", in: "Program")
        #expect(try eventually { try urls().count == 4 && !urls().contains("GET /missing") }, "\(browser.seen)")
        try browser.choose("nightly", in: "Program")
        #expect(try eventually { try urls() == ["GET /nowhere"] })
        try browser.reload()
        #expect(try eventually { try urls() == ["GET /nowhere"] }, "\(browser.seen)")
    }

    @Test func `traffic is shown by upstream and route, with response times, and with those who ask most`() throws {
        let larder = try Self.blog()
        _ = try larder.admin("GET", "/requests")
        for _ in 1...3 { _ = try larder.get("/users/7", ["User-Agent": "PyGithub/Python"]) }
        _ = try larder.get("/nowhere", ["User-Agent": "nightly/1"])
        let browser = try Self.loggedIn(larder)
        try browser.click("Traffic")
        #expect(try browser.shows("By route, last day"))
        let rows = { (table: String) in
            try browser.script(
                """
                return [...document.querySelector(`table[aria-label^="${arguments[0]}"]`).tBodies[0].rows].map(row =>
                  [...row.cells].filter(cell => !cell.hidden).slice(0, 3).map(cell => cell.textContent).join("|"))
                """,
                table
            ) as? [String] ?? []
        }
        #expect(try browser.shows("users/{id:#}"), "\(browser.seen)")
        #expect(try rows("Requests by route").contains("users/{id:#}|4|75.0 %"), "\(browser.seen)")
        #expect(try rows("Programs").first == "PyGithub|3|", "\(browser.seen)")
        #expect(try rows("URLs").first == "/users/7|4|1", "\(browser.seen)")
        #expect(try rows("Principals").first?.hasPrefix("anonymous|") == true)
        let drawn =
            "return document.querySelectorAll('.chart rect.f-hit').length + '|' + document.querySelectorAll('.chart path.l-p99').length"
        #expect(try browser.script(drawn) as? String == "1|1")
        try browser.choose("posts/{id:#}", in: "Route")
        #expect(try eventually { try browser.address.contains("route=posts") })
        #expect(try browser.shows("1 in all"), "\(browser.seen)")
        try browser.choose("upstream requests", in: "Most")
        #expect(try eventually { try !rows("Programs").contains { $0.hasPrefix("PyGithub") && $0.hasSuffix("|1") } })
        try browser.click("nightly")
        #expect(try browser.isAt("Requests"))
        #expect(try browser.shows("GET /nowhere"))
        #expect(try browser.complaints() == [])
    }

    @Test func `stale responses and failures are not green, and an upstream has the state that the command shows`()
        throws
    {
        let origin = try Origin { request in
            request.path == "/broken"
                ? .json("{}", status: 500)
                : .json("{}", ["Cache-Control": "max-age=0, stale-while-revalidate=3600"])
        }
        let larder = try Larder(origin, config: Configs.plain(origin))
        _ = try larder.get("/old")
        #expect(try larder.waitForDocuments(1))
        #expect(try larder.get("/old").isHit)
        for _ in 1...6 { #expect(try larder.get("/broken").status == 500) }
        let browser = try Self.loggedIn(larder)
        #expect(try browser.shows("failing"), "\(browser.seen)")
        #expect(try larder.command("status").output.contains("failing"))
        #expect(try browser.shows("upstream api fails since"), "what needs a person is on top: \(browser.seen)")
        let kinds = { (words: String) in
            try browser.script(
                "return [...document.querySelectorAll('.pill')].filter(one => one.textContent === arguments[0]).map(one => one.className.trim())",
                words
            ) as? [String] ?? []
        }
        #expect(try eventually { try kinds("stale") == ["pill warn"] }, "\(browser.seen)")
        #expect(try kinds("failing") == ["pill bad"])
        #expect(
            try browser.script("return document.querySelectorAll('.chart rect.f-stale').length > 0") as? Bool == true
        )
        #expect(try browser.script("return document.querySelectorAll('.chart rect.f-hit').length") as? Int == 0)
        #expect(
            try browser.script("return document.querySelectorAll('.chart rect.f-error').length > 0") as? Bool == true
        )
    }

    @Test func `at 1360 pixels nothing is cut beside an empty column`() throws {
        let larder = try Self.blog()
        let browser = try Self.loggedIn(larder, width: 1360)
        let long = "/users/7?q=" + String(repeating: "a+long+query&", count: 8)
        _ = try larder.get(long, ["User-Agent": "nightly-sync-of-the-whole-company/2"])
        _ = try larder.get(long)
        for name in ["Overview", "Traffic", "Requests", "Documents", "Changes"] {
            try browser.click(name)
            #expect(try browser.isAt(name))
            #expect(
                try eventually {
                    try browser.script("return document.querySelectorAll('tbody tr').length > 0") as? Bool == true
                }
            )
            let empty = """
                return [...document.querySelectorAll('table')].flatMap(table => [...table.tHead.rows[0].cells].filter(head =>
                  !head.hidden && [...table.tBodies[0].rows].every(row => !row.cells[head.cellIndex].textContent)))
                  .map(head => head.textContent)
                """
            #expect(try eventually { try browser.script(empty) as? [String] == [] }, "\(name): \(browser.seen)")
            let cut = """
                return [...document.querySelectorAll('th, td')].filter(cell => cell.scrollWidth > cell.clientWidth + 1)
                  .map(cell => cell.textContent)
                """
            let found = try browser.script(cut) as? [String]
            #expect(found == [], "\(name)")
        }
    }

    // MARK: What happens meanwhile

    @Test func `changes appear as they are committed`() throws {
        let larder = try Self.blog()
        let browser = try Self.loggedIn(larder)
        try browser.click("Changes")
        #expect(try browser.shows("Post 7"), "\(browser.seen)")
        let count = { try browser.script("return document.querySelectorAll('tbody tr').length") as? Int ?? 0 }
        let before = try count()
        #expect(try larder.request("PATCH", "/users/7", body: "{}").status == 200)
        #expect(try eventually { try count() > before })
        #expect(try browser.script("return document.querySelector('tbody tr').innerText") as? String ?? "" != "")
        #expect(try browser.shows("changed"))
    }

    @Test func `the dashboard notices that the daemon is gone, and reconnects`() throws {
        let place = try Socket.bound()
        let larder = try Self.blog(admin: place.port)
        let browser = try Self.loggedIn(larder)
        larder.kill()
        #expect(try browser.shows("Larder does not respond"), "\(browser.seen)")
        try larder.start()
        // Sessions end with the daemon.
        #expect(try browser.shows("This login has ended"), "\(browser.seen)")
        try browser.open(try Self.link(larder))
        #expect(try browser.isAt("Overview"))
    }

    // MARK: What it can do

    @Test func `the mode changes only after confirmation`() throws {
        let larder = try Self.blog()
        let browser = try Self.loggedIn(larder)
        try browser.click("Change mode")
        #expect(try browser.shows("Go offline?"))
        try browser.click("Cancel")
        #expect(try larder.admin("GET", "/mode").object["mode"] as? String == "auto")
        try browser.click("Change mode")
        try browser.click("Go offline")
        #expect(try eventually { try larder.admin("GET", "/mode").object["mode"] as? String == "offline" })
        #expect(try browser.shows("Larder is offline now"))
    }

    @Test func `a clean is counted first, and runs only after confirmation`() throws {
        let larder = try Self.blog()
        let browser = try Self.loggedIn(larder)
        try browser.click("Clean")
        #expect(try browser.isAt("Clean"))
        try browser.click("Preview")
        #expect(try browser.shows("Give a condition, or choose everything."))
        try browser.type("Post", into: "Model")
        try browser.click("Preview")
        #expect(try browser.shows("Remove this for good?"))
        #expect(try browser.shows("1 document and 1 object"), "\(browser.seen)")
        try browser.click("Cancel")
        #expect(try browser.shows("Everything is as it was."))
        #expect(try larder.documents() == 3)
        try browser.click("Preview")
        #expect(try browser.shows("Remove this for good?"))
        try browser.click("Remove")
        #expect(try browser.shows("Removed: 1 document and 1 object"), "\(browser.seen)")
        #expect(try larder.documents() == 2)
    }

    @Test func `recordings can be started and stopped on the dashboard`() throws {
        let larder = try Self.blog()
        let browser = try Self.loggedIn(larder)
        try browser.click("Recordings")
        #expect(try browser.shows("No recordings yet"))
        try browser.type("session-1", into: "Name")
        try browser.click("Begin a recording")
        #expect(try browser.shows("0 exchanges, begun"), "\(browser.seen)")
        _ = try larder.get("/posts/7")
        try browser.click("Stop")
        #expect(try browser.shows("Stop the recording session-1?"))
        try browser.click("Stop it")
        #expect(try browser.shows("stopped"), "\(browser.seen)")
        try browser.click("Files")
        #expect(try browser.shows("recording.yaml"))
    }

    // MARK: Hostile input

    @Test func `texts of upstreams and clients are never markup on the dashboard`() throws {
        let hostile = #"<img src=x onerror=window.pwned=1><script>window.pwned=1</script>\u202egnp.exe\u001b[31m\u0000"#
        let origin = try Origin { request in
            request.path.hasPrefix("/users/1")
                ? .json(
                    #"{"id":1,"login":"\#(hostile)","name":"a","\u202emember\u001b\u200b":"b"}"#,
                    Fresh.hour + ["X-Odd": "<b onclick=x>\u{202E}b"]
                )
                : .json(#"{"no":"identity"}"#, Fresh.hour)
        }
        let larder = try Larder(origin, config: Configs.blog(origin))
        let recording = larder.folder.file("recordings/\u{202E}odd\u{1B}")
        try FileManager.default.createDirectory(atPath: recording, withIntermediateDirectories: true)
        try "format: 1\n".write(toFile: recording + "/recording.yaml", atomically: false, encoding: .utf8)
        _ = try larder.get("/users/1?%3Cimg%20src=x%20onerror=window.pwned=1%3E&%3Ci%3E")
        _ = try larder.get("/users/2")
        #expect(try larder.waitForDocuments(2))
        let browser = try Self.loggedIn(larder)
        func isHarmless() throws {
            #expect(try browser.script("return window.pwned") == nil)
            #expect(
                try browser.script(
                    "return document.querySelectorAll('main img, main script, main b, main i:not(.legend i)').length"
                ) as? Int == 0
            )
            // It can leave no mark on the text around it: what turns the direction is a word of its own.
            #expect(
                try browser.script(#"return /[\u200b\u202a-\u202e\u2066-\u2069\u001b]/.test(document.body.innerText)"#)
                    as? Bool == false
            )
            let attributes = #"""
                return [...document.querySelectorAll('*')].flatMap(node => ['title', 'aria-label', 'data-label']
                  .map(name => node.getAttribute(name) ?? '')).some(text => /[\u200b\u202e\u001b\u0000]/.test(text + document.title))
                """#
            #expect(try browser.script(attributes) as? Bool == false)
        }
        #expect(try browser.shows("/users/1?"), "\(browser.seen)")
        try isHarmless()
        try browser.click("Objects")
        try browser.click("User")
        #expect(try browser.shows("U+202E"), "\(browser.seen)")
        try isHarmless()
        try browser.click("1")
        #expect(try browser.isAt("User 1"))
        #expect(try browser.shows("^[[31m^@"), "\(browser.seen)")
        try isHarmless()
        try browser.click("Documents")
        try browser.click(css: "tbody tr:last-child a")
        #expect(try browser.shows("onerror=window.pwned=1"))
        try isHarmless()
        try browser.click("Warnings")
        #expect(try browser.shows("identity: …"), "\(browser.seen)")
        try isHarmless()
        try browser.click("Recordings")
        #expect(try browser.shows("U+202Eodd^["), "\(browser.seen)")
        try isHarmless()
        #expect(try browser.complaints() == [])
        // The browser's console notes that the daemon refuses it.
        try browser.click("Files")
        #expect(try browser.shows("this is not a name"), "\(browser.seen)")
        try isHarmless()
    }

    @Test func `on a slow link a page says that it waits, and shows the latest request's result`() throws {
        let larder = try Self.blog()
        let browser = try Self.loggedIn(larder)
        try browser.click("Explain")
        #expect(try browser.isAt("Explain"))
        try browser.slow(latency: 3000)
        try browser.type("/users/7", into: "URL")
        try browser.click(css: "main form button")
        #expect(try browser.shows("Waiting for the explanation"), "\(browser.seen)")
        try browser.slow(latency: 0)
        try browser.type("/posts/7", into: "URL")
        try browser.click(css: "main form button")
        #expect(try browser.shows("posts/{id:#}"), "\(browser.seen)")
        // Both responses are there.
        let count =
            "return performance.getEntriesByType('resource').filter(one => one.name.includes('/explain?')).length"
        #expect(try eventually { try browser.script(count) as? Int == 2 })
        #expect(try browser.text.contains("/posts/7") && !browser.text.contains("/users/7"), "\(browser.seen)")
    }

    @Test func `a search continues through short pages by itself`() throws {
        let larder = try Self.blog()
        let browser = try Self.loggedIn(larder)
        // As in a large store, where a page ends when its time is over.
        try browser.script(
            """
            const send = window.fetch;
            window.fetch = (url, options) => send(url.replace(/^(.objects.User.*limit=)\\d+/, "$17"), options);
            location.hash = "#/objects/User?search=person";
            """
        )
        #expect(try browser.shows("56 objects found"), "\(browser.seen)")
    }

    @Test func `a large body is cut, and shown whole when asked`() throws {
        let body = "[" + (1...6000).map { #"{"number":\#($0),"text":"é…"}"# }.joined(separator: ",") + "]"
        let origin = try Origin { _ in .json(body, Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/large")
        #expect(try larder.waitForDocuments(1))
        let browser = try Self.loggedIn(larder)
        try browser.click("Documents")
        try browser.click("/large")
        #expect(try browser.shows("The first 64.0 KiB of"), "\(browser.seen.suffix(600))")
        let last = {
            try
                (browser.script(
                    "return document.querySelector('pre.body').textContent.endsWith('\"number\":6000,\"text\":\"é…\"}]')"
                ) as? Bool) ?? false
        }
        #expect(try !last())
        try browser.click("Show all")
        #expect(try eventually { try last() })
    }
}
