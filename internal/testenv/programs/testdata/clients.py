"""clients.py LIBRARY CA [URL]: reaches a server by a library that has a loop or TLS of its own."""

import asyncio, ssl, sys


async def by_aiohttp(ca):
    import aiohttp

    async with aiohttp.ClientSession() as session:
        async with session.get("https://a.test/", ssl=ssl.create_default_context(cafile=ca)) as response:
            print(await response.text())


async def by_websockets(ca, url):
    import websockets

    context = ssl.create_default_context(cafile=ca) if url.startswith("wss:") else None
    async with websockets.connect(url, ssl=context) as socket:
        await socket.send("hello")
        print("echoed", await socket.recv())


def by_pycurl(ca):
    import pycurl

    curl = pycurl.Curl()
    curl.setopt(curl.URL, "https://a.test/")
    curl.setopt(curl.CAINFO, ca)
    curl.setopt(curl.WRITEFUNCTION, lambda b: sys.stdout.write(b.decode()))
    curl.perform()


def by_grpc(ca):
    import grpc

    credentials = grpc.ssl_channel_credentials(open(ca, "rb").read())
    with grpc.secure_channel("grpc.test:443", credentials) as channel:
        print("answered", channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=10))


library, *words = sys.argv[1:]
made = {"aiohttp": by_aiohttp, "websockets": by_websockets, "pycurl": by_pycurl, "grpc": by_grpc}[library](*words)
if made is not None:
    asyncio.run(made)
