/**
 * What nobody has set: after how long a silence is noticed, in each language and each way of being silent, and where a
 * model that never stops is stopped. In virtual time.
 */
import { Effect, Exit, Fiber, Layer, type Schema, Stream } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { Agent, type Provider, Tool } from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider } from "effect-agent/testing"
import { setImmediate } from "node:timers/promises"
import * as Api from "../conformance/Api.ts"
import type { Chaos, Options, Outcome } from "./Chaos.ts"
import { speechOf } from "./speech.ts"

export const defaults: Chaos = {
  count: 1,
  run: (options) => Effect.scoped(run(options)).pipe(Effect.provide(TestClock.layer()))
}

/** Seconds of silence, turns, and the same call. */
const most = { silence: 120, turns: 50, identical: 5 }

interface Found {
  readonly name: string
  readonly value: number
  readonly most: number
}

const run = Effect.fnUntraced(function* ({ say }: Options) {
  const found: Array<Found> = []
  for (const [language, layer] of Object.entries(languages)) {
    for (const [silence, answer] of Object.entries(silences)) {
      const name = `${language}, ${silence}`
      const seconds = yield* noticed(layer, answer)
      found.push({ name: `${name}: seconds`, value: seconds, most: most.silence })
      say(`${name}: after ${seconds} s`)
    }
  }
  for (const [name, runaway] of Object.entries(runaways)) {
    const { calls, requests } = yield* stopped(runaway.tool)
    found.push({ name: `${name}: requests`, value: requests, most: most.turns })
    found.push({ name: `${name}: calls`, value: calls / runaway.distinct, most: runaway.most })
    say(`${name}: ${requests} requests, ${calls} calls`)
  }
  return judge(found)
})

const judge = (found: ReadonlyArray<Found>): Outcome => {
  const largest = (what: string) =>
    Math.max(...found.flatMap(({ name, value }) => (name.endsWith(what) ? [value] : [])))
  return {
    figures: {
      "silence noticed after at most": `${largest("seconds")} s`,
      "requests of a run-away at most": largest("requests")
    },
    violations: found.flatMap(({ most, name, value }) =>
      value <= most ? [] : [`${name} ${value}, not ${most}`]
    )
  }
}

// ───────────────────────── Silence

const origin = "http://127.0.0.1:9"
const languages: Readonly<Record<string, ReturnType<Api.Api["layer"]>>> = {
  "openai-chat": Api.openAiChat.layer(`${origin}/v1`),
  "openai-responses": Api.openAiResponses.layer(`${origin}/v1`),
  "anthropic-messages": Api.anthropic.layer(origin),
  "google-generative": Api.google.layer(origin)
}

/** An answer that falls silent. `alive` is said once a second after it, and says nothing. */
interface Silence {
  readonly hasHead: boolean
  readonly said: (whole: string) => string
  readonly alive: string
}

const silences: Readonly<Record<string, Silence>> = {
  "no head": { hasHead: false, said: () => "", alive: "" },
  "no event": { hasHead: true, said: () => "", alive: "" },
  "no more text": { hasHead: true, said: (whole) => half(whole), alive: "" },
  "keep-alives only": { hasHead: true, said: (whole) => half(whole), alive: ": ping\n\n" }
}

/** Half of the events. */
const half = (whole: string): string => {
  const events = whole.split("\n\n")
  return events.slice(0, Math.floor(events.length / 2)).join("\n\n") + "\n\n"
}

/** Seconds until the run ends by itself. */
const noticed = Effect.fnUntraced(function* (
  layer: Layer.Layer<Provider.Provider, never, HttpClient.HttpClient>,
  { alive, hasHead, said }: Silence
) {
  let ping = () => {}
  const http = HttpClient.make((request, { pathname }) =>
    hasHead
      ? Effect.sync(() => {
          const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
            start: (controller) => {
              const say = (text: string) => controller.enqueue(new TextEncoder().encode(text))
              say(said(speechOf(pathname)("It goes on and on, as it seems, and then it stops.", [])))
              ping = () => say(alive)
            },
            cancel: () => {
              ping = () => {}
            }
          })
          const headers = { "content-type": "text/event-stream" }
          return HttpClientResponse.fromWeb(request, new Response(body, { headers }))
        })
      : Effect.never
  )
  const agent = yield* Agent.make({ model: "m" }).pipe(
    Effect.orDie,
    Effect.provide(Layer.provide(Retry.layer()(layer), Layer.succeed(HttpClient.HttpClient, http)))
  )
  const running = yield* Effect.forkChild(Effect.exit(agent.prompt("go")), { startImmediately: true })
  for (let seconds = 0; seconds < 10 * most.silence; seconds++) {
    const exit = running.pollUnsafe()
    if (exit !== undefined) return Exit.isSuccess(exit) && Exit.isFailure(exit.value) ? seconds : Infinity
    if (alive !== "") ping()
    // The body comes over promises, which do not wait for the virtual clock.
    yield* Effect.promise(() => setImmediate())
    yield* TestClock.adjust("1 second")
  }
  yield* Fiber.interrupt(running)
  return Infinity
})

// ───────────────────────── Run-aways

interface RunAway {
  /** The call of each turn. */
  readonly tool: (turn: number) => { readonly name: string; readonly params: Schema.Json }
  /** How many different calls there are, each of which may be made so often. */
  readonly distinct: number
  readonly most: number
}

const runaways: Readonly<Record<string, RunAway>> = {
  "ever new calls": { tool: (turn) => ({ name: "look", params: { turn } }), distinct: 1, most: most.turns },
  "the same call": { tool: () => ({ name: "look", params: {} }), distinct: 1, most: most.identical },
  "two calls in turn": {
    tool: (turn) => ({ name: "look", params: { at: turn % 2 } }),
    distinct: 2,
    most: most.identical
  },
  "three calls in turn": {
    tool: (turn) => ({ name: "look", params: { at: turn % 3 } }),
    distinct: 3,
    most: most.identical
  }
}

const stopped = Effect.fnUntraced(function* (tool: RunAway["tool"]) {
  const provider = yield* ScriptedProvider.make([], {
    exhausted: (_, call) => {
      const { name, params } = tool(call)
      return ScriptedProvider.toolCalls({ name, params })
    }
  })
  let calls = 0
  const look = Tool.fromJsonSchema({
    name: "look",
    description: "Looks.",
    parameters: { type: "object" },
    execute: () => Effect.sync(() => `seen ${++calls > 0}`)
  })
  const agent = yield* Agent.make({ model: "m", tools: [look] }).pipe(
    Effect.orDie,
    Effect.provide(provider.layer)
  )
  // Nobody stops it from here before it has gone much too far.
  yield* Effect.exit(agent.stream("go").pipe(Stream.take(100_000), Stream.runDrain))
  return { calls, requests: (yield* provider.requests).length }
})
