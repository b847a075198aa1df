import HTTPSemantics
import Mapping
import Settings

/// What a delivery brings to prove that it comes from the service that knows the secret.
struct WebhookProof: Equatable {
    private enum Form: Equatable {
        /// Any of these is the HMAC-SHA-256 of a text, followed by the body.
        case code([[UInt8]], of: [UInt8])
        /// The secret itself.
        case token([UInt8])
    }

    private let form: Form

    /// How far the time in a signature may be from this machine's, in seconds: as Stripe's own libraries have it.
    static let tolerance: Int64 = 300

    /// Reads it from a delivery's fields; throws the problem to respond with if there is none.
    ///
    /// - Parameter now: seconds since 1970.
    init(_ fields: Fields, _ signature: Configuration.Webhook.Signature, now: Int64) throws(ProblemDocument) {
        let name = signature.field
        let lines = fields.all(name.lowercased())
        guard let line = lines.first, lines.count == 1 else {
            throw .webhookUnsigned(lines.isEmpty ? "\(name) is missing." : "\(name) occurs more than once.")
        }
        switch signature {
        case .github: form = .code([try Self.code(line, after: "sha256=", in: name)], of: [])
        case .gitlab: form = .token(line)
        case .stripe: form = try Self.timed(line, in: name, now: now)
        }
    }

    /// Whether one of the secrets makes it; takes a pass over the body for each, in a time that does not depend on them.
    func isMade(of body: [UInt8], by secrets: [[UInt8]]) -> Bool {
        var isMade = false
        for secret in secrets {
            switch form {
            case .code(let codes, let text):
                let message = text.isEmpty ? body : text + body
                let expected = Crypto.authenticationCode(key: secret, message: message)
                for code in codes where Crypto.areEqual(code, expected) { isMade = true }
            case .token(let token):
                // Digests, so that the length of the secret stays unknown, too.
                if Crypto.areEqual(Crypto.sha256([token]), Crypto.sha256([secret])) { isMade = true }
            }
        }
        return isMade
    }

    /// `t=1492774577,v1=5257…,v1=6ffb…`; other schemes, such as the `v0` of test deliveries, do not count.
    private static func timed(_ line: [UInt8], in name: String, now: Int64) throws(ProblemDocument) -> Form {
        var time: Int64?
        var codes: [[UInt8]] = []
        for part in line.split(separator: 0x2C) {
            let text = String(decoding: part, as: UTF8.self).drop { $0 == " " }
            if text.hasPrefix("t=") {
                guard time == nil, let number = Int64(text.dropFirst(2)) else {
                    throw .webhookUnsigned("The time in \(name) is no number of seconds.")
                }
                time = number
            } else if text.hasPrefix("v1=") {
                // There is one for each secret, of which an attacker could send many.
                guard codes.count < 8 else { throw .webhookUnsigned("\(name) has too many signatures.") }
                codes.append(try code(Array(text.utf8), after: "v1=", in: name))
            }
        }
        guard let time, !codes.isEmpty else { throw .webhookUnsigned("\(name) is not of the form t=…,v1=….") }
        let (age, isAbsurd) = now.subtractingReportingOverflow(time)
        if isAbsurd || age > tolerance || age < -tolerance {
            let moment = isAbsurd ? "at no possible time" : age > 0 ? "\(age) s ago" : "\(-age) s in the future"
            throw .webhookUnsigned("It was signed \(moment); \(tolerance) s are allowed.")
        }
        return .code(codes, of: Array("\(time).".utf8))
    }

    /// The 32 bytes of a code in hexadecimal digits.
    private static func code(_ text: [UInt8], after prefix: String, in name: String) throws(ProblemDocument) -> [UInt8]
    {
        guard text.starts(with: prefix.utf8) else { throw .webhookUnsigned("\(name) does not begin with \(prefix).") }
        guard let code = [UInt8](hexadecimal: text.dropFirst(prefix.utf8.count)), code.count == 32 else {
            throw .webhookUnsigned("The signature in \(name) is not 64 hexadecimal digits.")
        }
        return code
    }
}
