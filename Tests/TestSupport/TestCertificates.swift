/// The certificate of a server, signed by an authority of the test's own, in a folder.
package struct TestCertificates {
    /// The authority's certificate, for clients that are to trust the server.
    package let authority: String
    package let certificate: String
    package let key: String

    /// Makes them with `openssl`.
    package init(in folder: String, names: String = "DNS:localhost", days: Int = 2) throws {
        let commands = """
            cd '\(folder)' &&
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj '/CN=Test authority' \
              -keyout ca.key -out ca.pem &&
            openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj '/CN=Test' \
              -keyout server.key -out server.csr &&
            printf 'subjectAltName=\(names)\\n' > ext &&
            openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days \(days) -extfile ext \
              -out server.pem
            """
        try TestProcess.run("/bin/sh", ["-c", commands])
        (authority, certificate, key) = (folder + "/ca.pem", folder + "/server.pem", folder + "/server.key")
    }
}
