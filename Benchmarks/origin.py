"""An origin for measurements whose responses need no speed."""
import http.server
import threading


class Origin:
    """Sends what `respond` returns for a method, a path and a body: a status, fields, and a body; on a thread of its own."""

    def __init__(self, respond):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, fields, body = respond(self.command, self.path, sent)
                self.send_response_only(status)
                for name, value in [*fields, ("Date", self.date_time_string())]:
                    self.send_header(name, value)
                if status != 204:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_PATCH = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
