import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Program from "../program.ts"
import type { Request } from "./model.ts"
import * as Sequences from "./sequences.ts"
import * as Session from "./session.ts"

Program.bundled()

const hostile = [
  "\u001b[2J",
  "\u001b[3J",
  "\u001b[31m",
  "\u001b[?1049h",
  "\u001b[?1003h",
  "\u001b]0;evil title\u0007",
  "\u001b]52;c;ZXZpbA==\u001b\\",
  "\u001b]8;;http://example.com\u001b\\",
  "\u001b]9;evil note\u0007",
  "\u009b2J",
  "\u009d0;evil\u009c",
  "\u001bP$q\u001b\\",
  "\u001b_Ga\u001b\\",
  "\u001bc",
  "\b\b\b\u0007",
  "\u0000\u007f\u0085",
  "\u202eabc\u202c",
  "\u2066x\u2069\u200e\u200f\u061c"
]

const control = new RegExp(
  String.raw`[\0-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]`,
  "gu"
)

/** The text as the screen shows it. */
const shown = (text: string) =>
  text.replaceAll(control, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)

/** Paragraphs that each have one of the texts between words of their own. */
const paragraphs = (name: string) => hostile.map((text, index) => `${name}${index}<${text}>`)

const inCharacters = (request: Request, text: string) =>
  Effect.andThen(Effect.forEach(Array.from(text), request.delta, { discard: true }), request.ends)

/** An answer as a server sends it, in one byte after the other. */
const inBytes = ({ raw, ends }: Request, text: string) => {
  const choices = [{ index: 0, delta: { role: "assistant", content: text }, finish_reason: null }]
  const event = { id: "c1", object: "chat.completion.chunk", created: 1, model: "m", choices }
  // The characters themselves, not their escapes in JSON, as far as JSON allows them.
  const bytes = Buffer.from(`data: ${JSON.stringify(event)}\n\n`)
  return Effect.andThen(
    Effect.forEach(Array.from(bytes), (byte) => raw(Uint8Array.of(byte)), { discard: true }),
    ends
  )
}

describe("Safety", () => {
  it.live("P-89 hostile text of a model, split anywhere, is shown as escapes", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open([], { cols: 120, rows: 60 })
      for (const [name, answers] of [
        ["char", inCharacters],
        ["byte", inBytes]
      ] as const) {
        yield* terminal.type("tell me\r")
        const texts = paragraphs(name)
        yield* answers(yield* model.next, `${texts.join("\n\n")}\n\ngood\rEVIL ${name}\n\nThe ${name} end.`)
        yield* terminal.shows(`The ${name} end.`)
        yield* terminal.hides("Working")
        const text = terminal.scrollback().join("\n")
        assert.deepStrictEqual(
          texts.filter((each) => !text.includes(shown(each))),
          [],
          text
        )
        assert.match(text, new RegExp(`good.*EVIL ${name}`))
      }
      assert.isEmpty(Sequences.foreign(terminal.bytes()), Sequences.foreign(terminal.bytes()).join("\n"))
      assert.notInclude(terminal.bytes(), "\u001b]9;")
      assert.notInclude(terminal.bytes(), "\u001b]52;")
    })
  )

  it.live("P-89 hostile text of tools, files, tasks, questions and errors is shown as escapes", () =>
    Effect.gen(function* () {
      const { model, open, put } = yield* Session.make({
        files: { "out.txt": `${paragraphs("out").slice(0, 4).join("\n")}\n`, "a.txt": "one\n" }
      })
      const name = "file\u001b[2J\u202e\u009b1m.txt"
      put(name, "one\n")
      const terminal = yield* open(["--yes"], { cols: 120, rows: 60 })
      yield* terminal.type("do it\r")
      const evil = "\u001b[2J\u001b]0;evil\u0007\u009b1m\u202e"
      yield* (yield* model.next).calls(
        ["shell", { command: "cat out.txt" }],
        ["list", { path: "." }],
        ["read", { path: name }],
        ["edit", { path: "a.txt", oldText: "one", newText: `diff${evil}` }],
        [`tool${evil}`, {}],
        ["tasks", { tasks: [{ text: `task${evil}`, status: "active" }] }]
      )
      const second = yield* model.next
      yield* terminal.writes(shown(`task${evil}`))
      yield* terminal.writes(shown(`diff${evil}`))
      yield* terminal.writes(shown("out2<\u001b[31m>"))
      yield* second.calls([
        "ask_user",
        { question: `question${evil}`, schema: { enum: [`choice${evil}`, "b"] } }
      ])
      yield* terminal.shows(shown(`question${evil}`))
      yield* terminal.shows(shown(`choice${evil}`))
      yield* Session.settled
      yield* terminal.key("Esc")
      yield* (yield* model.next).fails(400, `error${evil}`)
      yield* terminal.writes(shown("error\u001b[2J"))
      yield* terminal.hides("Working")
      yield* terminal.key("Ctrl-O")
      yield* terminal.type("@file")
      yield* Session.pause(500)
      yield* terminal.key("Tab")
      yield* Session.pause(500)
      assert.isEmpty(Sequences.foreign(terminal.bytes()), Sequences.foreign(terminal.bytes()).join("\n"))
      assert.notInclude(terminal.bytes(), "\u001b]0;evil")
    })
  )

  it.live("P-89 hostile names of sessions and folders are shown as escapes, in lists and in the title", () =>
    Effect.gen(function* () {
      const { model, open, put, cwd } = yield* Session.make()
      yield* model.always((request) => request.says("Fine."))
      const evil = "\u001b[2J\u0007\u001b]52;c;eA==\u001b\\\u009b1m\u202e"
      put(`folder${evil}/a.txt`, "one\n")
      const terminal = yield* open(["--name", `name${evil}`], { cols: 120 })
      yield* terminal.type("hello\r")
      yield* terminal.shows("Fine.")
      yield* terminal.hides("Working")
      yield* terminal.type("/sessions\r")
      yield* terminal.shows(shown(`name${evil}`).slice(0, 12))
      yield* terminal.key("Esc")
      yield* Session.pause(300)
      yield* terminal.key("Ctrl-D")
      yield* terminal.ended
      assert.isEmpty(Sequences.foreign(terminal.bytes()), Sequences.foreign(terminal.bytes()).join("\n"))
      assert.notInclude(terminal.bytes(), "\u001b]52;")
      const inFolder = yield* open([], { cwd: `${cwd}/folder${evil}`, cols: 120 })
      assert.include(inFolder.scrollback().join("\n"), "folder\\u{1b}[2J")
      assert.isEmpty(Sequences.foreign(inFolder.bytes()), Sequences.foreign(inFolder.bytes()).join("\n"))
    })
  )

  it.live("P-89 hostile text in line mode is shown as escapes", () =>
    Effect.gen(function* () {
      const { model, run } = yield* Session.make()
      const texts = paragraphs("line")
      yield* model.always((request) => request.says(texts.join("\n\n")))
      const { code, stderr, stdout } = yield* run(["--plain"], "tell me\n")
      assert.strictEqual(code, 0, stderr)
      assert.deepStrictEqual(
        texts.filter((text) => !stdout.includes(shown(text))),
        [],
        stdout
      )
      assert.notMatch(stdout + stderr, control)
    })
  )
})
