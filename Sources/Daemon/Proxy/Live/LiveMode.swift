import CachePolicy
package import HTTPSemantics

/// The response to a GET as server-sent events, as `Larder-Live` or the query parameter `larder_live` requests it.
package enum LiveMode: Sendable {
    /// As `on`, but ends with the upstream's first response.
    case once
    /// A finished `once` whose client connects again, as `EventSource` does by itself; 204 stops it.
    case over
    /// The stored response, then the upstream's, and from then on each change, until the client leaves.
    ///
    /// `after` is the number of the client's last event, from `Last-Event-ID`; nil if there is none, or none that Larder could
    /// have given.
    case on(after: Int64?)

    /// The id of the last event of `once`.
    static let endID = "end"

    /// Reads the field and the parameter; nil if a request has neither.
    ///
    /// Throws the problem to respond with if the mode is not possible.
    ///
    /// - Parameter parameters: as `takeParameters` returned them. They count only for requests that accept events, so that no response
    ///   to a plain URL depends on them.
    init?(_ request: borrowing RequestHead, _ fields: Fields, parameters: [String]) throws(ProblemDocument) {
        if parameters.isEmpty, !fields.contains(.larderLive) { return nil }
        let takesEvents = fields.all("accept").flatMap { FieldSyntax.members($0) }.contains(where: Self.isEventStream)
        guard parameters.isEmpty || takesEvents else { throw .liveNeedsAccept }
        let values = (fields.combined("larder-live").map { [$0] } ?? []) + parameters
        guard let value = values.first else { return nil }
        guard value == "once" || value == "on", values.allSatisfy({ $0 == value })
        else { throw .badLive(values.joined(separator: ", ")) }
        guard request.method == .get, !request.hasBody
        else { throw .liveNeedsGet(String(decoding: request.methodBytes, as: UTF8.self)) }
        let last = fields.combined("last-event-id")
        if value == "once" {
            self = last == Self.endID ? .over : .once
        } else {
            self = .on(after: last.flatMap { Int64($0) })
        }
    }

    /// The parameter that asks for a stream, for pages whose `EventSource` can send no field of its own.
    static let parameter = "larder_live"

    /// Removes the parameter from a query and returns its values; the query becomes nil if nothing else is in it.
    static func takeParameters(from query: inout [UInt8]?) -> [String] {
        guard let pieces = query?.split(separator: 0x26, omittingEmptySubsequences: false) else { return [] }
        var values: [String] = []
        let others = pieces.filter { piece in
            let name = piece.prefix { $0 != 0x3D }
            guard TargetNormaliser.unescaped(name).elementsEqual(parameter.utf8) else { return true }
            values.append(String(decoding: TargetNormaliser.unescaped(piece.dropFirst(name.count + 1)), as: UTF8.self))
            return false
        }
        guard !values.isEmpty else { return [] }
        query = others.isEmpty ? nil : Array(others.joined(separator: [0x26]))
        return values
    }

    /// The fields that concern the stream rather than the responses in its events.
    ///
    /// A stream has no validator for conditions, and RFC 9110 §14.2 permits ignoring `Range`.
    private static let ofTheStream = UpstreamFields.conditional.union(["range", "last-event-id"])

    static func isOfTheStream(_ name: UnsafeRawBufferPointer) -> Bool {
        ofTheStream.contains { FieldSyntax.equalsIgnoringCase(name, $0.utf8) }
    }

    /// The fields of the plain request whose responses the events show.
    ///
    /// Clients for events send `Accept: text/event-stream`. Larder itself satisfies that: the upstream never sees it, and it
    /// selects no representation.
    static func plain(_ fields: Fields) -> Fields {
        var lines = fields.lines.filter { !ofTheStream.contains($0.lowercasedName) }
        for index in lines.indices where lines[index].isNamed("accept") {
            let members = FieldSyntax.members(lines[index].value)
            let others = members.filter { !isEventStream($0) }
            guard others.count < members.count else { continue }
            // A request that names nothing else accepts anything; most plain clients say so explicitly.
            lines[index].value = others.isEmpty ? Array("*/*".utf8) : Array(others.joined(separator: [0x2C, 0x20]))
        }
        return Fields(lines)
    }

    private static func isEventStream(_ range: ArraySlice<UInt8>) -> Bool {
        FieldSyntax.equalsIgnoringCase(FieldSyntax.essence(of: range), "text/event-stream".utf8)
    }
}

extension Request {
    /// The request whose responses the events show, by mode.
    func asking(_ mode: LiveMode?) -> Request {
        switch mode {
        case nil: self
        case .over: plain
        case .once, .on: followed
        }
    }

    /// The plain request whose responses a live one's events show.
    package var plain: Request {
        var request = self
        request.fields = LiveMode.plain(fields)
        return request
    }

    /// The plain request whose responses a stream follows.
    ///
    /// Browsers send `Cache-Control: no-cache` with every stream, though nobody wants it to ask all the time. Limits on age mean
    /// nothing, because each response is sent as soon as it is known. Directives that forbid storing or asking remain.
    var followed: Request {
        var request = plain
        let directives = RequestDirectives(fields: request.fields)
        request.fields.remove("cache-control")
        request.fields.remove("pragma")
        if directives.noStore { request.fields.append("Cache-Control", "no-store") }
        if directives.onlyIfCached { request.fields.append("Cache-Control", "only-if-cached") }
        return request
    }
}
