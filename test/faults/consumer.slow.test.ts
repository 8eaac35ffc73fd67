import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch, Stream } from "effect"
import { AgentEvent, Message, Transcript } from "effect-agent"
import { createAgent } from "effect-agent/promise"
import { readFileSync } from "node:fs"
import type { Socket } from "node:net"
import { range } from "../behaviour/play.ts"
import { serve, stream } from "../providers/server.ts"
import { agentAt } from "./talking.ts"
import { faults, type Wire, wires } from "./wires.ts"

/** Milliseconds from leaving to the end of the connection; where the machine is busy with other things, at most. */
const soon = 200
const late = 1000

/** A server that says a word, and then no more, until it is told to go on. */
const unending = (wire: Wire) =>
  serve((response, { body }) => {
    const events = wire.answer({ text: ["Hel", "lo"] })
    const goesOn = wire.turns(JSON.parse(body)).some(({ texts }) => texts.includes("go on"))
    const begun = events.slice(0, wire.name === "google-generative" ? 1 : 3)
    if (goesOn) stream(response).end(events.join(""))
    else stream(response).write(begun.join(""))
  })

/** How long until nobody is connected any more. */
const closing = (idle: Effect.Effect<void>) =>
  Effect.suspend(() => {
    const left = performance.now()
    return Effect.map(Effect.timeoutOption(idle, late), () => performance.now() - left)
  })

/** Of three times, two are as they should be, and none is long. */
const areSoon = (times: ReadonlyArray<number>) => {
  const [, middle = late, longest = late] = times.toSorted((left, right) => left - right)
  assert.isBelow(middle, soon)
  assert.isBelow(longest, late)
}

describe.each(wires)("a reader of $name", (wire) => {
  it.live("F095: that leaves the stream closes the connection, and the history goes on", () =>
    Effect.gen(function* () {
      const times: Array<number> = []
      for (const way of ["take", "fail", "interrupt"] as const) {
        const server = yield* unending(wire)
        const agent = yield* agentAt(wire, server.baseUrl)
        const heard = yield* Latch.make(false)
        const texts = Stream.tap(AgentEvent.textOnly(agent.stream("hi")), () => heard.open)
        const reading = {
          take: Stream.runDrain(Stream.take(texts, 1)),
          fail: Stream.runForEach(texts, () => Effect.fail("enough")),
          interrupt: Stream.runDrain(texts)
        }[way]
        const reader = yield* Effect.forkChild(Effect.exit(reading))
        yield* heard.await
        if (way === "interrupt") yield* Fiber.interrupt(reader)
        times.push(yield* closing(server.idle))
        yield* Fiber.await(reader)
        yield* agent.prompt("go on")
        assert.deepStrictEqual(
          server.requests.flatMap(({ body }) => faults(wire, body)),
          []
        )
        assert.deepStrictEqual(Transcript.violations(agent.state.getUnsafe().messages), [])
      }
      areSoon(times)
    })
  )

  it.live("F095: that breaks out of a loop closes the connection", () =>
    Effect.gen(function* () {
      const times: Array<number> = []
      for (const _ of range(3)) {
        const server = yield* unending(wire)
        yield* Effect.promise(async () => {
          await using agent = createAgent({ provider: wire.layer(server.baseUrl), model: "m" })
          for await (const event of agent.stream("hi")) if (AgentEvent.isTextDelta(event)) break
        })
        times.push(yield* closing(server.idle))
      }
      areSoon(times)
    })
  )
})

/** Bytes that wait in the kernel, on either side of the connections to this port. */
const inKernel = (port: number): number => {
  const hex = `:${port.toString(16).toUpperCase().padStart(4, "0")}`
  return readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local = "", remote = ""]) => local.endsWith(hex) || remote.endsWith(hex))
    .reduce((sum, [, , , , queues = "0:0"]) => {
      const [sending = "0", receiving = "0"] = queues.split(":")
      return sum + Number.parseInt(sending, 16) + Number.parseInt(receiving, 16)
    }, 0)
}

const megabyte = 2 ** 20

it.live.skipIf(process.platform !== "linux")(
  "F096: a slow reader of a fast server is at most 4 MB behind of 32, and loses nothing of the end",
  () =>
    Effect.gen(function* () {
      const [wire] = wires
      assert.isDefined(wire)
      const [begin = "", part = "", ...end] = wire.answer({ text: ["x".repeat(16 * 1024)] })
      // What an answer may have at most, less what begins and ends it.
      const parts = Math.floor((32 * megabyte) / part.length) - 1
      const sockets: Array<Socket> = []
      const server = yield* serve((response) => {
        if (response.socket !== null) sockets.push(response.socket)
        stream(response).write(begin)
        let written = 0
        const more = () => {
          while (written++ < parts) if (!response.write(part)) return void response.once("drain", more)
          response.end(end.join(""))
        }
        more()
      })
      /** Bytes that this process has taken from the kernel. */
      const taken = () =>
        sockets.reduce((sum, { bytesWritten, writableLength }) => sum + bytesWritten - writableLength, 0) -
        inKernel(Number(new URL(server.baseUrl).port))
      const agent = yield* agentAt(wire, server.baseUrl)
      const last: Array<string> = []
      let read = 0
      let ahead = 0
      yield* agent.stream("hi").pipe(
        Stream.runForEach((event) => {
          last[0] = event._tag
          if (!AgentEvent.isTextDelta(event)) return Effect.void
          read += event.delta.delta.length
          // Slow for the first half megabyte: long enough for all the server can push.
          if (read > megabyte / 2) return Effect.void
          return Effect.map(Effect.sleep(20), () => {
            ahead = Math.max(ahead, taken() - read)
          })
        })
      )
      assert.isAtMost(ahead, 4 * megabyte)
      assert.isAbove(ahead, 0)
      assert.strictEqual(read, parts * 16 * 1024)
      const [, answer] = agent.state.getUnsafe().messages
      assert.strictEqual(answer === undefined ? 0 : Message.textOf(answer).length, read)
      assert.strictEqual(last.at(-1), "RunEnd")
    })
)
