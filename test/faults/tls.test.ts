import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { NodeHttp } from "effect-agent/node"
import { createServer } from "node:https"
import { serve } from "../providers/server.ts"
import { certificate } from "./certificate.ts"
import { answer, key, play, shown, told } from "./session.ts"
import { openAi, type Vendor, vendors } from "./vendors.ts"

const day = 24 * 60 * 60 * 1000
const valid = certificate(new Date(Date.now() - day / 2))
const expired = certificate(new Date(Date.now() - 2 * day))

/** A server that would answer, and how often it was asked. */
const serveTls = (vendor: Vendor, { cert, key }: ReturnType<typeof certificate>, host = "127.0.0.1") =>
  Effect.acquireRelease(
    Effect.callback<{ readonly baseUrl: string; readonly asked: () => number; readonly close: () => void }>(
      (resume) => {
        let asked = 0
        const server = createServer({ cert, key }, (_, response) => {
          asked++
          answer(response, vendor.answer({ text: ["Hello"] }))
        })
        server.listen(0, "127.0.0.1", () => {
          const address = server.address()
          const port = typeof address === "object" ? address?.port : undefined
          const close = () => {
            server.closeAllConnections()
            server.close()
          }
          resume(Effect.succeed({ baseUrl: `https://${host}:${port}/v1`, asked: () => asked, close }))
        })
      }
    ),
    ({ close }) => Effect.sync(close)
  )

/** A client that trusts this certificate: what is wrong with it then is something else. */
const trusting = (ca: string) =>
  Layer.provide(NodeHttp.layerNoDispatcher, NodeHttpClient.layerDispatcherOptions({ connect: { ca } }))

describe.each(vendors)("$name", (vendor) => {
  it.effect(
    "F003: plain HTTP behind an https address is a failure of TLS, asked once and never in clear",
    () =>
      Effect.gen(function* () {
        const server = yield* serve((response) => answer(response, vendor.answer({ text: ["Hello"] })))
        const secure = { baseUrl: server.baseUrl.replace("http:", "https:") }
        const { reason, retries } = yield* play(vendor, secure)
        assert.deepStrictEqual([told(reason), retries.length], ["Transport tls", 0])
        assert.strictEqual(server.requests.length, 0)
      }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.effect("F003: a certificate that nobody vouches for, has expired or is another's is refused", () =>
    Effect.gen(function* () {
      const cases = [
        {
          certificate: valid,
          client: FetchHttpClient.layer,
          host: "127.0.0.1",
          code: "DEPTH_ZERO_SELF_SIGNED_CERT"
        },
        {
          certificate: valid,
          client: NodeHttpClient.layerUndici,
          host: "127.0.0.1",
          code: "DEPTH_ZERO_SELF_SIGNED_CERT"
        },
        {
          certificate: valid,
          client: NodeHttp.layer,
          host: "127.0.0.1",
          code: "DEPTH_ZERO_SELF_SIGNED_CERT"
        },
        { certificate: expired, client: trusting(expired.cert), host: "127.0.0.1", code: "CERT_HAS_EXPIRED" },
        {
          certificate: valid,
          client: trusting(valid.cert),
          host: "localhost",
          code: "ERR_TLS_CERT_ALTNAME_INVALID"
        }
      ]
      for (const { certificate, client, code, host } of cases) {
        const server = yield* serveTls(vendor, certificate, host)
        const { reason, retries } = yield* Effect.provide(play(vendor, server), client)
        assert.strictEqual(told(reason), "Transport tls", code)
        assert.strictEqual(reason?._tag === "Transport" ? reason.code : "", code)
        assert.deepStrictEqual([server.asked(), retries.length], [0, 0])
      }
    })
  )
})

it.effect("F003: a certificate that is right is taken", () =>
  Effect.gen(function* () {
    const server = yield* serveTls(openAi, valid)
    const { events, exit, text } = yield* Effect.provide(play(openAi, server), trusting(valid.cert))
    assert.strictEqual(text, "Hello")
    assert.notInclude(shown(events, exit), key)
  })
)
