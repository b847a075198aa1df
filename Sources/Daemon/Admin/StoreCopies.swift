import Foundation
import HTTPSemantics
import HTTPServer
import Proxy
import Settings
import Store

/// Sends copies of the store to clients, and loads copies that clients send.
///
/// The bytes go through the connection, so a client needs no access to the daemon's files, nor the daemon to the client's.
extension DaemonCore {
    fileprivate static let copyType = "application/vnd.sqlite3"

    fileprivate func saveCopy() async throws(ProblemDocument) -> AdminResponse {
        let path = store.copyPaths.saving
        let (file, code): (Int32, Int32)
        do throws(StoreError) {
            (file, code) = try await proxy.save(to: path) {
                let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
                let code = errno
                // From now on only the connection needs it.
                unlink(path)
                return (file, code)
            }
        } catch { throw Self.problem(error) }
        guard file >= 0 else { throw ProblemDocument(500, "the copy cannot be read: \(systemMessage(code))") }
        let sender = CopySender(file)
        var response = AdminResponse(fields: Fields([Field("Content-Type", Self.copyType)]))
        response.stream = { reply, fields in sender.send(to: reply, fields) }
        return response
    }

    /// Loads a copy, also over what the store contains if `isReplacing`.
    fileprivate func loadCopy(_ body: RequestBody?, replacing isReplacing: Bool) async throws(ProblemDocument)
        -> LoadResult
    {
        guard let body else { throw .badRequest("the body is missing: send a copy that larder save has made") }
        // Nothing is received that would be refused anyway.
        if let error = store.refusal(ofCopyWith: body.declaredLength ?? 0) { throw Self.problem(error) }
        let path = store.copyPaths.loading
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else {
            throw errno == EEXIST
                ? ProblemDocument(409, "a copy is being loaded already; try again when that is done")
                : Self.problem(.unwritable(systemMessage(errno)))
        }
        do throws(ProblemDocument) {
            defer { close(file) }
            try await receive(body, into: file)
        } catch {
            unlink(path)
            throw error
        }
        do throws(StoreError) {
            return try await proxy.load(path, replacing: isReplacing)
        } catch {
            unlink(path)
            throw Self.problem(error)
        }
    }

    private func receive(_ body: RequestBody, into file: Int32) async throws(ProblemDocument) {
        var count = 0
        while let bytes = try await body.next(or: .badRequest("the body is incomplete")) {
            count += bytes.count
            if let error = store.refusal(ofCopyWith: count, ofWhichArrived: count) { throw Self.problem(error) }
            let code = bytes.withUnsafeBytes { writeAll($0, to: file).code }
            guard code == 0 else { throw Self.problem(.unwritable(systemMessage(code))) }
        }
    }

    private static func problem(_ error: StoreError) -> ProblemDocument {
        switch error {
        case .refused: ProblemDocument(409, error.description)
        case .unwritable(let reason), .full(let reason):
            ProblemDocument(507, "the store's disk has no room for the copy: \(reason)")
        default: ProblemDocument(error)
        }
    }
}

/// Sends a file as the body of a response, as fast as the client reads it.
private final class CopySender: Sendable {
    private let file: Int32
    private let length: Int
    private static let queue = DispatchQueue(label: "larder.copies", qos: .utility)
    private static let window = 1 << 20

    init(_ file: Int32) {
        self.file = file
        var status = stat()
        length = fstat(file, &status) == 0 ? Int(status.st_size) : 0
    }

    deinit { close(file) }

    func send(to reply: Reply, _ fields: Fields) {
        reply.start(status: 200, fields: fields, framing: .length(length))
        Self.queue.async { self.send(from: 0, to: reply) }
    }

    private func send(from start: Int, to reply: Reply) {
        var position = start
        while position < length {
            guard reply.backlog < Self.window else {
                // If the client has left, no byte is accepted any more, and this ends soon.
                let rest = position
                return reply.onDrain(below: Self.window / 2) { Self.queue.async { self.send(from: rest, to: reply) } }
            }
            let size = min(256 << 10, length - position)
            let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                count = max(pread(file, buffer.baseAddress, size, off_t(position)), 0)
            }
            guard !bytes.isEmpty else { return reply.abort() }
            reply.write(bytes)
            position += bytes.count
        }
        reply.finish()
    }
}

/// `GET /save`.
package struct SavingResponse: AdminBody {
    static let sentences = [
        "saving": "Whether a copy is being made.", "copied": "Bytes that are copied.",
        "total": "Bytes in all; 0 where that is not known yet.",
    ]
    var saving: Bool
    package var copied: Int64
    package var total: Int64
}

/// `POST /load`.
package struct LoadResponse: AdminBody {
    static let sentences = [
        "bytes": "Bytes in use in the store's file.", "models": "The number of objects of each model.",
        "droppedObjects": "Objects that were left out: they belong to principals of another key.",
        "droppedDocuments": "The same for documents.",
    ]
    package var objects: Int
    package var documents: Int
    var bytes: Int64
    package var models: [String: Int]
    package var droppedObjects: Int
    package var droppedDocuments: Int

    init(_ result: LoadResult) {
        let count = result.count
        (objects, documents, bytes, models) = (count.objects, count.documents, count.bytes, count.models)
        (droppedObjects, droppedDocuments) = (result.dropped.objects, result.dropped.documents)
    }
}

extension AdminRoute {
    static let copies: [AdminRoute] = documented([
        "How far the copy is that is being made of the store.": .json("GET /save") { _, daemon in
            let progress = daemon.store.copyProgress
            return SavingResponse(saving: progress != nil, copied: progress?.copied ?? 0, total: progress?.total ?? 0)
        },
        "Copies the store while it serves; the response is the copy, an SQLite file.":
            AdminRoute("POST /save", mediaType: DaemonCore.copyType) { _, daemon in try await daemon.saveCopy() },
        "Puts the content of a copy, which is the body, in the place of the store's. Nothing changes if anything is wrong with it.":
            AdminRoute(
                "POST /load",
                query: Parameter.documented([
                    "Whether the store may have content, which goes; without it, only an empty store is loaded.":
                        Parameter("replace", .boolean)
                ]),
                takesFile: true,
                schema: LoadResponse.self
            ) { request, daemon in
                let isReplacing = try request.flag("replace")
                return .json(LoadResponse(try await daemon.loadCopy(request.upload, replacing: isReplacing)))
            },
    ])
}
