/** The command `serve`: runs for clients over HTTP, until a signal ends it. */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { Provider } from "../../Provider.ts"
import { SessionStore } from "../../sessions/SessionStore.ts"
import type { Agents } from "../../runs/Agents.ts"
import * as LiveRuns from "../../runs/LiveRuns.ts"
import * as Server from "../../server/Server.ts"
import type { Options as DurableOptions } from "../agent/DurablePlace.ts"
import { UsageError } from "../ExitCode.ts"
import * as ExitCode from "../ExitCode.ts"
import * as Inert from "../terminal/Inert.ts"
import * as Serving from "../agent/Serving.ts"
import { say, Screen } from "../terminal/Screen.ts"
import type { Line } from "./ServerCommands.ts"
import * as SessionPlace from "../agent/SessionPlace.ts"
import * as Settings from "../settings/Settings.ts"
import * as Signals from "../Signals.ts"
import * as TokenFile from "../agent/TokenFile.ts"
import type { Environment } from "../agent/Vendors.ts"

/** Serves until a signal comes, and returns the exit code. */
export const run = Effect.fnUntraced(
  function* (line: Line, env: Environment) {
    yield* Serving.keepLow
    const { remarks, settings, sources } = yield* Settings.read(line, env)
    const server = yield* Settings.ofServer(line, sources)
    if (server.alone !== undefined)
      return yield* new UsageError({ detail: `${server.alone} goes with --durable.` })
    const { made, tokens } = yield* TokenFile.watched(server.tokenFile, env)
    const { err, out } = yield* Screen
    yield* say([...remarks, ...server.remarks])
    const place = yield* server.isDurable ? durable(settings, server) : living(settings)
    const { choice, layer: agents } = yield* Serving.agents(settings, env, place.artifacts, server)
    const { grace, proxyModel: proxied } = server
    yield* Serving.proxied(proxied, choice)
    const provider = Context.get(yield* Layer.build(choice.provider), Provider)
    const proxy = { provider, models: proxied.length > 0 ? proxied : [choice.model] }
    const app = Server.layer({
      tokens,
      hosts: [...listened(server.host), ...server.allowHost],
      origins: server.allowOrigin,
      allowHeaders: server.allowHeader,
      exposeHeaders: server.exposeHeader,
      grace,
      ...Option.match(server.rate, { onNone: () => ({}), onSome: (rate) => ({ rate }) }),
      bodyTime: Option.getOrElse(server.bodyTime, () => "1 minute" as const),
      maxBodiesSize: Option.getOrElse(server.maxBodies, () => 256) * 1_048_576,
      accessLog: true,
      proxy
    })
    const { ending, patience } = yield* Signals.Signals
    yield* patience(Duration.toMillis(grace) + 15_000)
    // Built first: requests that came while logs are read would get no answer.
    const running = yield* Layer.build(place.runs(agents))
    const url = yield* Effect.provideContext(Serving.serve(app, server), running)
    const token = made === undefined ? {} : { token: Redacted.value(made) }
    if (settings.outputFormat === "stream-json") yield* out(Inert.json({ type: "listening", url, ...token }))
    else yield* err(sentence(url, made))
    yield* ending
    return ExitCode.answered
  },
  Effect.scoped,
  // So that stderr has the log of requests.
  Serving.logged,
  Effect.catchTags(Serving.handlers)
)

/** Runs that end with the process. */
const living = Effect.fnUntraced(function* (settings: Settings.Settings) {
  const { artifacts, listed, logs, store } = yield* SessionPlace.at(settings)
  const runs = <R>(agents: Layer.Layer<Agents, never, R>) =>
    LiveRuns.layer(listed).pipe(Layer.provide([agents, Layer.succeed(SessionStore, store), logs]))
  return { artifacts, runs }
})

/** Runs that survive the process, whose modules are loaded for them. */
const durable = (settings: Settings.Settings, options: DurableOptions) =>
  Effect.flatMap(
    Effect.promise(() => import("../agent/DurablePlace.ts")),
    ({ open }) => open(settings, options)
  )

const sentence = (url: string, token: Redacted.Redacted | undefined): string =>
  token === undefined
    ? `Listening at ${url}\n`
    : `Listening at ${url} with the token ${Redacted.value(token)}\n`

/** The names of the address at which the server listens. */
const listened = (host: string): ReadonlyArray<string> =>
  host === "0.0.0.0" || host === "::" ? [] : [host.includes(":") ? `[${host}]` : host]
