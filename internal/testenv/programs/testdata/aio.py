import asyncio, ssl, sys


async def get(host, ca):
    reader, writer = await asyncio.open_connection(host, 443, ssl=ssl.create_default_context(cafile=ca))
    writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    print((await reader.read()).decode())


asyncio.run(get(*sys.argv[1:]))
