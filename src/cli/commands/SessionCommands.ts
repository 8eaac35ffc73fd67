/** The commands of stored sessions: `sessions list`, `show`, `export`, `rewind` and `rm`, and `approve`. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as RunOptions from "../../RunOptions.ts"
import * as SessionEntry from "../../sessions/SessionEntry.ts"
import type { Contents, Service, Summary, OpenSession } from "../../sessions/SessionStore.ts"
import * as ExitCode from "../ExitCode.ts"
import { UsageError } from "../ExitCode.ts"
import type { SessionsLine, ApproveLine } from "../CommandLine.ts"
import * as Inert from "../terminal/Inert.ts"
import { complain, Screen } from "../terminal/Screen.ts"
import * as Sessions from "../agent/Sessions.ts"
import * as Settings from "../settings/Settings.ts"
import type { Environment } from "../agent/Vendors.ts"
import type { OpenTurn } from "../../Approval.ts"
import * as Json from "../../internal/json.ts"
import type { SessionError } from "../../Session.ts"
import * as Outcome from "../agent/Outcome.ts"
import * as Requests from "../terminal/Requests.ts"
import * as Output from "../terminal/Output.ts"
import { rewind } from "./Rewinding.ts"

/** Runs the command and returns its exit code. */
export const sessions = Effect.fnUntraced(function* (line: SessionsLine, env: Environment) {
  const { err, out, paint } = yield* Screen
  const { kept, listed, store } = yield* Sessions.at(yield* Settings.place(line, env))
  const { json } = line
  if (line.action === "rewind")
    return yield* Sessions.use(store, line.id, (id) => rewind(store, kept, id, line))
  if (line.action === "list") {
    const items = yield* Sessions.all(store, listed)
    if (items.length === 0) yield* err(paint.dim("There are no sessions of this folder.\n"))
    yield* out(json ? Inert.json({ items }) : linesOf(items))
  } else if (line.action === "rm") {
    const removed = yield* Sessions.use(store, line.id, (id) => Effect.as(store.delete(id), id))
    if (json) yield* out(Inert.json({ removed }))
  } else if (line.action === "export") {
    yield* write(store, line.id, json ? "jsonl" : line.format)
  } else {
    const contents = yield* Sessions.use(store, line.id, store.read)
    const { sessionId } = contents.session
    yield* report(sessionId, contents)
    yield* json ? Effect.flatMap(shown(contents), out) : write(store, sessionId, "md")
  }
  return ExitCode.answered
}, Effect.scoped)

const report = (sessionId: string, { damage }: Contents) => {
  const remark = Sessions.remarkOn(sessionId, damage)
  return remark === undefined ? Effect.void : complain(remark)
}

/** Writes a session to stdout. */
const write = Effect.fnUntraced(function* (store: Service, sessionId: string, format: "jsonl" | "md") {
  const { out } = yield* Screen
  const safe = format === "md" ? Inert.text : Inert.jsonText
  yield* Sessions.use(store, sessionId, (id) =>
    Stream.runForEach(store.export(id, format), (text) => out(safe(text)))
  )
})

/** The sessions with the beginnings of their ids, which name them elsewhere too. */
const linesOf = (items: ReadonlyArray<Summary>): string => {
  const ids = Sessions.shortened(items.map(({ sessionId }) => sessionId))
  return items
    .map((item) => {
      const id = ids.get(item.sessionId) ?? item.sessionId
      return `${Inert.line(id)}  ${Sessions.timeOf(item)}  ${Inert.line(item.title, 80)}\n`
    })
    .join("")
}

const encodeOptions = Schema.encodeEffect(Schema.toCodecJson(RunOptions.Patch))

const shown = Effect.fnUntraced(function* ({ entries, session, view }: Contents) {
  const options = yield* Effect.orDie(encodeOptions(view.options))
  return Inert.json({ session, entries: entries.map(SessionEntry.toJson), view: { ...view, options } })
})

// ───────────────────────── The command approve
//
// It records the answer to an approval or a question in its session, and runs nothing.

/** Runs the command and returns its exit code. */
export const approve = Effect.fnUntraced(function* (given: ApproveLine, env: Environment) {
  const params = yield* paramsOf(given)
  const { place, ...named } = yield* Settings.place(given, env)
  const { store } = yield* Sessions.at(named)
  const { runId, sessionId } = yield* runOf(store, given.run)
  const line = { ...given, run: runId }
  const session = yield* store.open(sessionId)
  const { open } = session.restored
  const turn = open === undefined || (yield* isOf(open, line)) ? open : undefined
  const { done, title } = Option.isSome(line.answer)
    ? yield* answer(session, turn, line, line.answer.value)
    : yield* decide(session, turn, line, params)
  const { err } = yield* Screen
  if (done === undefined) {
    yield* err(`effect-agent: ${title}: nothing is recorded.\n`)
    return ExitCode.failed
  }
  yield* err(`${title} is ${done}. Continue the run:\n  ${Outcome.pasted(place).resume(sessionId)}\n`)
  return ExitCode.answered
}, Effect.scoped)

/** Whether an open turn is that of the line. Another run may have taken over what the run of the line left open, with its ids. */
const isOf = ({ approvals, questions, runId }: OpenTurn, { approval, run }: ApproveLine) => {
  const ids = [
    ...approvals.map(({ request }) => request.approvalId),
    ...questions.map(({ request }) => request.questionId)
  ]
  if (runId === run || Option.exists(approval, (id) => ids.includes(id))) return Effect.succeed(true)
  const detail = `Run ${run} waits for no answer now. Run ${runId} continues it: effect-agent approve ${runId}, for ${ids.join(" or ")}.`
  return [...approvals, ...questions].some(isOpen)
    ? Effect.fail(new UsageError({ detail }))
    : Effect.succeed(false)
}

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

/** The params in place of those of the call. Fails with `UsageError` if the line has no single answer, or they are no JSON. */
const paramsOf = Effect.fnUntraced(function* ({ answer, hash, no, params, reason, yes }: ApproveLine) {
  const refused = (detail: string) => new UsageError({ detail })
  if ([yes, no, Option.isSome(answer)].filter(Boolean).length !== 1)
    return yield* refused("Give --yes, --no or --answer.")
  if (Option.isSome(answer) && [hash, params, reason].some(Option.isSome))
    return yield* refused("--hash, --params and --reason go with --yes or --no.")
  if (Option.isNone(params)) return Option.none<Schema.Json>()
  if (no) return yield* refused("--params goes with --yes only.")
  const decoded = decode(params.value)
  if (Option.isNone(decoded)) return yield* refused("--params is no JSON.")
  return decoded
})

/** The most sessions that are searched for the beginning of the id of a run. */
const maxSearched = 50

/** A run of a store by its id, or by the beginning of the id if it is open in one of the newest sessions. */
const runOf = Effect.fnUntraced(function* (store: Service, text: string) {
  const known = yield* store.sessionOf(text)
  if (known !== undefined) return { runId: text, sessionId: known }
  const { items } = yield* store.list({ limit: maxSearched })
  const open = yield* Effect.forEach(items, ({ sessionId, title }) =>
    Effect.orElseSucceed(
      Effect.map(store.read(sessionId), ({ view }) => ({ sessionId, title, id: view.open?.runId ?? "" })),
      () => ({ sessionId, title, id: "" })
    )
  )
  const found = open.filter(({ id }) => Sessions.isRun(id, text))
  const runId = yield* Sessions.only("run", text, found)
  return { runId, sessionId: found.find(({ id }) => id === runId)?.sessionId ?? "" }
})

/** The end of the command, without `done` if nothing is recorded. */
interface Recorded {
  readonly title: string
  readonly done?: string
}

/** Records the decision about a call, unless it has one. */
const decide = Effect.fnUntraced(function* (
  session: OpenSession,
  turn: OpenTurn | undefined,
  line: ApproveLine,
  params: Option.Option<Schema.Json>
): Effect.fn.Return<Recorded, SessionError | UsageError> {
  const approvals = turn?.approvals ?? []
  const { answer, request } = yield* chosen(
    "approval",
    approvals.map((open) => ({ id: open.request.approvalId, title: callOf(open.request), open })),
    line,
    turn?.questions.some(isOpen) === true ? " A question waits: give --answer." : ""
  )
  const title = Inert.line(callOf(request))
  if (Option.exists(line.hash, (hash) => hash.toLowerCase() !== request.argumentsHash))
    return { title: `The hash is not that of ${title}` }
  const decision = answer?.decision ?? (line.yes ? ("approve" as const) : ("reject" as const))
  if (answer === undefined) {
    const reason = Option.match(line.reason, { onNone: () => ({}), onSome: (reason) => ({ reason }) })
    const edited = Option.match(params, { onNone: () => ({}), onSome: (edited) => ({ edited }) })
    const { approvalId, argumentsHash, params: asked, runId, toolCallId, toolName } = request
    const of = { approvalId, runId, toolCallId, toolName, params: asked, argumentsHash }
    yield* session.append([{ type: "approval", ...of, decision, by: "user", ...edited, ...reason }])
  }
  const words = decision === "approve" ? "approved" : "rejected"
  return { title, done: answer === undefined ? words : `already ${words}` }
})

/** Records the answer to a question, unless it has one. */
const answer = Effect.fnUntraced(function* (
  session: OpenSession,
  turn: OpenTurn | undefined,
  line: ApproveLine,
  text: string
): Effect.fn.Return<Recorded, SessionError | UsageError> {
  const questions = turn?.questions ?? []
  const { answer: first, request } = yield* chosen(
    "question",
    questions.map((open) => ({ id: open.request.questionId, title: open.request.question, open })),
    line,
    turn?.approvals.some(isOpen) === true ? " An approval waits: give --yes or --no." : ""
  )
  const title = `The question ${JSON.stringify(Inert.line(request.question, 80))}`
  const read = Requests.givenAnswer(text, request.schema)
  if (Result.isFailure(read))
    return yield* new UsageError({
      detail: `--answer does not match the schema of the question: ${read.failure}`
    })
  if (first !== undefined) {
    const isFirst = Json.canonical(first.answer) === Json.canonical(read.success)
    return isFirst ? { title, done: "already answered" } : { title: `${title} has another answer` }
  }
  const { questionId, runId, toolCallId } = request
  const data = { phase: "answered", runId, questionId, toolCallId, answer: read.success, by: "user" }
  yield* session.append([{ type: "custom", kind: "question", data }])
  return { title, done: "answered" }
})

const callOf = ({ params, toolName }: OpenTurn["approvals"][number]["request"]): string =>
  Output.titleOf(toolName, params)

interface Choice<out A> {
  readonly id: string
  readonly title: string
  readonly open: A
}

const isOpen = ({ answer }: { readonly answer?: unknown }): boolean => answer === undefined

/** The approval or question that the line names, else the only one without an answer. */
const chosen = Effect.fnUntraced(function* <A extends { readonly answer?: unknown }>(
  kind: "approval" | "question",
  choices: ReadonlyArray<Choice<A>>,
  { approval: id, run }: ApproveLine,
  advice: string
): Effect.fn.Return<A, UsageError> {
  const refused = (detail: string) => new UsageError({ detail })
  if (Option.isSome(id)) {
    const found = choices.find((choice) => choice.id === id.value)
    return found?.open ?? (yield* refused(`Run ${run} has no ${kind} ${JSON.stringify(id.value)}.${advice}`))
  }
  const waiting = choices.filter(({ open }) => isOpen(open))
  const [only, ...others] = waiting
  if (only === undefined) return yield* refused(`No ${kind} of run ${run} waits for an answer.${advice}`)
  if (others.length === 0) return only.open
  const names = waiting.map(({ id, title }) => `${id} (${Inert.line(title, 80)})`)
  return yield* refused(`Several ${kind}s wait: name one of ${names.join(", ")}.`)
})
