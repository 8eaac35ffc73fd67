import { assert, describe, it } from "@effect/vitest"
import {
  Cause,
  Context,
  Duration,
  Effect,
  Exit,
  Layer,
  Logger,
  Queue,
  References,
  Schema,
  type Scope,
  Stream
} from "effect"
import { Agent, AgentEvent, Hook, Message, Provider, Tool, ToolRegistry, Transcript } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import * as z from "zod"
import { agent, failing, ofTag, outcomes, play, resultTexts, say, toolResults } from "./play.ts"

const calls = (...names: ReadonlyArray<string>) =>
  ScriptedProvider.toolCalls(...names.map((name) => ({ name, params: {} })))
const done = ScriptedProvider.text("done")

/** What a constructor throws. */
const thrownBy = (make: () => unknown): Tool.InvalidTool => {
  try {
    make()
  } catch (thrown) {
    if (thrown instanceof Tool.InvalidTool) return thrown
    throw thrown
  }
  return assert.fail("nothing was thrown")
}

const options = (members: object): any => ({
  name: "bad",
  description: "",
  parameters: { type: "object" },
  execute: () => Effect.succeed("ok"),
  ...members
})
const constructors: ReadonlyArray<(options: any) => Tool.Any> = [
  Tool.make,
  Tool.fromJsonSchema,
  Tool.fromPromise
]

const bySchema: ReadonlyArray<(options: any) => Tool.Any> = [Tool.make, Tool.fromPromise]

/** A Standard Schema that says this of itself. */
const described = (schema: object, asked: () => void = () => {}) => {
  const input = () => {
    asked()
    return schema
  }
  const validate = (value: unknown) => ({ value })
  return { "~standard": { version: 1, vendor: "own", validate, jsonSchema: { input, output: input } } }
}

const logs = () => {
  const lines: Array<string> = []
  const logger = Logger.make<unknown, void>((entry) => {
    lines.push(`${entry.logLevel}: ${String(entry.message)}`)
  })
  return {
    lines,
    layer: Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "All"))
  }
}

describe("tools of an owner", () => {
  const tool = (name: string, description = name) =>
    Tool.make({ name, description, execute: () => Effect.succeed(description) })

  it.effect("are replaced in one step, and keep their places", () =>
    Effect.gen(function* () {
      const registry = yield* ToolRegistry.make(tool("own"))
      const names = Effect.map(registry.definitions, (tools) => tools.map(({ description }) => description))
      const [a, b] = [tool("a"), tool("b")]
      assert.deepStrictEqual(yield* registry.replace("x", [a, b, tool("own", "stolen")]), ["own"])
      yield* registry.register(tool("last"))
      assert.deepStrictEqual(yield* registry.replace("y", [tool("c"), tool("a", "stolen")]), ["a"])
      const [, before] = yield* registry.definitions
      assert.deepStrictEqual(yield* registry.replace("x", [tool("d"), tool("b", "new b"), a]), [])
      assert.deepStrictEqual(yield* names, ["own", "a", "new b", "last", "c", "d"])
      assert.strictEqual((yield* registry.definitions)[1], before)
      yield* registry.unregister("a")
      yield* registry.register(tool("a", "of the application"))
      assert.deepStrictEqual(yield* registry.replace("x", [a]), ["a"])
      assert.deepStrictEqual(yield* names, ["own", "last", "c", "of the application"])
      const bad = { ...a, name: "no name" }
      assert.isTrue(Exit.isFailure(yield* Effect.exit(registry.replace("x", [bad]))))
    })
  )

  it.effect("tell watchers of changes", () =>
    Effect.gen(function* () {
      const registry = yield* ToolRegistry.make()
      const seen = yield* Queue.make<string>()
      yield* registry.changes.pipe(
        Stream.runForEach((tools) => Queue.offer(seen, tools.map(({ name }) => name).join())),
        Effect.forkScoped
      )
      assert.strictEqual(yield* Queue.take(seen), "")
      yield* registry.register(tool("a"))
      assert.strictEqual(yield* Queue.take(seen), "a")
      yield* registry.replace("x", [tool("b")])
      assert.strictEqual(yield* Queue.take(seen), "a,b")
      yield* registry.unregister("a")
      assert.strictEqual(yield* Queue.take(seen), "b")
      yield* registry.clear
      assert.strictEqual(yield* Queue.take(seen), "")
      // A slow reader gets the newest ones.
      yield* registry.register(tool("c"))
      yield* registry.register(tool("d"))
      assert.strictEqual(yield* Queue.take(seen), "c,d")
    }).pipe(Effect.scoped)
  )
})

describe("a tool that cannot work", () => {
  it("is refused by every constructor when strict is no boolean", () => {
    for (const make of constructors) {
      const { message } = thrownBy(() => make(options({ strict: "yes" })))
      assert.include(message, 'Tool "bad": `strict` is "yes"; expected true or false.')
    }
  })

  it("is refused by every constructor when its timeout is no duration", () => {
    const bad = ["5 minuts", "soon", Number.NaN, -1, -1n, "-1 seconds", {}, { minuts: 5 }, { seconds: -1 }]
    for (const timeout of [...bad, Duration.negate(Duration.seconds(1)), [1, Number.NaN], true, null]) {
      for (const make of constructors) {
        const { message } = thrownBy(() => make(options({ timeout })))
        assert.include(message, 'Tool "bad": `timeout` is ')
        assert.include(
          message,
          'expected a duration such as "30 seconds", milliseconds, { minutes: 5 } or "Infinity"'
        )
      }
    }
    assert.include(thrownBy(() => Tool.make(options({ timeout: "5 minuts" }))).message, 'is "5 minuts";')
    assert.include(thrownBy(() => Tool.make(options({ timeout: Number.NaN }))).message, "is NaN;")
    for (const timeout of [
      "5 minutes",
      "Infinity",
      0,
      10,
      10n,
      { minutes: 5 },
      Duration.infinity,
      [1, 0],
      Infinity
    ]) {
      for (const make of constructors) assert.isTrue(Object.is(make(options({ timeout })).timeout, timeout))
    }
  })

  it("is refused by every constructor when providers would refuse its name", () => {
    const names = {
      "get weather": "get_weather",
      "files.read": "files_read",
      größe: "gr__e",
      [`${"a".repeat(64)}b`]: "a".repeat(64)
    }
    for (const [name, better] of Object.entries(names)) {
      for (const make of constructors) {
        const { message, tool } = thrownBy(() => make(options({ name })))
        assert.strictEqual(tool, name)
        assert.include(message, "only letters, digits, _ and -, at most 64 characters")
        assert.include(message, `Use "${better}"`)
      }
    }
    assert.include(thrownBy(() => Tool.make(options({ name: "" }))).message, "`name` is missing")
    assert.include(thrownBy(() => Tool.make(options({ name: undefined }))).message, "`name` is missing")
    for (const name of ["a", "a".repeat(64), "get_weather-2", "_", "A1"]) Tool.make(options({ name }))
  })

  it("is refused when a member is missing or is something else", () => {
    const faults: ReadonlyArray<readonly [members: object, words: string]> = [
      [{ description: undefined }, "`description` is missing"],
      [{ execute: undefined }, "`execute` must be a function; it is undefined"],
      [{ execute: "ls" }, '`execute` must be a function; it is "ls"'],
      [{ executionMode: "serial" }, '`executionMode` is "serial"; expected "sequential" or "parallel"'],
      [{ prepareArguments: {} }, "`prepareArguments` must be a function"]
    ]
    for (const [members, words] of faults) {
      for (const make of constructors) assert.include(thrownBy(() => make(options(members))).message, words)
    }
  })

  it("is refused when its params are no schema of an object", () => {
    const faults: ReadonlyArray<readonly [params: unknown, words: string]> = [
      [
        { city: z.string(), days: z.number() },
        "a plain object with the keys city, days, not a schema. Put it into z.object"
      ],
      [{ type: "object", properties: {} }, "Use Tool.fromJsonSchema"],
      ["city", '`params` must be a schema; it is "city"'],
      [Schema.String, "`params` is a schema of string, but models call tools with an object"],
      [Schema.Array(Schema.String), "`params` is a schema of arrays"],
      [Schema.NumberFromString, "`params` is a schema of string"],
      [Schema.Union([Schema.String, Schema.Finite]), "`params` is a schema of string or number"],
      [Schema.Literals(["a", "b"]), "`params` is a schema of literal,"]
    ]
    for (const [params, words] of faults) {
      assert.include(thrownBy(() => Tool.make(options({ params }))).message, words)
      assert.include(thrownBy(() => Tool.fromPromise(options({ params }))).message, words)
    }
    for (const parameters of [{ type: "string" }, { type: ["string", "null"] }]) {
      assert.include(
        thrownBy(() => Tool.fromJsonSchema(options({ parameters }))).message,
        "JSON Schema of its params is of type"
      )
    }
    assert.include(
      thrownBy(() => Tool.fromJsonSchema(options({ parameters: "x" }))).message,
      "`parameters` must be a JSON Schema"
    )
    for (const parameters of [{}, { type: ["object", "null"] }, { anyOf: [] }])
      Tool.fromJsonSchema(options({ parameters }))
  })

  it("is refused when a Standard Schema of its params takes something else than an object", () => {
    const text = z.string().meta({ id: "Text" })
    const faults: ReadonlyArray<readonly [params: unknown, what: string]> = [
      [z.string(), "string"],
      [z.string().optional(), "string"],
      [z.string().transform((city) => ({ city })), "string"],
      [z.number(), "number"],
      [z.boolean(), "boolean"],
      [z.null(), "null"],
      [z.enum(["a", "b"]), "string"],
      [z.array(z.object({})), "array"],
      [z.union([z.string(), z.array(z.string())]), "string or array"],
      [z.intersection(z.string(), z.any()), "string"],
      [text, "string"],
      [z.union([text, z.number()]), "string or number"],
      [described({ const: 1 }), "constant"],
      [described({ enum: ["a", null] }), "constant"],
      [described({ oneOf: [{ type: "integer" }, { type: ["integer", "null"] }] }), "integer or null"]
    ]
    for (const [params, what] of faults) {
      for (const make of bySchema) {
        const { message, tool } = thrownBy(() => make(options({ parameters: undefined, params })))
        assert.strictEqual(tool, "bad")
        assert.include(message, `\`params\` is a schema of ${what}, but models call tools with an object.`)
        assert.include(
          message,
          "Put it into one, such as z.object({ value: … }) or Schema.Struct({ value: … })."
        )
      }
    }
  })

  it("is not refused when an object may be what its params take", () => {
    const circle = { $ref: "#/$defs/Loop", $defs: { Loop: { anyOf: [{ $ref: "#/$defs/Loop" }] } } }
    const taken = [
      z.object({ city: z.string() }),
      z.object({}).optional(),
      z.object({}).nullable(),
      z.record(z.string(), z.number()),
      z.union([z.string(), z.object({})]),
      z.lazy(() => z.object({})),
      z.object({ id: z.string() }).meta({ id: "Named" }),
      z.any(),
      described({ anyOf: [] }),
      described({ type: undefined, properties: {} }),
      described({ $ref: "#/$defs/None" }),
      described(circle),
      Schema.Union([Schema.String, Schema.Struct({})])
    ]
    for (const params of taken) {
      Tool.make(options({ parameters: undefined, params }))
      Tool.fromPromise(options({ parameters: undefined, params }))
    }
    const silent = { "~standard": { version: 1, vendor: "old", validate: () => ({ value: {} }) } }
    assert.throws(
      () => Tool.make(options({ parameters: undefined, params: silent })),
      /Give `parameters` beside it/
    )
    Tool.make(options({ parameters: { type: "object" }, params: silent }))
    // What the model is told is said beside it, so that the schema only reads.
    Tool.make(options({ params: z.preprocess(() => "x", z.string()) }))
  })

  it("is refused when the JSON Schema beside its params is of something else than an object", () => {
    for (const make of constructors) {
      const { message } = thrownBy(() => make(options({ parameters: { type: "string" } })))
      assert.include(message, "JSON Schema of its params is of type string")
      make(options({ parameters: { type: "object", title: undefined } }))
    }
  })

  it("asks a Standard Schema once what it takes", () => {
    let asked = 0
    const params = described({ type: "object" }, () => asked++)
    const tool = Tool.make(options({ parameters: undefined, params }))
    assert.deepStrictEqual([tool.parameters, tool.parameters], [{ type: "object" }, { type: "object" }])
    assert.strictEqual(asked, 1)
  })

  it.effect("is refused by a registry and an agent, however it was made", () =>
    Effect.gen(function* () {
      const bad = { ...say("ok"), timeout: "soon" as never }
      const registry = yield* ToolRegistry.make()
      const provider = ScriptedProvider.layer([])
      for (const refused of [
        registry.register(bad),
        ToolRegistry.make(bad),
        Effect.provide(Effect.void, ToolRegistry.layer(bad)),
        Effect.scoped(Agent.make({ model: "m", tools: [bad] })).pipe(Effect.provide(provider))
      ]) {
        const exit = yield* Effect.exit(refused)
        assert.isTrue(Exit.isFailure(exit))
        const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
        assert.instanceOf(defect, Tool.InvalidTool)
      }
      assert.deepStrictEqual(yield* registry.definitions, [])
      yield* registry.register(say("ok"))
      const twice = yield* Effect.exit(registry.register(say("ok")))
      assert.match(
        String(Exit.isFailure(twice) && Cause.squash(twice.cause)),
        /Tool "ok": Another tool has this name\. Give each tool/
      )
    })
  )

  it.effect.each(["parallel", "sequential"] as const)(
    "ends a run only after each call has its result (%s)",
    (toolExecution) =>
      Effect.gen(function* () {
        let reads = 0
        const odd: Tool.Runnable = Object.defineProperty({ ...say("odd") }, "timeout", {
          get: () => (reads++ === 0 ? "1 second" : "soon")
        })
        const script = yield* agent([calls("fine", "odd", "fine"), done], {
          tools: [say("fine"), odd],
          toolExecution
        })
        const exit = yield* Effect.exit(script.agent.prompt("hi"))
        assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
        const { events } = script
        assert.strictEqual(events.at(-1)?._tag, "RunEnd")
        assert.strictEqual(
          ofTag(events, "ToolExecutionEnd").length,
          ofTag(events, "ToolExecutionStart").length
        )
        const view = events.reduce(AgentEvent.fold, AgentEvent.initial([]))
        assert.deepStrictEqual(
          toolResults(view.messages).map(({ toolCallId }) => toolCallId),
          ["call-1", "call-2", "call-3"]
        )
        assert.deepStrictEqual(Transcript.violations(view.messages), [])
        assert.deepStrictEqual([...view.pendingToolCalls], [])
      })
  )

  it.effect("stops the calls beside one that makes the batch die", () =>
    Effect.gen(function* () {
      let reads = 0
      const odd: Tool.Runnable = Object.defineProperty({ ...say("odd") }, "timeout", {
        get: () => (reads++ === 0 ? "1 second" : "soon")
      })
      let wasInterrupted = false
      const slow = Tool.make({
        name: "slow",
        description: "Never ends by itself.",
        timeout: "Infinity",
        execute: () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void (wasInterrupted = true)))
      })
      const script = yield* agent([calls("slow", "odd"), done], { tools: [slow, odd] })
      const exit = yield* Effect.exit(script.agent.prompt("hi"))
      assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
      assert.isTrue(wasInterrupted)
      assert.strictEqual(ofTag(script.events, "ToolExecutionEnd").length, 2)
    })
  )
})

describe("execute", () => {
  const params = Schema.Struct({ n: Schema.Finite })
  const made: ReadonlyArray<Tool.Runnable> = [
    Tool.make({ name: "made", description: "", params, execute: ({ n }) => Effect.succeed(`raw ${n}`) }),
    Tool.fromPromise({ name: "promised", description: "", params, execute: async ({ n }) => `raw ${n}` }),
    Tool.fromJsonSchema({
      name: "json",
      description: "",
      parameters: {},
      execute: () => Effect.succeed("raw 1")
    })
  ]

  it.effect("is what runs: a copy of a tool with another one runs that", () =>
    Effect.gen(function* () {
      for (const tool of made) {
        const wrapped = {
          ...tool,
          execute: (n: any) => Effect.map(tool.execute(n), (said) => `<${String(said)}>`)
        }
        const script = [ScriptedProvider.toolCall(tool.name, { n: 1 }), done]
        assert.deepStrictEqual(resultTexts((yield* play(script, { tools: [tool] })).view.messages), ["raw 1"])
        assert.deepStrictEqual(resultTexts((yield* play(script, { tools: [wrapped] })).view.messages), [
          "<raw 1>"
        ])
      }
    })
  )

  it.effect("is wrapped by Tool.wrap, with its params and types kept", () =>
    Effect.gen(function* () {
      for (const tool of made) {
        const wrapped = Tool.wrap(
          tool,
          (execute) => (n) => Effect.map(execute(n), (value) => `<${String(value)}>`)
        )
        const script = [ScriptedProvider.toolCall(tool.name, { n: 1 }), done]
        const { requests, view } = yield* play(script, { tools: [wrapped] })
        assert.deepStrictEqual(resultTexts(view.messages), ["<raw 1>"])
        assert.deepStrictEqual(requests[0]?.tools, [
          { name: tool.name, description: "", parameters: tool.parameters }
        ])
      }
      class Clock extends Context.Service<Clock, { readonly now: number }>()("test/Clock") {}
      const typed = Tool.wrap(
        Tool.make({
          name: "typed",
          description: "",
          params,
          failure: Schema.Literal("odd"),
          execute: ({ n }) => (n % 2 === 0 ? Effect.succeed(n) : Effect.fail("odd" as const))
        }),
        (execute) => (given) =>
          Effect.flatMap(Clock, ({ now }) => Effect.map(execute(given), (n) => n === now))
      )
      const kept: Tool.Tool<"typed", { readonly n: number }, boolean, "odd", Clock> = typed
      const required: Tool.Requirements<typeof typed> extends Clock ? true : false = true
      const registry = yield* ToolRegistry.make(typed).pipe(Effect.provideService(Clock, { now: 2 }))
      assert.isTrue(required)
      assert.strictEqual((yield* registry.get("typed"))?.name, kept.name)
    })
  )

  it.effect(
    "of a copy may fail, die, need a scope, and return another type than the schema of the first",
    () =>
      Effect.gen(function* () {
        const first = Tool.make({
          name: "first",
          description: "",
          success: Schema.Struct({ n: Schema.Finite }),
          execute: () => Effect.succeed({ n: 1 })
        })
        let released = 0
        const copies: ReadonlyArray<
          readonly [execute: () => Effect.Effect<unknown, unknown, Scope.Scope>, text: string]
        > = [
          [() => Effect.succeed("text"), "text"],
          [() => Effect.succeed({ n: 2 }), '{"n":2}'],
          [() => Effect.fail("no"), "no"],
          [() => Effect.die("bug"), "Tool first failed unexpectedly: bug"],
          [
            () =>
              Effect.as(
                Effect.addFinalizer(() => Effect.sync(() => released++)),
                "scoped"
              ),
            "scoped"
          ]
        ]
        for (const [execute, text] of copies) {
          const { view } = yield* play([calls("first"), done], { tools: [{ ...first, execute }] })
          assert.deepStrictEqual(resultTexts(view.messages), [text])
        }
        assert.strictEqual(released, 1)
      })
  )

  it.effect("is all that a tool by hand needs (row 136)", () =>
    Effect.gen(function* () {
      const byHand: Tool.Tool<"hand", Schema.Json, unknown, unknown, never> = {
        name: "hand",
        description: "",
        parameters: { type: "object" },
        decode: Effect.succeed,
        execute: (params) => Effect.fail({ message: JSON.stringify(params) })
      }
      const { view } = yield* play([ScriptedProvider.toolCall("hand", { a: 1 }), done], { tools: [byHand] })
      assert.deepStrictEqual(resultTexts(view.messages), ['{"a":1}'])
    })
  )

  it.effect("that returns no Effect is an error for the model, and the log says what to use", () =>
    Effect.gen(function* () {
      const cases: ReadonlyArray<readonly [tool: Tool.Runnable, told: string, advice: string]> = [
        [
          Tool.make(options({ execute: async () => "x" })),
          "execute returned a promise",
          "Use Tool.fromPromise for an async function"
        ],
        [
          Tool.make(options({ execute: () => Promise.reject(new Error("unheard")) })),
          "execute returned a promise",
          "Use Tool.fromPromise"
        ],
        [
          Tool.fromJsonSchema(options({ execute: async () => "x" })),
          "execute returned a promise",
          "Use Tool.fromPromise"
        ],
        [
          Tool.make(options({ execute: () => "x" })),
          "execute returned no Effect",
          "Return Effect.succeed(value)"
        ],
        [
          Tool.make(options({ execute: () => undefined })),
          "execute returned no Effect",
          "Return Effect.succeed(value)"
        ],
        [
          Tool.fromPromise(options({ execute: () => Effect.succeed(1) })),
          "execute returned an Effect",
          "Use Tool.make"
        ]
      ]
      for (const [tool, told, advice] of cases) {
        const { layer, lines } = logs()
        const { events, view } = yield* play([calls("bad"), done], { tools: [tool], layer })
        assert.deepStrictEqual(outcomes(events), ["error"])
        assert.include(resultTexts(view.messages)[0], `Tool bad does not work: its ${told}`)
        const errors = lines.filter((line) => line.startsWith("Error"))
        assert.strictEqual(errors.length, 1)
        assert.include(errors[0], advice)
      }
    })
  )
})

describe("a result", () => {
  it.effect("that merely has a member `content` is a value", () =>
    Effect.gen(function* () {
      const values: ReadonlyArray<readonly [value: unknown, text: string]> = [
        ...[
          { content: [] },
          { content: "hi" },
          { content: 5, isError: true },
          { content: ["hi"], isError: true },
          { content: [{ type: "paragraph", text: "hi" }] },
          { content: [{ type: "text", text: 1 }], isError: true },
          { content: [{ type: "text", text: "hi" }], isError: "no" },
          { content: [{ type: "text", text: "hi" }], role: "assistant" },
          { content: [{ type: "text", text: "hi" }], isError: true, toolCallId: "c1" },
          { isError: true }
        ].map((value) => [value, JSON.stringify(value)] as const),
        [Tool.output("hi"), "hi"],
        [{ ...Tool.output("hi") }, "hi"]
      ]
      for (const [value, text] of values) {
        for (const tool of [
          say("look", value),
          Tool.fromPromise({ name: "look", description: "", execute: () => value })
        ]) {
          const { events, view } = yield* play([calls("look"), done], { tools: [tool] })
          assert.deepStrictEqual(resultTexts(view.messages), [text])
          assert.deepStrictEqual(outcomes(events), ["success"])
        }
      }
      const search = Tool.make({
        name: "look",
        description: "",
        success: Schema.Struct({ content: Schema.Array(Schema.String) }),
        execute: () => Effect.succeed({ content: [] })
      })
      const [result] = toolResults((yield* play([calls("look"), done], { tools: [search] })).view.messages)
      assert.deepStrictEqual(result?.details, { content: [] })
    })
  )

  it.effect(
    "of a tool of MCP, pi or Karl is that result, with its images, details and error mark (rows 138, 146)",
    () =>
      Effect.gen(function* () {
        const image = Message.image("aGk=", "image/png")
        const text = { type: "text", text: "hi" }
        const said = [Message.text("hi")]
        const values: ReadonlyArray<readonly [value: unknown, result: Partial<Message.ToolResult>]> = [
          [
            { content: [text], isError: true, details: { path: "x", line: undefined } },
            { content: said, details: { path: "x" } }
          ],
          [{ content: [{ ...text, annotations: {} }], isError: true, _meta: {} }, { content: said }],
          [{ content: "hi", isError: true }, { content: said }],
          [{ content: [], isError: true }, { content: [] }],
          [
            { content: [text], isError: false },
            { content: said, outcome: "success" }
          ],
          [
            { content: [text], details: undefined, usage: {} },
            { content: said, outcome: "success" }
          ],
          [
            { content: [text, { type: "image", data: "aGk=", mimeType: "image/png" }] },
            { content: [...said, image], outcome: "success" }
          ],
          [
            {
              content: [{ type: "image", source: { type: "base64", mediaType: "image/png", data: "aGk=" } }],
              isError: true
            },
            { content: [image] }
          ],
          [
            { content: [{ type: "resource", resource: { uri: "file:///a", text: "hi" } }], isError: true },
            { content: said }
          ],
          [
            { content: [{ type: "resource_link", uri: "file:///a", name: "a" }] },
            { content: [Message.text("[resource: file:///a] a")], outcome: "success" }
          ],
          [
            { content: [], structuredContent: { n: 1 } },
            { content: [Message.text('{"n":1}')], details: { n: 1 }, outcome: "success" }
          ]
        ]
        for (const [value, expected] of values) {
          const { outcome = "error" } = expected
          for (const tool of [
            say("look", value),
            Tool.fromPromise({ name: "look", description: "", execute: async () => value })
          ]) {
            const { view } = yield* play([calls("look"), done], { tools: [tool] })
            assert.deepInclude(toolResults(view.messages)[0], {
              ...expected,
              outcome,
              isError: outcome === "error"
            })
          }
        }
      })
  )

  it.effect("of a tool of pi ends the run where it asks for it", () =>
    Effect.gen(function* () {
      const { events } = yield* play([calls("look")], {
        tools: [say("look", { content: [{ type: "text", text: "bye" }], details: {}, terminate: true })]
      })
      assert.strictEqual(ofTag(events, "RunEnd")[0]?.status, "terminated")
    })
  )

  it.effect("stays the error it is, with members that are undefined, and leaves no mark in events", () =>
    Effect.gen(function* () {
      const error: any = { isError: true, details: undefined, terminate: undefined }
      for (const value of [Tool.output("no", error), { ...Tool.failure("no"), details: undefined }]) {
        const { events, view } = yield* play([calls("look"), done], { tools: [say("look", value)] })
        assert.deepStrictEqual(outcomes(events), ["error"])
        assert.deepStrictEqual(resultTexts(view.messages), ["no"])
        assert.deepStrictEqual(ofTag(events, "ToolExecutionEnd")[0]?.result, {
          content: [Message.text("no")],
          isError: true
        })
      }
    })
  )

  it.effect("by Tool.output with a content that is none is an error", () =>
    Effect.gen(function* () {
      const bad: any = [{ type: "video" }]
      const { layer, lines } = logs()
      const { events, view } = yield* play([calls("look"), done], {
        tools: [say("look", Tool.output(bad))],
        layer
      })
      assert.deepStrictEqual(outcomes(events), ["error"])
      assert.include(
        resultTexts(view.messages)[0],
        "The content of Tool.output must be a string, or a list of text and image blocks"
      )
      assert.isTrue(lines.some((line) => line.startsWith("Error: Tool look returned")))
    })
  )

  it.effect("of a hook that stands in for the tool is a value too, unless Tool.output made it", () =>
    Effect.gen(function* () {
      const standIn = (result: any) =>
        play([calls("look"), done], {
          tools: [say("look")],
          hooks: [Hook.beforeTool(() => Effect.succeed({ skip: true, result }))]
        })
      assert.deepStrictEqual(resultTexts((yield* standIn({ content: [] })).view.messages), ['{"content":[]}'])
      assert.deepStrictEqual(resultTexts((yield* standIn(Tool.output("cached"))).view.messages), ["cached"])
    })
  )

  it.effect(
    "that is not JSON is an error that says what to return instead, to the model and to the log",
    () =>
      Effect.gen(function* () {
        const circle: { name: string; self?: unknown } = { name: "c" }
        circle.self = circle
        const shared = { a: 1 }
        const values: ReadonlyArray<readonly [value: unknown, advice: string]> = [
          [new Map([["a", 1]]), "A Map is not JSON. Return Object.fromEntries(map) or [...map]."],
          [
            { found: new Map() },
            'A Map is not JSON. Return Object.fromEntries(map) or [...map]. It is at "found".'
          ],
          [new Set([1]), "Return [...set]"],
          [Number.NaN, "NaN is not JSON. Return null or a text."],
          [[1, -Infinity], "-Infinity is not JSON"],
          [
            new Uint8Array(1000),
            "Bytes are not JSON. Return their text, base64, or an image: Tool.output([Message.image("
          ],
          [Buffer.from("hi"), "Bytes are not JSON"],
          [new ArrayBuffer(8), "Bytes are not JSON"],
          [10n, "A bigint is not JSON. Return String(value)."],
          [{ total: 10n }, 'It is at "total".'],
          [circle, "It refers to itself"],
          [() => 1, "A function is not JSON"],
          [[() => 1], 'A function is not JSON. Return data. It is at "0".'],
          [[Symbol("s")], "A symbol is not JSON"],
          [new Error("no"), "Throw it, or fail with it"],
          [{ later: Promise.resolve(1) }, "Await it"],
          [/a/, "A RegExp is not JSON"],
          [{ toJSON: () => new Map() }, "A Map is not JSON"]
        ]
        for (const [value, advice] of values) {
          const { layer, lines } = logs()
          const { events, view } = yield* play([calls("odd"), done], { tools: [say("odd", value)], layer })
          assert.deepStrictEqual(outcomes(events), ["error"], advice)
          const text = resultTexts(view.messages)[0] ?? ""
          assert.include(text, `The tool returned a value that is not JSON. `)
          assert.include(text, advice)
          assert.isBelow(text.length, 300)
          const errors = lines.filter((line) => line.startsWith("Error"))
          assert.strictEqual(errors.length, 1)
          assert.include(errors[0], "Tool odd returned a value that is not JSON. ")
          assert.include(errors[0], advice)
          assert.isTrue(Tool.render(value).isError)
        }
        const json: ReadonlyArray<readonly [value: unknown, text: string]> = [
          [[shared, shared, { shared }], '[{"a":1},{"a":1},{"shared":{"a":1}}]'],
          [
            { at: new Date(0), url: new URL("http://a.b/") },
            '{"at":"1970-01-01T00:00:00.000Z","url":"http://a.b/"}'
          ],
          [{ a: undefined, b: [undefined, null] }, '{"b":[null,null]}'],
          [
            new (class Point {
              readonly x = 1
              length() {
                return 1
              }
            })(),
            '{"x":1}'
          ],
          [Object.create(null), "{}"],
          [{ run: () => 1, mark: Symbol("s"), a: 1 }, '{"a":1}']
        ]
        for (const [value, text] of json) {
          const { events, view } = yield* play([calls("odd"), done], { tools: [say("odd", value)] })
          assert.deepStrictEqual(outcomes(events), ["success"])
          assert.deepStrictEqual(resultTexts(view.messages), [text])
        }
      })
  )
})

describe("types", () => {
  it("a list of tools that need nothing needs nothing, and one that hides what it needs says so", () => {
    type Needs<A> = A extends Effect.Effect<unknown, unknown, infer R> ? R : "no effect"
    type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
    const loaded: ReadonlyArray<Tool.Runnable> = [say("a"), failing("b")]
    const hidden: ReadonlyArray<Tool.Any> = loaded
    const runnable = Agent.make({ model: "m", tools: loaded })
    const any = Agent.make({ model: "m", tools: hidden })
    const fine: Same<Needs<typeof runnable>, Provider.Provider | Scope.Scope> = true
    const told: Same<Needs<typeof any>, Provider.Provider | Scope.Scope | Tool.HiddenRequirements> = true
    class Db extends Schema.Class<Db>("Db")({}) {}
    const needy = Tool.make({
      name: "db",
      description: "",
      execute: (): Effect.Effect<void, never, Db> => Effect.die("no")
    })
    const refused: typeof needy extends Tool.Runnable ? true : false = false
    assert.deepStrictEqual([fine, told, refused], [true, true, false])
  })
})
