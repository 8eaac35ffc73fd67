import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Agent, type AgentEvent, type Message, ProviderError, Usage } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { RunView } from "effect-agent/view"
import { Random } from "../../harness/chaos/Random.ts"
import { recorded } from "./recorded.ts"

type Event = AgentEvent.AgentEvent

const foldAll = (events: ReadonlyArray<Event>, view = RunView.initial): RunView.View =>
  events.reduce((state, event) => RunView.fold(state, event), view)

/** The rows as a tree in text. */
const treeOf = ({ rows }: RunView.View): Array<string> =>
  rows.map(({ depth, kind, state, title }) => `${"  ".repeat(depth)}${`${kind} ${title}`.trim()}, ${state}`)

const base = { runId: "r", timestamp: 1 }
let seq = 0
const event = <Tag extends Event["_tag"]>(
  tag: Tag,
  members: Omit<AgentEvent.OfTag<Tag>, "_tag" | "runId" | "seq" | "timestamp">
): Event => {
  const made: unknown = { _tag: tag, ...base, seq: ++seq, ...members }
  assert.isTrue(isEvent(made), JSON.stringify(made))
  return isEvent(made) ? made : assert.fail("no event")
}
const isEvent = (value: unknown): value is Event =>
  typeof value === "object" && value !== null && "_tag" in value && "seq" in value

const begin = () => [
  event("RunStart", { v: 2, prompts: [], model: "m", continued: false }),
  event("TurnStart", { turn: 1 }),
  event("ModelCallStart", { turn: 1, model: "m", messageCount: 1, options: {} })
]
const text = (messageId: string, delta: string, contentIndex = 0) =>
  event("MessageDelta", { turn: 1, messageId, delta: { _tag: "TextDelta", contentIndex, delta } })
const answer = (id: string, content: Message.Assistant["content"], stopReason: Message.StopReason = "stop") =>
  event("MessageEnd", {
    turn: 1,
    message: {
      role: "assistant",
      id,
      content,
      stopReason,
      timestamp: 1,
      provider: "p",
      model: "m",
      protocol: "x"
    }
  })
const end = (status: AgentEvent.RunStatus) =>
  event("RunEnd", { status, newMessageIds: [], usage: Usage.zero, turns: 1, durationMs: 1 })

describe("the rows of a run", () => {
  it.live("are a tree with sub-agents inside of their calls", () =>
    Effect.gen(function* () {
      const view = foldAll(yield* recorded)
      assert.deepStrictEqual(treeOf(view), [
        "user Add up, please. All of it., done",
        "turn 1, done",
        "  call large, done",
        "  retry 1, done",
        "  thinking First the helper., done",
        "  answer Let me see., done",
        "  agent helper add 1, done",
        "    user add 1, done",
        "    turn 1, done",
        "      call small, done",
        "      answer I add, done",
        "      tool add 1, done",
        "    turn 2, done",
        "      call small, done",
        "      answer 2, says the child, done",
        "  tool danger 5, done",
        "  approval danger, done",
        "turn 1, done",
        "turn 2, done",
        "  call large, done",
        "  answer All done, done"
      ])
      const [row] = view.rows.filter(({ kind }) => kind === "agent")
      assert.deepStrictEqual(
        [row?.text, row?.result, row?.usage?.total],
        ['{"prompt":"add 1"}', "2, says the child", 7]
      )
      assert.deepStrictEqual(
        view.turns.map(({ context, toolCalls, turn, usage }) => [turn, toolCalls, context, usage?.total]),
        [
          [1, 1, 15, 22],
          [1, 1, undefined, 0],
          [2, 0, undefined, 0]
        ]
      )
      assert.deepInclude(view.run, { status: "completed", title: "Add up, please.", model: "large" })
      assert.strictEqual(view.usage.total, 22)
      assert.strictEqual(new Set(view.rows.map(({ id }) => id)).size, view.rows.length)
    })
  )

  it.live("name what waits for a person, until the answer comes", () =>
    Effect.gen(function* () {
      const events = yield* recorded
      const asked = events.findIndex(({ _tag }) => _tag === "ApprovalRequested")
      const ended = events.findIndex(({ _tag, path }) => _tag === "RunEnd" && path === undefined)
      for (const at of [asked, ended]) {
        const view = foldAll(events.slice(0, at + 1))
        assert.deepStrictEqual(
          view.asked.map((one) => "approvalId" in one && one.toolName),
          ["danger"]
        )
        assert.includeMembers(treeOf(view), ["  tool danger 5, waiting", "  approval danger, waiting"])
      }
      assert.strictEqual(foldAll(events.slice(0, ended + 1)).run?.status, "suspended")
      assert.deepStrictEqual(foldAll(events).asked, [])
    })
  )

  it.live("are the same without deltas", () =>
    Effect.gen(function* () {
      const events = yield* recorded
      const said = (view: RunView.View) =>
        view.rows.map((row) => ({ ...row, from: 0, position: 0, to: row.to && 0 }))
      const whole = events.filter(({ _tag }) => _tag !== "MessageDelta")
      assert.deepStrictEqual(said(foldAll(whole)), said(foldAll(events)))
    })
  )

  it.live("are the same from a view of any prefix that was sent as JSON", () =>
    Effect.gen(function* () {
      const events = yield* recorded
      const whole = JSON.stringify(foldAll(events))
      for (let at = 0; at <= events.length; at++) {
        const sent: RunView.View = JSON.parse(JSON.stringify(foldAll(events.slice(0, at))))
        assert.strictEqual(JSON.stringify(foldAll(events.slice(at), { ...RunView.initial, ...sent })), whole)
      }
    })
  )

  it.live("are the same from events that came as JSON, errors included", () =>
    Effect.gen(function* () {
      const events = yield* recorded
      const sent: ReadonlyArray<Event> = JSON.parse(JSON.stringify(events))
      assert.deepStrictEqual(treeOf(foldAll(sent)), treeOf(foldAll(events)))
      const retry = ({ rows }: RunView.View) => rows.find(({ kind }) => kind === "retry")?.text
      assert.strictEqual(retry(foldAll(sent)), "scripted: Overloaded: busy")
      assert.strictEqual(retry(foldAll(events)), "scripted: Overloaded: busy")
    })
  )

  it("take positions of a log", () => {
    const [start, ...rest] = begin()
    const item = (at: Event, index: number) => ({ position: 10 + index, event: at })
    const view = [start, ...rest]
      .flatMap((at) => at ?? [])
      .map(item)
      .reduce((state, at) => RunView.fold(state, at), RunView.initial)
    assert.deepStrictEqual([view.position, ...view.rows.map(({ position }) => position)], [12, 11, 12])
  })
})

describe("a row", () => {
  it("grows while its text comes, and is the same object where nothing changes", () => {
    const before = foldAll([...begin(), text("a", "Hel")])
    const after = foldAll([text("a", "lo")], before)
    assert.deepStrictEqual(
      [before, after]
        .map(({ rows }) => rows.at(-1))
        .map((row) => [row?.text, row?.title, row?.bytes, row?.state]),
      [
        ["Hel", "Hel", 3, "running"],
        ["Hello", "Hello", 5, "running"]
      ]
    )
    assert.strictEqual(after.rows[0], before.rows[0])
  })

  it("stays where its answer is retracted, and the next answer has rows of its own", () => {
    const view = foldAll([
      ...begin(),
      text("a", "Wrong"),
      event("MessageRetracted", { turn: 1, messageId: "a" }),
      text("b", "Right")
    ])
    assert.deepStrictEqual(treeOf(view).slice(-2), ["  answer Wrong, retracted", "  answer Right, running"])
  })

  it("is cancelled where the run was, and the run has no open row", () => {
    const view = foldAll([
      ...begin(),
      text("a", "Half"),
      answer("a", [{ type: "text", text: "Half" }], "aborted"),
      event("RunCancelled", { turn: 1, reason: "enough" }),
      end("cancelled")
    ])
    assert.deepStrictEqual(treeOf(view), [
      "turn 1, cancelled",
      "  call m, cancelled",
      "  answer Half, cancelled",
      "  note Cancelled: enough, done"
    ])
  })

  it("has the arguments of a call while they come, then what the tool gives, of which it keeps the end", () => {
    const called = (delta: object) =>
      event("MessageDelta", {
        turn: 1,
        messageId: "a",
        delta: Object.assign({ contentIndex: 0 }, delta) as never
      })
    const partial = (out: string) => ({ content: [{ type: "text" as const, text: out }] })
    const tool = { turn: 1, toolCallId: "c", toolName: "shell" }
    const streamed = foldAll([
      ...begin(),
      called({ _tag: "ToolCallStart", id: "c", name: "shell" }),
      called({ _tag: "ToolCallDelta", delta: '{"command":' })
    ])
    assert.deepInclude(streamed.rows.at(-1), { text: '{"command":', state: "running", title: "shell" })
    const running = foldAll(
      [
        answer(
          "a",
          [
            {
              type: "toolCall",
              id: "c",
              name: "shell",
              rawArguments: '{"command":"ls"}',
              params: { command: "ls" }
            }
          ],
          "toolUse"
        ),
        event("ToolExecutionStart", { ...tool, params: { command: "ls" } }),
        event("ToolInvoked", { ...tool, params: { command: "ls -l" }, modified: true, approved: false }),
        event("ToolExecutionProgress", { ...tool, partial: partial("x".repeat(5000)) })
      ],
      streamed
    )
    assert.deepInclude(running.rows.at(-1), {
      title: "shell ls -l",
      text: '{"command":"ls -l"}',
      state: "running"
    })
    assert.strictEqual(running.rows.at(-1)?.result.length, 4000)
    const done = foldAll(
      [
        event("ToolExecutionEnd", {
          ...tool,
          result: partial("no such file"),
          isError: true,
          outcome: "error",
          durationMs: 7
        })
      ],
      running
    )
    assert.deepInclude(done.rows.at(-1), { result: "no such file", preview: "no such file", state: "failed" })
    assert.deepInclude(done.run, { toolCalls: 1, problems: 1 })
    assert.deepInclude(done.turns[0], { toolCalls: 1, toolMs: 7 })
  })

  it("has equal digests for equal words alone", () => {
    const digest = (words: string) =>
      foldAll([...begin(), answer("a", [{ type: "text", text: words }])]).rows.at(-1)?.digest
    assert.strictEqual(digest("one"), digest("one"))
    assert.notStrictEqual(digest("one"), digest("two"))
  })

  it.live("says why the run failed", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.make({ model: "any" })
      const events: Array<Event> = []
      yield* Stream.runForEach(agent.stream("Hi"), (one) => Effect.sync(() => events.push(one))).pipe(
        Effect.exit
      )
      const view = foldAll(events)
      assert.include(treeOf(view), "  call any, failed")
      assert.strictEqual(view.rows.filter(({ kind }) => kind === "error").length, 1)
      assert.strictEqual(view.run?.status, "failed")
      assert.include(view.error, "at capacity")
    }).pipe(
      Effect.provide(
        ScriptedProvider.layer([
          ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "at capacity" }))
        ])
      ),
      Effect.scoped
    )
  )

  it("of a message that steers stands before the turn that reads it, and until then the message is queued", () => {
    const queued = foldAll([...begin(), event("QueueUpdate", { turn: 1, steering: 1, followUp: 2 })])
    assert.deepStrictEqual(queued.queued, { steering: 1, followUp: 2 })
    const message: Message.User = {
      role: "user",
      id: "u",
      content: [
        { type: "text", text: "Faster" },
        { type: "image", source: { data: "iVBO", mediaType: "image/png" } }
      ],
      timestamp: 1
    }
    const view = foldAll(
      [
        event("TurnEnd", {
          turn: 1,
          stopReason: "stop",
          toolResultIds: [],
          usage: Usage.zero,
          toolCallCount: 0,
          toolsContinue: true
        }),
        event("QueueUpdate", { turn: 2, steering: 0, followUp: 2 }),
        event("TurnStart", { turn: 2 }),
        event("MessageEnd", { turn: 2, message })
      ],
      queued
    )
    assert.deepStrictEqual(treeOf(view).slice(2), ["user Faster [image/png], done", "turn 2, running"])
    assert.strictEqual(view.queued.steering, 0)
  })
})

describe("a view", () => {
  /** A stream of a long conversation: texts, calls, and runs of sub-agents inside of them. */
  const long = (random: Random, length: number): ReadonlyArray<Event> => {
    const path = [{ runId: "r", toolCallId: "c0" }] as const
    return [
      ...begin(),
      event("ToolExecutionStart", { turn: 1, toolCallId: "c0", toolName: "agents", params: {} }),
      ...Array.from({ length }, (_, index): Event => {
        const id = `c${index}`
        const inner = { ...path[0], path, parent: path[0] }
        return random.pick<() => Event>(
          () => text(`m${random.upTo(index)}`, "x".repeat(random.upTo(3000))),
          () => event("ToolExecutionStart", { turn: 1, toolCallId: id, toolName: "t", params: index }),
          () =>
            event("ToolExecutionEnd", {
              turn: 1,
              toolCallId: `c${random.upTo(index) + 1}`,
              toolName: "t",
              result: { content: [{ type: "text", text: "y".repeat(random.upTo(9000)) }] },
              isError: false,
              outcome: "success",
              durationMs: 1
            }),
          () => event("TurnStart", { turn: index + 2 }),
          () => ({
            ...event("RunStart", { v: 2, prompts: [], model: "m", continued: false }),
            ...inner,
            runId: `i${index}`
          }),
          () => ({ ...event("TurnStart", { turn: 1 }), ...inner, runId: `i${index}` })
        )()
      })
    ]
  }

  it("holds no more than its bounds, and says how much it left out", () => {
    for (let seed = 0; seed < 5; seed++) {
      const bounds = { rows: 50, turns: 20, output: 100, text: 500, inside: 4 }
      let view = RunView.make(bounds)
      let made = 0
      for (const one of long(new Random(seed), 1500)) {
        const ids = new Set(view.rows.map(({ id }) => id))
        view = RunView.fold(view, one)
        made += view.rows.filter(({ id }) => !ids.has(id)).length
        const most = (of: (row: RunView.Block) => string) =>
          Math.max(...view.rows.map((row) => of(row).length), 0)
        assert.isAtMost(view.rows.length, bounds.rows * 1.2)
        assert.isAtMost(view.turns.length, bounds.turns * 1.2)
        assert.isAtMost(
          most(({ text }) => text),
          bounds.text
        )
        assert.isAtMost(
          most(({ result }) => result),
          bounds.output
        )
        assert.isAtMost(
          most(({ preview }) => preview),
          300
        )
        const call = view.rows.find(({ kind }) => kind === "agent")
        const inside = view.rows.filter(({ parent }) => parent !== undefined && parent === call?.id)
        assert.isAtMost(new Set(inside.map(({ runId }) => runId)).size, bounds.inside)
      }
      assert.strictEqual(view.rows.length + view.dropped, made)
    }
  })

  it("counts the bytes of texts that it left out", () => {
    const view = foldAll([...begin(), text("a", "é".repeat(80_000)), text("a", "😀".repeat(80_000))])
    assert.deepInclude(view.rows.at(-1), { bytes: 160_000 + 320_000 })
    assert.strictEqual(view.rows.at(-1)?.text.length, 100_000)
  })

  it("takes a delta in the same time, however long the text and however many the rows", () => {
    const calls = Array.from({ length: 595 }, (_, index) =>
      event("ToolExecutionStart", { turn: 1, toolCallId: `c${index}`, toolName: "t", params: {} })
    )
    let view = foldAll([...begin(), ...calls, text("a", "start")])
    const piece = text("a", "word ")
    const millis = (count: number): number => {
      const from = performance.now()
      for (let at = 0; at < count; at++) view = RunView.fold(view, piece)
      return performance.now() - from
    }
    millis(5000)
    // Some 1 µs each. Rebuilding the text or the rows would take a hundred times as long.
    assert.isBelow(Math.min(millis(5000), millis(5000), millis(5000)), 100)
    assert.strictEqual(view.rows.length, 598)
  })
})
