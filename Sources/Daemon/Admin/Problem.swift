package import Store
package import HTTPSemantics

/// A problem document as an error, with the fields of the answer that go with it.
package struct Problem: Error, Sendable {
    let document: ProblemDocument
    /// Fields of the answer besides the media type, such as `Allow`.
    var fields = Fields()

    var status: Int { document.status }

    /// `detail` says what happened this time, and what to do about it.
    package init(_ status: Int, _ detail: String, fields: Fields = Fields()) {
        document = ProblemDocument(status: status, detail: detail)
        self.fields = fields
    }
}

extension Problem {
    /// What the store could not do.
    package init(_ error: StoreError) {
        self.init(error == .closed ? 503 : 500, error.description)
    }

    package static func badRequest(_ detail: String) -> Problem {
        Problem(400, detail)
    }

    static func notFound(_ detail: String) -> Problem {
        Problem(404, detail)
    }

    static func gone(_ detail: String) -> Problem {
        Problem(410, detail)
    }

    static func notBuilt(_ what: String) -> Problem {
        Problem(501, "\(what) is reserved and not built yet in this version of Larder")
    }
}
