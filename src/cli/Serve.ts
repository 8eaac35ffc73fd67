/** The command `serve`: runs for clients over HTTP, until a signal ends it. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Struct from "effect/Struct"
import { randomBytes } from "node:crypto"
import { createServer } from "node:http"
import { Provider } from "../Provider.ts"
import { SessionStore } from "../sessions/SessionStore.ts"
import type { Agents } from "../server/Agents.ts"
import * as LiveRuns from "../server/LiveRuns.ts"
import * as Server from "../server/Server.ts"
import type { Options as DurableOptions } from "./DurablePlace.ts"
import { UsageError } from "./ExitCode.ts"
import * as ExitCode from "./ExitCode.ts"
import * as Inert from "./Inert.ts"
import * as JsonLine from "./JsonLine.ts"
import { Screen } from "./Screen.ts"
import * as ServerHeap from "./ServerHeap.ts"
import * as ServedAgents from "./ServedAgents.ts"
import * as ServeFailure from "./ServeFailure.ts"
import type { ServeLine } from "./ServerCommands.ts"
import * as ServerOptions from "./ServerOptions.ts"
import * as SessionPlace from "./SessionPlace.ts"
import * as Settings from "./Settings.ts"
import * as Signals from "./Signals.ts"
import * as Values from "./Values.ts"
import type { Environment } from "./Vendors.ts"

/** The flags that are no settings of a run. */
const own = [
  "port",
  "host",
  "allowHost",
  "allowOrigin",
  "tokenFile",
  "rate",
  "grace",
  "proxyModel",
  "sessionModel",
  "durable",
  "lease",
  "retain",
  "unknown",
  "clusterHost",
  "clusterPort"
] as const

/** Serves until a signal comes, and returns the exit code. */
export const run = Effect.fnUntraced(
  function* (line: ServeLine, env: Environment) {
    yield* ServerHeap.keepLow
    const options = yield* optionsOf(line, env)
    const { remarks, settings, sources } = yield* Settings.read(Struct.omit(line, own), env)
    const kept = yield* Settings.durable(line, sources)
    const { err, out, paint } = yield* Screen
    yield* err([...remarks, ...kept.remarks].map((remark) => `${paint.dim(Inert.line(remark))}\n`).join(""))
    for (const [name, flag] of Object.entries({ host: line.clusterHost, port: line.clusterPort }))
      if (!kept.isDurable && Option.isSome(flag))
        return yield* new UsageError({ detail: `--cluster-${name} goes with --durable.` })
    const place = yield* kept.isDurable
      ? durable(settings, { ...kept, ...(yield* socketOf(line, env)) })
      : living(settings)
    const { choice, layer: agents } = yield* ServedAgents.make(settings, env, place.artifacts, {
      ...kept,
      sessionModels: options.sessionModels,
      tokenFile: ServerOptions.tokenFile(line.tokenFile, env)
    })
    const { grace, host, hosts, origins, port, proxied, rate, token, tokens } = options
    yield* ServedAgents.proxied(proxied, choice)
    const provider = Context.get(yield* Layer.build(choice.provider), Provider)
    const proxy = { provider, models: proxied.length > 0 ? proxied : [choice.model] }
    const app = Server.layer({ tokens, hosts, origins, grace, ...rate, accessLog: true, proxy })
    const node = NodeHttpServer.layer(() => createServer(), { host, port })
    const { ending, patience } = yield* Signals.Signals
    yield* patience(Duration.toMillis(grace) + 15_000)
    // Built first: requests that came while logs are read would get no answer.
    const running = yield* Layer.build(place.runs(agents))
    const context = yield* Effect.provideContext(Layer.build(Layer.provideMerge(app, node)), running)
    const url = HttpServer.formatAddress(Context.get(context, HttpServer.HttpServer).address)
    const made = token === undefined ? {} : { token: Redacted.value(token) }
    if (settings.outputFormat === "stream-json") yield* out(JsonLine.of({ type: "listening", url, ...made }))
    else yield* err(sentence(url, token))
    yield* ending
    return ExitCode.answered
  },
  Effect.scoped,
  // So that stderr has the log of requests.
  ServeFailure.logged,
  Effect.catchTags(ServeFailure.handlers)
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
    Effect.promise(() => import("./DurablePlace.ts")),
    ({ open }) => open(settings, options)
  )

/** The address for workers. */
const socketOf = Effect.fnUntraced(function* (line: ServeLine, env: Environment) {
  const host = ServerOptions.one(line.clusterHost, "EFFECT_AGENT_CLUSTER_HOST", env)
  const port = ServerOptions.one(line.clusterPort, "EFFECT_AGENT_CLUSTER_PORT", env)
  return {
    host: Option.getOrElse(host, () => "127.0.0.1"),
    port: Option.isNone(port) ? undefined : yield* ServerOptions.port("cluster-port", port.value)
  }
})

const sentence = (url: string, token: Redacted.Redacted | undefined): string =>
  token === undefined
    ? `Listening at ${url}\n`
    : `Listening at ${url} with the token ${Redacted.value(token)}\n`

/** The options of the server, of the flags, else of the variables. */
const optionsOf = Effect.fnUntraced(function* (line: ServeLine, env: Environment) {
  const { many, one } = ServerOptions
  const port = Option.getOrElse(one(line.port, "EFFECT_AGENT_PORT", env), () => "4111")
  const host = Option.getOrElse(one(line.host, "EFFECT_AGENT_HOST", env), () => "127.0.0.1")
  const isAny = host === "0.0.0.0" || host === "::"
  const listened = isAny ? [] : [host.includes(":") ? `[${host}]` : host]
  return {
    ...made(yield* ServerOptions.tokens(line.tokenFile, env)),
    port: yield* ServerOptions.port("port", port),
    grace: yield* ServerOptions.grace(line.grace, env),
    rate: yield* rateOf(one(line.rate, "EFFECT_AGENT_RATE", env)),
    host,
    hosts: [
      ...listened,
      ...(yield* Effect.forEach(many(line.allowHost, "EFFECT_AGENT_ALLOW_HOST", env), ServerOptions.hostName))
    ],
    origins: yield* Effect.forEach(
      many(line.allowOrigin, "EFFECT_AGENT_ALLOW_ORIGIN", env),
      ServerOptions.origin
    ),
    proxied: many(line.proxyModel, "EFFECT_AGENT_PROXY_MODEL", env),
    sessionModels: many(line.sessionModel, "EFFECT_AGENT_SESSION_MODEL", env)
  }
})

/** The limit on the requests of a token. */
const rateOf = (given: Option.Option<string>): Effect.Effect<Pick<Server.Options, "rate">, UsageError> => {
  if (Option.isNone(given)) return Effect.succeed({})
  const [, count = "", time = "1m"] = /^(\d{1,9})(?:\/(.+))?$/.exec(given.value) ?? []
  const window = Values.duration(time)
  return Number(count) > 0 && Option.isSome(window)
    ? Effect.succeed({ rate: { requests: Number(count), window: window.value } })
    : Effect.fail(
        new UsageError({ detail: `--rate: ${given.value} is no number of requests such as 600 or 60/10s.` })
      )
}

/** The tokens, and the one that was made for lack of others. */
const made = (tokens: ReadonlyArray<Redacted.Redacted>) => {
  if (tokens.length > 0) return { tokens, token: undefined }
  const token = Redacted.make(randomBytes(24).toString("base64url"))
  return { tokens: [token], token }
}
