@testable import HTTPSemantics
@testable import Upstream

/// What a transfer told its delegate.
struct ReceivedResponse: Sendable {
    var informational: [(status: Int, fields: Fields)] = []
    var head: UpstreamHead?
    var body: [UInt8] = []
    var bodyBytes = 0
    var result: Result<TransferSummary, UpstreamError> = .failure(.cancelled)

    var text: String { String(decoding: body, as: UTF8.self) }
    var error: UpstreamError? {
        if case .failure(let error) = result { error } else { nil }
    }
    var summary: TransferSummary? { try? result.get() }
}

/// A delegate that writes everything down; lives on the loop.
final class TransferRecorder: TransferDelegate {
    var answer = ReceivedResponse()
    var transfer: Transfer?
    var keepsBody = true
    var onInformational: ((TransferRecorder) -> Void)?
    var onHead: ((TransferRecorder) -> Void)?
    var onBody: ((TransferRecorder, UnsafeRawBufferPointer) -> Flow)?
    var onCompleted: ((TransferRecorder) -> Void)?
    private(set) var completions = 0

    func informational(status: Int, fields: Fields) {
        answer.informational.append((status, fields))
        onInformational?(self)
    }

    func received(head: UpstreamHead) {
        precondition(answer.head == nil, "two heads")
        answer.head = head
        onHead?(self)
    }

    func received(body: UnsafeRawBufferPointer) -> Flow {
        precondition(answer.head != nil && completions == 0, "a body out of order")
        let flow = onBody?(self, body) ?? .proceed
        if flow == .proceed {
            answer.bodyBytes += body.count
            if keepsBody { answer.body += body }
        }
        return flow
    }

    func completed(_ result: Result<TransferSummary, UpstreamError>) {
        completions += 1
        precondition(completions == 1, "completed twice")
        answer.result = result
        transfer = nil
        onCompleted?(self)
    }
}
