/**
 * The service that holds the tools of an application, decodes the params of their calls and runs them.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { TaggedError } from "./internal/errors.ts"
import * as FailureText from "./internal/failureText.ts"
import * as InvalidTool from "./internal/invalidTool.ts"
import type { ToolOutput } from "./AgentEvent.ts"
import { makeId, type Message, type ToolCall } from "./Message.ts"
import type { ToolDefinition } from "./Provider.ts"
import type { RunOptions } from "./RunOptions.ts"
import type * as Tool from "./Tool.ts"
import * as ToolRun from "./internal/toolRun.ts"

export type { Executed } from "./internal/toolRun.ts"

/**
 * The model called a tool that it was not offered.
 *
 * @since 0.1.0
 * @category errors
 */
export class ToolNotFound extends TaggedError<ToolNotFound>()("ToolNotFound", {
  /** Name as the model wrote it. */
  toolName: Schema.String,
  /** Names of the tools that the model was offered. */
  known: Schema.Array(Schema.String)
}) {
  override get message(): string {
    const known = this.known.length === 0 ? "There are no tools." : `Tools: ${cut(this.known.join(", "))}.`
    return `Tool ${JSON.stringify(cut(this.toolName, 100))} not found. ${known}`
  }
}

/**
 * The model called a tool with arguments that the tool does not take.
 *
 * @since 0.1.0
 * @category errors
 */
export class InvalidArguments extends TaggedError<InvalidArguments>()("InvalidArguments", {
  /** Name as the model wrote it. */
  toolName: Schema.String,
  /** Faults of the arguments, one line each. */
  detail: Schema.String
}) {
  override get message(): string {
    return `Invalid arguments for tool ${JSON.stringify(cut(this.toolName, 100))}: ${cut(this.detail)}`
  }
}

/** Shortens a text of an error, since each later request has it. */
const cut = (text: string, length = 1800): string =>
  text.length <= length ? text : `${text.slice(0, length)}…`

/**
 * A call with its tool and its decoded params, as guards see it before it runs.
 *
 * @since 0.1.0
 * @category models
 */
export interface PreparedCall {
  /** The call as the model made it. */
  readonly call: ToolCall
  /** The tool that the call means. */
  readonly tool: Tool.Any
  /** JSON that the params were decoded from. */
  readonly input: Schema.Json
  /** Decoded params, as `execute` of the tool takes them. */
  readonly params: unknown
}

/**
 * Options of `prepare`.
 *
 * @since 0.2.0
 * @category options
 */
export interface PrepareOptions {
  /** JSON that replaces the arguments of the call. Default: the arguments. */
  readonly input?: Schema.Json
  /** Tools that the model was offered, by name. Default: all tools of the registry. */
  readonly among?: ReadonlyMap<string, Tool.Any>
  /** Whether a name also means the only tool whose name differs from it in upper and lower case. Default: false. */
  readonly caseInsensitiveTools?: boolean
  /** Arguments that are not JSON: `"error"` fails with `InvalidArguments`, `"emptyObject"` decodes `{}`. Default: `"error"`. */
  readonly invalidJsonArguments?: "error" | "emptyObject"
}

/**
 * The service that holds the tools of an application.
 *
 * **When to use**
 *
 * `Loop.run` requires this service. `Agent.make` makes a registry of its `tools`, which is `agent.tools`, beside the one around it,
 * if there is one. Provide one with `layer`, or wrap the functions of another one to see every call of every tool.
 *
 * **Details**
 *
 * - An agent, and those that it hands off to, have the tools of the registry around `Agent.make` and their own. Of two tools with one name
 *   the agent's own wins. Changes of `agent.tools` do not reach the registry around, and tools that it gets later reach the agent.
 * - Calls of all these tools go through `prepare` and `execute` of the registry around.
 * - A sub-agent, as of `Agent.asTool`, does not get the tools of its parent run.
 *
 * **Example** (Adding a tool to an agent)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Tool } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const ping = Tool.make({ name: "ping", description: "Answers.", execute: () => Effect.succeed("pong") })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any" })
 *   yield* agent.tools.register(ping)
 *   console.log(yield* agent.tools.has("ping"))
 *   yield* agent.tools.clear
 *   console.log(yield* agent.tools.has("ping"))
 * }).pipe(Effect.scoped)
 *
 * await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer([]))))
 * // => true
 * // => false
 * ```
 *
 * @since 0.1.0
 * @category services
 */
export class ToolRegistry extends Context.Service<
  ToolRegistry,
  {
    /** Adds a tool from the next turn on. Dies with `InvalidTool` if the name is taken or the tool cannot work. */
    readonly register: <T extends Tool.Any>(tool: T) => Effect.Effect<void, never, Tool.Requirements<T>>
    /** Removes a tool from the next turn on. Returns false if no tool has the name. */
    readonly unregister: (name: string) => Effect.Effect<boolean>
    /**
     * Makes these tools those of an owner from the next turn on, in one step. A tool whose name the owner had keeps its place in the
     * order. Returns the names that other tools have: these tools are left out. Dies with `InvalidTool` if a tool cannot work.
     */
    readonly replace: (
      owner: string,
      tools: ReadonlyArray<Tool.Runnable>
    ) => Effect.Effect<ReadonlyArray<string>>
    /** Removes all tools from the next turn on. */
    readonly clear: Effect.Effect<void>
    /** Returns whether a tool has the name. */
    readonly has: (name: string) => Effect.Effect<boolean>
    /** Returns the tool of the name, or `undefined`. Ignores white space around the name. */
    readonly get: (name: string) => Effect.Effect<Tool.Any | undefined>
    /** Descriptions of all tools for the model, in the order of their registration. */
    readonly definitions: Effect.Effect<ReadonlyArray<ToolDefinition>>
    /** `definitions` now, and again after changes. A slow reader gets the newest ones. Never ends. */
    readonly changes: Stream.Stream<ReadonlyArray<ToolDefinition>>
    /** Finds the tool of a call and decodes its params. Fails with the mistake of the model. */
    readonly prepare: (
      call: ToolCall,
      options?: PrepareOptions
    ) => Effect.Effect<PreparedCall, ToolNotFound | InvalidArguments>
    /**
     * Runs a prepared call in a scope of its own. The services of the caller go over those that the tool was registered with. A
     * failure or a defect is a result with `isError`.
     */
    readonly execute: (
      prepared: PreparedCall,
      context: Tool.ToolContext["Service"]
    ) => Effect.Effect<ToolRun.Executed>
  }
>()("effect-agent/ToolRegistry") {}

/**
 * Makes a registry of tools.
 *
 * **Details**
 *
 * The services that the tools require become requirements. Dies with `InvalidTool` if two tools have the same name or a tool cannot work.
 *
 * **Example** (Running a call by hand)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Tool, ToolRegistry } from "effect-agent"
 *
 * const ping = Tool.make({ name: "ping", description: "Answers.", execute: () => Effect.succeed("pong") })
 *
 * const program = Effect.gen(function* () {
 *   const registry = yield* ToolRegistry.make(ping)
 *   const call = { type: "toolCall", id: "1", name: "ping", rawArguments: "{}", params: {} } as const
 *   const prepared = yield* registry.prepare(call)
 *   const context = {
 *     toolCallId: "1",
 *     idempotencyKey: "1",
 *     runId: "run",
 *     turn: 1,
 *     progress: () => Effect.void
 *   }
 *   console.log(yield* registry.execute(prepared, context))
 * })
 *
 * await Effect.runPromise(program)
 * // => { content: [ { type: 'text', text: 'pong' } ], outcome: 'success' }
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <const Tools extends ReadonlyArray<Tool.Any>>(
  ...tools: Tools
): Effect.Effect<ToolRegistry["Service"], never, Tool.Requirements<Tools[number]>> =>
  Effect.gen(function* () {
    const registered = new RegisteredTools()
    // The services of each tool, by the tool and not by its name: a prepared call of a tool that was unregistered since still has them.
    const servicesOf = new WeakMap<Tool.Any, Context.Context<never>>()
    const register = <T extends Tool.Any>(tool: T): Effect.Effect<void, never, Tool.Requirements<T>> =>
      Effect.contextWith((services: Context.Context<Tool.Requirements<T>>) => {
        const fault = InvalidTool.of(tool) ?? (registered.tools.has(tool.name) ? duplicate(tool) : undefined)
        if (fault !== undefined) return Effect.die(fault)
        servicesOf.set(tool, services)
        registered.add(tool)
        return Effect.void
      })
    yield* Effect.forEach(tools, register, { discard: true })
    return ToolRegistry.of({
      register,
      replace: (owner, tools) => registered.replace(owner, tools),
      unregister: (name) => Effect.sync(() => registered.remove((other) => other === name)),
      clear: Effect.sync(() => void registered.remove(() => true)),
      has: (name) => Effect.sync(() => registered.tools.has(name)),
      get: (name) => Effect.sync(() => ToolRun.findTool(registered.tools, name)),
      definitions: Effect.sync(() => definitionsOf(registered.tools)),
      changes: Stream.map(registered.changes, definitionsOf),
      prepare: (call, options) => Effect.suspend(() => prepare(registered.tools, call, options)),
      execute: (prepared, context) => {
        const services = servicesOf.get(prepared.tool) ?? Context.empty()
        return ToolRun.run(prepared, context).pipe(
          Effect.updateContext((caller: Context.Context<never>) => Context.merge(services, caller))
        )
      }
    })
  })

/**
 * Calls a tool of the registry by its name.
 *
 * **Details**
 *
 * No hooks, approvals or limits of runs apply. A failure of the tool is a result with another outcome than `"success"`. `context` replaces
 * members of the context that the tool reads. For the tools of an agent, provide `agent.tools`.
 *
 * **Example** (Calling a tool)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Tool, ToolRegistry } from "effect-agent"
 *
 * const ping = Tool.make({ name: "ping", description: "Answers.", execute: () => Effect.succeed("pong") })
 *
 * const program = ToolRegistry.call("ping", {}).pipe(Effect.provide(ToolRegistry.layer(ping)))
 *
 * console.log((await Effect.runPromise(program)).content) // => [ { type: 'text', text: 'pong' } ]
 * ```
 *
 * @since 0.2.0
 * @category running
 */
export const call = (
  name: string,
  params: Schema.Json,
  context?: Partial<Tool.ToolContext["Service"]>
): Effect.Effect<ToolRun.Executed, ToolNotFound | InvalidArguments, ToolRegistry> =>
  Effect.gen(function* () {
    const registry = yield* ToolRegistry
    const id = makeId()
    const prepared = yield* registry.prepare({
      type: "toolCall",
      id,
      name,
      rawArguments: JSON.stringify(params),
      params
    })
    const of = { toolCallId: id, idempotencyKey: id, runId: id, turn: 1, progress: () => Effect.void }
    return yield* registry.execute(prepared, { ...of, ...context })
  })

/**
 * Provides a registry of tools.
 *
 * **Details**
 *
 * The services that the tools require become requirements of the layer.
 *
 * **Example** (Running the loop with a tool)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Loop, Tool, ToolRegistry } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const ping = Tool.make({ name: "ping", description: "Answers.", execute: () => Effect.succeed("pong") })
 *
 * const program = Effect.gen(function* () {
 *   const { newMessages } = yield* Loop.run("Ping", { messages: [] }, { model: "any" })
 *   console.log(newMessages.map(({ role }) => role).join(" "))
 * })
 *
 * const provider = ScriptedProvider.layer([ScriptedProvider.toolCall("ping", {}), ScriptedProvider.text("Done.")])
 * await Effect.runPromise(program.pipe(Effect.provide([provider, ToolRegistry.layer(ping)])))
 * // => user assistant toolResult assistant
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = <const Tools extends ReadonlyArray<Tool.Any>>(
  ...tools: Tools
): Layer.Layer<ToolRegistry, never, Tool.Requirements<Tools[number]>> =>
  Layer.effect(ToolRegistry, make(...tools))

const duplicate = (tool: Tool.Any) =>
  new InvalidTool.InvalidTool({
    tool: tool.name,
    detail:
      "Another tool has this name. Give each tool a name of its own, or unregister the first one before."
  })

// Returns the same array and definitions from turn to turn, since providers cache the encoding of each definition.
const definitionsOf = memoize((tools: ReadonlyMap<string, Tool.Any>) =>
  Array.from(tools.values(), ToolRun.definitionOf)
)

const prepare = Effect.fnUntraced(function* (
  registered: ReadonlyMap<string, Tool.Any>,
  call: ToolCall,
  options: PrepareOptions = {}
): Effect.fn.Return<PreparedCall, ToolNotFound | InvalidArguments> {
  const { among = registered, caseInsensitiveTools = false } = options
  const tool = ToolRun.findTool(among, call.name, caseInsensitiveTools)
  if (tool === undefined) return yield* new ToolNotFound({ toolName: call.name, known: [...among.keys()] })
  const input = options.input ?? (yield* argumentsOf(call, tool, options))
  if (!Predicate.isObject(input)) return yield* invalid(call, "the arguments must be a JSON object")
  const params = yield* Effect.suspend(() => tool.decode(input)).pipe(
    Effect.mapError(({ detail }) => invalid(call, detail)),
    Effect.catchDefect((defect) => Effect.fail(invalid(call, FailureText.of(defect))))
  )
  return { call, tool, input, params }
})

/** The arguments of a call, after `prepareArguments` of its tool has repaired them. */
const argumentsOf = (
  call: ToolCall,
  { prepareArguments }: Tool.Any,
  { invalidJsonArguments }: PrepareOptions
): Effect.Effect<Schema.Json, InvalidArguments> => {
  const raw = call.params === undefined && invalidJsonArguments === "emptyObject" ? {} : call.params
  if (raw === undefined) return Effect.fail(invalid(call, "the arguments are not valid JSON"))
  if (prepareArguments === undefined) return Effect.succeed(raw)
  return Effect.try({
    try: () => prepareArguments(raw),
    catch: (thrown) => invalid(call, FailureText.of(thrown))
  })
}

const invalid = (call: ToolCall, detail: string) => new InvalidArguments({ toolName: call.name, detail })

type Tools = ReadonlyMap<string, Tool.Any>

/** The tools of a registry: their order, their owners, and the streams of `changes`. */
class RegisteredTools {
  /** The owner of a tool, such as an MCP server, which replaces all of its tools in one step. */
  private readonly ownerOf = new WeakMap<Tool.Any, string>()
  private readonly watchers = new Set<Queue.Enqueue<Tools>>()
  tools: Tools = new Map()

  private set(tools: Tools): void {
    this.tools = tools
    for (const watcher of this.watchers) Queue.offerUnsafe(watcher, tools)
  }

  add(tool: Tool.Any): void {
    this.set(new Map(this.tools).set(tool.name, tool))
  }

  /** Removes the tools whose names match, and returns whether there were any. */
  remove(isRemoved: (name: string) => boolean): boolean {
    const before = this.tools.size
    this.set(new Map([...this.tools].filter(([name]) => !isRemoved(name))))
    return this.tools.size < before
  }

  /** Replaces the tools of an owner. A name that it keeps stays at its place. Succeeds with the names that tools of others have. */
  replace(owner: string, tools: ReadonlyArray<Tool.Any>): Effect.Effect<ReadonlyArray<string>> {
    return Effect.suspend(() => {
      const fault = tools.map(InvalidTool.of).find((fault) => fault !== undefined)
      if (fault !== undefined) return Effect.die(fault)
      const isOwn = ([, tool]: readonly [string, Tool.Any]) => this.ownerOf.get(tool) === owner
      const others = new Map([...this.tools].filter((entry) => !isOwn(entry)))
      const own = new Map(tools.filter(({ name }) => !others.has(name)).map((tool) => [tool.name, tool]))
      const kept = [...this.tools].filter(([name]) => others.has(name) || own.has(name))
      for (const tool of own.values()) this.ownerOf.set(tool, owner)
      this.set(new Map([...kept, ...own]))
      return Effect.succeed(tools.map(({ name }) => name).filter((name) => others.has(name)))
    })
  }

  /** The tools now, and after changes. A slow reader gets the newest ones. */
  readonly changes: Stream.Stream<Tools> = Stream.callback(
    (watcher) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          this.watchers.add(watcher)
          Queue.offerUnsafe(watcher, this.tools)
        }),
        () => Effect.sync(() => this.watchers.delete(watcher))
      ),
    { bufferSize: 1, strategy: "sliding" }
  )
}

/**
 * The tools that the model may call in a turn.
 *
 * @category models
 * @since 0.2.0
 */
export interface Offer {
  /** The tools, in the order of their registration or of `activeTools`. */
  readonly definitions: ReadonlyArray<ToolDefinition>
  /** The transcript. */
  readonly messages: ReadonlyArray<Message>
  /** The options of the run. */
  readonly options: RunOptions
  /** Whether the vendor lets the model search for the tools that the request defers. */
  readonly toolSearch: boolean
}

/**
 * The tools of a request.
 *
 * @category models
 * @since 0.2.0
 */
export interface Selected {
  /** Further tools, such as one that searches. They stand before `definitions`, and the model may call them in this turn. */
  readonly tools: ReadonlyArray<Tool.Runnable>
  /**
   * Those of the offered tools whose schemas the request has, or that it defers with `deferred`. Keep their order from turn to
   * turn, so that caches hold, and give the same object for the same tool.
   */
  readonly definitions: ReadonlyArray<ToolDefinition>
}

/**
 * The service that chooses the tools whose schemas a request has.
 *
 * **When to use**
 *
 * `ToolSearch.layer` of `effect-agent/tool-search` provides it: with many tools, requests have the schemas of those that the model
 * searched for. Provide an implementation of your own to choose in another way.
 *
 * **Details**
 *
 * The run calls it before each request. It returns `undefined` to describe all tools, or those of `activeTools`, which is the
 * default. A tool without a schema in the request can be called all the same: the call runs if its arguments decode. To forbid calls,
 * use `activeTools`.
 *
 * **Example** (Hiding the schemas of large tools)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent, Tool, ToolRegistry } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const small = Layer.succeed(ToolRegistry.Selection, ({ definitions }) => ({
 *   tools: [],
 *   definitions: definitions.filter(({ parameters }) => JSON.stringify(parameters).length < 1_000)
 * }))
 * const ping = Tool.make({ name: "ping", description: "Answers.", execute: () => Effect.succeed("pong") })
 *
 * const program = Effect.gen(function* () {
 *   const script = yield* ScriptedProvider.make([ScriptedProvider.text("Hi.")])
 *   const agent = yield* Agent.make({ model: "any", tools: [ping] }).pipe(Effect.provide([script.layer, small]))
 *   yield* agent.prompt("Hello")
 *   console.log((yield* script.requests)[0]?.tools.map(({ name }) => name))
 * }).pipe(Effect.scoped)
 *
 * await Effect.runPromise(program) // => [ 'ping' ]
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export const Selection = Context.Reference<(offer: Offer) => Selected | undefined>(
  "effect-agent/ToolRegistry/Selection",
  { defaultValue: () => () => undefined }
)

/**
 * The call that a result belongs to.
 *
 * @category models
 * @since 0.2.0
 */
export interface LimitedCall {
  /** The id of the run. */
  readonly runId: string
  /** The id of the call. */
  readonly toolCallId: string
  /** The name of the tool, as the model wrote it. */
  readonly toolName: string
}

/**
 * An artifact that holds the whole text of a result, as the event `ArtifactStored` describes it.
 *
 * @category models
 * @since 0.2.0
 */
export interface Stored {
  /** The id by which the store returns the text. */
  readonly artifactId: string
  /** The size of the text in bytes of UTF-8. */
  readonly bytes: number
  /** The media type of the text, such as `"text/plain"`. */
  readonly mediaType: string
}

/**
 * A result that is cut, and the effect that stores its whole text.
 *
 * @category models
 * @since 0.2.0
 */
export interface Cut {
  /** The cut result for the model, where the whole text could not be stored. */
  readonly unstored: ToolOutput
  /**
   * Stores the whole text, and succeeds with the cut result for the model. If it fails, the run logs a warning and uses `unstored`.
   * A stop of the run interrupts it.
   */
  readonly store: Effect.Effect<{ readonly output: ToolOutput; readonly stored: Stored }, unknown>
}

/**
 * The service that limits the size of tool results, and stores what is larger.
 *
 * **When to use**
 *
 * `LargeResults.layer` of `effect-agent/artifacts` provides it: the model gets the start and the end of a large result, and a tool to
 * read the rest. Provide an implementation of your own to shorten results in another way.
 *
 * **Details**
 *
 * The run calls it once for each result, after the `afterTool` hooks. It returns `undefined` for a result that stays as it is. The run
 * stores the whole text first, then emits `ArtifactStored`, then `ToolExecutionEnd` with the cut result. Default: all results stay, with at most
 * 1,000,000 characters of text in each block.
 *
 * **Example** (Cutting results without storing them)
 *
 * ```ts
 * import { Effect, Layer, References } from "effect"
 * import { Agent, Message, Tool, ToolRegistry } from "effect-agent"
 * import { ScriptedProvider } from "effect-agent/testing"
 *
 * const short = Layer.succeed(ToolRegistry.ResultLimit, (_, output) => {
 *   const text = Message.textOf(output)
 *   if (text.length <= 10) return undefined
 *   const unstored = Tool.output(`${text.slice(0, 10)} [cut]`)
 *   return { unstored, store: Effect.fail("there is no store") }
 * })
 * const log = Tool.make({ name: "log", description: "Reads the log.", execute: () => Effect.succeed("a".repeat(99)) })
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "any", tools: [log] })
 *   const { newMessages } = yield* agent.prompt("Read the log.")
 *   return newMessages.map(Message.textOf)[2]
 * }).pipe(Effect.scoped, Effect.provide(short), Effect.provideService(References.MinimumLogLevel, "None"))
 *
 * const script = [ScriptedProvider.toolCall("log", {}), ScriptedProvider.text("Done.")]
 * console.log(await Effect.runPromise(program.pipe(Effect.provide(ScriptedProvider.layer(script)))))
 * // => aaaaaaaaaa [cut]
 * ```
 *
 * @category services
 * @since 0.2.0
 */
export const ResultLimit = Context.Reference<(call: LimitedCall, output: ToolOutput) => Cut | undefined>(
  "effect-agent/ToolRegistry/ResultLimit",
  { defaultValue: () => () => undefined }
)
