/** The command `approve`: records the answer to an approval in its session, and runs nothing. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { OpenTurn } from "../Approval.ts"
import type { Service } from "../sessions/SessionStore.ts"
import type { ApproveLine } from "./CommandLine.ts"
import * as ExitCode from "./ExitCode.ts"
import { UsageError } from "./ExitCode.ts"
import * as Inert from "./Inert.ts"
import { Screen } from "./Screen.ts"
import * as SessionPlace from "./SessionPlace.ts"
import * as Settings from "./Settings.ts"
import * as ToolTitle from "./ToolTitle.ts"
import type { Environment } from "./Vendors.ts"

type Open = OpenTurn["approvals"][number]

/** Runs the command and returns its exit code. */
export const run = Effect.fnUntraced(function* (line: ApproveLine, env: Environment) {
  const params = yield* paramsOf(line)
  const { store } = yield* SessionPlace.at(yield* Settings.place(line, env))
  const sessionId = yield* sessionOf(store, line.run)
  const session = yield* store.open(sessionId)
  const { open } = session.restored
  const { answer, request } = yield* chosen(open?.runId === line.run ? open.approvals : [], line)
  const { err } = yield* Screen
  const title = Inert.line(ToolTitle.of(request.toolName, request.params))
  if (Option.exists(line.hash, (hash) => hash.toLowerCase() !== request.argumentsHash)) {
    yield* err(`effect-agent: The hash is not that of ${title}: nothing is recorded.\n`)
    return ExitCode.failed
  }
  const decision = answer?.decision ?? (line.yes ? ("approve" as const) : ("reject" as const))
  if (answer === undefined) {
    const reason = Option.match(line.reason, { onNone: () => ({}), onSome: (reason) => ({ reason }) })
    const edited = Option.match(params, { onNone: () => ({}), onSome: (edited) => ({ edited }) })
    const { approvalId, argumentsHash, params: asked, runId, toolCallId, toolName } = request
    const of = { approvalId, runId, toolCallId, toolName, params: asked, argumentsHash }
    yield* session.append([{ type: "approval", ...of, decision, by: "user", ...edited, ...reason }])
  }
  const done = `${answer === undefined ? "" : "already "}${decision === "approve" ? "approved" : "rejected"}`
  yield* err(`${title} is ${done}. effect-agent --resume ${sessionId} continues the run.\n`)
  return ExitCode.answered
}, Effect.scoped)

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

/** The params in place of those of the call. Fails with `UsageError` if the line has no single decision, or they are no JSON. */
const paramsOf = Effect.fnUntraced(function* ({ no, params, yes }: ApproveLine) {
  if (yes === no) return yield* new UsageError({ detail: "Give --yes or --no." })
  if (Option.isNone(params)) return Option.none<Schema.Json>()
  if (no) return yield* new UsageError({ detail: "--params goes with --yes only." })
  const decoded = decode(params.value)
  if (Option.isNone(decoded)) return yield* new UsageError({ detail: "--params is no JSON." })
  return decoded
})

/** The session that has a run, of all those of the store. */
const sessionOf = Effect.fnUntraced(function* (store: Service, run: string) {
  const sessionId = yield* store.sessionOf(run)
  return sessionId ?? (yield* new UsageError({ detail: `There is no run ${JSON.stringify(run)}.` }))
})

/** The approval that the line names, else the only one without an answer. */
const chosen = Effect.fnUntraced(function* (
  approvals: ReadonlyArray<Open>,
  { approval, run }: ApproveLine
): Effect.fn.Return<Open, UsageError> {
  const refused = (detail: string) => new UsageError({ detail })
  if (Option.isSome(approval)) {
    const found = approvals.find(({ request }) => request.approvalId === approval.value)
    return found ?? (yield* refused(`Run ${run} has no approval ${JSON.stringify(approval.value)}.`))
  }
  const open = approvals.filter(({ answer }) => answer === undefined)
  const [only, ...others] = open
  if (only === undefined) return yield* refused(`No approval of run ${run} waits for an answer.`)
  if (others.length === 0) return only
  const ids = open.map(
    ({ request }) => `${request.approvalId} (${ToolTitle.of(request.toolName, request.params)})`
  )
  return yield* refused(`Several approvals wait: name one of ${ids.join(", ")}.`)
})
