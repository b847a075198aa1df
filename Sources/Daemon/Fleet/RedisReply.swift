/// What a server of the Redis protocol replies to a command.
indirect enum RedisReply: Sendable, Equatable {
    /// Bytes, or the text of a status.
    case bytes([UInt8])
    case integer(Int64)
    case array([RedisReply])
    case nothing
    /// The server refuses the command; its message.
    case error(String)

    var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }
    var text: String? { bytes.map { String(decoding: $0, as: UTF8.self) } }
    var number: Int64? { text.flatMap { Int64($0) } }
    var array: [RedisReply]? { if case .array(let elements) = self { elements } else { nil } }
}

struct RedisCommand: Sendable, Equatable {
    var arguments: [[UInt8]]

    init(_ arguments: String...) { self.arguments = arguments.map { Array($0.utf8) } }

    init(_ arguments: [[UInt8]]) { self.arguments = arguments }

    /// As it is sent: an array of strings.
    var encoded: [UInt8] {
        var bytes = Array("*\(arguments.count)\r\n".utf8)
        bytes.reserveCapacity(arguments.reduce(16) { $0 + $1.count + 16 })
        for word in arguments {
            bytes += Array("$\(word.count)\r\n".utf8)
            bytes += word
            bytes += [0x0D, 0x0A]
        }
        return bytes
    }
}

/// Why a server cannot be used; the connection is of no use any more.
enum RedisError: Error, Sendable, Equatable, CustomStringConvertible {
    /// It cannot be reached, does not reply in time, or has closed the connection; the cause.
    case away(String)
    /// It refuses what Larder needs; its message.
    case refused(String)
    case malformed

    var description: String {
        switch self {
        case .away(let cause): cause
        case .refused(let message): "it says \"\(message.prefix(200))\""
        case .malformed: "it does not reply as a Redis server does"
        }
    }
}
