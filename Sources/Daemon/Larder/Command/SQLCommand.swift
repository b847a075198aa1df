import Admin
import ArgumentParser
import Dispatch
import Glibc
import HTTPSemantics
import Settings
import Store
import Synchronization

struct SQLCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sql",
        abstract: "Query the stored objects with SQL.",
        discussion: """
            Each model is a view: a row for each object, a column for each property. Without a query the views are listed:

              larder sql
              larder sql 'select login, name from User_current order by login limit 5'
              larder sql --csv 'select * from Issue_current' > issues.csv
              larder sql --json 'select state, count(*) as n from Issue_current group by state' | jq

            MODEL_current has each object once. MODEL has it once for each user and language that it was requested for, \
            in the columns principal and context. A reference holds the other object's identity:

              larder sql 'select i.title, u.login from Issue_current i join User_current u on u.identity = i.user'

            A list of references is a JSON array, which json_each takes apart:

              larder sql 'select i.title, l.name from Issue_current i, json_each(i.labels) e
                          join Label_current l on l.identity = e.value'

            Put names that are SQL keywords in double quotes: select * from "Group". The store is only read, whether \
            the daemon runs or not. If you may not read the store's file, or name the daemon with --admin, the daemon runs \
            the query.
            """
    )

    @Argument(
        help: .value(
            "query",
            "One statement, such as a SELECT; - reads it from standard input. Without it the views are listed."
        )
    )
    var query: String?

    @Flag(help: "Print a JSON array with an object for each row; numbers stay numbers.") var json = false
    @Flag(help: "Print comma-separated values under a line of names.") var csv = false

    @Option(
        help: .value("time", "For how long the query may take, such as 30s or 5m; 0: no limit. (default: 10s)"),
        transform: { try given($0, for: "--timeout", Units.duration) }
    )
    var timeout: Duration = .seconds(10)

    @Option(
        help: .value("file", "The store's file. (default: that of the config, else as `larder serve`)"),
        completion: .file()
    )
    var store: String?

    @Option(
        help: .value(
            "file",
            "The daemon's config, which says where the store is. (default: LARDER_CONFIG, else as `larder serve`)"
        ),
        completion: .config
    )
    var config: String?

    @Option(
        help: .value(
            "addr",
            "The admin address of a daemon that is to run the query: HOST:PORT or unix:PATH. (default: the file is read; if you may not, as the other commands)"
        ),
        transform: Address.option
    )
    var admin: Address?

    func validate() throws {
        try GivenText.require(["query": query])
        try GivenText.check(["--store": store, "--config": config])
        if json, csv { throw ValidationError("--json and --csv exclude each other") }
    }

    func run() throws {
        let query = try statement()
        guard let reader = try opened() else { return try ask(query) }
        StoreReader.limitMemory()
        let guardian = limit.map { QueryGuardian($0, complaint: complaint(about: .tookTooLong, reader)) }
        defer { guardian?.end() }
        let watch = ProgressWatch.waiting(atMost: limit.map { Units.text($0) })
        defer { watch?.end() }
        do throws(QueryFailure) {
            guard let query else {
                let views = try reader.views(within: limit)
                guardian?.end()
                watch?.end()
                return show(views)
            }
            guard json || csv else {
                var result = QueryResult()
                try reader.run(query, within: limit, columns: { result.columns = $0 }, row: { result.rows.append($0) })
                guardian?.end()
                watch?.end()
                return Terminal.out(result.table)
            }
            var printer = RowPrinter(isJSON: json, deadline: limit.map { .now + $0 })
            defer { printer.flush() }
            try reader.run(query, within: limit, columns: { printer.begin($0) }) { row in
                watch?.end()
                printer.write(row)
            }
            guardian?.end()
            watch?.end()
            printer.end()
        } catch { throw CommandFailure(complaint(about: error, reader)) }
    }

    private func statement() throws -> String? {
        guard query == "-" else { return query }
        let text = String(decoding: try FileBytes.readStandardInput(limit: 1 << 20), as: UTF8.self)
        guard text.contains(where: { !$0.isWhitespace }) else { throw CommandFailure("standard input is empty") }
        return text
    }

    private var limit: Duration? { timeout == .zero ? nil : timeout }

    /// The store's file; nil if the daemon is to be asked.
    private func opened() throws -> StoreReader? {
        guard admin == nil else { return nil }
        let paths = try finder.stores()
        let found = paths.first { access($0, F_OK) == 0 || errno == EACCES }
        // If no daemon has that one open, one that runs may have another: its config has changed since, or its command line names it.
        let isUnused = found.map { ObjectStore.announcedAdmin(ofStore: $0) == nil } ?? true
        if store == nil, isUnused, isDaemonReachable { return nil }
        guard let path = found else {
            let places = paths.map(\.printable).joined(separator: " and no ")
            throw CommandFailure(
                store == nil
                    ? "no store was found: no \(places); --store FILE names the daemon's"
                    : "there is no store \(places)"
            )
        }
        // The group that may use the daemon's socket need not be the one that may read its files.
        if store == nil, access(path, R_OK) != 0, errno == EACCES, isDaemonReachable { return nil }
        do throws(StoreError) {
            return try StoreReader(path: path)
        } catch { throw CommandFailure(error.description.printable) }
    }

    private var finder: DaemonFinder {
        DaemonFinder(admin: admin, store: store, config: config, environment: Environment.variables)
    }

    private var isDaemonReachable: Bool { (try? finder.client().send("GET", "/count")) != nil }

    /// Has the daemon run a query, and prints what it sends.
    private func ask(_ query: String?) throws {
        let watch = ProgressWatch.waiting(atMost: limit.map { Units.text($0) })
        defer { watch?.end() }
        // The daemon runs nothing for ever.
        let words = ["query": query, "timeout": Units.text(limit ?? .seconds(600))].compactMapValues(\.self)
        let isTerminal = isatty(1) == 1
        var text: [UInt8] = []
        let target = "/sql?form=\(json ? "json" : csv ? "csv" : "table")"
        try finder.client().transfer(target, body: AdminJSON.encode(words)) { bytes in
            watch?.end()
            if isTerminal { text += bytes } else { _ = writeAll(bytes, to: 1) }
        }
        guard isTerminal, !text.isEmpty else { return }
        let result = String(decoding: text.last == UInt8(ascii: "\n") ? text.dropLast() : text[...], as: UTF8.self)
        guard !json else { return Terminal.out(json: result) }
        let lines = result.split(separator: "\n", omittingEmptySubsequences: false)
        Terminal.out(lines.map(\.printable).joined(separator: "\n"))
    }

    private func complaint(about failure: QueryFailure, _ reader: StoreReader) -> String {
        switch failure {
        case .severalStatements: return "one statement at a time: give each to a larder sql of its own"
        case .wouldWrite: return "larder sql only reads: write a SELECT; larder clean removes objects"
        case .tookTooLong:
            return
                "the query took longer than \(Units.text(timeout)); narrow it (WHERE, LIMIT), or allow more with --timeout"
        case .failed(let message): return message.printable + (hint(about: message, reader).map { "; \($0)" } ?? "")
        }
    }

    private func hint(about message: String, _ reader: StoreReader) -> String? {
        let views = (try? reader.views(within: .seconds(2))) ?? []
        let names = views.map(\.name)
        if let missing = message.split(separator: "no such table: ", maxSplits: 1).last, missing.count < message.count {
            guard let near = Suggestion.nearest(to: String(missing), among: names) else {
                return "`larder sql` lists the views"
            }
            return "did you mean \(near)?"
        }
        if let missing = message.split(separator: "no such column: ", maxSplits: 1).last, missing.count < message.count
        {
            let column = missing.split(separator: ".").last.map(String.init) ?? String(missing)
            let columns = views.filter { (query ?? "").lowercased().contains($0.name.lowercased()) }.flatMap(\.columns)
            return Suggestion.nearest(to: column, among: Array(Set(columns)).sorted()).map { "did you mean \($0)?" }
                ?? "`larder sql` lists the columns"
        }
        let word = message.split(separator: "\"").dropFirst().first.map(String.init)
        guard message.hasSuffix("syntax error"), let word else { return nil }
        let known = names + views.flatMap(\.columns)
        guard known.contains(where: { $0.lowercased() == word.lowercased() }) else { return nil }
        return "\(word) is a word of SQL; as a name write it in double quotes: \"\(word)\""
    }

    private func show(_ views: [StoreView]) {
        if json || csv {
            var printer = RowPrinter(isJSON: json)
            printer.begin(["view", "column"])
            for view in views { view.columns.forEach { printer.write([.text(view.name), .text($0)]) } }
            printer.end()
            return printer.flush()
        }
        guard !views.isEmpty else {
            Terminal.out("there are no views: the config that the store was filled with declares no models")
            return
        }
        let models = views.filter { view in !views.contains { view.name == "\($0.name)_current" } }
        let shown = models.filter(\.hasRows)
        func folded(_ text: String) -> String {
            HumanText.folded(text.printable, width: Terminal.width ?? 80, hangs: false)
        }
        var blocks = shown.map { "\($0.name)\n" + folded("  " + $0.columns.joined(separator: ", ")) }
        if let first = shown.first {
            blocks.append(folded("\(first.name)_current and so on have the same columns, and each object once."))
        }
        let empty = models.filter { !$0.hasRows }.map(\.name)
        if !empty.isEmpty { blocks.append(folded("Without rows: \(empty.joined(separator: ", "))")) }
        Terminal.out(blocks.joined(separator: "\n\n"))
    }
}

/// Ends this process with an error if a query is not over in time.
///
/// SQLite looks at the clock between its steps, and `StoreReader` ends the query then. Within one function of SQL, such as a
/// search in a very long text, it does not.
private final class QueryGuardian: Sendable {
    private let isOver = Mutex(false)

    init(_ limit: Duration, complaint: String) {
        // SQLite comes first where it can.
        let time = limit + .milliseconds(500)
        DispatchQueue.global().asyncAfter(deadline: .now() + time / .seconds(1)) { [self] in
            isOver.withLock { isOver in
                guard !isOver else { return }
                Terminal.complain("larder: \(complaint)")
                _exit(1)
            }
        }
    }

    func end() { isOver.withLock { $0 = true } }
}

private struct QueryResult {
    var columns: [String] = []
    var rows: [[SQLCell]] = []

    /// NULL is spelled out, as an empty text is blank; numbers are right-aligned.
    var table: String {
        guard !rows.isEmpty else { return "no rows" }
        let isNumber = columns.indices.map { column in
            rows.allSatisfy { $0[column].isNumber || $0[column] == .null } && rows.contains { $0[column].isNumber }
        }
        return TextTable(
            columns: zip(columns, isNumber).map { $1 ? .right($0.printable) : .init(stringLiteral: $0.printable) },
            rows: rows.map { $0.map { $0 == .null ? "NULL" : $0.text } }
        ).text
    }
}

/// Prints the rows of a query for programs, as they come, in bounded memory.
///
/// Where the reader of the output is slower than the query, up to `bound` bytes wait for it, so that a pager does not hold up
/// the query, which the store waits for.
private struct RowPrinter {
    let isJSON: Bool
    private let isTerminal = isatty(1) == 1
    private var columns: [String] = []
    private var isFirst = true
    private var output = PendingOutput()
    private var lastWrite: ContinuousClock.Instant?
    private let deadline: ContinuousClock.Instant?
    private static let bound = 16 << 20

    /// - Parameter deadline: until when it may wait for the reader of the rows, whose query keeps a snapshot of the store.
    init(isJSON: Bool, deadline: ContinuousClock.Instant? = nil) { (self.isJSON, self.deadline) = (isJSON, deadline) }

    mutating func begin(_ names: [String]) {
        columns = isJSON ? Self.distinct(names) : names
        if !isJSON { output.append((names.map(Self.quoted).joined(separator: ",") + "\n").utf8) }
    }

    /// An object on each line of an array; or a line of RFC 4180, in which NULL is blank, and an empty text is `""`.
    mutating func write(_ row: [SQLCell]) {
        if isJSON {
            let text = JSONText.object(zip(columns, row).map { (name: $0, value: $1.json) }).text
            output.append((isFirst ? "[" : ",\n ").utf8)
            output.append(Terminal.fitted(json: text, isTerminal: isTerminal))
        } else {
            let cells = row.map { cell in
                guard case .text(let text) = cell else { return cell.text }
                return text.isEmpty ? "\"\"" : Self.quoted(isTerminal ? text.printable : text)
            }
            output.append((cells.joined(separator: ",") + "\n").utf8)
        }
        isFirst = false
        // Rows in quick succession go together.
        guard output.count >= 64 << 10 || lastWrite.map({ .now - $0 > .milliseconds(50) }) ?? true else { return }
        output.write(keeping: Self.bound, until: deadline)
        Terminal.endIfUnread()
        lastWrite = .now
    }

    mutating func end() { if isJSON { output.append((isFirst ? "[]\n" : "]\n").utf8) } }

    mutating func flush() { output.write(keeping: 0) }

    private static func quoted(_ text: String) -> String {
        guard text.utf8.contains(where: { [0x22, 0x2C, 0x0A, 0x0D].contains($0) }) else { return text }
        return "\"\(text.replacing("\"", with: "\"\""))\""
    }

    /// The columns' names, made unique for JSON objects.
    private static func distinct(_ names: [String]) -> [String] {
        var used: Set<String> = []
        return names.map { name in
            var (distinct, number) = (name, 1)
            while !used.insert(distinct).inserted {
                number += 1
                distinct = "\(name)_\(number)"
            }
            return distinct
        }
    }
}

extension SQLCell {
    fileprivate var isNumber: Bool {
        switch self {
        case .integer, .real: true
        case .null, .text, .blob: false
        }
    }

    fileprivate var text: String {
        switch self {
        case .null: ""
        case .integer(let number): String(number)
        case .real(let number): String(number)
        case .text(let text): text
        case .blob(let bytes): bytes.hexadecimal
        }
    }

    fileprivate var json: JSONText {
        switch self {
        case .null: .null
        case .integer(let number): .integer(number)
        case .real(let number): .number(number)
        case .text(let text): .string(text)
        case .blob(let bytes): .string(bytes.hexadecimal)
        }
    }
}
