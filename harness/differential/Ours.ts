/**
 * What the library makes of an answer.
 */
import { Effect, Stream } from "effect"
import { Message, ModelEvent, Provider } from "effect-agent"
import type { Said } from "./streams/Fixture.ts"

/** Asks whichever provider is there. */
export const ask = Effect.fnUntraced(function* (model: string) {
  const provider = yield* Provider.Provider
  const request = { model, messages: [Message.user("Hi")], tools: [], options: {} }
  const reply = yield* Stream.runFold(
    provider.stream(request),
    () => ModelEvent.emptyReply,
    ModelEvent.append
  )
  return said(reply)
})

const said = ({ content, finish }: ModelEvent.Reply): Said => {
  const { cacheRead, cacheWrite, input, output } = finish?.usage ?? {
    cacheRead: -1,
    cacheWrite: -1,
    input: -1,
    output: -1
  }
  return {
    text: content.map((block) => (block.type === "text" ? block.text : "")).join(""),
    thinking: content.map((block) => (block.type === "thinking" ? block.text : "")).join(""),
    calls: content.flatMap((block) =>
      block.type === "toolCall" ? [{ id: block.id, name: block.name, params: block.params }] : []
    ),
    stopReason: finish?.stopReason ?? "error",
    usage: { input, output, cacheRead, cacheWrite }
  }
}
