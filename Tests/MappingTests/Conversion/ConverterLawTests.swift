import TestSupport
import Testing

@testable import Mapping

/// Whatever a conversion takes, made from seeds, has its way back.
struct ConverterLawTests {
    /// Values of the kinds that APIs send, some of them odd.
    private static func value(_ random: inout SeededGenerator) -> String {
        let number = Int64.random(in: -70_000_000_000...260_000_000_000, using: &random)
        let fraction = String(UInt32.random(in: 0...UInt32.max, using: &random))
        let words = ["open", "closed", "yes", "a b", "Zm9v", "http://a.example/b", "1,234.5", "2.50", ""]
        let word = words.randomElement(using: &random) ?? ""
        return [
            "\(number)", "\(number).\(fraction)", "\(number)e-3",
            "\(number % 1000)e\(Int.random(in: -9...9, using: &random))",
            "\"\(word)\"", "\"\(number)\"", "true", "null", "[1,\(number)]", #"{"a":\#(number)}"#,
        ].randomElement(using: &random) ?? "0"
    }

    /// Whatever a conversion takes comes back as it was, but for its spelling; and what came back is taken for the same.
    @Test(arguments: 0..<4 as Range<UInt64>)
    func `a converted value is converted back, at most in another spelling`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed &+ 4000)
        let reversible = ConverterTests.cases.map(\.declaration)
        var tried = 0
        for _ in 0..<300 {
            let wire = Self.value(&random)
            for declaration in reversible {
                let converter = try Converter(declaration)
                guard case .value(let mapped) = converter.forward(Array(wire.utf8)) else { continue }
                tried += 1
                guard case .value(let back) = converter.reverse(mapped) else {
                    Issue.record("seed \(seed): \(declaration) \(wire) has no way back")
                    continue
                }
                let again = try #require(converter.forward(back).json.flatMap { JSONSlice($0) })
                let first = try #require(JSONSlice(mapped))
                #expect(again.isEqual(to: first), "seed \(seed): \(declaration) \(wire)")
                let (was, returned) = (try #require(JSONSlice(Array(wire.utf8))), try #require(JSONSlice(back)))
                let isKept = was.isEqual(to: returned) || Self.isOtherSpelling(was, returned, declaration)
                #expect(
                    isKept,
                    "seed \(seed): \(declaration) \(wire) came back as \(String(decoding: back, as: UTF8.self))"
                )
            }
        }
        #expect(tried > 100)
    }

    /// Conversions of every kind, in each other, with values that they take: nothing of these is lost.
    @Test(arguments: 0..<8 as Range<UInt64>)
    func `every accepted value is converted back exactly, through lists, dictionaries and chains`(seed: UInt64) throws {
        var generator = ConversionGenerator(seed: seed &+ 8000)
        for _ in 0..<150 {
            let declaration = generator.conversion()
            let wire = generator.value(for: declaration)
            let converter = try Converter(declaration)
            let told: Comment = "seed \(seed): \(declaration) of \(wire)"
            let forward = converter.forward(json(wire))
            guard case .value(let mapped) = forward else {
                Issue.record("\(told): \(forward)")
                continue
            }
            guard case .value(let back) = converter.reverse(mapped) else {
                Issue.record("\(told) has no way back from \(text(mapped))")
                continue
            }
            let (was, returned) = (try #require(JSONSlice(json(wire))), try #require(JSONSlice(back)))
            #expect(was.isEqual(to: returned), "\(told) came back as \(text(back)) from \(text(mapped))")
            #expect(converter.forward(back).json.map { text($0) } == text(mapped), told)
        }
    }

    @Test(arguments: 0..<4 as Range<UInt64>)
    func `a coerced value is written back in the declared type`(seed: UInt64) throws {
        var generator = ConversionGenerator(seed: seed &+ 9000)
        for _ in 0..<40 {
            let (declaration, wire) = generator.coercible()
            let converter = try Converter(declaration)
            let coercion = try #require(Coercion.to(declaration))
            let slice = try #require(JSONSlice(json(wire)))
            guard let meant = coercion.coerced(slice),
                case .value(let mapped) = converter.forward(meant),
                case .value(let back) = converter.reverse(mapped),
                case .value(let again) = converter.forward(back)
            else {
                Issue.record("seed \(seed): \(declaration) of \(wire): \(converter.forward(json(wire)))")
                continue
            }
            // Without coercing anything it is the same from now on.
            #expect(again == mapped, "seed \(seed): \(declaration) of \(wire)")
            let returned = try #require(JSONSlice(back))
            #expect(coercion.coerced(returned) == nil, "seed \(seed): \(declaration) of \(wire)")
        }
    }

    /// The ways in which a conversion may spell a value anew: 1 is true, a number in a string is one, groups get separators.
    private static func isOtherSpelling(_ was: JSONSlice, _ back: JSONSlice, _ declaration: ConversionDeclaration)
        -> Bool
    {
        switch declaration {
        case .named("boolean"): back.kind == .boolean || back.kind == .null
        case .named("base64"), .number: back.kind == .string
        case .date(.unixSeconds), .date(.unixMilliseconds):
            was.string.flatMap { JSONSlice(Array($0.utf8)) }.map { $0.kind == .number && $0.isEqual(to: back) } ?? false
        case .arrayOf(let element):
            was.elements.count == back.elements.count
                && zip(was.elements, back.elements).allSatisfy {
                    $0.isEqual(to: $1) || isOtherSpelling($0, $1, element)
                }
        default: false
        }
    }
}
