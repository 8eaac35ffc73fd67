/**
 * The session on terminals that differ: in the bytes of their keys, in their answers, in their size.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Program from "../program.ts"
import type { Call } from "./model.ts"
import * as Sequences from "./sequences.ts"
import * as Session from "./session.ts"

Program.bundled()

const append: Call = ["shell", { command: "echo x >> ran" }]

/** A session whose model has begun an answer. */
const answering = Effect.fnUntraced(function* (
  started: Session.Start = {},
  args: ReadonlyArray<string> = []
) {
  const session = yield* Session.make()
  const terminal = yield* session.open(args, started)
  yield* terminal.type("begin\r")
  const request = yield* session.model.next
  yield* request.delta("So far.\n\n")
  yield* terminal.shows("So far.")
  return { ...session, terminal, request }
})

/** The keys of a terminal with the protocol of Kitty, and of one with modifyOtherKeys. */
const encodings = [
  {
    name: "Kitty",
    kitty: true,
    esc: "\u001b[27u",
    ctrl: (letter: string) => `\u001b[${letter.charCodeAt(0)};5u`,
    altEnter: "\u001b[13;3u",
    shiftTab: "\u001b[9;2u"
  },
  {
    name: "modifyOtherKeys",
    kitty: false,
    esc: "\u001b",
    ctrl: (letter: string) => `\u001b[27;5;${letter.charCodeAt(0)}~`,
    altEnter: "\u001b[27;3;13~",
    shiftTab: "\u001b[27;2;9~"
  }
]

describe("Terminals", () => {
  it.live.each(encodings)("keys as $name encodes them", ({ altEnter, ctrl, esc, kitty, shiftTab }) =>
    Effect.gen(function* () {
      const { model, request, terminal } = yield* answering({ kitty })
      yield* terminal.type("later")
      yield* terminal.type(altEnter)
      yield* terminal.shows(/^next: later$/m)
      yield* terminal.type("some words")
      yield* terminal.type(ctrl("u"))
      yield* terminal.holds("")
      yield* terminal.type("one")
      yield* terminal.type(ctrl("j"))
      yield* terminal.type("two")
      yield* terminal.holds("one\ntwo")
      yield* terminal.type(ctrl("c"))
      yield* terminal.holds("")
      assert.isFalse(request.isClosed())
      yield* terminal.type(shiftTab)
      yield* terminal.shows(/^edits · /m)
      yield* terminal.type(esc)
      yield* terminal.writes("Stopped.")
      yield* terminal.holds("later")
      yield* terminal.type(ctrl("c"))
      yield* terminal.holds("")
      yield* terminal.type(ctrl("d"))
      assert.strictEqual((yield* terminal.ended).code, 0)
      assert.strictEqual(model.requests.length, 1)
      assert.isEmpty(Sequences.leftOn(terminal.bytes()), Sequences.leftOn(terminal.bytes()).join("\n"))
    })
  )

  it.live("answers of the terminal, whole, late or in pieces, are neither typing nor Esc", () =>
    Effect.gen(function* () {
      const { request, terminal } = yield* answering()
      for (const answer of [
        "\u001b[?62;4;22c",
        "\u001b[?1u",
        "\u001b[?0u\u001b[?1;2c",
        "\u001b[I",
        "\u001b[O",
        "\u001b[24;80R"
      ]) {
        yield* terminal.type(answer)
        yield* Session.pause(100)
      }
      for (const piece of ["\u001b[?6", "2;4;2", "2c"]) {
        yield* terminal.type(piece)
        yield* Session.pause(20)
      }
      yield* Session.pause(300)
      assert.strictEqual(terminal.input(), "")
      assert.isFalse(request.isClosed())
      yield* terminal.type("typed")
      yield* terminal.holds("typed")
    })
  )

  it.live("fast typing while an answer streams arrives in order, and nothing of either is lost", () =>
    Effect.gen(function* () {
      const { model, request, terminal } = yield* answering()
      const typed = Array.from({ length: 60 }, (_, index) => `t${index} `)
        .join("")
        .trimEnd()
      const types = Effect.forEach(
        Array.from(typed),
        (char) => Effect.andThen(terminal.type(char), Session.pause(5)),
        {
          discard: true
        }
      )
      const streams = Effect.forEach(
        Array.from({ length: 200 }, (_, index) => index),
        (index) => Effect.andThen(request.delta(`w${index}q\n\n`), Session.pause(5)),
        { discard: true }
      )
      yield* Effect.all([types, streams], { concurrency: 2 })
      yield* request.ends
      yield* terminal.writes("w199q")
      yield* terminal.hides("Working")
      yield* terminal.key("Enter")
      const second = yield* model.next
      assert.strictEqual(second.of("user").at(-1), typed)
      const text = terminal.scrollback().join("\n")
      for (let index = 0; index < 200; index++)
        assert.strictEqual(Session.count(text, `w${index}q`), 1, `w${index}q\n${text}`)
    })
  )

  it.live("a panel with a long diff, and a long input, fit a small screen, and leave it whole", () =>
    Effect.gen(function* () {
      const { model, open, text } = yield* Session.make()
      const terminal = yield* open([], { cols: 60, rows: 12, before: "before it\n" })
      yield* terminal.type("do it\r")
      const request = yield* model.next
      for (let line = 1; line <= 20; line++) {
        // Several lines at once would be a paste.
        yield* terminal.type(`line ${line}`)
        yield* terminal.until(`line ${line}`, () => terminal.input().endsWith(`line ${line}`))
        if (line === 20) break
        yield* terminal.key("Ctrl-J")
        yield* terminal.until("a new line", () => terminal.input().endsWith("\n"))
      }
      const content = Array.from({ length: 80 }, (_, index) => `new${index}z\n`).join("")
      yield* request.calls(["write", { path: "a.txt", content }])
      yield* terminal.shows("y yes")
      yield* Session.settled
      yield* terminal.resize(80, 10)
      yield* Session.pause(300)
      yield* terminal.resize(50, 14)
      yield* Session.pause(300)
      yield* terminal.shows("y yes")
      yield* terminal.type("y")
      const second = yield* model.next
      assert.strictEqual(text("a.txt"), content)
      yield* second.says("The end.")
      yield* terminal.writes("The end.")
      yield* terminal.hides("Working")
      yield* terminal.until("the input", () => terminal.input().endsWith("line 20"))
      yield* terminal.key("Enter")
      const third = yield* model.next
      assert.strictEqual(
        third.of("user").at(-1),
        Array.from({ length: 20 }, (_, index) => `line ${index + 1}`).join("\n")
      )
      yield* third.says("Over.")
      yield* terminal.shows("Over.")
      const all = terminal.scrollback().join("\n")
      for (const once of ["before it", "The end.", "Over.", "> do it", "y yes", "% context"])
        assert.isAtMost(Session.count(all, once), 1, `${once}\n${all}`)
    })
  )

  it.live("a long line of input wraps, and the caret stays at its end", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open([], { cols: 40, rows: 12 })
      const words = Array.from({ length: 30 }, (_, index) => `word${index}`).join(" ")
      yield* terminal.type(words)
      yield* terminal.shows("word29")
      yield* terminal.until("the caret", () => {
        const { x, y } = terminal.cursor()
        return terminal.screen()[y]?.slice(0, x).endsWith("word29") === true
      })
      yield* terminal.key("Enter")
      assert.strictEqual((yield* model.next).of("user").at(-1), words)
    })
  )

  it.live("SIGTERM at a panel, and in line mode, leaves the terminal as it was", () =>
    Effect.gen(function* () {
      const { model, open, start } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.type("do it\r")
      yield* (yield* model.next).calls(append)
      yield* terminal.shows("Allow shell?")
      yield* terminal.signal("SIGTERM")
      const first = yield* terminal.ended
      assert.deepStrictEqual([first.code, first.column, first.isStyled], [143, 0, false])
      assert.strictEqual(first.stty.after, first.stty.before)
      assert.isEmpty(Sequences.leftOn(terminal.bytes()), Sequences.leftOn(terminal.bytes()).join("\n"))
      const plain = yield* start(["--plain"])
      yield* plain.writes(Session.greeting)
      yield* plain.type("tell me\r")
      yield* (yield* model.next).delta("So far")
      yield* Session.pause(200)
      yield* plain.signal("SIGTERM")
      const second = yield* plain.ended
      assert.deepStrictEqual([second.code, second.column], [143, 0])
      assert.strictEqual(second.stty.after, second.stty.before)
    })
  )

  it.live("Ctrl-C in line mode stops the run, and then leaves", () =>
    Effect.gen(function* () {
      const { model, start } = yield* Session.make()
      const terminal = yield* start(["--plain"])
      yield* terminal.writes(Session.greeting)
      yield* terminal.type("tell me\r")
      const request = yield* model.next
      yield* request.delta("So far.\n\n")
      yield* terminal.writes("agent: So far.")
      yield* terminal.key("Ctrl-C")
      yield* terminal.writes("Stopped.")
      yield* terminal.until("the request has gone", request.isClosed)
      yield* Session.pause(300)
      yield* terminal.key("Ctrl-C")
      yield* Session.pause(300)
      if (terminal.isRunning()) yield* terminal.key("Ctrl-C")
      assert.strictEqual((yield* terminal.ended).code, 0)
    })
  )

  it.live("after kill -9 in the middle of tools and of an answer, -c sends a valid transcript", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make({ files: Session.waits })
      const terminal = yield* open(["--yes"])
      yield* terminal.type("do it\r")
      yield* (yield* model.next).calls(["list", { path: "." }], Session.wait)
      yield* terminal.shows("began")
      yield* terminal.signal("SIGKILL")
      yield* terminal.ended
      const again = yield* open(["-c", "--yes"])
      yield* Session.pause(1_000)
      if (model.requests.length === 1) yield* again.type("and now\r")
      const second = yield* model.next
      const calls = second.messages.flatMap(({ calls }) => calls.map(({ id }) => id))
      assert.deepStrictEqual(
        second.messages.flatMap(({ callId = [] }) => callId),
        calls
      )
      yield* second.delta("Half an ans")
      yield* again.shows("Half an ans")
      yield* again.signal("SIGKILL")
      yield* again.ended
      const third = yield* open(["-c"])
      yield* Session.pause(1_000)
      if (model.requests.length === 2) yield* third.type("and then\r")
      const last = yield* model.next
      const roles = last.messages.map(({ role }) => role)
      assert.notInclude(roles.slice(0, -1), "")
      assert.strictEqual(last.messages.filter(({ calls }) => calls.length > 0).length, 1)
    })
  )
})
