import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Message, Provider, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"

const untyped = (value: unknown): any => value

const cited: Message.File = {
  type: "file",
  source: { data: "AAAA", mediaType: "application/pdf" },
  citations: { enabled: true },
  vendor: { anthropic: { context: "a lease" } }
}

/** The request that the provider gets for a prompt. */
const asked = (input: Message.Input, tools: ReadonlyArray<Tool.Runnable> = []) =>
  Effect.gen(function* () {
    const { provider, requests } = yield* ScriptedProvider.make([ScriptedProvider.text("ok")])
    const agent = yield* Effect.provideService(Agent.make({ model: "m", tools }), Provider.Provider, provider)
    yield* agent.prompt(input)
    return (yield* requests)[0]
  }).pipe(Effect.scoped)

const faults = (input: unknown) =>
  Effect.map(Effect.flip(asked(untyped(input))), (error) =>
    "faults" in error ? error.faults.join("\n") : ""
  )

const toolFault = (options: object): string => {
  try {
    Tool.make(untyped({ name: "t", description: "d", execute: () => Effect.void, ...options }))
    return ""
  } catch (error) {
    return String(error)
  }
}

describe("members for vendors", () => {
  it.effect("reach the provider in blocks, messages and tools", () =>
    Effect.gen(function* () {
      const tool = Tool.make({
        name: "t",
        description: "d",
        inputExamples: [{ a: 1 }],
        allowedCallers: ["programmatic"],
        vendor: { anthropic: { eager_input_streaming: true } },
        execute: () => Effect.succeed("x")
      })
      const request = yield* asked({ ...Message.user([cited]), vendor: { openai: { x: 1 } } }, [tool])
      assert.deepStrictEqual(request?.messages[0]?.content, [cited])
      assert.deepStrictEqual(request?.messages[0]?.vendor, { openai: { x: 1 } })
      const sent = request?.tools[0]
      for (const member of ["allowedCallers", "inputExamples", "vendor"] as const)
        assert.deepStrictEqual(sent?.[member], tool[member])
    })
  )

  it.effect("survive the JSON of a session", () =>
    Effect.gen(function* () {
      const messages: ReadonlyArray<Message.Message> = [
        {
          ...Message.user([cited, { ...Message.image("A", "image/png"), detail: "low" }]),
          vendor: { a: { b: 1 } }
        },
        Message.assistant([{ type: "thinking", text: "Hm", vendor: { a: { c: [] } } }])
      ]
      const codec = Schema.fromJsonString(Schema.toCodecJson(Schema.Array(Message.Message)))
      const back = yield* Schema.decodeEffect(codec)(yield* Schema.encodeEffect(codec)(messages))
      assert.deepStrictEqual(back, messages)
    })
  )

  it.effect("are refused outside of the entry of a provider, in blocks of a prompt", () =>
    Effect.gen(function* () {
      const image = Message.image("AAAA", "image/png")
      assert.include(yield* faults([{ ...image, cache_control: {} }]), 'vendor: { "anthropic": { … } }')
      assert.include(
        yield* faults([{ ...image, cache_control: {} }]),
        "content[0].cache_control is not a member"
      )
      assert.include(yield* faults([{ ...image, vendor: { anthropic: true } }]), "vendor")
      assert.include(yield* faults([{ ...image, detail: "huge" }]), "detail")
      assert.include(yield* faults({ ...Message.user("Hi"), name: "ada" }), "name")
    })
  )

  it("are refused outside of the entry of a provider, in a tool", () => {
    assert.include(toolFault({ allowed_callers: [] }), "Did you mean `allowedCallers`?")
    assert.include(
      toolFault({ eager_input_streaming: true }),
      'vendor: { "anthropic": { "eager_input_streaming": … } }'
    )
    assert.include(toolFault({ vendor: { anthropic: true } }), "an object for each provider id")
    assert.include(toolFault({ allowedCallers: ["code"] }), '"direct" and "programmatic"')
    assert.include(toolFault({ inputExamples: ["x"] }), "the arguments of a call")
  })
})
