/** The commands that serve runs, and those that manage the runs of a server. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import { RunStatus } from "../../AgentEvent.ts"
import type * as Payload from "../../api/Payload.ts"
import { plainFlag, plainText } from "../settings/Setting.ts"
import * as ServerSettings from "../settings/ServerSettings.ts"
import * as SettingTable from "../settings/SettingTable.ts"

const { noSession: _noSession, json: asJson, ...served } = SettingTable.serving
const { healthPort, tokenFile, url, ...ofServe } = ServerSettings.flags
const { clusterHost, clusterPort, grace, lease, retain, sessionModel, unknown } = ofServe

/** The parsed flags of `effect-agent serve` and `effect-agent worker`; each has those of the other as absent. */
export type Line = SettingTable.Flags & ServerSettings.Flags

export const serve = Command.make("serve", {
  ...served,
  json: Flag.withDescription(asJson, "Write the address, and a new token, as a line of JSON on stdout"),
  ...ofServe,
  tokenFile
}).pipe(
  Command.withDescription(
    "Serves sessions and runs over HTTP. The model, tool and policy flags mean what they mean for a prompt"
  )
)

export const worker = Command.make("worker", {
  ...served,
  json: Flag.withDescription(asJson, "Write the addresses as a line of JSON on stdout"),
  clusterHost,
  clusterPort,
  healthPort,
  grace,
  lease,
  retain,
  sessionModel,
  unknown
}).pipe(
  Command.withDescription(
    "Runs sessions of the PostgreSQL database of --store, together with effect-agent serve --durable and other workers. The model, tool and policy flags mean what they mean for a prompt"
  )
)

const reached = { url, tokenFile, json: plainFlag("json", "Write JSON") }
const run = Argument.String("run").pipe(Argument.withDescription("The id of the run, or its beginning"))
const reason = plainText("reason", "TEXT", "The reason, which the events of the run show")

const statuses = ["queued", "running", "paused", "waiting", ...RunStatus.literals] as const

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
        readonly status: Option.Option<Payload.ListedStatus>
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
