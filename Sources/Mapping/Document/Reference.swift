/// The literal that stands for an object in skeletons and payloads: a JSON string beginning with `\u0001`, such as
/// `"\u0001User:583231"`.
public enum Reference {
    /// The literal for a name, quotes included.
    public static func literal(_ name: ObjectName) -> [UInt8] { [] }

    /// The name in the unescaped content of a reference literal, as SQLite's JSON functions give it; nil for other text.
    public static func name(inText text: String) -> ObjectName? { nil }

    /// The names referred to directly in a skeleton or payload, in order.
    public static func names(in payload: [UInt8]) -> [ObjectName] { [] }

    /// The payload with every reference shown as its bare identity: a number if it is a canonical decimal, else a string.
    public static func plain(_ payload: [UInt8]) -> [UInt8] { [] }
}
