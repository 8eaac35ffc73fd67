import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Ref } from "effect"
import { once } from "node:events"
import { connect } from "node:net"
import { send, serve, token } from "./http.ts"

const tokens = { none: undefined, wrong: "Bearer wrong", basic: `Basic ${token}`, right: `bearer ${token}` }
const hosts = { own: "localhost:1", named: "agent.example", evil: "evil.example" }
const origins = {
  none: undefined,
  own: "http://localhost:1",
  allowed: "https://app.example",
  evil: "https://evil.example"
}
const types = { json: "application/json; charset=utf-8", text: "text/plain", none: undefined }
const bodies = { small: '{"name":"a"}', broken: "{", large: JSON.stringify({ name: "x".repeat(3000) }) }
const methods = ["GET", "POST", "PUT", "OPTIONS"]
const paths = ["/health", "/sessions", "/nope"]

interface Case {
  readonly token: keyof typeof tokens
  readonly host: keyof typeof hosts
  readonly origin: keyof typeof origins
  readonly method: string
  readonly path: string
  readonly type: keyof typeof types
  readonly body: keyof typeof bodies
}

/** The status that the order of the checks gives. */
const expected = ({ body, host, method, origin, path, token, type }: Case): number => {
  if (host === "evil") return 421
  if (origin === "evil" || (origin === "own" && host !== "own")) return 403
  if (path === "/nope") return 404
  if (method === "OPTIONS" && origin !== "none") return 204
  const known = path === "/health" ? ["GET"] : ["GET", "POST"]
  if (!known.includes(method)) return 405
  if (path !== "/health" && token !== "right") return 401
  if (method === "GET") return 200
  if (type !== "json") return 415
  if (body === "large") return 413
  return body === "broken" ? 400 : 201
}

const keys = <A extends object>(of: A) => Object.keys(of) as Array<keyof A>

const cases: ReadonlyArray<Case> = keys(tokens).flatMap((token) =>
  keys(hosts).flatMap((host) =>
    keys(origins).flatMap((origin) =>
      methods.flatMap((method) =>
        paths.flatMap((path) =>
          (method === "POST" ? keys(types) : (["json"] as const)).flatMap((type) =>
            (method === "POST" ? keys(bodies) : (["small"] as const)).map((body) => ({
              token,
              host,
              origin,
              method,
              path,
              type,
              body
            }))
          )
        )
      )
    )
  )
)

describe("guards", () => {
  it.live("let in only what all of them let in, and refuse in their order", () =>
    Effect.gen(function* () {
      const { port } = yield* serve(
        [],
        {},
        {
          hosts: ["Agent.Example"],
          origins: ["https://app.example"],
          maxBodySize: 2000,
          wrongTokens: { requests: 10_000 }
        }
      )
      const faults: Array<string> = []
      assert.isAbove(cases.length, 1000)
      yield* Effect.forEach(
        cases,
        (one) =>
          Effect.map(
            send(port, {
              method: one.method,
              path: one.path,
              headers: {
                authorization: tokens[one.token],
                host: hosts[one.host],
                origin: origins[one.origin],
                "content-type": types[one.type]
              },
              ...(one.method === "POST" ? { body: bodies[one.body] } : {})
            }),
            ({ headers, status, type }) => {
              const wanted = expected(one)
              const isProblem = status < 400 || type === "application/problem+json"
              const allowed = headers["access-control-allow-origin"]
              const isShared =
                one.origin === "none" || status === 421 || status === 403 || allowed === origins[one.origin]
              const leaks = allowed !== undefined && (one.origin === "none" || one.origin === "evil")
              if (status === wanted && isProblem && isShared && !leaks) return
              faults.push(`${JSON.stringify(one)}: ${status} ${type} ${String(allowed)}, expected ${wanted}`)
            }
          ),
        { concurrency: 16, discard: true }
      )
      assert.deepStrictEqual(faults.slice(0, 5), [])
    })
  )

  it.live("read no more of a body than the bound, also where no header has its size", () =>
    Effect.gen(function* () {
      const { port } = yield* serve([], {}, { maxBodySize: 2000 })
      const large = bodies.large
      const chunked = { "transfer-encoding": "chunked" }
      const answer = yield* send(port, { path: "/sessions", body: large, headers: chunked })
      assert.strictEqual(answer.status, 413)
      assert.strictEqual(answer.json.title, "The body is too large")
      const deep = `{"name":${"[".repeat(400)}${"]".repeat(400)}}`
      assert.strictEqual((yield* send(port, { path: "/sessions", body: deep })).status, 400)
      const gzip = { "content-encoding": "gzip" }
      assert.strictEqual((yield* send(port, { path: "/sessions", body: "{}", headers: gzip })).status, 415)
    })
  )

  it.live("read bodies up to a budget, in their time, and none without a token", () =>
    Effect.gen(function* () {
      const { port } = yield* serve([], {}, { maxBodySize: 2000, maxBodiesSize: 2000, bodyTime: "1 second" })
      const open = (authorization: string) =>
        Effect.acquireRelease(
          Effect.promise(async () => {
            const socket = connect(port, "127.0.0.1")
              .setEncoding("utf8")
              .on("error", () => {})
            const answer = once(socket, "data").then(([text]) => String(text))
            const head = ["POST /sessions HTTP/1.1", "Host: localhost", `Authorization: ${authorization}`]
            const body = ["Content-Type: application/json", "Content-Length: 1500", "", "{"]
            socket.write([...head, ...body].join("\r\n"))
            return { socket, answer }
          }),
          ({ socket }) => Effect.sync(() => socket.destroy())
        )
      const wrong = yield* open("Bearer wrong")
      assert.match(yield* Effect.promise(() => wrong.answer), /^HTTP\/1\.1 401 /)
      const half = yield* open(`Bearer ${token}`)
      // Its head is there when a later request has its answer.
      yield* send(port, { path: "/health" })
      const busy = yield* send(port, { path: "/sessions", body: { name: "x".repeat(600) } })
      assert.deepStrictEqual([busy.status, busy.headers["retry-after"]], [503, "1"])
      assert.match(yield* Effect.promise(() => half.answer), /^HTTP\/1\.1 408 .*connection: close/is)
      assert.strictEqual((yield* send(port, { path: "/sessions", body: {} })).status, 201)
    })
  )

  it.live("read no body of a request that has none, also with an idempotency key", () =>
    Effect.gen(function* () {
      const { port } = yield* serve([], {}, { bodyTime: "1 second" })
      const answer = Effect.promise(async () => {
        const socket = connect(port, "127.0.0.1").setEncoding("utf8")
        const head = ["DELETE /sessions/none HTTP/1.1", "Host: localhost", `Authorization: Bearer ${token}`]
        socket.write([...head, "Idempotency-Key: k", "Content-Length: 1500", "", "{"].join("\r\n"))
        const [text] = await once(socket, "data")
        socket.destroy()
        return String(text)
      })
      assert.match(yield* Effect.timeout(answer, "3 seconds"), /^HTTP\/1\.1 404 /)
    })
  )

  it.live("limit the wrong tokens of an address, and no right one", () =>
    Effect.gen(function* () {
      const { port } = yield* serve([])
      const statusOf = (authorization: string) =>
        Effect.map(send(port, { path: "/sessions", headers: { authorization } }), ({ status }) => status)
      const statuses = yield* Effect.forEach(Array.from({ length: 61 }), () => statusOf("Bearer wrong"))
      assert.deepStrictEqual([statuses[0], statuses[59], statuses[60]], [401, 401, 429])
      assert.strictEqual(yield* statusOf(`Bearer ${token}`), 200)
    })
  )

  it.live("take the tokens of the moment", () =>
    Effect.gen(function* () {
      const tokens = yield* Ref.make([Redacted.make("first")])
      const { port } = yield* serve([], {}, { tokens: Ref.get(tokens) })
      const statusOf = (token: string) =>
        Effect.map(
          send(port, { path: "/sessions", headers: { authorization: `Bearer ${token}` } }),
          ({ status }) => status
        )
      assert.strictEqual(yield* statusOf("first"), 200)
      yield* Ref.set(tokens, [Redacted.make("second")])
      assert.deepStrictEqual([yield* statusOf("first"), yield* statusOf("second")], [401, 200])
    })
  )

  it.live("let no request through with an empty token", () =>
    Effect.gen(function* () {
      const { port } = yield* serve([], {}, { tokens: [Redacted.make("")] })
      for (const authorization of [undefined, "", "Bearer", "Bearer ", `Bearer ${token}`]) {
        const { headers, status } = yield* send(port, { path: "/sessions", headers: { authorization } })
        assert.deepStrictEqual([status, headers["www-authenticate"]], [401, "Bearer"])
      }
    })
  )
})
