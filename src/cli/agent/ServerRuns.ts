/** The runs of a prompt at the server of `--url`. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type * as Message from "../../Message.ts"
import * as Payload from "../../api/Payload.ts"
import * as RemoteRuns from "../../client/RemoteRuns.ts"
import type { Service } from "../../runs/Runs.ts"
import { Failed, UsageError } from "../ExitCode.ts"
import type { Settings } from "../settings/Settings.ts"
import type { Picks } from "../settings/SettingTable.ts"
import { flagOf, type Picked } from "../settings/Setting.ts"
import { say } from "../terminal/Screen.ts"
import * as AgentSetup from "./AgentSetup.ts"
import * as Playing from "./Playing.ts"
import * as Sessions from "./Sessions.ts"
import * as TokenFile from "./TokenFile.ts"

/** The flags that reach the server, and those that are about the prompt, its answer and the person. */
const known = new Set(
  [
    "model effort maxTokens temperature system tools maxTurns maxCost maxTokensTotal timeout",
    "file inputFormat print outputFormat json output failOnRefusal noColor verbose",
    "approve allow deny yes continue resume fork name",
    "interactive plain enter notify theme title motion"
  ].flatMap((keys) => keys.split(" "))
)

/** Fails with `UsageError` for a flag that is about runs in this process. */
export const check = (picks: Picks): Effect.Effect<void, UsageError> => {
  const other = Object.values(picks).find((pick: Picked<unknown>) => isFlag(pick) && !known.has(pick.key))
  return other === undefined
    ? Effect.void
    : new UsageError({ detail: `${flagOf(other.key)} does not go with --url: the server has its own.` })
}

const isFlag = ({ found }: Picked<unknown>): boolean =>
  Option.exists(found, ({ from }) => from.kind === "flag")

/** A value, if a flag gives it. The server has settings of its own, which a variable or a file here does not change. */
const given = <A>(pick: Picked<unknown>, value: Option.Option<A>): Option.Option<A> =>
  isFlag(pick) ? value : Option.none()

interface Server {
  readonly url: string
  readonly tokenFile: Option.Option<string>
  readonly picks: Picks
}

/** Opens the session that the settings name at the server, or makes one. */
export const open = Effect.fnUntraced(function* (settings: Settings, { picks, tokenFile, url }: Server) {
  const token = yield* TokenFile.first(tokenFile, process.env)
  const runs = yield* RemoteRuns.make(url, { token })
  const sessionId = yield* Effect.mapError(sessionOf(runs.sessions, settings, picks), Playing.failureOf)
  yield* say([`Server: ${url}, session ${sessionId}`])
  const options = optionsOf(settings)
  const last = Effect.map(runs.list(sessionId), (all) => all.at(-1))
  /** The run that is played. */
  let runId = ""
  const played = (begun: Effect.Effect<{ readonly runId: string }, Playing.Problem>): Playing.Events =>
    Effect.flatMap(begun, (run) => {
      runId = run.runId
      return runs.events(runId, 0, { partials: true })
    }).pipe(
      Stream.unwrap,
      Stream.map(({ event }) => event),
      Stream.concat(Stream.drain(Stream.fromEffect(Effect.suspend(() => ended(runs, runId))))),
      Stream.mapError(Playing.failureOf)
    )
  const continued = Effect.flatMap(last, (run) =>
    run === undefined || !isOpen(run) ? Effect.fail(Playing.nothingOpen()) : Effect.succeed(run)
  )
  const begun = (prompt: Message.Input) => runs.start({ sessionId, prompt, ...options })
  const place: Playing.Place = {
    sessionId,
    isSuspended: false,
    isShared: true,
    begin: (prompt) => played(prompt === undefined ? continued : begun(prompt)),
    isOpen: (id) => Effect.map(runs.get(runId), (run) => asks(run, id)),
    answer: Effect.fnUntraced(function* (id, reply) {
      const run = (yield* runs.list(sessionId)).find((run) => asks(run, id))?.runId ?? runId
      const given = "decision" in reply ? runs.approve(run, id, reply) : runs.answer(run, id, reply)
      const next = (yield* given).runId
      return next === runId ? undefined : played(Effect.succeed({ runId: next }))
    }),
    steer: (text, options) => runs.steer(runId, text, options),
    followUp: (text) => runs.followUp(runId, text),
    cancel: (reason) => runs.cancel(runId, reason),
    // The server continues a run with each answer.
    isReady: () =>
      Effect.orElseSucceed(
        Effect.map(last, (run) => run !== undefined && Payload.isGoing(run)),
        () => false
      ),
    clear: Effect.void
  }
  return place
})

/** Fails for a run whose events ended before it did. */
const ended = (runs: Service, runId: string) =>
  Effect.flatMap(runs.get(runId), (run) =>
    Payload.isGoing(run)
      ? new Failed({ detail: `The events of run ${runId} broke off, and the run continues.` })
      : Effect.void
  )

/** Whether a run works, or waits for a person. */
const isOpen = (run: Payload.Run): boolean => Payload.isGoing(run) || run.status === "suspended"

const asks = ({ pending }: Payload.Run, id: string): boolean =>
  pending.approvals.some(({ approvalId }) => approvalId === id) ||
  pending.questions.some(({ questionId }) => questionId === id)

/** The options of each run, which the server narrows its own by. */
const optionsOf = (settings: Settings): { readonly options?: Payload.Options } => {
  const members = Object.entries(AgentSetup.optionsOf(settings)).filter(
    ([, value]) => Object.keys(value).length > 0
  )
  return members.length === 0 ? {} : { options: Object.fromEntries(members) }
}

/** The session that `--continue`, `--resume` or `--fork` name, else a new one. */
const sessionOf = Effect.fnUntraced(function* (
  sessions: Service["sessions"],
  settings: Settings,
  picks: Picks
) {
  const { fork, name, resume } = settings
  const model = given(picks.model, settings.model)
  const system = given(picks.system, settings.system)
  const tools = given(picks.tools, Option.some(settings.tools))
  const wanted = Option.orElse(resume, () => fork)
  const named = {
    ...Option.match(name, { onNone: () => ({}), onSome: (name) => ({ name }) }),
    ...Option.match(model, { onNone: () => ({}), onSome: (model) => ({ model }) })
  }
  if (!settings.continue && Option.isNone(wanted)) {
    const made = {
      ...named,
      ...Option.match(system, { onNone: () => ({}), onSome: (system) => ({ system }) }),
      ...Option.match(tools, { onNone: () => ({}), onSome: (tools) => ({ tools }) })
    }
    return yield* sessions.create(made)
  }
  if (Option.isSome(system) || Option.isSome(tools))
    return yield* new UsageError({ detail: "--system and --tools go with a new session of the server." })
  const text = Option.getOrElse(wanted, () => "")
  const { items } = yield* sessions.list(text === "" ? { limit: 1 } : { limit: 999, query: text })
  const found = items.filter(
    ({ sessionId }) => text === "" || sessionId === text || Sessions.isSession(sessionId, text)
  )
  const id = yield* Sessions.only(
    "session",
    text,
    found.map(({ sessionId, title }) => ({ id: sessionId, title }))
  )
  const sessionId = Option.isSome(fork) ? yield* sessions.fork(id, {}) : id
  if (Object.keys(named).length > 0) yield* sessions.update(sessionId, named)
  return sessionId
})
