/**
 * One run against one answer of the hostile server, and all that leaves it: events, errors, logs and spans.
 */
import { Cause, Effect, Exit, Fiber, type Layer, Logger, References, Schema, Stream, Tracer } from "effect"
import { HttpClient } from "effect/http"
import { Agent, AgentEvent } from "effect-agent"
import { createServer } from "node:http"
import { inspect } from "node:util"
import { opened } from "../../providers/server.ts"
import { found, type Language, provider, type Way } from "./planted.ts"
import { echoOf, type Shape } from "./shapes.ts"

export interface Case {
  readonly language: Language
  readonly way: Way
  readonly shape: Shape
}

/** What came out of a run, by where it came out. */
export type Sinks = Readonly<Record<"events" | "errors" | "logs" | "spans", string>>

/** Every sink that holds a secret, and which. */
export const leaks = (sinks: Sinks): ReadonlyArray<string> =>
  Object.entries(sinks).flatMap(([sink, text]) => found(text).map((name) => `${name} in the ${sink}`))

const shown = (value: unknown): string => {
  const json = (() => {
    try {
      return JSON.stringify(value) ?? ""
    } catch {
      return ""
    }
  })()
  return [
    String(value),
    json,
    inspect(value, { depth: 10, maxArrayLength: null, maxStringLength: null })
  ].join("\n")
}

const ofError = (error: unknown): string =>
  [
    shown(error),
    ...(error instanceof Error ? [error.message, error.stack ?? ""] : []),
    Cause.pretty(Cause.fail(error))
  ].join("\n")

/** Every log of every level, with its cause and what is around it. */
const logging = (logs: Array<string>) =>
  Logger.layer([
    Logger.make(({ cause, fiber, message }) => {
      logs.push(
        shown(message),
        shown(cause),
        Cause.pretty(cause),
        shown(fiber.getRef(References.CurrentLogAnnotations))
      )
    })
  ])

/** Every span, with all headers in its attributes. */
const tracing = (spans: Array<Tracer.NativeSpan>) =>
  Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })

/** What exporters make of a span: names, attributes, events, and the words of a failure. */
const exported = ({ attributes, events, name, status }: Tracer.NativeSpan): string =>
  [
    name,
    shown([...attributes]),
    shown(events),
    ...(status._tag === "Ended" && Exit.isFailure(status.exit)
      ? [Cause.pretty(status.exit.cause), ofError(Cause.squash(status.exit.cause))]
      : [])
  ].join("\n")

const encode = Schema.encodeUnknownExit(Schema.toCodecJson(AgentEvent.AgentEvent))

/** Serves one answer over and over. `asked` is called when a request is there. */
const serving = (shape: Shape, language: Language, asked: () => void) => {
  // Of earlier requests too: some servers are behind.
  const seen = new Set<string>()
  const server = createServer((request, response) => {
    request.on("end", () => {
      response.on("error", () => {})
      seen.add(echoOf(request))
      shape.answer({ request, response, language, echo: [...seen].join(" ") })
      asked()
    })
    request.resume()
  })
  server.on("connection", (socket) => socket.on("error", () => {}))
  return opened(server)
}

/** What a program logs, at all levels, and traces. */
export const listening = <A, E, R>(program: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const logs: Array<string> = []
    const spans: Array<Tracer.NativeSpan> = []
    return program.pipe(
      Effect.provideService(Tracer.Tracer, tracing(spans)),
      Effect.provideService(HttpClient.TracerHeaderFilter, () => true),
      Effect.provideService(References.MinimumLogLevel, "All"),
      Effect.provide(logging(logs)),
      Effect.map((value) => ({
        value,
        logs: logs.join("\n"),
        spans: spans.map(exported).join("\n"),
        ended: spans.map(({ status }) => shown(status)).join("\n")
      }))
    )
  })

/** Runs the case, and gives all that came out. */
export const drive = Effect.fnUntraced(function* (
  { language, shape, way }: Case,
  http: Layer.Layer<HttpClient.HttpClient>
) {
  const [events, errors]: [Array<string>, Array<string>] = [[], []]
  const run = Effect.gen(function* () {
    let asked = () => {}
    const isAsked = new Promise<void>((resolve) => {
      asked = resolve
    })
    const origin = yield* serving(shape, language, () => asked())
    const layer = provider(language, way, origin)
    const agent = yield* Agent.make({ model: "m-1" }).pipe(Effect.provide(layer), Effect.provide(http))
    const running = yield* Effect.forkChild(
      Effect.exit(
        Stream.runForEach(agent.stream("hi"), (event) =>
          Effect.sync(() => {
            events.push(shown(event), shown(encode(event)))
          })
        )
      )
    )
    if (shape.isCancelled === true) {
      // Some clients refuse an address, and ask nobody.
      yield* Effect.raceFirst(
        Effect.promise(() => isAsked),
        Fiber.await(running)
      )
      yield* Effect.sleep("5 millis")
      yield* agent.cancel("enough")
    }
    const exit = yield* Fiber.join(running)
    if (Exit.isSuccess(exit)) return
    const error = Cause.squash(exit.cause)
    errors.push(Cause.pretty(exit.cause), shown(exit), ofError(error))
    yield* Effect.logError("The run failed", exit.cause)
  })
  const { ended, logs, spans } = yield* listening(Effect.scoped(run))
  const sinks: Sinks = { events: events.join("\n"), errors: errors.join("\n"), logs, spans: spans + ended }
  return sinks
})
