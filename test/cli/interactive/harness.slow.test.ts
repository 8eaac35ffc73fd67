import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Program from "../program.ts"
import * as Sequences from "./sequences.ts"
import * as Session from "./session.ts"
import * as Terminal from "./terminal.ts"

Program.bundled()

const on = (line: string, options: Partial<Terminal.Options> = {}) =>
  Terminal.open(["/bin/sh", "-c", line], {
    cwd: "/",
    env: { PATH: process.env["PATH"] ?? "", LANG: "C.UTF-8" },
    ...options
  })

describe("the terminal of the tests", () => {
  it.live("shows what a program writes, joins wrapped rows, and keeps what scrolls away", () =>
    Effect.gen(function* () {
      const terminal = yield* on("seq 1 50; printf '%0120d' 7; read x; exit 3", {
        cols: 40,
        rows: 10,
        before: "old\n"
      })
      yield* terminal.shows("0".repeat(119))
      assert.strictEqual(terminal.screen().length, 10)
      assert.deepStrictEqual(terminal.scrollback().slice(0, 3), ["old", "1", "2"])
      yield* terminal.type("\n")
      const { code, column, isStyled, stty } = yield* terminal.ended
      assert.deepStrictEqual([code, column, isStyled], [3, 0, false])
      assert.strictEqual(stty.after, stty.before)
    })
  )

  it.live("types, pastes, resizes, signals and answers", () =>
    Effect.gen(function* () {
      const line = `stty -echo -icanon; printf '\\033[c'; head -c 7 | od -c | head -1; trap 'stty size; exit 5' TERM; echo ready; while :; do sleep 0.1; done`
      const terminal = yield* on(line, { cols: 60 })
      yield* terminal.shows("033   [   ?   1   ;")
      yield* terminal.shows("ready")
      yield* terminal.resize(50, 12)
      yield* terminal.signal("SIGTERM")
      const { code, stty } = yield* terminal.ended
      assert.strictEqual(code, 5)
      assert.include(terminal.view(), "12 50")
      assert.notStrictEqual(stty.after, stty.before)
      const cat = yield* on("printf '\\033[?2004h'; cat -v")
      yield* cat.until("the mode", () => cat.bytes().includes("?2004h"))
      yield* cat.paste("a\rb")
      yield* cat.type("\r")
      // The echo of the terminal, and the lines of the program.
      yield* cat.until("both", () =>
        ["^[[200~a", "b^[[201~"].every((text) => Session.count(cat.view(), text) === 2)
      )
      yield* cat.key("Ctrl-C")
      assert.strictEqual((yield* cat.ended).code, 130)
    })
  )

  it.live("has jobs, and shows programs that take the whole screen", () =>
    Effect.gen(function* () {
      const terminal = yield* on("PS1='shell% ' exec bash --norc --noprofile -i", { before: "old\n" })
      yield* terminal.shows("shell% ")
      yield* terminal.type("sh -c 'echo began; exec sleep 30'\r")
      yield* terminal.shows(/^began$/m)
      yield* terminal.key("Ctrl-Z")
      yield* terminal.shows(/Stopped[^.]/)
      yield* terminal.type("fg\r")
      yield* terminal.shows(/^sh -c 'echo began; exec sleep 30'$/m)
      yield* terminal.key("Ctrl-C")
      yield* terminal.type("seq 1 500 | LESS= less -Ppager\r")
      yield* terminal.shows(/^pager$/m)
      yield* terminal.shows(/^29$/m)
      yield* terminal.type("q")
      yield* terminal.shows("old")
      yield* terminal.type("exit 4\r")
      assert.strictEqual((yield* terminal.ended).code, 4)
    })
  )

  it.live("draws each grapheme as a whole", () =>
    Effect.gen(function* () {
      const texts = ["漢字", "👨‍👩‍👧", "e\u0301", "🇩🇪🇫🇷", "❤️", "👍🏽"]
      const terminal = yield* on(`printf '${texts.join("|")}|'; read x`)
      yield* terminal.shows("👍🏽|")
      assert.strictEqual(terminal.cursor().x, 4 + 2 + 1 + 4 + 2 + 2 + texts.length)
    })
  )

  it.live("has the model of a run, and the program at its end", () =>
    Effect.gen(function* () {
      const session = yield* Session.make({ files: { "a.txt": "one\n" } })
      const terminal = yield* session.start(["Hello"])
      const first = yield* session.model.next
      assert.deepStrictEqual(first.of("user"), ["Hello"])
      yield* first.calls(["read", { path: "a.txt" }])
      const second = yield* session.model.next
      assert.match(second.of("tool")[0] ?? "", /one/)
      yield* second.delta("So ")
      yield* terminal.shows("So")
      yield* second.delta("be it.")
      yield* second.ends
      const { code, column, stty } = yield* terminal.ended
      assert.deepStrictEqual([code, column, stty.after], [0, 0, stty.before])
      assert.include(terminal.view(), "So be it.")
      assert.strictEqual((yield* session.sessions).length, 1)
      assert.isEmpty(Sequences.leftOn(terminal.bytes()), Sequences.leftOn(terminal.bytes()).join("\n"))
    })
  )
})

describe("the sequences of the tests", () => {
  it("names what the program must not send", () => {
    const fine = "\u001b[31ma\u001b[0m\r\n\u001b[K\u001b[?25l\u001b]0;t\u0007\u0007"
    assert.isEmpty(Sequences.foreign(fine), Sequences.foreign(fine).join("\n"))
    const found = Sequences.foreign("\u001b[3J\u001b]8;;x\u001b\\\u009b1m\u202e").map((text) =>
      JSON.parse(text)
    )
    const ends = ["\u001b[3J", "\u001b]8;;x\u001b\\", "\u009b", "\u202e"]
    assert.deepStrictEqual(
      ends.map((end, index) => found[index]?.endsWith(end)),
      [true, true, true, true]
    )
    assert.deepStrictEqual(Sequences.leftOn("\u001b[?2004h\u001b[?25l\u001b[>7u\u001b[?25h\u001b[31m"), [
      "2004",
      "Kitty keys (1 pushed, 0 popped)"
    ])
  })
})
