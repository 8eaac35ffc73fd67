/** The parts that `serve` and `worker` share: the server of Node at an address, the agents of sessions, the heap, and failures. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as References from "effect/References"
import * as HttpServer from "effect/http/HttpServer"
import type { SocketServerError } from "effect/socket/SocketServer"
import { createServer } from "node:http"
import type { Socket } from "node:net"
import { setFlagsFromString } from "node:v8"
import type { ArtifactStore } from "../../artifacts/ArtifactStore.ts"
import * as Agents from "../../runs/Agents.ts"
import * as ExitCode from "../ExitCode.ts"
import { UsageError } from "../ExitCode.ts"
import type { OfServer, Settings } from "../settings/Settings.ts"
import * as ApprovalPrompt from "../terminal/ApprovalPrompt.ts"
import * as Screen from "../terminal/Screen.ts"
import * as AgentSetup from "./AgentSetup.ts"
import * as CommandSandbox from "./CommandSandbox.ts"
import * as ModelTable from "./ModelTable.ts"
import * as ModelChoice from "./ModelChoice.ts"
import * as TelemetryExport from "./TelemetryExport.ts"
import type { Environment } from "./Vendors.ts"

interface Options extends Pick<OfServer, "grace" | "headTime" | "keepAlive" | "maxConnections"> {
  readonly host: string
  readonly port: number
}

/** The time in which streams of runs that were let go of get to close. */
const flush = Duration.seconds(1)

/**
 * Serves an application until the scope closes, and succeeds with its address. Then it closes at once the connections on which no request is
 * open, and the others when `grace` is over.
 */
export const serve = Effect.fnUntraced(function* <R>(
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
export const handlers = {
  ServeError: ({ cause }: { readonly cause: unknown }) => failed(cause),
  RunLogError: failed,
  ClusterRefused: failed,
  // Its own message is no more than "Open".
  SocketServerError: ({ reason }: SocketServerError) => failed(reason.cause)
}

/** Logs to stderr, for which a log of requests needs the level. */
export const logged = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
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

interface Served extends Required<Pick<ApprovalPrompt.Policy, "unknown">> {
  /** The models that sessions may name, as `provider/id` or `provider/*`. Default, if it is empty: those of the server's providers. */
  readonly sessionModel: ReadonlyArray<string>
  /** The file with the tokens of the server. */
  readonly tokenFile: Option.Option<string>
}

/** Makes the service that makes the agent of a session, with the settings of the program. */
export const agents = Effect.fnUntraced(function* (
  settings: Settings,
  env: Environment,
  artifacts: ArtifactStore["Service"],
  { sessionModel, tokenFile, unknown }: Served
) {
  const { load } = yield* Effect.promise(() => import("../settings/Project.ts"))
  const [choice, { options: shell, remark }] = yield* Effect.all(
    [ModelChoice.withFallbacks(settings, env), CommandSandbox.choose(settings, tokenFile)],
    { concurrency: 2 }
  )
  yield* Screen.say([`Model: ${choice.model} (${choice.why})`, ...(remark === undefined ? [] : [remark])])
  const project = yield* load(settings, env)
  if (Option.isSome(settings.mcpConfig)) {
    const { servers } = yield* Effect.promise(() => import("./McpServers.ts"))
    yield* servers(settings)
  }
  const plan = { settings, prompt: undefined, choice, output: undefined, project, shell }
  const root = (yield* Path.Path).resolve(settings.cwd)
  const asked = Option.contains(settings.approve, "deny") ? "deny" : "wait"
  const policy = { ...ApprovalPrompt.ofSettings(settings, root, asked), unknown }
  const allowed = sessionModel.length > 0 ? sessionModel : own([choice.model, ...fallbacks(settings)])
  const named = Effect.fnUntraced(function* (model: string) {
    const options = { ...settings, model: Option.some(model), modelFrom: "model" }
    const found = yield* ModelChoice.choose(ModelChoice.besides(options, choice, model), env)
    if (allowed.includes(found.model) || allowed.includes(`${ModelChoice.vendorOf(found.model)}/*`))
      return found
    const detail = `model: this server does not let sessions name ${found.model}. They may name ${allowed.join(", ")} (--session-model).`
    return yield* new UsageError({ detail })
  })
  const layer = Agents.layer(({ model, session }) =>
    Effect.gen(function* () {
      const chosen = model === undefined || model === choice.model ? choice : yield* named(model)
      const options = { ...session.restored.options, ...(model === undefined ? {} : { model: chosen.model }) }
      const given = { ...session, restored: { ...session.restored, options } }
      const services = yield* Layer.build(chosen.provider)
      return yield* Effect.provide(
        AgentSetup.make({ ...plan, choice: chosen }, { session: given, artifacts }, policy),
        services
      )
    })
  ).pipe(Layer.provide([ModelTable.prices, TelemetryExport.layer(env)]))
  return { choice, layer }
})

const fallbacks = ({ fallbackModel }: Settings) => fallbackModel.map(({ name }) => name)

/** All models of the providers of some. */
const own = (models: ReadonlyArray<string>) => [
  ...new Set(models.map((model) => `${ModelChoice.vendorOf(model)}/*`))
]

/** Fails with `UsageError` for a model that the provider of the server does not have. */
export const proxied = (models: ReadonlyArray<string>, { model: first }: ModelChoice.Choice) =>
  Effect.forEach(
    models,
    (model) => {
      const vendor = ModelChoice.vendorOf(first)
      return ModelChoice.isKnown(model) && ModelChoice.vendorOf(model) === vendor
        ? Effect.void
        : new UsageError({
            detail: `--proxy-model: ${model} is no model of ${vendor}, whose models this server has: name one as ${vendor}/ID.`
          })
    },
    { discard: true }
  )
