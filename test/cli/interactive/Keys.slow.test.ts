import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chmodSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import * as Program from "../program.ts"
import * as Session from "./session.ts"
import * as Terminal from "./terminal.ts"

Program.bundled()

/** A session in which a tool runs until the test writes the file `go`. */
const working = Effect.gen(function* () {
  const session = yield* Session.make({ files: Session.waits })
  const terminal = yield* session.open(["--yes"])
  yield* terminal.type("begin\r")
  yield* (yield* session.model.next).calls(Session.wait)
  yield* terminal.shows("→ shell")
  yield* terminal.shows("began")
  return { ...session, terminal, release: Effect.sync(() => session.put("go", "")) }
})

/** A session whose model has begun an answer. */
const answering = Effect.gen(function* () {
  const session = yield* Session.make()
  const terminal = yield* session.open()
  yield* terminal.type("begin\r")
  const request = yield* session.model.next
  yield* request.delta("So far.\n\n")
  yield* terminal.shows("So far.")
  return { ...session, terminal, request }
})

const linesOf = (text: string) => text.replaceAll(/\r\n?/g, "\n").trimEnd().split("\n")

const rows = (name: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${name}${index + 1}`)

describe("Keys: steering and queueing", () => {
  it.live("P-27 Enter while a tool runs steers: the text is behind the result of the tool, once", () =>
    Effect.gen(function* () {
      const { model, release, terminal } = yield* working
      yield* terminal.type("use BigInt")
      yield* terminal.key("Enter")
      yield* terminal.shows(/^steer: use BigInt$/m)
      assert.strictEqual(terminal.input(), "")
      assert.strictEqual(model.requests.length, 1)
      yield* release
      const second = yield* model.next
      assert.deepStrictEqual(second.of("user"), ["begin", "use BigInt"])
      assert.deepStrictEqual(
        second.messages.slice(-2).map(({ role }) => role),
        ["tool", "user"]
      )
      yield* second.says("As you like.")
      yield* terminal.shows("As you like.")
      yield* terminal.hides("Working")
      const text = terminal.scrollback().join("\n")
      assert.strictEqual(Session.count(text, "> use BigInt"), 1, text)
      assert.notInclude(text, "steer: use BigInt")
      assert.strictEqual(model.requests.length, 2)
    })
  )

  it.live("P-28 Alt-Enter queues: a prompt of its own after the end of the run", () =>
    Effect.gen(function* () {
      const { model, release, terminal } = yield* working
      yield* terminal.type("then the changelog")
      yield* terminal.key("Alt-Enter")
      yield* terminal.shows(/^next: then the changelog$/m)
      yield* release
      const second = yield* model.next
      assert.deepStrictEqual(second.of("user"), ["begin"])
      yield* second.says("First is done.")
      const third = yield* model.next
      assert.deepStrictEqual(third.of("user"), ["begin", "then the changelog"])
      assert.strictEqual(third.of("assistant").at(-1), "First is done.")
      yield* third.says("Second is done.")
      yield* terminal.shows("Second is done.")
      yield* terminal.hides("Working")
      const text = terminal.scrollback().join("\n")
      assert.strictEqual(Session.count(text, "> then the changelog"), 1, text)
      assert.notInclude(text, "next: then the changelog")
      assert.strictEqual(model.requests.length, 3)
    })
  )

  it.live("P-29 Up with an empty input takes the last queued message back, and it is not sent", () =>
    Effect.gen(function* () {
      const { model, release, terminal } = yield* working
      for (const text of ["first queued", "second queued"]) {
        yield* terminal.type(text)
        yield* terminal.key("Alt-Enter")
        yield* terminal.shows(`next: ${text}`)
      }
      yield* terminal.key("Up")
      yield* terminal.holds("second queued")
      yield* terminal.hides("next: second queued")
      yield* release
      yield* (yield* model.next).says("Done.")
      const third = yield* model.next
      assert.deepStrictEqual(third.of("user"), ["begin", "first queued"])
      yield* third.says("Done too.")
      yield* terminal.shows("Done too.")
      yield* terminal.hides("Working")
      yield* Session.pause(500)
      assert.strictEqual(model.requests.length, 3)
      assert.strictEqual(terminal.input(), "second queued")
    })
  )

  it.live("P-30 Esc stops: the typed text stays, and messages that waited come back before it", () =>
    Effect.gen(function* () {
      const { model, request, terminal } = yield* answering
      yield* terminal.type("queued one")
      yield* terminal.key("Alt-Enter")
      yield* terminal.shows("next: queued one")
      yield* terminal.type("typed text")
      yield* terminal.holds("typed text")
      yield* terminal.key("Esc")
      yield* terminal.writes("Stopped.", { timeout: 3_000 })
      yield* terminal.holds("queued one\ntyped text")
      yield* terminal.hides("next: queued one")
      yield* terminal.hides("Working")
      yield* terminal.until("the request has gone", request.isClosed)
      yield* Session.pause(300)
      assert.strictEqual(model.requests.length, 1)
      yield* terminal.key("Enter")
      const second = yield* model.next
      assert.strictEqual(second.of("user").at(-1), "queued one\ntyped text")
    })
  )

  it.live("P-31 Esc stops within a second a command that ignores SIGTERM", () =>
    Effect.gen(function* () {
      const { model, open, text } = yield* Session.make({
        files: { "stubborn.sh": `trap "" TERM INT\necho began\nsleep 20; sleep 20; echo over > ran\n` }
      })
      const terminal = yield* open(["--yes"])
      yield* terminal.type("begin\r")
      yield* (yield* model.next).calls(["shell", { command: "sh stubborn.sh" }])
      yield* terminal.shows("began")
      yield* terminal.type("steer me")
      yield* terminal.key("Enter")
      yield* terminal.shows("steer: steer me")
      yield* terminal.type("typed text")
      yield* terminal.holds("typed text")
      yield* terminal.key("Esc")
      // A second, and what the machine adds.
      yield* terminal.writes("Stopped.", { timeout: 2_000 })
      yield* terminal.holds("steer me\ntyped text")
      yield* terminal.hides("Working")
      assert.strictEqual(model.requests.length, 1)
      assert.strictEqual(text("ran"), "")
    })
  )

  it.live("P-32 Ctrl-C with text clears it, the run continues, and Up brings the text back", () =>
    Effect.gen(function* () {
      const { model, request, terminal } = yield* answering
      yield* terminal.type("not for now")
      yield* terminal.holds("not for now")
      yield* terminal.key("Ctrl-C")
      yield* terminal.holds("")
      yield* request.delta("And further.")
      yield* terminal.shows("And further.")
      assert.isFalse(request.isClosed())
      yield* request.ends
      yield* terminal.hides("Working")
      yield* terminal.key("Up")
      yield* terminal.holds("not for now")
      assert.strictEqual(model.requests.length, 1)
      assert.notInclude(terminal.scrollback().join("\n"), "Stopped.")
    })
  )
})

describe("Keys: the input", () => {
  it.live("P-33 Shift-Enter, Ctrl-J and a backslash before Enter are new lines of one prompt", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      for (const kitty of [true, false]) {
        const terminal = yield* open([], { kitty })
        yield* terminal.type("one")
        yield* terminal.key("Shift-Enter")
        yield* terminal.holds("one\n")
        yield* terminal.type("two")
        yield* terminal.key("Ctrl-J")
        yield* terminal.holds("one\ntwo\n")
        yield* terminal.type("three\\")
        yield* terminal.holds("one\ntwo\nthree\\")
        yield* terminal.key("Enter")
        yield* terminal.holds("one\ntwo\nthree\n")
        yield* terminal.type("four")
        yield* terminal.holds("one\ntwo\nthree\nfour")
        yield* terminal.key("Enter")
        const request = yield* model.next
        assert.strictEqual(request.of("user").at(-1), "one\ntwo\nthree\nfour")
        yield* request.says("Four lines.")
        yield* terminal.shows("Four lines.")
      }
      assert.strictEqual(model.requests.length, 2)
    })
  )

  it.live("P-34 pastes do not send, whatever line ends they have, and arrive whole", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open()
      const pastes = [
        "al\rbe\rga",
        "al\nbe\nga",
        "al\r\nbe\r\nga",
        "al\rbe\rga\r",
        "al\nbe\nga\n",
        "al\r\nbe\r\nga\r\n"
      ]
      for (const [index, text] of pastes.entries()) {
        yield* terminal.paste(text)
        yield* terminal.shows(/^(?:> | {2})?ga$/m)
        yield* Session.pause(200)
        assert.strictEqual(model.requests.length, index, JSON.stringify(text))
        yield* terminal.key("Enter")
        const request = yield* model.next
        assert.deepStrictEqual(linesOf(request.of("user").at(-1) ?? ""), ["al", "be", "ga"])
        yield* request.says(`Paste ${index}.`)
        yield* terminal.shows(`Paste ${index}.`)
        yield* terminal.hides("Working")
        yield* terminal.holds("")
      }
    })
  )

  it.live("P-35 a paste of 120 lines is shown in short, and the model gets all", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.type("Look: ")
      yield* terminal.paste(rows("pasted row ", 120).join("\r"))
      yield* terminal.holds("Look: [paste 1: 120 lines]")
      yield* Session.pause(200)
      assert.deepStrictEqual(model.requests, [])
      yield* terminal.key("Enter")
      const request = yield* model.next
      const sent = linesOf(request.of("user").at(-1) ?? "")
      assert.deepStrictEqual(
        sent.map((line) => line.replace("Look: ", "")),
        rows("pasted row ", 120)
      )
    })
  )

  it.live("P-36 a chunk with line ends inside is a paste, also without brackets", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.type(rows("row", 120).join("\r"))
      yield* terminal.holds("[paste 1: 120 lines]")
      yield* Session.pause(200)
      assert.deepStrictEqual(model.requests, [])
      yield* terminal.key("Enter")
      const request = yield* model.next
      assert.deepStrictEqual(linesOf(request.of("user").at(-1) ?? ""), rows("row", 120))
    })
  )

  it.live("P-43 the caret goes by columns of what is drawn, and backspace takes a grapheme", () =>
    Effect.gen(function* () {
      const { open } = yield* Session.make()
      const terminal = yield* open()
      const typed = ["漢", "字", "👨‍👩‍👧", "e\u0301", "x"]
      const columns = [4, 6, 8, 9, 10]
      for (const [index, grapheme] of typed.entries()) {
        yield* terminal.type(grapheme)
        yield* terminal.until(`caret at ${columns[index]}`, () => terminal.cursor().x === columns[index])
        assert.strictEqual(terminal.input(), typed.slice(0, index + 1).join(""))
      }
      for (const column of [9, 8, 6, 4, 2]) {
        yield* terminal.key("Backspace")
        yield* terminal.until(`caret at ${column}`, () => terminal.cursor().x === column)
      }
      yield* terminal.holds("")
      yield* terminal.type(typed.join(""))
      yield* terminal.until("caret at 10", () => terminal.cursor().x === 10)
      for (const column of [9, 8, 6, 4, 2]) {
        yield* terminal.key("Left")
        yield* terminal.until(`caret at ${column}`, () => terminal.cursor().x === column)
      }
    })
  )
})

describe("Keys: history, completion, files and commands", () => {
  it.live("P-37 the history lives on: not what begins with a space, and for the person alone", () =>
    Effect.gen(function* () {
      const { find, model, open } = yield* Session.make()
      yield* model.always((request) => request.says(`Answer ${model.requests.length}.`))
      const terminal = yield* open()
      for (const [index, text] of ["first prompt", " a secret prompt", "second prompt"].entries()) {
        yield* terminal.type(text)
        yield* terminal.key("Enter")
        yield* terminal.shows(`Answer ${index + 1}.`)
        yield* terminal.hides("Working")
      }
      yield* terminal.key("Ctrl-D")
      yield* terminal.ended
      const [file = "", ...others] = find("history.jsonl")
      assert.deepStrictEqual(others, [])
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      assert.notInclude(readFileSync(file, "utf8"), "secret")
      const again = yield* open()
      yield* again.key("Up")
      yield* again.holds("second prompt")
      yield* again.key("Up")
      yield* again.holds("first prompt")
      yield* again.key("Down")
      yield* again.holds("second prompt")
    })
  )

  it.live("P-38 Ctrl-R finds an older prompt, and Enter takes it into the input", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      yield* model.always((request) => request.says(`Answer ${model.requests.length}.`))
      const terminal = yield* open()
      for (const [index, text] of ["alpha one", "beta", "alpha two", "gamma"].entries()) {
        yield* terminal.type(`${text}\r`)
        yield* terminal.shows(`Answer ${index + 1}.`)
        yield* terminal.hides("Working")
      }
      yield* terminal.key("Ctrl-R")
      yield* terminal.type("alp")
      yield* terminal.until("the newest match", () => Session.count(terminal.view(), "alpha two") === 2)
      yield* terminal.key("Ctrl-R")
      yield* terminal.until("the older match", () => Session.count(terminal.view(), "alpha one") === 2)
      yield* terminal.key("Enter")
      yield* terminal.holds("alpha one")
      yield* Session.pause(200)
      assert.strictEqual(model.requests.length, 4)
      yield* terminal.key("Enter")
      yield* terminal.shows("Answer 5.")
      assert.strictEqual(model.requests.at(-1)?.of("user").at(-1), "alpha one")
    })
  )

  it.live("P-39 Tab completes commands and paths, but no ignored file", () =>
    Effect.gen(function* () {
      const { open } = yield* Session.make({
        files: {
          ".gitignore": "*.log\nbuilt/\n",
          "src/alpha.ts": "a",
          "src/other name.ts": "b",
          "src/alarm.log": "c",
          "built/alone.ts": "d"
        }
      })
      const terminal = yield* open()
      yield* terminal.type("/he")
      yield* terminal.key("Tab")
      yield* terminal.until("the command", () => terminal.input().trimEnd() === "/help")
      yield* terminal.key("Ctrl-U")
      yield* terminal.holds("")
      yield* terminal.type("@src/al")
      yield* Session.pause(300)
      assert.notInclude(terminal.view(), "alarm.log")
      yield* terminal.key("Tab")
      yield* terminal.until("the path", () => terminal.input().trimEnd() === "@src/alpha.ts")
      yield* terminal.key("Ctrl-U")
      yield* terminal.holds("")
      yield* terminal.type("@src/oth")
      yield* Session.pause(300)
      yield* terminal.key("Tab")
      yield* terminal.until("the quoted path", () => /"src\/other name\.ts"/.test(terminal.input()))
      yield* terminal.key("Ctrl-U")
      yield* terminal.holds("")
      yield* terminal.type("@alon")
      yield* Session.pause(300)
      yield* terminal.key("Tab")
      yield* Session.pause(300)
      assert.notInclude(terminal.view(), "alone.ts")
    })
  )

  it.live("P-40 @PATH sends the text of the file; a missing one sends nothing", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make({ files: { "a.txt": "quite a marvel\n" } })
      const terminal = yield* open()
      yield* terminal.type("look at @none.txt please")
      yield* terminal.key("Enter")
      yield* terminal.shows("No such file: none.txt")
      yield* Session.pause(300)
      assert.deepStrictEqual(model.requests, [])
      yield* terminal.until("the text is still there", () => terminal.input().includes("@none.txt"))
      yield* terminal.key("Ctrl-U")
      yield* terminal.holds("")
      yield* terminal.type("look at @a.txt please")
      yield* terminal.key("Enter")
      const { of } = yield* model.next
      assert.include(of("user").join("\n"), "quite a marvel")
      assert.include(of("user").join("\n"), "look at")
    })
  )

  it.live("P-41 !COMMAND runs unasked and is in the next request; !!COMMAND is not", () =>
    Effect.gen(function* () {
      const { model, open, text } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.type("!echo shown-$((40 + 2)); echo x >> ran\r")
      yield* terminal.writes("shown-42")
      yield* terminal.type("!!echo hidden-$((50 + 1))\r")
      yield* terminal.writes("hidden-51")
      assert.strictEqual(text("ran"), "x\n")
      assert.deepStrictEqual(model.requests, [])
      yield* terminal.type("and now\r")
      const { body, of } = yield* model.next
      assert.include(body, "shown-42")
      assert.notInclude(body, "hidden-51")
      assert.include(of("user").at(-1) ?? "", "and now")
    })
  )

  it.live("P-42 Shift-Tab changes the mode; in edits, write runs and shell asks", () =>
    Effect.gen(function* () {
      const { model, open, text } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.shows(/^ask · /m)
      for (const mode of ["edits", "plan", "ask", "edits"]) {
        yield* terminal.key("Shift-Tab")
        yield* terminal.shows(new RegExp(`^${mode} · `, "m"))
      }
      yield* terminal.type("do it\r")
      const call = { path: "a.txt", content: "made" }
      yield* (yield* model.next).calls(["write", call])
      const second = yield* model.next
      assert.strictEqual(text("a.txt"), "made")
      yield* second.calls(["shell", { command: "echo x > ran" }])
      yield* terminal.shows("Allow shell?")
      assert.strictEqual(text("ran"), "")
      assert.notInclude(terminal.scrollback().join("\n"), "Allow write?")
    })
  )

  it.live("P-46 Esc twice clears a text, and with none opens the list of prompts", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      yield* model.always((request) => request.says(`Answer ${model.requests.length}.`))
      const terminal = yield* open()
      for (const [index, text] of ["early prompt", "late prompt"].entries()) {
        yield* terminal.type(`${text}\r`)
        yield* terminal.shows(`Answer ${index + 1}.`)
        yield* terminal.hides("Working")
      }
      const twice = Effect.gen(function* () {
        yield* terminal.key("Esc")
        yield* Session.pause(200)
        yield* terminal.key("Esc")
      })
      yield* terminal.type("some words")
      yield* terminal.holds("some words")
      yield* twice
      yield* terminal.holds("")
      assert.strictEqual(Session.count(terminal.view(), "early prompt"), 1)
      yield* Session.pause(1_200)
      yield* twice
      yield* terminal.until("the list", () =>
        ["early prompt", "late prompt"].every((text) => Session.count(terminal.view(), text) === 2)
      )
      yield* terminal.key("Esc")
      yield* terminal.until("no list", () => Session.count(terminal.view(), "early prompt") === 1)
    })
  )
})

describe("Keys: other programs", () => {
  it.live("P-44 Ctrl-Z suspends, and after fg the screen and the run are back", () =>
    Effect.gen(function* () {
      const { cwd, env, model } = yield* Session.make()
      const line = "exec bash --norc --noprofile -i"
      const terminal = yield* Terminal.open(["/bin/sh", "-c", line], { cwd, env: { ...env, PS1: "shell% " } })
      yield* terminal.shows("shell%")
      yield* terminal.type(`${Program.command([]).join(" ")}\r`)
      yield* terminal.until("the session", () => /^>(?: |$)/m.test(terminal.view()))
      yield* terminal.type("tell me\r")
      const request = yield* model.next
      yield* request.delta("Before it.\n\n")
      yield* terminal.shows("Before it.")
      yield* terminal.type("typed text")
      yield* terminal.holds("typed text")
      yield* terminal.key("Ctrl-Z")
      yield* terminal.shows(/Stopped[^.]/)
      const asleep = terminal.bytes().length
      yield* terminal.type("echo $((40 + 2))\r")
      yield* terminal.shows(/^42$/m)
      yield* request.delta("Meanwhile.\n\n")
      yield* terminal.type("fg\r")
      yield* terminal.shows("Meanwhile.")
      yield* terminal.shows("Esc stops")
      yield* terminal.shows("% context")
      yield* terminal.holds("typed text")
      assert.include(terminal.bytes().slice(asleep), "\u001b[?2004h")
      yield* request.delta("Behind it.")
      yield* request.ends
      yield* terminal.shows("Behind it.")
      yield* terminal.hides("Working")
      yield* terminal.type(" and more")
      yield* terminal.holds("typed text and more")
      yield* terminal.key("Enter")
      assert.strictEqual((yield* model.next).of("user").at(-1), "typed text and more")
    })
  )

  it.live("P-45 Ctrl-G opens the input in $VISUAL, else $EDITOR", () =>
    Effect.gen(function* () {
      const { cwd, model, open, put } = yield* Session.make()
      put("editor", `#!/bin/sh\ncp "$1" seen\nprintf 'edited one\\nedited two\\n' > "$1"\n`)
      put("wrong", `#!/bin/sh\nprintf 'wrong editor' > "$1"\n`)
      for (const name of ["editor", "wrong"]) chmodSync(join(cwd, name), 0o755)
      const editor = join(cwd, "editor")
      for (const env of [{ EDITOR: editor }, { VISUAL: editor, EDITOR: join(cwd, "wrong") }]) {
        const terminal = yield* open([], { env })
        yield* terminal.type("my words")
        yield* terminal.holds("my words")
        yield* terminal.key("Ctrl-G")
        yield* terminal.holds("edited one\nedited two")
        assert.strictEqual(readFileSync(join(cwd, "seen"), "utf8").trimEnd(), "my words")
        assert.deepStrictEqual(model.requests, [])
        yield* terminal.key("Ctrl-C")
        yield* terminal.holds("")
      }
    })
  )
})
