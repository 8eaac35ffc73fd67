/** The commands `runs list`, `show`, `watch`, `cancel`, `resume` and `rm`, for the runs of a server. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AgentEvent from "../../AgentEvent.ts"
import * as Payload from "../../api/Payload.ts"
import * as AgentClient from "../../client/AgentClient.ts"
import * as Message from "../../Message.ts"
import * as ExitCode from "../ExitCode.ts"
import * as Network from "../agent/Network.ts"
import * as Inert from "../terminal/Inert.ts"
import * as Outcome from "../agent/Outcome.ts"
import * as Playing from "../agent/Playing.ts"
import { Screen } from "../terminal/Screen.ts"
import type { RunsLine } from "../CommandLine.ts"
import * as Sessions from "../agent/Sessions.ts"
import * as ServerSettings from "../settings/ServerSettings.ts"
import * as Settings from "../settings/Settings.ts"
import * as Output from "../terminal/Output.ts"
import * as TokenFile from "../agent/TokenFile.ts"
import type { Environment } from "../agent/Vendors.ts"

/** Runs the command and returns its exit code. */
export const run = Effect.fnUntraced(function* (line: RunsLine, env: Environment) {
  const { tokenFile, url } = yield* Settings.ofServer(
    { ...ServerSettings.absent, ...line },
    { env, ...(yield* Settings.configurationOf(env, ".")) }
  )
  const token = yield* TokenFile.first(tokenFile, env)
  const client = yield* AgentClient.make(
    Option.getOrElse(url, () => "http://127.0.0.1:4111"),
    { token }
  )
  return yield* done(client, line).pipe(
    Effect.catchTag(["RunNotFound", "SessionNotFound"], () =>
      Effect.flatMap(named(client, line), (named) => done(client, named))
    ),
    Effect.catchTags({
      RunNotFound: () =>
        new ExitCode.UsageError({ detail: `There is no run ${"run" in line ? line.run : ""}.` }),
      SessionNotFound: ({ sessionId }) =>
        new ExitCode.UsageError({ detail: `There is no session ${sessionId}.` })
    }),
    Effect.mapError(Playing.failureOf)
  )
}, Effect.provide(Network.http))

const done = Effect.fnUntraced(function* (client: AgentClient.Service, line: RunsLine) {
  const { out } = yield* Screen
  const reason = "reason" in line ? Option.getOrUndefined(line.reason) : undefined
  switch (line.action) {
    case "list": {
      const items = yield* runsOf(client, line)
      const encoded = yield* Effect.forEach(items, encode)
      yield* out(line.json ? Inert.json({ items: encoded }) : linesOf(items))
      break
    }
    case "show": {
      const run = yield* client.runs.get(line.run)
      if (line.json) yield* out(Inert.json(yield* encode(run)))
      else {
        const answer = Payload.isGoing(run) ? "" : yield* answerOf(client, line.run)
        yield* out(answer === "" ? textOf(run) : `${textOf(run)}\n${Inert.text(answer.trimEnd())}\n`)
      }
      break
    }
    case "watch":
      return yield* watch(client, line)
    case "cancel":
      yield* client.runs.cancel(line.run, reason)
      break
    case "resume":
      yield* client.runs.resume(line.run, reason)
      break
    case "rm":
      yield* client.runs.remove(line.run)
  }
  return ExitCode.answered
})

/** The line with the whole id of its run or session, of which it has the beginning. */
const named = Effect.fnUntraced(function* (client: AgentClient.Service, line: RunsLine) {
  if (!("run" in line)) {
    const found = Option.map(line.session, (session) => sessionOf(client, session))
    return { ...line, session: yield* Effect.transposeOption(found) }
  }
  const runs = yield* newest(client, {}, maxSearched)
  const found = runs.flatMap(({ runId, status }) =>
    Sessions.isRun(runId, line.run) ? [{ id: runId, title: status }] : []
  )
  return { ...line, run: yield* Sessions.only("run", line.run, found) }
})

const sessionOf = Effect.fnUntraced(function* (client: AgentClient.Service, text: string) {
  const { items } = yield* client.sessions.list({ limit: 999, query: text })
  const found = items.flatMap(({ sessionId, title }) =>
    Sessions.isSession(sessionId, text) ? [{ id: sessionId, title }] : []
  )
  return yield* Sessions.only("session", text, found)
})

/** The most runs that are searched for the beginning of an id. */
const maxSearched = 1_000

/** The runs of a session, else the newest ones of all sessions. */
const runsOf = (
  client: AgentClient.Service,
  { limit, session, status }: RunsLine & { readonly action: "list" }
) =>
  Option.match(session, {
    onSome: (sessionId) => {
      const all = Option.match(status, {
        onNone: () => client.runs.list(sessionId),
        onSome: (status) => Effect.map(newest(client, { status }, maxSearched), (runs) => runs.toReversed())
      })
      return Effect.map(all, (runs) => runs.filter((run) => run.sessionId === sessionId).slice(-limit))
    },
    onNone: () => newest(client, Option.isNone(status) ? {} : { status: status.value }, limit)
  })

/** The newest runs of all sessions. A page of the server may have fewer runs than there are. */
const newest = (
  client: AgentClient.Service,
  wanted: AgentClient.RunPage,
  limit: number
): ReturnType<AgentClient.Runs["list"]> =>
  Effect.flatMap(
    client.runs.listAll({ ...wanted, limit: Math.min(limit, 999) }),
    ({ items, nextCursor: cursor }) =>
      cursor === undefined || items.length >= limit
        ? Effect.succeed(items)
        : Effect.map(newest(client, { ...wanted, cursor }, limit - items.length), (more) => [
            ...items,
            ...more
          ])
  )

const encode = (run: Payload.Run) => Effect.orDie(Schema.encodeEffect(Schema.toCodecJson(Payload.Run))(run))

const timeOf = ({ created }: Payload.Run) => new Date(created).toISOString().slice(0, 16).replace("T", " ")

const linesOf = (runs: ReadonlyArray<Payload.Run>): string => {
  const ids = Sessions.shortened(runs.map(({ sessionId }) => sessionId))
  return runs
    .map((run) => {
      const session = Inert.line(ids.get(run.sessionId) ?? run.sessionId, 80)
      return `${run.runId}  ${timeOf(run)}  ${run.status.padEnd(9)}  ${session}\n`
    })
    .join("")
}

const textOf = (run: Payload.Run): string => {
  const { approvals, questions } = run.pending
  const rows = [
    ["run", run.runId],
    ["session", Inert.line(run.sessionId, 80)],
    ["status", run.status],
    ["created", timeOf(run)],
    ["turns", String(run.turns)],
    ["tokens", String(run.usage.total)],
    ...(run.error === undefined ? [] : [["error", Inert.line(run.error.message)]]),
    ...(run.resumedBy === undefined ? [] : [["resumed by", run.resumedBy]]),
    ...approvals.map(({ approvalId, toolName }) => ["approval", `${approvalId} (${Inert.line(toolName)})`]),
    ...questions.map(({ question, questionId }) => ["question", `${questionId} (${Inert.line(question)})`])
  ]
  return rows.map(([name = "", value = ""]) => `${name}: ${value}\n`).join("")
}

/** The last words of the model in a run that is over. */
const answerOf = (client: AgentClient.Service, runId: string) =>
  Stream.runFold(
    client.runs.events(runId),
    () => "",
    (answer, { event }) =>
      event._tag === "MessageEnd" && event.path === undefined && event.message.role === "assistant"
        ? Message.textOf(event.message)
        : answer
  )

const encodeEvent = Schema.encodeEffect(Schema.toCodecJson(AgentEvent.AgentEvent))

/** The path at which the run takes the answer to a request, `undefined` for other events. */
const answeredAt = (run: string, event: AgentEvent.AgentEvent): string | undefined => {
  if (event._tag === "ApprovalRequested") return `/runs/${run}/approvals/${event.approvalId}`
  return event._tag === "QuestionAsked" ? `/runs/${run}/questions/${event.questionId}` : undefined
}

/** Shows the events of a run, and returns the exit code that the run would have had. */
const watch = Effect.fnUntraced(function* (
  client: AgentClient.Service,
  { after, json, run }: RunsLine & { readonly action: "watch" }
) {
  const screen = yield* Screen
  const { show } = Output.text(screen)
  let outcome = Outcome.initial
  yield* Stream.runForEach(client.runs.events(run, after), ({ event, position }) => {
    outcome = Outcome.fold(outcome, event)
    const path = answeredAt(run, event)
    if (!json)
      return path === undefined
        ? show([event])
        : Effect.andThen(show([event]), screen.err(`${Inert.line(`Waits: POST ${path}`)}\n`))
    return Effect.flatMap(Effect.orDie(encodeEvent(event)), (event) =>
      screen.out(Inert.json({ position, event }))
    )
  })
  const { code, remark } = Outcome.verdict(outcome, {})
  if (remark !== undefined && !json) yield* screen.err(`${Inert.line(remark)}\n`)
  return code
})
