/** The words with which servers say why an answer ended. */
import type { StopReason } from "../../Message.ts"
import type { ReplyWriter } from "../../reply/ReplyWriter.ts"

/** Whether the server or its model broke the answer off, so that it is none. */
export const isFailure = (word: string): boolean => /abort|cancel|error|fail|malformed|time_?out/i.test(word)

/** The stop reason that a word means. An unknown word counts as a normal end. */
export const of = (word: string): StopReason => words.get(word.toLowerCase()) ?? "stop"

/** As `of`, at the end of an answer: its `unrepresented` then names an unknown word. Anything but a short word may hold a secret. */
export const noted = (word: string, reply: ReplyWriter): StopReason => {
  if (!words.has(word.toLowerCase()))
    reply.note(/^[a-z_]{1,40}$/i.test(word) ? `the stop reason "${word}"` : "an unknown stop reason")
  return of(word)
}

const meaning =
  (reason: StopReason) =>
  (word: string): readonly [string, StopReason] => [word, reason]

const words: ReadonlyMap<string, StopReason> = new Map([
  ...["stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed", "done", "end"].map(
    meaning("stop")
  ),
  ...["pause_turn", "compaction"].map(meaning("stop")),
  ...["tool_calls", "tool_call", "function_call", "tool_use"].map(meaning("toolUse")),
  ...["length", "max_tokens", "model_length", "model_context_window_exceeded"].map(meaning("length")),
  ...["content_filter", "content_filtered", "guardrail_intervened", "sensitive"].map(
    meaning("contentFilter")
  ),
  ["refusal", "refusal"]
])
