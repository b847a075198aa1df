import Mapping
import Store
import TestSupport
import Testing

/// What the views show of values, references and conversions.
struct ViewValueTests {
    /// A store of one upstream with these models.
    private func bench(_ models: [ModelDeclaration]) throws -> Bench {
        let models = try Models(models)
        return try Bench { $0.models = ["github": models] }
    }

    private func property(
        _ name: String,
        _ conversion: ConversionDeclaration? = nil,
        coerces: Bool = false,
        relation: Relation? = nil,
        from: String? = nil
    ) -> PropertyDeclaration {
        var property = PropertyDeclaration(name: name, from: from ?? name, relation: relation, conversion: conversion)
        property.coerces = coerces
        return property
    }

    // MARK: Conversions

    /// The value of a property with a conversion, and its raw column; "-" for a column that there is not.
    private func shown(_ json: String, _ conversion: ConversionDeclaration, coerces: Bool = false) async throws
        -> [String]
    {
        let bench = try bench([
            ModelDeclaration(name: "Thing", identity: ["id"], properties: [property("v", conversion, coerces: coerces)])
        ])
        try await bench.receive("/things/1", #"{"id":1,"v":\#(json)}"#, BodyRule(model: "Thing", isList: false))
        let shown = ["v", "v_raw"].map { column in
            let value = sqlite(bench.folder.file(), "SELECT typeof(\(column)) || ' ' || quote(\(column)) FROM Thing")
            return value.contains("no such column") ? "-" : value
        }
        await bench.store.close()
        return shown
    }

    @Test(arguments: [
        (#""2012-11-13T13:31:36Z""#, "text '2012-11-13T13:31:36Z'"),
        (#""2012-11-13t15:31:36.75+02:00""#, "text '2012-11-13T13:31:36Z'"),
        (#""2012-11-13 00:00:00-00:30""#, "text '2012-11-13T00:30:00Z'"),
        (#""2012-02-30T00:00:00Z""#, "null NULL"), (#""2012-11-13T13:31:36""#, "null NULL"),
        (#""2012-11-13""#, "null NULL"), (#""now""#, "null NULL"), ("2455000.5", "null NULL"), ("null", "null NULL"),
        (#"{"a":1}"#, "null NULL"),
    ])
    func `a date column is UTC to the second, and empty for other values`(_ json: String, _ expected: String)
        async throws
    {
        #expect(try await shown(json, .named("date"))[0] == expected)
    }

    @Test func `a view has a column with the raw spelling beside a converted value`() async throws {
        #expect(
            try await shown(#""2012-11-13T15:31:36.75+02:00""#, .named("date"))
                == ["text '2012-11-13T13:31:36Z'", "text '2012-11-13T15:31:36.75+02:00'"]
        )
        #expect(
            try await shown("93102340", .date(.unixSeconds)) == ["text '1972-12-13T13:45:40Z'", "integer 93102340"]
        )
        #expect(try await shown(#""12.10""#, .named("decimal")) == ["real 12.1", "text '12.10'"])
        #expect(try await shown(#""soon""#, .named("date")) == ["null NULL", "text 'soon'"])
    }

    @Test(
        arguments: [
            (ConversionDeclaration.date(.unixSeconds), true, #""93102340""#, "text '1972-12-13T13:45:40Z'"),
            (.date(.unixSeconds), false, #""93102340""#, "null NULL"),
            (.date(.unixSeconds), false, "-1.25", "text '1969-12-31T23:59:58Z'"),
            (.date(.unixSeconds), false, "1e30", "null NULL"), (.date(.unixSeconds), false, #""now""#, "null NULL"),
            (.date(.unixMilliseconds), false, "93102340750", "text '1972-12-13T13:45:40Z'"),
            (.named("decimal"), false, #""1e3""#, "real 1000.0"), (.named("decimal"), false, #""7""#, "integer 7"),
            (.named("decimal"), false, #""7 apples""#, "null NULL"), (.named("decimal"), false, #""007""#, "null NULL"),
            (.named("integer"), true, #""7""#, "integer 7"), (.named("integer"), true, #""7.5""#, "null NULL"),
            (.named("boolean"), true, #""Yes""#, "integer 1"), (.named("boolean"), true, #""off""#, "integer 0"),
            (.named("boolean"), true, "true", "integer 1"), (.named("boolean"), true, #""maybe""#, "null NULL"),
            (.number(grouping: ",", decimal: "."), false, #""12,345.678""#, "real 12345.678"),
            (.number(grouping: ",", decimal: "."), false, #""-1,234""#, "integer -1234"),
            (.number(grouping: ",", decimal: "."), false, #""1,2""#, "null NULL"),
            (.number(grouping: ".", decimal: ","), false, #""1.234,5""#, "real 1234.5"),
            (.number(grouping: "", decimal: ","), false, #""1.5""#, "null NULL"),
            (.enumeration([.init(wire: "o", mapped: "open")]), false, #""o""#, "text 'open'"),
            (.enumeration([.init(wire: "o", mapped: "open")]), false, #""x""#, "null NULL"),
            (.enumeration([.init(wire: "o", mapped: "it's")], fallback: "?"), false, #""x""#, "text '?'"),
            (
                .values(
                    [.init(wire: Array("2".utf8), mapped: Array("\"two\"".utf8))],
                    fallback: nil,
                    reverseFallback: nil
                ), false,
                "2", "text 'two'"
            ),
            (
                .chain([.named("string"), .named("date")]), false, #""2012-11-13T13:31:36Z""#,
                "text '2012-11-13T13:31:36Z'"
            ),
            (
                .firstOf([.named("date"), .date(.unixSeconds)]), false, #""2012-11-13T13:31:36Z""#,
                "text '2012-11-13T13:31:36Z'"
            ),
            (.firstOf([.named("date"), .date(.unixSeconds)]), false, "1352813496", "text '2012-11-13T13:31:36Z'"),
            (.firstOf([.named("date"), .date(.unixSeconds)]), false, #""1352813496""#, "null NULL"),
            (.firstOf([.named("date"), .date(.unixSeconds)]), true, #""93102340""#, "text '1972-12-13T13:45:40Z'"),
        ] as [(ConversionDeclaration, Bool, String, String)]
    )
    func `numbers, times, booleans and enumerations have SQLite's types`(
        _ conversion: ConversionDeclaration,
        _ coerces: Bool,
        _ json: String,
        _ expected: String
    ) async throws {
        #expect(try await shown(json, conversion, coerces: coerces)[0] == expected)
    }

    @Test(
        arguments: [
            (ConversionDeclaration.named("url"), #""https://a.example/""#, ["text 'https://a.example/'", "-"]),
            (.named("boolean"), "true", ["integer 1", "-"]), (.named("integer"), "7", ["integer 7", "-"]),
            (.enumeration([.init(wire: "open", mapped: "open")]), #""open""#, ["text 'open'", "-"]),
            (.arrayOf(.named("url")), #"["a:b"]"#, [#"text '["a:b"]'"#, "-"]),
            (.named("base64"), #""YQ==""#, ["-", "text 'YQ=='"]),
            (.date(.pattern("yyyy-MM-dd", zone: "UTC")), #""2024-01-02""#, ["-", "text '2024-01-02'"]),
            (.arrayOf(.named("date")), "[]", ["-", "text '[]'"]),
            (.firstOf([.named("url"), .named("uuid")]), #""a:b""#, ["text 'a:b'", "-"]),
            (.firstOf([.named("date"), .named("string")]), #""a""#, ["-", "text 'a'"]),
        ] as [(ConversionDeclaration, String, [String])]
    )
    func `a property has one column: its value, or the raw value if SQL cannot convert it`(
        _ conversion: ConversionDeclaration,
        _ json: String,
        _ expected: [String]
    ) async throws {
        #expect(try await shown(json, conversion) == expected)
    }

    // MARK: References

    private var linked: [ModelDeclaration] {
        [
            ModelDeclaration(name: "User", identity: ["id"], properties: [property("login")]),
            ModelDeclaration(name: "File", identity: ["path", "sha"], properties: [property("size")]),
            ModelDeclaration(name: "Line", properties: [property("text"), property("by", relation: .one("User"))]),
            ModelDeclaration(
                name: "Page",
                identity: ["id"],
                properties: [
                    property("owner", relation: .one("User")), property("file", relation: .one("File")),
                    property("files", relation: .many("File")), property("first", relation: .one("Line")),
                    property("lines", relation: .many("Line")), property("info"),
                    property("editor", relation: .one("User"), from: "info.editor"),
                    property("firstText", from: "first.text"), property("fileNames", from: "files.path"),
                ],
                sharesAll: true
            ),
        ]
    }

    private func page() async throws -> Bench {
        let bench = try bench(linked)
        try await bench.receive(
            "/pages/1",
            #"""
            {"id":1,"owner":{"id":7,"login":"x"},"file":{"path":"a:b","sha":"c\\d","size":3},
             "files":[{"path":"a:b","sha":"c\\d","size":3},{"path":"e","sha":"f","size":4}],
             "first":{"text":"one","by":{"id":7,"login":"x"}},
             "lines":[{"text":"one","by":{"id":7,"login":"x"}},{"text":"\"two\"","by":null}],
             "info":{"editor":{"id":8,"login":"y"},"note":"n"}}
            """#,
            BodyRule(model: "Page", isList: false)
        )
        return bench
    }

    @Test func `references to simple and compound identities are joined on the column identity`() async throws {
        let bench = try await page()
        let path = bench.folder.file()
        #expect(sqlite(path, "SELECT login FROM Page p JOIN User u ON u.identity = p.owner") == "x")
        #expect(
            sqlite(path, "SELECT f.path, f.sha, size FROM Page p JOIN File f ON f.identity = p.file") == #"a:b|c\d|3"#
        )
        #expect(
            sqlite(path, "SELECT size FROM Page p, json_each(p.files) e JOIN File f ON f.identity = e.value ORDER BY 1")
                == "3\n4"
        )
        #expect(sqlite(path, "SELECT login FROM Page p JOIN User u ON u.identity = p.editor") == "y")
        await bench.store.close()
    }

    @Test func `embedded objects are JSON columns with identities in place of references`() async throws {
        let bench = try await page()
        let path = bench.folder.file()
        #expect(sqlite(path, "SELECT first FROM Page") == #"{"text":"one","by":7}"#)
        #expect(sqlite(path, "SELECT lines FROM Page") == #"[{"text":"one","by":7},{"text":"\"two\"","by":null}]"#)
        #expect(sqlite(path, "SELECT info FROM Page") == #"{"editor":8,"note":"n"}"#)
        #expect(sqlite(path, "SELECT firstText FROM Page") == "one")
        #expect(sqlite(path, "SELECT json ->> 'owner', json_valid(json) FROM Page") == "7|1")
        #expect(!sqlite(path, "SELECT * FROM Page").contains("u0001"))
        await bench.store.close()
    }

    @Test func `a model without rows has no view, and a property without values no column`() async throws {
        let bench = try await page()
        let path = bench.folder.file()
        #expect(
            sqlite(path, "SELECT name FROM sqlite_schema WHERE type = 'view' ORDER BY 1").split(separator: "\n")
                == ["File", "File_current", "Page", "Page_current", "User", "User_current", "_known_objects"]
        )
        #expect(
            sqlite(path, "SELECT group_concat(name) FROM pragma_table_info('Page')")
                == "upstream,principal,context,identity,id,owner,file,files,first,lines,info,editor,firstText,json"
        )
        await bench.store.close()
    }

    @Test func `a column has the name of its property, also where it is an identity or a key`() throws {
        let models = try Models([
            ModelDeclaration(
                name: "Repository",
                identity: ["id"],
                keys: ["full_name", "meta.slug"],
                properties: [property("fullName", from: "full_name")]
            )
        ])
        #expect(models.columns(of: "Repository").map(\.name) == ["identity", "id", "fullName", "meta_slug"])
    }

    // MARK: The newest of all principals and contexts

    @Test func `a current view has each identity once, with its latest values`() async throws {
        let bench = try Bench()
        let mine = try await bench.store.principal([UInt8](repeating: 9, count: 32))
        try await bench.receive("/users", #"[{"id":1,"login":"old"},{"id":2,"login":"b"}]"#, users)
        try await bench.receive("/users/1", #"{"id":1,"login":"new"}"#, user, principal: mine)
        try await bench.receive(
            "/users/1",
            #"{"id":1,"login":"neu"}"#,
            user,
            principal: mine,
            context: "accept-language=de"
        )
        let path = bench.folder.file()
        #expect(sqlite(path, "SELECT count(*) FROM User") == "4")
        #expect(
            sqlite(path, "SELECT id, login, context FROM User_current ORDER BY id") == "1|neu|accept-language=de\n2|b|"
        )
        // Anonymous again, and changed once more.
        try await bench.receive("/users/1", #"{"id":1,"login":"newest"}"#, user)
        #expect(sqlite(path, "SELECT login, principal FROM User_current WHERE identity = 1") == "newest|anonymous")
        await bench.store.close()
    }

    @Test func `joins and current views look objects up by their index`() async throws {
        let bench = try Bench()
        try await bench.receive("/issues", #"[{"id":1,"title":"a","user":{"id":7,"login":"x"},"labels":[]}]"#, issues)
        let path = bench.folder.file()
        for query in [
            "SELECT title, login FROM Issue i JOIN User u ON u.identity = i.user",
            "SELECT title, login FROM Issue_current i JOIN User_current u ON u.identity = i.user",
            "SELECT login FROM User_current WHERE identity = 7", "SELECT login FROM User WHERE id = 7",
        ] {
            let plan = sqlite(path, "EXPLAIN QUERY PLAN \(query)").split(separator: "\n")
            #expect(plan.contains { $0.contains("_objects_identity (collection=? AND identity=?)") }, "\(plan)")
            // Only rows that SQL makes itself are read one after the other.
            let own = ["CONSTANT", "(subquery", "parts"]
            #expect(plan.allSatisfy { line in !line.contains("SCAN") || own.contains { line.contains($0) } }, "\(plan)")
            #expect(plan.allSatisfy { !$0.contains("AUTOMATIC") && !$0.contains("MATERIALIZE") }, "\(plan)")
        }
        await bench.store.close()
    }

    @Test func `counting the rows of a view reads no JSON`() async throws {
        let bench = try Bench()
        try await bench.receive("/users", #"[{"id":1,"login":"a"},{"id":2,"login":"b"}]"#, users)
        let path = bench.folder.file()
        for view in ["User", "User_current"] {
            #expect(sqlite(path, "SELECT count(*) FROM \(view)") == "2")
            #expect(!sqlite(path, "EXPLAIN SELECT count(*) FROM \(view)").contains("json"))
            #expect(sqlite(path, "EXPLAIN SELECT login FROM \(view)").contains("json"))
        }
        await bench.store.close()
    }
}

extension ConversionDeclaration {
    /// A map of strings to strings.
    static func enumeration(
        _ cases: [Pair],
        fallback: String? = nil,
        reverseFallback: String? = nil
    ) -> ConversionDeclaration {
        .values(
            cases,
            fallback: fallback.map(Pair.json),
            reverseFallback: reverseFallback.map(Pair.json)
        )
    }
}

extension ConversionDeclaration.Pair {
    init(wire: String, mapped: String) { self.init(wire: Self.json(wire), mapped: Self.json(mapped)) }

    fileprivate static func json(_ text: String) -> [UInt8] { Array("\"\(text)\"".utf8) }
}
