/** The words with which servers say why an answer ended. */
import type { StopReason } from "../../Message.ts"
import type { ReplyWriter } from "../ReplyWriter.ts"

/** Whether the server or its model broke the answer off, so that it is none. */
export const isFailure = (word: string): boolean => /abort|cancel|error|fail|malformed|time_?out/i.test(word)

/** The stop reason that a word means. An unknown word counts as a normal end. */
export const of = (word: string): StopReason => words.get(word.toLowerCase()) ?? "stop"

/** The same at the end of an answer, whose `unrepresented` then names an unknown word. */
export const noted = (word: string, reply: ReplyWriter): StopReason => {
  if (!words.has(word.toLowerCase())) reply.note(`the stop reason ${JSON.stringify(word.slice(0, 40))}`)
  return of(word)
}

const table: Readonly<Partial<Record<StopReason, ReadonlyArray<string>>>> = {
  stop: [
    "stop",
    "end_turn",
    "stop_sequence",
    "eos",
    "eos_token",
    "complete",
    "completed",
    "done",
    "end",
    "pause_turn",
    "compaction"
  ],
  toolUse: ["tool_calls", "tool_call", "function_call", "tool_use"],
  length: ["length", "max_tokens", "model_length", "model_context_window_exceeded"],
  contentFilter: ["content_filter", "content_filtered", "guardrail_intervened", "sensitive"],
  refusal: ["refusal"]
}

const words: ReadonlyMap<string, StopReason> = new Map(
  Object.entries(table).flatMap(([reason, known]) =>
    known.map((word) => [word, reason] as [string, StopReason])
  )
)
