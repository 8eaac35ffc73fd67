/**
 * The mistakes that newcomers make, in TypeScript and in plain JavaScript. Each row makes one through the public API and
 * gives what the newcomer reads: the message of an error, a line of the log, or the result that the model reads.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, ConfigProvider, Effect, Layer, Logger, Redacted, References, Schema, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, AgentEvent, Hook, HookManager, Message, Tool } from "effect-agent"
import { createAgent, type PromiseAgent } from "effect-agent/promise"
import { Anthropic, Google, LocalRules, OpenAi, OpenAiCompatible } from "effect-agent/providers"
import { ScriptedProvider } from "effect-agent/testing"
import * as z from "zod"
import { refuse, serve } from "./providers/server.ts"

/** What plain JavaScript gives: the compiler does not look at it. */
const untyped = (value: unknown): any => value

const done = ScriptedProvider.text("done")
const scripted = ScriptedProvider.layer([done])
const apiKey = Redacted.make("sk-0123456789")

/** The message of what is thrown, or rejected with. */
const thrown = async (make: () => unknown): Promise<string> => {
  try {
    await make()
  } catch (error) {
    return error instanceof Error || hasMessage(error) ? error.message : String(error)
  }
  return assert.fail("nothing was thrown")
}
const hasMessage = (error: unknown): error is { readonly message: string } =>
  typeof error === "object" && error !== null && "message" in error && typeof error.message === "string"

/** Uses an agent of the promise API, and closes it. */
const withAgent = async <A>(options: unknown, use: (agent: PromiseAgent) => Promise<A>): Promise<A> => {
  const agent = createAgent(untyped(options))
  try {
    return await use(agent)
  } finally {
    await agent.close()
  }
}
const prompted = (options: object, prompt: unknown = "hi") =>
  thrown(() =>
    withAgent({ provider: scripted, model: "m", ...options }, (agent) => agent.prompt(untyped(prompt)))
  )

/** What a server answers with a status becomes. */
const refused = (
  status: number,
  body: unknown,
  providerAt: (baseUrl: string) => unknown,
  model = "gpt-9"
): Promise<string> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(
        serve((response) => refuse(response, status, body)),
        ({ baseUrl }) => Effect.promise(() => prompted({ provider: providerAt(baseUrl), model }))
      )
    )
  )

/** The address of a server that is no more. */
const gone = (): Promise<string> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.map(
        serve(() => {}),
        ({ baseUrl }) => baseUrl
      )
    )
  )

/** What an effect that uses an agent of a scripted provider fails or dies with. */
const failed = (effect: Effect.Effect<unknown, unknown, any>) =>
  thrown(() => Effect.runPromise(untyped(Effect.scoped(effect).pipe(Effect.provide(scripted)))))

/** The lines of a log. */
const log = () => {
  const lines: Array<string> = []
  const logger = Logger.make<unknown, void>(({ cause, message }) => {
    lines.push([message, ...Cause.prettyErrors(cause).map((error) => error.message)].map(String).join(" "))
  })
  const layer = Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "All"))
  return { lines, layer }
}

const look = (members: object = {}) =>
  Tool.make(untyped({ name: "look", description: "Looks.", execute: () => Effect.succeed("ok"), ...members }))

/** What the model is told of a call of a tool, and what the log says. */
const called = async (tool: unknown, params: Schema.Json = {}): Promise<string> => {
  const { layer, lines } = log()
  const provider = ScriptedProvider.layer([ScriptedProvider.toolCall("look", params), done])
  const { newMessages } = await withAgent({ provider, model: "m", tools: [tool], layer }, (agent) =>
    agent.prompt("hi")
  )
  const results = newMessages.filter(({ role }) => role === "toolResult").map(Message.textOf)
  return [...results, ...lines].join("\n")
}

/** What the log says of a run with these options. */
const logged = async (options: object): Promise<string> => {
  const { layer, lines } = log()
  await withAgent({ provider: scripted, model: "m", tools: [look()], ...options, layer }, (agent) =>
    agent.prompt("hi")
  )
  return lines.join("\n")
}

/** What the events say of a hook that was asked, and whether the tool that it guards ran. */
const hooked = (hook: unknown): Promise<string> => {
  const provider = ScriptedProvider.layer([ScriptedProvider.toolCall("look", {}), done])
  return withAgent({ provider, model: "m", tools: [look()], hooks: [hook] }, async (agent) => {
    const seen: Array<string> = []
    for await (const event of agent.stream("hi")) {
      if (event._tag === "HookError") seen.push(`${event.hook}: ${event.error}`)
      if (event._tag === "ToolExecutionEnd") seen.push(`the tool ended: ${event.outcome}`)
    }
    return seen.join("\n")
  })
}

/** What the log says of a listener. */
const heard = (listener: unknown): Promise<string> => {
  const { layer, lines } = log()
  const program = Effect.gen(function* () {
    const agent = yield* Agent.make({ model: "m" })
    yield* agent.subscribe(untyped(listener), { name: "audit" })
    yield* agent.prompt("hi")
    return lines.join("\n")
  })
  return Effect.runPromise(Effect.scoped(program).pipe(Effect.provide(Layer.merge(scripted, layer)), untyped))
}

type Row = readonly [
  mistake: string,
  read: () => Promise<string>,
  what: string,
  where: string,
  whatToDo: string
]

const noKeys = ConfigProvider.layer(ConfigProvider.fromUnknown({}))
const noModel = { error: { message: "The model `gpt-9` does not exist", code: "model_not_found" } }
const openAiAt = (baseUrl: string) => OpenAi.layer({ baseUrl, apiKey })
const effectAgent = Effect.flatMap(Agent.make({ model: "m" }), (agent) => agent.prompt("hi"))

const ofProviders: ReadonlyArray<Row> = [
  [
    "no key for OpenAI",
    () => prompted({ provider: OpenAi.layerConfig(), layer: noKeys }),
    "is not set",
    "OPENAI_API_KEY",
    "Set it to the key, or give the layer an apiKey"
  ],
  [
    "no key for Anthropic",
    () => prompted({ provider: Anthropic.layerConfig(), layer: noKeys }),
    "is not set",
    "ANTHROPIC_API_KEY",
    "Set one of them to the key, or give the layer an apiKey"
  ],
  [
    "no key for Google",
    () => prompted({ provider: Google.layerConfig(), layer: noKeys }),
    "is not set",
    "GEMINI_API_KEY",
    "Set one of them to the key, or give the layer an apiKey"
  ],
  [
    "a key that the vendor does not know",
    () => refused(401, { error: { message: "Incorrect API key provided" } }, openAiAt),
    "Unauthenticated: Incorrect API key provided",
    "openai: ",
    "Check the API key that the provider is given."
  ],
  [
    "a key with a line end in it",
    () => prompted({ provider: OpenAi.layer({ apiKey: Redacted.make("sk-1\nsk-2") }) }),
    "has a line end",
    "openai: InvalidRequest: The header authorization",
    "Check the key"
  ],
  [
    "an unknown model",
    () => refused(404, noModel, openAiAt),
    "NotFound: The model `gpt-9` does not exist.",
    "openai: ",
    "Check the model id"
  ],
  [
    "no server at the address",
    async () => prompted({ provider: openAiAt(await gone()) }),
    "ECONNREFUSED",
    "openai: Transport: connect ECONNREFUSED 127.0.0.1:",
    "Check the network, that the server runs, and the baseUrl"
  ],
  [
    "a baseUrl without a protocol",
    () => prompted({ provider: openAiAt("api.example.com/v1") }),
    "has no protocol",
    'openai: InvalidRequest: The baseUrl "api.example.com"',
    'Begin it with https://, as in "https://api.example.com"'
  ],
  [
    "a local baseUrl without a protocol",
    () =>
      prompted({ provider: OpenAiCompatible.layer({ id: "mine", baseUrl: "user:secret@localhost:1234" }) }),
    "has no protocol",
    'mine: InvalidRequest: The baseUrl "localhost:1234"',
    'Begin it with http://, as in "http://localhost:1234"'
  ],
  [
    "OpenAi for a server that supports only Chat Completions",
    () => refused(404, "Not Found", openAiAt),
    "NotFound: Not Found",
    "(model gpt-9)",
    "If the server supports only Chat Completions, use OpenAiCompatible.layer({ id, baseUrl }) in place of OpenAi."
  ],
  [
    "the same where the server allows no POST",
    () => refused(405, "Method Not Allowed", openAiAt),
    "Method Not Allowed",
    "openai: ",
    "use OpenAiCompatible.layer({ id, baseUrl })"
  ],
  [
    "no HttpClient for a provider",
    () =>
      thrown(() =>
        Effect.runPromise(untyped(effectAgent.pipe(Effect.scoped, Effect.provide(OpenAi.layer({})))))
      ),
    "Service not found",
    "effect/HttpClient",
    "such as FetchHttpClient.layer of effect/http"
  ],
  [
    "no provider for createAgent",
    () => thrown(() => createAgent(untyped({ model: "m" }))),
    "is missing",
    "Invalid options: provider",
    "Give one, such as OpenAi.layerConfig() of effect-agent/providers"
  ],
  [
    "a layer that is not called",
    () => thrown(() => createAgent(untyped({ model: "m", provider: OpenAi.layer }))),
    "expected a layer or a provider",
    "Invalid options: provider: ",
    "such as OpenAi.layerConfig() of effect-agent/providers, got a function"
  ],
  [
    "a script that is too short",
    () => prompted({ provider: ScriptedProvider.layer([]) }),
    "The script has 0 turns, but the provider was called once",
    "the newest: {",
    "Add a turn for each call"
  ]
]

const ofTools: ReadonlyArray<Row> = [
  [
    "no description",
    () => thrown(() => look({ description: undefined })),
    "`description` is missing",
    'Tool "look"',
    "Say in a sentence what the tool does"
  ],
  [
    "two tools of one name",
    () => prompted({ tools: [look(), look()] }),
    "Another tool has this name",
    "look",
    "Give each tool a name of its own"
  ],
  [
    "a name with a space",
    () => thrown(() => look({ name: "get weather" })),
    "the name may hold only letters, digits, _ and -",
    'Tool "get weather"',
    'Use "get_weather"'
  ],
  [
    "a timeout that is no duration",
    () => thrown(() => look({ timeout: "5 minuts" })),
    '`timeout` is "5 minuts"',
    'Tool "look"',
    'expected a duration such as "30 seconds"'
  ],
  [
    "the members of a zod object as params",
    () => thrown(() => look({ params: { city: z.string() } })),
    "`params` is a plain object with the keys city, not a schema",
    'Tool "look"',
    "Put it into z.object({ … }) or Schema.Struct({ … })"
  ],
  [
    "plain JSON Schema as params",
    () => thrown(() => look({ params: { type: "object", properties: {} } })),
    "`params` is plain JSON Schema",
    'Tool "look"',
    "Use Tool.fromJsonSchema"
  ],
  [
    "params that are a text",
    () => thrown(() => look({ params: Schema.String })),
    "`params` is a schema of string",
    'Tool "look"',
    "Put it into one, such as Schema.Struct({ value: … })"
  ],
  [
    "an async function in Tool.make",
    () => called(look({ execute: async () => "ok" })),
    "execute returned a promise",
    "Tool look does not work",
    "Use Tool.fromPromise for an async function."
  ],
  [
    "a plain value in Tool.make",
    () => called(look({ execute: () => "ok" })),
    "execute returned no Effect",
    "Tool look does not work",
    "Return Effect.succeed(value)"
  ],
  [
    "an Effect in Tool.fromPromise",
    () => called(Tool.fromPromise({ name: "look", description: "", execute: () => Effect.succeed(1) })),
    "execute returned an Effect",
    "Tool look does not work",
    "Use Tool.make"
  ],
  [
    "an execute that throws",
    () =>
      called(
        look({
          execute: () => {
            throw new Error("no file a.txt")
          }
        })
      ),
    "failed unexpectedly",
    "Tool look",
    "no file a.txt"
  ],
  [
    "nothing returned where `success` wants something",
    () => called(look({ success: Schema.Struct({ city: Schema.String }), execute: () => Effect.void })),
    "execute returned undefined",
    "Tool look does not work",
    "Return a value of its `success` schema."
  ],
  [
    "a Map as a result",
    () => called(Tool.fromPromise({ name: "look", description: "", execute: async () => new Map() })),
    "A Map is not JSON",
    "Tool look returned a value that is not JSON",
    "Return Object.fromEntries(map)"
  ],
  [
    "activeTools that name no tool",
    () => logged({ activeTools: ["lok"] }),
    "no tool of that name is registered",
    'activeTools names "lok"',
    "Did you mean look?"
  ],
  [
    "activeTools with many names that no tool has",
    () => logged({ activeTools: ["lok", ...Array.from({ length: 500 }, (_, index) => `t${index}`)] }),
    "no tool of that name is registered",
    'activeTools names "lok" and 500 more',
    "Did you mean look?"
  ],
  [
    "a toolChoice that names no tool",
    () => logged({ modelOptions: { toolChoice: { name: "search" } } }),
    "no tool of that name is registered",
    'modelOptions.toolChoice names "search"',
    "Register it, or name one of: look"
  ]
]

const ofOptions: ReadonlyArray<Row> = [
  [
    "no model",
    () => prompted({ model: undefined }),
    "is missing",
    "model",
    'Give the id of a model, such as "gpt-5.4-mini"'
  ],
  ["an empty model", () => prompted({ model: "" }), 'got ""', "model: ", 'such as "gpt-5.4-mini"'],
  [
    "a misspelt option",
    () => prompted({ maxTurn: 3 }),
    "is not an option",
    "maxTurn ",
    "Did you mean limits.maxTurns?"
  ],
  [
    "an option by the name of other libraries",
    () => prompted({ systemPrompt: "Be brief." }),
    "is not an option",
    "systemPrompt ",
    "Did you mean system?"
  ],
  [
    "a misspelt option of the model",
    () => prompted({ modelOptions: { temprature: 1 } }),
    "is not an option",
    "modelOptions.temprature",
    "Did you mean modelOptions.temperature?"
  ],
  [
    "a limit outside of limits",
    () => prompted({ maxTurns: 3 }),
    "is not an option",
    "maxTurns ",
    "Did you mean limits.maxTurns?"
  ],
  [
    "an option of the model outside of modelOptions",
    () => prompted({ temperature: 1 }),
    "is not an option",
    "temperature ",
    "Did you mean modelOptions.temperature?"
  ],
  [
    "a key for the agent",
    () => prompted({ apiKey: "sk-1" }),
    "expected a function from the id of a provider to its key",
    "apiKey: ",
    "The provider takes a key: OpenAi.layer({ apiKey })"
  ],
  [
    "a limit that is no number",
    () => prompted({ limits: { maxTurns: Number("ten") } }),
    "got NaN",
    "limits.maxTurns: ",
    "expected a whole number from 0, or Infinity"
  ],
  [
    "a limit below zero",
    () => prompted({ limits: { maxTurns: -1 } }),
    "got -1",
    "limits.maxTurns: ",
    "expected a whole number from 0"
  ],
  [
    "members of the body that name no provider",
    () => prompted({ modelOptions: { vendor: { store: true } } }),
    "expected object, got true",
    "modelOptions.vendor.store: ",
    'write vendor: { "openai": { "store": true } } instead of vendor: { "store": true }'
  ],
  [
    "the same in the options of a run",
    () =>
      thrown(() =>
        withAgent({ provider: scripted, model: "m" }, (agent) =>
          agent.prompt("hi", untyped({ modelOptions: { vendor: { seed: 7 } } }))
        )
      ),
    "expected object, got 7",
    "modelOptions.vendor.seed: ",
    'write vendor: { "openai": { "seed": 7 } } instead of'
  ]
]

const ofMessages: ReadonlyArray<Row> = [
  [
    "messages as vendors write them",
    () => prompted({ messages: [Message.user("a"), { role: "user", content: "b" }] }),
    'expected array, got "b"',
    "messages[1].content: ",
    'Message.user("…") and its like make a whole message'
  ],
  [
    "a system message",
    () => prompted({ messages: [{ role: "system", content: "Be brief." }] }),
    'got "system"',
    "messages[0].role: ",
    'expected one of "user", "assistant"'
  ],
  [
    "an empty prompt",
    () => prompted({}, ""),
    "there is nothing for the model to answer",
    "Invalid transcript",
    "Give a prompt that holds a text"
  ],
  [
    "a prompt of no messages",
    () => prompted({}, []),
    "there is nothing for the model to answer",
    "Invalid transcript",
    "Give a prompt that holds a text"
  ],
  [
    "no prompt",
    () => prompted({}, null),
    "got null",
    "Invalid prompt",
    "expected a text, a message or a list of messages"
  ]
]

const ofHooks: ReadonlyArray<Row> = [
  [
    "an async guard",
    () => hooked(Hook.beforeTool(untyped(async () => ({ block: true })))),
    "The hook returned no Effect",
    "beforeTool: ",
    "Return Effect.succeed(value), Effect.void, or Effect.promise(() => promise)."
  ],
  [
    "an approval with a misspelt member",
    () => hooked(Hook.approveTool(untyped(() => Effect.succeed({ aproved: true })))),
    "`aproved`, which has no meaning here",
    "approveTool: ",
    "Did you mean `approved`?\nthe tool ended: rejected"
  ],
  [
    "a guard with a misspelt member",
    () => hooked(Hook.beforeTool(untyped(() => Effect.succeed({ blok: true })))),
    "`blok`, which has no meaning here",
    "beforeTool: ",
    "Did you mean `block`?\nthe tool ended: "
  ],
  [
    "a guard with a member of another library",
    () => hooked(Hook.beforeTool(untyped(() => Effect.succeed({ deny: true })))),
    "`deny`, which has no meaning here",
    "beforeTool: ",
    "Return any of params, block,"
  ],
  [
    "a hook of a misspelt point",
    () =>
      prompted({
        hooks: [Hook.beforeTool(() => Effect.void), { point: "beforTool", run: () => Effect.void }]
      }),
    'there is no point "beforTool"',
    "hooks[1]: ",
    "Did you mean beforeTool?"
  ],
  [
    "a hook of a misspelt point that is registered later",
    () =>
      failed(
        Effect.flatMap(Agent.make({ model: "m" }), ({ hooks }) =>
          hooks.register(untyped({ point: "aproveTool", run: () => Effect.void }))
        )
      ),
    'there is no point "aproveTool"',
    "Invalid hook: ",
    "Did you mean approveTool?"
  ],
  [
    "a hook manager of no hook",
    () => failed(untyped(HookManager.make(untyped(null)))),
    "got object",
    "Invalid hook: ",
    "expected a hook made by Hook.beforeTool(…)"
  ],
  [
    "a plain function as a hook",
    () => prompted({ hooks: [() => Effect.void] }),
    "got function",
    "hooks[0]: ",
    "expected a hook made by Hook.beforeTool(…)"
  ],
  [
    "a listener that throws",
    () =>
      heard(() => {
        throw new Error("the disk is full")
      }),
    "failed, and may fail again; the run goes on",
    "Subscriber audit",
    "the disk is full"
  ],
  [
    "an async listener",
    () => heard(async () => {}),
    "The listener returned no Effect",
    "Subscriber audit",
    "Return Effect.void, Effect.sync(() => …) or Effect.promise(() => promise)."
  ]
]

const closed = "Await its runs before you close it or its scope, or make a new agent"
const lost = closed

const ofRuns: ReadonlyArray<Row> = [
  [
    "a prompt while a run goes on",
    () =>
      withAgent({ provider: ScriptedProvider.layer([ScriptedProvider.never]), model: "m" }, async (agent) => {
        const first = agent.prompt("a")
        const read = await thrown(() => agent.prompt("b"))
        await agent.cancel()
        await first
        return read
      }),
    "already processing a prompt",
    "The agent",
    "Use steer or followUp, or wait until it is idle."
  ],
  [
    "a prompt after close",
    async () => {
      const agent = createAgent({ provider: scripted, model: "m" })
      await agent.prompt("a")
      await agent.close()
      return thrown(() => agent.prompt("b"))
    },
    "is closed",
    "The agent",
    closed
  ],
  [
    "a loop over the events after close",
    async () => {
      const agent = createAgent({ provider: scripted, model: "m" })
      await agent.close()
      return thrown(async () => {
        for await (const event of agent.stream("b")) assert.fail(event._tag)
      })
    },
    "is closed",
    "The agent",
    closed
  ],
  [
    "a run that is not awaited before close",
    async () => {
      const agent = createAgent({ provider: ScriptedProvider.layer([ScriptedProvider.never]), model: "m" })
      const read = thrown(() => agent.prompt("a"))
      await agent.close()
      return read
    },
    "is closed",
    "The agent",
    closed
  ],
  [
    "an agent outside of its scope",
    () => failed(Effect.flatMap(Effect.scoped(Agent.make({ model: "m" })), (agent) => agent.prompt("a"))),
    "is closed",
    "The agent",
    lost
  ],
  [
    "the text of a run that fails",
    () =>
      Effect.runPromise(
        Effect.scoped(
          Effect.gen(function* () {
            const { baseUrl } = yield* serve((response) => refuse(response, 404, noModel))
            const text = Effect.flatMap(Agent.make({ model: "gpt-9" }), (agent) =>
              agent.stream("hi").pipe(AgentEvent.textOnly, Stream.mkString)
            ).pipe(Effect.scoped, Effect.provide(openAiAt(baseUrl)), Effect.provide(FetchHttpClient.layer))
            return (yield* Effect.flip(text)).message
          })
        )
      ),
    "The model `gpt-9` does not exist",
    "openai: NotFound",
    "Check the model id"
  ]
]

const kinds = {
  "a provider": ofProviders,
  "a tool": ofTools,
  options: ofOptions,
  messages: ofMessages,
  "a hook or a listener": ofHooks,
  "a run": ofRuns
}

describe("a newcomer reads what is wrong, where, and what to do, after a mistake with", () => {
  for (const [kind, rows] of Object.entries(kinds)) {
    describe(kind, () => {
      it.each(rows)("%s", async (_, read, what, where, whatToDo) => {
        const words = await read()
        assert.include(words, what)
        assert.include(words, where)
        assert.include(words, whatToDo)
        assert.notInclude(words, "secret")
      })
    })
  }
})

describe("a newcomer", () => {
  it.each([
    [
      "OpenAiCompatible",
      (at: string) => OpenAiCompatible.layer({ id: "mine", baseUrl: `${at}/chat/completions` })
    ],
    ["OpenAi", (at: string) => OpenAi.layer({ baseUrl: `${at}/responses/` })],
    ["Anthropic", (at: string) => Anthropic.layer({ baseUrl: `${at}/messages` })]
  ])("may give %s the address with its route", async (_, providerAt) => {
    const route = await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const server = yield* serve((response) => refuse(response, 400, {}))
          const provider = providerAt(server.baseUrl)
          yield* Effect.promise(() => prompted({ provider }))
          return server.requests.map(({ url }) => url)
        })
      )
    )
    assert.match(route.join(), /^\/v1\/(?:chat\/completions|responses|messages)$/)
  })

  it.effect("can provide the local rules as a layer", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const agent = yield* Agent.make({ model: "rules" })
        const { message } = yield* agent.prompt("Write a poem.")
        assert.strictEqual(message?.stopReason, "refusal")
      })
    ).pipe(Effect.provide(LocalRules.layer))
  )
})
