import Foundation
import Glibc
import TestSupport

/// Chromium without a window, driven as a person would: by what is on the page (W3C WebDriver, through chromedriver).
final class Browser {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Why tests with it are skipped; nil where they can run.
    static let isInstalled = ["/usr/bin/chromium", "/usr/bin/chromedriver"].allSatisfy { (path: String) in
        access(path, X_OK) == 0
    }
    static let absence = "Chromium and its driver are not installed: apt-get install chromium chromium-driver"

    private let folder = TemporaryFolder()
    private let driver: TestProcess
    private let port: UInt16
    private var session = ""

    /// Starts one with a profile of its own.
    init(width: Int = 1280, height: Int = 900) throws {
        (driver, port) = try Self.started()
        let arguments = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--user-data-dir=\(folder.file("profile"))",
            "--window-size=\(width),\(height)",
        ]
        let options: [String: Any] = ["args": arguments, "binary": "/usr/bin/chromium"]
        let made = try command(
            "POST",
            "/session",
            [
                "capabilities": [
                    "alwaysMatch": ["goog:chromeOptions": options, "goog:loggingPrefs": ["browser": "ALL"]]
                ]
            ]
        )
        guard let id = (made as? [String: Any])?["sessionId"] as? String else {
            throw Failure(description: "no session: \(made)")
        }
        session = "/session/\(id)"
        // Windows have a smallest width; phones do not.
        let metrics: [String: Any] = ["width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500]
        _ = try self("POST", "/goog/cdp/execute", ["cmd": "Emulation.setDeviceMetricsOverride", "params": metrics])
    }

    /// A driver, and the port that it listens on.
    private static func started() throws -> (TestProcess, UInt16) {
        let words = "started successfully on port "
        while true {
            let driver = try TestProcess("/usr/bin/chromedriver", ["--port=0"])
            _ = eventually { driver.output.contains(words) || driver.end != nil }
            if let range = driver.output.range(of: words),
                let port = UInt16(driver.output[range.upperBound...].prefix { $0.isNumber })
            {
                return (driver, port)
            }
            // It takes a free port of IPv6, where another process may have the one of IPv4.
            guard driver.output.contains("port not available") else {
                throw Failure(description: "chromedriver did not start:\n\(driver.output)\(driver.errors)")
            }
        }
    }

    deinit {
        _ = try? command("DELETE", session, nil)
        driver.signal(SIGTERM)
        driver.waitForEnd()
    }

    // MARK: What a person does

    func open(_ url: String) throws { _ = try self("POST", "/url", ["url": url]) }

    func back() throws { _ = try self("POST", "/back", [:]) }

    /// Puts a slow link between the browser and everything else.
    ///
    /// - Parameter latency: in milliseconds, of requests from now on.
    func slow(latency: Int) throws {
        _ = try self("POST", "/goog/cdp/execute", ["cmd": "Network.enable", "params": [String: Any]()])
        let conditions: [String: Any] = [
            "offline": false, "latency": latency, "downloadThroughput": 20_000, "uploadThroughput": 20_000,
        ]
        _ = try self(
            "POST",
            "/goog/cdp/execute",
            ["cmd": "Network.emulateNetworkConditions", "params": conditions]
        )
    }

    func reload() throws { _ = try self("POST", "/refresh", [:]) }

    /// Clicks the button, link or label that reads like this.
    func click(_ words: String) throws { try click(xpath: Self.control(words)) }

    func click(css selector: String) throws { try click(using: "css selector", selector) }

    private func click(xpath: String) throws { try click(using: "xpath", xpath) }

    private func click(using strategy: String, _ value: String) throws {
        var last: (any Error)?
        // What is drawn anew in the meantime is looked for once more.
        let isDone = eventually {
            do {
                let element = try find(strategy, value)
                _ = try self("POST", "/element/\(element)/click", [:])
                return true
            } catch {
                last = error
                return false
            }
        }
        guard isDone else {
            throw Failure(description: "\(value) cannot be clicked: \(String(describing: last))\n\(seen)")
        }
    }

    /// Types into the field with this label, in the place of what is there.
    func type(_ text: String, into label: String) throws {
        let name = Self.quoted(label)
        let field = try find("xpath", "//*[@id=//label[normalize-space()=\(name)]/@for]")
        _ = try self("POST", "/element/\(field)/clear", [:])
        _ = try self("POST", "/element/\(field)/value", ["text": text])
    }

    /// Chooses the option that reads like this in the field with this label, once it is offered.
    func choose(_ words: String, in label: String) throws {
        let field = "//select[@id=//label[normalize-space()=\(Self.quoted(label))]/@for]"
        try click(using: "xpath", "\(field)/option[normalize-space()=\(Self.quoted(words))]")
    }

    /// Presses keys, wherever the focus is.
    func press(_ keys: String) throws {
        let active = try self("GET", "/element/active", nil)
        guard let element = (active as? [String: String])?.values.first else {
            throw Failure(description: "nothing has the focus")
        }
        _ = try self("POST", "/element/\(element)/value", ["text": keys])
    }

    // MARK: What a person sees

    /// The text of the page.
    var text: String { get throws { try script("return document.body.innerText") as? String ?? "" } }

    /// The same for messages, which cannot fail.
    var seen: String { (try? text) ?? "nothing: the browser does not respond" }

    var title: String { get throws { try self("GET", "/title", nil) as? String ?? "" } }

    var address: String { get throws { try self("GET", "/url", nil) as? String ?? "" } }

    /// Waits until the page shows a text.
    func shows(_ words: String) throws -> Bool { try eventually { try text.contains(words) } }

    /// Waits until the main heading is this.
    func isAt(_ heading: String) throws -> Bool {
        try eventually {
            try script("return document.querySelector('main h1')?.textContent") as? String == heading
        }
    }

    /// Runs the body of a function on the page.
    @discardableResult
    func script(_ code: String, _ arguments: Any...) throws -> Any? {
        let value = try self("POST", "/execute/sync", ["script": code, "args": arguments])
        return value is NSNull ? nil : value
    }

    /// What the browser complains about, such as violations of the page's policy; each once.
    func complaints() throws -> [String] {
        let lines = try self("POST", "/se/log", ["type": "browser"]) as? [[String: Any]] ?? []
        return lines.compactMap { $0["message"] as? String }
    }

    // MARK: The protocol

    private static func control(_ words: String) -> String {
        let words = quoted(words)
        return "//*[self::button or self::a or self::label][normalize-space()=\(words)]"
    }

    private static func quoted(_ text: String) -> String { text.contains("'") ? "\"\(text)\"" : "'\(text)'" }

    private func find(_ strategy: String, _ value: String) throws -> String {
        let found = try self("POST", "/element", ["using": strategy, "value": value])
        guard let id = (found as? [String: String])?.values.first else {
            throw Failure(description: "there is no \(value)")
        }
        return id
    }

    private func callAsFunction(_ method: String, _ path: String, _ body: [String: Any]?) throws -> Any {
        try command(method, session + path, body)
    }

    private func command(_ method: String, _ path: String, _ body: [String: Any]?) throws -> Any {
        let text = try body.map { String(decoding: try JSONSerialization.data(withJSONObject: $0), as: UTF8.self) }
        let fields: FieldLines = ["Content-Type": "application/json", "Connection": "close"]
        let answer = try Client(port: port).request(method, path, fields, body: text)
        let value = answer.object["value"] ?? NSNull()
        guard answer.status == 200 else {
            throw Failure(description: "\(path): \((value as? [String: Any])?["message"] ?? answer.text)")
        }
        return value
    }
}
