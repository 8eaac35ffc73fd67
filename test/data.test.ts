import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Duration, Effect, Schema } from "effect"
import { AgentEvent, Message, ModelEvent, ProviderError, Run, RunOptions, RunReport } from "effect-agent"

/** What goes out as JSON text comes back as the same value. */
const roundTrips = <S extends Schema.Codec<any, any, never, never>>(name: string, schema: S) =>
  it.effect(`${name} survives JSON`, () =>
    Effect.gen(function* () {
      const codec = Schema.fromJsonString(Schema.toCodecJson(schema))
      const encode = Schema.encodeEffect(codec)
      const decode = Schema.decodeEffect(codec)
      const checked = yield* Arbitrary.checkEffect(
        Arbitrary.schema(schema),
        (value) =>
          Effect.gen(function* () {
            const text = yield* encode(value)
            // V8 13.6 reads the key "\n" as "\\" after an object with another key of one escape: not as the text has it.
            return (yield* encode(yield* decode(text))) === JSON.stringify(JSON.parse(text))
          }).pipe(Effect.orDie),
        { runs: 100, seed: 7 }
      )
      assert.strictEqual(checked._tag, "Passed")
    })
  )

describe("data", () => {
  roundTrips("Message", Message.Message)
  roundTrips("ModelEvent", ModelEvent.ModelEvent)
  roundTrips("AgentEvent", AgentEvent.AgentEvent)
  roundTrips("ProviderError", ProviderError.ProviderError)
  roundTrips("RunReport", RunReport.RunReport)
  roundTrips("RunResult", Run.RunResult)
  roundTrips("RunFailed", Run.RunFailed)

  it.effect("RunOptions survives JSON, durations as milliseconds", () =>
    Effect.gen(function* () {
      const codec = Schema.toCodecJson(RunOptions.RunOptions)
      const options: RunOptions.RunOptions = {
        model: "m",
        toolTimeout: "30 seconds",
        approvalTimeout: "Infinity",
        limits: { maxTurns: Infinity, executionTime: 250 }
      }
      const text = JSON.stringify(yield* Schema.encodeEffect(codec)(options))
      assert.include(text, '"toolTimeout":30000')
      assert.include(text, '"approvalTimeout":"Infinity"')
      const back = yield* Schema.decodeUnknownEffect(codec)(JSON.parse(text))
      assert.deepStrictEqual(back, { ...options, toolTimeout: 30_000 })
    })
  )
})

describe("RunOptions", () => {
  const isOptions = Schema.is(RunOptions.RunOptions)

  it("takes a duration in all the ways Effect does", () => {
    const inputs: ReadonlyArray<Duration.Input> = [
      { seconds: 5 },
      { minutes: 1, milliseconds: 0 },
      5_000_000_000n,
      [5, 0],
      "1.5 hours",
      "Infinity",
      Duration.seconds(5)
    ]
    for (const toolTimeout of inputs) assert.isTrue(isOptions({ model: "m", toolTimeout }), `${toolTimeout}`)
    const encode = Schema.encodeSync(Schema.toCodecJson(RunOptions.RunOptions))
    assert.deepInclude(encode({ model: "m", toolTimeout: { seconds: 5 } }), { toolTimeout: 5000 })
    assert.deepInclude(encode({ model: "m", toolTimeout: 5_000_000_000n }), { toolTimeout: 5000 })
    assert.deepInclude(encode({ model: "m", toolTimeout: "Infinity" }), { toolTimeout: "Infinity" })
  })

  it("takes nothing else for one", () => {
    for (const toolTimeout of [{ secs: 5 }, {}, { seconds: "5" }, [5], ["5", 0], "soon", null, new Date()])
      assert.isFalse(isOptions({ model: "m", toolTimeout }), JSON.stringify(toolTimeout))
    for (const toolTimeout of [
      Number.NaN,
      -1,
      -1n,
      "-1 seconds",
      "-Infinity",
      { seconds: -1 },
      [1, Number.NaN]
    ])
      assert.isFalse(isOptions({ model: "m", toolTimeout }), String(toolTimeout))
  })
})

describe("ModelEvent.append", () => {
  const reply = (events: ReadonlyArray<ModelEvent.ModelEvent>) =>
    events.reduce(ModelEvent.append, ModelEvent.emptyReply)

  it("joins interleaved blocks by their index (row 8)", () => {
    const { content } = reply([
      { _tag: "ToolCallStart", contentIndex: 0, id: "a", name: "x" },
      { _tag: "ToolCallStart", contentIndex: 1, id: "b", name: "y" },
      { _tag: "ToolCallDelta", contentIndex: 1, delta: '{"n"' },
      { _tag: "ToolCallDelta", contentIndex: 0, delta: "{}" },
      { _tag: "ToolCallDelta", contentIndex: 1, delta: ":1}" },
      { _tag: "ToolCallEnd", contentIndex: 0, rawArguments: "{}" },
      { _tag: "ToolCallEnd", contentIndex: 1, rawArguments: '{"n":1}' }
    ])
    assert.deepStrictEqual(content, [
      { type: "toolCall", id: "a", name: "x", rawArguments: "{}", params: {} },
      { type: "toolCall", id: "b", name: "y", rawArguments: '{"n":1}', params: { n: 1 } }
    ])
  })

  it("keeps an open block, and gives an unfinished call no params (row 8)", () => {
    const { content } = reply([
      { _tag: "TextDelta", contentIndex: 0, delta: "Hel" },
      { _tag: "ToolCallStart", contentIndex: 1, id: "a", name: "x" },
      { _tag: "ToolCallDelta", contentIndex: 1, delta: '{"n"' }
    ])
    assert.deepStrictEqual(content, [
      { type: "text", text: "Hel" },
      { type: "toolCall", id: "a", name: "x", rawArguments: '{"n"' }
    ])
  })

  it("forgets everything when the answer is retracted", () => {
    const told = reply([{ _tag: "TextDelta", contentIndex: 0, delta: "Hel" }, { _tag: "Retracted" }])
    assert.deepStrictEqual(told, ModelEvent.emptyReply)
  })

  it("reads no arguments as none, and broken ones as unknown (row 8)", () => {
    assert.deepStrictEqual(ModelEvent.parseArguments("  "), {})
    assert.strictEqual(ModelEvent.parseArguments('{"a":'), undefined)
  })
})
