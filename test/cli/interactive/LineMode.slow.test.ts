import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Program from "../program.ts"
import type { Model } from "./model.ts"
import * as Session from "./session.ts"

Program.bundled()

/** Answers each request by the number of messages of the person and the last of them. */
const counting = ({ always }: Model) =>
  always((request) => {
    const users = request.of("user")
    return request.says(`${users.length}: ${users.at(-1)}`)
  })

const isLineMode = /^Line mode \(.+\)\.$/m

describe("Line mode", () => {
  it.live("P-88 on TERM=dumb: no ESC, and each line says what it is", () =>
    Effect.gen(function* () {
      const { model, start, text } = yield* Session.make()
      const terminal = yield* start([], { env: { TERM: "dumb" } })
      yield* terminal.writes(isLineMode)
      yield* terminal.writes(Session.greeting)
      yield* terminal.type("hello\r")
      const first = yield* model.next
      assert.deepStrictEqual(first.of("user"), ["hello"])
      yield* first.calls(["shell", { command: "echo x >> ran" }])
      yield* terminal.writes("Allow shell? y yes, a always, n no, e edit, w why, v all:")
      yield* terminal.writes(/^approval: /m)
      yield* Session.settled
      yield* terminal.type("y\r")
      const second = yield* model.next
      assert.strictEqual(text("ran"), "x\n")
      yield* terminal.writes(/^tool: shell echo x >> ran/m)
      yield* terminal.writes(/^result: /m)
      yield* second.calls(["ask_user", { question: "Which one?", schema: { enum: ["red", "blue"] } }])
      yield* terminal.writes(/^question: .*Which one\?/m)
      yield* terminal.writes(/^ *2\W+blue$/m)
      yield* terminal.writes(/^Answer:/m)
      yield* Session.settled
      yield* terminal.type("2\r")
      const third = yield* model.next
      assert.include(third.of("tool").at(-1) ?? "", "blue")
      yield* third.delta("The first para")
      yield* third.delta("graph.\n\nThe second")
      yield* terminal.writes("agent: The first paragraph.")
      assert.notInclude(terminal.scrollback().join("\n"), "The second")
      yield* third.delta(" one.")
      yield* third.ends
      yield* terminal.writes("The second one.")
      yield* Session.pause(300)
      yield* terminal.key("Ctrl-D")
      assert.strictEqual((yield* terminal.ended).code, 0)
      const written = terminal.scrollback().join("\n")
      for (const line of ["The first paragraph.", "The second one.", "tool: shell", "Line mode"])
        assert.strictEqual(Session.count(written, line), 1, written)
      assert.notInclude(terminal.bytes(), "\u001b")
      assert.notMatch(terminal.bytes(), /[→✓✗▸]/)
    })
  )

  it.live(
    "P-88 --plain, EFFECT_AGENT_PLAIN and plain: true are line mode too; a line while it works steers",
    () =>
      Effect.gen(function* () {
        const { model, put, start } = yield* Session.make({ config: { plain: true }, files: Session.waits })
        const plain = yield* start(["--yes"])
        yield* plain.writes(isLineMode)
        yield* plain.writes(Session.greeting)
        yield* plain.type("begin\r")
        yield* (yield* model.next).calls(Session.wait)
        yield* plain.writes("tool: shell sh wait.sh")
        yield* plain.type("use BigInt\r")
        yield* plain.type("/queue and then this\r")
        yield* Session.pause(500)
        put("go", "")
        const second = yield* model.next
        assert.deepStrictEqual(second.of("user"), ["begin", "use BigInt"])
        yield* second.says("Done.")
        const third = yield* model.next
        assert.deepStrictEqual(third.of("user").at(-1), "and then this")
        yield* third.says("Done too.")
        yield* plain.writes("agent: Done too.")
        assert.notInclude(plain.bytes(), "\u001b")
        const other = yield* Session.make()
        for (const started of [
          { args: ["--plain"], env: {} },
          { args: [], env: { EFFECT_AGENT_PLAIN: "1" } }
        ]) {
          const terminal = yield* other.start(started.args, { env: started.env })
          yield* terminal.writes(isLineMode)
          yield* terminal.type("/quit\r")
          assert.strictEqual((yield* terminal.ended).code, 0)
          assert.notInclude(terminal.bytes(), "\u001b")
        }
      })
  )

  it.live("P-88 --plain on a pipe: two prompts, and 0", () =>
    Effect.gen(function* () {
      const { model, run, text } = yield* Session.make()
      yield* counting(model)
      const { code, stderr, stdout } = yield* run(["--plain"], "one\ntwo\n")
      assert.strictEqual(code, 0, stderr)
      assert.match(stdout + stderr, isLineMode)
      assert.match(stdout, /^agent: 1: one$[^]*^agent: 2: two$/m)
      assert.strictEqual(model.requests.length, 2)
      assert.notInclude(stdout + stderr, "\u001b")
      const refused = yield* Session.make()
      yield* refused.model.always((request) =>
        request.of("tool").length === 0
          ? request.calls(["shell", { command: "echo x > ran" }])
          : request.says("Refused, I see.")
      )
      const piped = yield* refused.run(["--plain"], "do it")
      assert.include(piped.stdout, "agent: Refused, I see.")
      assert.strictEqual(text("ran"), "")
      assert.strictEqual(refused.text("ran"), "")
    })
  )
})
