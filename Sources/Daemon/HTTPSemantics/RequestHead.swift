/// How the body of a request or of a response is delimited (RFC 9112 §6.3).
package enum BodyFraming: Sendable, Equatable {
    case none
    case length(Int)
    /// The length is not known; for an HTTP/1.0 client the end of the connection marks the end.
    case chunked

    /// The framing of a body with this length; nil for one whose length is not known.
    package init(ofBodyWith length: Int?) { self = length.map { .length($0) } ?? .chunked }
}

/// The form of a request target (RFC 9112 §3.2).
package enum TargetForm: Sendable {
    case origin, absolute, asterisk
}

/// The position of a field line, in offsets from the head's first byte.
package struct FieldSpan {
    var name: UInt32
    var nameCount: UInt32
    var value: UInt32
    var valueCount: UInt32
    /// The raw value of the `KnownField`, 255 for none.
    package var known: UInt8

    package init(name: UInt32, nameCount: UInt32, value: UInt32, valueCount: UInt32, known: UInt8) {
        (self.name, self.nameCount, self.known) = (name, nameCount, known)
        (self.value, self.valueCount) = (value, valueCount)
    }
}

/// One field line of a request; its bytes are valid as long as the head.
package struct FieldView {
    package var name: UnsafeRawBufferPointer
    package var value: UnsafeRawBufferPointer
    package var known: KnownField?
}

/// A request's head, in place in the connection's buffer.
///
/// Nothing is copied or allocated per request. It is valid during `HTTPHandler.received` only; `owned` makes a copy that may
/// be kept.
package struct RequestHead: ~Copyable {
    /// The head's first byte; mutable, because the reduction of an absolute-form target writes one byte.
    package var base: UnsafeMutablePointer<UInt8>
    package var method = Method.get
    package var form = TargetForm.origin
    /// 0 or 1 (anything above counts as 1).
    package var minorVersion: UInt8 = 1
    package var framing = BodyFraming.none
    /// Whether the client waits for `100 Continue` before it sends the body.
    package var expectsContinue = false
    /// Whether the client allows the connection to continue after this exchange.
    package var keepsAlive = true
    package var fieldCount = 0

    // The parts of the request line, in offsets from `base`.
    package var methodCount = 0
    package var targetOffset = 0
    package var targetCount = 0
    package var pathCount = 0
    package var authorityOffset = 0
    package var authorityCount = 0

    /// One for each field line, `fieldCount` of which are valid.
    package let spans: UnsafeMutablePointer<FieldSpan>
    /// For each known field the index of its first line plus one, 0 for none.
    package let firstLine: UnsafeMutablePointer<UInt16>

    package init(maxFields: Int) {
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

    package var methodBytes: UnsafeRawBufferPointer { bytes(0, methodCount) }

    /// The target in origin form: path and query; `*` for `OPTIONS *`.
    ///
    /// The rest of an absolute-form target is in `authority`.
    package var target: UnsafeRawBufferPointer { bytes(targetOffset, targetCount) }
    package var path: UnsafeRawBufferPointer { bytes(targetOffset, pathCount) }

    /// The part after the question mark; nil without one.
    package var query: UnsafeRawBufferPointer? {
        pathCount < targetCount ? bytes(targetOffset + pathCount + 1, targetCount - pathCount - 1) : nil
    }

    /// The requested authority: from an absolute-form target, else from the Host field; nil in HTTP/1.0 without one.
    package var authority: UnsafeRawBufferPointer? {
        form == .absolute ? bytes(authorityOffset, authorityCount) : self[.host]
    }

    package var isHTTP11: Bool { minorVersion != 0 }

    /// Whether there is a body; one of length 0 does not count.
    package var hasBody: Bool {
        switch framing {
        case .none, .length(0): false
        case .length, .chunked: true
        }
    }

    // MARK: The fields

    /// The field line at `index`, in the order of arrival.
    package func field(at index: Int) -> FieldView {
        let span = spans[index]
        return FieldView(
            name: bytes(Int(span.name), Int(span.nameCount)),
            value: bytes(Int(span.value), Int(span.valueCount)),
            known: KnownField(rawValue: span.known)
        )
    }

    package func has(_ field: KnownField) -> Bool { firstLine[Int(field.rawValue)] != 0 }

    /// The value of the first line of this field.
    package subscript(field: KnownField) -> UnsafeRawBufferPointer? {
        let line = firstLine[Int(field.rawValue)]
        if line == 0 { return nil }
        let span = spans[Int(line) - 1]
        return bytes(Int(span.value), Int(span.valueCount))
    }

    package func count(of field: KnownField) -> Int {
        let line = Int(firstLine[Int(field.rawValue)])
        if line == 0 { return 0 }
        var count = 1
        for index in line..<max(line, fieldCount) where spans[index].known == field.rawValue { count += 1 }
        return count
    }

    /// Whether `Connection` may name fields, rather than say only whether the connection stays.
    package var namesFieldsInConnection: Bool {
        guard let value = self[.connection] else { return false }
        return count(of: .connection) > 1
            || !FieldSyntax.equalsIgnoringCase(value, "keep-alive") && !FieldSyntax.equalsIgnoringCase(value, "close")
    }

    /// All lines of a field joined by a comma and a space; `name` must be in lower case, nil if there are none.
    package func combined(_ name: String) -> [UInt8]? {
        var value: [UInt8]?
        for index in 0..<fieldCount {
            let field = field(at: index)
            guard FieldSyntax.equalsIgnoringCase(field.name, name.utf8) else { continue }
            value = value.map { $0 + [0x2C, 0x20] + field.value } ?? Array(field.value)
        }
        return value
    }

    /// A copy of the head that may be kept and sent to any thread.
    package func owned() -> Request {
        var fields = Fields()
        let end = fieldCount > 0 ? Int(spans[fieldCount - 1].value + spans[fieldCount - 1].valueCount) : 0
        // With room for two more lines, which Larder adds.
        fields.reserve(lines: fieldCount + 2, bytes: end - methodCount - targetCount + 4 * fieldCount + 64)
        for index in 0..<fieldCount {
            let field = field(at: index)
            fields.append(name: field.name, value: field.value, known: spans[index].known)
        }
        return Request(
            method: String(decoding: methodBytes, as: UTF8.self),
            target: String(decoding: target, as: UTF8.self),
            fields: fields
        )
    }
}

/// A request as a value that can leave the worker's thread.
package struct Request: Sendable {
    package var method: String
    /// The target in origin form: path and query; `*` for `OPTIONS *`.
    package var target: String
    /// All field lines as they arrived, including hop-by-hop ones.
    package var fields: Fields
    package var body: RequestBody?
    /// The client's address without its port, or the user at the other end of a Unix socket; empty if it was not looked up.
    package var peer: [UInt8] = []

    package init(method: String, target: String, fields: Fields = Fields(), body: RequestBody? = nil) {
        (self.method, self.target, self.fields, self.body) = (method, target, fields, body)
    }
}
