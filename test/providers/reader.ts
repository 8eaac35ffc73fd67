/**
 * Reads answers in one wire language, as its tests want them.
 */
import { assert } from "@effect/vitest"
import { ModelEvent } from "effect-agent"
import { Answer } from "../../src/providers/internal/answer.ts"
import { Framing, ReplyWriter } from "effect-agent/providers"
import type { Call, Protocol } from "../../src/providers/Protocol.ts"
import { events as sse } from "./server.ts"

/** An answer that has begun, without a network. */
export const answerOf = (protocol: Protocol, call: Call, redact = (text: string) => text) => {
  const reply = new ReplyWriter.ReplyWriter(protocol, call)
  const begun = { call, reply, decoder: protocol.decoder(call, reply) }
  return new Answer({ protocol, framing: Framing.sse, redact }, begun)
}

export const readerOf = (protocol: Protocol, call: Call) => {
  /** What becomes of an answer of these events, as the server ends it after them. */
  const read = (...wire: ReadonlyArray<unknown>) => readPieces([new TextEncoder().encode(sse(...wire))])

  const readPieces = (pieces: ReadonlyArray<Uint8Array>) => {
    const answer = answerOf(protocol, call)
    for (const piece of pieces) answer.push(piece)
    answer.end()
    return { events: answer.take(), outcome: answer.outcome }
  }

  /** The message that a complete answer is, and how it ended. */
  const message = (...wire: ReadonlyArray<unknown>) => {
    const { events, outcome } = read(...wire)
    assert.strictEqual(outcome, "complete")
    const reply = events.reduce(ModelEvent.append, ModelEvent.emptyReply)
    return ModelEvent.toAssistant(reply, { id: "a", timestamp: 0, provider: "", model: "", protocol: "" })
  }

  /** Why an answer is none. It must not look like one either. */
  const failure = (...wire: ReadonlyArray<unknown>) => {
    const { events, outcome } = read(...wire)
    assert.deepStrictEqual(
      events.filter(({ _tag }) => _tag === "ToolCallEnd" || _tag === "Finish"),
      []
    )
    assert(typeof outcome !== "string", `the answer is ${outcome}`)
    return outcome
  }

  return { failure, message, read, readPieces }
}
