package import HTTPSemantics

/// An error in a request, for which it is refused and its connection closed.
package enum RequestFault: Error, Sendable, Equatable, CaseIterable {
    case badRequestLine, badMethod, badTarget, badVersion
    case bareLineFeed, badFieldName, badFieldValue, foldedLine
    case noHost, repeatedHost, badHost
    case badContentLength, repeatedContentLength, lengthAndCoding, unknownCoding
    case badChunk, badTrailer, chunkExtensionTooLong
    case targetTooLong, headTooLarge, tooManyFields, bodyTooLarge
    case headTimeout, bodyTimeout
    case unknownExpectation, tunnel, otherVersion
    case tooManyConnections

    /// The status code of the response.
    var status: Int {
        switch self {
        case .badRequestLine, .badMethod, .badTarget, .badVersion, .bareLineFeed, .badFieldName, .badFieldValue,
            .foldedLine, .noHost, .repeatedHost, .badHost, .badContentLength, .repeatedContentLength,
            .lengthAndCoding, .unknownCoding, .badChunk, .badTrailer, .chunkExtensionTooLong:
            400
        case .headTimeout, .bodyTimeout: 408
        case .bodyTooLarge: 413
        case .targetTooLong: 414
        case .unknownExpectation: 417
        case .headTooLarge, .tooManyFields: 431
        case .tunnel: 501
        case .tooManyConnections: 503
        case .otherVersion: 505
        }
    }

    /// One sentence for the person who made the request.
    var detail: String {
        switch self {
        case .badRequestLine: "The request line is not of the form METHOD SP target SP HTTP/1.1."
        case .badMethod: "The method is not a token."
        case .badTarget: "The request target is not a path, an absolute http URL or, for OPTIONS, an asterisk."
        case .badVersion: "The request line does not end in an HTTP version."
        case .bareLineFeed: "A line of the head ends without carriage return and line feed."
        case .badFieldName: "A field name is empty, not a token, or followed by white space."
        case .badFieldValue: "A field value contains a control character."
        case .foldedLine: "A field line begins with white space; folded lines are obsolete."
        case .noHost: "An HTTP/1.1 request needs a Host field."
        case .repeatedHost: "There is more than one Host field."
        case .badHost: "The Host field is not a host with an optional port."
        case .badContentLength: "Content-Length is not a number."
        case .repeatedContentLength: "There is more than one Content-Length."
        case .lengthAndCoding: "Content-Length and Transfer-Encoding exclude each other."
        case .unknownCoding: "The only transfer coding understood here is chunked, once, in HTTP/1.1."
        case .badChunk: "The chunked body is malformed."
        case .badTrailer: "The trailer of the chunked body is malformed or too long."
        case .chunkExtensionTooLong: "The chunk extensions are too long."
        case .targetTooLong: "The request target is too long."
        case .headTooLarge: "The head of the request is too long."
        case .tooManyFields: "The request has too many fields."
        case .bodyTooLarge: "The request body is too long."
        case .headTimeout: "The head of the request did not arrive in time."
        case .bodyTimeout: "The request body did not arrive in time."
        case .unknownExpectation: "The only expectation understood here is 100-continue."
        case .tunnel: "Larder makes no tunnels; CONNECT is refused."
        case .otherVersion: "Only HTTP/1.1 and HTTP/1.0 are spoken here."
        case .tooManyConnections: "There are too many connections; try again later."
        }
    }

    /// The problem document sent as the response.
    package var problem: ProblemDocument { ProblemDocument(status: status, detail: detail) }
}
