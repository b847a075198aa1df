/// A request method (RFC 9110 §9); case-sensitive.
package enum Method: Sendable, Equatable {
    case get, head, post, put, patch, delete, options, trace, connect
    /// Any other token; the head contains its bytes.
    case other

    package init(_ bytes: UnsafeRawBufferPointer) {
        func matches(_ name: StaticString) -> Bool {
            name.utf8CodeUnitCount == bytes.count
                && (0..<bytes.count).allSatisfy { bytes[$0] == name.utf8Start[$0] }
        }
        switch bytes.count {
        case 3: self = matches("GET") ? .get : matches("PUT") ? .put : .other
        case 4: self = matches("HEAD") ? .head : matches("POST") ? .post : .other
        case 5: self = matches("PATCH") ? .patch : matches("TRACE") ? .trace : .other
        case 6: self = matches("DELETE") ? .delete : .other
        case 7: self = matches("OPTIONS") ? .options : matches("CONNECT") ? .connect : .other
        default: self = .other
        }
    }
}

/// The properties of methods (RFC 9110 §9.2); methods are spelled in upper case.
package enum MethodFacts {
    /// Whether the method only reads; unknown methods are not safe.
    package static func isSafe(_ method: String) -> Bool {
        method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE"
    }

    package static func isCacheable(_ method: String) -> Bool { method == "GET" || method == "HEAD" }
}
