import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Latch, Ref, Stream } from "effect"
import { Agent, type AgentEvent, Approval, Message, Session, Tool } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { settle } from "./play.ts"

const nothing: Session.Restored = { messages: [], options: {}, queues: { steering: [], followUp: [] } }

/** A session that keeps its records in memory, writes while `open` is open, and fails while `broken` is set. */
const memory = Effect.fnUntraced(function* (restored = nothing) {
  const written = yield* Ref.make<ReadonlyArray<Session.Record>>([])
  const open = yield* Latch.make(true)
  const broken = yield* Ref.make(false)
  const error = new Session.SessionError({
    sessionId: "s1",
    reason: new Session.StorageFailed({ operation: "append", detail: "the disk is full" })
  })
  const session: Session.Session = {
    id: "s1",
    restored,
    record: Effect.fnUntraced(function* (records) {
      yield* open.await
      if (yield* Ref.get(broken)) return yield* error
      yield* Ref.update(written, (before) => [...before, ...records])
    }),
    child: () => Effect.fail(error)
  }
  return { session, written, open, broken, error }
})

const nameOf = (record: Session.Record): string =>
  record._tag === "Event"
    ? record.event._tag === "MessageEnd"
      ? record.event.message.role
      : record.event._tag
    : record._tag

const say = Tool.make({ name: "say", description: "Says hello.", execute: () => Effect.succeed("hello") })
const callSay = [ScriptedProvider.toolCall("say", {}), ScriptedProvider.text("done")]

describe("an agent with a session", () => {
  it.effect("writes the events of a run in order", () =>
    Effect.gen(function* () {
      const { session, written } = yield* memory()
      const agent = yield* Agent.make({ model: "m", tools: [say], session })
      yield* agent.prompt("hi")
      assert.deepStrictEqual((yield* Ref.get(written)).map(nameOf), [
        "RunStart",
        "user",
        "assistant",
        "ToolInvoked",
        "ToolExecutionEnd",
        "toolResult",
        "assistant",
        "RunEnd"
      ])
    }).pipe(Effect.provide(ScriptedProvider.layer(callSay)))
  )

  it.effect("shows an event only when it is written", () =>
    Effect.gen(function* () {
      const { session, written } = yield* memory()
      const agent = yield* Agent.make({ model: "m", tools: [say], session })
      const unwritten: Array<string> = []
      const look = Effect.fnUntraced(function* (by: string, event: AgentEvent.AgentEvent) {
        const records = yield* Ref.get(written)
        const isWritten = records.some((record) => record._tag === "Event" && record.event.seq === event.seq)
        const isKept = ["RunStart", "MessageEnd", "ToolInvoked", "ToolExecutionEnd", "RunEnd"].includes(
          event._tag
        )
        if (isKept && !isWritten) unwritten.push(`${by} ${event._tag}`)
        if (event._tag !== "MessageEnd") return
        const { messages } = yield* agent.state.get
        const count = records.filter(
          (record) => record._tag === "Event" && record.event._tag === "MessageEnd"
        )
        if (messages.length > count.length) unwritten.push(`state at ${event._tag}`)
      })
      yield* agent.subscribe((event) => look("subscriber", event))
      yield* Stream.runForEach(agent.stream("hi"), (event) => look("reader", event))
      assert.deepStrictEqual(unwritten, [])
    }).pipe(Effect.provide(ScriptedProvider.layer(callSay)))
  )

  it.effect("does not run a tool before its beginning is written", () =>
    Effect.gen(function* () {
      const { open, session } = yield* memory()
      const ran = yield* Ref.make(0)
      const count = Tool.make({
        name: "say",
        description: "Counts.",
        execute: () => Ref.update(ran, (n) => n + 1)
      })
      const reached = yield* Latch.make(false)
      const holding: Session.Session = {
        ...session,
        record: (records) =>
          Effect.gen(function* () {
            if (records.some((record) => nameOf(record) === "ToolInvoked")) {
              yield* open.close
              yield* reached.open
            }
            yield* session.record(records)
          })
      }
      const held = yield* Agent.make({ model: "m", tools: [count], session: holding })
      const running = yield* Effect.forkChild(held.prompt("hi"))
      yield* reached.await
      yield* Effect.yieldNow
      assert.strictEqual(yield* Ref.get(ran), 0)
      yield* open.open
      yield* Fiber.join(running)
      assert.strictEqual(yield* Ref.get(ran), 1)
    }).pipe(Effect.provide(ScriptedProvider.layer(callSay)))
  )

  it.effect("fails a run whose events cannot be written, and writes them with the next one", () =>
    Effect.gen(function* () {
      const { broken, error, session, written } = yield* memory()
      const agent = yield* Agent.make({ model: "m", session })
      yield* Ref.set(broken, true)
      const failed = yield* Effect.flip(agent.prompt("one"))
      assert.strictEqual(failed._tag === "RunFailed" ? failed.reason : undefined, error)
      assert.deepStrictEqual(yield* Ref.get(written), [])
      yield* Ref.set(broken, false)
      const { status } = yield* agent.prompt("two")
      assert.strictEqual(status, "completed")
      const ends = (yield* Ref.get(written)).flatMap((record) =>
        record._tag === "Event" && record.event._tag === "RunEnd" ? [record.event.status] : []
      )
      assert.deepStrictEqual(ends, ["failed", "completed"])
    }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("only once")])))
  )

  it.effect("fails a run whose end cannot be written", () =>
    Effect.gen(function* () {
      const { broken, error, session } = yield* memory()
      const agent = yield* Agent.make({ model: "m", session })
      const seen: Array<AgentEvent.AgentEvent> = []
      yield* agent.subscribe((event) => {
        seen.push(event)
        return event._tag === "TurnEnd" ? Ref.set(broken, true) : Effect.void
      })
      const failed = yield* Effect.flip(agent.prompt("one"))
      assert.strictEqual(failed._tag === "RunFailed" ? failed.reason : undefined, error)
      const last = seen.at(-1)
      assert.strictEqual(last?._tag === "RunEnd" ? last.status : undefined, "failed")
      assert.strictEqual(seen.filter(({ _tag }) => _tag === "RunEnd").length, 1)
    }).pipe(Effect.provide(ScriptedProvider.layer([ScriptedProvider.text("hello")])))
  )

  it.effect("continues from the messages, queues and changed options of the session (row 233)", () =>
    Effect.gen(function* () {
      const { session, written } = yield* memory({
        messages: [Message.user("one", 1), Message.assistant("first")],
        options: { system: "Be brief." },
        queues: { steering: [Message.user("and be kind", 2)], followUp: [] },
        lostRun: "run_lost"
      })
      const script = yield* ScriptedProvider.make([ScriptedProvider.text("second")])
      const agent = yield* Agent.make({ model: "m", session }).pipe(Effect.provide(script.layer))
      assert.deepStrictEqual((yield* Ref.get(written)).map(nameOf), ["RunLost"])
      yield* agent.prompt("two")
      const [request] = yield* script.requests
      assert.deepStrictEqual(request?.messages.map(Message.textOf), ["one", "first", "two", "and be kind"])
      assert.strictEqual(request?.system, "Be brief.")
    })
  )

  it.effect("writes each change between runs", () =>
    Effect.gen(function* () {
      const { session, written } = yield* memory()
      const agent = yield* Agent.make({ model: "m", session })
      yield* agent.steer("a")
      yield* agent.followUp("b")
      yield* agent.queues.clear("steering")
      yield* agent.update({ system: "Be brief." })
      yield* agent.setMessages([Message.user("c")])
      yield* agent.reset
      assert.deepStrictEqual((yield* Ref.get(written)).map(nameOf), [
        "Queued",
        "Queued",
        "QueueCleared",
        "OptionsChanged",
        "MessagesReplaced",
        "QueueCleared",
        "MessagesReplaced"
      ])
    }).pipe(Effect.provide(ScriptedProvider.layer([])))
  )

  it.effect(
    "has an answer written when the caller that gave it continues, and when a subscriber gives it",
    () =>
      Effect.gen(function* () {
        const { session, written } = yield* memory()
        const agent = yield* Agent.make({ model: "m", tools: [say], session })
        const answers = Effect.map(Ref.get(written), (records) =>
          records.map(nameOf).filter((name) => name === "ApprovalAnswered")
        )
        const seen = yield* Deferred.make<number>()
        yield* agent.subscribe((event) =>
          event._tag === "ApprovalRequested"
            ? agent
                .answer(event.approvalId, { decision: "approve", argumentsHash: event.argumentsHash })
                .pipe(
                  Effect.andThen(answers),
                  Effect.flatMap(({ length }) => Deferred.succeed(seen, length))
                )
            : Effect.void
        )
        const { status } = yield* agent.prompt("hi")
        assert.strictEqual(status, "completed")
        assert.strictEqual(yield* Deferred.await(seen), 1)
      }).pipe(Effect.provide([ScriptedProvider.layer(callSay), Approval.layer({ asked: "wait" })]))
  )

  it.effect("writes each record once, by one writer at a time, which no interruption cuts", () =>
    Effect.gen(function* () {
      const { session, written } = yield* memory()
      const gate = yield* Latch.make(false)
      const began = yield* Latch.make(false)
      const slow: Session.Session = {
        ...session,
        record: (records) => Effect.andThen(session.record(records), Effect.andThen(began.open, gate.await))
      }
      const agent = yield* Agent.make({ model: "m", session: slow })
      const fork = Effect.forkChild({ startImmediately: true })
      const first = yield* fork(agent.update({ model: "a" }))
      yield* began.await
      const second = yield* fork(agent.update({ model: "b" }))
      const interrupting = yield* fork(Fiber.interrupt(first))
      yield* settle()
      assert.strictEqual((yield* Ref.get(written)).length, 1)
      yield* gate.open
      yield* Fiber.await(interrupting)
      yield* Fiber.join(second)
      assert.deepStrictEqual(
        (yield* Ref.get(written)).flatMap((record) =>
          record._tag === "OptionsChanged" ? [record.options.model] : []
        ),
        ["a", "b"]
      )
    }).pipe(Effect.provide(ScriptedProvider.layer([])))
  )

  it.effect("refuses messages beside a session", () =>
    Effect.gen(function* () {
      const { session } = yield* memory()
      const refused = yield* Effect.flip(Agent.make({ model: "m", session, messages: [Message.user("a")] }))
      assert.include(refused.message, "messages is given beside session")
    }).pipe(Effect.provide(ScriptedProvider.layer([])))
  )
})
