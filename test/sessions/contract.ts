/** The promises of a store of sessions, on any storage. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Result, Schema, Scope, Stream } from "effect"
import { Agent, Approval, Message, Session, Tool } from "effect-agent"
import { SessionEntry, type SessionStorage, SessionStore } from "effect-agent/sessions"
import { ScriptedProvider } from "effect-agent/testing"
import {
  call,
  decided,
  ended,
  exchange,
  invoked,
  questioned,
  replied,
  requested,
  runEnd,
  runStart,
  said,
  suspended
} from "./records.ts"

/** A storage under test. */
export interface Subject {
  readonly name: string
  /** A storage without sessions, which lives as long as the scope. */
  readonly storage: Effect.Effect<SessionStorage.SessionStorage, unknown, Scope.Scope>
}

type Store = SessionStore.Service

const rolesOf = (messages: ReadonlyArray<Message.Message>) => messages.map(({ role }) => role)
const textsOf = (messages: ReadonlyArray<Message.Message>) => messages.map(Message.textOf)
const reasonOf = <A, R>(effect: Effect.Effect<A, Session.SessionError, R>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason._tag)

/** The entry of a line. */
const known = (line: string): SessionEntry.Known => {
  const entry = Result.getOrThrow(SessionEntry.decode(line))
  if (entry.type === "unknown") throw new Error(line)
  return entry
}

/** Runs an agent whose every text has a secret, in prompts, calls, results, requests to a person, options and queues. */
const secretive = Effect.fnUntraced(function* (session: Session.Session) {
  const echo = (name: string) =>
    Tool.make({
      name,
      description: "Echoes.",
      params: Schema.Struct({ text: Schema.String }),
      execute: () => Effect.succeed(Tool.output("secret result hunter2", { details: { of: "hunter2" } }))
    })
  const inner = Agent.asTool({
    name: "inner",
    description: "Delegates.",
    agent: { model: "inner", tools: [echo("within")] }
  })
  const params = { text: "secret argument hunter2" }
  const person: Approval.Person = {
    approve: ({ toolName }) =>
      Effect.succeed({
        decision: "approve",
        reason: "hunter2",
        ...(toolName === "within" ? { params: { text: "hunter2" } } : {})
      }),
    answer: () => Effect.succeed({ answer: "hunter2" })
  }
  const agent = yield* Agent.make({
    model: "m",
    tools: [echo("echo"), inner, Approval.askUser()],
    session
  }).pipe(
    Effect.provide([
      ScriptedProvider.layer([
        ScriptedProvider.toolCalls(
          { name: "echo", params },
          { name: "inner", params: { prompt: "secret prompt hunter2" } },
          { name: "ask_user", params: { question: "hunter2?" } }
        ),
        ScriptedProvider.toolCall("within", params),
        ScriptedProvider.text("hunter2"),
        ScriptedProvider.text("hunter2"),
        ScriptedProvider.text("hunter2")
      ]),
      Approval.layer({ otherwise: "ask", asked: person })
    ])
  )
  yield* agent.update({ system: "hunter2" })
  yield* agent.followUp("hunter2")
  yield* agent.prompt("secret prompt hunter2")
  yield* agent.steer("hunter2")
})

/** A storage that once writes the first of several lines, and fails. */
const cutting = (storage: SessionStorage.SessionStorage): SessionStorage.SessionStorage => {
  let isCut = false
  return {
    ...storage,
    create: (created) =>
      Effect.map(storage.create(created), (writer) => ({
        ...writer,
        append: (lines) => {
          if (isCut || lines.length === 1) return writer.append(lines)
          isCut = true
          const reason = new Session.StorageFailed({ operation: "append", detail: "the disk is full" })
          const failure = new Session.SessionError({ sessionId: created.sessionId, reason })
          return Effect.andThen(writer.append([lines[0]]), Effect.fail(failure))
        }
      }))
  }
}

/** Runs the suite. `given` is run in a scope of its own for each test, in real time. */
export const contract = ({ name, storage }: Subject) => {
  const test = (
    title: string,
    check: (store: Store, storage: SessionStorage.SessionStorage) => Effect.Effect<void, unknown, Scope.Scope>
  ) =>
    it.live(title, () =>
      Effect.scoped(Effect.flatMap(storage, (made) => check(SessionStore.make(made), made)))
    )

  describe(`${name}: a store of sessions`, () => {
    describe("keeps a conversation", () => {
      test("and gives it back when it is opened again", (store) =>
        Effect.gen(function* () {
          yield* Effect.scoped(
            Effect.gen(function* () {
              const session = yield* store.create({ sessionId: "s1", cwd: "/work", name: "Clock" })
              assert.deepStrictEqual(session.restored, {
                messages: [],
                options: {},
                queues: { steering: [], followUp: [] }
              })
              yield* session.record(exchange("r1", "What time is it?"))
            })
          )
          const { damage, id, restored } = yield* store.open("s1")
          assert.strictEqual(id, "s1")
          assert.deepStrictEqual(damage, [])
          assert.deepStrictEqual(rolesOf(restored.messages), ["user", "assistant", "toolResult", "assistant"])
          assert.strictEqual(restored.lostRun, undefined)
        }))

      test("with queues and options", (store) =>
        Effect.gen(function* () {
          const [one, two, three] = ["one", "two", "three"].map((text) => Message.user(text))
          assert.isDefined(one)
          assert.isDefined(two)
          assert.isDefined(three)
          yield* Effect.scoped(
            Effect.gen(function* () {
              const session = yield* store.create({ sessionId: "s1" })
              yield* session.record([{ _tag: "Queued", queue: "steering", messages: [one, two] }])
              yield* session.record([{ _tag: "Queued", queue: "followUp", messages: [three] }])
              yield* session.record([
                {
                  _tag: "OptionsChanged",
                  options: { model: "m2", toolTimeout: "2 seconds", limits: { maxTurns: 3 } }
                }
              ])
              yield* session.record([{ _tag: "OptionsChanged", options: { limits: { maxToolCalls: 4 } } }])
              yield* session.record([runStart("r1"), said(one)])
            })
          )
          const { options, queues } = (yield* store.open("s1")).restored
          assert.deepStrictEqual(queues, { steering: [two], followUp: [three] })
          assert.deepStrictEqual(options, {
            model: "m2",
            toolTimeout: 2_000,
            limits: { maxTurns: 3, maxToolCalls: 4 }
          })
        }))

      test("with its last compaction, and the run that has no end", (store) =>
        Effect.gen(function* () {
          const [first, second] = [Message.user("1"), Message.user("2")]
          yield* Effect.scoped(
            Effect.gen(function* () {
              const session = yield* store.create({ sessionId: "s1" })
              yield* session.record([runStart("r1"), said(first), runEnd("r1")])
              yield* session.record([runStart("r2"), said(second)])
              yield* session.record([
                {
                  _tag: "Compacted",
                  reason: "threshold",
                  entryId: "c1",
                  summary: "One.",
                  firstKept: second.id,
                  tokensBefore: 9,
                  tokensAfter: 3
                }
              ])
            })
          )
          const { compaction, lostRun } = (yield* store.open("s1")).restored
          assert.deepStrictEqual(compaction, { summary: "One.", firstKept: second.id, madeAfter: second.id })
          assert.strictEqual(lostRun, "r2")
        }))

      test("with the turn that waits for a person, until all calls have results", (store) =>
        Effect.gen(function* () {
          const calls = ["a", "b", "c", "d"].map((id) => call(id))
          const message = Message.assistant(calls, { stopReason: "toolUse" })
          const open = (isSuspended: boolean) => ({
            runId: isSuspended ? "r1" : "r2",
            message,
            isSuspended,
            ended: [{ toolCallId: "a", outcome: "success", output: { content: [Message.text("12:00")] } }],
            begun: ["a", "d"],
            approvals: [
              {
                request: {
                  runId: "r1",
                  approvalId: "approval-b",
                  toolCallId: "b",
                  toolName: "clock",
                  params: { of: "b" },
                  argumentsHash: "hash-b",
                  reason: "it writes"
                },
                answer: { decision: "approve", params: { edited: true }, by: "ada" }
              },
              {
                request: {
                  runId: "r1",
                  approvalId: "approval-c",
                  toolCallId: "c",
                  toolName: "clock",
                  params: { of: "c" },
                  argumentsHash: "hash-c",
                  reason: "it writes"
                }
              }
            ],
            questions: [
              {
                request: { runId: "r1", questionId: "q1", toolCallId: "d", question: "Which?", schema: {} },
                answer: { answer: "This." }
              }
            ]
          })
          yield* Effect.scoped(
            Effect.gen(function* () {
              const session = yield* store.create({ sessionId: "s1" })
              yield* session.record([
                runStart("r1"),
                said(message),
                invoked("a"),
                requested("b"),
                requested("c")
              ])
              yield* session.record([invoked("d"), questioned("d"), ended("a", "12:00"), suspended("r1")])
              yield* session.record([decided("b", "approve"), decided("b", "reject"), replied("d")])
            })
          )
          yield* Effect.scoped(
            Effect.gen(function* () {
              const session = yield* store.open("s1")
              assert.deepStrictEqual<unknown>(session.restored.open, open(true))
              // Of runs that did not come to the turn.
              yield* session.record([runStart("compaction"), runEnd("compaction")])
              yield* session.record([runStart("stopped", "m", "r1"), runEnd("stopped", "cancelled")])
              assert.deepStrictEqual<unknown>((yield* store.read("s1")).view.open, open(true))
              yield* session.record([runStart("r2", "m", "r1")])
            })
          )
          const session = yield* store.open("s1")
          assert.deepStrictEqual<unknown>(session.restored.open, open(false))
          yield* session.record([said(Message.toolResult(call("a"), "12:00"), "r2")])
          assert.isDefined((yield* store.read("s1")).view.open)
          for (const id of ["b", "c", "d"])
            yield* session.record([said(Message.toolResult(call(id), "none"), "r2")])
          assert.isUndefined((yield* store.read("s1")).view.open)
        }))

      test("of an agent inside a call, for as long as the call is open", (store) =>
        Effect.gen(function* () {
          yield* Effect.scoped(
            Effect.gen(function* () {
              const session = yield* store.create({ sessionId: "s1" })
              yield* session.record([
                runStart("r1"),
                said(Message.assistant([call("a")], { stopReason: "toolUse" })),
                invoked("a")
              ])
              const child = yield* session.child("a")
              yield* child.record([runStart("r2"), said(Message.user("inner"), "r2")])
              const grandchild = yield* child.child("b")
              yield* grandchild.record([said(Message.user("innermost"), "r3")])
            })
          )
          const session = yield* store.open("s1")
          const child = yield* session.child("a")
          assert.deepStrictEqual(textsOf(child.restored.messages), ["inner"])
          assert.strictEqual(child.restored.lostRun, "r2")
          assert.deepStrictEqual(textsOf((yield* child.child("b")).restored.messages), ["innermost"])
          assert.deepStrictEqual(rolesOf(session.restored.messages), ["assistant"])
          yield* session.record([
            ended("a", "done"),
            said(Message.assistant([call("a")], { stopReason: "toolUse" }))
          ])
          assert.deepStrictEqual((yield* session.child("a")).restored.messages, [])
        }))

      test("of an agent inside a call of the branch that is current", (store) =>
        Effect.gen(function* () {
          const session = yield* store.create({ sessionId: "s1" })
          const inside = Effect.flatMap(session.child("a"), ({ restored }) =>
            Effect.succeed(textsOf(restored.messages))
          )
          const turn = Effect.fnUntraced(function* (run: string, text: string) {
            const answer = Message.assistant([call("a")], { stopReason: "toolUse" })
            yield* session.record([runStart(run), said(answer), invoked("a")])
            const child = yield* session.child("a")
            yield* child.record([said(Message.user(text), `${run}-inside`)])
            const { entries } = yield* store.read("s1")
            return entries.at(-1)?.id ?? ""
          })
          const one = yield* turn("r1", "one")
          yield* session.record([ended("a", "done"), said(Message.assistant("Done."))])
          const two = yield* turn("r2", "two")
          yield* session.rewind(one)
          assert.deepStrictEqual(yield* inside, ["one"])
          yield* session.rewind(two)
          assert.deepStrictEqual(yield* inside, ["two"])
        }))
    })

    describe("has one writer", () => {
      test("so that a second one fails at once, until the first has closed", (store) =>
        Effect.gen(function* () {
          yield* Effect.scoped(
            Effect.gen(function* () {
              yield* store.create({ sessionId: "s1" })
              assert.strictEqual(yield* reasonOf(Effect.scoped(store.open("s1"))), "Locked")
              assert.strictEqual(yield* reasonOf(store.delete("s1")), "Locked")
            })
          )
          yield* Effect.scoped(store.open("s1"))
          yield* store.delete("s1")
          assert.strictEqual(yield* reasonOf(Effect.scoped(store.open("s1"))), "Missing")
          assert.strictEqual(yield* reasonOf(store.read("s1")), "Missing")
          assert.strictEqual(yield* reasonOf(store.delete("s1")), "Missing")
        }))

      test("and ids that are used once, of any text that is no control and no place", (store) =>
        Effect.gen(function* () {
          yield* Effect.scoped(store.create({ sessionId: "s1" }))
          assert.strictEqual(yield* reasonOf(Effect.scoped(store.create({ sessionId: "s1" }))), "Exists")
          for (const sessionId of ["", ".", "..", "x".repeat(201), "a\n"]) {
            assert.strictEqual(yield* reasonOf(Effect.scoped(store.create({ sessionId }))), "Unreadable")
          }
          yield* Effect.scoped(store.openOrCreate("s1"))
          yield* Effect.scoped(store.openOrCreate("../s"))
          assert.sameMembers(
            (yield* store.list()).items.map(({ sessionId }) => sessionId),
            ["s1", "../s"]
          )
        }))

      test("and readers meanwhile", (store) =>
        Effect.gen(function* () {
          const session = yield* store.create({ sessionId: "s1" })
          yield* session.record(exchange("r1", "Hi"))
          const { entries, view } = yield* store.read("s1")
          assert.strictEqual(view.messages.length, 4)
          assert.deepStrictEqual(
            entries.map(({ type }) => type),
            ["session", "run", "message", "message", "custom", "custom", "message", "message", "run"]
          )
        }))
    })

    describe("is a tree", () => {
      test("whose entries name the one before them, and have ids of their own", (store) =>
        Effect.gen(function* () {
          const session = yield* store.create({ sessionId: "s1" })
          const message = Message.user("twice")
          yield* session.record([said(message), said(message), said(message)])
          const { entries } = yield* store.read("s1")
          const ids = entries.map(({ id }) => id)
          assert.strictEqual(new Set(ids).size, 4)
          assert.include(ids, message.id)
          assert.deepStrictEqual(
            entries.map(({ parentId }) => parentId),
            [null, ...ids.slice(0, -1)]
          )
          assert.strictEqual(yield* session.leaf, ids.at(-1))
        }))

      test("that is rewound to an entry, and continues there", (store) =>
        Effect.gen(function* () {
          const [one, two, three] = [Message.user("1"), Message.user("2"), Message.user("3")]
          yield* Effect.scoped(
            Effect.gen(function* () {
              const session = yield* store.create({ sessionId: "s1" })
              yield* session.record([said(one), said(two)])
              const { messages } = yield* session.rewind(one.id)
              assert.deepStrictEqual(textsOf(messages), ["1"])
              const agent = yield* Agent.make({ model: "m", session }).pipe(
                Effect.provide(ScriptedProvider.layer([]))
              )
              assert.deepStrictEqual((yield* agent.state.get).messages, messages)
              yield* session.record([said(three)])
              assert.strictEqual(yield* reasonOf(session.rewind("none")), "Unreadable")
            })
          )
          const session = yield* store.open("s1")
          assert.deepStrictEqual(textsOf(session.restored.messages), ["1", "3"])
          assert.deepStrictEqual(textsOf((yield* session.rewind(two.id)).messages), ["1", "2"])
        }))

      test("that continues before a message, also one that came again", (store) =>
        Effect.gen(function* () {
          const session = yield* store.create({ sessionId: "s1" })
          yield* session.record(exchange("r1", "one"))
          const first = session.restored
          const asked = Message.user("two")
          yield* session.record([runStart("r2"), said(asked), said(Message.user("three")), runEnd("r2")])
          assert.strictEqual((yield* session.rewindBefore(asked.id)).messages.length, 4)
          yield* session.record([runStart("r3"), said({ ...asked, content: [Message.text("new")] })])
          const before = yield* session.rewindBefore(asked.id)
          assert.deepStrictEqual(rolesOf(before.messages), ["user", "assistant", "toolResult", "assistant"])
          assert.isUndefined(before.open)
          assert.strictEqual(yield* reasonOf(session.rewindBefore(asked.id)), "Unreadable")
          const [prompt] = before.messages
          assert.deepStrictEqual((yield* session.rewindBefore(prompt?.id ?? "")).messages, first.messages)
        }))

      test("in which a transcript that was replaced is a branch", (store) =>
        Effect.gen(function* () {
          const [one, two, three] = [Message.user("1"), Message.user("2"), Message.user("3")]
          yield* Effect.scoped(
            Effect.gen(function* () {
              const session = yield* store.create({ sessionId: "s1" })
              yield* session.record([said(one), said(two)])
              yield* session.record([{ _tag: "MessagesReplaced", messages: [one, three] }, said(two)])
            })
          )
          const contents = yield* store.read("s1")
          assert.deepStrictEqual(textsOf(contents.view.messages), ["1", "3", "2"])
          assert.strictEqual(contents.entries.filter(({ type }) => type === "message").length, 4)
          const session = yield* store.open("s1")
          yield* session.record([{ _tag: "MessagesReplaced", messages: session.restored.messages }])
          assert.strictEqual((yield* store.read("s1")).entries.length, contents.entries.length)
          yield* session.record([{ _tag: "MessagesReplaced", messages: [] }])
          assert.deepStrictEqual((yield* store.read("s1")).view.messages, [])
        }))

      test("whose entries have labels", (store) =>
        Effect.gen(function* () {
          const session = yield* store.create({ sessionId: "s1" })
          const [one, two] = [Message.user("1"), Message.user("2")]
          yield* session.record([said(one), said(two)])
          yield* session.label(one.id, "start")
          yield* session.label(two.id, "end")
          yield* session.label(two.id, "")
          assert.deepStrictEqual([...(yield* store.read("s1")).labels], [[one.id, "start"]])
          assert.strictEqual(yield* reasonOf(session.label("none", "x")), "Unreadable")
        }))

      test("that takes entries of an application", (store) =>
        Effect.gen(function* () {
          const session = yield* store.create({ sessionId: "s1" })
          const ids = yield* session.append([
            { type: "custom", kind: "mood", data: { good: true } },
            { type: "custom", kind: "mood", data: null, id: "mood-2" }
          ])
          const { entries } = yield* store.read("s1")
          assert.strictEqual(ids[1], "mood-2")
          assert.deepStrictEqual(
            entries.slice(1).map(({ id }) => id),
            ids
          )
        }))

      test("that refuses entries that no reader could use, before one is written", (store) =>
        Effect.gen(function* () {
          const session = yield* store.create({ sessionId: "s1" })
          const mood = { type: "custom", kind: "mood", data: null, id: "mood" } as const
          const refused: ReadonlyArray<SessionEntry.Draft> = [
            { type: "leaf", targetId: "nowhere" },
            { type: "custom", kind: "queue", data: { queue: "none" } },
            { type: "custom", kind: "options", data: { toolConcurrency: "many" } },
            { type: "custom", kind: "child", data: null },
            { type: "custom", kind: "tool", data: { phase: "start" } },
            { type: "custom", kind: "question", data: {} },
            { type: "custom", kind: "handOff", data: "billing" }
          ]
          for (const draft of refused)
            assert.strictEqual(yield* reasonOf(session.append([mood, draft])), "Unreadable")
          assert.lengthOf((yield* store.read("s1")).entries, 1)
          yield* session.append([mood, { type: "leaf", targetId: "mood" }])
          assert.deepStrictEqual((yield* store.read("s1")).damage, [])
        }))

      test("and names the entries of an append alone, after one that the storage cut", (_, storage) =>
        Effect.gen(function* () {
          const store = SessionStore.make(cutting(storage))
          const session = yield* store.create({ sessionId: "s1" })
          const mood = { type: "custom", kind: "mood", data: null } as const
          assert.strictEqual(yield* reasonOf(session.append([mood, mood])), "StorageFailed")
          assert.deepStrictEqual(yield* session.append([{ ...mood, id: "mood-2" }]), ["mood-2"])
        }))

      test("with its size in bytes", (store) =>
        Effect.gen(function* () {
          const session = yield* store.create({ sessionId: "s1" })
          yield* session.record([said(Message.user("größer"))])
          const text = yield* Stream.mkString(store.export("s1", "jsonl"))
          assert.strictEqual((yield* store.read("s1")).session.bytes, Buffer.byteLength(text))
        }))

      test("that is forked at an entry", (store) =>
        Effect.gen(function* () {
          const session = yield* store.create({ sessionId: "s1", cwd: "/work", name: "Clock" })
          yield* session.record([{ _tag: "OptionsChanged", options: { model: "m2", toolConcurrency: 2 } }])
          yield* session.record([{ _tag: "Queued", queue: "steering", messages: [Message.user("later")] }])
          yield* session.record(exchange("r1", "Hi"))
          yield* session.record([{ _tag: "Noted", messageId: "msg_1", note: { of: "the provider" } }])
          yield* session.record([runStart("r2"), said(Message.user("open"), "r2")])
          const [, answer] = (yield* store.read("s1")).view.messages
          const whole = yield* store.fork("s1", { sessionId: "s2" })
          const part = yield* store.fork("s1", { entryId: answer?.id ?? "", name: "Part" })
          const forked = yield* store.open(whole)
          assert.deepStrictEqual(rolesOf(forked.restored.messages), [
            "user",
            "assistant",
            "toolResult",
            "assistant",
            "user"
          ])
          assert.deepStrictEqual(forked.restored.options, { model: "m2", toolConcurrency: 2 })
          assert.deepStrictEqual(forked.restored.queues, { steering: [], followUp: [] })
          assert.strictEqual(forked.restored.lostRun, undefined)
          assert.deepStrictEqual([...(forked.restored.notes ?? [])], [["msg_1", { of: "the provider" }]])
          assert.deepStrictEqual(forked.damage, [])
          const { session: summary, view } = yield* store.read(part)
          assert.deepStrictEqual(rolesOf(view.messages), ["user", "assistant"])
          assert.isUndefined(view.notes)
          assert.strictEqual(summary.title, "Part")
          assert.strictEqual(summary.cwd, "/work")
          assert.strictEqual(yield* reasonOf(store.fork("s1", { entryId: "none" })), "Unreadable")
          assert.strictEqual(yield* reasonOf(store.fork("s1", { sessionId: "s2" })), "Exists")
          assert.strictEqual(yield* reasonOf(store.fork("none")), "Missing")
        }))

      test("that is forked with its name and the labels of its entries, whatever branch they were given on", (store) =>
        Effect.gen(function* () {
          const session = yield* store.create({ sessionId: "s1" })
          const [one, two] = [Message.user("1"), Message.user("2")]
          yield* session.record([said(one), said(two)])
          yield* session.rename("Clock")
          yield* session.label(one.id, "start")
          yield* session.label(two.id, "end")
          yield* session.rewind(one.id)
          const forked = yield* store.read(yield* store.fork(yield* store.fork("s1")))
          assert.strictEqual(forked.session.name, "Clock")
          assert.deepStrictEqual([...forked.labels], [[one.id, "start"]])
        }))

      test("that is forked while it waits for a person, without the open requests", (store) =>
        Effect.gen(function* () {
          const session = yield* store.create({ sessionId: "s1" })
          const calls = [call("a"), call("b"), call("c")]
          yield* session.record([
            runStart("r1"),
            said(Message.assistant(calls, { stopReason: "toolUse" })),
            requested("a"),
            decided("a", "approve"),
            requested("b"),
            questioned("c"),
            suspended("r1")
          ])
          const { open } = (yield* store.read(yield* store.fork("s1"))).view
          assert.deepStrictEqual(
            open?.approvals.map(({ request }) => request.toolCallId),
            ["a"]
          )
          assert.deepStrictEqual(open?.questions, [])
        }))
    })

    describe("lists its sessions", () => {
      test("in pages, by working directory and title", (store) =>
        Effect.gen(function* () {
          for (const index of [1, 2, 3, 4, 5]) {
            const cwd = index % 2 === 0 ? "/even" : "/odd"
            yield* Effect.scoped(
              Effect.flatMap(store.create({ sessionId: `s${index}`, cwd }), (session) =>
                session.record([said(Message.user(`\n  Number  ${index} \nsecond line`))])
              )
            )
          }
          const { items, nextCursor } = yield* store.list()
          assert.strictEqual(nextCursor, undefined)
          assert.sameMembers(
            items.map(({ title }) => title),
            [1, 2, 3, 4, 5].map((index) => `Number ${index}`)
          )
          const times = items.map(({ modified }) => modified)
          assert.deepStrictEqual(
            times,
            times.toSorted((one, other) => other - one)
          )
          const pages = yield* Stream.paginate("", (cursor) =>
            Effect.map(
              store.list({ limit: 2, ...(cursor === "" ? {} : { cursor }) }),
              (page) =>
                [
                  [page.items.map(({ sessionId }) => sessionId)],
                  Option.fromUndefinedOr(page.nextCursor)
                ] as const
            )
          ).pipe(Stream.runCollect)
          assert.deepStrictEqual(
            pages.map(({ length }) => length),
            [2, 2, 1]
          )
          assert.deepStrictEqual(
            pages.flat(),
            items.map(({ sessionId }) => sessionId)
          )
          assert.sameMembers(
            (yield* store.list({ cwd: "/even" })).items.map(({ sessionId }) => sessionId),
            ["s2", "s4"]
          )
          assert.deepStrictEqual(
            (yield* store.list({ query: "NUMBER 3" })).items.map(({ sessionId }) => sessionId),
            ["s3"]
          )
          assert.strictEqual(yield* reasonOf(store.list({ cursor: "x" })), "Unreadable")
        }))

      test("by the names that they were given", (store) =>
        Effect.gen(function* () {
          const session = yield* store.create({ sessionId: "s1", name: "First" })
          const titles = Effect.map(store.list(), ({ items }) => items.map(({ title }) => title))
          assert.deepStrictEqual(yield* titles, ["First"])
          yield* session.rename("Second")
          yield* session.record([said(Message.user("Hi"))])
          assert.deepStrictEqual(yield* titles, ["Second"])
          assert.strictEqual((yield* store.read("s1")).session.name, "Second")
          yield* session.rename("")
          assert.deepStrictEqual(yield* titles, ["Hi"])
        }))

      test("that have a text", (store) =>
        Effect.gen(function* () {
          const one = yield* store.create({ sessionId: "s1", cwd: "/one" })
          const two = yield* store.create({ sessionId: "s2", cwd: "/two" })
          const message = Message.user('Find the "Straße"\nhere')
          yield* one.record([said(message), said(Message.user("nothing"))])
          yield* two.record([said(Message.assistant("A strasse, a STRAßE."))])
          const hits = yield* Stream.runCollect(store.search("straße"))
          assert.sameMembers(
            hits.map(({ sessionId }) => sessionId),
            ["s1", "s2"]
          )
          const [hit] = yield* Stream.runCollect(store.search('"STRAßE"\nhere', { cwd: "/one" }))
          assert.deepStrictEqual(hit, {
            sessionId: "s1",
            entryId: message.id,
            role: "user",
            excerpt: 'Find the "Straße" here'
          })
        }))
    })

    describe("finds the session of a run", () => {
      test("by the id of the run, not by a text or a fork that has it", (store, storage) =>
        Effect.gen(function* () {
          yield* Effect.scoped(
            Effect.gen(function* () {
              const one = yield* store.create({ sessionId: "s1" })
              yield* one.record(exchange("r1", "Hi"))
              yield* one.record([runStart("r2"), said(Message.user('{"runId":"r3"}'), "r2"), suspended("r2")])
            })
          )
          assert.strictEqual(yield* store.fork("s1", { sessionId: "s2" }), "s2")
          yield* Effect.scoped(
            Effect.flatMap(store.open("s2"), (two) => two.record([runStart('r"4'), runEnd('r"4')]))
          )
          yield* Effect.scoped(store.create({ sessionId: "s3" }))
          const found = yield* Effect.forEach(["r1", "r2", 'r"4', "r3", "r", ""], store.sessionOf)
          assert.deepStrictEqual(found, ["s1", "s1", "s2", undefined, undefined, undefined])
          const listed = yield* storage.list({ runId: "r1" })
          assert.includeMembers(
            listed.map(({ sessionId }) => sessionId),
            ["s1", "s2"]
          )
          yield* store.delete("s1")
          assert.strictEqual(yield* store.sessionOf("r1"), "s2")
        }))
    })

    describe("keeps and removes", () => {
      test("the sessions within its bounds, and those that are open", (store) =>
        Effect.gen(function* () {
          yield* store.create({ sessionId: "open" })
          for (const sessionId of ["s1", "s2", "s3"]) yield* Effect.scoped(store.create({ sessionId }))
          const left = Effect.map(store.list(), ({ items }) => items.map(({ sessionId }) => sessionId))
          assert.deepStrictEqual(
            yield* store.retain({ maxAge: "1 day", maxCount: 9, maxBytes: 1_000_000 }),
            []
          )
          const removed = yield* store.retain({ maxCount: 2 })
          assert.include(yield* left, "open")
          assert.isAtMost(removed.length, 2)
          const [some = ""] = (yield* left).filter((id) => id !== "open")
          yield* store.retain({ maxBytes: 0, keep: [some] })
          assert.sameMembers([...(yield* left)], ["open", some])
          yield* store.retain({ maxBytes: 0 })
          assert.deepStrictEqual(yield* left, ["open"])
        }))

      test("what a redaction hook leaves, while the open session has all", (_, storage) =>
        Effect.gen(function* () {
          const redact = (entry: SessionEntry.Known): SessionEntry.Known =>
            entry.type === "message"
              ? { ...entry, id: "changed", message: { ...entry.message, ...Message.user("[removed]") } }
              : entry
          const store = SessionStore.make(storage, { redact })
          const session = yield* store.create({ sessionId: "s1" })
          const message = Message.user("secret")
          yield* session.record([said(message)])
          const child = yield* session.child("a")
          yield* child.record([said(message)])
          yield* session.record([{ _tag: "MessagesReplaced", messages: [message] }])
          const text = yield* Stream.mkString(store.export("s1", "jsonl"))
          assert.notInclude(text, "secret")
          assert.include(text, message.id)
          assert.strictEqual(text.split("[removed]").length, 3)
        }))

      test("no secret of a run with tools, an agent inside, a person and queues", (_, storage) =>
        Effect.gen(function* () {
          const redact = (entry: SessionEntry.Known) =>
            known(SessionEntry.encode(entry).replaceAll("hunter2", "[removed]"))
          const store = SessionStore.make(storage, {
            redact,
            title: (message) => Effect.succeed(`About ${Message.textOf(message)}`)
          })
          const session = yield* store.create({ sessionId: "s1", cwd: "/hunter2" })
          yield* secretive(session)
          yield* session.label(yield* session.leaf, "hunter2")
          const text = yield* Stream.mkString(Stream.map(Stream.flattenIterable(storage.lines("s1")), String))
          assert.notInclude(text, "hunter2")
          for (const part of [
            "secret prompt [removed]",
            "secret argument [removed]",
            "secret result [removed]",
            '"kind":"child"'
          ])
            assert.include(text, part)
          const listed = JSON.stringify([yield* store.list(), yield* storage.list()])
          assert.notInclude(listed, "hunter2")
        }))

      test("a name that a hook makes from the first message", (_, storage) =>
        Effect.gen(function* () {
          const store = SessionStore.make(storage, {
            title: (message) => Effect.succeed(`About ${Message.textOf(message)}`)
          })
          const session = yield* store.create({ sessionId: "s1" })
          yield* session.record([said(Message.user("clocks"))])
          yield* session.record([said(Message.user("more"))])
          yield* Effect.repeat(Effect.yieldNow, {
            until: () => Effect.map(store.read("s1"), ({ session }) => session.name !== undefined)
          })
          assert.strictEqual((yield* store.read("s1")).session.title, "About clocks")
        }))

      test("text for people and programs", (store) =>
        Effect.gen(function* () {
          const session = yield* store.create({ sessionId: "s1", name: "Clock" })
          yield* session.record(exchange("r1", "What time is it?"))
          const markdown = yield* Stream.mkString(store.export("s1", "md"))
          for (const part of ["# Clock", "## User\n\nWhat time is it?", "Call of clock", "12:00"])
            assert.include(markdown, part)
          const lines = (yield* Stream.mkString(store.export("s1", "jsonl"))).trimEnd().split("\n")
          assert.strictEqual(lines.length, (yield* store.read("s1")).entries.length)
          for (const line of lines) assert.strictEqual(JSON.parse(line).v, 1)
        }))
    })
  })
}
