import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema, Stream } from "effect"
import { AiError, McpClient, Prompt, Tool as AiTool, Toolkit } from "effect/ai"
import { Agent, type AgentEvent, Hook, Message, Tool, ToolRegistry } from "effect-agent"
import { AiTools } from "effect-agent/ai"
import { ScriptedProvider } from "effect-agent/testing"

class Stations extends Context.Service<
  Stations,
  { readonly degrees: (city: string) => Effect.Effect<number, string> }
>()("test/Stations") {
  static readonly layer = Layer.succeed(Stations, {
    degrees: (city) => (city === "Atlantis" ? Effect.fail("no such city") : Effect.succeed(city.length))
  })
}

const Weather = AiTool.make("weather", {
  description: "The weather in a city.",
  parameters: Schema.Struct({ city: Schema.String, days: Schema.optionalKey(Schema.Finite) }),
  success: Schema.Struct({ degrees: Schema.Finite, at: Schema.DateFromString }),
  failure: Schema.String,
  failureMode: "return"
}).annotate(AiTool.Title, "Weather")

class Grounded extends Schema.TaggedError<Grounded>()("Grounded", { until: Schema.String }) {
  override get message() {
    return `Grounded until ${this.until}`
  }
}

/** Its handler asks for `Stations` when it is called, not when it is made. */
const Fly = AiTool.make("fly", {
  parameters: Schema.Struct({ to: Schema.String }),
  success: Schema.String,
  failure: Grounded,
  dependencies: [Stations]
})

const Kit = Toolkit.make(Weather, Fly)

const KitLive = Kit.toLayer(
  Effect.map(Stations, (stations) =>
    Kit.of({
      weather: ({ city }, { preliminary }) =>
        Effect.gen(function* () {
          yield* preliminary({ degrees: 0, at: new Date(0) })
          return { degrees: yield* stations.degrees(city), at: new Date(0) }
        }),
      fly: ({ to }) =>
        Effect.gen(function* () {
          const { degrees } = yield* Stations
          if (to === "Atlantis") return yield* new Grounded({ until: "noon" })
          return `${to}, ${yield* Effect.orDie(degrees(to))} degrees`
        })
    })
  )
)

/** Calls one tool by the registry, as the loop does. */
const run = Effect.fnUntraced(function* <T extends Tool.Any>(
  tools: ReadonlyArray<T>,
  name: string,
  params: Schema.Json
): Effect.fn.Return<
  { readonly output: ToolRegistry.Executed; readonly shown: ReadonlyArray<AgentEvent.ToolOutput> },
  ToolRegistry.ToolNotFound | ToolRegistry.InvalidArguments,
  Tool.Requirements<T>
> {
  const shown: Array<AgentEvent.ToolOutput> = []
  const registry = yield* ToolRegistry.make(...tools)
  const rawArguments = JSON.stringify(params)
  const prepared = yield* registry.prepare({ type: "toolCall", id: "c1", name, rawArguments, params })
  const output = yield* registry.execute(prepared, {
    toolCallId: "c1",
    idempotencyKey: "key",
    runId: "r",
    turn: 1,
    progress: (partial) => Effect.sync(() => void shown.push(Tool.render(partial)))
  })
  return { output, shown }
})

const withKit = <A, E>(
  use: (tools: ReadonlyArray<AiTools.FromToolkit<typeof Kit.tools>>) => Effect.Effect<A, E, Stations>
) =>
  AiTools.fromToolkit(Kit).pipe(
    Effect.flatMap(use),
    Effect.provide(Layer.provideMerge(KitLive, Stations.layer))
  )

/** A tool whose name is known when the program runs, as those of MCP. */
const named = (name: string) =>
  AiTool.make(name, { parameters: Schema.Unknown, success: Schema.String, failure: Schema.String })
type Found = Toolkit.WithHandler<Record<string, ReturnType<typeof named>>>

/** The result of a handler that answers with the name it is called by. */
const answered = (name: string) => ({
  result: name,
  encodedResult: name,
  isFailure: false,
  preliminary: false
})

describe("AiTools.fromToolkit", () => {
  it.effect("tells the model of each tool in the toolkit's words", () =>
    withKit((tools) =>
      Effect.sync(() => {
        assert.deepStrictEqual(
          tools.map(({ description, label, name }) => [name, label, description]),
          [
            ["weather", "Weather", "The weather in a city."],
            ["fly", undefined, ""]
          ]
        )
        assert.deepInclude(tools[0]?.parameters, { type: "object", required: ["city"] })
      })
    )
  )

  it.effect("runs handlers with their services, in a session (rows 146, 268)", () =>
    Effect.gen(function* () {
      const provider = ScriptedProvider.layer([
        ScriptedProvider.toolCalls(
          { name: "weather", params: { city: "Oslo" } },
          { name: "fly", params: { to: "Oslo" } }
        ),
        ScriptedProvider.text("Done.")
      ])
      const program = Effect.gen(function* () {
        const agent = yield* Agent.make({ model: "m", tools: yield* AiTools.fromToolkit(Kit) })
        return yield* agent.prompt("Hi")
      }).pipe(Effect.scoped)
      const { newMessages } = yield* program.pipe(
        Effect.provide(Layer.provideMerge(KitLive, Layer.merge(provider, Stations.layer)))
      )
      assert.deepStrictEqual(
        newMessages.flatMap((message) => (message.role === "toolResult" ? [Message.textOf(message)] : [])),
        [`{"degrees":4,"at":"1970-01-01T00:00:00.000Z"}`, "Oslo, 4 degrees"]
      )
    })
  )

  it.effect("shows preliminary results as progress, and gives the encoded result to the application", () =>
    withKit((tools) =>
      Effect.gen(function* () {
        const { output, shown } = yield* run(tools, "weather", { city: "Oslo" })
        const at = "1970-01-01T00:00:00.000Z"
        assert.deepStrictEqual(
          shown.map(({ details }) => details),
          [{ degrees: 0, at }]
        )
        assert.deepStrictEqual(output.details, { degrees: 4, at })
      })
    )
  )

  it.effect("makes an error result of a failure, in either mode", () =>
    withKit((tools) =>
      Effect.gen(function* () {
        const returned = yield* run(tools, "weather", { city: "Atlantis" })
        assert.deepStrictEqual(returned.output, {
          content: [Message.text("no such city")],
          details: "no such city",
          isError: true,
          outcome: "error"
        })
        const failed = yield* run(tools, "fly", { to: "Atlantis" })
        assert.deepStrictEqual(failed.output, {
          content: [Message.text("Grounded until noon")],
          details: { _tag: "Grounded", until: "noon" },
          isError: true,
          outcome: "error"
        })
      })
    )
  )

  it.effect("fails with what a tool fails with", () =>
    withKit((tools) =>
      Effect.gen(function* () {
        const fly = tools.find(({ name }) => name === "fly")
        assert(fly !== undefined)
        const error = yield* fly.execute({ to: "Atlantis" }).pipe(
          Effect.provideService(Tool.ToolContext, {
            toolCallId: "c",
            idempotencyKey: "key",
            runId: "r",
            turn: 1,
            progress: () => Effect.void
          }),
          Effect.flip
        )
        assert.strictEqual(error._tag, "Grounded")
      })
    )
  )

  it.effect("refuses params the schema does not take, after coercing what can be", () =>
    withKit((tools) =>
      Effect.gen(function* () {
        const { output } = yield* run(tools, "weather", { city: 1234, days: "3" })
        assert.strictEqual(output.outcome, "success")
        const error = yield* Effect.flip(run(tools, "weather", { days: 3 }))
        assert.strictEqual(error._tag, "InvalidArguments")
        assert.include(error.message, "city")
      })
    )
  )

  it.effect("takes a toolkit that has its handlers, tools of plain JSON Schema among them", () =>
    Effect.gen(function* () {
      const Echo = AiTool.dynamic("echo", {
        description: "Echoes.",
        parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] }
      })
      const kit = yield* Toolkit.make(Echo)
      const tools = yield* AiTools.fromToolkit(kit)
      const { output } = yield* run(tools, "echo", { n: "42" })
      assert.deepStrictEqual(output.details, { n: 42 })
      assert.strictEqual((yield* Effect.flip(run(tools, "echo", {})))._tag, "InvalidArguments")
    }).pipe(
      Effect.provide(
        Toolkit.make(AiTool.dynamic("echo", { parameters: { type: "object" } })).toLayer({
          echo: (params) => Effect.succeed(params)
        })
      )
    )
  )

  it.effect("gives the model what `toModelOutput` says, images included", () =>
    Effect.gen(function* () {
      const Shot = AiTool.make("shot", {
        success: Schema.Struct({ bytes: Schema.Finite }),
        toModelOutput: ({ bytes }) => [
          Prompt.makePart("text", { text: `${bytes} bytes` }),
          Prompt.makePart("file", { mediaType: "image/png", data: new Uint8Array([1, 2, 3]) }),
          Prompt.makePart("file", { mediaType: "image/png", data: "AQID" }),
          Prompt.makePart("file", { mediaType: "image/png", data: "data:image/jpeg;base64,AQID" }),
          Prompt.makePart("file", { mediaType: "image/png", data: new URL("https://example.com/a.png") }),
          Prompt.makePart("file", { mediaType: "image/png", data: "file-1" }),
          Prompt.makePart("file", { mediaType: "application/pdf", data: new Uint8Array([1]) })
        ]
      })
      const Shots = Toolkit.make(Shot)
      const tools = yield* AiTools.fromToolkit(Shots).pipe(
        Effect.provide(Shots.toLayer({ shot: () => Effect.succeed({ bytes: 3 }) }))
      )
      const { output } = yield* run(tools, "shot", {})
      assert.deepStrictEqual(output.content, [
        Message.text("3 bytes"),
        Message.image("AQID", "image/png"),
        Message.image("AQID", "image/png"),
        Message.image("AQID", "image/jpeg"),
        { type: "image", source: { url: "https://example.com/a.png" } },
        Message.text("[image/png omitted]"),
        Message.text("[application/pdf omitted]")
      ])
      assert.deepStrictEqual(output.details, { bytes: 3 })
    })
  )

  it.effect(
    "says nothing for a tool that returns nothing, and a reason for one that reports an AI error",
    () =>
      Effect.gen(function* () {
        const Both = Toolkit.make(AiTool.make("nothing"), AiTool.make("broken"))
        const tools = yield* AiTools.fromToolkit(Both).pipe(
          Effect.provide(
            Both.toLayer({
              nothing: () => Effect.void,
              broken: () => Effect.fail(new AiError.InvalidUserInputError({ description: "no such file" }))
            })
          )
        )
        assert.deepStrictEqual((yield* run(tools, "nothing", {})).output.content, [Message.text("")])
        assert.deepStrictEqual((yield* run(tools, "broken", {})).output.content, [
          Message.text("Invalid user input: no such file")
        ])
      })
  )

  it.effect("leaves out tools that the vendor runs", () =>
    Effect.gen(function* () {
      const search = AiTool.providerDefined({
        id: "vendor.search",
        customName: "search",
        providerName: "web_search"
      })()
      const Mixed = Toolkit.make(search, AiTool.make("own"))
      const tools = yield* AiTools.fromToolkit(Mixed).pipe(
        Effect.provide(Mixed.toLayer({ own: () => Effect.void }))
      )
      assert.deepStrictEqual(
        tools.map(({ name }) => name),
        ["own"]
      )
    })
  )

  describe("tools that need an approval", () => {
    const Guarded = Toolkit.make(
      AiTool.make("wipe", { success: Schema.String, needsApproval: true }),
      AiTool.make("read", { success: Schema.String, needsApproval: false })
    )
    const live = Guarded.toLayer({ wipe: () => Effect.succeed("wiped"), read: () => Effect.succeed("read") })

    it.effect("refuse to run when nobody gives one", () =>
      Effect.gen(function* () {
        const tools = yield* AiTools.fromToolkit(Guarded)
        assert.strictEqual((yield* run(tools, "wipe", {})).output.outcome, "error")
        assert.strictEqual((yield* run(tools, "read", {})).output.outcome, "success")
      }).pipe(Effect.provide(live))
    )

    it.effect("leave it to the hooks of the run, when told so", () =>
      Effect.gen(function* () {
        const outcomes = yield* Effect.forEach([true, false], (approved) =>
          Effect.gen(function* () {
            const agent = yield* Agent.make({
              model: "m",
              tools: yield* AiTools.fromToolkit(Guarded, { approval: "hooks" }),
              hooks: [Hook.approveTool(() => Effect.succeed({ approved }))]
            })
            const { newMessages } = yield* agent.prompt("Hi")
            return newMessages.flatMap((message) => (message.role === "toolResult" ? [message.outcome] : []))
          }).pipe(
            Effect.scoped,
            Effect.provide(
              ScriptedProvider.layer([ScriptedProvider.toolCall("wipe", {}), ScriptedProvider.text("Done.")])
            )
          )
        )
        assert.deepStrictEqual(outcomes, [["success"], ["rejected"]])
      }).pipe(Effect.provide(live))
    )
  })

  it.effect("asks for no handlers of a toolkit that has them", () =>
    Effect.gen(function* () {
      const kit: Toolkit.WithHandler<typeof Kit.tools> = yield* Effect.provide(
        Kit,
        Layer.provideMerge(KitLive, Stations.layer)
      )
      // Nothing is provided here: the types have to say that nothing is needed.
      const made: Effect.Effect<ReadonlyArray<AiTools.FromToolkit<typeof Kit.tools>>> =
        AiTools.fromToolkit(kit)
      const { output } = yield* Effect.provide(run(yield* made, "weather", { city: "Oslo" }), Stations.layer)
      assert.deepInclude(output.details, { degrees: 4 })
      // As `McpClient.toolkit` gives it: the names are known when it runs.
      const several: Found = {
        tools: { "files.read": named("files.read") },
        handle: (name) => Effect.succeed(Stream.make(answered(String(name))))
      }
      const found = yield* AiTools.fromToolkit(several)
      assert.deepStrictEqual((yield* run(found, "files_read", {})).output.details, "files.read")
    })
  )

  it.effect("spells names that providers refuse, and calls the handler of each", () =>
    Effect.gen(function* () {
      const long = "x".repeat(80)
      const names = ["files.read", "files read", "files_read", "files_read_2", "größe", long, `${long}y`, "."]
      const kit: Found = {
        tools: Object.fromEntries(names.map((name) => [name, named(name)])),
        handle: (name) => Effect.succeed(Stream.make(answered(String(name))))
      }
      const tools = yield* AiTools.fromToolkit(kit)
      assert.deepStrictEqual(
        tools.map(({ label, name }) => [name, label]),
        [
          ["files_read_3", "files.read"],
          ["files_read_4", "files read"],
          ["files_read", undefined],
          ["files_read_2", undefined],
          ["gr__e", "größe"],
          ["x".repeat(64), long],
          [`${"x".repeat(62)}_2`, `${long}y`],
          ["_", "."]
        ]
      )
      const called = yield* Effect.forEach(tools, ({ name }) => run(tools, name, {}))
      assert.deepStrictEqual(
        called.map(({ output }) => output.details),
        names
      )
    })
  )

  it("takes the tools of an MCP server", () => {
    const toolsOf = (client: McpClient.McpClient) =>
      Effect.flatMap(McpClient.toolkit(client), (kit) => AiTools.fromToolkit(kit))
    expectTypeOf(toolsOf).returns.toExtend<Effect.Effect<ReadonlyArray<Tool.Runnable>, unknown>>()
  })

  it.effect("keeps the title of a tool whose name it spells", () =>
    Effect.gen(function* () {
      const Titled = Toolkit.make(AiTool.make("a.b").annotate(AiTool.Title, "A and B"))
      const tools = yield* AiTools.fromToolkit(Titled).pipe(
        Effect.provide(Titled.toLayer({ "a.b": () => Effect.void }))
      )
      assert.deepStrictEqual(
        tools.map(({ label, name }) => [name, label]),
        [["a_b", "A and B"]]
      )
    })
  )

  it("requires the handlers, and what they ask for when called", () => {
    const tools: Effect.Effect<
      ReadonlyArray<Tool.Tool<string, any, never, Grounded | AiError.AiError, Stations | Tool.ToolContext>>,
      never,
      AiTool.HandlersFor<typeof Kit.tools>
    > = AiTools.fromToolkit(Kit)
    assert.isDefined(tools)
  })
})
