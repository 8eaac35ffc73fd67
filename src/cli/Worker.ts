/** The command `worker`: runs sessions of a database, together with other processes, until a signal ends it. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Struct from "effect/Struct"
import { createServer } from "node:http"
import { Runs } from "../server/Runs.ts"
import * as Server from "../server/Server.ts"
import * as DurablePlace from "./DurablePlace.ts"
import { UsageError } from "./ExitCode.ts"
import * as ExitCode from "./ExitCode.ts"
import * as Inert from "./Inert.ts"
import * as JsonLine from "./JsonLine.ts"
import { Screen } from "./Screen.ts"
import * as ServedAgents from "./ServedAgents.ts"
import * as ServeFailure from "./ServeFailure.ts"
import type { WorkerLine } from "./ServerCommands.ts"
import * as ServerOptions from "./ServerOptions.ts"
import * as Settings from "./Settings.ts"
import * as Signals from "./Signals.ts"
import type { Environment } from "./Vendors.ts"

/** The flags that are no settings of a run. */
const own = ["port", "host", "healthPort", "sessionModel", "grace", "lease", "retain", "unknown"] as const

/** Works until a signal comes, and returns the exit code. */
export const run = Effect.fnUntraced(
  function* (line: WorkerLine, env: Environment) {
    const { grace, health, host, port } = yield* optionsOf(line, env)
    const { remarks, settings, sources } = yield* Settings.read(Struct.omit(line, own), env)
    const kept = yield* Settings.durable(line, sources)
    const { err, out, paint } = yield* Screen
    yield* err([...remarks, ...kept.remarks].map((remark) => `${paint.dim(Inert.line(remark))}\n`).join(""))
    if (!Option.exists(settings.store, ({ _tag }) => _tag === "Postgres")) {
      return yield* new UsageError({
        detail: "A worker shares a database with others: give --store postgres://USER@HOST/DATABASE."
      })
    }
    const { ending, patience } = yield* Signals.Signals
    yield* patience(Duration.toMillis(grace) + 15_000)
    const place = yield* DurablePlace.open(settings, { ...kept, host, port })
    const { layer: agents } = yield* ServedAgents.make(settings, env, place.artifacts, {
      ...kept,
      sessionModels: ServerOptions.many(line.sessionModel, "EFFECT_AGENT_SESSION_MODEL", env)
    })
    const running = yield* Layer.build(place.runs(agents))
    const url = yield* Effect.provideContext(healthAt(host, health, grace), running)
    const socket = { host: place.socket?.host, port: place.socket?.port }
    const json = { type: "working", ...socket, ...(url === undefined ? {} : { health: `${url}/health` }) }
    if (settings.outputFormat === "stream-json") yield* out(JsonLine.of(json))
    else yield* err(`Working, for others at ${socket.host}:${socket.port}\n`)
    yield* ending
    return ExitCode.answered
  },
  Effect.scoped,
  ServeFailure.logged,
  Effect.catchTags(ServeFailure.handlers)
)

/** Serves the health of the worker, at an address that it succeeds with, and drains the runs when the scope closes. */
const healthAt = Effect.fnUntraced(function* (
  host: string,
  port: number | undefined,
  grace: Duration.Duration
) {
  if (port === undefined) {
    const { drain } = yield* Runs
    yield* Effect.addFinalizer(() => drain(grace))
    return undefined
  }
  // Without a token no other route lets a request through.
  const app = Server.layer({ tokens: [], hosts: [host], grace })
  const node = NodeHttpServer.layer(() => createServer(), { host, port })
  const context = yield* Layer.build(Layer.provideMerge(app, node))
  return HttpServer.formatAddress(Context.get(context, HttpServer.HttpServer).address)
})

/** The options of the worker, of the flags, else of the variables. */
const optionsOf = Effect.fnUntraced(function* (line: WorkerLine, env: Environment) {
  const portOf = (flag: string, given: Option.Option<string>, name: string) =>
    Option.match(ServerOptions.one(given, name, env), {
      onNone: () => Effect.undefined,
      onSome: (text) => ServerOptions.port(flag, text)
    })
  return {
    grace: yield* ServerOptions.grace(line.grace, env),
    host: Option.getOrElse(ServerOptions.one(line.host, "EFFECT_AGENT_HOST", env), () => "127.0.0.1"),
    port: yield* portOf("port", line.port, "EFFECT_AGENT_PORT"),
    health: yield* portOf("health-port", line.healthPort, "EFFECT_AGENT_HEALTH_PORT")
  }
})
