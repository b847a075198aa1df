/// How a request's body is delimited (RFC 9112 §6.3).
enum BodyFraming: Sendable, Equatable {
    case none
    case length(Int)
    case chunked
}

/// In which form the target was written (RFC 9112 §3.2).
enum TargetForm: Sendable {
    case origin, absolute, asterisk
}

/// Where a field line stands, in offsets from the head's first byte.
struct FieldSpan {
    var name: UInt32
    var nameCount: UInt32
    var value: UInt32
    var valueCount: UInt32
    /// The raw value of the `KnownField`, 255 for none.
    var known: UInt8
}

/// One field line of a request, its bytes valid as long as the head.
struct FieldView {
    var name: UnsafeRawBufferPointer
    var value: UnsafeRawBufferPointer
    var known: KnownField?
}

/// A request's head, seen where it lies in the connection's buffer.
///
/// Nothing is copied and nothing allocated per request. Valid during `HTTPHandler.received` only; `owned` makes
/// what may be kept.
struct RequestHead: ~Copyable {
    /// The head's first byte.
    ///
    /// Mutable, because the reduction of an absolute-form target writes one byte.
    var base: UnsafeMutablePointer<UInt8>
    var method = Method.get
    var form = TargetForm.origin
    /// 0 or 1 (anything above counts as 1).
    var minorVersion: UInt8 = 1
    var framing = BodyFraming.none
    /// Whether the client waits for `100 Continue` before it sends the body.
    var expectsContinue = false
    /// Whether the connection goes on after this exchange, as far as the client is concerned.
    var keepsAlive = true
    var fieldCount = 0

    var methodCount = 0
    var targetOffset = 0
    var targetCount = 0
    var pathCount = 0
    var authorityOffset = 0
    var authorityCount = 0

    let spans: UnsafeMutablePointer<FieldSpan>
    /// For each known field the index of its first line plus one, 0 for none.
    let firstLine: UnsafeMutablePointer<UInt16>

    init(maxFields: Int) {
        spans = .allocate(capacity: max(1, maxFields))
        firstLine = .allocate(capacity: KnownField.allCases.count)
        base = UnsafeMutablePointer(bitPattern: 16)!
    }

    deinit {
        spans.deallocate()
        firstLine.deallocate()
    }

    private func bytes(_ offset: Int, _ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base + offset, count: count)
    }

    // MARK: The request line

    var methodBytes: UnsafeRawBufferPointer { bytes(0, methodCount) }

    /// The target in origin form: path and query; `*` for `OPTIONS *`.
    ///
    /// What an absolute-form target says besides is in `authority`.
    var target: UnsafeRawBufferPointer { bytes(targetOffset, targetCount) }

    var path: UnsafeRawBufferPointer { bytes(targetOffset, pathCount) }

    /// What follows the question mark; nil when there is none.
    var query: UnsafeRawBufferPointer? {
        pathCount < targetCount ? bytes(targetOffset + pathCount + 1, targetCount - pathCount - 1) : nil
    }

    var isAbsoluteForm: Bool { form == .absolute }

    /// The authority asked for: that of an absolute-form target, else the Host field's; nil in HTTP/1.0 without one.
    var authority: UnsafeRawBufferPointer? {
        isAbsoluteForm ? bytes(authorityOffset, authorityCount) : self[.host]
    }

    var isHTTP11: Bool { minorVersion != 0 }

    /// Whether a body follows; one of length 0 counts as none.
    var hasBody: Bool {
        switch framing {
        case .none, .length(0): false
        case .length, .chunked: true
        }
    }

    // MARK: The fields

    /// The field line at `index`, in the order of arrival.
    func field(at index: Int) -> FieldView {
        let span = spans[index]
        return FieldView(
            name: bytes(Int(span.name), Int(span.nameCount)),
            value: bytes(Int(span.value), Int(span.valueCount)),
            known: KnownField(rawValue: span.known)
        )
    }

    /// Whether there is a line of this field.
    func has(_ field: KnownField) -> Bool {
        firstLine[Int(field.rawValue)] != 0
    }

    /// The value of the first line of this field.
    subscript(field: KnownField) -> UnsafeRawBufferPointer? {
        let line = firstLine[Int(field.rawValue)]
        if line == 0 { return nil }
        let span = spans[Int(line) - 1]
        return bytes(Int(span.value), Int(span.valueCount))
    }

    /// How many lines there are of this field.
    func count(of field: KnownField) -> Int {
        let line = Int(firstLine[Int(field.rawValue)])
        if line == 0 { return 0 }
        var count = 1
        for index in line..<max(line, fieldCount) where spans[index].known == field.rawValue { count += 1 }
        return count
    }

    /// The value of the first line of any name; `lowercased` must be in lower case.
    func first(named lowercased: StaticString) -> UnsafeRawBufferPointer? {
        let count = lowercased.utf8CodeUnitCount
        for index in 0..<fieldCount where Int(spans[index].nameCount) == count {
            let name = base + Int(spans[index].name)
            if (0..<count).allSatisfy({ asciiLowercased(name[$0]) == lowercased.utf8Start[$0] }) {
                return bytes(Int(spans[index].value), Int(spans[index].valueCount))
            }
        }
        return nil
    }

    // MARK: Copies

    /// The head as a value that may be kept and sent anywhere.
    func owned(body: RequestBody? = nil, connectionID: UInt64 = 0) -> Request {
        var lines: [Field] = []
        lines.reserveCapacity(fieldCount)
        for index in 0..<fieldCount {
            let field = field(at: index)
            lines.append(Field(name: Array(field.name), value: Array(field.value)))
        }
        return Request(
            method: String(decoding: methodBytes, as: UTF8.self),
            target: String(decoding: target, as: UTF8.self),
            form: form,
            authority: authority.map { String(decoding: $0, as: UTF8.self) },
            isHTTP11: isHTTP11,
            fields: Fields(lines),
            body: body,
            connectionID: connectionID
        )
    }
}
