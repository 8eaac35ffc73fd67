import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, Approval, Loop, Message, ToolRegistry } from "effect-agent"
import { OpenAi } from "effect-agent/providers"
import { events, serve, stream } from "./server.ts"

const request = {
  id: "mcpr_1",
  type: "mcp_approval_request",
  arguments: '{"url":"https://ai-sdk.dev/"}',
  name: "create_short_url",
  server_label: "zip1"
}
const thought = { id: "rs_1", type: "reasoning", summary: [], encrypted_content: "secret" }

const ended = (output: ReadonlyArray<object>) => [
  { type: "response.created", response: { id: "resp_1", status: "in_progress" } },
  ...output.flatMap((item, output_index) => [
    { type: "response.output_item.added", output_index, item },
    { type: "response.output_item.done", output_index, item }
  ]),
  { type: "response.completed", response: { id: "resp_1", status: "completed", output } }
]
const asks = ended([thought, request])
const says = ended([
  { id: "msg_1", type: "message", role: "assistant", content: [{ type: "output_text", text: "Done." }] }
])

const options = { model: "gpt-5-mini" }

/** Two answers of the vendor: it asks for an approval, then it ends. */
const vendor = Effect.gen(function* () {
  const { baseUrl, requests } = yield* serve((response, _, count) =>
    stream(response).end(events(...(count === 1 ? asks : says)))
  )
  const layer = Layer.provide(
    OpenAi.layer({ baseUrl, apiKey: Redacted.make("sk-0123456789") }),
    FetchHttpClient.layer
  )
  const input = (at: number): ReadonlyArray<any> => JSON.parse(requests[at]?.body ?? "{}").input
  return { layer, input, count: () => requests.length }
})

const answer = { type: "mcp_approval_response", approval_request_id: "mcpr_1" }

describe("approvals that OpenAI asks for", () => {
  it.live("are asked by the policy as those of any call, and answered with the next request", () =>
    Effect.gen(function* () {
      const { input, layer } = yield* vendor
      const seen: Array<unknown> = []
      const { text } = yield* Effect.gen(function* () {
        const agent = yield* Agent.make(options)
        yield* agent.subscribe((event) =>
          event._tag === "ApprovalRequested"
            ? Effect.andThen(
                Effect.sync(() => seen.push([event.toolName, event.params])),
                agent.answer(event.approvalId, { decision: "approve", argumentsHash: event.argumentsHash })
              )
            : Effect.void
        )
        return yield* agent.prompt("Shorten it")
      }).pipe(Effect.scoped, Effect.provide([layer, Approval.layer({ asked: "wait" })]))
      assert.strictEqual(text, "Done.")
      assert.deepStrictEqual(seen, [["zip1.create_short_url", { url: "https://ai-sdk.dev/" }]])
      assert.deepStrictEqual(input(1).slice(1), [thought, request, { ...answer, approve: true }])
    })
  )

  it.live("are denied with the reason of the person", () =>
    Effect.gen(function* () {
      const { input, layer } = yield* vendor
      const policy = Approval.layer({
        rules: [Approval.deny("zip1.create_short_url", undefined, "not this site")]
      })
      yield* Effect.gen(function* () {
        const agent = yield* Agent.make(options)
        return yield* agent.prompt("Shorten it")
      }).pipe(Effect.scoped, Effect.provide([layer, policy]))
      const { reason, ...given } = input(1).at(-1)
      assert.deepStrictEqual(given, { ...answer, approve: false })
      assert.include(reason, "not this site")
    })
  )

  it.live("are denied without a policy, in words that say so, and allowed by one that allows", () =>
    Effect.gen(function* () {
      const { input, layer } = yield* vendor
      const { newMessages } = yield* Effect.gen(function* () {
        return yield* (yield* Agent.make(options)).prompt("Shorten it")
      }).pipe(Effect.scoped, Effect.provide(layer))
      assert.isFalse(input(1).at(-1).approve)
      const result = newMessages.find(({ role }) => role === "toolResult")
      assert.include(result === undefined ? "" : Message.textOf(result), "no Approval policy")

      const other = yield* vendor
      yield* Effect.gen(function* () {
        return yield* (yield* Agent.make(options)).prompt("Shorten it")
      }).pipe(Effect.scoped, Effect.provide([other.layer, Approval.layer({ otherwise: "allow" })]))
      assert.isTrue(other.input(1).at(-1).approve)
    })
  )

  it.live("suspend a run that defers, and go out when another process continues it", () =>
    Effect.gen(function* () {
      const { count, input, layer } = yield* vendor
      const deferring = Approval.layer({ asked: "defer" })
      const provided = Effect.provide([layer, deferring, ToolRegistry.layer()])
      const { newMessages, open, status } = yield* provided(Loop.run("Shorten it", { messages: [] }, options))
      assert.strictEqual(status, "suspended")
      assert.strictEqual(count(), 1)
      if (open === undefined) return assert.fail("no turn is open")
      const codec = Schema.fromJsonString(Schema.toCodecJson(Approval.OpenTurn))
      const read = yield* Schema.decodeEffect(codec)(yield* Schema.encodeEffect(codec)(open))
      const approvals = read.approvals.map(({ request }) => ({
        request,
        answer: { decision: "approve" as const }
      }))
      const continued = Loop.continue({ messages: newMessages, open: { ...read, approvals } }, options)
      yield* provided(Stream.runDrain(continued))
      assert.deepStrictEqual(input(1).slice(1), [thought, request, { ...answer, approve: true }])
    })
  )
})
