import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HttpClient } from "effect/http"
import { NodeHttp, NodeProxy } from "effect-agent/node"
import { once } from "node:events"
import { createServer, request as requestOf } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { inspect } from "node:util"
import { serve } from "../providers/server.ts"

/** A proxy on loopback that wants a user and a password. Keeps what it was asked for. */
const proxy = Effect.acquireRelease(
  Effect.promise(async () => {
    const asked: Array<string> = []
    const sockets = new Set<Socket>()
    const credentials = `Basic ${Buffer.from("us%er:p@ss word").toString("base64")}`
    const isLetIn = (header: string | undefined) => header === credentials
    const server = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`)
      if (!isLetIn(request.headers["proxy-authorization"]))
        return void response.writeHead(407).end("p@ss word?")
      const { "proxy-authorization": _, ...headers } = request.headers
      const forward = requestOf(request.url ?? "", { method: request.method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(response)
      })
      forward.on("error", () => response.writeHead(502).end())
      request.pipe(forward)
    })
    server.on("connect", (request, socket: Socket) => {
      asked.push(`CONNECT ${request.url}`)
      socket.on("error", () => {})
      if (!isLetIn(request.headers["proxy-authorization"])) {
        return socket.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
      }
      const { hostname, port } = new URL(`http://${request.url}`)
      const behind = connect({ host: hostname, port: Number(port) }, () => {
        socket.write("HTTP/1.1 200 Connection established\r\n\r\n")
        behind.pipe(socket)
        socket.pipe(behind)
      })
      sockets.add(behind)
      behind.on("error", () => socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n"))
    })
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    const address = server.address() as AddressInfo
    return { asked, server, sockets, host: `127.0.0.1:${address.port}` }
  }),
  ({ server, sockets }) =>
    Effect.sync(() => {
      server.close()
      server.closeAllConnections()
      for (const socket of sockets) socket.destroy()
    })
)

const user = "us%25er:p%40ss%20word"
const secrets = /us%|us%25er|p@ss|p%40ss|dXMlZXI6/

const get = (url: string, env: NodeProxy.Environment) =>
  Effect.flatMap(HttpClient.get(url), ({ status, text }) =>
    Effect.map(text, (text) => ({ status, text }))
  ).pipe(Effect.provide(Layer.provide(NodeHttp.layerNoDispatcher, NodeProxy.layerDispatcher(env))))

/** The error of a request, in words and in all that can be seen of it. */
const failureOf = (url: string, env: NodeProxy.Environment) =>
  Effect.map(Effect.flip(get(url, env)), (error) => {
    const shown = [
      inspect(error, { depth: 20, showHidden: true }),
      JSON.stringify(error),
      String(error)
    ].join("\n")
    assert.notMatch(shown, secrets)
    const cause = error.reason._tag === "TransportError" ? error.reason.cause : undefined
    assert.instanceOf(cause, NodeProxy.ProxyFailed)
    return cause instanceof NodeProxy.ProxyFailed ? `${cause.code}: ${cause.message}` : ""
  })

const ok = { status: 200, text: "hello" }
const upstream = serve((response) => response.writeHead(200).end("hello"))

describe("a proxy of the environment", () => {
  it.live.each(["http_proxy", "HTTP_PROXY"])("is asked, with its user and password: %s", (name) =>
    Effect.gen(function* () {
      const { asked, host } = yield* proxy
      const { baseUrl } = yield* upstream
      const env = { [name]: `http://${user}@${host}`, no_proxy: "<-loopback>" }
      assert.deepStrictEqual(yield* get(`${baseUrl}/x?y`, env), ok)
      assert.deepStrictEqual(asked, [`GET ${baseUrl}/x?y`])
      const short = { [name]: `${user}@${host}`, NO_PROXY: "<-loopback>" }
      assert.deepStrictEqual(yield* get(`${baseUrl}/z`, short), ok)
      assert.lengthOf(asked, 2)
    }).pipe(Effect.scoped)
  )

  it.live.each([["HTTPS_PROXY"], ["https_proxy"], ["HTTP_PROXY"]])("tunnels HTTPS: %s", ([name = ""]) =>
    Effect.gen(function* () {
      const { asked, host } = yield* proxy
      const { baseUrl } = yield* upstream
      const { port } = new URL(baseUrl)
      const env = { [name]: `http://${user}@${host}`, NO_PROXY: "<-loopback>" }
      // The server behind it does not speak TLS, which shows that the tunnel is there.
      const error = yield* Effect.flip(get(`https://127.0.0.1:${port}/`, env))
      assert.notMatch(inspect(error, { depth: 20 }), secrets)
      assert.match(inspect(error, { depth: 20 }), /ERR_SSL|EPROTO|ECONNRESET|UND_ERR_SOCKET/)
      assert.deepStrictEqual(asked, [`CONNECT 127.0.0.1:${port}`])
    }).pipe(Effect.scoped)
  )

  it.live("is not asked for loopback hosts, nor for those of NO_PROXY", () =>
    Effect.gen(function* () {
      const { asked, host } = yield* proxy
      const { baseUrl } = yield* upstream
      const { port } = new URL(baseUrl)
      const HTTP_PROXY = `http://${user}@${host}`
      for (const [name, not] of [
        ["127.0.0.1", undefined],
        ["localhost", ""],
        ["127.0.0.1", "other.example"],
        ["127.0.0.1", "<-loopback>,127.0.0.1"],
        ["127.0.0.1", `<-loopback> 127.0.0.1:${port}`],
        ["127.0.0.1", "<-loopback>,*"]
      ] as const) {
        const env = { HTTP_PROXY, HTTPS_PROXY: HTTP_PROXY, ...(not === undefined ? {} : { NO_PROXY: not }) }
        assert.deepStrictEqual(yield* get(`http://${name}:${port}/`, env), ok, not)
      }
      assert.deepStrictEqual(asked, [])
      const env = { HTTP_PROXY, NO_PROXY: "<-loopback>,127.0.0.1:1,example.com" }
      assert.deepStrictEqual(yield* get(`${baseUrl}/`, env), ok)
      assert.lengthOf(asked, 1)
    }).pipe(Effect.scoped)
  )

  it.live("is not there when nothing names it", () =>
    Effect.gen(function* () {
      const { baseUrl } = yield* upstream
      assert.deepStrictEqual(yield* get(baseUrl, { HTTP_PROXY: " ", https_proxy: "" }), ok)
    }).pipe(Effect.scoped)
  )

  it.live("is named when it refuses, without its user and password", () =>
    Effect.gen(function* () {
      const { host } = yield* proxy
      const { baseUrl } = yield* upstream
      const env = { HTTP_PROXY: `http://bob:p%40ss@${host}`, NO_PROXY: "<-loopback>" }
      const refused = new RegExp(`^ERR_HTTP_PROXY: The proxy http://${host} of HTTP_PROXY asks for a user`)
      assert.match(yield* failureOf(baseUrl, env), refused)
      assert.match(yield* failureOf(baseUrl.replace("http:", "https:"), env), refused)
      const dead = { HTTPS_PROXY: `http://${user}@${host}`, NO_PROXY: "<-loopback>" }
      assert.match(
        yield* failureOf("https://127.0.0.1:9/", dead),
        /^UND_ERR_PRX_CONN: The proxy .* answers 502/
      )
    }).pipe(Effect.scoped)
  )

  it.live("is named when it is not there", () =>
    Effect.gen(function* () {
      const env = { https_proxy: `http://${user}@127.0.0.1:9` }
      for (const url of ["https://api.example/v1"]) {
        assert.strictEqual(
          yield* failureOf(url, env),
          "ECONNREFUSED: The proxy http://127.0.0.1:9 of https_proxy cannot be reached: ECONNREFUSED"
        )
      }
    })
  )

  it.live("is not named when a host of NO_PROXY cannot be reached", () =>
    Effect.gen(function* () {
      const { asked, host } = yield* proxy
      const through = `http://${user}@${host}`
      for (const protocol of ["http", "https"]) {
        const env = { HTTP_PROXY: through, HTTPS_PROXY: through, NO_PROXY: "<-loopback>,127.0.0.1:9" }
        const { reason } = yield* Effect.flip(get(`${protocol}://127.0.0.1:9/`, env))
        assert.notInstanceOf(reason.cause, NodeProxy.ProxyFailed)
        assert.match(String(reason.cause), /connect ECONNREFUSED 127\.0\.0\.1:9$/)
      }
      assert.deepStrictEqual(asked, [])
    }).pipe(Effect.scoped)
  )

  it.live.each([
    "http://",
    `http://${user}@`,
    `ftp://${user}@h`,
    "http://us%er:p@ss@h:1",
    `http://${user}@h:port`
  ])("that is no address is said to be none: %s", (address) =>
    Effect.gen(function* () {
      const said = yield* failureOf("https://api.example/", { HTTPS_PROXY: address })
      assert.match(
        said,
        /^ERR_INVALID_PROXY: HTTPS_PROXY is not the address of a proxy\. Set it to one such as/
      )
    })
  )
})
