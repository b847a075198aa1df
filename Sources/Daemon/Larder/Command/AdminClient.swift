import Admin
import ArgumentParser
import Foundation
import HTTPSemantics
import HTTPServer
import Proxy
import Settings
import Store
import Upstream

/// A client of a running daemon's admin side, for commands: one request at a time, which blocks the thread.
struct AdminClient {
    let address: Address
    /// The admin token, if one was found.
    let token: String?
    /// A Unix socket of the daemon that this user may not connect to.
    var socket: String?

    /// Sends a request and returns the response's body; a status that is not 2xx is an error.
    ///
    /// It waits for as long as the daemon works on it.
    func send(_ method: String, _ target: String, body: [UInt8]? = nil) throws(AdminClientError) -> [UInt8] {
        var received: [UInt8] = []
        _ = try perform(exchange(method, target, body, accept: "application/json")) { received += $1 }
        return received
    }

    /// Sends a request whose request or response body may be a large file; a status that is not 2xx is an error.
    func transfer(
        _ target: String,
        body: [UInt8] = [],
        upload: CurlExchange.Upload? = nil,
        received: (UnsafeRawBufferPointer) -> Void
    ) throws(AdminClientError) {
        var exchange = exchange("POST", target, upload == nil ? body : nil, accept: "*/*")
        exchange.upload = upload
        _ = try perform(exchange) { received($1) }
    }

    /// Seconds of silence after which the daemon counts as gone; a stream is never silent for longer than 15.
    static let patience = 60

    /// Listens to a stream of events until it ends or breaks; returns the number to resume from.
    ///
    /// - Parameters:
    ///   - body: the request's JSON; makes the request a POST.
    ///   - lastID: the number to resume after; empty to start as the target says.
    ///   - silence: seconds without a byte after which the connection counts as dead; nil for never.
    ///   - each: called with each event as it is received.
    func listen(
        _ target: String,
        body: [UInt8]? = nil,
        after lastID: String = "",
        silence: Int? = nil,
        each: (ReceivedEvent) -> Void
    ) throws(AdminClientError) -> String {
        var exchange = exchange(body == nil ? "GET" : "POST", target, body, accept: EventStreamText.mediaType)
        exchange.silence = silence
        if !lastID.isEmpty { exchange.fields.append("Last-Event-ID", lastID) }
        var reader = EventReader(lastID: lastID)
        var hasBegun = false
        let head: UpstreamHead
        do throws(AdminClientError) {
            head = try perform(exchange) { head, bytes in
                guard head.isEventStream else { return }
                hasBegun = true
                for event in reader.take(bytes) { each(event) }
            }
        } catch {
            // A stream that breaks is over; to resume, call again with the last number.
            if hasBegun { return reader.lastID }
            throw error
        }
        guard head.isEventStream else {
            throw AdminClientError("\(address) does not send events; is it the admin side of this version of Larder?")
        }
        return reader.lastID
    }

    private func exchange(_ method: String, _ target: String, _ body: [UInt8]?, accept: String) -> CurlExchange {
        var fields = Fields([Field("Accept", accept)])
        if let token { fields.append("Authorization", "Bearer \(token)") }
        if body != nil { fields.append("Content-Type", "application/json") }
        let (host, socket): (String, String?) =
            if case .unix(let path, _, _) = address { ("localhost", path) } else { ("\(address)", nil) }
        let url = "http://\(host)\(target)"
        return CurlExchange(method: method, url: url, fields: fields, body: body, unixSocket: socket)
    }

    private func perform(
        _ exchange: CurlExchange,
        _ received: (UpstreamHead, UnsafeRawBufferPointer) -> Void
    ) throws(AdminClientError) -> UpstreamHead {
        // A daemon that closes early must be an error here, not the end of the process.
        signal(SIGPIPE, SIG_IGN)
        if token != nil, !address.isUnix { try checkPeer() }
        var refusal: [UInt8] = []
        let head = try result(of: exchange) { head, bytes in
            if (200..<300).contains(head.status) { received(head, bytes) } else { refusal += bytes }
        }
        guard (200..<300).contains(head.status) else {
            throw AdminClientError(status: head.status, refusal, hadToken: token != nil, socket: socket)
        }
        return head
    }

    /// Checks that the server is an admin side before it gets the token.
    ///
    /// A wrong address may be anyone's, or Larder's own data side, which would pass the token on to the API.
    private func checkPeer() throws(AdminClientError) {
        let request = CurlExchange(method: "GET", url: "http://\(address)/count", fields: Fields())
        var body: [UInt8] = []
        let head = try result(of: request) { _, bytes in body += bytes.prefix(max(0, 1024 - body.count)) }
        if head.fields.combined("cache-status")?.contains("larder") == true {
            throw AdminClientError(
                "\(address) is where Larder serves programs; name its admin address with --admin or LARDER_ADMIN"
            )
        }
        let fault = RequestFault.tooManyConnections
        if head.status == fault.status, body == fault.problem.bytes {
            throw AdminClientError(status: head.status, body, hadToken: true)
        }
        let challenge = head.fields.combined("www-authenticate") ?? ""
        guard head.status == 401, challenge.hasPrefix(AdminToken.challenge) else {
            throw AdminClientError(
                "what listens on \(address) is not Larder's admin side, so the token was not sent to it"
            )
        }
    }

    private func result(
        of exchange: CurlExchange,
        _ received: (UpstreamHead, UnsafeRawBufferPointer) -> Void
    ) throws(AdminClientError) -> UpstreamHead {
        do throws(CurlExchange.Failure) {
            return try exchange.perform(received)
        } catch { throw AdminClientError(error, address) }
    }
}

/// Why a command got no result from the daemon, and the remedy.
struct AdminClientError: Error, Equatable, CustomStringConvertible {
    let description: String
    /// Whether no complete response came for a reason that a restart of the daemon can have.
    private(set) var isAbsence = false
    /// The mistakes in the config, each with its place, if the daemon refused it for these, or cannot be found because of them.
    private(set) var mistakes: [String] = []
    /// The status of a response that refuses the request; nil where no such response came.
    private(set) var status: Int?

    init(_ description: String) { self.description = description }

    static func == (left: Self, right: Self) -> Bool { left.description == right.description }

    /// No complete response came.
    init(_ failure: CurlExchange.Failure, _ address: Address) {
        switch (failure, address) {
        case (.notConnected(ECONNREFUSED), .tcp): self.init("nothing listens on \(address); is `larder serve` running?")
        case (.notConnected(ECONNREFUSED), .unix), (.notConnected(ENOENT), _):
            self.init("nothing listens on \(address); is `larder serve` running with this admin address?")
        case (.notConnected(EACCES), .unix), (.notConnected(EPERM), .unix):
            self.init(
                "you may not connect to \(address): the socket's permissions forbid it; are you in the group that may?"
            )
        case (.notConnected(0), _), (.notConnected(ETIMEDOUT), _): self.init("\(address) does not respond")
        case (.notConnected(let code), _): self.init("cannot connect to \(address): \(systemMessage(code))")
        case (.unknownHost(let reason), _): self.init("cannot find the host of \(address): \(reason)")
        case (.notHTTP, _): self.init("what listens on \(address) does not speak HTTP; is it Larder's admin side?")
        case (.silent, _): self.init("the connection to \(address) is dead: nothing came for too long")
        case (.broken(let reason), _): self.init("the connection to \(address) broke: \(reason)")
        }
        switch failure {
        case .notConnected(ECONNREFUSED), .notConnected(ENOENT), .notConnected(0), .notConnected(ETIMEDOUT),
            .silent, .broken:
            isAbsence = true
        case .notConnected, .unknownHost, .notHTTP: break
        }
    }

    /// The config does not say where the daemon is.
    init(mistakes: [Diagnostic]) {
        self.init("the config has mistakes, so that the daemon cannot be found")
        self.mistakes = mistakes.map(\.description)
    }

    /// The daemon stopped sending events and sent a problem document.
    init(problem: [UInt8]) { self.init(Self.words(problem) ?? "the daemon gave up; its log says why") }

    /// The daemon refused the request.
    init(status: Int, _ body: [UInt8], hadToken: Bool, socket: String? = nil) {
        let words = Self.words(body)
        switch status {
        case 401 where !hadToken:
            self.init(
                "the daemon requires its admin token, which is in admin.token beside the store; name the store with "
                    + Self.alternatives("--store FILE", "set LARDER_ADMIN_TOKEN", socket)
            )
        case 401,
            403 where hadToken && words == nil:
            self.init(
                "the admin token is not this daemon's; name its store with --store FILE, or set LARDER_ADMIN_TOKEN"
            )
        default: self.init(words ?? "the daemon responded with status \(status)")
        }
        (self.status, mistakes) = (status, Self.problem(body)?.errors ?? [])
    }

    /// The remedies: one of these, or to join the group of a socket that this user may not connect to.
    static func alternatives(_ first: String, _ second: String, _ socket: String?) -> String {
        guard let socket else { return "\(first), or \(second)" }
        return "\(first), \(second), or join the group that may use \(socket)"
    }

    /// The text of a problem document (RFC 9457); nil if it has none.
    private static func words(_ document: [UInt8]) -> String? {
        guard let problem = problem(document) else { return nil }
        // Without a type of its own, the title is only the phrase of the status.
        let isPhrase = problem.detail != nil && problem.type ?? "about:blank" == "about:blank"
        let words = [isPhrase ? nil : problem.title, problem.detail].compactMap(\.self)
        return words.isEmpty ? nil : words.joined(separator: ": ")
    }

    private struct Problem: Decodable {
        var type: String?
        var title: String?
        var detail: String?
        var errors: [String]?
    }

    private static func problem(_ document: [UInt8]) -> Problem? {
        try? JSONDecoder().decode(Problem.self, from: Data(document))
    }
}

/// One server-sent event as it was received.
struct ReceivedEvent: Sendable, Equatable {
    var name = "message"
    /// The lines of its data, joined.
    var data = ""
    /// The number that came with it or before it.
    var lastID = ""
}

/// Reads a stream of server-sent events as the HTML standard defines (§9.2.6), in pieces of any length.
struct EventReader {
    /// The number to resume from: that of the last complete event.
    private(set) var lastID: String
    private var nextID: String
    private var line: [UInt8] = []
    private var name = ""
    private var data: [String] = []
    private var isAfterReturn = false

    /// - Parameter lastID: the number from the previous stream.
    init(lastID: String = "") {
        self.lastID = lastID
        nextID = lastID
    }

    /// Takes a piece; returns the events that it completes.
    mutating func take(_ bytes: some Sequence<UInt8>) -> [ReceivedEvent] {
        var events: [ReceivedEvent] = []
        for byte in bytes {
            let isSecondOfTwo = isAfterReturn && byte == 0x0A
            isAfterReturn = byte == 0x0D
            if isSecondOfTwo { continue }
            guard byte == 0x0A || byte == 0x0D else {
                line.append(byte)
                continue
            }
            if let event = endOfLine() { events.append(event) }
            line.removeAll(keepingCapacity: true)
        }
        return events
    }

    private mutating func endOfLine() -> ReceivedEvent? {
        if line.isEmpty {
            lastID = nextID
            defer { (name, data) = ("", []) }
            guard !data.isEmpty else { return nil }
            let name = name.isEmpty ? "message" : name
            return ReceivedEvent(name: name, data: data.joined(separator: "\n"), lastID: lastID)
        }
        let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        var value = parts.count > 1 ? parts[1] : []
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        let text = String(decoding: value, as: UTF8.self)
        switch String(decoding: parts[0], as: UTF8.self) {
        case "event": name = text
        case "data": data.append(text)
        case "id": if !text.utf8.contains(0) { nextID = text }
        default: break
        }
        return nil
    }
}

/// How a command finds the daemon and shows its response.
struct AdminOptions: ParsableArguments {
    @Option(
        help: .value(
            "addr",
            "The daemon's admin address: HOST:PORT or unix:PATH. (default: LARDER_ADMIN, else that of the config, else 127.0.0.1:8788)"
        ),
        transform: Address.option
    )
    var admin: Address?

    @Option(
        help: .value(
            "file",
            "The daemon's config, which says where it listens. (default: LARDER_CONFIG, else as `larder serve`)"
        ),
        completion: .file(extensions: ["yaml", "yml"])
    )
    var config: String?

    @Option(
        help: .value(
            "file",
            "The daemon's store. The admin token is read from admin.token beside it. (default: the token in LARDER_ADMIN_TOKEN, else beside the usual store)"
        ),
        completion: .file()
    )
    var store: String?

    @Flag(help: "Print the daemon's JSON, for programs.") var json = false

    func validate() throws { try GivenText.check(["--store": store, "--config": config]) }

    /// Sends the daemon a request; returns the response's body.
    func ask(_ method: String, _ target: String, body: (any Encodable)? = nil) throws -> [UInt8] {
        let watch = ProgressWatch.waiting()
        defer { watch?.end() }
        return try client().send(method, target, body: body.map { AdminJSON.encode($0) })
    }

    /// Sends the daemon a request, and prints its response.
    func show<Value: Decodable>(
        _ target: String,
        as type: Value.Type,
        method: String = "GET",
        body: (any Encodable)? = nil,
        _ text: (Value) -> String
    ) throws { try present(type, try ask(method, target, body: body), text) }

    /// A client of the selected daemon.
    ///
    /// - Parameter address: Where the daemon was found before; nil if it is to be found.
    func client(at address: Address? = nil) throws(AdminClientError) -> AdminClient {
        try finder(at: address).client()
    }

    func finder(at address: Address? = nil) -> DaemonFinder {
        DaemonFinder(admin: address ?? admin, store: store, config: config, environment: Environment.variables)
    }

    func decode<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8]) throws -> Value {
        do {
            return try AdminJSON.decode(type, from: bytes)
        } catch {
            throw CommandFailure("the daemon's response is not what this version expects; --json shows it as it is")
        }
    }

    /// Prints a response: unchanged for programs, and as `show` formats it for people.
    func present<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8], _ show: (Value) -> String) throws {
        if json {
            Terminal.out(json: String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .newlines))
        } else {
            Terminal.say(show(try decode(type, bytes)))
        }
    }
}

/// Builds request targets.
enum Target {
    /// `/objects/User/7?limit=5`: components and values percent-encoded, parameters without a value left out.
    static func make(_ components: [String], _ query: [(String, String?)] = []) -> String {
        let path = components.map { "/" + PercentEncoding.encode($0) }.joined()
        let pairs = query.compactMap { name, value in value.map { "\(name)=\(PercentEncoding.encode($0))" } }
        return pairs.isEmpty ? path : "\(path)?\(pairs.joined(separator: "&"))"
    }
}

/// Finds the daemon for a command: its address and its token.
///
/// The address is that of `--admin`, else of `LARDER_ADMIN`, else of `admin:` in the daemon's config, else the default. Of
/// several addresses in a config, a Unix socket that this user may connect to is preferred: it needs no token. If nothing listens
/// there, it is where the daemon that has the store open says it is.
///
/// A config that was broken after the daemon had read it no longer says where it is. Then a daemon is found that has its config from
/// the same file: where one that has the store open says it is, or at the default address.
struct DaemonFinder {
    /// The service's store in Debian's package.
    static let serviceStore = "/var/lib/larder/larder.db"

    var admin: Address?
    var store: String?
    var config: String?
    let environment: [String: String]

    /// A client of the daemon; fails if the config or the token cannot be read.
    func client() throws(AdminClientError) -> AdminClient {
        let given = try givenAddress()
        var token = store == nil ? try givenToken() : nil
        // Then the config need not be read, which takes a tenth of a second for a large one.
        if let given, config == nil, given.isUnix || token != nil { return AdminClient(address: given, token: token) }
        let settings: Configuration?
        do {
            settings = try self.settings()
        } catch {
            guard given == nil, !error.mistakes.isEmpty, let client = clientOfBrokenConfig() else { throw error }
            return client
        }
        let addresses = settings?.admin ?? Configuration().admin
        var address = given ?? addresses.first(where: Self.isOpen) ?? addresses.first { !$0.isUnix } ?? addresses[0]
        // It may have been started with another address, or still listen where its config said before.
        if given == nil, let announced = announced(settings).first, announced != address,
            !Self.isListening(at: address)
        {
            address = announced
        }
        // A Unix socket needs no token.
        if !address.isUnix {
            if token == nil { token = try storedToken(settings) }
            if token == nil { token = try givenToken() }
        }
        return AdminClient(address: address, token: token, socket: Self.closedSocket(settings))
    }

    /// The files that may be the daemon's store, the likeliest first; only the named one if there is one.
    func stores() throws(AdminClientError) -> [String] { stores(try settings()) }

    private func stores(_ settings: Configuration?) -> [String] {
        if let named = store ?? settings?.store.path { return [named] }
        return [Defaults(environment: environment).storePath, Self.serviceStore].compactMap(\.self)
    }

    /// The admin addresses of the daemons that have these stores open, as they say themselves.
    private func announced(_ settings: Configuration?) -> [Address] {
        stores(settings).compactMap(ObjectStore.announcedAdmin).compactMap { try? Address($0) }
    }

    private static func isListening(at address: Address) -> Bool {
        do throws(AdminClientError) {
            _ = try AdminClient(address: address, token: nil).send("GET", "/healthz")
            return true
        } catch { return !error.isAbsence }
    }

    /// A client of the running daemon that has its config from the selected file, whatever that says by now; nil if none is found.
    private func clientOfBrokenConfig() -> AdminClient? {
        guard let path = configPath.flatMap(Self.resolved) else { return nil }
        for address in announced(nil) + Configuration().admin {
            let token = (try? storedToken(nil)) ?? (try? givenToken())
            let client = AdminClient(address: address, token: address.isUnix ? nil : token)
            guard let response = try? client.send("GET", "/status"),
                let status = try? AdminJSON.decode(Status.self, from: response),
                status.config.flatMap(Self.resolved) == path
            else { continue }
            return client
        }
        return nil
    }

    private static func resolved(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// The config that is named, or the usual one; nil without a file.
    private var configPath: String? {
        let named = config ?? environment["LARDER_CONFIG"].flatMap { $0.isEmpty ? nil : $0 }
        return named ?? ConfigOptions.usualPath(environment: environment)
    }

    /// The config, ignoring mistakes that matter only to those who start the daemon; nil without a file.
    private func settings() throws(AdminClientError) -> Configuration? {
        let named = config ?? environment["LARDER_CONFIG"].flatMap { $0.isEmpty ? nil : $0 }
        guard let path = configPath else { return nil }
        guard access(path, R_OK) == 0 else {
            // The user has not named it, and may reach the service without being able to read its config.
            guard named != nil else { return nil }
            throw AdminClientError("the config \(path) cannot be read: \(PermissionRemedy.reason(errno, for: path))")
        }
        let file = ConfigFile.read(path, environment: environment)
        guard file.errorsAboutAdmin.isEmpty else { throw AdminClientError(mistakes: file.errorsAboutAdmin) }
        return file.settings
    }

    private func givenAddress() throws(AdminClientError) -> Address? {
        if let admin { return admin }
        guard let named = environment["LARDER_ADMIN"], !named.isEmpty else { return nil }
        do {
            return try Address(named)
        } catch { throw AdminClientError("LARDER_ADMIN: \(error.description)") }
    }

    private func givenToken() throws(AdminClientError) -> String? {
        guard let token = environment["LARDER_ADMIN_TOKEN"], !token.isEmpty else { return nil }
        guard token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw AdminClientError(
                "LARDER_ADMIN_TOKEN contains characters that no token has; copy it from admin.token beside the store"
            )
        }
        return token
    }

    /// Whether it is a Unix socket that this user may connect to.
    private static func isOpen(_ address: Address) -> Bool {
        guard case .unix(let path, _, _) = address else { return false }
        return access(path, R_OK | W_OK) == 0
    }

    /// A Unix socket of the config that this user may not connect to.
    private static func closedSocket(_ settings: Configuration?) -> String? {
        for case .unix(let path, _, _) in settings?.admin ?? [] where access(path, W_OK) != 0 && errno == EACCES {
            return path
        }
        return nil
    }

    /// The token beside the store; nil if there is none yet.
    private func storedToken(_ settings: Configuration?) throws(AdminClientError) -> String? {
        let usual = [settings?.store.path, Defaults(environment: environment).storePath, Self.serviceStore]
        var refusal: AdminClientError?
        for store in store.map({ [$0] }) ?? usual.compactMap(\.self) {
            do throws(SecretFileError) {
                if let token = try AdminToken.load(from: AdminToken.path(besideStore: store)) { return token }
            } catch {
                let advice = AdminClientError.alternatives(
                    "run this command as the user that runs Larder",
                    "set LARDER_ADMIN_TOKEN",
                    Self.closedSocket(settings)
                )
                refusal = refusal ?? AdminClientError("\(error.description); \(advice)")
            }
        }
        if let refusal { throw refusal }
        return nil
    }
}
