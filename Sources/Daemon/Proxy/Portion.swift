/// How much of a stored answer a request is given, by its conditions and ranges (RFC 9110 §13.2.2).
enum Portion: Equatable {
    case whole
    /// The client has it already: 304.
    case nothing
    /// 206
    case part(Range<Int>)
    /// None of the ranges lies within the body: 416.
    case unsatisfiable

    init(of ready: ReadyAnswer, for request: Request, now: Int64) {
        let conditions = Preconditions(fields: request.fields, now: now)
        if conditions.evaluateForCache(method: request.method, against: ready.preconditions) == .notModified {
            self = .nothing
            return
        }
        self = Self.selected(by: request, of: ready, now: now)
    }

    /// Several parts at once would come as `multipart/byteranges`: there the whole is given, as everyone may (RFC 9110 §14.2).
    private static func selected(by request: Request, of ready: ReadyAnswer, now: Int64) -> Portion {
        guard request.method == "GET", ready.answer.status == 200,
            let field = RangeField(lines: request.fields.all("range"))
        else { return .whole }
        let condition = request.fields.all("if-range")
        if !condition.isEmpty {
            guard condition.count == 1,
                RangeField.permits(ifRange: condition[0], ready.preconditions, now: now)
            else { return .whole }
        }
        switch field.select(length: ready.body.count) {
        case .unsatisfiable: return .unsatisfiable
        case .ranges(let ranges): return ranges.count == 1 ? .part(ranges[0]) : .whole
        }
    }

    func status(of ready: ReadyAnswer) -> Int {
        switch self {
        case .whole: ready.answer.status
        case .nothing: 304
        case .part: 206
        case .unsatisfiable: 416
        }
    }

    func fields(of ready: ReadyAnswer) -> Fields {
        switch self {
        case .whole: return ready.fields
        case .nothing: return StoredFields.notModified(ready.fields)
        case .part(let range):
            var fields = ready.fields
            // These speak of the bytes that are sent, which are others now; `Repr-Digest` speaks of the whole.
            for name in ["content-md5", "content-digest"] { fields.remove(named: name) }
            fields.append("Content-Range", RangeField.contentRange(range, length: ready.body.count))
            return fields
        case .unsatisfiable:
            var fields = Fields()
            fields.append("Content-Range", RangeField.unsatisfiedContentRange(length: ready.body.count))
            return fields
        }
    }

    func body(of ready: ReadyAnswer) -> [UInt8] {
        switch self {
        case .whole: ready.body
        case .part(let range): Array(ready.body[range])
        case .nothing, .unsatisfiable: []
        }
    }
}
