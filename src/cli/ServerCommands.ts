/** The commands that serve runs, and those that manage the runs of a server. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import { RunStatus } from "../AgentEvent.ts"
import type * as Payload from "../api/Payload.ts"
import * as DurableSettings from "./DurableSettings.ts"
import { is, listOf, optionalText } from "./PlainFlags.ts"
import * as SettingTable from "./SettingTable.ts"

const grace = optionalText("grace", "TIME", "The time that runs get to end at SIGTERM. Default: 10s")

const { noSession: _noSession, json: asJson, ...served } = SettingTable.serving

/** The flags of servers that no file of configuration has. */
const server = {
  port: optionalText("port", "N", "The port; 0 picks one. Default: 4111"),
  host: optionalText("host", "ADDRESS", "The address to listen at. Default: 127.0.0.1"),
  allowHost: listOf("allow-host", "NAME", "A name that clients may call the server by (may be repeated)"),
  allowOrigin: listOf("allow-origin", "ORIGIN", "An origin whose pages may use the server (may be repeated)"),
  tokenFile: optionalText(
    "token-file",
    "FILE",
    "The file with the tokens, one on each line. Default: $EFFECT_AGENT_TOKEN, else a new one"
  ),
  rate: optionalText(
    "rate",
    "N[/TIME]",
    "The most requests of a token in a time, such as 600 or 60/10s. Default: no limit, and 1m as the time"
  ),
  grace,
  proxyModel: listOf(
    "proxy-model",
    "ID",
    "A model that clients may use by proxy. Default: that of the server"
  ),
  sessionModel: listOf(
    "session-model",
    "MODEL",
    "A model that sessions may name, as PROVIDER/ID or PROVIDER/* (may be repeated). Default: those of the providers of --model and --fallback-model"
  ),
  clusterHost: optionalText(
    "cluster-host",
    "ADDRESS",
    "The address at which workers reach this server, with --durable on PostgreSQL. Default: 127.0.0.1"
  ),
  clusterPort: optionalText(
    "cluster-port",
    "N",
    "The port for workers, with --durable on PostgreSQL. Default: the first free one from 4112 on"
  )
}

const healthPort = optionalText(
  "health-port",
  "N",
  "The port of GET /health, at the same address. Default: none"
)

/** The flags of servers and workers beside those of a prompt, as `effect-agent config` has them. */
export const options = {
  ...server,
  healthPort: Flag.withDescription(healthPort, "The port of GET /health of a worker. Default: none")
}

/** The parsed flags. */
export type Options = Command.Command.Config.Infer<typeof options>

const { clusterHost, clusterPort, ...listening } = server

const serveFlags = {
  ...served,
  json: Flag.withDescription(asJson, "Write the address, and a new token, as a line of JSON on stdout"),
  ...listening,
  ...DurableSettings.flags,
  clusterHost,
  clusterPort
}

/** The flags of `effect-agent serve`. */
export type ServeLine = SettingTable.Flags & Command.Command.Config.Infer<typeof serveFlags>

export const serve = Command.make("serve", serveFlags).pipe(
  Command.withDescription(
    "Serves sessions and runs over HTTP. The model, tool and policy flags mean what they mean for a prompt"
  )
)

const { durable: _durable, ...kept } = DurableSettings.flags

const workerFlags = {
  ...served,
  json: Flag.withDescription(asJson, "Write the addresses as a line of JSON on stdout"),
  ...kept,
  host: optionalText(
    "host",
    "ADDRESS",
    "The address at which the others reach this worker, in a private network. Default: 127.0.0.1"
  ),
  port: optionalText("port", "N", "The port for the others. Default: the first free one from 4112 on"),
  healthPort,
  sessionModel: server.sessionModel,
  grace
}

/** The flags of `effect-agent worker`. */
export type WorkerLine = SettingTable.Flags & Command.Command.Config.Infer<typeof workerFlags>

export const worker = Command.make("worker", workerFlags).pipe(
  Command.withDescription(
    "Runs sessions of the PostgreSQL database of --store, together with effect-agent serve --durable and other workers. The model, tool and policy flags mean what they mean for a prompt"
  )
)

const reached = {
  url: optionalText("url", "URL", "The address of the server. Default: http://127.0.0.1:4111"),
  tokenFile: optionalText(
    "token-file",
    "FILE",
    "The file whose first line is the token. Default: $EFFECT_AGENT_TOKEN"
  ),
  json: is("json", "Write JSON")
}
const run = Argument.String("run").pipe(Argument.withDescription("The id of the run, or its beginning"))
const reason = optionalText("reason", "TEXT", "The reason, which the events of the run show")

const statuses = ["queued", "running", "paused", ...RunStatus.literals] as const

const list = Command.make("list", {
  session: Argument.String("session").pipe(
    Argument.withDescription("The id of the session. Default: all sessions of the server"),
    Argument.optional
  ),
  status: Flag.Literals("status", statuses).pipe(
    Flag.withMetavar("STATUS"),
    Flag.withDescription(`The status of the runs: ${statuses.join(", ")}. Default: each`),
    Flag.optional
  ),
  limit: Flag.Int("limit").pipe(
    Flag.withMetavar("N"),
    Flag.withDescription("The most runs, the newest ones. Default: 50"),
    Flag.filter(
      (limit) => limit > 0,
      () => "a number above 0"
    ),
    Flag.withDefault(50)
  ),
  ...reached
}).pipe(
  Command.withDescription(
    "Lists runs: the newest of all sessions first, or those of a session, the oldest first"
  )
)
const show = Command.make("show", { run, ...reached }).pipe(
  Command.withDescription("Shows the state of a run")
)
const watch = Command.make("watch", {
  run,
  after: Flag.Int("after").pipe(
    Flag.withMetavar("N"),
    Flag.withDescription("The position of the last event that you have. Default: 0, the start of the run"),
    Flag.withDefault(0)
  ),
  ...reached
}).pipe(Command.withDescription("Writes the events of a run until it is over"))
const cancel = Command.make("cancel", { run, reason, ...reached }).pipe(
  Command.withDescription("Cancels a run")
)
const resume = Command.make("resume", { run, reason, ...reached }).pipe(
  Command.withDescription("Continues a run that is paused, or that the server has parked")
)
const remove = Command.make("rm", { run, ...reached }).pipe(
  Command.withDescription("Removes a run that has ended, and its events. The conversation stays")
)

interface Server extends Command.Command.Config.Infer<typeof reached> {}

/** The arguments of `effect-agent runs`. */
export type RunsLine = Server &
  (
    | {
        readonly action: "list"
        readonly session: Option.Option<string>
        readonly status: Option.Option<Payload.Run["status"]>
        readonly limit: number
      }
    | { readonly action: "show" | "rm"; readonly run: string }
    | { readonly action: "watch"; readonly run: string; readonly after: number }
    | { readonly action: "cancel" | "resume"; readonly run: string; readonly reason: Option.Option<string> }
  )

/** The command `runs`, with a function that runs it. */
export const runs = <E, R>(handle: (line: RunsLine) => Effect.Effect<void, E, R>) =>
  Command.make("runs").pipe(
    Command.withDescription("Lists, watches and manages the runs of a server"),
    Command.withSubcommands([
      list.pipe(Command.withHandler((line) => handle({ ...line, action: "list" }))),
      show.pipe(Command.withHandler((line) => handle({ ...line, action: "show" }))),
      watch.pipe(Command.withHandler((line) => handle({ ...line, action: "watch" }))),
      cancel.pipe(Command.withHandler((line) => handle({ ...line, action: "cancel" }))),
      resume.pipe(Command.withHandler((line) => handle({ ...line, action: "resume" }))),
      remove.pipe(Command.withHandler((line) => handle({ ...line, action: "rm" })))
    ])
  )
