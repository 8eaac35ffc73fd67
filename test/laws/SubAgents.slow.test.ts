import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Exit, Fiber, Schema, type Scope, Stream } from "effect"
import { Agent, AgentEvent, type Provider, ProviderError, Tool } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"

const small = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum }))
const few = <S extends Schema.Constraint>(item: S, most: number) =>
  Schema.Array(item).check(Schema.isMaxLength(most))

/** An agent first calls its tools and the agents inside, all at once, and then ends in this way. */
const own = {
  tools: small(2),
  end: Schema.Literals(["text", "text", "text", "failure", "defect", "endless"]),
  concurrency: Schema.Literals([1, 2, 4])
}
const Leaf = Schema.Struct(own)
const Middle = Schema.Struct({ ...own, agents: few(Leaf, 2) })
const Root = Schema.Struct({ ...own, agents: few(Middle, 3) })

const Plan = Schema.Struct({
  root: Root,
  /** Cancels the run at this event; beyond the last one, when nothing happens any more. */
  cancelAt: small(200)
})
type Plan = typeof Plan.Type

interface Node extends Schema.Schema.Type<typeof Leaf> {
  readonly agents?: ReadonlyArray<Node>
}

/** By the model, which names the place of an agent in the tree. */
const nodesOf = (node: Node, at = "0"): ReadonlyArray<readonly [string, Node]> => [
  [at, node],
  ...(node.agents ?? []).flatMap((inner, n) => nodesOf(inner, `${at}_${n}`))
]

const work = Tool.make({
  name: "work",
  description: "Works.",
  execute: () => Effect.replicateEffect(Effect.yieldNow, 20)
})

type Inner = Tool.Tool<string, any, unknown, unknown, Provider.Provider | Scope.Scope | Tool.ToolContext>

const toolsOf = (node: Node, at: string): ReadonlyArray<Inner> => [
  work,
  ...(node.agents ?? []).map((inner, n): Inner => {
    const name = `${at}_${n}`
    return Agent.asTool({
      name: `agent_${name}`,
      description: "An agent inside.",
      concurrency: inner.concurrency,
      agent: { model: name, tools: toolsOf(inner, name) }
    })
  })
]

const usage = { input: 3, output: 4 }

const answerOf = (node: Node, at: string, isAnswered: boolean): ScriptedProvider.Turn => {
  const calls = [
    ...Array.from({ length: node.tools }, () => ({ name: "work", params: {} })),
    ...(node.agents ?? []).map((_, n) => ({ name: `agent_${at}_${n}`, params: { prompt: "Go" } }))
  ]
  if (!isAnswered && calls.length > 0) {
    const steps = calls.map(({ name, params }) => Step.toolCall(name, params))
    return ScriptedProvider.turn(Step.start, ...steps, Step.finish("toolUse", usage))
  }
  switch (node.end) {
    case "text":
      return ScriptedProvider.text(["a", "b"], { usage })
    case "failure":
      return ScriptedProvider.fail(new ProviderError.Unauthenticated({ detail: "no key" }))
    case "defect":
      return ScriptedProvider.die(new Error("a bug"))
    case "endless":
      return ScriptedProvider.turn(Step.start, Step.text("a"), Step.never)
  }
}

/** Plays a plan, and returns the events as the reader of the stream and as a subscriber received them. */
const play = Effect.fnUntraced(function* ({ cancelAt, root }: Plan) {
  const nodes = new Map(nodesOf(root))
  const provider = ScriptedProvider.layer([], {
    exhausted: ({ messages, model }) => {
      const node = nodes.get(model)
      return node === undefined
        ? ScriptedProvider.die(new Error("no such agent"))
        : answerOf(node, model, messages.at(-1)?.role === "toolResult")
    }
  })
  const read: Array<AgentEvent.AgentEvent> = []
  const heard: Array<AgentEvent.AgentEvent> = []
  yield* Effect.gen(function* () {
    const agent = yield* Agent.make({ model: "0", tools: toolsOf(root, "0") })
    yield* agent.subscribe((event) =>
      Effect.suspend(() => (heard.push(event) === cancelAt ? agent.cancel("enough") : Effect.void))
    )
    const reading = Stream.runForEach(agent.stream("Go"), (event) => Effect.sync(() => void read.push(event)))
    const fiber = yield* Effect.forkChild(Effect.exit(reading), { startImmediately: true })
    for (let idle = 0; idle < 2000 && fiber.pollUnsafe() === undefined; idle++) yield* Effect.yieldNow
    yield* agent.cancel("nothing happens")
    const exit = yield* Fiber.join(fiber)
    const view = heard.reduce(AgentEvent.fold, AgentEvent.initial())
    assert.deepStrictEqual(view.messages, (yield* agent.state.get).messages)
    assert.strictEqual(view.status === "failed", Exit.isFailure(exit))
  }).pipe(Effect.scoped, Effect.provide(provider))
  return { read, heard }
})

const violations = (events: ReadonlyArray<AgentEvent.AgentEvent>): ReadonlyArray<string> => {
  const byRun = new Map<string, Array<AgentEvent.AgentEvent>>()
  for (const event of events) byRun.set(event.runId, [...(byRun.get(event.runId) ?? []), event])
  const endOf = (runId: string) =>
    byRun.get(runId)?.find((event) => event._tag === "RunEnd") ?? assert.fail(`no end of ${runId}`)
  const runs = [...byRun.keys()]
  const childrenOf = (runId: string) => runs.filter((id) => byRun.get(id)?.[0]?.parent?.runId === runId)
  return [...byRun].flatMap(([runId, own]) => {
    const { childUsage, usage } = endOf(runId)
    const spent = own.map((event) =>
      event._tag === "MessageEnd" && event.message.role === "assistant"
        ? (event.message.usage?.total ?? 0)
        : 0
    )
    const inside = childrenOf(runId).map((id) => endOf(id).usage.total)
    const sum = (numbers: ReadonlyArray<number>) => numbers.reduce((one, other) => one + other, 0)
    const tags = own.map(({ _tag }) => _tag)
    const caller = own[0]?.path?.at(-1)
    const of = (tag: "ToolInvoked" | "ToolExecutionEnd") =>
      events.findIndex(
        (event) =>
          event._tag === tag && event.runId === caller?.runId && event.toolCallId === caller.toolCallId
      )
    const isWithin =
      caller === undefined ||
      own.every((event) => {
        const at = events.indexOf(event)
        return of("ToolInvoked") < at && at < of("ToolExecutionEnd")
      })
    return [
      ...(tags[0] === "RunStart" && tags.at(-1) === "RunEnd" ? [] : ["a run without its start and end"]),
      ...(tags.filter((tag) => tag === "RunEnd").length === 1 ? [] : ["several ends"]),
      ...(own.every(({ seq }, n) => n === 0 || seq > (own[n - 1]?.seq ?? 0)) ? [] : ["no order"]),
      ...(isWithin ? [] : ["events outside of their call"]),
      ...(usage.total === sum(spent) + sum(inside) ? [] : [`usage ${usage.total}`]),
      ...((childUsage?.total ?? 0) === sum(inside) ? [] : [`usage inside ${childUsage?.total}`])
    ]
  })
}

// As in Laws.test.ts: LAWS_SEED=7 LAWS_RUNS=5000 npm test -- test/laws
const seed = Number(process.env["LAWS_SEED"] ?? 1)
const runs = Number(process.env["LAWS_RUNS"] ?? 100)

describe("runs inside of runs", () => {
  it.effect(
    "end once, before their call, with events in order, and count once, for any tree and cancel",
    () =>
      Effect.gen(function* () {
        const lawful = Effect.fnUntraced(function* (plan: Plan) {
          const { heard, read } = yield* play(plan)
          assert.deepStrictEqual(read, heard)
          const broken = violations(heard)
          return broken.length === 0 || (yield* Effect.fail(broken))
        })
        const options = { seed, runs, size: 10, maxShrinks: 100 }
        const result = yield* Arbitrary.checkEffect(Arbitrary.schema(Plan), lawful, options)
        assert.strictEqual(Arbitrary.formatCheckFailure(result), undefined)
      }),
    20_000 + runs * 100
  )
})
