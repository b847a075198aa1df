import CHiredis
import Glibc
import HTTPSemantics
import Settings

/// One connection to a server of the Redis protocol, with calls that block; the only file that imports hiredis.
///
/// It belongs to one thread. After an error it must not be used again. hiredis 0.14 has no limit on the time of a look-up of a
/// name: therefore no connection belongs to a loop.
final class RedisConnection {
    private let context: UnsafeMutablePointer<redisContext>
    private let limitedArrays: UnsafeMutablePointer<redisReplyObjectFunctions>
    /// The server's id, which is another one after each of its starts.
    private(set) var runID = ""
    private(set) var version = ""
    private let limit: Duration

    /// The most bytes of a reply; a server that sends more is not used.
    private static let replyLimit = 64 << 20

    /// Connects, and logs in.
    ///
    /// - Parameter limit: how long each step may take, but for the look-up of a name; and each call that has no other limit.
    init(_ server: FleetServer, password: [UInt8]?, within limit: Duration) throws(RedisError) {
        let time = Self.time(limit)
        let connected: UnsafeMutablePointer<redisContext>? =
            switch server.address {
            case .unix(let path, _, _): redisConnectUnixWithTimeout(path, time)
            case .tcp(let host, let port): redisConnectWithTimeout(host, Int32(port), time)
            }
        guard let connected else { throw .away("there is no memory for a connection") }
        guard connected.pointee.err == 0, let limited = larder_limit_arrays(connected) else {
            let error = RedisError.away(Self.message(of: connected))
            redisFree(connected)
            throw error
        }
        (context, limitedArrays, self.limit) = (connected, limited, limit)
        // Programs that Larder starts must not inherit it.
        _ = fcntl(context.pointee.fd, F_SETFD, FD_CLOEXEC)
        // On a Unix socket it would be an error, after which the context is of no use.
        if !server.address.isUnix { redisEnableKeepAlive(context) }
        // For writing; reading waits by itself.
        guard redisSetTimeout(context, time) == REDIS_OK else { throw failure }
        try logIn(server, password)
    }

    deinit {
        redisFree(context)
        free(limitedArrays)
    }

    private func logIn(_ server: FleetServer, _ password: [UInt8]?) throws(RedisError) {
        if let password {
            let user = server.user.map { [Array($0.utf8)] } ?? []
            _ = try single(RedisCommand([Array("AUTH".utf8)] + user + [password]))
        }
        if server.database != 0 { _ = try single(RedisCommand("SELECT", "\(server.database)")) }
        guard let info = try single(RedisCommand("INFO", "server")).text else { throw .malformed }
        let lines = info.split(whereSeparator: \.isNewline)
        func fact(_ name: String) -> String {
            lines.first { $0.hasPrefix(name) }.map { String($0.dropFirst(name.count)) } ?? ""
        }
        (runID, version) = (fact("run_id:"), fact("redis_version:"))
        guard !runID.isEmpty else { throw .malformed }
    }

    /// Sends a command and returns the reply; a refusal is thrown.
    func single(_ command: RedisCommand, within limit: Duration? = nil) throws(RedisError) -> RedisReply {
        let reply = try send([command], within: limit)[0]
        if case .error(let message) = reply { throw .refused(message) }
        return reply
    }

    /// Sends commands together, and returns the reply to each.
    ///
    /// - Parameter limit: how long all of it may take.
    func send(_ commands: [RedisCommand], within limit: Duration? = nil) throws(RedisError) -> [RedisReply] {
        let deadline = ContinuousClock.now + (limit ?? self.limit)
        for command in commands {
            let bytes = command.encoded
            let result = bytes.withUnsafeBufferPointer { bytes in
                bytes.withMemoryRebound(to: CChar.self) {
                    redisAppendFormattedCommand(context, $0.baseAddress, bytes.count)
                }
            }
            guard result == REDIS_OK else { throw failure }
        }
        var isDone: Int32 = 0
        while isDone == 0 {
            guard ContinuousClock.now < deadline else { throw .away("it does not take commands in time") }
            guard redisBufferWrite(context, &isDone) == REDIS_OK else { throw failure }
        }
        var replies: [RedisReply] = []
        replies.reserveCapacity(commands.count)
        for _ in commands { replies.append(try reply(until: deadline)) }
        return replies
    }

    private func reply(until deadline: ContinuousClock.Instant) throws(RedisError) -> RedisReply {
        while true {
            var found: UnsafeMutableRawPointer?
            guard redisGetReplyFromReader(context, &found) == REDIS_OK else { throw failure }
            if let found {
                defer { freeReplyObject(found) }
                return Self.reply(found.assumingMemoryBound(to: redisReply.self))
            }
            guard context.pointee.reader.pointee.len <= Self.replyLimit else { throw .malformed }
            try waitForBytes(until: deadline)
            guard redisBufferRead(context) == REDIS_OK else { throw failure }
        }
    }

    private func waitForBytes(until deadline: ContinuousClock.Instant) throws(RedisError) {
        while true {
            let rest = (deadline - .now).components
            let milliseconds = rest.seconds * 1000 + rest.attoseconds / 1_000_000_000_000_000
            guard milliseconds >= 0 else { throw .away("it does not reply in time") }
            var waiting = pollfd(fd: context.pointee.fd, events: Int16(POLLIN), revents: 0)
            let count = poll(&waiting, 1, Int32(clamping: milliseconds + 1))
            if count > 0 { return }
            if count < 0, errno != EINTR { throw .away(systemMessage(errno)) }
        }
    }

    private static func reply(_ found: UnsafePointer<redisReply>) -> RedisReply {
        let reply = found.pointee
        var bytes: [UInt8] { Array(UnsafeRawBufferPointer(start: reply.str, count: reply.len)) }
        switch reply.type {
        case REDIS_REPLY_STRING, REDIS_REPLY_STATUS: return .bytes(bytes)
        case REDIS_REPLY_INTEGER: return .integer(reply.integer)
        case REDIS_REPLY_ERROR: return .error(String(decoding: bytes, as: UTF8.self))
        case REDIS_REPLY_ARRAY:
            return .array((0..<reply.elements).map { index in reply.element[index].map { self.reply($0) } ?? .nothing })
        default: return .nothing
        }
    }

    private var failure: RedisError {
        context.pointee.err == REDIS_ERR_PROTOCOL || context.pointee.err == REDIS_ERR_OOM
            ? .malformed : .away(Self.message(of: context))
    }

    private static func message(of context: UnsafeMutablePointer<redisContext>) -> String {
        let text = withUnsafeBytes(of: context.pointee.errstr) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        return text.isEmpty ? "there is no memory for a connection" : text
    }

    private static func time(_ duration: Duration) -> timeval {
        let (seconds, attoseconds) = duration.components
        return timeval(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
    }
}
