import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Message } from "effect-agent"
import { serve, stream } from "../providers/server.ts"
import { agentAt, looking, talking } from "./talking.ts"
import { faults, type Said, type Wire, wires } from "./wires.ts"

const decode = Schema.decodeUnknownEffect(Schema.Array(Message.Message))

describe("ids of calls", () => {
  /** What each vendor takes. Google pairs by place. */
  const patterns: Readonly<Record<string, RegExp>> = {
    "openai-chat": /^[\w-]{1,40}$/,
    "openai-responses": /^[\w-]{1,64}$/,
    "anthropic-messages": /^[a-zA-Z0-9_-]{1,64}$/,
    "google-generative": /^/
  }
  const odd = `call_${"x|/:é 😀".repeat(40)}`
  // Alike but for their end, or for what is left of them when odd characters are taken out.
  const ids = [odd, `${odd}2`, "a|b", "a/b", "a_b"]
  const told: Said = { calls: ids.map((id, n) => ({ id, name: "look", args: JSON.stringify({ n }) })) }

  /** The ids of the calls in a request, each of which is answered. */
  const idsOf = (wire: Wire, body: string): ReadonlyArray<string> => {
    assert.deepStrictEqual(faults(wire, body), [])
    return wire.turns(JSON.parse(body)).flatMap(({ by, ids }) => (by === "model" ? ids : []))
  }

  for (const from of wires) {
    for (const to of wires) {
      it.live(`F076: of any length and letters, from ${from.name} to ${to.name}`, () =>
        Effect.gen(function* () {
          const first = yield* talking(from, [told], { tools: [looking] })
          const { newMessages } = yield* first.agent.prompt("hi")
          const kept = JSON.stringify(newMessages)
          // As after a restart, and once more after another one.
          const next = Effect.gen(function* () {
            const server = yield* serve((response) => stream(response).end(to.answer(told).join("")))
            const messages = yield* decode(JSON.parse(kept)).pipe(Effect.orDie)
            const agent = yield* agentAt(to, server.baseUrl, {
              messages,
              tools: [looking],
              limits: { maxTurns: 2, onMaxTurns: "stop" }
            })
            yield* agent.prompt("and now?")
            return server.requests.map(({ body }) => idsOf(to, body))
          })
          const [asked = [], again = []] = yield* next
          const isPlaced = asked.every((id) => id === "look")
          assert.strictEqual(asked.length, ids.length)
          assert.isTrue(isPlaced || new Set(asked).size === ids.length, "one to one")
          for (const id of asked) assert.match(id, patterns[to.name] ?? /^$/)
          assert.deepStrictEqual(again.slice(0, ids.length), asked)
          assert.strictEqual(again.length, 2 * ids.length)
          assert.deepStrictEqual((yield* next)[0], asked)
        })
      )
    }
  }
})
