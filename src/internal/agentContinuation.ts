/**
 * Where a run of an agent starts that has no new prompt.
 */
import * as Result from "effect/Result"
import * as Continuation from "./continuation.ts"
import type { Interrupted } from "./interrupted.ts"
import type { Message } from "../Message.ts"
import type { OpenTurns } from "./openTurns.ts"
import type { Queues } from "./queues.ts"
import type { Task } from "./task.ts"

/** The start of a task. */
export type Begin = Pick<
  Task,
  "prompts" | "continued" | "pollFirst" | "promptsFrom" | "byHand" | "open" | "runId" | "interrupted"
>

/** The start of a run that continues an interrupted one. */
const ofInterrupted = (interrupted: Interrupted): Begin => ({
  runId: interrupted.runId,
  prompts: interrupted.prompts,
  continued: true,
  pollFirst: interrupted.open === undefined,
  open: interrupted.open?.turn,
  interrupted
})

/**
 * The start of a run without a prompt, at `now`: an interrupted run continues. A turn that waits for a person is resumed. Else unanswered calls get error results;
 * after an answer, complete or broken off, queued messages are the prompt; without any the model answers again in place of an
 * answer that broke off.
 */
export const of = (
  { current: open, interrupted }: Pick<OpenTurns, "current" | "interrupted">,
  messages: ReadonlyArray<Message>,
  queues: Queues,
  now: number
): Result.Result<Begin, Continuation.InvalidContinuation> => {
  if (interrupted !== undefined) return Result.succeed(ofInterrupted(interrupted))
  if (open !== undefined) return Result.succeed({ prompts: [], continued: true, pollFirst: false, open })
  if (messages.length === 0) {
    return Result.fail(new Continuation.InvalidContinuation({ detail: "No messages to continue from" }))
  }
  const isUnanswered = Continuation.isUnanswered(messages)
  if (!isUnanswered || Continuation.isBrokenOff(messages)) {
    const queued = queuedPrompts(queues)
    if (queued !== undefined) return Result.succeed(queued)
  }
  if (!isUnanswered) return Result.fail(Continuation.answered())
  const prompts = Continuation.missingResults(messages, now)
  return Result.succeed({ prompts, continued: true, pollFirst: true })
}

const queuedPrompts = (queues: Queues): Begin | undefined => {
  for (const promptsFrom of ["steering", "followUp"] as const) {
    const prompts = queues.drain(promptsFrom)
    const pollFirst = promptsFrom === "followUp"
    if (prompts.length > 0) return { prompts, promptsFrom, continued: true, pollFirst }
  }
  return undefined
}
