import HTTPSemantics
import HTTPServer

/// What a request to `/changes` asks for.
struct ChangeRequest: Sendable {
    /// Where to begin.
    enum Start: Sendable, Equatable {
        /// What happens from now on.
        case now
        /// All that is kept.
        case oldest
        /// After the change with this number, the last one that the client has seen; nil: what it named is none.
        case after(Int64?)
    }

    /// How the changes are told.
    enum Form: Sendable, Equatable {
        /// As server-sent events, for as long as the client listens.
        case events
        /// As one JSON document with so many changes at most.
        case page(Int)
    }

    var start: Start
    var form: Form
    var filter: ChangeFilter
    /// Whether each object's members are wanted.
    var wantsValues = false

    static let parameters: [AdminRoute.Parameter] =
        [
            AdminRoute.Parameter(
                name: "since",
                kind: .integer,
                sentence: "Begin after this number; 0: with the oldest kept. `Last-Event-ID` overrides it."
            ),
            AdminRoute.Parameter(
                name: "values",
                kind: .boolean,
                sentence: "`true`: with each object's members, as they are known at the time of the telling."
            ),
            AdminRoute.Parameter(
                name: "limit",
                kind: .integer,
                sentence: "With `Accept: application/json`: changes of a page, 1 to 1000; 100 unless said otherwise."
            ),
        ] + ChangeFilter.parameters

    init(_ request: AdminRequest, _ context: any AdminContext) async throws(Problem) {
        filter = try await ChangeFilter(request, context)
        form = try Self.form(request)
        start = try Self.start(request)
        switch request.values("values").first {
        case nil, "false", "0": break
        case "true", "1", "": wantsValues = true
        case let other?: throw .badRequest("values is true or false; it was \"\(other)\"")
        }
    }

    private static func start(_ request: AdminRequest) throws(Problem) -> Start {
        var start = Start.now
        if let text = request.values("since").first {
            guard let number = Int64(text), number >= 0, text.utf8.allSatisfy({ $0 &- 0x30 < 10 }) else {
                throw .badRequest("since must be the number of a change, or 0 for the oldest kept; it was \"\(text)\"")
            }
            start = number == 0 ? .oldest : .after(number)
        }
        // A browser that comes back asks for the same URL, with the last number it saw in the field. It cannot mend what
        // is in there, so what is no number is a number that nobody knows.
        if let last = request.fields.combined("last-event-id"), !last.isEmpty {
            start = last == "0" ? .oldest : .after(Int64(last))
        }
        return start
    }

    /// Events, unless JSON is what the client wants.
    private static func form(_ request: AdminRequest) throws(Problem) -> Form {
        let ranges = Set(
            (request.fields.combined("accept") ?? "*/*").split(separator: ",").map { range in
                range.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
            }
        )
        let limit = request.values("limit").first
        if ranges.contains(EventStreamText.mediaType) || !ranges.contains("application/json") {
            guard !ranges.isDisjoint(with: [EventStreamText.mediaType, "text/*", "*/*"]) else {
                throw Problem(406, "changes come as \(EventStreamText.mediaType), or as a page of application/json")
            }
            guard limit == nil else {
                throw .badRequest("limit goes with Accept: application/json; events have no end")
            }
            return .events
        }
        guard let limit else { return .page(100) }
        guard let number = Int(limit), (1...1000).contains(number) else {
            throw .badRequest("limit must be a number from 1 to 1000")
        }
        return .page(number)
    }
}
