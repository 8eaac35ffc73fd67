import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Stream } from "effect"
import { Agent, AgentEvent, Tool } from "effect-agent"
import { NodeHttp } from "effect-agent/node"
import { OpenAiCompatible } from "effect-agent/providers"
import { ScriptedProvider } from "effect-agent/testing"
import { HttpClient, HttpClientResponse } from "effect/http"
import { serve, stream } from "../providers/server.ts"
import { type Count, each } from "../../harness/bench/count.ts"

/**
 * What the hot paths may cost, counted and not timed: a quarter more than they did when this was last set. Whoever makes a
 * path cheaper sets its bound lower.
 */
const bounds = {
  delta: { steps: 26, fibers: 0, hops: 0 },
  batch: { steps: 0.53, fibers: 0, hops: 0 },
  heard: { steps: 24, fibers: 0, hops: 0 },
  turn: { steps: 537, fibers: 11.25, hops: 1.25 },
  turnOverHttp: { steps: 551, fibers: 12, hops: 0 },
  agent: { steps: 610, fibers: 11.25, hops: 1.25 },
  call: { steps: 155, fibers: 6.25, hops: 0 }
}

const within = (count: Count, bound: Count): void => {
  assert.isAbove(count.steps, 0)
  assert.isAtMost(count.steps, bound.steps, "steps")
  assert.isAtMost(count.fibers, bound.fibers, "fibers")
  assert.isAtMost(count.hops, bound.hops, "hops")
}

const chunk = (delta: object, finish_reason: string | null = null): string =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason }] })}\n\n`

const answer = (pieces: ReadonlyArray<string>, reason = "stop"): ReadonlyArray<string> => [
  chunk({ role: "assistant", content: "" }),
  ...pieces,
  chunk({}, reason) + "data: [DONE]\n\n"
]

const call = (index: number, id: string): string =>
  chunk({
    tool_calls: [{ index, id, type: "function", function: { name: "tick", arguments: `{"n":${index}}` } }]
  })

/** What a run with tools ends with. */
const done = answer([chunk({ content: "done" })])

/** An HTTP client that answers with the nth list of chunks. Each is read by itself, as from a socket. */
const client = (answers: ReadonlyArray<ReadonlyArray<string>>) => {
  let asked = 0
  return HttpClient.make((request) =>
    Effect.sync(() => {
      const encoder = new TextEncoder()
      const chunks = [...(answers[asked++] ?? [])]
      const body = new ReadableStream({
        pull: (controller) => {
          const next = chunks.shift()
          if (next === undefined) controller.close()
          else controller.enqueue(encoder.encode(next))
        }
      })
      const headers = { "content-type": "text/event-stream" }
      return HttpClientResponse.fromWeb(request, new Response(body, { headers }))
    })
  )
}

/** Begins with the first answer each time it is built. */
const provider = (answers: ReadonlyArray<ReadonlyArray<string>>) =>
  OpenAiCompatible.layer({ id: "counted", baseUrl: "http://counted/v1", apiKey: Redacted.make("x") }).pipe(
    Layer.provide(Layer.sync(HttpClient.HttpClient, () => client(answers)))
  )

const tick = Tool.fromPromise({
  name: "tick",
  description: "Ticks.",
  parameters: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
  execute: async () => "ok"
})

const options = {
  model: "m",
  tools: [tick],
  toolConcurrency: 1000,
  limits: { maxTurns: 10_000, maxIdenticalToolCalls: Infinity }
}

const one = Effect.gen(function* () {
  const agent = yield* Agent.make(options)
  yield* Stream.runForEachArray(agent.stream("go"), () => Effect.void)
}).pipe(Effect.scoped)

/** A run, read as its stream. */
const streamed = (answers: ReadonlyArray<ReadonlyArray<string>>) => Effect.provide(one, provider(answers))

/** So many agents, one after another, each with a run of one answer. */
const agents = (count: number) =>
  Effect.replicateEffect(one, count, { discard: true }).pipe(
    Effect.provide(provider(Array.from({ length: count }, () => done)))
  )

/** A run with a subscriber. */
const subscribed = (answers: ReadonlyArray<ReadonlyArray<string>>) =>
  Effect.gen(function* () {
    const agent = yield* Agent.make(options)
    yield* agent.subscribe(() => Effect.void)
    yield* agent.prompt("go")
  }).pipe(Effect.scoped, Effect.provide(provider(answers)))

const texts = (count: number) => Array.from({ length: count }, () => chunk({ content: "word" }))
const together = (pieces: ReadonlyArray<string>, size: number) =>
  Array.from({ length: pieces.length / size }, (_, n) => pieces.slice(n * size, (n + 1) * size).join(""))
const turns = (count: number) => [
  ...Array.from({ length: count }, (_, n) => answer([call(0, `call_${n}`)], "tool_calls")),
  done
]
/** One call whose arguments come in so many pieces, and then some. */
const argumentsIn = (pieces: number) => {
  const piece = (json: string) => chunk({ tool_calls: [{ index: 0, function: { arguments: json } }] })
  const begun = {
    index: 0,
    id: "call_0",
    type: "function",
    function: { name: "tick", arguments: '{"n":1,"x":"' }
  }
  const more = Array.from({ length: pieces - 2 }, () => piece("more of the same"))
  return [chunk({ tool_calls: [begun] }), ...more, piece('"}')]
}
const calls = (count: number) => [
  answer(
    Array.from({ length: count }, (_, n) => call(n, `call_${n}`)),
    "tool_calls"
  ),
  done
]

/** CPU of this thread in microseconds, the least of three. Not that of other tests, nor time spent waiting. */
const cpuOf = <E>(program: Effect.Effect<unknown, E>): Effect.Effect<number, E> =>
  Effect.gen(function* () {
    let least = Infinity
    for (let round = 0; round < 3; round++) {
      const before = process.threadCpuUsage()
      yield* program
      const { system, user } = process.threadCpuUsage(before)
      least = Math.min(least, system + user)
    }
    return least
  })

/** A piece of sixteen times as many may cost three times as much; if each copied all that came before, it would be thirty. */
const doesNotGrow = <E>(program: (pieces: number) => Effect.Effect<unknown, E>, few = 5_000) =>
  Effect.gen(function* () {
    const many = few * 16
    const large = (yield* cpuOf(program(many))) / many
    const small = (yield* cpuOf(program(few))) / few
    assert.isBelow(large / small, 3)
  })

describe("what it costs", () => {
  it.live("a delta that comes alone: steps of a fiber, and no wait for the scheduler", () =>
    Effect.gen(function* () {
      within(yield* each((deltas) => streamed([answer(texts(deltas))]), 100, 400), bounds.delta)
    })
  )

  it.live("a delta of many that come together: next to nothing", () =>
    Effect.gen(function* () {
      within(yield* each((deltas) => streamed([answer(together(texts(deltas), 50))]), 100, 400), bounds.batch)
    })
  )

  it.live("a delta with a subscriber: no wait either", () =>
    Effect.gen(function* () {
      within(yield* each((deltas) => subscribed([answer(texts(deltas))]), 100, 400), bounds.heard)
    })
  )

  it.live("a turn with one call: as much after ninety as after ten", () =>
    Effect.gen(function* () {
      within(yield* each((count) => streamed(turns(count)), 10, 10), bounds.turn)
      within(yield* each((count) => streamed(turns(count)), 90, 10), bounds.turn)
    })
  )

  it.live("a turn with one call, over HTTP: no wait for the scheduler", () =>
    Effect.gen(function* () {
      let left = 0
      const server = yield* serve((response) => {
        const pieces = --left > 0 ? answer([call(0, `call_${left}`)], "tool_calls") : done
        stream(response)
        for (const piece of pieces) response.write(piece)
        response.end()
      })
      const http = OpenAiCompatible.layer({ id: "counted", baseUrl: server.baseUrl }).pipe(
        Layer.provide(NodeHttp.layer)
      )
      const turns = (count: number) =>
        Effect.suspend(() => {
          left = count
          return one
        })
      within(yield* Effect.provide(each(turns, 10, 50), http), bounds.turnOverHttp)
    })
  )

  it.live("an agent with one run of one turn", () =>
    Effect.gen(function* () {
      within(yield* each(agents, 5, 20), bounds.agent)
    })
  )

  it.live("a call of many in one answer", () =>
    Effect.gen(function* () {
      within(yield* each((count) => streamed(calls(count)), 10, 40), bounds.call)
    })
  )

  it.live("does not grow with the deltas before", () =>
    doesNotGrow((deltas) => streamed([answer(together(texts(deltas), 10))]))
  )

  for (const [which, idOf] of [
    ["calls beside it", (n: number) => `call_${n}`],
    ["calls of the same id beside it", () => "same"]
  ] as const) {
    it.live(`does not grow with the ${which}`, () =>
      doesNotGrow((count) => {
        const made = Array.from({ length: count }, (_, n) => ({ name: "tick", params: { n }, id: idOf(n) }))
        const script = [ScriptedProvider.toolCalls(...made), ScriptedProvider.text("done")]
        return Effect.provide(one, ScriptedProvider.layer(script))
      }, 200)
    )
  }

  it.live("a call that is folded does not grow with the calls beside it", () =>
    doesNotGrow((count) =>
      Effect.sync(() => {
        const base = { runId: "r", seq: 1, timestamp: 0, toolName: "tick" }
        const ids = Array.from({ length: count }, (_, n) => `call_${n}`)
        let view = AgentEvent.initial()
        for (const toolCallId of ids) {
          view = AgentEvent.fold(view, { _tag: "ToolExecutionStart", ...base, toolCallId, params: {} })
        }
        assert.strictEqual(view.pendingToolCalls.size, count)
        const end = { result: { content: [] }, isError: false, outcome: "success", durationMs: 0 } as const
        for (const toolCallId of ids) {
          view = AgentEvent.fold(view, { _tag: "ToolExecutionEnd", ...base, toolCallId, ...end })
        }
        assert.strictEqual(view.pendingToolCalls.size, 0)
      })
    )
  )

  it.live("does not grow with the arguments before", () =>
    doesNotGrow((pieces) => streamed([answer(together(argumentsIn(pieces), 10), "tool_calls"), done]))
  )
})
