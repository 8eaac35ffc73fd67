/**
 * A reader that takes fifty events a second, and a server that offers 256 MB as fast as it can: how much is taken ahead of
 * the reader in three seconds, in each language and with each HTTP client.
 */
import { NodeHttpClient } from "@effect/platform-node"
import { Effect, Exit, type Layer, Option, Stream } from "effect"
import { FetchHttpClient, type HttpClient } from "effect/http"
import { Agent } from "effect-agent"
import { NodeHttp } from "effect-agent/node"
import { createServer, type ServerResponse } from "node:http"
import * as Api from "../conformance/Api.ts"
import type { Chaos, Options, Outcome } from "./Chaos.ts"
import { speechOf } from "./speech.ts"

/** `count` is how often each is tried. */
export const slow: Chaos = { count: 1, run: (options) => Effect.scoped(run(options)) }

const megabyte = 1024 * 1024
const offered = 256 * megabyte
/** Bytes ahead of the reader, at most. */
const most = 16 * megabyte
const between = "20 millis"
const duration = "3 seconds"

const languages: Readonly<Record<string, (origin: string) => ReturnType<Api.Api["layer"]>>> = {
  "openai-chat": (origin) => Api.openAiChat.layer(`${origin}/v1`),
  "openai-responses": (origin) => Api.openAiResponses.layer(`${origin}/v1`),
  "anthropic-messages": (origin) => Api.anthropic.layer(origin),
  "google-generative": (origin) => Api.google.layer(origin)
}

const clients: Readonly<Record<string, Layer.Layer<HttpClient.HttpClient>>> = {
  fetch: FetchHttpClient.layer,
  undici: NodeHttpClient.layerUndici,
  NodeHttp: NodeHttp.layer
}

interface Taken {
  readonly name: string
  readonly ahead: number
  readonly events: number
}

const run = Effect.fnUntraced(function* ({ count, say }: Options) {
  const server = yield* flood
  const trials = Object.entries(languages).flatMap(([language, layer]) =>
    Object.entries(clients).flatMap(([client, http]) =>
      Array.from({ length: count }, () => ({
        name: `${language} over ${client}`,
        layer: layer(server.origin),
        http
      }))
    )
  )
  const taken = yield* Effect.forEach(trials, ({ http, layer, name }) =>
    Effect.gen(function* () {
      server.taken = 0
      let read = 0
      let events = 0
      const agent = yield* Agent.make({ model: "m" }).pipe(Effect.orDie, Effect.provide(layer))
      const reading = Stream.runForEach(agent.stream("go"), (event) =>
        Effect.suspend(() => {
          events++
          if (event._tag === "MessageDelta") read += server.size
          return Effect.sleep(between)
        })
      )
      const exit = yield* Effect.exit(Effect.timeoutOption(reading, duration))
      const ahead = server.taken - read
      say(`${name}: ${(ahead / megabyte).toFixed(1)} MB ahead after ${events} events`)
      // It must still be reading: an answer that broke takes nothing.
      const isReading = Exit.isSuccess(exit) && Option.isNone(exit.value) && events > 20
      return { name, ahead: isReading ? ahead : Infinity, events }
    }).pipe(Effect.scoped, Effect.provide(http))
  )
  return judge(taken)
})

const judge = (taken: ReadonlyArray<Taken>): Outcome => ({
  figures: {
    offered: `${offered / megabyte} MB`,
    "ahead at most": `${(Math.max(...taken.map(({ ahead }) => ahead)) / megabyte).toFixed(1)} MB`
  },
  violations: taken.flatMap(({ ahead, events, name }) =>
    ahead <= most ? [] : [`${name}: ${ahead} bytes ahead after ${events} events`]
  )
})

/** Offers an endless answer in the language of the path. What the system has taken from it counts as taken. */
const flood = Effect.acquireRelease(
  Effect.callback<{ readonly origin: string; readonly size: number; taken: number; close: () => void }>(
    (resume) => {
      const server = createServer((request, response) => {
        request.resume().on("end", () => pour(response, (request.url ?? "").replace(/\?.*/, "")))
      })
      const close = () => {
        server.closeAllConnections()
        server.close()
      }
      const state = { origin: "", size: text.length, taken: 0, close }
      const pour = (response: ServerResponse, path: string) => {
        const { delta, head } = eventsOf(path)
        response.writeHead(200, { "content-type": "text/event-stream" }).write(head)
        response.on("error", () => {})
        let left = offered
        const next = () => {
          if (left <= 0 || response.destroyed) return
          left -= delta.length
          response.write(delta, (error) => {
            if (error) return
            state.taken += delta.length
            next()
          })
        }
        next()
      }
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" ? address?.port : undefined
        resume(Effect.succeed(Object.assign(state, { origin: `http://127.0.0.1:${port}` })))
      })
    }
  ),
  ({ close }) => Effect.sync(close)
)

const text = "x".repeat(4096)
const piece = "@".repeat(12)

/** The events up to the first piece of text, and one with more text that can follow it as often as one likes. */
const eventsOf = (path: string) => {
  const events = speechOf(path)(piece, []).split("\n\n")
  const at = events.findIndex((event) => event.includes(piece))
  const end = (parts: ReadonlyArray<string>) => parts.map((part) => `${part}\n\n`).join("")
  return {
    head: end(events.slice(0, at)),
    delta: Buffer.from(end([events[at]?.replace(piece, text) ?? ""]))
  }
}
