/**
 * Laws that hold for an agent after any plan was played: what it remembers, what it returned, what it sent and what it
 * still holds agree with the events, and with what the model, the tools and the hooks did.
 */
import { isDeepStrictEqual } from "node:util"
import { Cause, Exit, Option, Schema } from "effect"
import { AgentEvent, Message, Run, RunReport, Transcript } from "effect-agent"
import * as EventLaws from "./eventLaws.ts"
import type { Played } from "./play.ts"
import type { Decision } from "./Stage.ts"

type Violations = ReadonlyArray<string>

/** What is wrong, in words; nothing at all for a lawful play. */
export const violations = (played: Played): Violations => [
  ...EventLaws.byRun(played.events).flatMap(EventLaws.violations),
  ...memory(played),
  ...returned(played),
  ...requests(played),
  ...queues(played),
  ...guards(played),
  ...tools(played),
  ...leftovers(played)
]

const unless = (holds: boolean, violation: string): Violations => (holds ? [] : [violation])
const ids = (messages: ReadonlyArray<Message.Message>) => messages.map(({ id }) => id).join()
const same = (left: unknown, right: unknown) => JSON.stringify(left) === JSON.stringify(right)

/** The state is the fold of the events, and its transcript is valid. */
export const memory = ({ events, state }: Pick<Played, "events" | "state">): Violations => {
  const view = events.reduce(AgentEvent.fold, AgentEvent.initial())
  return [
    ...unless(
      same(view.messages, state.messages),
      `the state holds ${ids(state.messages)}, the events ${ids(view.messages)}`
    ),
    ...unless(state.phase === "idle" && view.phase === "idle", `phase ${state.phase}, folded ${view.phase}`),
    ...unless(state.pendingToolCalls.size === 0, "tool calls are pending"),
    ...unless(view.open === undefined, "an answer is still open"),
    ...unless(state.lastError === view.lastError, `lastError ${state.lastError}, folded ${view.lastError}`),
    ...Transcript.violations(state.messages)
  ]
}

/** What a run returned is what its events said. */
const returned = ({ events, exits, last, stage }: Played): Violations => {
  const runs = EventLaws.byRun(events)
  const all = [...exits, last]
  const mayDie = stage.plan.answers.some(({ ending }) => ending === "defect")
  return [
    ...all.flatMap((exit) => {
      const result = resultOf(exit)
      if (result === undefined) return []
      const run = runs.find(([first]) => first?.runId === result.runId) ?? []
      return agrees(result, run)
    }),
    ...all.flatMap((exit) =>
      unless(mayDie || Exit.isSuccess(exit) || !Cause.hasDies(exit.cause), "a run died of nothing planned")
    ),
    ...unless(runs.length >= all.length - notBegun(all), `${runs.length} runs for ${all.length} prompts`)
  ]
}

const notBegun = (exits: ReadonlyArray<Exit.Exit<unknown, unknown>>): number =>
  exits.filter((exit) => Exit.isFailure(exit) && !isRunFailed(errorOf(exit)) && !Cause.hasDies(exit.cause))
    .length

const errorOf = (exit: Exit.Exit<unknown, unknown>): unknown =>
  Option.getOrUndefined(Exit.findErrorOption(exit))
const isRunResult = Schema.is(Run.RunResult)
const isRunFailed = Schema.is(Run.RunFailed)

const resultOf = (exit: Exit.Exit<unknown, unknown>): Run.RunResult | undefined => {
  const value = Exit.isSuccess(exit) ? exit.value : errorOf(exit)
  return isRunResult(value) ? value : isRunFailed(value) ? value.result : undefined
}

const agrees = (result: Run.RunResult, run: ReadonlyArray<AgentEvent.AgentEvent>): Violations => {
  const end = run.at(-1)
  if (end?._tag !== "RunEnd") return [`no events of the run ${result.runId}`]
  return [
    ...unless(end.status === result.status, `returned ${result.status}, told ${end.status}`),
    ...unless(ids(result.newMessages) === end.newMessageIds.join(), "returned other new messages"),
    ...unless(same(result.usage, end.usage), "returned another usage"),
    ...unless(result.turns === end.turns, "returned another count of turns"),
    ...unless(
      isDeepStrictEqual(result.report, RunReport.fromEvents(run)),
      "the report is not the fold of the events"
    )
  ]
}

/** Whatever happened before, the model is only ever asked what a provider would take. */
const requests = ({ requests }: Played): Violations =>
  requests.flatMap(({ messages }, index) => [
    ...Transcript.violations(messages).map((violation) => `request ${index}: ${violation}`),
    ...unless(!messages.some(Transcript.isFailed), `request ${index} holds a failed answer`),
    ...unless(
      new Set(messages.map(({ id }) => id)).size === messages.length,
      `request ${index} repeats a message`
    )
  ])

/** What was queued is in the transcript once, in its order, unless it was thrown away on purpose. */
const queues = ({ stage, state }: Played): Violations => {
  const texts = state.messages.flatMap((message) =>
    message.role === "user" ? [Message.textOf(message)] : []
  )
  const { cleared, sent } = stage
  const all = [...sent.steering, ...sent.followUp, ...sent.polled]
  const arrived = all.filter((text) => texts.includes(text))
  const times = (text: string) => texts.filter((other) => other === text).length
  return [
    ...unless(
      arrived.every((text) => times(text) === 1),
      `a message was delivered twice: ${texts.join()}`
    ),
    ...unless(
      arrived.length + cleared === all.length,
      `${all.length} sent, ${arrived.length} arrived, ${cleared} cleared`
    ),
    ...[sent.steering, sent.followUp].flatMap((queue) => {
      const expected = queue.filter((text) => texts.includes(text))
      const found = texts.filter((text) => queue.includes(text))
      return unless(found.join() === expected.join(), `sent ${expected.join()}, delivered ${found.join()}`)
    })
  ]
}

const outcomeOf: Readonly<Record<Exclude<Decision, "change">, Message.ToolOutcome>> = {
  block: "blocked",
  skip: "skipped",
  reject: "rejected",
  spoil: "invalidArguments"
}

/** A call a guard refused did not run, and one that was refused was refused by a guard. */
const guards = ({ events, stage }: Played): Violations =>
  ends(events).flatMap(({ outcome, toolCallId }) => {
    const decisive = (stage.decisions.get(toolCallId) ?? []).find((decision) => decision !== "change")
    const expected = decisive === undefined ? undefined : outcomeOf[decisive]
    const { deeds, rules } = stage.plan
    const isSteering = rules.steeringPolicy === "skipRemaining" || deeds.some(({ does }) => does === "cut")
    const steered = outcome === "skipped" && isSteering
    const unexplained = outcome === "blocked" || outcome === "rejected" || (outcome === "skipped" && !steered)
    return [
      ...unless(
        expected === undefined || outcome === expected || outcome === "aborted" || steered,
        `${toolCallId}: a guard said ${decisive}, it came to ${outcome}`
      ),
      ...unless(!unexplained || expected === outcome, `${toolCallId} was ${outcome}, and no guard said so`)
    ]
  })

const ends = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  events.filter((event): event is AgentEvent.OfTag<"ToolExecutionEnd"> => event._tag === "ToolExecutionEnd")

const expectedOf: ReadonlyMap<string, ReadonlyArray<Message.ToolOutcome>> = new Map([
  ["plain", ["success"]],
  ["single", ["success"]],
  ["slow", ["success", "timeout"]],
  ["terminating", ["success"]],
  ["failing", ["error"]],
  ["dying", ["error"]],
  ["sorry", ["error"]],
  ["endless", ["timeout"]],
  ["deaf", ["timeout"]]
])

/** Tools run when the events say so, and come to what they do. */
const tools = ({ events, stage }: Played): Violations => {
  const invoked = new Map<string, number>()
  for (const event of events) {
    if (event._tag === "ToolInvoked") invoked.set(event.toolCallId, (invoked.get(event.toolCallId) ?? 0) + 1)
  }
  return [
    ...[...stage.executions].flatMap(([id, times]) =>
      unless(times <= 2 * (invoked.get(id) ?? 0), `${id} ran ${times} times, invoked ${invoked.get(id) ?? 0}`)
    ),
    ...ends(events).flatMap(({ outcome, toolCallId, toolName }) => {
      const expected = expectedOf.get(toolName) ?? []
      const came = outcome === "success" || outcome === "error" || outcome === "timeout"
      return [
        ...unless(toolName !== "nobody" || !came, `nobody came to ${outcome}`),
        ...unless(
          !came || stage.reviewed.has(toolCallId) || expected.includes(outcome),
          `${toolName} ${toolCallId} came to ${outcome}`
        )
      ]
    })
  ]
}

/** Nothing is held when all is over, and the agent is as good as new. */
const leftovers = ({ last, queued, stage }: Played): Violations => [
  ...stage.wrong,
  ...unless(stage.acquired === stage.released, `${stage.acquired} acquired, ${stage.released} released`),
  ...unless(
    queued <= stage.sent.steering.length + stage.sent.followUp.length + stage.sent.polled.length,
    `${queued} messages are queued`
  ),
  ...unless(resultOf(last)?.status === "completed", `the last prompt: ${JSON.stringify(last)}`)
]
