/**
 * What the contract of the session says beyond its numbered checks.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync, statSync } from "node:fs"
import * as Program from "../program.ts"
import type { Call } from "./model.ts"
import * as Sequences from "./sequences.ts"
import * as Session from "./session.ts"

Program.bundled()

const append: Call = ["shell", { command: "echo x >> ran" }]

/** A session whose model has begun an answer. */
const answering = Effect.fnUntraced(function* (options?: Session.Options) {
  const session = yield* Session.make(options)
  const terminal = yield* session.open()
  yield* terminal.type("begin\r")
  const request = yield* session.model.next
  yield* request.delta("So far.\n\n")
  yield* terminal.shows("So far.")
  return { ...session, terminal, request }
})

describe("Settings of the session", () => {
  it.live('enter: "queue" swaps Enter and Alt-Enter while it works', () =>
    Effect.gen(function* () {
      const { terminal } = yield* answering({ config: { enter: "queue" } })
      yield* terminal.type("later")
      yield* terminal.key("Enter")
      yield* terminal.shows(/^next: later$/m)
      yield* terminal.type("now")
      yield* terminal.key("Alt-Enter")
      yield* terminal.shows(/^steer: now$/m)
    })
  )

  it.live('notify: "osc9" names what it is about', () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make({ config: { notify: "osc9" } })
      const terminal = yield* open()
      yield* terminal.type("do it\r")
      yield* (yield* model.next).calls(append)
      yield* terminal.shows("Allow shell?")
      assert.include(terminal.bytes(), "\u001b]9;effect-agent: approval needed")
      assert.strictEqual(Sequences.bells(terminal.bytes()), 0)
      yield* Session.settled
      yield* terminal.type("y")
      yield* (yield* model.next).calls(["ask_user", { question: "Which?" }])
      yield* terminal.shows("The model asks: Which?")
      assert.include(terminal.bytes(), "\u001b]9;effect-agent: question")
    })
  )

  it.live("a run of ten seconds rings the bell at its end", () =>
    Effect.gen(function* () {
      const { terminal, request } = yield* answering()
      yield* Session.pause(10_500)
      assert.strictEqual(Sequences.bells(terminal.bytes()), 0)
      yield* request.ends
      yield* terminal.hides("Working")
      yield* terminal.until("the bell", () => Sequences.bells(terminal.bytes()) === 1)
    })
  )

  it.live('theme: "none" has no look, and title: false no title', () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make({ config: { theme: "none", title: false } })
      const terminal = yield* open()
      yield* terminal.type("tell me\r")
      yield* (yield* model.next).says("**Bold** words.")
      yield* terminal.shows(/Bold\b.* words\./)
      assert.deepStrictEqual(
        Sequences.looks(terminal.bytes()).filter((look) => !/\[0*m$/.test(look)),
        []
      )
      assert.notInclude(terminal.bytes(), "\u001b]0;")
    })
  )

  it.live("the title is that of the session", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open(["--name", "The Trip"])
      yield* terminal.type("hello\r")
      yield* (yield* model.next).says("Fine.")
      yield* terminal.until("the title", () => terminal.bytes().includes("\u001b]0;effect-agent: The Trip"))
    })
  )
})

describe("Keys of the session", () => {
  it.live("Ctrl-C with an empty input stops the run", () =>
    Effect.gen(function* () {
      const { request, terminal } = yield* answering()
      yield* terminal.key("Ctrl-C")
      yield* terminal.writes("Stopped.")
      yield* terminal.until("the request has gone", request.isClosed)
      assert.isTrue(terminal.isRunning())
    })
  )

  it.live("Esc closes a completion, and does not stop the run", () =>
    Effect.gen(function* () {
      const { request, terminal } = yield* answering()
      yield* terminal.type("/he")
      yield* Session.pause(300)
      yield* terminal.key("Tab")
      yield* Session.pause(300)
      yield* terminal.key("Ctrl-U")
      yield* terminal.holds("")
      yield* terminal.key("Ctrl-R")
      yield* Session.pause(300)
      yield* terminal.key("Esc")
      yield* Session.pause(500)
      assert.isFalse(request.isClosed())
      yield* request.delta("Further.\n\n")
      yield* terminal.shows("Further.")
    })
  )

  it.live("the keys of readline edit, and Ctrl-_ undoes", () =>
    Effect.gen(function* () {
      const { open } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.type("one two three")
      yield* terminal.holds("one two three")
      yield* terminal.type("\u0017")
      yield* terminal.holds("one two ")
      yield* terminal.type("\u0001")
      yield* terminal.until("at the start", () => terminal.cursor().x === 2)
      yield* terminal.type("\u001bf")
      yield* terminal.until("behind a word", () => terminal.cursor().x === 5)
      yield* terminal.type("\u000b")
      yield* terminal.until("the rest is gone", () => /^> one$/m.test(terminal.view()))
      yield* terminal.type("\u0019")
      yield* terminal.until("the rest is back", () => /^> one two *$/m.test(terminal.view()))
      yield* terminal.type("\u001f")
      yield* terminal.until("undone", () => /^> one$/m.test(terminal.view()))
      yield* terminal.type("\u0001\u0006X\u0002\u0005!")
      yield* terminal.holds("oXne!")
    })
  )

  it.live("control characters of a paste are dropped, and 1,001 characters are shown in short", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.type("\u001b[200~a\u001b[31mb\u0007c\td\u001b[201~")
      yield* terminal.until("the paste", () => terminal.view().includes("d"))
      yield* terminal.key("Enter")
      const first = yield* model.next
      assert.notInclude(first.of("user").at(-1) ?? "", "\u001b")
      assert.match(first.of("user").at(-1) ?? "", /^a.*b.*c\td$/)
      yield* first.says("Fine.")
      yield* terminal.shows("Fine.")
      yield* terminal.hides("Working")
      yield* terminal.paste("x".repeat(1_001))
      yield* terminal.shows(/\[paste \d+: .+\]/)
      yield* terminal.key("Enter")
      assert.strictEqual((yield* model.next).of("user").at(-1), "x".repeat(1_001))
    })
  )

  it.live("Ctrl-T hides the task list and shows it again", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.type("do it\r")
      yield* (yield* model.next).calls(["tasks", { tasks: [{ text: "the first", status: "active" }] }])
      yield* terminal.shows("▸ the first")
      yield* terminal.type("\u0014")
      yield* terminal.hides("▸ the first")
      yield* terminal.type("\u0014")
      yield* terminal.shows("▸ the first")
    })
  )
})

describe("Commands of the session", () => {
  it.live("/queue lists what waits, and removes it; /steer steers", () =>
    Effect.gen(function* () {
      const { model, request, terminal } = yield* answering()
      for (const text of ["one", "two"]) {
        yield* terminal.type(`/queue ${text}\r`)
        yield* terminal.shows(`next: ${text}`)
      }
      yield* terminal.type("/steer now\r")
      yield* terminal.shows("steer: now")
      yield* terminal.type("/queue\r")
      yield* terminal.writes(/^ *1\b.*\bone$/m)
      yield* terminal.type("/queue rm 1\r")
      yield* terminal.hides(/^next: one$/m)
      yield* request.ends
      const second = yield* model.next
      assert.deepStrictEqual(second.of("user"), ["begin", "now"])
      yield* second.says("Fine.")
      assert.strictEqual((yield* model.next).of("user").at(-1), "two")
    })
  )

  it.live("/effort is that of the next request", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make({ env: { EFFECT_AGENT_MODEL: "openai-chat/gpt-5" } })
      const terminal = yield* open()
      yield* terminal.type("/effort high\r")
      yield* terminal.writes("Effort: high")
      yield* terminal.type("hello\r")
      assert.match((yield* model.next).body, /"reasoning_effort":"high"/)
    })
  )

  it.live("/tasks prints all tasks, and clear empties the list", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.type("do it\r")
      yield* (yield* model.next).calls(["tasks", { tasks: [{ text: "the first", status: "active" }] }])
      yield* (yield* model.next).says("Done.")
      yield* terminal.shows("Done.")
      yield* terminal.hides("Working")
      yield* terminal.type("/tasks\r")
      yield* terminal.until("both", () => Session.count(terminal.view(), "▸ the first") === 2)
      yield* terminal.type("/tasks clear\r")
      yield* terminal.until("one", () => Session.count(terminal.view(), "Tasks 0/1") <= 1)
    })
  )

  it.live("/sessions filters by typing, and Enter opens", () =>
    Effect.gen(function* () {
      const { model, open, run } = yield* Session.make()
      yield* model.always((request) => request.says(`Answer to ${request.of("user").join(" and ")}.`))
      yield* run(["alpha prompt"])
      yield* run(["beta prompt"])
      const terminal = yield* open()
      yield* terminal.type("/sessions\r")
      yield* terminal.shows("alpha prompt")
      yield* terminal.shows("beta prompt")
      yield* terminal.type("alph")
      yield* terminal.hides("beta prompt")
      yield* terminal.key("Enter")
      yield* terminal.shows("Answer to alpha prompt.")
      yield* terminal.type("further\r")
      yield* terminal.shows("Answer to alpha prompt and further.")
    })
  )

  it.live("/login keeps a key for the person alone, and shows it nowhere", () =>
    Effect.gen(function* () {
      const { find, open, start } = yield* Session.make({
        env: { EFFECT_AGENT_MODEL: "", OPENAI_API_KEY: "", OPENAI_BASE_URL: "" }
      })
      const terminal = yield* open()
      yield* terminal.type("/login openai\r")
      yield* Session.settled
      yield* terminal.type("sk-very-secret-key\r")
      yield* terminal.until("the file", () => find("credentials.json").length === 1)
      yield* Session.pause(500)
      const [file = ""] = find("credentials.json")
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      assert.include(readFileSync(file, "utf8"), "sk-very-secret-key")
      assert.notInclude(terminal.bytes(), "sk-very")
      yield* terminal.type("/login\r")
      yield* terminal.writes(/openai/)
      assert.notInclude(terminal.bytes(), "sk-very")
      yield* terminal.key("Esc")
      for (const history of find("history.jsonl")) assert.notInclude(readFileSync(history, "utf8"), "sk-very")
      const again = yield* start()
      yield* again.writes(Session.greeting)
      assert.notInclude(again.scrollback().join("\n"), "No model yet")
    })
  )

  it.live("a limit ends the run, and says how to continue", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open(["--max-turns", "2", "--yes"])
      yield* model.always((request) => request.calls(["list", { path: "." }]))
      yield* terminal.type("loop\r")
      yield* terminal.writes("Limit reached: maxTurns 2. Enter a prompt, or /retry, to go on.")
      yield* terminal.hides("Working")
      assert.strictEqual(model.requests.length, 2)
    })
  )
})

describe("Approvals of the session", () => {
  it.live("the input keeps its text through a panel, and keys that are none of its do nothing", () =>
    Effect.gen(function* () {
      const { model, open, text } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.type("do it\r")
      const request = yield* model.next
      yield* terminal.type("half a thought")
      yield* terminal.holds("half a thought")
      yield* request.calls(append)
      yield* terminal.shows("Allow shell?")
      yield* Session.settled
      yield* terminal.type("x")
      yield* Session.pause(600)
      yield* terminal.key("Enter")
      yield* Session.pause(600)
      assert.strictEqual(text("ran"), "")
      yield* terminal.shows("Allow shell?")
      yield* terminal.type("n")
      yield* terminal.shows("Why not?")
      yield* terminal.type("because\r")
      const second = yield* model.next
      assert.include(second.of("tool").at(-1) ?? "", "because")
      yield* terminal.holds("half a thought")
    })
  )

  it.live("w shows what the model wrote before the call", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.type("do it\r")
      const request = yield* model.next
      yield* request.delta("I must append a line.\n\n")
      yield* request.calls(append)
      yield* terminal.shows("Allow shell?")
      yield* Session.settled
      yield* terminal.type("w")
      yield* terminal.until("the words", () => Session.count(terminal.view(), "I must append a line.") === 2)
      yield* terminal.shows("Allow shell?")
    })
  )

  it.live("--deny refuses without a question, and protected files are refused in edits too", () =>
    Effect.gen(function* () {
      const { model, open, text } = yield* Session.make()
      const terminal = yield* open(["--deny", "shell"])
      yield* terminal.key("Shift-Tab")
      yield* terminal.shows(/^edits · /m)
      yield* terminal.type("do it\r")
      yield* (yield* model.next).calls(append, ["write", { path: ".git/config", content: "x" }])
      const second = yield* model.next
      assert.strictEqual(second.of("tool").length, 2)
      assert.deepStrictEqual([text("ran"), text(".git/config")], ["", ""])
      yield* terminal.writes(/^✗ shell echo x >> ran · refused: /m)
    })
  )
})
