import Admin
import Glibc
import HTTPSemantics
import Settings

/// One line of the access log: for people, for programs that read Apache's format, for programs.
enum AccessLogLine {
    /// The line with its line feed.
    static func text(
        _ request: RequestsResponse.Request,
        _ format: Configuration.AccessLog.Format,
        colours: Bool = false
    )
        -> String
    {
        switch format {
        case .off: ""
        case .short: short(request, colours) + "\n"
        case .common: common(request) + "\n"
        case .json: json(request) + "\n"
        }
    }

    // MARK: For people

    /// `07:15:01Z 200 hit         0.2ms    1.2 KiB GET github /users/1`.
    private static func short(_ request: RequestsResponse.Request, _ colours: Bool) -> String {
        let colour = colours ? Colour(status: request.status, outcome: request.outcome) : nil
        var line = "\(request.time.dropFirst(11).prefix(8))Z "
        line += painted("\(request.status) \(padded(request.outcome, 11))", colour)
        line += " \(leading(duration(request.seconds.value), 7)) \(leading(HumanText.bytes(request.bytes), 9)) "
        line += "\(request.method) \(request.upstream.map { $0.printable + " " } ?? "")\(escaped(request.url))"
        if let detail = request.detail { line += " (\(detail.printable))" }
        if let seconds = request.upstreamSeconds { line += " upstream \(duration(seconds.value))" }
        return line
    }

    private enum Colour: String {
        case red = "31"
        case green = "32"
        case yellow = "33"
        case cyan = "36"

        init?(status: Int, outcome: String) {
            switch (status, outcome) {
            case (500..., _), (_, "error"): self = .red
            case (400..., _): self = .yellow
            case (_, "hit"), (_, "composed"), (_, "revalidated"): self = .green
            case (_, "stale"), (_, "offline"): self = .cyan
            default: return nil
            }
        }
    }

    private static func painted(_ text: String, _ colour: Colour?) -> String {
        colour.map { "\u{1B}[\($0.rawValue)m\(text)\u{1B}[0m" } ?? text
    }

    /// `85µs`, `0.2ms`, `1.4s`.
    static func duration(_ seconds: Double) -> String {
        switch seconds {
        case ..<0.000_1: "\(Int((seconds * 1_000_000).rounded()))µs"
        case ..<0.1: tenths(seconds * 1_000) + "ms"
        case ..<1: "\(Int((seconds * 1_000).rounded()))ms"
        default: tenths(seconds) + "s"
        }
    }

    private static func tenths(_ number: Double) -> String {
        let tenths = Int((number * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    private static func leading(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }

    // MARK: For programs

    /// Apache's common log format; the user is never known.
    private static func common(_ request: RequestsResponse.Request) -> String {
        let bytes = request.bytes == 0 ? "-" : "\(request.bytes)"
        let line = "\(request.method) \(escaped(request.url).replacing("\"", with: "%22")) HTTP/1.1"
        return "\(request.client) - - [\(apacheTime(request.time))] \"\(line)\" \(request.status) \(bytes)"
    }

    /// `23/Nov/2026:07:15:01 +0000` for `2026-11-23T07:15:01.250Z`.
    private static func apacheTime(_ time: String) -> String {
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let parts = time.prefix(10).split(separator: "-")
        guard parts.count == 3, let month = Int(parts[1]), months.indices.contains(month - 1) else { return time }
        return "\(parts[2])/\(months[month - 1])/\(parts[0]):\(time.dropFirst(11).prefix(8)) +0000"
    }

    /// As `AdminJSON` writes it, in a tenth of the time.
    static func json(_ request: RequestsResponse.Request) -> String {
        var members: [(name: String, value: JSONText)] = [("bytes", .integer(request.bytes))]
        if let status = request.cacheStatus { members.append(("cache_status", .printable(status))) }
        members.append(("client", .string(request.client)))
        if let detail = request.detail { members.append(("detail", .printable(detail))) }
        members.append(("id", .integer(request.id)))
        if let key = request.key { members.append(("key", .string(key))) }
        members += [
            ("method", .string(request.method)), ("outcome", .string(request.outcome)),
            ("seconds", .number(request.seconds.value)), ("status", .integer(request.status)),
            ("time", .string(request.time)),
        ]
        if let upstream = request.upstream { members.append(("upstream", .printable(upstream))) }
        if let seconds = request.upstreamSeconds { members.append(("upstream_seconds", .number(seconds.value))) }
        members.append(("url", .printable(request.url)))
        return JSONText.object(members).text
    }

    /// A URL in which nothing can be taken for the end of it: spaces and what is not ASCII as percent-escapes.
    private static func escaped(_ url: String) -> String {
        guard url.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F }) else { return url }
        return url.utf8.reduce(into: "") { text, byte in
            text += byte > 0x20 && byte < 0x7F ? String(Unicode.Scalar(byte)) : FieldSyntax.percentEncoded(byte)
        }
    }
}
