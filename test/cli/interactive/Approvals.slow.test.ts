import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Program from "../program.ts"
import type { Call } from "./model.ts"
import * as Session from "./session.ts"

Program.bundled()

const append: Call = ["shell", { command: "echo x >> ran" }]

/** A session whose model has called tools, and whose panel takes keys. */
const asked = Effect.fnUntraced(function* (...calls: ReadonlyArray<Call>) {
  const session = yield* Session.make()
  const terminal = yield* session.open([], { rows: 40 })
  yield* terminal.type("do it\r")
  yield* (yield* session.model.next).calls(...calls)
  const [first] = calls
  yield* terminal.shows(first?.[0] === "ask_user" ? "The model asks:" : `Allow ${first?.[0]}?`)
  yield* Session.settled
  return { ...session, terminal }
})

const asks = (question: string, schema?: object): Call => [
  "ask_user",
  { question, ...(schema === undefined ? {} : { schema }) }
]

describe("Approvals and questions", () => {
  it.live("P-61 y runs the call once", () =>
    Effect.gen(function* () {
      const { model, terminal, text } = yield* asked(append)
      yield* terminal.shows("echo x >> ran")
      yield* terminal.shows("y yes · a always")
      assert.strictEqual(text("ran"), "")
      yield* terminal.type("y")
      const second = yield* model.next
      assert.strictEqual(text("ran"), "x\n")
      yield* terminal.hides("Allow shell?")
      yield* second.calls(append)
      yield* terminal.shows("Allow shell?")
      assert.strictEqual(text("ran"), "x\n")
      assert.strictEqual(terminal.input(), "")
    })
  )

  it.live("P-62 n and a reason: the call does not run, and the model reads the reason", () =>
    Effect.gen(function* () {
      const { model, terminal, text } = yield* asked(append)
      yield* terminal.type("n")
      yield* terminal.shows("Why not?")
      yield* terminal.type("not on a Friday")
      yield* terminal.key("Enter")
      const second = yield* model.next
      assert.include(second.of("tool").at(-1) ?? "", "not on a Friday")
      yield* terminal.writes(/^✗ shell echo x >> ran · refused: /m)
      yield* second.calls(append)
      yield* terminal.shows("Allow shell?")
      yield* Session.settled
      yield* terminal.type("n")
      yield* terminal.shows("Why not?")
      yield* terminal.key("Enter")
      const third = yield* model.next
      assert.strictEqual(third.of("tool").length, 2)
      yield* terminal.writes(/^✗ shell echo x >> ran · refused: you said no/m)
      yield* third.says("As you like.")
      yield* terminal.shows("As you like.")
      assert.strictEqual(text("ran"), "")
    })
  )

  it.live("P-63 a: the same command runs unasked from now on, and another one is asked about", () =>
    Effect.gen(function* () {
      const { model, terminal, text } = yield* asked(append)
      yield* terminal.shows("a always for ")
      yield* terminal.type("a")
      yield* (yield* model.next).calls(append)
      const third = yield* model.next
      assert.strictEqual(text("ran"), "x\nx\n")
      yield* third.calls(["shell", { command: "echo y >> ran" }])
      yield* terminal.shows("Allow shell?")
      assert.strictEqual(text("ran"), "x\nx\n")
    })
  )

  it.live("P-64 e: the edited command runs, and the transcript says that you edited it", () =>
    Effect.gen(function* () {
      const { model, terminal, text } = yield* asked(append)
      yield* terminal.type("e")
      yield* terminal.holds("echo x >> ran")
      yield* terminal.key("Ctrl-U")
      yield* terminal.type("echo edited >> ran")
      yield* terminal.holds("echo edited >> ran")
      yield* terminal.key("Enter")
      const second = yield* model.next
      assert.strictEqual(text("ran"), "edited\n")
      yield* terminal.writes("edited by you")
      yield* terminal.holds("")
      yield* second.says("Done.")
      yield* terminal.shows("Done.")
      assert.strictEqual(model.requests.length, 2)
    })
  )

  it.live("P-65 y typed within 500 ms answers nothing", () =>
    Effect.gen(function* () {
      const { model, open, text } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.type("do it\r")
      const request = yield* model.next
      // A person who types on when the panel comes up, a key each 100 ms.
      const types = Effect.andThen(terminal.type("y"), Session.pause(100))
      for (let key = 0; key < 5; key++) yield* types
      yield* request.calls(append)
      yield* terminal.shows("Allow shell?")
      for (let key = 0; key < 10; key++) yield* types
      yield* terminal.shows("Allow shell?")
      assert.strictEqual(text("ran"), "")
      assert.strictEqual(model.requests.length, 1)
      assert.match(terminal.input(), /^y+$/)
      yield* Session.settled
      yield* terminal.type("y")
      yield* model.next
      assert.strictEqual(text("ran"), "x\n")
    })
  )

  it.live("P-66 the title counts the calls that wait; with Esc neither runs, and the run stops", () =>
    Effect.gen(function* () {
      const { model, terminal, text } = yield* asked(append, ["write", { path: "a.txt", content: "made" }])
      yield* terminal.shows("Allow shell? (1 of 2)")
      yield* terminal.key("Esc")
      yield* terminal.writes("Stopped.", { timeout: 3_000 })
      yield* terminal.hides("Allow ")
      yield* terminal.hides("Working")
      yield* Session.pause(300)
      assert.deepStrictEqual([text("ran"), text("a.txt"), model.requests.length], ["", "", 1])
    })
  )

  it.live("P-67 a question takes a number, a text, or Esc", () =>
    Effect.gen(function* () {
      const choices = asks("Which database?", { enum: ["PostgreSQL", "SQLite", "MySQL"] })
      const { model, terminal } = yield* asked(choices)
      yield* terminal.shows("The model asks: Which database?")
      yield* terminal.shows(/^ *2 SQLite$/m)
      yield* terminal.type("2")
      yield* Session.pause(300)
      // The number may answer by itself.
      if (model.requests.length === 1) yield* terminal.key("Enter")
      const second = yield* model.next
      assert.include(second.of("tool").at(-1) ?? "", "SQLite")
      yield* second.calls(asks("Which name?"))
      yield* terminal.shows("The model asks: Which name?")
      yield* Session.settled
      yield* terminal.type("dark red")
      yield* terminal.key("Enter")
      const third = yield* model.next
      assert.include(third.of("tool").at(-1) ?? "", "dark red")
      yield* third.calls(asks("Which time?"))
      yield* terminal.shows("The model asks: Which time?")
      yield* Session.settled
      yield* terminal.key("Esc")
      const fourth = yield* model.next
      assert.strictEqual(fourth.of("tool").length, 3)
      assert.match(fourth.of("tool").at(-1) ?? "", /declin/i)
      yield* fourth.says("Done.")
      yield* terminal.shows("Done.")
      assert.notInclude(terminal.scrollback().join("\n"), "Stopped.")
    })
  )

  it.live("P-68 the panel shows hidden characters as escapes, and v shows all of a long call", () =>
    Effect.gen(function* () {
      const lines = Array.from({ length: 60 }, (_, index) => `echo line-${index + 1}.`)
      const hidden = "echo \u202e\u200b\u001b[2J end"
      const command = [hidden, ...lines].join("\n")
      const { terminal, text } = yield* asked(["shell", { command }])
      yield* terminal.shows("echo \\u{202e}\\u{200b}\\u{1b}[2J end")
      assert.notMatch(terminal.bytes(), /\u202e|\u200b/)
      assert.notInclude(terminal.bytes(), "\u001b[2J end")
      yield* terminal.shows(/\b\d+ more\b/)
      assert.notInclude(terminal.scrollback().join("\n"), "line-60.")
      yield* terminal.type("v")
      yield* terminal.writes("line-60.")
      for (const line of lines) assert.include(terminal.scrollback().join("\n"), line)
      yield* terminal.shows("Allow shell?")
      assert.strictEqual(text("ran"), "")
    })
  )

  it.live("P-69 after kill -9 at a panel, -c shows it again", () =>
    Effect.gen(function* () {
      const { model, open, terminal, text } = yield* asked(append)
      yield* terminal.signal("SIGKILL")
      yield* terminal.ended
      const again = yield* open(["-c"])
      yield* again.shows("Allow shell?")
      yield* again.shows("echo x >> ran")
      assert.strictEqual(text("ran"), "")
      yield* Session.settled
      yield* again.type("y")
      const second = yield* model.next
      assert.strictEqual(text("ran"), "x\n")
      assert.strictEqual(second.of("tool").length, 1)
      yield* second.says("Done.")
      yield* again.shows("Done.")
    })
  )
})

describe("Tasks and plans", () => {
  it.live("P-85 the task list is shown, and again after -c", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.type("do it\r")
      const tasks = [
        { text: "find the place", status: "done" },
        { text: "round once", status: "active" },
        { text: "run the tests", status: "pending" }
      ]
      yield* (yield* model.next).calls(["tasks", { tasks }])
      const second = yield* model.next
      assert.include(second.of("tool").at(-1) ?? "", "1 of 3 done")
      const shown = (on: typeof terminal) =>
        Effect.gen(function* () {
          yield* on.shows(/^Tasks 1\/3$/m)
          yield* on.shows(/^ *✓ find the place$/m)
          yield* on.shows(/^ *▸ round once$/m)
          yield* on.shows(/^ *· run the tests$/m)
        })
      yield* shown(terminal)
      yield* second.says("Done.")
      yield* terminal.shows("Done.")
      yield* terminal.hides("Working")
      yield* terminal.key("Ctrl-D")
      yield* terminal.ended
      const again = yield* open(["-c"])
      yield* shown(again)
    })
  )

  it.live("P-86 plan mode refuses write, shows the plan, and 1 continues", () =>
    Effect.gen(function* () {
      const { model, open, text } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.type("/plan\r")
      yield* terminal.shows(/^plan · /m)
      yield* terminal.type("make a file\r")
      const write: Call = ["write", { path: "a.txt", content: "made" }]
      const first = yield* model.next
      assert.include(first.tools, "propose_plan")
      assert.include(first.tools, "read")
      assert.notInclude(first.tools, "write")
      yield* first.calls(write)
      const second = yield* model.next
      assert.include(
        second.of("tool").at(-1) ?? "",
        "Plan mode: nothing may be changed before the plan is approved."
      )
      assert.strictEqual(text("a.txt"), "")
      yield* second.calls(["propose_plan", { plan: "## The plan\n\nMake *one* file." }])
      yield* terminal.shows(
        "1 go, and ask before changes · 2 go, and allow edits · 3 change it · Esc not now"
      )
      yield* terminal.writes("The plan")
      yield* Session.settled
      yield* terminal.type("1")
      const third = yield* model.next
      assert.include(third.tools, "write")
      yield* terminal.shows(/^ask · /m)
      yield* third.calls(write)
      yield* terminal.shows("Allow write?")
      yield* Session.settled
      yield* terminal.type("y")
      yield* (yield* model.next).says("Done.")
      yield* terminal.shows("Done.")
      assert.strictEqual(text("a.txt"), "made")
    })
  )
})
