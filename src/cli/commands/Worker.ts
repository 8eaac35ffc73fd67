/** The command `worker`: runs sessions of a database, together with other processes, until a signal ends it. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { Runs } from "../../runs/Runs.ts"
import * as Server from "../../server/Server.ts"
import * as DurablePlace from "../agent/DurablePlace.ts"
import { UsageError } from "../ExitCode.ts"
import * as ExitCode from "../ExitCode.ts"
import * as Inert from "../terminal/Inert.ts"
import * as Serving from "../agent/Serving.ts"
import { say, Screen } from "../terminal/Screen.ts"
import type { Line } from "./ServerCommands.ts"
import * as Settings from "../settings/Settings.ts"
import * as Signals from "../Signals.ts"
import type { Environment } from "../agent/Vendors.ts"

/** Works until a signal comes, and returns the exit code. */
export const run = Effect.fnUntraced(
  function* (line: Line, env: Environment) {
    const { remarks, settings, sources } = yield* Settings.read(line, env)
    const worker = yield* Settings.ofServer(line, sources)
    const { grace } = worker
    const { err, out } = yield* Screen
    yield* say([...remarks, ...worker.remarks])
    if (!Option.exists(settings.store, ({ _tag }) => _tag === "Postgres")) {
      return yield* new UsageError({
        detail: "A worker shares a database with others: give --store postgres://USER@HOST/DATABASE."
      })
    }
    const { ending, patience } = yield* Signals.Signals
    yield* patience(Duration.toMillis(grace) + 15_000)
    const place = yield* DurablePlace.open(settings, worker)
    const { layer: agents } = yield* Serving.agents(settings, env, place.artifacts, worker)
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
  Serving.logged,
  Effect.catchTags(Serving.handlers)
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
  return yield* Serving.serve(app, { ...worker, host, port: healthPort.value })
})
