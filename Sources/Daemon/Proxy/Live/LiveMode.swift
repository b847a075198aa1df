/// What `Larder-Live` asks for: the answer to a GET as server-sent events.
enum LiveMode: Sendable {
    /// What is stored, then what the upstream says, then the end.
    case once

    /// Reads the field; nil where a request has none, and throws what it is to be answered instead where it cannot be met.
    init?(_ request: borrowing RequestHead, _ fields: Fields) throws(ArrivalError) {
        guard let value = fields.combined("larder-live") else { return nil }
        guard value == "once" || value == "on" else { throw ArrivalError(problem: .badLive(value)) }
        guard request.method == .get, !request.hasBody else {
            throw ArrivalError(problem: .liveNeedsGet(String(decoding: request.methodBytes, as: UTF8.self)))
        }
        guard value == "once" else { throw ArrivalError(problem: .liveOnUnknown) }
        self = .once
    }

    /// What speaks of the stream rather than of the answers that its events tell of.
    ///
    /// No condition holds of a stream, and none of its parts can be asked for: it has no validator, and RFC 9110 §14.2 lets
    /// everyone ignore `Range`.
    private static let ofTheStream = UpstreamFields.conditional.union(["range", "last-event-id"])

    /// The fields of the plain request whose answers the events tell of.
    ///
    /// Clients for events say `Accept: text/event-stream`. That is met by Larder; the upstream never hears of it, nor is it a
    /// representation of its own.
    static func plain(_ fields: Fields) -> Fields {
        var result = Fields()
        for line in fields.lines where !ofTheStream.contains(line.lowercasedName) {
            guard line.isNamed("accept") else {
                result.lines.append(line)
                continue
            }
            let members = FieldSyntax.members(line.value)
            let others = members.filter { !isEventStream($0) }
            if others.count == members.count {
                result.lines.append(line)
            } else {
                // Who names nothing else takes anything, as most plain clients say in so many words.
                let rest = others.isEmpty ? Array("*/*".utf8) : Array(others.joined(separator: [0x2C, 0x20]))
                result.lines.append(Field(name: line.name, value: rest))
            }
        }
        return result
    }

    private static func isEventStream(_ range: ArraySlice<UInt8>) -> Bool {
        FieldSyntax.equalsIgnoringCase(FieldSyntax.essence(of: range), "text/event-stream".utf8)
    }
}

extension Request {
    /// The plain request whose answers the events of a live one tell of.
    var plain: Request {
        var request = self
        request.fields = LiveMode.plain(fields)
        return request
    }
}
