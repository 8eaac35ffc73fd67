/**
 * Random transcripts that providers accept, by a seed.
 */
import { Message } from "effect-agent"
import { Random } from "../../harness/chaos/Random.ts"

/** Prompts, answers, calls with their results, custom messages and failed answers. Ids of calls repeat, as those of vendors do. */
export const transcript = (seed: number): ReadonlyArray<Message.Message> => {
  const random = new Random(seed)
  const text = () => "word ".repeat(1 + random.upTo(200))
  const turn = (): ReadonlyArray<Message.Message> => {
    const calls = random
      .some(3, () => undefined)
      .map((_, index) => ({
        type: "toolCall" as const,
        id: `call-${index}`,
        name: "look",
        rawArguments: "{}",
        params: {}
      }))
    return [
      ...(random.once(3) ? random.some(2, () => Message.user(text())) : []),
      ...(random.once(8) ? [Message.custom("note", "n")] : []),
      ...(random.once(10) ? [Message.assistant(text(), { stopReason: "error" })] : []),
      Message.assistant([Message.text(text()), ...calls], {
        stopReason: calls.length > 0 ? "toolUse" : "stop"
      }),
      ...calls.map((call) => Message.toolResult(call, text())),
      ...(random.once(8) ? [Message.custom("note", "n")] : [])
    ]
  }
  return [
    ...(random.once(4) ? [Message.custom("developer", "d")] : []),
    Message.user(text()),
    ...random.some(30, turn).flat(),
    ...(random.once(2) ? [Message.user(text())] : [])
  ]
}

export const seeds = Array.from({ length: 100 }, (_, seed) => seed)
