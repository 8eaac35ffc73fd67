/**
 * A run over a damaged answer, from the HTTP response to the tools: which calls were really run.
 */
import { Effect, Layer, Schema, Stream } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { Loop, type Provider, Tool, ToolRegistry } from "effect-agent"
import type { Call } from "./strict.ts"

export const toolNames = ["weather", "clock", "note"]

export interface Played {
  readonly calls: ReadonlyArray<Call>
  /** The tags of the events of the run, in order. */
  readonly last: string | undefined
}

/** Answers the first request with the damaged body, and any other with the whole one of a text. */
export const play = Effect.fnUntraced(function* (
  provider: Layer.Layer<Provider.Provider, never, HttpClient.HttpClient>,
  damaged: Uint8Array<ArrayBuffer>,
  text: string | Uint8Array<ArrayBuffer>
): Effect.fn.Return<Played> {
  const calls: Array<Call> = []
  let requests = 0
  const http = HttpClient.make((request) =>
    Effect.sync(() => {
      const headers = { "content-type": "text/event-stream" }
      const body = ++requests === 1 ? damaged : text
      return HttpClientResponse.fromWeb(request, new Response(body, { headers }))
    })
  )
  const events = yield* Loop.stream(
    "hi",
    { messages: [] },
    { model: "m", limits: { maxTurns: 3, onMaxTurns: "stop" } }
  ).pipe(
    Stream.map(({ _tag }) => _tag),
    Stream.catch(() => Stream.empty),
    Stream.runCollect,
    Effect.provide([
      Layer.provide(provider, Layer.succeed(HttpClient.HttpClient, http)),
      ToolRegistry.layer(...toolNames.map((name) => recording(name, calls)))
    ])
  )
  return { calls, last: events.at(-1) }
})

/** Takes any arguments, and notes them. */
const recording = (name: string, calls: Array<Call>) =>
  Tool.make({
    name,
    description: name,
    params: Schema.Record(Schema.String, Schema.Json),
    execute: (params) => {
      calls.push({ name, params: JSON.stringify(params) })
      return Effect.succeed("ok")
    }
  })
