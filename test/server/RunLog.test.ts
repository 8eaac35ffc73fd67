import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import type { AgentEvent, ModelEvent } from "effect-agent"
import { Message, Usage } from "effect-agent"
import { TestClock } from "effect/testing"
import * as LogLine from "../../src/runs/internal/LogLine.ts"
import { Pace } from "../../src/runs/Watchers.ts"
import { RunLog } from "../../src/runs/internal/RunLog.ts"

let seq = 0
const base = () => ({ runId: "r", seq: ++seq, timestamp: 0 })
const turn = (): AgentEvent.AgentEvent => ({ ...base(), _tag: "TurnStart", turn: 1 })
const start = (messageId: string): AgentEvent.AgentEvent => ({
  ...base(),
  _tag: "MessageStart",
  messageId,
  role: "assistant"
})
const delta = (messageId: string, text: string): AgentEvent.AgentEvent => ({
  ...base(),
  _tag: "MessageDelta",
  messageId,
  delta: { _tag: "TextDelta", contentIndex: 0, delta: text }
})
const partial = (messageId: string): AgentEvent.AgentEvent => ({
  ...base(),
  _tag: "PartialValue",
  messageId,
  index: 0,
  for: "arguments",
  changes: [{ path: [], set: {} }]
})
const end = (id: string): AgentEvent.AgentEvent => ({
  ...base(),
  _tag: "MessageEnd",
  message: { ...Message.user("whole"), id }
})
const over = (): AgentEvent.AgentEvent => ({
  ...base(),
  _tag: "RunEnd",
  status: "completed",
  newMessageIds: [],
  usage: Usage.zero,
  turns: 1,
  durationMs: 1
})

const memory = () => {
  const lines: Array<string> = []
  const log = new RunLog((some) => Effect.sync(() => void lines.push(...some)))
  return { lines, log }
}
const pace = new Pace({ flush: 0, heartbeat: "15 seconds" })
const positions = (log: RunLog, after = 0, isPartial = false) =>
  Effect.map(Stream.runCollect(log.watch(after, pace, isPartial)), (pages) =>
    pages.flat().map(({ position, tag }) => `${position} ${tag}`)
  )

describe("RunLog", () => {
  it.effect("gives each watcher the entries behind its cursor", () =>
    Effect.gen(function* () {
      const { log } = memory()
      yield* log.append([turn(), start("m")])
      const early = yield* Effect.forkChild(positions(log), { startImmediately: true })
      yield* log.append([over()])
      log.close()
      assert.deepStrictEqual(yield* Fiber.join(early), ["1 TurnStart", "2 MessageStart", "3 RunEnd"])
      assert.deepStrictEqual(yield* positions(log, 1), ["2 MessageStart", "3 RunEnd"])
      assert.deepStrictEqual(yield* positions(log, 3), [])
      assert.isFalse(log.hasAfter(3))
    })
  )

  it.effect("drops deltas with the end of their message, and keeps those of others", () =>
    Effect.gen(function* () {
      const { log } = memory()
      yield* log.append([start("a"), delta("a", "1"), start("b"), delta("b", "2"), delta("a", "3")])
      yield* log.append([end("a")])
      const kept = log.pageAfter(0).map(({ position, tag }) => `${position} ${tag}`)
      assert.deepStrictEqual(kept, ["1 MessageStart", "3 MessageStart", "4 MessageDelta", "6 MessageEnd"])
      // A watcher in the middle of the deltas reads the message.
      assert.deepStrictEqual(
        log.pageAfter(2).map(({ position }) => position),
        [3, 4, 6]
      )
    })
  )

  it.effect("shows partial values on request until their message is whole, and stores none (row 58)", () =>
    Effect.gen(function* () {
      const { lines, log } = memory()
      yield* log.append([start("a"), delta("a", "1"), partial("a")])
      const plain = yield* Effect.forkChild(positions(log), { startImmediately: true })
      const whole = yield* Effect.forkChild(positions(log, 0, true), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      yield* log.append([end("a"), start("b"), partial("b"), over()])
      log.close()
      const seen = ["1 MessageStart", "2 MessageDelta", "4 MessageEnd", "5 MessageStart", "7 RunEnd"]
      assert.deepStrictEqual(yield* Fiber.join(plain), seen)
      assert.deepStrictEqual(
        yield* Fiber.join(whole),
        seen.flatMap((each) =>
          each.startsWith("2")
            ? [each, "3 PartialValue"]
            : each.startsWith("5")
              ? [each, "6 PartialValue"]
              : [each]
        )
      )
      assert.notInclude(lines.join(""), "PartialValue")
    })
  )

  it.effect("stores all but deltas, and what shows how far watchers may have seen", () =>
    Effect.gen(function* () {
      const { lines, log } = memory()
      yield* log.append([turn(), start("m")])
      for (let index = 0; index < 2000; index++) assert.isTrue(log.showDeltas([delta("m", "x")]))
      assert.strictEqual(log.pageAfter(1990).at(-1)?.position, 2002)
      assert.strictEqual(LogLine.read(lines).last, 2)
      const many = Array.from({ length: 1000 }, () => delta("m", ""))
      while (log.showDeltas(many));
      yield* log.append(many)
      const seen = log.pageAfter(LogLine.reach - 100).at(-1)?.position ?? 0
      assert.isAbove(seen, LogLine.reach - 100)
      assert.isAbove(LogLine.read(lines).last + LogLine.reach, seen)
      yield* log.append(many)
      assert.isAbove(LogLine.read(lines).last, 2)
      assert.strictEqual(lines.filter((line) => line.includes("MessageDelta")).length, 0)
    })
  )

  it.effect("shows nothing that could not be stored", () =>
    Effect.gen(function* () {
      const log = new RunLog(() => Effect.die("full"))
      yield* Effect.exit(log.append([turn()]))
      assert.strictEqual(log.pageAfter(0).length, 0)
    })
  )

  it.effect("encodes an event once for all watchers", () =>
    Effect.gen(function* () {
      const { log } = memory()
      let count = 0
      const details = { toJSON: () => `${++count}` }
      yield* log.append([Object.assign(turn(), { details })])
      const stored = count
      const [first] = log.pageAfter(0)
      const [second] = log.pageAfter(0)
      assert.strictEqual(first?.frame, second?.frame)
      assert.match(first?.frame ?? "", /^id: 1\nevent: TurnStart\ndata: \{.*\}\n\n$/)
      assert.strictEqual(count, stored + 1)
    })
  )

  it.effect("makes a page of a large event, whose bytes its watchers share", () =>
    Effect.gen(function* () {
      const { log } = memory()
      const large = Message.user("x".repeat(300_000))
      yield* log.append([turn(), { ...base(), _tag: "MessageEnd", message: { ...large, id: "m" } }, turn()])
      const pages = [0, 1, 2].map((after) => log.pageAfter(after))
      assert.deepStrictEqual(
        pages.map((page) => page.map(({ position }) => position)),
        [[1], [2], [3]]
      )
      const [entry] = log.pageAfter(1)
      assert.strictEqual(entry?.bytes, pages[1]?.[0]?.bytes)
      assert.strictEqual(new TextDecoder().decode(entry?.bytes), entry?.frame)
    })
  )

  it.effect("gives back each delta as it came, as an event and as a frame", () =>
    Effect.gen(function* () {
      const { log } = memory()
      const parent = { runId: "r", toolCallId: "c" }
      const inner = (text: string): AgentEvent.AgentEvent =>
        Object.assign(delta("n", text), { runId: "inner", seq: 7, parent, path: [parent] })
      const odd = (delta: ModelEvent.ModelEvent): AgentEvent.AgentEvent => ({
        ...base(),
        _tag: "MessageDelta",
        messageId: "m",
        turn: 2,
        delta
      })
      const events: ReadonlyArray<AgentEvent.AgentEvent> = [
        start("m"),
        ...Array.from({ length: 150 }, (_, index) => delta("m", "x".repeat(index % 20))),
        odd({ _tag: "TextStart", contentIndex: 0 }),
        delta("m", 'a "quote"\n'),
        { ...delta("m", "later"), timestamp: 12 },
        inner("of another run"),
        delta("m", "\u2028 \ud800 \u00e4"),
        odd({ _tag: "ThinkingDelta", contentIndex: 1, delta: "" }),
        inner("and more"),
        odd({ _tag: "ToolCallStart", contentIndex: 2, id: "c", name: "look" }),
        odd({ _tag: "ToolCallDelta", contentIndex: 2, delta: "{}" }),
        odd({ _tag: "ToolCallDelta", contentIndex: 3, delta: "{}" }),
        turn()
      ]
      yield* log.append(events)
      for (let after = 0; after < events.length; after++) {
        const page = log.pageAfter(after)
        assert.deepStrictEqual(
          page.map(({ event }) => event),
          events.slice(after)
        )
        const frames = page.map(
          ({ frame }) => /^id: (\d+)\nevent: (\w+)\ndata: ([^\n]*)\n\n$/.exec(frame) ?? []
        )
        const read = frames.map(([, id, tag, data = ""]) => ({ id: Number(id), tag, data: JSON.parse(data) }))
        assert.deepStrictEqual(
          read,
          events.slice(after).map((data, index) => ({ id: after + index + 1, tag: data._tag, data }))
        )
      }
    })
  )

  it.effect("gives a slow watcher all, in pages, and an idle one an empty page after 15 seconds", () =>
    Effect.gen(function* () {
      const { log } = memory()
      yield* log.append(Array.from({ length: 1000 }, turn))
      const pages: Array<number> = []
      const slow = yield* Effect.forkChild(
        Stream.runForEach(log.watch(0, pace), (page) =>
          Effect.andThen(
            Effect.sleep("1 second"),
            Effect.sync(() => pages.push(page.length))
          )
        ),
        { startImmediately: true }
      )
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(pages, [256, 256, 256, 232, 0])
      log.close()
      yield* TestClock.adjust("20 seconds")
      yield* Fiber.join(slow)
    })
  )

  it.effect(
    "gives the last events to a paced watcher when the log is closed, without the rest of the pause",
    () =>
      Effect.gen(function* () {
        const { log } = memory()
        yield* log.append([turn()])
        const pages = log.watch(0, new Pace({ flush: "1 hour", heartbeat: "2 hours" }))
        const watcher = yield* Effect.forkChild(Stream.runCollect(pages), { startImmediately: true })
        yield* TestClock.adjust("30 minutes")
        yield* log.append([over()])
        log.close()
        const tags = (yield* Fiber.join(watcher)).flat().map(({ tag }) => tag)
        assert.deepStrictEqual(tags, ["TurnStart", "RunEnd"])
      })
  )

  it.effect("joins the events of a short while into one page of a watcher", () =>
    Effect.gen(function* () {
      const { log } = memory()
      const pages: Array<number> = []
      const watcher = yield* Effect.forkChild(
        Stream.runForEach(log.watch(0, new Pace({ flush: "50 millis", heartbeat: "15 seconds" })), (page) =>
          Effect.sync(() => pages.push(page.length))
        ),
        { startImmediately: true }
      )
      for (let index = 0; index < 6; index++) {
        yield* log.append([delta("m", "x")])
        yield* TestClock.adjust("10 millis")
      }
      yield* TestClock.adjust("1 second")
      log.close()
      yield* Fiber.join(watcher)
      assert.deepStrictEqual(pages, [0, 5, 1])
    })
  )

  it.effect("gives 500 watchers a page half as often as 250", () =>
    Effect.gen(function* () {
      const { log } = memory()
      const crowd = new Pace({ flush: "50 millis", heartbeat: "15 seconds" })
      const pages = yield* Effect.forEach(Array.from({ length: 500 }), () =>
        Effect.gen(function* () {
          const own: Array<number> = []
          const read = Stream.runForEach(log.watch(0, crowd), (page) =>
            Effect.sync(() => own.push(page.length))
          )
          yield* Effect.forkChild(read, { startImmediately: true })
          return own
        })
      )
      yield* TestClock.adjust("100 millis")
      for (let index = 0; index < 30; index++) {
        yield* log.append([delta("m", "x")])
        yield* TestClock.adjust("10 millis")
      }
      assert.deepStrictEqual(pages[499], [0, 1, 9, 10, 10])
      log.close()
      yield* TestClock.adjust("1 second")
      assert.strictEqual(crowd.gap, 50)
    })
  )
})
