/**
 * The commands `serve` and `worker`: runs for clients over HTTP, and runs of the sessions of a database, until a signal ends them.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Redacted from "effect/Redacted"
import * as References from "effect/References"
import * as HttpServer from "effect/http/HttpServer"
import type { SocketServerError } from "effect/socket/SocketServer"
import { createServer } from "node:http"
import type { Socket } from "node:net"
import { setFlagsFromString } from "node:v8"
import type { ArtifactStore } from "../../artifacts/ArtifactStore.ts"
import * as Agents from "../../runs/Agents.ts"
import * as ExitCode from "../ExitCode.ts"
import * as Settings from "../settings/Settings.ts"
import * as Requests from "../terminal/Requests.ts"
import * as Screen from "../terminal/Screen.ts"
import * as AgentSetup from "../agent/AgentSetup.ts"
import * as KeptFiles from "../agent/KeptFiles.ts"
import * as ModelChoice from "../agent/ModelChoice.ts"
import type { Environment } from "../agent/Vendors.ts"
import { Provider } from "../../Provider.ts"
import type { Session } from "../../Session.ts"
import { SessionStore } from "../../sessions/SessionStore.ts"
import * as LiveRuns from "../../runs/LiveRuns.ts"
import * as Server from "../../server/Server.ts"
import type { Options as DurableOptions } from "../agent/DurablePlace.ts"
import * as Inert from "../terminal/Inert.ts"
import type { ServingLine } from "../CommandLine.ts"
import * as SessionAgents from "../agent/SessionAgents.ts"
import * as Sessions from "../agent/Sessions.ts"
import * as TokenFile from "../agent/TokenFile.ts"
import { Runs } from "../../runs/Runs.ts"

interface Options extends Pick<Settings.OfServer, "grace" | "headTime" | "keepAlive" | "maxConnections"> {
  readonly host: string
  readonly port: number
}

/** The time in which streams of runs that were let go of get to close. */
const flush = Duration.seconds(1)

/**
 * Serves an application until the scope closes, and succeeds with its address. Then it closes at once the connections on which no request is
 * open, and the others when `grace` is over.
 */
const listening = Effect.fnUntraced(function* <R>(
  app: Layer.Layer<never, never, HttpServer.HttpServer | R>,
  { grace, headTime, host, keepAlive, maxConnections, port }: Options
) {
  const millis = (time: Option.Option<Duration.Duration>, usual: number) =>
    Math.ceil(Option.match(time, { onNone: () => usual, onSome: Duration.toMillis }))
  const headersTimeout = millis(headTime, 30_000)
  const server = createServer({
    keepAliveTimeout: millis(keepAlive, 75_000),
    headersTimeout,
    // The time of a body is that of the application. This one is for bodies that it does not read.
    requestTimeout: Math.max(300_000, headersTimeout),
    connectionsCheckingInterval: 5_000
  })
  server.maxConnections = Option.getOrElse(maxConnections, () => 10_000)
  /** The connections that have had no whole head: Node does not count them as idle. */
  const silent = new Set<Socket>()
  server.on("connection", (socket) => {
    silent.add(socket)
    socket.once("close", () => silent.delete(socket))
  })
  server.on("request", ({ socket }) => silent.delete(socket))
  const node = NodeHttpServer.layer(() => server, { host, port })
  const context = yield* Layer.build(Layer.provideMerge(app, node))
  const closing = Effect.gen(function* () {
    for (const socket of silent) socket.destroy()
    server.closeIdleConnections()
    yield* Effect.sleep(Duration.sum(grace, flush))
    server.closeAllConnections()
  })
  // Added last, so that it is the first step of the end.
  yield* Effect.addFinalizer(() => Effect.forkDetach(closing, { startImmediately: true }))
  return HttpServer.formatAddress(Context.get(context, HttpServer.HttpServer).address)
})

// ───────────────────────── Failures

/** Writes the reason in a line, and returns the exit code. */
const failed = (cause: unknown) =>
  Effect.as(Screen.complain(cause instanceof Error ? cause.message : String(cause)), ExitCode.failed)

/** The exit codes of the failures of `serve` and `worker`, by their tags. */
const handlers = {
  ServeError: ({ cause }: { readonly cause: unknown }) => failed(cause),
  RunLogError: failed,
  ClusterRefused: failed,
  // Its own message is no more than "Open".
  SocketServerError: ({ reason }: SocketServerError) => failed(reason.cause)
}

/** Logs to stderr, for which a log of requests needs the level. */
const logged = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.updateService(effect, References.MinimumLogLevel, (level) => (level === "None" ? "Info" : level))

// ───────────────────────── The heap

// The heap of a process that serves.
//
// V8 lets the old generation of a heap grow to several times what is in use, and allocates objects there whose like lived long before:
// after the start of many runs, those of each delta. Measured on 500 runs that streamed for a minute, 720 MB of memory became 540, for the
// CPU that they cost before.

const flags = ["--heap-growing-percent=20", "--no-allocation-site-pretenuring"]

/** Keeps the heap near what is in use, from now on. */
export const keepLow: Effect.Effect<void> = Effect.sync(() =>
  flags.forEach((flag) => setFlagsFromString(flag))
)

// ───────────────────────── Agents

interface Served extends Required<Pick<Requests.Policy, "unknown">> {
  /** The models that sessions may name, as `provider/id` or `provider/*`. Default, if it is empty: those of the server's providers. */
  readonly sessionModel: ReadonlyArray<string>
  /** The file with the tokens of the server. */
  readonly tokenFile: Option.Option<string>
}

interface Stored {
  readonly artifacts: ArtifactStore["Service"]
  /** The versions of the files that calls change. Default: calls of other machines change them, and nothing is kept. */
  readonly kept?: KeptFiles.Place
}

/** Makes the service that makes the agent of a session, with the settings of the program. */
const agentsOf = Effect.fnUntraced(function* (
  settings: Settings.Settings,
  env: Environment,
  { artifacts, kept }: Stored,
  { sessionModel, tokenFile, unknown }: Served
) {
  const [choice, { options: shell, remark }] = yield* Effect.all(
    [ModelChoice.withFallbacks(settings, env), AgentSetup.chooseSandbox(settings, tokenFile)],
    { concurrency: 2 }
  )
  yield* Screen.say([`Model: ${choice.model} (${choice.why})`, ...(remark === undefined ? [] : [remark])])
  const project = yield* AgentSetup.loadProject(settings, env)
  if (Option.isSome(settings.mcpConfig) && !settings.noMcp) {
    const { servers } = yield* Effect.promise(() => import("../agent/McpConfig.ts"))
    yield* servers(settings)
  }
  const hooks = yield* AgentSetup.loadHooks(settings)
  const plan = { settings, prompt: undefined, choice, output: undefined, project, shell, hooks }
  const root = (yield* Path.Path).resolve(settings.cwd)
  const asked = Option.contains(settings.approve, "deny") ? "deny" : "wait"
  const policy = { ...Requests.policyOf(settings, root, asked), unknown }
  const allowed = sessionModel.length > 0 ? sessionModel : own([choice.model, ...fallbacks(settings)])
  const named = Effect.fnUntraced(function* (model: string) {
    const options = { ...settings, model: Option.some(model), modelFrom: "model" }
    const found = yield* ModelChoice.choose(ModelChoice.besides(options, choice, model), env)
    if (allowed.includes(found.model) || allowed.includes(`${ModelChoice.vendorOf(found.model)}/*`))
      return found
    const detail = `model: this server does not let sessions name ${found.model}. They may name ${allowed.join(", ")} (--session-model).`
    return yield* new ExitCode.UsageError({ detail })
  })
  const keeper = kept && ((session: Session) => KeptFiles.keeperOf(kept, session))
  const layer = SessionAgents.layer({ plan, policy, artifacts, env, named, keeper })
  return { choice, layer }
})

const fallbacks = ({ fallbackModel }: Settings.Settings) => fallbackModel.map(({ name }) => name)

/** All models of the providers of some. */
const own = (models: ReadonlyArray<string>) => [
  ...new Set(models.map((model) => `${ModelChoice.vendorOf(model)}/*`))
]

/** Fails with `UsageError` for a model that the provider of the server does not have. */
const checkProxied = (models: ReadonlyArray<string>, { model: first }: ModelChoice.Choice) =>
  Effect.forEach(
    models,
    (model) => {
      const vendor = ModelChoice.vendorOf(first)
      return ModelChoice.isKnown(model) && ModelChoice.vendorOf(model) === vendor
        ? Effect.void
        : new ExitCode.UsageError({
            detail: `--proxy-model: ${model} is no model of ${vendor}, whose models this server has: name one as ${vendor}/ID.`
          })
    },
    { discard: true }
  )

// ───────────────────────── The command serve

/** Serves until a signal comes, and returns the exit code. */
export const serve = Effect.fnUntraced(
  function* (line: ServingLine, env: Environment) {
    yield* keepLow
    const { remarks, settings, sources } = yield* Settings.read(line, env)
    const server = yield* Settings.ofServer(line, sources)
    if (server.alone !== undefined)
      return yield* new ExitCode.UsageError({ detail: `${server.alone} goes with --durable.` })
    const { made, tokens } = yield* TokenFile.watched(server.tokenFile, env)
    const { err, out } = yield* Screen.Screen
    yield* Screen.say([...remarks, ...server.remarks])
    const place = yield* server.isDurable ? durable(settings, server) : living(settings)
    const { choice, layer: agents } = yield* agentsOf(settings, env, place, server)
    const { grace, proxyModel: proxied } = server
    yield* checkProxied(proxied, choice)
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
    const { ending, patience } = yield* ExitCode.Signals
    yield* patience(Duration.toMillis(grace) + 15_000)
    // Built first: requests that came while logs are read would get no answer.
    const running = yield* Layer.build(place.runs(agents))
    const url = yield* Effect.provideContext(listening(app, server), running)
    const token = made === undefined ? {} : { token: Redacted.value(made) }
    if (settings.outputFormat === "stream-json") yield* out(Inert.json({ type: "listening", url, ...token }))
    else yield* err(sentence(url, made))
    yield* ending
    return ExitCode.answered
  },
  Effect.scoped,
  // So that stderr has the log of requests.
  logged,
  Effect.catchTags(handlers)
)

/** Runs that end with the process. */
const living = Effect.fnUntraced(function* (settings: Settings.Settings) {
  const { artifacts, kept, listed, logs, store } = yield* Sessions.at(settings)
  const runs = <R>(agents: Layer.Layer<Agents.Agents, never, R>) =>
    LiveRuns.layer(listed).pipe(Layer.provide([agents, Layer.succeed(SessionStore, store), logs]))
  return { artifacts, kept, runs }
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

// ───────────────────────── The command worker

/** Works until a signal comes, and returns the exit code. */
export const worker = Effect.fnUntraced(
  function* (line: ServingLine, env: Environment) {
    const { remarks, settings, sources } = yield* Settings.read(line, env)
    const worker = yield* Settings.ofServer(line, sources)
    const { grace } = worker
    const { err, out } = yield* Screen.Screen
    yield* Screen.say([...remarks, ...worker.remarks])
    if (!Option.exists(settings.store, ({ _tag }) => _tag === "Postgres")) {
      return yield* new ExitCode.UsageError({
        detail: "A worker shares a database with others: give --store postgres://USER@HOST/DATABASE."
      })
    }
    const { ending, patience } = yield* ExitCode.Signals
    yield* patience(Duration.toMillis(grace) + 15_000)
    const place = yield* durable(settings, worker)
    const { layer: agents } = yield* agentsOf(settings, env, place, worker)
    const running = yield* Layer.build(place.runs(agents))
    const url = yield* Effect.provideContext(healthAt(worker), running)
    const socket = { host: place.socket?.host, port: place.socket?.port }
    const json = { type: "working", ...socket, ...(url === undefined ? {} : { health: `${url}/health` }) }
    if (settings.outputFormat === "stream-json") yield* out(Inert.json(json))
    else yield* err(`Working, for others at ${socket.host}:${socket.port}\n`)
    yield* ending
    return ExitCode.answered
  },
  Effect.scoped,
  logged,
  Effect.catchTags(handlers)
)

/** Serves the health of the worker, at an address that it succeeds with, and drains the runs when the scope closes. */
const healthAt = Effect.fnUntraced(function* (worker: Settings.OfServer) {
  const { clusterHost: host, grace, healthPort } = worker
  if (Option.isNone(healthPort)) {
    const { drain } = yield* Runs
    yield* Effect.addFinalizer(() => drain(grace))
    return undefined
  }
  // Without a token no other route lets a request through.
  const app = Server.layer({ tokens: [], hosts: [host], grace })
  return yield* listening(app, { ...worker, host, port: healthPort.value })
})
