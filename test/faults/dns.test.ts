import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { NodeHttp } from "effect-agent/node"
import { serve } from "../providers/server.ts"
import { answer, play, told } from "./session.ts"
import { vendors } from "./vendors.ts"

const clients = [
  { client: "NodeHttp", http: NodeHttp.layerNoDispatcher },
  { client: "undici", http: NodeHttpClient.layerUndiciNoDispatcher }
]
type Http = (typeof clients)[number]["http"]

/** A client that looks names up as these outcomes say, one after the other: an error's code, or an address. */
const resolving = (http: Http, outcomes: ReadonlyArray<string>) => {
  const lookups: Array<string> = []
  const dispatcher = NodeHttpClient.layerDispatcherOptions({
    connect: {
      lookup: (host, _, tell) => {
        const outcome = outcomes[lookups.push(host) - 1] ?? outcomes.at(-1) ?? ""
        const isAddress = outcome.includes(".")
        const error = Object.assign(new Error(`getaddrinfo ${outcome} ${host}`), { code: outcome })
        tell(isAddress ? null : error, isAddress ? [{ address: outcome, family: 4 }] : [])
      }
    }
  })
  return { lookups, layer: Layer.provide(http, dispatcher) }
}

const nowhere = { baseUrl: "http://api.vendor.test/v1" }

describe.each(clients)("over $client", ({ http }) => {
  describe.each(vendors)("$name", (vendor) => {
    it.effect("F002: a name that could not be looked up just now is looked up again", () =>
      Effect.gen(function* () {
        const server = yield* serve((response) => answer(response, vendor.answer({ text: ["Hello"] })))
        const { lookups, layer } = resolving(http, ["EAI_AGAIN", "EAI_AGAIN", "127.0.0.1"])
        const { port } = new URL(server.baseUrl)
        const named = { baseUrl: `http://api.vendor.test:${port}/v1` }
        const { retries, text } = yield* play(vendor, named).pipe(Effect.provide(layer))
        assert.strictEqual(text, "Hello")
        assert.strictEqual(lookups.length, 3)
        assert.deepStrictEqual(
          retries.map(({ error }) => told(error.reason)),
          ["Transport dns", "Transport dns"]
        )
      })
    )

    it.effect("F002: a resolver that is never there is given up after three tries", () =>
      Effect.gen(function* () {
        const { lookups, layer } = resolving(http, ["EAI_AGAIN"])
        const { reason } = yield* play(vendor, nowhere).pipe(Effect.provide(layer))
        assert.strictEqual(told(reason), "Transport dns")
        assert.strictEqual(lookups.length, 3)
      })
    )

    it.effect("F002: a name that nobody has is looked up once", () =>
      Effect.gen(function* () {
        const { lookups, layer } = resolving(http, ["ENOTFOUND"])
        const { reason, retries } = yield* play(vendor, nowhere).pipe(Effect.provide(layer))
        assert.strictEqual(told(reason), "Transport dns")
        assert.include(reason?.detail, "api.vendor.test")
        assert.deepStrictEqual([lookups.length, retries.length], [1, 0])
      })
    )
  })
})
