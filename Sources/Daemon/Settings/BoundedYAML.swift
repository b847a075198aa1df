import CYaml
package import Yams

/// Parses YAML that anybody may have written: what its aliases stand for has bounds, and so has its depth.
///
/// The parser puts a copy in the place of each alias, so a few lines can stand for more than any memory holds. Therefore the
/// text is read once before, without making anything of it, and what it stands for is counted.
package enum BoundedYAML {
    /// The number of values that aliases may stand for, and their size in bytes.
    static let aliased = Size(values: 100_000, bytes: 64 << 20)
    /// The number of values in one key: it is compared as a whole with the keys beside it.
    static let keyValues = 100
    static let depth = 200
    static let tooDeep = "mappings and lists are nested more than \(depth) deep here"

    /// Parses a text of one document; nil if it is empty.
    package static func compose(_ text: String) throws(YAMLFailure) -> Node? {
        if let mistake = YAMLMeasure(text).excess { throw YAMLFailure(mistakes: [mistake]) }
        do {
            return try Yams.compose(yaml: text)
        } catch { throw YAMLFailure(mistakes: YAMLMistake.describe(error, in: text)) }
    }

    /// How much a part of a text stands for, with its aliases replaced.
    struct Size {
        var values = 0
        var bytes = 0

        static func += (left: inout Size, right: Size) {
            // Neither can overflow: the sum of all aliases is bounded.
            left.values += right.values
            left.bytes += right.bytes
        }
    }
}

package struct YAMLFailure: Error, CustomStringConvertible {
    let mistakes: [YAMLMistake]

    /// The line of the first mistake, counted from 1; nil if the parser does not say.
    package var line: Int? { mistakes.first?.place?.line }

    /// The first mistake, without its line.
    package var description: String { mistakes.first?.message ?? "this is not YAML" }
}

/// Reads the events of a YAML text, and measures what it stands for.
struct YAMLMeasure {
    /// The first place at which the text is too much; nil if it is not, or is no YAML before.
    private(set) var excess: YAMLMistake?
    /// The keys of the mapping with the wanted one, as far as they are plain text.
    private(set) var keys: [(name: String, place: Place)] = []
    private let wanted: Place?
    private var open: [Collection] = []
    private var anchors: [String: BoundedYAML.Size] = [:]
    /// What the aliases so far stand for.
    private var aliased = BoundedYAML.Size()

    private struct Collection {
        let anchor: String?
        let isMapping: Bool
        /// The keys that are plain text, where they are wanted.
        var keys: [(name: String, place: Place)] = []
        var size = BoundedYAML.Size(values: 1)
        /// The number of keys and values read.
        var count = 0

        var isAtKey: Bool { isMapping && count.isMultiple(of: 2) }
    }

    /// - Parameter wanted: The place of a key, for which the keys beside it are listed, too; nil for none.
    init(_ text: String, keysBeside wanted: Place? = nil) {
        self.wanted = wanted
        let parser = UnsafeMutablePointer<yaml_parser_t>.allocate(capacity: 1)
        defer { parser.deallocate() }
        guard yaml_parser_initialize(parser) == 1 else { return }
        defer { yaml_parser_delete(parser) }
        var text = text
        text.withUTF8 { bytes in
            yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
            yaml_parser_set_input_string(parser, bytes.baseAddress, bytes.count)
            var event = yaml_event_t()
            while excess == nil, yaml_parser_parse(parser, &event) == 1 {
                let isEnd = event.type == YAML_STREAM_END_EVENT
                read(event)
                yaml_event_delete(&event)
                if isEnd { return }
            }
        }
    }

    private mutating func read(_ event: yaml_event_t) {
        switch event.type {
        case YAML_ALIAS_EVENT:
            let size = anchors[Self.name(event.data.alias.anchor) ?? ""] ?? BoundedYAML.Size()
            aliased += size
            let limit = BoundedYAML.aliased
            if aliased.values > limit.values || aliased.bytes > limit.bytes {
                return refuse(event, "the aliases up to here stand for too much; write out what you mean")
            }
            add(size, event)
        case YAML_SCALAR_EVENT:
            let size = BoundedYAML.Size(values: 1, bytes: event.data.scalar.length)
            if let name = Self.name(event.data.scalar.anchor) { anchors[name] = size }
            if wanted != nil, open.last?.isAtKey == true, let name = Self.name(event.data.scalar.value) {
                open[open.count - 1].keys.append((name, Place(event.start_mark)))
            }
            add(size, event)
        case YAML_SEQUENCE_START_EVENT:
            begin(Collection(anchor: Self.name(event.data.sequence_start.anchor), isMapping: false), event)
        case YAML_MAPPING_START_EVENT:
            begin(Collection(anchor: Self.name(event.data.mapping_start.anchor), isMapping: true), event)
        case YAML_SEQUENCE_END_EVENT, YAML_MAPPING_END_EVENT:
            guard let ended = open.popLast() else { return }
            if ended.keys.contains(where: { $0.place == wanted }) { keys = ended.keys }
            if let anchor = ended.anchor { anchors[anchor] = ended.size }
            add(ended.size, event)
        default: break
        }
    }

    private mutating func begin(_ collection: Collection, _ event: yaml_event_t) {
        open.append(collection)
        if open.count > BoundedYAML.depth { refuse(event, BoundedYAML.tooDeep) }
    }

    /// Adds a whole value to what is around it.
    private mutating func add(_ size: BoundedYAML.Size, _ event: yaml_event_t) {
        guard let isKey = open.last?.isAtKey else { return }
        open[open.count - 1].size += size
        open[open.count - 1].count += 1
        if isKey, size.values > BoundedYAML.keyValues {
            refuse(event, "a key is plain text; this one has too many parts")
        }
    }

    private mutating func refuse(_ event: yaml_event_t, _ message: String) {
        excess = YAMLMistake(place: Place(event.start_mark), message: message)
    }

    private static func name(_ bytes: UnsafeMutablePointer<UInt8>?) -> String? { bytes.map { String(cString: $0) } }
}

extension Place {
    fileprivate init(_ mark: yaml_mark_t) { self.init(line: mark.line + 1, column: mark.column + 1) }
}
