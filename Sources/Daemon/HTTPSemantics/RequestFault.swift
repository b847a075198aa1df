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

    /// The status of the response, and one sentence for the person who made the request.
    private var response: (status: Int, detail: String) {
        switch self {
        case .badRequestLine: (400, "The request line is not of the form METHOD SP target SP HTTP/1.1.")
        case .badMethod: (400, "The method is not a token.")
        case .badTarget: (400, "The request target is not a path, an absolute http URL or, for OPTIONS, an asterisk.")
        case .badVersion: (400, "The request line does not end in an HTTP version.")
        case .bareLineFeed: (400, "A line of the head ends without carriage return and line feed.")
        case .badFieldName: (400, "A field name is empty, not a token, or followed by white space.")
        case .badFieldValue: (400, "A field value contains a control character.")
        case .foldedLine: (400, "A field line begins with white space; folded lines are obsolete.")
        case .noHost: (400, "An HTTP/1.1 request needs a Host field.")
        case .repeatedHost: (400, "There is more than one Host field.")
        case .badHost: (400, "The Host field is not a host with an optional port.")
        case .badContentLength: (400, "Content-Length is not a number.")
        case .repeatedContentLength: (400, "There is more than one Content-Length.")
        case .lengthAndCoding: (400, "Content-Length and Transfer-Encoding exclude each other.")
        case .unknownCoding: (400, "The only transfer coding understood here is chunked, once, in HTTP/1.1.")
        case .badChunk: (400, "The chunked body is malformed.")
        case .badTrailer: (400, "The trailer of the chunked body is malformed or too long.")
        case .chunkExtensionTooLong: (400, "The chunk extensions are too long.")
        case .targetTooLong: (414, "The request target is too long.")
        case .headTooLarge: (431, "The head of the request is too long.")
        case .tooManyFields: (431, "The request has too many fields.")
        case .bodyTooLarge: (413, "The request body is too long.")
        case .headTimeout: (408, "The head of the request did not arrive in time.")
        case .bodyTimeout: (408, "The request body did not arrive in time.")
        case .unknownExpectation: (417, "The only expectation understood here is 100-continue.")
        case .tunnel: (501, "Larder makes no tunnels; CONNECT is refused.")
        case .otherVersion: (505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
        case .tooManyConnections: (503, "There are too many connections; try again later.")
        }
    }

    package var status: Int { response.status }

    package var problem: ProblemDocument { ProblemDocument(status: response.status, detail: response.detail) }
}
