import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Program from "../program.ts"
import * as Session from "./session.ts"

Program.bundled()

/** A session in which a person has sent prompts, each with the answer `Answer N.` */
const after = Effect.fnUntraced(function* (prompts: ReadonlyArray<string>, options?: Session.Options) {
  const session = yield* Session.make(options)
  const terminal = yield* session.open()
  const ask = Effect.fnUntraced(function* (prompt: string) {
    yield* terminal.type(`${prompt}\r`)
    const request = yield* session.model.next
    const answer = `Answer ${session.model.requests.length}.`
    yield* request.says(answer)
    yield* terminal.shows(answer)
    yield* terminal.hides("Working")
    return request
  })
  for (const prompt of prompts) yield* ask(prompt)
  return { ...session, terminal, ask }
})

/** Each command of section 5. */
const commands =
  "help model effort context compact undo redo rewind sessions resume new clear fork name retry queue steer tasks plan mcp login logout cost export copy diff permissions hooks quit exit"

const starred = ["compact", "undo", "redo", "rewind", "resume", "new", "clear", "fork", "retry"]

describe("Commands", () => {
  it.live("P-47 /help names each command", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open([], { rows: 60 })
      yield* terminal.type("/help\r")
      yield* terminal.writes("/permissions")
      yield* terminal.writes("/quit")
      const text = terminal.scrollback().join("\n")
      const missing = commands.split(" ").filter((name) => !new RegExp(`/${name}\\b`).test(text))
      assert.deepStrictEqual(missing, [], text)
      for (const key of ["Esc", "Ctrl-C", "Ctrl-O", "Alt-Enter", "Shift-Tab"]) assert.include(text, key)
      assert.deepStrictEqual(model.requests, [])
    })
  )

  it.live("P-48 an unknown command sends nothing, and a path is a prompt", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open()
      yield* terminal.type("/hlep\r")
      yield* terminal.shows("Unknown command /hlep. Did you mean /help?")
      yield* Session.pause(300)
      assert.deepStrictEqual(model.requests, [])
      for (const text of ["/etc/hosts has which lines", " /help me"]) {
        yield* terminal.key("Ctrl-U")
        yield* terminal.type(text)
        yield* terminal.key("Enter")
        const request = yield* model.next
        assert.strictEqual(request.of("user").at(-1)?.trim(), text.trim())
        yield* request.says(`Answer ${model.requests.length}.`)
        yield* terminal.shows(`Answer ${model.requests.length}.`)
        yield* terminal.hides("Working")
      }
    })
  )

  it.live("P-49 /model is the model of the next request; an unknown one changes nothing", () =>
    Effect.gen(function* () {
      const { ask, terminal } = yield* after(["first"])
      yield* terminal.type("/model openai-chat/gpt-4.1-mini\r")
      yield* terminal.writes("Model: openai-chat/gpt-4.1-mini")
      assert.strictEqual((yield* ask("second")).model, "gpt-4.1-mini")
      yield* terminal.shows(/^ask · openai-chat\/gpt-4\.1-mini · /m)
      yield* terminal.type("/model opneai-chat/gpt-4.1\r")
      yield* terminal.writes('No model "opneai-chat/gpt-4.1".')
      assert.strictEqual((yield* ask("third")).model, "gpt-4.1-mini")
    })
  )

  it.live("P-50 the five rows of /context add up to its total", () =>
    Effect.gen(function* () {
      const files = { "AGENTS.md": "Be brief. ".repeat(40), "a.txt": "word ".repeat(400) }
      const session = yield* Session.make({ files })
      const terminal = yield* session.open()
      yield* terminal.type("read it\r")
      yield* (yield* session.model.next).calls(["read", { path: "a.txt" }])
      yield* (yield* session.model.next).says("It has words.")
      yield* terminal.shows("It has words.")
      yield* terminal.hides("Working")
      yield* terminal.type("/context\r")
      yield* terminal.writes(/Total ~?\d+ of \d+ tokens \(\d+ %\)/)
      const text = terminal.scrollback().join("\n")
      const numberOf = (name: string) => {
        // The names of the files may have digits.
        const [, number] = new RegExp(`^ *${name}(?:\\(.*\\)|\\D)*?(\\d+)`, "m").exec(text) ?? []
        assert.isDefined(number, `${name}\n${text}`)
        return Number(number)
      }
      const rows = ["System prompt", "Tools", "Memory files", "Messages", "Tool results"].map(numberOf)
      assert.strictEqual(
        rows.reduce((sum, row) => sum + row),
        numberOf("Total"),
        text
      )
      assert.isTrue(
        rows.every((row) => row > 0),
        text
      )
      assert.include(text, "AGENTS.md")
      const [, total, window, share] = /Total ~?(\d+) of (\d+) tokens \((\d+) %\)/.exec(text) ?? []
      assert.strictEqual(numberOf("Free"), Number(window) - Number(total))
      assert.closeTo(Number(share), (Number(total) / Number(window)) * 100, 1)
    })
  )

  it.live("P-51 /compact makes the next request smaller", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const words = "These are many words. ".repeat(1_200)
      yield* model.always((request) => {
        const last = request.of("user").at(-1) ?? ""
        return request.says(/^prompt \d$/.test(last) ? `${words}\n\nEnd of ${last}.` : "A summary.")
      })
      const terminal = yield* open()
      yield* terminal.type("/compact\r")
      yield* terminal.shows("Nothing to compact.")
      for (const number of [1, 2, 3, 4, 5, 6]) {
        yield* terminal.type(`prompt ${number}\r`)
        yield* terminal.shows(`End of prompt ${number}.`, { timeout: 20_000 })
        yield* terminal.hides("Working")
      }
      const before = model.requests.at(-1)?.body.length ?? 0
      yield* terminal.type("/compact keep the numbers\r")
      yield* terminal.writes(/Compacted: \d+ → \d+ tokens\./, { timeout: 20_000 })
      const [, from, to] = /Compacted: (\d+) → (\d+) tokens\./.exec(terminal.scrollback().join("\n")) ?? []
      assert.isBelow(Number(to), Number(from))
      assert.include(model.requests.at(-1)?.body ?? "", "keep the numbers")
      yield* terminal.type("prompt 7\r")
      yield* terminal.until("the next request", () => model.requests.at(-1)?.of("user").at(-1) === "prompt 7")
      assert.isBelow(model.requests.at(-1)?.body.length ?? 0, before)
      assert.include(model.requests.at(-1)?.body ?? "", "A summary.")
    })
  )

  it.live("P-52 /rewind takes away what came after, and puts the prompt into the input", () =>
    Effect.gen(function* () {
      const { ask, terminal } = yield* after(["first", "second", "third"])
      yield* terminal.type("/rewind 2\r")
      yield* terminal.shows("1 files and conversation · 2 conversation · 3 files")
      yield* Session.settled
      yield* terminal.type("2")
      yield* terminal.holds("second")
      yield* terminal.key("Ctrl-U")
      yield* terminal.holds("")
      const { of } = yield* ask("another")
      assert.deepStrictEqual([of("user"), of("assistant")], [["first", "another"], ["Answer 1."]])
    })
  )

  it.live("P-53 /new sends no old message, and /resume sends them again", () =>
    Effect.gen(function* () {
      const { ask, sessions, terminal } = yield* after(["first"])
      const [old] = yield* sessions
      yield* terminal.type("/new\r")
      yield* terminal.writes(/New session [\w-]{8}\./)
      assert.deepStrictEqual((yield* ask("second")).of("user"), ["second"])
      const [newest, ...others] = yield* sessions
      assert.deepStrictEqual(
        others.map(({ sessionId }) => sessionId),
        [old?.sessionId]
      )
      assert.include(terminal.scrollback().join("\n"), `New session ${newest?.sessionId.slice(0, 8) ?? ""}.`)
      yield* terminal.type(`/resume ${old?.sessionId ?? ""}\r`)
      yield* terminal.shows(new RegExp(`^ask · .* · ${old?.sessionId.slice(0, 8) ?? ""}$`, "m"))
      assert.deepStrictEqual((yield* ask("third")).of("user"), ["first", "third"])
    })
  )

  it.live("P-54 /fork continues in a copy: there are two sessions", () =>
    Effect.gen(function* () {
      const { ask, run, sessions, terminal } = yield* after(["first"])
      const [old] = yield* sessions
      const id = old?.sessionId ?? ""
      yield* terminal.type("/fork\r")
      yield* terminal.writes(new RegExp(`Forked: ${id.slice(0, 8)} → [\\w-]{8}\\.`))
      assert.deepStrictEqual((yield* ask("in the copy")).of("user"), ["first", "in the copy"])
      const all = yield* sessions
      assert.strictEqual(all.length, 2)
      const copy = all.find(({ sessionId }) => sessionId !== id)?.sessionId ?? ""
      assert.include(terminal.scrollback().join("\n"), `→ ${copy.slice(0, 8)}.`)
      assert.notInclude((yield* run(["sessions", "show", id])).stdout, "in the copy")
    })
  )

  it.live("P-55 /cost has the numbers of the server", () =>
    Effect.gen(function* () {
      const files = { "a.txt": "one\n" }
      const { model, open } = yield* Session.make({ files, usage: { input: 300, cached: 100, output: 20 } })
      const terminal = yield* open()
      yield* terminal.type("read it\r")
      yield* (yield* model.next).calls(["read", { path: "a.txt" }])
      yield* (yield* model.next).says("It says one.")
      yield* terminal.shows("It says one.")
      yield* terminal.hides("Working")
      yield* terminal.type("/cost\r")
      yield* terminal.writes(
        /Input 600 · cached 200 · output 40 tokens · \$0\.001\d* · 2 model calls · 1 tool calls? · \d/
      )
      const priceless = yield* open([], { env: { EFFECT_AGENT_MODEL: "openai-chat/house" } })
      yield* priceless.type("hello\r")
      yield* (yield* model.next).says("Hello too.")
      yield* priceless.shows("Hello too.")
      yield* priceless.hides("Working")
      yield* priceless.type("/cost\r")
      yield* priceless.writes(
        /Input 300 · cached 100 · output 20 tokens · price unknown · 1 model calls? · 0 tool calls · \d/
      )
    })
  )

  it.live("P-56 /export writes a file, and asks before it replaces one", () =>
    Effect.gen(function* () {
      const { cwd, sessions, terminal, text } = yield* after(["first"])
      const [session] = yield* sessions
      const usual = `effect-agent-${session?.sessionId.slice(0, 8) ?? ""}.md`
      yield* terminal.type("/export\r")
      yield* terminal.writes(`Written: ${usual}`)
      assert.match(text(usual), /first[^]*Answer 1\./)
      for (const [name, pattern] of [
        ["out.json", /^\s*[[{][^]*Answer 1\./],
        ["out.jsonl", /^\{.*\}\n[^]*Answer 1\./],
        ["out.html", /^<[^]*Answer 1\./],
        ["out.md", /first[^]*Answer 1\./]
      ] as const) {
        yield* terminal.type(`/export ${name}\r`)
        yield* terminal.writes(`Written: ${name}`)
        assert.match(text(name), pattern)
      }
      writeFileSync(join(cwd, "out.md"), "precious")
      yield* terminal.type("/export out.md\r")
      yield* terminal.shows(
        /out\.md\b.*(?:exists|replace|overwrite)|(?:exists|replace|overwrite).*out\.md\b/i
      )
      yield* Session.settled
      yield* terminal.key("Esc")
      yield* Session.pause(500)
      assert.strictEqual(readFileSync(join(cwd, "out.md"), "utf8"), "precious")
      assert.isTrue(terminal.isRunning())
    })
  )

  it.live("P-57 /copy copies an answer as the model wrote it, or a block of code", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make()
      const terminal = yield* open()
      const answers = ["**First** answer.", "Look:\n\n```ts\nconst x = 1\n```\n\nDone."]
      for (const answer of answers) {
        yield* terminal.type("tell me\r")
        yield* (yield* model.next).says(answer)
        yield* terminal.shows(/^(?:First answer|Done)\.$/m)
        yield* terminal.hides("Working")
        yield* Session.pause(100)
      }
      const copied = (text: string) => {
        const encoded = Buffer.from(text).toString("base64")
        return terminal.until(`copied ${text}`, () => terminal.bytes().includes(`\u001b]52;c;${encoded}`))
      }
      yield* terminal.type("/copy\r")
      yield* terminal.writes(`Copied ${answers[1]?.length} characters.`)
      yield* copied(answers[1] ?? "")
      yield* terminal.type("/copy 2\r")
      yield* terminal.writes("Copied 17 characters.")
      yield* copied(answers[0] ?? "")
      const once = terminal.bytes().length
      yield* terminal.type("/copy code\r")
      yield* terminal.until("the code is copied", () =>
        ["const x = 1", "const x = 1\n"].some((code) => {
          const encoded = Buffer.from(code).toString("base64")
          return (
            terminal.bytes().slice(once).includes(`\u001b]52;c;${encoded}`) &&
            terminal.scrollback().join("\n").includes(`Copied ${code.length} characters.`)
          )
        })
      )
    })
  )

  it.live(
    "P-58 starred commands do nothing while it works, others work",
    () =>
      Effect.gen(function* () {
        const { model, open, sessions } = yield* Session.make()
        for (const name of starred) {
          const terminal = yield* open()
          yield* terminal.type("tell me\r")
          const request = yield* model.next
          yield* request.delta("So far.\n\n")
          yield* terminal.shows("So far.")
          const known = model.requests.length
          yield* terminal.type(`/${name}`)
          yield* terminal.key("Enter")
          yield* terminal.shows("Not while it works. Esc stops it.")
          yield* terminal.type("/cost\r")
          yield* terminal.writes(/Input \d+ · cached/)
          yield* request.delta("Done.")
          yield* request.ends
          yield* terminal.shows("Done.")
          yield* terminal.hides("Working")
          yield* Session.pause(100)
          assert.strictEqual(model.requests.length, known, name)

          yield* terminal.signal("SIGTERM")
          yield* terminal.ended
        }
        assert.strictEqual((yield* sessions).length, starred.length)
      }),
    120_000
  )

  it.live("P-59 /permissions shows what always added, and rm removes it", () =>
    Effect.gen(function* () {
      const { model, open, text } = yield* Session.make()
      const terminal = yield* open()
      const call = ["shell", { command: "echo x >> ran" }] as const
      const ask = Effect.fnUntraced(function* (prompt: string) {
        yield* terminal.type(`${prompt}\r`)
        yield* (yield* model.next).calls(call)
      })
      const ends = Effect.gen(function* () {
        const request = yield* model.next
        const answer = `Answer ${model.requests.length}.`
        yield* request.says(answer)
        yield* terminal.shows(answer)
        yield* terminal.hides("Working")
      })
      yield* ask("once")
      yield* terminal.shows("Allow shell?")
      yield* Session.settled
      yield* terminal.type("a")
      yield* ends
      yield* ask("twice")
      yield* ends
      assert.strictEqual(text("ran"), "x\nx\n")
      yield* terminal.type("/permissions\r")
      const rule = /^ *(\d+)\b.*echo x >> ran/m
      yield* terminal.writes(rule)
      const [, number] = rule.exec(terminal.scrollback().join("\n")) ?? []
      yield* terminal.type(`/permissions rm ${number}\r`)
      yield* Session.pause(500)
      yield* ask("again")
      yield* terminal.shows("Allow shell?")
      assert.strictEqual(text("ran"), "x\nx\n")
    })
  )

  it.live("P-60 /diff shows what the session changed in files", () =>
    Effect.gen(function* () {
      const { model, open } = yield* Session.make({ files: { "a.txt": "one\ntwo\nthree\n" } })
      const terminal = yield* open(["--yes"])
      yield* terminal.type("do it\r")
      yield* (yield* model.next).calls(["edit", { path: "a.txt", oldText: "two", newText: "half" }])
      yield* (yield* model.next).calls(["edit", { path: "a.txt", oldText: "half", newText: "TWO" }])
      yield* (yield* model.next).calls(["write", { path: "b.txt", content: "fresh\n" }])
      yield* (yield* model.next).says("Done.")
      yield* terminal.shows("Done.")
      yield* terminal.hides("Working")
      yield* terminal.type("/diff\r")
      const shown = () => terminal.scrollback().join("\n").split("Done.")[1] ?? ""
      yield* terminal.until("the diff", () =>
        [/- *two/, /\+ *TWO/, /\+ *fresh/].every((line) => line.test(shown()))
      )
      assert.notInclude(shown(), "half")
    })
  )

  it.live("P-60 /name is the name in sessions", () =>
    Effect.gen(function* () {
      const { run, terminal } = yield* after(["first"])
      yield* terminal.type("/name The Trip\r")
      yield* Session.pause(500)
      const { stdout } = yield* run(["sessions"])
      assert.include(stdout, "The Trip")
    })
  )
})
