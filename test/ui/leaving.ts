/** A client of the AI SDK that loses its connection at random places, and comes back. */
import { assert } from "@effect/vitest"
import { Deferred, Effect, Fiber, Random } from "effect"
import { AiSdkUi } from "effect-agent/ai-sdk-ui"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as Chats from "./chats.ts"
import * as Host from "./host.ts"
import * as Scripted from "./scripted.ts"

/** A chat whose connections break after random numbers of bytes ends as one that has seen all. Succeeds with the number of breaks. */
export const often = Effect.gen(function* () {
  const gate = yield* Deferred.make<void>()
  // The run goes on until the client has come back for the last time: a server has nothing to resume after its end.
  const last = ScriptedProvider.turn(
    Step.start,
    Step.text("Not "),
    Step.run(Deferred.await(gate)),
    Step.text("quite."),
    Step.finish("stop")
  )
  const { runs, url } = yield* Host.make({ turns: [...Scripted.script.slice(0, -1), last] })
  const places = yield* Effect.forEach(Array.from({ length: 20 }), () => Random.nextIntBetween(1, 16_000))
  let breaks = 0
  let isLast = false
  const chat = Chats.chatOf(
    url,
    "chat-1",
    Chats.breaking(() => (isLast ? Infinity : (places[breaks++] ?? Infinity)))
  )
  const answering = yield* Effect.forkChild(
    Effect.promise(async () => {
      await chat.sendMessage({ text: "clean up" })
      await Chats.answering(chat, true, () => isLast)
    })
  )
  yield* Effect.promise(async () => {
    const isGated = () => Chats.partsOf(chat.lastMessage, "text").at(-1)?.text === "Not "
    while (!isGated()) await Chats.tick()
    isLast = true
    await chat.stop()
    const resuming = chat.resumeStream()
    while (chat.status !== "streaming" || !isGated()) await Chats.tick()
    await Effect.runPromise(Deferred.succeed(gate, undefined))
    await resuming
  })
  yield* Fiber.join(answering)
  assert.isUndefined(chat.error)
  const events = yield* Host.eventsOf(runs, "chat-1")
  const shown = places.slice(0, breaks).join(" ")
  assert.deepStrictEqual(AiSdkUi.messagesOf(chat.messages), Scripted.folded(events), shown)
  assert.deepStrictEqual(
    Chats.plain(chat.lastMessage?.parts),
    Chats.plain((yield* Chats.whole(events))?.parts),
    shown
  )
  return breaks
}).pipe(Effect.scoped)
