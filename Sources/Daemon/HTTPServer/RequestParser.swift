import Glibc
package import HTTPSemantics

/// Parses the head of a request, line by line as it arrives, and refuses any head that RFC 9112 does not allow.
///
/// A parser is reused for one request after the other. A head may arrive in any number of pieces. At each call, all bytes
/// of it so far must be contiguous, but they may have moved.
package final class RequestParser {
    /// How much of a head has been parsed.
    package enum Progress {
        case incomplete
        /// The head is complete and has this many bytes.
        case complete(Int)
        case refused(RequestFault)
    }

    /// The head being parsed; valid only once it is complete.
    ///
    /// Exclusivity is not checked, because that took a seventh of the time of a hit. It is safe: only `parse` and `start`
    /// change it, neither calls out, and a connection reads no other head while its request is handled.
    @exclusivity(unchecked) package private(set) var head: RequestHead

    private let limits: HTTPLimits
    private let classes = ByteClass.table
    private let knownFields = KnownFieldTable.shared
    /// The offset of the incomplete line.
    private var lineStart = 0
    /// The offset up to which there is no line feed.
    private var scanned = 0
    private var hasRequestLine = false

    package init(limits: HTTPLimits) {
        self.limits = limits
        head = RequestHead(maxFields: limits.maxFields)
        start()
    }

    func start() {
        lineStart = 0
        scanned = 0
        hasRequestLine = false
        head.fieldCount = 0
        head.firstLine.initialize(repeating: 0, count: KnownField.allCases.count)
    }

    /// Parses further; the bytes begin with the first byte of the head.
    package func parse(_ base: UnsafeMutablePointer<UInt8>, count: Int) -> Progress {
        head.base = base
        while true {
            guard let found = memchr(base + scanned, 0x0A, count - scanned) else {
                scanned = count
                if isTargetTooLong(count) { return .refused(.targetTooLong) }
                return count > limits.maxHead ? .refused(.headTooLarge) : .incomplete
            }
            let lineFeed = UnsafePointer(found.assumingMemoryBound(to: UInt8.self)) - UnsafePointer(base)
            if isTargetTooLong(lineFeed) { return .refused(.targetTooLong) }
            guard lineFeed < limits.maxHead else { return .refused(.headTooLarge) }
            guard lineFeed > lineStart, base[lineFeed - 1] == 0x0D else { return .refused(.bareLineFeed) }
            let line = lineStart..<(lineFeed - 1)
            lineStart = lineFeed + 1
            scanned = lineStart
            if line.isEmpty, hasRequestLine {
                if let fault = finish() { return .refused(fault) }
                return .complete(lineStart)
            }
            if let fault = hasRequestLine ? readField(base, line) : readRequestLine(base, line) {
                return .refused(fault)
            }
        }
    }

    /// Whether these bytes, without a line feed, are more than a request line may have.
    private func isTargetTooLong(_ count: Int) -> Bool {
        // 64: room for the method and the version.
        !hasRequestLine && count > limits.maxTarget + 64
    }

    // MARK: The request line

    private func readRequestLine(_ base: UnsafeMutablePointer<UInt8>, _ line: Range<Int>) -> RequestFault? {
        hasRequestLine = true
        var index = line.lowerBound
        while index < line.upperBound, classes[Int(base[index])] & ByteClass.token != 0 { index += 1 }
        guard index > 0, index < line.upperBound, base[index] == 0x20 else { return .badMethod }
        head.methodCount = index
        head.method = Method(head.methodBytes)
        if head.method == .connect { return .tunnel }

        index += 1
        head.targetOffset = index
        var question = -1
        while index < line.upperBound, classes[Int(base[index])] & ByteClass.target != 0 {
            if base[index] == UInt8(ascii: "?"), question < 0 { question = index }
            index += 1
        }
        head.targetCount = index - head.targetOffset
        if head.targetCount > limits.maxTarget { return .targetTooLong }
        guard head.targetCount > 0, index < line.upperBound, base[index] == 0x20
        else { return index == line.upperBound ? .badRequestLine : .badTarget }
        head.pathCount = (question < 0 ? index : question) - head.targetOffset
        return readVersion(base, (index + 1)..<line.upperBound) ?? readTarget(base)
    }

    private func readVersion(_ base: UnsafeMutablePointer<UInt8>, _ span: Range<Int>) -> RequestFault? {
        let text = base + span.lowerBound
        guard span.count == 8, memcmp(text, "HTTP/", 5) == 0, text[6] == UInt8(ascii: "."),
            text[5] &- 0x30 < 10, text[7] &- 0x30 < 10
        else { return .badVersion }
        guard text[5] == UInt8(ascii: "1") else { return .otherVersion }
        head.minorVersion = min(1, text[7] - 0x30)
        return nil
    }

    /// Determines the form of the target, and reduces an absolute one to its path and query (RFC 9112 §3.2).
    private func readTarget(_ base: UnsafeMutablePointer<UInt8>) -> RequestFault? {
        let target = base + head.targetOffset
        if target[0] == UInt8(ascii: "/") {
            head.form = .origin
            return nil
        }
        if target[0] == UInt8(ascii: "*") {
            head.form = .asterisk
            return head.targetCount == 1 && head.method == .options ? nil : .badTarget
        }
        return reduceAbsoluteForm(base)
    }

    private func reduceAbsoluteForm(_ base: UnsafeMutablePointer<UInt8>) -> RequestFault? {
        let target = base + head.targetOffset
        let prefix =
            strncasecmp(target, "http://", min(7, head.targetCount)) == 0 && head.targetCount > 7
            ? 7
            : strncasecmp(target, "https://", min(8, head.targetCount)) == 0 && head.targetCount > 8 ? 8 : 0
        guard prefix > 0 else { return .badTarget }
        var end = prefix
        while end < head.pathCount, target[end] != UInt8(ascii: "/") {
            guard classes[Int(target[end])] & ByteClass.host != 0 else { return .badTarget }
            end += 1
        }
        guard end > prefix else { return .badTarget }
        head.form = .absolute
        head.authorityOffset = head.targetOffset + prefix
        head.authorityCount = end - prefix
        if end == head.pathCount {
            // There is no path. The authority moves one byte to the left, over a slash of the scheme, to make room for "/".
            memmove(target + prefix - 1, target + prefix, head.authorityCount)
            head.authorityOffset -= 1
            end -= 1
            target[end] = UInt8(ascii: "/")
            if head.method == .options, head.targetCount == head.pathCount { target[end] = UInt8(ascii: "*") }
        }
        head.targetOffset += end
        head.targetCount -= end
        head.pathCount -= end
        return nil
    }

    // MARK: A field line

    private func readField(_ base: UnsafeMutablePointer<UInt8>, _ line: Range<Int>) -> RequestFault? {
        if base[line.lowerBound] == 0x20 || base[line.lowerBound] == 0x09 { return .foldedLine }
        guard head.fieldCount < limits.maxFields else { return .tooManyFields }
        var colon = line.lowerBound
        while colon < line.upperBound, classes[Int(base[colon])] & ByteClass.token != 0 { colon += 1 }
        guard colon > line.lowerBound, colon < line.upperBound, base[colon] == UInt8(ascii: ":")
        else { return .badFieldName }
        var start = colon + 1
        var end = line.upperBound
        while start < end, base[start] == 0x20 || base[start] == 0x09 { start += 1 }
        while end > start, base[end - 1] == 0x20 || base[end - 1] == 0x09 { end -= 1 }
        guard isValue(base + start, end - start) else { return .badFieldValue }

        let known = knownFields.find(base + line.lowerBound, colon - line.lowerBound)
        head.spans[head.fieldCount] = FieldSpan(
            name: UInt32(line.lowerBound),
            nameCount: UInt32(colon - line.lowerBound),
            value: UInt32(start),
            valueCount: UInt32(end - start),
            known: known?.rawValue ?? 255
        )
        head.fieldCount += 1
        if let known, head.firstLine[Int(known.rawValue)] == 0 {
            head.firstLine[Int(known.rawValue)] = UInt16(truncatingIfNeeded: head.fieldCount)
        }
        return nil
    }

    /// Whether the text contains no control character except tabs; checks eight bytes at a time.
    private func isValue(_ text: UnsafeMutablePointer<UInt8>, _ count: Int) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let tops: UInt64 = 0x8080_8080_8080_8080
        var index = 0
        while index + 8 <= count {
            let word = UnsafeRawPointer(text + index).loadUnaligned(as: UInt64.self)
            let below = (word &- ones &* 0x20) & ~word & tops
            let delete = word ^ (ones &* 0x7F)
            // Some byte is below the space or DEL: it may be a tab, so each is checked.
            if below | ((delete &- ones) & ~delete & tops) != 0 {
                for offset in 0..<8 where classes[Int(text[index + offset])] & ByteClass.value == 0 {
                    return false
                }
            }
            index += 8
        }
        while index < count {
            if classes[Int(text[index])] & ByteClass.value == 0 { return false }
            index += 1
        }
        return true
    }

    // MARK: The head as a whole

    /// Evaluates the fields for host, body and connection, once the last line is read.
    private func finish() -> RequestFault? {
        head.framing = .none
        head.expectsContinue = false
        head.keepsAlive = head.isHTTP11
        return checkHost() ?? readFraming() ?? readExpectation() ?? readConnection()
    }

    private func checkHost() -> RequestFault? {
        guard let host = head[.host] else { return head.isHTTP11 ? .noHost : nil }
        if head.count(of: .host) > 1 { return .repeatedHost }
        for byte in host where classes[Int(byte)] & ByteClass.host == 0 { return .badHost }
        return nil
    }

    /// Reads the framing by RFC 9112 §6.1 and §6.3, without the leniencies they allow.
    private func readFraming() -> RequestFault? {
        if let coding = head[.transferEncoding] {
            if head.has(.contentLength) { return .lengthAndCoding }
            guard head.isHTTP11, head.count(of: .transferEncoding) == 1,
                FieldSyntax.equalsIgnoringCase(coding, "chunked")
            else {
                return .unknownCoding
            }
            head.framing = .chunked
        } else if let text = head[.contentLength] {
            if head.count(of: .contentLength) > 1 { return .repeatedContentLength }
            guard !text.isEmpty, text.allSatisfy({ $0 &- 0x30 < 10 }) else { return .badContentLength }
            var length = 0
            for digit in text {
                length = length &* 10 &+ Int(digit &- 0x30)
                if length > limits.maxBody { return .bodyTooLarge }
            }
            head.framing = .length(length)
        }
        return nil
    }

    private func readExpectation() -> RequestFault? {
        guard let expectation = head[.expect], head.isHTTP11 else { return nil }
        guard head.count(of: .expect) == 1, FieldSyntax.equalsIgnoringCase(expectation, "100-continue")
        else { return .unknownExpectation }
        head.expectsContinue = head.hasBody
        return nil
    }

    private func readConnection() -> RequestFault? {
        guard head.has(.connection) else { return nil }
        var asksToKeep = false
        var asksToClose = false
        for index in 0..<head.fieldCount where head.spans[index].known == KnownField.connection.rawValue {
            for option in head.field(at: index).value.split(separator: UInt8(ascii: ",")) {
                let option = UnsafeRawBufferPointer(rebasing: option).trimmed
                if FieldSyntax.equalsIgnoringCase(option, "close") { asksToClose = true }
                if FieldSyntax.equalsIgnoringCase(option, "keep-alive") { asksToKeep = true }
            }
        }
        head.keepsAlive = !asksToClose && (head.isHTTP11 || asksToKeep)
        return nil
    }
}

extension UnsafeRawBufferPointer {
    /// The bytes without surrounding spaces and tabs.
    fileprivate var trimmed: UnsafeRawBufferPointer {
        var (start, end) = (0, count)
        while start < end, self[start] == 0x20 || self[start] == 0x09 { start += 1 }
        while end > start, self[end - 1] == 0x20 || self[end - 1] == 0x09 { end -= 1 }
        return UnsafeRawBufferPointer(rebasing: self[start..<end])
    }
}
