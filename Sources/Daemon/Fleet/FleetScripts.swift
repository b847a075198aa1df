/// What the server does in one step: scripts that it loads once, and runs by their digests.
///
/// Each checks the epoch first, so that nothing is done in one that is over. Redis replicates what a script has changed, and not
/// the script, since version 5: it may ask for the time.
enum FleetScript: String, CaseIterable, Sendable {
    /// Enters an upstream's epoch, or begins one.
    ///
    /// It begins one if there is none, if the server is another one than that in which it began, if its clock was set back since the
    /// last entry, if this machine knows of a later one, or if the epoch to be ended is the current one.
    /// Keys: the record. Arguments: the server's id; the latest epoch that this machine knows; the epoch to be ended, `*` for the
    /// current one whichever it is, or nothing.
    /// It returns the epoch and the last entry; of a new epoch also the one before it.
    case enter = """
        local r = redis.call('HMGET', KEYS[1], 'epoch', 'server', 'last')
        local t = redis.call('TIME')
        local last = tonumber(string.match(r[3] or '', '^(%d+)%-%d+$') or '')
        if r[1] and last and last <= t[1] * 1000 + t[2] / 1000 and r[2] == ARGV[1] and r[1] ~= ARGV[3]
            and ARGV[3] ~= '*' and tonumber(r[1]) >= tonumber(ARGV[2]) then
          return {r[1], r[3]}
        end
        local n = math.max(t[1] * 1000000 + t[2], ARGV[2] + 1, (tonumber(r[1] or '0') or 0) + 1)
        local epoch = string.format('%.0f', n)
        if r[1] then redis.call('EXPIRE', KEYS[1] .. ':' .. r[1] .. ':news', 3600) end
        redis.call('HSET', KEYS[1], 'epoch', epoch, 'server', ARGV[1], 'last', '0-0')
        return {epoch, '0-0', r[1] or '0'}
        """
    /// Finds the entry after which a number of entries are; nothing if there are not so many.
    ///
    /// Keys: the stream. Arguments: the number.
    case tail = """
        local found = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', ARGV[1] + 1)
        return found[ARGV[1] + 1] and found[ARGV[1] + 1][1]
        """
    /// Appends news.
    ///
    /// Keys: the record, the stream. Arguments: the epoch; how many entries the stream keeps; the sealed news. It returns the
    /// entry's id, or nothing in another epoch.
    case announce = """
        local r = redis.call('HMGET', KEYS[1], 'epoch', 'last')
        if r[1] ~= ARGV[1] or not r[2] then return false end
        local id = redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', 'after', r[2], 'news', ARGV[3])
        redis.call('HSET', KEYS[1], 'last', id)
        return id
        """
    /// Finds a document, or takes the lease of its fetch.
    ///
    /// Keys: the record, the document, the lease. Arguments: the epoch; the token of the lease; how long it lasts in ms; whether a
    /// document is wanted. It returns a word, and the document.
    case find = """
        if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return {'epoch'} end
        if ARGV[4] == '1' then
          local found = redis.call('GET', KEYS[2])
          if found then return {'document', found} end
        end
        local held = redis.call('GET', KEYS[3])
        if held == 'never' then return {'never'} end
        if held then return {'held'} end
        redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])
        return {'mine'}
        """
    /// Shares a document, and lets those who wait for it know.
    ///
    /// Keys: the record, the document, the lease, the outcomes. Arguments: the epoch; the sealed document; how long it lasts in ms; its
    /// name.
    case share = """
        if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return false end
        redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
        if redis.call('DEL', KEYS[3]) == 0 then return 0 end
        redis.call('XADD', KEYS[4], 'MAXLEN', '~', 1000, '*', ARGV[4], 'shared')
        redis.call('EXPIRE', KEYS[4], 3600)
        return 1
        """
    /// Gives a lease back, and lets those who wait know.
    ///
    /// Keys: the record, the lease, the outcomes. Arguments: the epoch; the token; for how long no machine gets the lease, in ms, or 0; the
    /// document's name.
    case release = """
        if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return false end
        if redis.call('GET', KEYS[2]) ~= ARGV[2] then return 0 end
        local word = 'failed'
        if ARGV[3] == '0' then
          redis.call('DEL', KEYS[2])
        else
          redis.call('SET', KEYS[2], 'never', 'PX', ARGV[3])
          word = 'never'
        end
        redis.call('XADD', KEYS[3], 'MAXLEN', '~', 1000, '*', ARGV[4], word)
        redis.call('EXPIRE', KEYS[3], 3600)
        return 1
        """
    /// Counts what a machine has taken of a rate limit. It asks for no epoch: what is lost, the upstream says again.
    ///
    /// Of the upstream's numbers for one period the smallest counts, because responses arrive in any order; ends that lie apart by
    /// less than two seconds are of one period.
    /// Keys: the limit, its machines. Arguments: the machine; the requests that it has sent; and if the upstream has said it: the
    /// requests that are left, the µs until the end, the limit or nothing. It returns what is left, the µs until the end, the
    /// limit, and how many machines have spent it in the last ten minutes; nothing if it is not known.
    case spend = """
        local t = redis.call('TIME')
        local now = t[1] * 1000000 + t[2]
        local b = redis.call('HMGET', KEYS[1], 'remaining', 'end', 'limit')
        local left, stop, limit = tonumber(b[1] or ''), tonumber(b[2] or ''), b[3] or ''
        if not stop or stop <= now then left = nil end
        if left then left = left - ARGV[2] end
        if ARGV[3] then
          local said, ending = tonumber(ARGV[3]), now + ARGV[4]
          if not left or ending > stop + 2000000 then
            left, stop = said, ending
          elseif ending > stop - 2000000 then
            left = math.min(left, said)
          end
          limit = ARGV[5]
        end
        redis.call('ZADD', KEYS[2], string.format('%.0f', now), ARGV[1])
        redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, string.format('%.0f', now - 600000000))
        redis.call('EXPIRE', KEYS[2], 600)
        if not left then return {} end
        redis.call('HSET', KEYS[1], 'remaining', string.format('%.0f', left), 'end', string.format('%.0f', stop), 'limit', limit)
        redis.call('PEXPIRE', KEYS[1], math.ceil((stop - now) / 1000))
        return {string.format('%.0f', left), string.format('%.0f', stop - now), limit, tostring(redis.call('ZCARD', KEYS[2]))}
        """
}

/// The digests under which a server has the scripts.
struct LoadedScripts: Sendable {
    private var digests: [FleetScript: [UInt8]] = [:]

    init(_ connection: RedisConnection) throws(RedisError) {
        let loads = FleetScript.allCases.map { RedisCommand("SCRIPT", "LOAD", $0.rawValue) }
        for (script, reply) in zip(FleetScript.allCases, try connection.send(loads)) {
            switch reply {
            case .bytes(let digest): digests[script] = digest
            case .error(let message): throw .refused(message)
            default: throw .malformed
            }
        }
    }

    func command(_ script: FleetScript, keys: [String], _ arguments: [[UInt8]]) -> RedisCommand {
        guard let digest = digests[script] else { preconditionFailure("all scripts are loaded") }
        let command = [Array("EVALSHA".utf8), digest, Array("\(keys.count)".utf8)] + keys.map { Array($0.utf8) }
        return RedisCommand(command + arguments)
    }
}

/// The names of an upstream's data on the server.
struct FleetNames: Sendable {
    /// A hash: the epoch, the server in which it began, the last entry of its stream.
    let record: String

    func stream(_ epoch: UInt64) -> String { "\(record):\(epoch):news" }
    func outcomes(_ epoch: UInt64) -> String { "\(record):\(epoch):words" }
    func document(_ name: String, _ epoch: UInt64) -> String { "\(record):\(epoch):document:\(name)" }
    func lease(_ name: String, _ epoch: UInt64) -> String { "\(record):\(epoch):lease:\(name)" }
    func limit(_ name: String) -> String { "\(record):limit:\(name)" }
}
