"""An API for network.py: documents that are stale after a second, and some that may not be served stale.

It takes commands on its standard input, a line each: `fail` and `succeed` choose the status of its responses, `count` has it print how many
requests it got, and `quit` ends it.
"""

import asyncio
import sys

requests = 0
status = "200 OK"


async def serve(reader, writer):
    global requests
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            path = head.split(b" ", 2)[1].decode()
            requests += 1
            control = "no-cache" if path.startswith("/strict") else "max-age=1"
            body = f'{{"path":"{path}","padding":"{"x" * 1000}"}}'.encode()
            head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nCache-Control: {control}\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
            if path.startswith("/halting"):
                writer.write(body[:500])
                await writer.drain()
                await asyncio.sleep(3600)
            writer.write(body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    global status
    server = await asyncio.start_server(serve, sys.argv[1], int(sys.argv[2]), backlog=1024)
    print("ready", flush=True)
    commands = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while command := (await commands.readline()).decode().strip():
        if command == "quit":
            break
        if command == "fail":
            status = "500 Internal Server Error"
        if command == "succeed":
            status = "200 OK"
        print(requests, flush=True)
    server.close()


asyncio.run(main())
