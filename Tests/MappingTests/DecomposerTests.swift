import Mapping
import Testing

@Suite struct DecomposerTests {
    @Test func `a list is taken apart into its objects in the order of their first bytes`() throws {
        let body = #"[{"id":1,"user":{"login":"a","id":7},"labels":[{"id":3},{"id":4}],"number":5}, {"id":"x"}]"#
        let parts = try #require(try parts(body, "Issue", list: true))
        #expect(text(parts.skeleton) == #"["\u0001Issue:1", "\u0001Issue:x"]"#)
        #expect(parts.occurrences.map(\.name.description) == ["Issue:1", "User:7", "Label:3", "Label:4", "Issue:x"])
        #expect(
            text(parts.occurrences[0].payload)
                == #"{"id":1,"user":"\u0001User:7","labels":["\u0001Label:3","\u0001Label:4"],"number":5}"#
        )
        let inner = Reference.names(in: parts.occurrences[0].payload)
        #expect(inner.map(\.description) == ["User:7", "Label:3", "Label:4"])
        #expect(parts.occurrences[0].keys.map(\.member) == ["number"])
        #expect(parts.occurrences[0].keys.map(\.value) == ["5"])
        #expect(parts.occurrences[1].keys.map(\.value) == ["a"])
        #expect(parts.recomposes(to: Array(body.utf8)))
        #expect(parts.warnings.isEmpty)
    }

    @Test func `an object within itself, and a cycle, are pinned like any other object`() throws {
        let body = #"{"id":1,"parent":{"id":2,"parent":{"id":1,"title":"inner"}}}"#
        let parts = try #require(try parts(body, "Issue"))
        #expect(parts.occurrences.map(\.name.identity) == ["1", "2", "1"])
        #expect(parts.recomposes(to: Array(body.utf8)))
    }

    @Test func `an object without identity stays in the body, but objects within it are found`() throws {
        let body = #"{"id":1,"signature":{"name":"n","user":{"id":2}},"signatures":[{"user":{"id":3}}]}"#
        let parts = try #require(try parts(body, "Issue"))
        #expect(parts.occurrences.map(\.name.description) == ["Issue:1", "User:2", "User:3"])
        #expect(
            text(parts.occurrences[0].payload)
                == #"{"id":1,"signature":{"name":"n","user":"\u0001User:2"},"signatures":[{"user":"\u0001User:3"}]}"#
        )
    }

    @Test func `objects within an object without identity belong to the next object around it`() throws {
        let body = #"[{"title":"no id","user":{"id":2}}]"#
        let parts = try #require(try parts(body, "Issue", list: true))
        #expect(text(parts.skeleton) == #"[{"title":"no id","user":"\u0001User:2"}]"#)
        #expect(parts.warnings.map(\.kind) == [.identityMissing])
        #expect(parts.warnings[0].pointer == "/0")
    }

    @Test func `relations are found below plain members`() throws {
        let parts = try #require(try parts(#"{"id":1,"head":{"ref":"main","user":{"id":9}}}"#, "Issue"))
        #expect(parts.occurrences.map(\.name.description) == ["Issue:1", "User:9"])
    }

    @Test func `a name spelled with escapes equals the plain name`() throws {
        let body = #"{"\u0069d":1,"us\u0065r":{"i\u0064":7}}"#
        let parts = try #require(try parts(body, "Issue"))
        #expect(parts.occurrences.map(\.name.description) == ["Issue:1", "User:7"])
        #expect(parts.recomposes(to: Array(body.utf8)))
    }

    @Test(arguments: [
        ("7", "7"), ("7.0", "7"), ("70e-1", "7"), (#""7""#, "7"), (#""a\"b""#, #"a"b"#), (#""\u00e9""#, "é"),
        ("-0", "0"), ("12345678901234567890", "12345678901234567890"), ("1e400", "1e400"), (#"" ""#, " "),
        (#""a:b\\c""#, #"a:b\c"#),
    ])
    func `an identity has one canonical text`(literal: String, identity: String) throws {
        let body = #"{"id":\#(literal),"title":"t"}"#
        let parts = try #require(try parts(body, "Issue"))
        #expect(parts.occurrences[0].name.identity == identity)
        #expect(Reference.names(in: parts.skeleton) == [ObjectName(model: "Issue", identity: identity)])
        #expect(parts.recomposes(to: Array(body.utf8)))
    }

    @Test(arguments: ["null", "true", "{}", "[1]", #""""#, #""\ud800""#])
    func `an object whose identity is missing or invalid stays embedded`(literal: String) throws {
        let body = #"{"id":1,"user":{"id":\#(literal),"login":"x"}}"#
        let parts = try #require(try parts(body, "Issue"))
        #expect(parts.occurrences.map(\.name.model) == ["Issue"])
        #expect(parts.recomposes(to: Array(body.utf8)))
    }

    @Test func `a value of more than 512 bytes is no identity`() throws {
        let long = String(repeating: "x", count: 513)
        #expect(try parts(#"{"id":"\#(long)"}"#, "Issue") == nil)
        #expect(try opaqueWarning(#"{"id":"\#(long)"}"#, "Issue")?.kind == .identityUnusable)
        #expect(try parts(#"{"id":"\#(long.dropLast())"}"#, "Issue") != nil)
    }

    @Test func `a value that is not Unicode is no identity`() throws {
        let body = #"{"id":1,"user":{"id":"\ud800"}}"#
        let parts = try #require(try parts(body, "Issue"))
        #expect(parts.occurrences.map(\.name.model) == ["Issue"])
        #expect(parts.recomposes(to: Array(body.utf8)))
    }

    @Test(arguments: [[0xDF], [0x80], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80]] as [[UInt8]])
    func `a body that is not UTF-8 shows no objects, wherever its other bytes are`(_ bytes: [UInt8]) throws {
        let decomposer = Decomposer(models: try Tracker.models())
        for (start, end) in [(#"{"id":1,"title":""#, #""}"#), (#"{"id":1,"other":{"a":[""#, #""]}}"#)] {
            let body = Array(start.utf8) + bytes + Array(end.utf8)
            guard case .opaque(let warning) = decomposer.decompose(body, as: BodyRule(model: "Issue", isList: false))
            else {
                Issue.record("it shows objects")
                continue
            }
            #expect(warning?.kind == .notJSON && warning?.message.hasPrefix("The body is not UTF-8") == true)
        }
    }

    @Test func `an object whose identity occurs twice is embedded`() throws {
        let parts = try #require(try parts(#"{"id":1,"user":{"id":2,"id":2}}"#, "Issue"))
        #expect(parts.occurrences.count == 1)
        #expect(parts.warnings.map(\.kind) == [.identityRepeated])
        #expect(parts.warnings[0].pointer == "/user")
        #expect(parts.warnings[0].model == "User")
    }

    @Test func `several members make one identity without ambiguity`() throws {
        let models = try Models([ModelDeclaration(name: "Pair", identity: ["a", "b.c"])])
        func name(_ body: String) -> String? {
            let rule = BodyRule(model: "Pair", isList: false)
            guard case .objects(let parts) = Decomposer(models: models).decompose(Array(body.utf8), as: rule) else {
                return nil
            }
            return parts.occurrences[0].name.identity
        }
        #expect(name(#"{"a":"x:","b":{"c":"y"}}"#) == #"x\::y"#)
        #expect(name(#"{"a":"x","b":{"c":":y"}}"#) == #"x:\:y"#)
        #expect(name(#"{"a":"x","b":{"c":null}}"#) == nil)
        #expect(name(#"{"a":"x","b":"c"}"#) == nil)
    }

    @Test(arguments: [
        (#"{"total":1,"items":[{"id":1}]}"#, "items", #"{"total":1,"items":["\u0001Issue:1"]}"#),
        (#"{"a":{"b.c":[{"id":1}]}}"#, "a.b\\.c", #"{"a":{"b.c":["\u0001Issue:1"]}}"#),
        (#"{"it\u0065ms":[{"id":1}]}"#, "items", #"{"it\u0065ms":["\u0001Issue:1"]}"#),
    ])
    func `OV-37 an envelope is opened by its key path`(body: String, root: String, skeleton: String) throws {
        let parts = try #require(try parts(body, "Issue", list: true, root: root))
        #expect(text(parts.skeleton) == skeleton)
        #expect(parts.recomposes(to: Array(body.utf8)))
    }

    @Test(arguments: [#"{"id":1}"#, #"{"a":1}"#, #"[{"id":1}]"#, #"{"items":[{"id":1}],"items":[]}"#, "7"])
    func `FJ-05 OV-39 a missing or doubled envelope leaves the body as it is, with a warning`(body: String) throws {
        #expect(try parts(body, "Issue", list: true, root: "items") == nil)
        #expect(try opaqueWarning(body, "Issue", list: true, root: "items")?.kind == .envelopeMissing)
    }

    @Test func `FJ-06 one object where a list is declared is one object, with a warning`() throws {
        let parts = try #require(try parts(#"{"data":{"id":1}}"#, "Issue", list: true, root: "data"))
        #expect(parts.occurrences.map(\.name.description) == ["Issue:1"])
        #expect(parts.warnings.map(\.kind) == [.objectForList])
        #expect(parts.warnings[0].pointer == "/data")
    }

    @Test func `an array where one object is declared stays as it is, with a warning`() throws {
        #expect(try opaqueWarning(#"[{"id":1}]"#, "Issue")?.kind == .arrayForObject)
        let parts = try #require(try parts(#"{"id":1,"user":[{"id":2}]}"#, "Issue"))
        #expect(parts.occurrences.count == 1)
        #expect(parts.warnings.map(\.kind) == [.arrayForObject])
    }

    @Test func `RK-06 one object in a relation to many is its only element, with a warning`() throws {
        let parts = try #require(try parts(#"{"id":1,"labels":{"id":2}}"#, "Issue"))
        #expect(parts.occurrences.map(\.name.description) == ["Issue:1", "Label:2"])
        #expect(parts.warnings.map(\.kind) == [.objectForList])
    }

    @Test(arguments: ["7", "true", #""text""#])
    func `FJ-07 OV-36 a plain value stays as it is`(body: String) throws {
        #expect(try opaqueWarning(body, "Issue")?.kind == .notAnObject)
    }

    @Test(arguments: ["", " \n", "null", "[]", "{}", "[1,2,null]"])
    func `RK-36 a body without objects is not decomposed, and gives at most a warning about its shape or identity`(
        body: String
    ) throws {
        #expect(try parts(body, "Issue", list: true) == nil)
        let warning = try opaqueWarning(body, "Issue", list: true)
        #expect(warning == nil || warning?.kind == .identityMissing || warning?.kind == .objectForList)
    }

    @Test(arguments: [
        (#"{"id":1"#, MappingWarning.Kind.notJSON), ("\u{FEFF}{\"id\":1}", .notJSON), ("<html>", .notJSON),
        (#"{"id":1}{"#, .notJSON), (#"{"id":1,"a":"\u0001x"}"#, .reservedText), (#"{"id":"\u0001"}"#, .reservedText),
    ])
    func `OV-48 a body that is not JSON, or not to be decomposed, stays as it is, with a warning`(
        body: String,
        kind: MappingWarning.Kind
    ) throws {
        #expect(try opaqueWarning(body, "Issue")?.kind == kind)
    }

    @Test func `a body nested ten thousand deep stays as it is`() throws {
        let deep = String(repeating: #"{"id":1,"parent":"#, count: 10_000)
        #expect(try opaqueWarning(deep, "Issue")?.kind == .tooDeep)
        let array = String(repeating: "[", count: 10_000) + String(repeating: "]", count: 10_000)
        #expect(try opaqueWarning(array, "Issue", list: true)?.kind == .tooDeep)
        #expect(try opaqueWarning(#"{"id":1,"x":\#(array)}"#, "Issue")?.kind == .tooDeep)
    }

    @Test func `relations nested as deep as allowed are taken apart and put together`() throws {
        let depth = 500
        let body =
            (0..<depth).map { #"{"id":\#($0),"parent":"# }.joined() + "null" + String(repeating: "}", count: depth)
        let parts = try #require(try parts(body, "Issue"))
        #expect(parts.occurrences.count == depth)
        #expect(parts.recomposes(to: Array(body.utf8)))
    }

    @Test func `FJ-29 lists mix objects, bare identities and null`() throws {
        let body = #"{"id":1,"labels":[{"id":2},3,"4",null,[],{"name":"x"}],"user":7}"#
        let parts = try #require(try parts(body, "Issue"))
        #expect(parts.occurrences.map(\.name.description) == ["Issue:1", "Label:2"])
        #expect(
            text(parts.occurrences[0].payload)
                == #"{"id":1,"labels":["\u0001Label:2",3,"4",null,[],{"name":"x"}],"user":7}"#
        )
    }

    @Test func `a thousand elements without an identity give one warning`() throws {
        let body = "[" + (0..<1000).map { _ in #"{"user":{"id":1,"id":2}}"# }.joined(separator: ",") + "]"
        let rule = BodyRule(model: "Issue", isList: true)
        guard case .opaque(let warning) = try Decomposer(models: Tracker.models()).decompose(Array(body.utf8), as: rule)
        else {
            Issue.record("nothing in it has an identity")
            return
        }
        #expect(warning != nil)
    }

    @Test func `a rule for a model that is not declared warns`() throws {
        #expect(try opaqueWarning("{}", "Nothing")?.kind == .unknownModel)
    }

    @Test func `JSON pointers in warnings are escaped by RFC 6901`() throws {
        let models = try Models([
            ModelDeclaration(
                name: "A",
                identity: ["id"],
                properties: [Tracker.property("a", "x/y.~z", many: "A")]
            )
        ])
        let body = Array(#"{"id":1,"x/y":{"a":[1,{"b":2}],"~z":{"id":{}}}}"#.utf8)
        guard
            case .objects(let parts) = Decomposer(models: models)
                .decompose(body, as: BodyRule(model: "A", isList: false))
        else {
            Issue.record("not taken apart")
            return
        }
        #expect(parts.warnings.map(\.pointer) == ["/x~1y/~0z", "/x~1y/~0z"])
        #expect(parts.warnings.map(\.kind) == [.objectForList, .identityUnusable])
    }

    @Test func `a body is not put together from too few or too many payloads`() {
        let skeleton = Array(#"["\u0001A:1"]"#.utf8)
        #expect(recompose(skeleton: skeleton, payloads: []) == nil)
        #expect(recompose(skeleton: skeleton, payloads: [[0x31], [0x32]]) == nil)
        #expect(recompose(skeleton: skeleton, payloads: [Array("{}".utf8)]) == Array("[{}]".utf8))
    }

    @Test func `a reference contains its object's name, and can be shown as the bare identity`() {
        let name = ObjectName(model: "User", identity: "a\"\\\n:b")
        let literal = Reference.literal(name)
        #expect(text(literal) == #""\u0001User:a\"\\\u000a:b""#)
        #expect(Reference.names(in: literal) == [name])
        #expect(Reference.name(inText: "\u{1}User:7") == ObjectName(model: "User", identity: "7"))
        #expect(Reference.name(inText: "User:7") == nil)
        let payload = Array(#"{"a":"\u0001User:7","b":"\u0001User:x","c":"\u0001User:007","d":1}"#.utf8)
        #expect(text(Reference.plain(payload)) == #"{"a":7,"b":"x","c":"007","d":1}"#)
        #expect(
            text(Reference.plain(payload) { _ in Array("null".utf8) }) == #"{"a":null,"b":null,"c":null,"d":1}"#
        )
    }
}
