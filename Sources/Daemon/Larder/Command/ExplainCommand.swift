import Admin
import ArgumentParser

struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Show what is stored for a URL, how fresh it is and why, and what a request would get now.",
        discussion: """
            Nothing is fetched, and the cache is not changed. The request has the fields that you give with -H, and \
            "Accept: */*" if there is no Accept among them:

              larder explain /users/octocat
              larder explain https://api.github.com/users/octocat -H 'Cache-Control: max-age=10'
              larder explain /users/octocat -H "Authorization: Bearer $TOKEN" --json
              larder explain /graphql --data @query.json
            """
    )

    @Argument(help: .urlOrPath) var url: String
    @OptionGroup var fields: FieldOptions
    @Option(help: .value("name", "The method. (default: GET, or POST with --data)")) var method: String?
    @OptionGroup var data: DataOption

    @Option(help: .value("name", "The upstream, if the URL could mean several."), completion: .upstreams)
    var upstream: String?

    @OptionGroup var options: AdminOptions

    func validate() throws {
        try GivenText.require(["URL": url])
        try GivenText.check(["--method": method, "--upstream": upstream])
    }

    func run() throws {
        let body = try data.body().map { String(decoding: $0, as: UTF8.self) }
        let query =
            [("url", url), ("method", method), ("data", body), ("upstream", upstream)]
            + fields.header.map { ("header", $0) }
        try options.show(Target.make(["explain"], query), as: Explanation.self) { $0.text }
    }
}

/// Formats an explanation for a terminal.
extension Explanation {
    var text: String {
        // What happens comes first; then what it follows from.
        var parts = [head, outcomes]
        if let remedy { parts.append("To make it a hit:\n  \(remedy)") }
        parts.append(stored)
        if !others.isEmpty {
            parts.append((["Stored for other requests of this URL:"] + others.map(\.text)).joined(separator: "\n"))
        }
        if let unstored { parts.append(unstored.text) }
        if let freshness { parts.append(freshness.text) }
        return parts.joined(separator: "\n\n")
    }

    private var head: String {
        let principal = request.principal
        let fields = principal.fields.isEmpty ? "" : " (by \(principal.fields.joined(separator: ", ")))"
        let pairs: [(String, String?)] = [
            ("upstream", request.upstream), ("url", request.url.text), ("key", Self.line(request.key)),
            ("principal", principal.label + fields + (principal.isKnown ? "" : ", no request seen yet")),
            ("context", request.context.isEmpty ? "none" : Self.line(request.context.joined(separator: ", "))),
            ("route", request.route.map { [$0.method, $0.path, $0.model].compactMap(\.self).joined(separator: "  ") }),
            ("overrides", overrides?.text),
        ]
        let lines = pairs.compactMap { name, value in value.map { "  \(HumanText.padded(name, 11))\($0)" } }
        return (["\(request.method) \(Self.line(request.sent))"] + lines).joined(separator: "\n")
    }

    private var stored: String {
        guard !variants.isEmpty else {
            return others.isEmpty
                ? "Nothing is stored." : "Nothing is stored for this request; name its fields with -H."
        }
        let count = variants.count == 1 ? "One response is stored:" : "\(variants.count) variants are stored:"
        return ([count] + variants.map(\.text)).joined(separator: "\n")
    }

    private var outcomes: String {
        var lines = ["Now, \(mode):"]
        for (name, outcome) in [("online", online), ("offline", offline)] {
            let mark = (name == "offline") == (mode == "offline") ? "*" : " "
            let status = outcome.status.map { " \($0)" } ?? ""
            lines.append("\(mark) \(HumanText.padded(name, 9))\(outcome.action)\(status): \(outcome.reason)")
            if !outcome.cacheStatus.isEmpty { lines.append("           \(outcome.cacheStatus)") }
        }
        if let upstream {
            let conditions =
                upstream.conditions.isEmpty ? "without conditions" : upstream.conditions.joined(separator: "; ")
            lines.append("  asked    \(Self.line(conditions))")
            if let notModified = upstream.notModified { lines.append("  a 304    \(notModified)") }
            if let storing = upstream.storing { lines.append("  a 200    \(storing)") }
            lines.append("  failure  \(upstream.failure)")
        }
        return lines.joined(separator: "\n")
    }

    /// Text of upstreams and clients, made fit for a terminal.
    fileprivate static func line(_ text: String) -> String { HumanText.line(text, width: 160) }
}

extension Explanation.Overrides {
    fileprivate var text: String {
        let given = [("cache", cache), ("fresh", fresh), ("stale", stale), ("negative", negative)]
        var words = given.compactMap { name, value in value.map { "\(name): \($0)" } }
        if !varyIgnore.isEmpty { words.append("vary ignores \(varyIgnore.joined(separator: ", "))") }
        if keySort { words.append("key sorted") }
        if !keyIgnore.isEmpty { words.append("key ignores \(keyIgnore.joined(separator: ", "))") }
        return words.joined(separator: "; ")
    }
}

extension Explanation.Variant {
    fileprivate var text: String {
        let places = [inMemory ? "in memory" : nil, document.map { "on disk as document \($0)" }].compactMap(\.self)
        var words = ["\(status)", HumanText.bytes(bytes)]
        if objects > 0 { words.append(HumanText.count(objects, "object")) }
        words.append(form + (isDirty ? ", newer values are known" : ""))
        words.append(places.joined(separator: " and "))
        var lines = [
            "\(isSelected ? "*" : " ") \(words.joined(separator: ", "))",
            "  age \(age) s, time to live \(timeToLive) s",
        ]
        if !selection.isEmpty { lines.append("  selected by \(Explanation.line(selection.joined(separator: ", ")))") }
        if let entityTag { lines.append("  ETag \(Explanation.line(entityTag))") }
        if let lastModified { lines.append("  Last-Modified \(Explanation.line(lastModified))") }
        return lines.joined(separator: "\n")
    }
}

extension Explanation.Other {
    fileprivate var text: String {
        let differences = differences.map { "    \(Explanation.line($0))" }
        return (["  \(status), age \(age) s, time to live \(timeToLive) s, for a request with"] + differences)
            .joined(separator: "\n")
    }
}

extension Explanation.NotStored {
    fileprivate var text: String {
        let lines = [
            "The last response that was not stored came \(HumanText.longDuration(Int(secondsAgo))) ago with status \(status):",
            "  \(Explanation.line(reason)) (\(rule), decided by: \(decidedBy))",
        ]
        return (lines + differences.map { "  its request had \(Explanation.line($0))" }).joined(separator: "\n")
    }
}

extension Explanation.Freshness {
    fileprivate var text: String {
        let rows = terms.map { ["", $0.name, "\($0.seconds) s", Explanation.line($0.source)] }
        let lines = [
            isFresh ? "It is fresh:" : "It is not fresh:",
            TextTable(columns: ["", "", .right(""), ""], rows: rows).text,
            rules.isEmpty ? nil : "  rules: \(rules.joined(separator: ", "))",
        ]
        return lines.compactMap(\.self).joined(separator: "\n")
    }
}
